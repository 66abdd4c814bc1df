"""Trained weights: files, preprocessing, and functions that build a model with or without trained weights."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

from rushlight.base.errors import type_error, value_error
from rushlight.core.tensor import Tensor
from rushlight.serialization.hub import load_state_dict_from_url
from rushlight.vision.images import InterpolationMode
from rushlight.vision.transforms import functional as F

BASE_URL = "https://download.pytorch.org/models/"


class Trained(NamedTuple):
    """A file of weights, and the preprocessing of the images that they were trained on."""

    file: str
    crop_size: int = 224
    resize_size: int = 256
    interpolation: str = "bilinear"
    mean: tuple[float, float, float] = (0.485, 0.456, 0.406)
    std: tuple[float, float, float] = (0.229, 0.224, 0.225)


class ImageClassification:
    """The preprocessing for trained weights: resize, center crop, convert to floats, (x - mean) / std."""

    def __init__(self, trained: Trained):
        self.crop_size, self.resize_size = [trained.crop_size], [trained.resize_size]
        self.interpolation = InterpolationMode(trained.interpolation)
        self.mean, self.std = list(trained.mean), list(trained.std)

    def __call__(self, img: Any) -> Tensor:
        img = F.center_crop(F.resize(img, self.resize_size, self.interpolation), self.crop_size)
        img = img if isinstance(img, Tensor) else F.pil_to_tensor(img)
        return F.normalize(F.convert_image_dtype(img), self.mean, self.std)

    def __repr__(self) -> str:
        lines = "\n".join(f"    {name}={getattr(self, name)}" for name in ("crop_size", "resize_size", "mean", "std"))
        return f"{type(self).__name__}(\n{lines}\n    interpolation={self.interpolation}\n)"


class WeightsEnum(Enum):
    """The base of `ResNet18_Weights` and so on: one member for each file of weights."""

    @property
    def url(self) -> str:
        return BASE_URL + self.value.file

    @property
    def meta(self) -> dict[str, Any]:
        return {}

    def transforms(self) -> ImageClassification:
        """The preprocessing of an image for these weights."""
        return ImageClassification(self.value)

    def get_state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Tensor]:
        """The weights, from a file in `torch.hub.get_dir()`/checkpoints; FileNotFoundError with the place to put it."""
        return load_state_dict_from_url(self.url, *args, **kwargs)

    @classmethod
    def verify(cls, obj: Any) -> WeightsEnum | None:
        """The member for `obj`, which is a member, a name, or None."""
        if isinstance(obj, str):
            return cls[obj.rpartition(".")[2]]
        if obj is not None and not isinstance(obj, cls):
            raise type_error(
                f"Invalid Weight class provided; expected {cls.__name__} but received {type(obj).__name__}."
            )
        return obj


def weights(name: str, members: dict[str, Trained], default: str = "") -> Any:
    """The enum `name`_Weights of trained weights. `default`: the name of the member DEFAULT; by default the first."""
    chosen = members[default] if default else next(iter(members.values()))
    return WeightsEnum(  # type: ignore[call-arg]
        f"{name}_Weights", {**members, "DEFAULT": chosen}, module="rushlight.vision.models"
    )


def imagenet(name: str, first: str, second: str = "", **settings: Any) -> Any:
    """The enum `name`_Weights with IMAGENET1K_V1, and, for a second file, the default IMAGENET1K_V2."""
    members = {"IMAGENET1K_V1": Trained(f"{first}.pth", **settings)}
    if second:
        members["IMAGENET1K_V2"] = Trained(f"{second}.pth", resize_size=232)
    return weights(name, members, list(members)[-1])


# name of a function such as resnet18 -> the function; filled by `model` while the modules load
BUILDERS: dict[str, Callable[..., Any]] = {}
KNOWN: dict[str, Any] = {}  # name of a function -> the enum of its weights


def model(
    known: Any, cls: Callable[..., Any], *settings: Any, trained: dict[str, Any] | None = None,
    heads: tuple[str, ...] = (), **defaults: Any,
) -> Callable[..., Any]:  # fmt: skip
    """The function that builds cls(*settings, **defaults), with trained weights if `weights` is given.

    It is named after `known`, the enum of its weights: resnet18 for ResNet18_Weights. `trained`: other defaults if
    weights are loaded. `heads`: auxiliary modules; they are built to load the weights, and then removed unless
    `aux_logits`."""

    def build(weights: Any = None, progress: bool = True, *, pretrained: Any = None, **kwargs: Any) -> Any:
        chosen = known.verify(asked(known, weights, pretrained))
        if chosen is not None and kwargs.setdefault("num_classes", 1000) != 1000:
            raise value_error(
                f"The parameter 'num_classes' expected value 1000 but got {kwargs['num_classes']} instead.",
                "change the last layer after loading weights",
            )
        if chosen is None:
            return cls(*settings, **{**defaults, **kwargs})
        named = {**defaults, **(trained or {}), **kwargs}
        found = cls(*settings, **({**named, "aux_logits": True} if heads else named))
        found.load_state_dict(chosen.get_state_dict(progress=progress))
        if heads and not named.get("aux_logits", True):
            found.aux_logits = False
            for head in heads:
                setattr(found, head, None)
        return found

    name = known.__name__.removesuffix("_Weights").lower()
    build.__name__ = build.__qualname__ = name
    build.__module__ = f"rushlight.vision.models.{getattr(cls, '__module__', '').rpartition('.')[2]}"
    build.__doc__ = (
        f"The model {name} with random weights, or with trained `weights`: a member of {known.__name__} or its name. "
        "The file must exist; nothing is downloaded."
    )
    BUILDERS[name], KNOWN[name] = build, known
    return build


def asked(known: Any, weights: Any, pretrained: Any) -> Any:
    """The weights to load: `weights`, or IMAGENET1K_V1 for torchvision's old argument pretrained=True."""
    if pretrained is None and not isinstance(weights, bool):
        return weights
    warnings.warn(
        f"`pretrained` is deprecated: use weights={known.__name__}.IMAGENET1K_V1, or weights=None", stacklevel=3
    )
    return known.IMAGENET1K_V1 if pretrained or weights is True else None


def get_model(name: str, **config: Any) -> Any:
    """The model of that name: get_model("resnet18") is resnet18()."""
    return get_model_builder(name)(**config)


def get_model_builder(name: str) -> Callable[..., Any]:
    """The function that builds the model of that name; ValueError for an unknown name."""
    if name.lower() not in BUILDERS:
        raise value_error(f"Unknown model {name}", f"there are {', '.join(sorted(BUILDERS))}")
    return BUILDERS[name.lower()]


def get_model_weights(name: str | Callable[..., Any]) -> Any:
    """The enum of trained weights of a model, named or given by its function."""
    return KNOWN[get_model_builder(name if isinstance(name, str) else name.__name__).__name__]


def get_weight(name: str) -> Any:
    """The weights of a full name such as "ResNet18_Weights.IMAGENET1K_V1"."""
    kind, _, member = name.partition(".")
    for known in KNOWN.values():
        if known.__name__ == kind:
            return known[member]
    raise value_error(f"The weight enum '{kind}' for the specific method couldn't be retrieved.")


def list_models() -> list[str]:
    """The names of all models."""
    return sorted(BUILDERS)
