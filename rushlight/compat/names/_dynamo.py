"""torch._dynamo: the names that programs use. Marks and settings have no effect."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

from rushlight.base.submodules import importable
from rushlight.compile import CannotCompile
from rushlight.compile import explain as explanation
from rushlight.compile.api import allow_in_graph, assume_constant_result, disable, is_compiling, reset
from rushlight.compile.run.compiled_module import OptimizedModule


class Config(SimpleNamespace):
    """Settings of torch's compiler. Programs may read and set them, without effect."""

    @contextmanager
    def patch(self, *args: Any, **kwargs: Any) -> Iterator[None]:
        """A context manager, or a decorator of functions, without effect."""
        yield


def explain(f: Callable, *args: Any, **kwargs: Any) -> Any:
    """`explain(f)(*args)`: a report of how f is compiled for these arguments; `explain(f, *args)` is torch's older
    form."""
    if args or kwargs:
        return explanation(f, *args, **kwargs)
    return lambda *args, **kwargs: explanation(f, *args, **kwargs)


def mark_dynamic(t: Any, index: Any = None, **kwargs: Any) -> None:
    """No effect: each shape has its own program."""


def graph_break(msg: str = "") -> None:
    """No effect: the compiler finds the parts that must stay Python."""


forbid_in_graph = disallow_in_graph = allow_in_graph
mark_static = maybe_mark_dynamic = mark_static_address = mark_dynamic
config = Config(
    suppress_errors=False, verbose=False, cache_size_limit=8, recompile_limit=8, capture_scalar_outputs=False,
    optimize_ddp=True, automatic_dynamic_shapes=True, error_on_recompile=False,
)  # fmt: skip
eval_frame = SimpleNamespace(OptimizedModule=OptimizedModule)
# vmap handles indexing by tensors
_trace_wrapped_higher_order_op = SimpleNamespace(TransformGetItemToIndex=nullcontext)
WARNED: set[str] = set()


def warn_once(msg: str, stacklevel: int = 1) -> None:
    """A warning that is shown once in a process."""
    if msg not in WARNED:
        WARNED.add(msg)
        warnings.warn(msg, stacklevel=stacklevel + 1)


# no cache of compiled functions has a limit
utils = SimpleNamespace(warn_once=warn_once, disable_cache_limit=nullcontext)
exc = SimpleNamespace(Unsupported=CannotCompile, TorchDynamoException=CannotCompile)

importable(__name__, "_trace_wrapped_higher_order_op", "config", "eval_frame", "exc", "utils")

__all__ = [
    "OptimizedModule", "allow_in_graph", "assume_constant_result", "config", "disable", "exc", "explain", "graph_break",
    "is_compiling", "mark_dynamic", "mark_static", "mark_static_address", "reset",
]  # fmt: skip
