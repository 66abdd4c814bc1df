"""torch.jit: functions and modules run as Python; `rushlight.compile` makes them faster. `load` reads TorchScript
archives."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from types import SimpleNamespace, UnionType
from typing import Any, Final, NamedTuple, Optional, Union, get_args, get_origin

from rushlight.archives.torchscript.module import ScriptModule
from rushlight.archives.torchscript.values import Error
from rushlight.base.errors import not_implemented_error, runtime_error
from rushlight.base.missing_names import tell as _tell
from rushlight.base.submodules import importable
from rushlight.base.tracebacks import hide_frames
from rushlight.futures import Future


def script(obj: Any, *args: Any, **kwargs: Any) -> Any:
    """out = obj: the function or module itself, which runs as Python.

    >>> rushlight.jit.script(lambda x: 2 * x)(rushlight.ones(2))
    tensor([2., 2.])
    """
    return obj


def trace(func: Callable, example_inputs: Any = None, *args: Any, **kwargs: Any) -> Callable:
    """out = func: the function or module itself; control flow depends on the values in each call.

    >>> rushlight.jit.trace(lambda x: 2 * x, rushlight.ones(2))(rushlight.ones(3))
    tensor([2., 2., 2.])
    """
    return func


def trace_module(mod: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
    """out = mod: the module itself.

    >>> m = rushlight.nn.ReLU()
    >>> rushlight.jit.trace_module(m, {"forward": rushlight.ones(2)}) is m
    True
    """
    return mod


def freeze(mod: Any, preserved_attrs: Any = None, optimize_numerics: bool = True) -> Any:
    """The module itself, which must be in evaluation mode: RuntimeError for a module in training.

    >>> m = rushlight.nn.ReLU().eval()
    >>> rushlight.jit.freeze(m) is m
    True
    """
    if getattr(mod, "training", False):
        raise runtime_error(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module "
            "before freezing."
        )
    return mod


def optimize_for_inference(mod: Any, other_methods: Any = None) -> Any:
    """The module itself; `rushlight.compile` makes it faster.

    >>> m = rushlight.nn.ReLU().eval()
    >>> rushlight.jit.optimize_for_inference(m) is m
    True
    """
    return mod


def fork(func: Callable, *args: Any, **kwargs: Any) -> Future:
    """A future of func(*args, **kwargs), which runs at once.

    >>> rushlight.jit.fork(lambda x: 2 * x, 3).wait()
    6
    """
    future: Future = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Future) -> Any:
    """The future's result.

    >>> rushlight.jit.wait(rushlight.jit.fork(lambda x: 2 * x, 3))
    6
    """
    return future.wait()


def _get_trace_graph(f: Any, *args: Any, **kwargs: Any) -> Any:
    """NotImplementedError: TorchScript graphs do not exist."""
    raise not_implemented_error(
        "fvcore and torchprofile count operations in TorchScript graphs, which rushlight does not have",
        "rushlight.utils.summary(model, input) counts multiplications and additions",
    )


def is_scripting() -> bool:
    """False: functions run as Python.

    >>> rushlight.jit.is_scripting()
    False
    """
    return False


def is_tracing() -> bool:
    """False: functions run as Python.

    >>> rushlight.jit.is_tracing()
    False
    """
    return False


def export(fn: Callable) -> Callable:
    """The function itself.

    >>> rushlight.jit.export(len)("abc")
    3
    """
    return fn


unused = script_method = script_if_tracing = _script_if_tracing = interface = _overload = _overload_method = export


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """The function itself; as a decorator with settings, too.

    >>> rushlight.jit.ignore(len)("abc")
    3
    """
    return drop if callable(drop) else export


def annotate(the_type: Any, the_value: Any) -> Any:
    """The value itself.

    >>> rushlight.jit.annotate(int, 3)
    3
    """
    return the_value


class Attribute(NamedTuple):
    """A value with its type, for scripted modules."""

    value: Any
    type: Any


def isinstance(obj: Any, target_type: Any) -> bool:
    """Whether an object has a type, which may be a container's: `list[int]`.

    >>> rushlight.jit.isinstance([1, 2], list[int]), rushlight.jit.isinstance(["a"], list[int])
    (True, False)
    """
    kinds = target_type if type(target_type) is tuple else (target_type,)
    return any(of_type(obj, kind) for kind in kinds)


def of_type(obj: Any, kind: Any) -> bool:
    """`isinstance` for one type. The items of containers are checked, too."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is None:
        return builtins.isinstance(obj, kind)
    if origin in (Union, UnionType):
        return any(of_type(obj, part) for part in inner)
    if not builtins.isinstance(obj, origin):
        return False
    if origin is dict:
        return all(of_type(k, inner[0]) and of_type(v, inner[1]) for k, v in obj.items())
    if origin is tuple and inner[-1:] != (...,):
        return len(obj) == len(inner) and all(map(of_type, obj, inner))
    return all(of_type(item, inner[0]) for item in obj)


class TracerWarning(Warning):
    """torch's warning about values that a trace cannot follow; never given, since nothing is traced.

    >>> issubclass(rushlight.jit.TracerWarning, Warning)
    True
    """


class ScriptFunction:
    """torch's class of scripted functions; no function is an instance.

    >>> isinstance(rushlight.jit.script(lambda x: x), rushlight.jit.ScriptFunction)
    False
    """


def save(m: Any, f: Any, *args: Any) -> None:
    """NotImplementedError: TorchScript archives are read (`load`), and not written.

    >>> try:
    ...     rushlight.jit.save(rushlight.nn.ReLU(), "relu.pt")
    ... except NotImplementedError:
    ...     print("torch.export.save writes .pt2, torch.onnx.export writes ONNX")
    torch.export.save writes .pt2, torch.onnx.export writes ONNX
    """
    raise not_implemented_error(
        "TorchScript archives are not written",
        "torch.export.save(torch.export.export(model, args), 'model.pt2') writes a program that torch loads, "
        "torch.onnx.export(model, args, 'model.onnx') an ONNX file, torch.save(model.state_dict(), file) the weights",
    )


def load(
    f: Any, map_location: Any = None, _extra_files: dict[str, Any] | None = None, _restore_shapes: bool = False
) -> ScriptModule:
    """The module of an archive that torch.jit.save wrote: a path, or a binary file that can seek.

    The module has the archive's parameters, buffers and methods. It runs, is differentiated, compiled, and exported as
    any other module. The archive's code is interpreted: it can call ATen's operators, and nothing else. RuntimeError
    for a damaged file, and for code that is not TorchScript; NotImplementedError, when such a call runs, for operators
    that are missing. `rushlight.archives.limits` sets how much a call of the model may compute.

    `_extra_files`: names of further records, as keys; the values become their bytes. All tensors load to the CPU.

    >>> try:
    ...     rushlight.jit.load("no such file.pt")
    ... except FileNotFoundError:
    ...     print("torch.jit.load reads what torch.jit.save wrote")
    torch.jit.load reads what torch.jit.save wrote
    """
    from rushlight.archives.torchscript.load import loaded

    try:
        return loaded(f, map_location, _extra_files)
    except (OSError, RuntimeError):
        hide_frames()
        raise


annotations = SimpleNamespace(List=list, Dict=dict, Tuple=tuple, Optional=Optional)  # type: ignore[assignment]  # torch's module
importable(__name__, "annotations")

__all__ = [
    "Error", "Final", "Future", "ScriptFunction", "ScriptModule", "TracerWarning", "annotate", "export", "fork",
    "freeze", "ignore", "interface", "is_scripting", "is_tracing", "load", "optimize_for_inference", "save", "script",
    "script_if_tracing", "script_method", "trace", "trace_module", "unused", "wait",
]  # fmt: skip

_tell(__name__)
