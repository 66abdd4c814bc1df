"""torch.nn.modules: the same classes under torch's paths, `from torch.nn.modules.batchnorm import _BatchNorm`."""
from __future__ import annotations

import sys

from rushlight.nn import (
    activation,
    adaptive,
    containers,
    conv,
    dropout,
    embedding,
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
for _name, _found in FILES.items():
    globals()[_name] = sys.modules[f"{__name__}.{_name}"] = _found
    globals().update((name, value) for name, value in vars(_found).items()
                     if isinstance(value, type) and issubclass(value, module.Module))
