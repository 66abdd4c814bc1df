"""The base of all transforms: `forward(img)`, a repr, and random numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rushlight import nn
from rushlight.creation.factories import empty
from rushlight.vision.images import InterpolationMode

if TYPE_CHECKING:
    from typing_extensions import Self


def drawn(low: float, high: float) -> float:
    """A number from `low` to `high`, drawn by empty(1).uniform_ in the default dtype."""
    return float(empty(1).uniform_(low, high).item())


def chance() -> float:
    """A number from 0 to 1."""
    return drawn(0, 1)


class Compose:
    """A sequence of transforms.

    >>> import numpy as np
    >>> prepare = rushlight.vision.transforms.Compose([
    ...     rushlight.vision.transforms.ToTensor(), rushlight.vision.transforms.Normalize((0.5,), (0.5,))])
    >>> prepare(np.full((2, 2), 255, np.uint8))
    tensor([[[1., 1.],
             [1., 1.]]])
    """

    def __init__(self, transforms: Sequence[Callable]):
        self.transforms = transforms

    def __call__(self, img: Any) -> Any:
        for transform in self.transforms:
            img = transform(img)
        return img

    def __repr__(self) -> str:
        return "\n".join([f"{type(self).__name__}(", *(f"    {t}" for t in self.transforms), ")"])


class Transform(nn.Module):
    """The base: `forward(img)`, and a repr with the settings in `shows`. Transforms are modules, so that nn.Sequential
    can contain them."""

    shows: Sequence[str] = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        self = super().__new__(cls)
        nn.Module.__init__(self)  # before the subclass's __init__, which only stores settings
        return self

    def __init__(self) -> None:
        """No settings."""

    def forward(self, img: Any) -> Any:
        raise NotImplementedError

    def __repr__(self) -> str:
        values = ((name, getattr(self, name)) for name in self.shows)
        shown = ((name, v.value if isinstance(v, InterpolationMode) else v) for name, v in values)
        return f"{type(self).__name__}({', '.join(f'{name}={value}' for name, value in shown)})"


class Sometimes(Transform):
    """The base of changes that happen with probability p."""

    shows: Sequence[str] = ("p",)
    change: Callable[..., Any]
    setting = ""

    def __init__(self, p: float = 0.5):
        self.p = p

    def forward(self, img: Any) -> Any:
        given = (getattr(self, self.setting),) if self.setting else ()
        return type(self).change(img, *given) if chance() < self.p else img

    def __repr__(self) -> str:
        return f"{type(self).__name__}({','.join(f'{name}={getattr(self, name)}' for name in self.shows)})"


__all__ = ["Compose"]
