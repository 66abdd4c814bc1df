"""torch.jit: functions and modules run as the Python they are; `rushlight.compile` is what makes them faster."""
from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Final, Optional  # noqa: F401

from rushlight.errors import explain
from rushlight.futures import Future
from rushlight.parts import importable


def script(obj: Any, *args: Any, **kwargs: Any) -> Any:
    """The function or module itself."""
    return obj


def trace(func: Callable, example_inputs: Any = None, *args: Any, **kwargs: Any) -> Callable:
    """The function or module itself."""
    return func


def trace_module(mod: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
    """The module itself."""
    return mod


def freeze(mod: Any, preserved_attrs: Any = None, optimize_numerics: bool = True) -> Any:
    """The module itself, which is to be in evaluation mode: RuntimeError for one in training."""
    if getattr(mod, "training", False):
        raise RuntimeError(explain("Freezing is currently only implemented for modules in eval mode. Please call .eval() on "
                                   "your module before freezing."))
    return mod


def optimize_for_inference(mod: Any, other_methods: Any = None) -> Any:
    """The module itself; `rushlight.compile` makes it faster."""
    return mod


def fork(func: Callable, *args: Any, **kwargs: Any) -> Future:
    """func(*args, **kwargs), which is run at once, as a future."""
    future: Future = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Future) -> Any:
    """The future's result."""
    return future.wait()


def is_scripting() -> bool:
    """False: what runs is Python."""
    return False


def is_tracing() -> bool:
    """False: what runs is Python."""
    return False


def export(fn: Callable) -> Callable:
    """The function itself."""
    return fn


unused = script_method = script_if_tracing = interface = _overload = _overload_method = export


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """The function itself; as a decorator with settings, too."""
    return drop if callable(drop) else export


def annotate(the_type: Any, the_value: Any) -> Any:
    """The value itself."""
    return the_value


class Error(Exception):
    """torch's error of what runs in TorchScript; a scripted function raises its own here."""


class TracerWarning(Warning):
    """torch's warning of what a trace does not see; nothing is traced here."""


class ScriptModule:
    """torch's class of scripted modules: modules are run as the Python they are, so that none is one.

    >>> isinstance(rushlight.jit.script(rushlight.nn.ReLU()), rushlight.jit.ScriptModule)
    False
    """


class ScriptFunction:
    """torch's class of scripted functions; none is one.

    >>> isinstance(rushlight.jit.script(lambda x: x), rushlight.jit.ScriptFunction)
    False
    """


def save(m: Any, f: Any, *args: Any) -> None:
    """NotImplementedError: TorchScript archives are not written."""
    raise NotImplementedError("TorchScript archives are not written; save the weights: torch.save(model.state_dict(), file)")


def load(f: Any, *args: Any, **kwargs: Any) -> Any:
    """NotImplementedError: TorchScript archives are not read."""
    raise NotImplementedError("TorchScript archives are not read; load the weights: model.load_state_dict(torch.load(file))")


annotations = SimpleNamespace(List=list, Dict=dict, Tuple=tuple, Optional=Optional)  # type: ignore[assignment]  # torch's module
importable(__name__, "annotations")
