"""The public names: the namespaces of rushlight, and the functions and classes of each."""

from __future__ import annotations

import importlib
import inspect
import warnings
from typing import Any

NAMESPACES = [
    ".",
    "amp",
    "autograd",
    "autograd.forward_ad",
    "autograd.functional",
    "autograd.graph",
    "compile",
    "compiler",
    "distributions",
    "distributions.constraints",
    "distributions.transforms",
    "distributions.utils",
    "fft",
    "func",
    "futures",
    "fx",
    "hub",
    "jit",
    "library",
    "linalg",
    "masked",
    "nn",
    "nn.attention",
    "nn.attention.flex_attention",
    "nn.functional",
    "nn.grad",
    "nn.init",
    "nn.modules",
    "nn.utils",
    "nn.utils.parametrizations",
    "nn.utils.parametrize",
    "nn.utils.prune",
    "nn.utils.rnn",
    "nn.utils.stateless",
    "optim",
    "optim.lr_scheduler",
    "optim.swa_utils",
    "profiler",
    "random",
    "serialization",
    "signal.windows",
    "sparse",
    "special",
    "storage",
    "testing",
    "utils.checkpoint",
    "utils.data",
    "vision.io",
    "vision.ops",
    "vision.transforms",
    "vision.transforms.functional",
    "vision.utils",
    "viz",
]  # "." is rushlight itself


def members(namespace: str) -> dict[str, Any]:
    """{name: function or class} of the public names of a namespace, each once: its `__all__`, or the names defined in
    rushlight's files.
    """
    home = importlib.import_module(f"rushlight.{namespace}".rstrip("."))
    names = getattr(home, "__all__", None) or [name for name in dir(home) if not name.startswith("_")]
    found: dict[int, tuple[str, Any]] = {}
    for name in names:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some names warn that torch will drop them
            value = getattr(home, name)
        public = inspect.isclass(value) or inspect.isroutine(value)
        if public and value.__module__.startswith("rushlight"):
            found.setdefault(id(value), (f"{namespace}.{name}".lstrip("."), value))
    return dict(found.values())
