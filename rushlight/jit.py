"""torch.jit: functions and modules run as the Python they are; `rushlight.compile` is what makes them faster."""
from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Final, Optional  # noqa: F401


def script(obj: Any, *args: Any, **kwargs: Any) -> Any:
    """The function or module itself."""
    return obj


def trace(func: Callable, example_inputs: Any = None, *args: Any, **kwargs: Any) -> Callable:
    """The function or module itself."""
    return func


def is_scripting() -> bool:
    """False: what runs is Python."""
    return False


def is_tracing() -> bool:
    """False: what runs is Python."""
    return False


def export(fn: Callable) -> Callable:
    """The function itself."""
    return fn


unused = script_method = export


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """The function itself; as a decorator with settings, too."""
    return drop if callable(drop) else export


def annotate(the_type: Any, the_value: Any) -> Any:
    """The value itself."""
    return the_value


class TracerWarning(Warning):
    """torch's warning of what a trace does not see; nothing is traced here."""


class ScriptModule:
    """torch's class of scripted modules: modules are run as the Python they are, so that none is one."""


class ScriptFunction:
    """torch's class of scripted functions; none is one."""


def save(m: Any, f: Any, *args: Any) -> None:
    """NotImplementedError: TorchScript archives are not written."""
    raise NotImplementedError("TorchScript archives are not written; save the weights: torch.save(model.state_dict(), file)")


def load(f: Any, *args: Any, **kwargs: Any) -> Any:
    """NotImplementedError: TorchScript archives are not read."""
    raise NotImplementedError("TorchScript archives are not read; load the weights: model.load_state_dict(torch.load(file))")


annotations = SimpleNamespace(List=list, Dict=dict, Tuple=tuple, Optional=Optional)  # type: ignore[assignment]  # torch's module
