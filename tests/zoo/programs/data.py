"""Inputs of the programs: speech by the library espeak-ng, pages of text by Pillow, tones, a helix of a protein.

Each function makes the same data in each process. The rate of sounds is 16,000 samples per second if none is given."""

from __future__ import annotations

import ctypes
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Sound = NDArray[np.float32]
SYNCHRONOUS, DONT_EXIT, UTF8, PITCH = 2, 0x8000, 1, 3  # espeak-ng's constants


@cache
def speech(text: str, voice: str = "en-us", pitch: int = 50, rate: int = 16000) -> Sound:
    """A text spoken by espeak-ng's voice, with a pitch between 0 and 100: samples between -1 and 1."""
    import espeakng_loader
    from scipy.signal import resample_poly

    ctypes.CDLL(None).srand(1)  # the sound of an s is noise
    library = ctypes.CDLL(espeakng_loader.get_library_path())
    home = str(espeakng_loader.get_data_path()).encode()
    made_at = library.espeak_Initialize(SYNCHRONOUS, 0, home, DONT_EXIT)
    parts: list[NDArray[np.int16]] = []

    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)
    def keep(samples: object, count: int, events: object) -> int:
        if samples and count:
            parts.append(np.ctypeslib.as_array(samples, (count,)).copy())  # type: ignore[arg-type]
        return 0

    library.espeak_SetSynthCallback(keep)
    if library.espeak_SetVoiceByName(voice.encode()):
        raise ValueError(f"espeak-ng has no voice {voice!r}")
    library.espeak_SetParameter(PITCH, pitch, 0)
    said = text.encode()
    library.espeak_Synth(said, len(said) + 1, 0, 0, 0, UTF8, None, None)
    library.espeak_Terminate()
    return resample_poly(np.concatenate(parts) / 32768, rate, made_at).astype(np.float32)


def folder_of(package: str) -> Path:
    """The folder of an installed package, which is not imported."""
    found = find_spec(package)
    if found is None or found.origin is None:
        raise ModuleNotFoundError(f"pip install {package}")
    return Path(found.origin).parent


def silence(seconds: float, rate: int = 16000) -> Sound:
    """Noise of amplitude 0.001."""
    return np.random.default_rng(0).normal(0, 1e-3, int(seconds * rate)).astype(np.float32)


def note(hertz: float, seconds: float, rate: int = 16000) -> Sound:
    """A tone of six harmonics that fades, as of a string."""
    t = np.arange(int(seconds * rate)) / rate
    waves = sum(np.sin(2 * np.pi * hertz * n * t) / n**1.5 for n in range(1, 7))
    return (0.2 * waves * np.exp(-3 * t) * np.minimum(1, t * 200)).astype(np.float32)


def page(lines: list[str], size: tuple[int, int] = (640, 320), height: int = 32) -> NDArray[np.uint8]:
    """A white page with lines of black text: (height, width, 3)."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGB", size, "white")
    font = ImageFont.load_default(height)
    for i, line in enumerate(lines):
        ImageDraw.Draw(image).text((40, 30 + 2 * height * i), line, "black", font)
    return np.asarray(image)


def astronaut() -> NDArray[np.uint8]:
    """The photograph of Eileen Collins (NASA, public domain) that scikit-image ships: (512, 512, 3)."""
    import skimage
    from PIL import Image

    return np.asarray(Image.open(Path(skimage.__file__).parent / "data" / "astronaut.png").convert("RGB"))


def helix(residues: int) -> NDArray[np.float32]:
    """Atoms N, CA, C and O of an ideal alpha helix, in angstroms: (residues, 4, 3)."""
    radius, turn, rise = (1.55, 2.28, 1.66, 2.03), (-28.3, 0.0, 26.5, 22.0), (-0.89, 0.0, 1.10, 2.30)
    angle = np.deg2rad(100.0 * np.arange(residues)[:, None] + np.array(turn))
    along = 1.5 * np.arange(residues)[:, None] + np.array(rise)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle), along], -1).astype(np.float32)
