"""Randomly chosen changes of an image: RandAugment and TrivialAugment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rushlight.base.errors import value_error
from rushlight.creation.ranges import linspace
from rushlight.random import default_generator
from rushlight.vision.images import InterpolationMode, size_of
from rushlight.vision.transforms import colors, warps
from rushlight.vision.transforms.base import Transform
from rushlight.vision.transforms.functional import get_image_num_channels

__all__ = ["RandAugment", "TrivialAugmentWide"]


def pick(n: int) -> int:
    return int(default_generator.randint(0, n, (1,))[0])


def sheared(img: Any, x: float, y: float, how: dict[str, Any]) -> Any:
    """Sheared in x and y; the top left corner is fixed."""
    return warps.affine(img, 0.0, [0, 0], 1.0, [float(np.degrees(np.arctan(v))) for v in (x, y)], center=[0, 0], **how)


def moved(img: Any, x: float, y: float, how: dict[str, Any]) -> Any:
    return warps.affine(img, 0.0, [int(x), int(y)], 1.0, [0.0, 0.0], **how)


# name -> change of magnitude m; `how`: interpolation and fill of geometric changes
CHANGES: dict[str, Callable[[Any, float, dict[str, Any]], Any]] = {
    "Identity": lambda img, m, how: img,
    "ShearX": lambda img, m, how: sheared(img, m, 0.0, how),
    "ShearY": lambda img, m, how: sheared(img, 0.0, m, how),
    "TranslateX": lambda img, m, how: moved(img, m, 0.0, how),
    "TranslateY": lambda img, m, how: moved(img, 0.0, m, how),
    "Rotate": lambda img, m, how: warps.rotate(img, m, **how),
    "Brightness": lambda img, m, how: colors.adjust_brightness(img, 1.0 + m),
    "Color": lambda img, m, how: colors.adjust_saturation(img, 1.0 + m),
    "Contrast": lambda img, m, how: colors.adjust_contrast(img, 1.0 + m),
    "Sharpness": lambda img, m, how: colors.adjust_sharpness(img, 1.0 + m),
    "Posterize": lambda img, m, how: colors.posterize(img, int(m)),
    "Solarize": lambda img, m, how: colors.solarize(img, m),
    "AutoContrast": lambda img, m, how: colors.autocontrast(img),
    "Equalize": lambda img, m, how: colors.equalize(img),
}
SIGNED = ("ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate", "Brightness", "Color", "Contrast", "Sharpness")


def magnitudes(
    bins: int, shear: float, move: tuple[float, float], turn: float, color: float, bits: int
) -> dict[str, list[float] | None]:
    """The magnitudes of each operation, in `bins` steps; None for an operation without a magnitude."""

    def up_to(most: float) -> list[float]:
        return linspace(0.0, most, bins).tolist()

    posterize = (8 - np.rint(np.arange(bins) / ((bins - 1) / bits))).tolist()
    solarize = linspace(255.0, 0.0, bins).tolist()
    found = {
        **dict.fromkeys(("ShearX", "ShearY"), up_to(shear)),
        "TranslateX": up_to(move[0]),
        "TranslateY": up_to(move[1]),
        "Rotate": up_to(turn),
        **dict.fromkeys(("Brightness", "Color", "Contrast", "Sharpness"), up_to(color)),
        "Posterize": posterize,
        "Solarize": solarize,
    }
    return {name: found.get(name) for name in CHANGES}


class Chosen(Transform):
    """The base of policies: applies an operation by name, with interpolation and fill."""

    def __init__(self, num_magnitude_bins: int, interpolation: InterpolationMode, fill: Any):
        self.num_magnitude_bins, self.fill = num_magnitude_bins, fill
        self.interpolation = InterpolationMode(interpolation)

    def change(self, img: Any, name: str, magnitude: float) -> Any:
        if name in SIGNED and pick(2):
            magnitude = -magnitude
        fill = self.fill
        if isinstance(fill, (int, float)):
            fill = [float(fill)] * get_image_num_channels(img)
        return CHANGES[name](img, magnitude, {"interpolation": self.interpolation, "fill": fill})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)}' for name in self.shows)})"


class RandAugment(Chosen):
    """`num_ops` changes in a row, each with step `magnitude` of `num_magnitude_bins`. E. Cubuk et al., 2020.

    >>> rushlight.vision.transforms.RandAugment()(rushlight.zeros(3, 8, 8, dtype=rushlight.uint8)).shape
    torch.Size([3, 8, 8])
    """

    shows = ("num_ops", "magnitude", "num_magnitude_bins", "interpolation", "fill")

    def __init__(
        self, num_ops: int = 2, magnitude: int = 9, num_magnitude_bins: int = 31,
        interpolation: InterpolationMode = InterpolationMode.NEAREST, fill: Any = None,
    ):  # fmt: skip
        super().__init__(num_magnitude_bins, interpolation, fill)
        if not 0 <= magnitude < num_magnitude_bins:
            raise value_error(f"magnitude {magnitude} is not below num_magnitude_bins {num_magnitude_bins}")
        self.num_ops, self.magnitude = num_ops, magnitude

    def forward(self, img: Any) -> Any:
        height, width = size_of(img)
        space = magnitudes(self.num_magnitude_bins, 0.3, (150.0 / 331.0 * width, 150.0 / 331.0 * height), 30.0, 0.9, 4)
        names: Sequence[str] = list(space)
        for _ in range(self.num_ops):
            name = names[pick(len(names))]
            steps = space[name]
            img = self.change(img, name, 0.0 if steps is None else steps[self.magnitude])
        return img


class TrivialAugmentWide(Chosen):
    """One change of random magnitude. S. Mueller, F. Hutter, *TrivialAugment*, 2021.

    >>> rushlight.vision.transforms.TrivialAugmentWide()(rushlight.zeros(3, 8, 8, dtype=rushlight.uint8)).shape
    torch.Size([3, 8, 8])
    """

    shows = ("num_magnitude_bins", "interpolation", "fill")

    def __init__(
        self, num_magnitude_bins: int = 31, interpolation: InterpolationMode = InterpolationMode.NEAREST,
        fill: Any = None,
    ):  # fmt: skip
        super().__init__(num_magnitude_bins, interpolation, fill)

    def forward(self, img: Any) -> Any:
        space = magnitudes(self.num_magnitude_bins, 0.99, (32.0, 32.0), 135.0, 0.99, 6)
        names = list(space)
        name = names[pick(len(names))]
        steps = space[name]
        return self.change(img, name, 0.0 if steps is None else steps[pick(len(steps))])
