"""torch.nn.modules: the same classes under torch's paths, `from torch.nn.modules.batchnorm import _BatchNorm`."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from rushlight.base import shown_names
from rushlight.base.missing_names import give_up
from rushlight.nn import (
    activation,
    adaptive,
    containers,
    conv,
    dropout,
    embedding,
    flatten_resize,
    hooks,
    lazy,
    linear,
    loss,
    module,
    multihead,
    normalization,
    padding,
    parameter,
    pooling,
    recurrent,
    transformer,
)
from rushlight.nn.modules import utils as utils

# torch's file: ours
FILES = {
    "activation": activation,
    "adaptive": adaptive,
    "batchnorm": normalization,
    "channelshuffle": flatten_resize,
    "container": containers,
    "conv": conv,
    "distance": flatten_resize,
    "dropout": dropout,
    "flatten": flatten_resize,
    "fold": flatten_resize,
    "instancenorm": normalization,
    "lazy": lazy,
    "linear": linear,
    "loss": loss,
    "module": module,
    "multihead": multihead,
    "normalization": normalization,
    "padding": padding,
    "pixelshuffle": flatten_resize,
    "pooling": pooling,
    "rnn": recurrent,
    "sparse": embedding,
    "transformer": transformer,
    "upsampling": flatten_resize,
}
# classes whose file in torch differs from ours, by a part of the class's name
NORMS = {"BatchNorm": "batchnorm", "InstanceNorm": "instancenorm", "_NormBase": "batchnorm"}
ELSEWHERE = {
    normalization: NORMS,
    lazy: {**NORMS, "Conv": "conv", "Linear": "linear"},
    multihead: {"Multihead": "activation", "Linear": "linear"},
    flatten_resize: {
        "ChannelShuffle": "channelshuffle",
        "Distance": "distance",
        "Cosine": "distance",
        "latten": "flatten",
        "old": "fold",
        "Pixel": "pixelshuffle",
        "Upsampl": "upsampling",
    },
}


class File(ModuleType):
    """A file of torch.nn.modules. Names that it does not define are found in torch.nn."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        homes = FILES[self.__name__.rpartition(".")[2]], hooks
        home = next((home for home in homes if hasattr(home, name)), sys.modules["rushlight.nn"])
        return getattr(home, name)

    def __dir__(self) -> list[str]:
        return sorted({*dir(sys.modules["rushlight.nn"]), *dir(FILES[self.__name__.rpartition(".")[2]])})


def file_of(ours: ModuleType) -> str:
    """The last of torch's files whose classes are defined in this file of rushlight."""
    return [name for name, home in FILES.items() if home is ours][-1]


def place() -> None:
    """Set the `__module__` of the classes to torch's, for saved files and for programs written for torch."""
    shown: dict[str, list[type]] = {name: [] for name in FILES}
    for ours in dict.fromkeys(FILES.values()):
        kinds = module.Module, lazy.LazyModuleMixin
        for cls in [c for c in vars(ours).values() if isinstance(c, type) and c.__module__ == ours.__name__]:
            if issubclass(cls, kinds):
                parts = ELSEWHERE.get(ours, {})
                file = next((parts[part] for part in parts if part in cls.__name__), file_of(ours))
                shown_names.IN_FILES[cls] = f"torch.nn.modules.{file}", cls.__name__
                shown[file if FILES[file] is ours else file_of(ours)].append(cls)
    for name, classes in shown.items():
        shown_names.place(f"torch.nn.modules.{name}", globals()[name], classes)
    shown_names.place(
        "torch.nn.parameter",
        parameter,
        [parameter.Parameter, parameter.Buffer, parameter.UninitializedParameter, parameter.UninitializedBuffer],
    )


for _name, _found in FILES.items():
    _classes = {
        name: value
        for name, value in vars(_found).items()
        if isinstance(value, type) and issubclass(value, module.Module)
    }
    globals()[_name] = sys.modules[f"{__name__}.{_name}"] = File(f"{__name__}.{_name}", _found.__doc__)
    vars(globals()[_name]).update(  # for programs that list vars(torch.nn.modules.activation)
        {name: value for name, value in vars(_found).items() if not name.startswith("__")}, __file__=_found.__file__
    )
    globals().update(_classes)
place()


def __getattr__(name: str) -> Any:
    if name == "__all__":  # computed on demand: nn is still being imported when this file runs
        # torch exports `apart` from modules.linear only
        nn, apart = sys.modules["rushlight.nn"], multihead.NonDynamicallyQuantizableLinear
        return sorted(
            n
            for n, value in globals().items()
            if isinstance(value, type) and issubclass(value, module.Module) and hasattr(nn, n) and value is not apart
        )
    return give_up(__name__, name)
