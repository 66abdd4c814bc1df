"""The functions that a trace records when an argument is a proxy, and their public names."""

from __future__ import annotations

import builtins
import math
import operator
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, wraps
from importlib import import_module
from types import BuiltinFunctionType, FunctionType
from typing import Any

from rushlight.base.public_function import private
from rushlight.core.tensor import Tensor
from rushlight.ops.tensor.control_flow import _assert

HOMES = {
    "": "torch",
    ".nn.functional": "torch.nn.functional",
    ".special": "torch.special",
    ".linalg": "torch.linalg",
    ".fft": "torch.fft",
}
# (id of a module's globals, name) of functions that `wrap` keeps whole
WRAPPED: dict[tuple[int, str], None] = {}
WHOLE = "functions that stay whole"  # the key in the namespace of a graph's code that lists such names
PATCHING = threading.RLock()  # one trace at a time


@lru_cache(maxsize=1)
def places_of_functions() -> tuple[tuple[dict, str], ...]:
    """(namespace, name) of all of torch's functions."""
    modules = [import_module("rushlight" + home) for home in HOMES]
    for name in dir(modules[0]):  # loads all functions except nn.functional's
        if modules[0]._HOME.get(name, "").startswith("nn.functional"):
            getattr(modules[0], name)
    return tuple(
        (vars(module), name)
        for module in modules
        for name, f in vars(module).items()
        if isinstance(private(f), (FunctionType, BuiltinFunctionType)) and not name.startswith("_")
    )


def known() -> list[tuple[dict, str, Any]]:
    """(namespace, name, function) of all of torch's functions. Read again for each trace, because the first autocast
    of a program replaces functions."""
    if ORIGINALS:
        return ORIGINALS[-1]
    return [(namespace, name, namespace[name]) for namespace, name in places_of_functions()]


ORIGINALS: list[list[tuple[dict, str, Any]]] = []  # `known()` before the running trace replaced the functions


PATHS: dict[int, str] = {id(_assert): "torch._assert"}  # private, but in the traces of specialized functions


def paths() -> dict[int, str]:
    """The public place of each function, by its id: torch.relu. Functions that were replaced since keep their place."""
    found = known()
    if any(id(f) not in PATHS for _, _, f in found):
        homes = {id(vars(import_module("rushlight" + home))): path for home, path in HOMES.items()}
        for namespace, name, f in found:
            PATHS.setdefault(id(f), f"{homes[id(namespace)]}.{name}")
    return PATHS


def path_of(function: Any) -> str:
    """The public name of a function: torch.relu, operator.add, builtins.getattr."""
    name, module = function.__name__, function.__module__ or ""
    if getattr(builtins, name, None) is function:
        return f"builtins.{name}"
    if getattr(operator, name, None) is function:
        return f"operator.{name}"
    return paths().get(id(function), f"{module}.{name}")


# (kind, target, args, kwargs) -> a proxy; None if no argument is a proxy
Take = Callable[[str, Any, tuple, dict], Any]


def recording(f: Any, take: Take, kind: str = "call_function", target: Any = None) -> Any:
    """The function or method with a wrapper: if an argument is a proxy, the call is recorded instead of run."""

    @wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        taken = take(kind, target or f, args, kwargs)
        return f(*args, **kwargs) if taken is None else taken

    return call


@contextmanager
def recorded(take: Take, also: list[dict]) -> Iterator[None]:
    """A context in which torch's functions, the functions of `math`, and methods of tensors accept proxies: in torch's
    namespaces, and in the traced modules.
    """
    originals = known()
    ids = {id(f) for _, _, f in originals}
    places = [*originals]
    for namespace in also:
        places += [
            (namespace, name, f)
            for name, f in namespace.items()
            if id(f) in ids or (id(namespace), name) in WRAPPED or name in namespace.get(WHOLE, ())
        ]
    places += [(vars(math), name, f) for name, f in vars(math).items() if isinstance(f, BuiltinFunctionType)]
    made: dict[int, Any] = {}
    getitem = Tensor.__getitem__
    methods = [
        (name, f) for name, f in vars(Tensor).items() if isinstance(f, FunctionType) and not name.startswith("_")
    ]
    with PATCHING:
        ORIGINALS.append(originals)
        try:
            for name, f in methods:  # tensor.to(proxy)
                setattr(Tensor, name, recording(f, take, "call_method", name))
            Tensor.__getitem__ = recording(getitem, take, "call_method", "__getitem__")  # type: ignore[method-assign]
            for namespace, name, f in places:
                if id(f) not in made:
                    made[id(f)] = recording(f, take)
                namespace[name] = made[id(f)]
            yield
        finally:
            ORIGINALS.pop()
            for namespace, name, f in places:
                namespace[name] = f
            for name, f in methods:
                setattr(Tensor, name, f)
            Tensor.__getitem__ = getitem  # type: ignore[method-assign]


@contextmanager
def recorded_in_layers(take: Take) -> Iterator[None]:
    """A context inside `recorded`, in which functions in the files of rushlight's layers accept proxies, too: for a
    tracer that enters layers."""
    originals = {id(private(f)): f for _, _, f in known()}
    files = [
        vars(module) for name, module in sys.modules.items() if name.startswith(("rushlight.nn.", "rushlight.ops."))
    ]
    places = [
        (file, name, f, originals[id(private(f))])
        for file in files
        for name, f in file.items()
        if id(private(f)) in originals
    ]
    # nn/linear.py calls the op itself; programs know it as F.linear
    public = {f.__name__: f for _, _, f in known() if isinstance(private(f), FunctionType)}
    places += [
        (vars(module), name, f, public[f.__name__])
        for path, module in [*sys.modules.items()]
        if path.startswith("rushlight.nn.") and "functional" not in path
        for name, f in [*vars(module).items()]
        if isinstance(f, FunctionType) and hasattr(f, "op") and f.__name__ in public
    ]
    try:
        for file, name, _, reported in places:
            file[name] = recording(reported, take)
        yield
    finally:
        for file, name, f, _ in places:
            file[name] = f
