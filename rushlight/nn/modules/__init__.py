"""torch.nn.modules: the same classes under torch's paths, `from torch.nn.modules.batchnorm import _BatchNorm`."""
from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from rushlight.nn import (
    activation,
    adaptive,
    containers,
    conv,
    dropout,
    embedding,
    hooks,
    lazy,
    linear,
    loss,
    module,
    normalization,
    padding,
    pooling,
    recurrent,
    shape,
    transformer,
)
from rushlight.nn.modules import utils as utils

# torch's file: ours
FILES = {
    "activation": activation, "adaptive": adaptive, "batchnorm": normalization, "channelshuffle": shape,
    "container": containers, "conv": conv, "distance": shape, "dropout": dropout, "flatten": shape, "fold": shape,
    "instancenorm": normalization, "lazy": lazy, "linear": linear, "loss": loss, "module": module,
    "normalization": normalization, "padding": padding, "pixelshuffle": shape, "pooling": pooling, "rnn": recurrent,
    "sparse": embedding, "transformer": transformer, "upsampling": shape,
}


class File(ModuleType):
    """One of torch's files: the names of ours, and all of torch.nn, some of which stand in other files here."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        homes = FILES[self.__name__.rpartition(".")[2]], hooks
        home = next((home for home in homes if hasattr(home, name)), sys.modules["rushlight.nn"])
        return getattr(home, name)

    def __dir__(self) -> list[str]:
        return sorted({*dir(sys.modules["rushlight.nn"]), *dir(FILES[self.__name__.rpartition(".")[2]])})


for _name, _found in FILES.items():
    _classes = {name: value for name, value in vars(_found).items()
                if isinstance(value, type) and issubclass(value, module.Module)}
    globals()[_name] = sys.modules[f"{__name__}.{_name}"] = File(f"{__name__}.{_name}", _found.__doc__)
    vars(globals()[_name]).update(_classes)       # for who looks them through: vars(torch.nn.modules.activation)
    globals().update(_classes)


def __getattr__(name: str) -> Any:
    if name == "__all__":                         # of a package that is still being imported when this file is read
        nn = sys.modules["rushlight.nn"]
        return sorted(n for n, value in globals().items()
                      if isinstance(value, type) and issubclass(value, module.Module) and hasattr(nn, n))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
