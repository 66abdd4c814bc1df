"""torch._dynamo, as far as programs call it: `torch.compiler`, and marks that mean nothing here."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

from rushlight.compile import CannotCompile
from rushlight.compile import explain as explanation
from rushlight.compile.module import OptimizedModule
from rushlight.compiler import allow_in_graph, assume_constant_result, disable, is_compiling, reset
from rushlight.parts import importable


class Config(SimpleNamespace):
    """Settings of torch's compiler: they may be read and set, and change nothing."""

    @contextmanager
    def patch(self, *args: Any, **kwargs: Any) -> Iterator[None]:
        """A context, or a decorator of functions, in which nothing is different."""
        yield


def explain(f: Callable, *args: Any, **kwargs: Any) -> Any:
    """`explain(f)(*args)`: what becomes of f with these arguments; or, as torch once had it, `explain(f, *args)`."""
    if args or kwargs:
        return explanation(f, *args, **kwargs)
    return lambda *args, **kwargs: explanation(f, *args, **kwargs)


def mark_dynamic(t: Any, index: Any, **kwargs: Any) -> None:
    """Nothing: each shape has its program."""


def graph_break(msg: str = "") -> None:
    """Nothing: what has to stay Python is found without it."""


forbid_in_graph = disallow_in_graph = allow_in_graph
mark_static = maybe_mark_dynamic = mark_static_address = mark_dynamic
config = Config(suppress_errors=False, verbose=False, cache_size_limit=8, recompile_limit=8, capture_scalar_outputs=False,
                optimize_ddp=True, automatic_dynamic_shapes=True, error_on_recompile=False)
eval_frame = SimpleNamespace(OptimizedModule=OptimizedModule)
_trace_wrapped_higher_order_op = SimpleNamespace(TransformGetItemToIndex=nullcontext)   # vmap indexes with tensors as it is
exc = SimpleNamespace(Unsupported=CannotCompile, TorchDynamoException=CannotCompile)

importable(__name__, "_trace_wrapped_higher_order_op", "config", "eval_frame", "exc")

__all__ = ["OptimizedModule", "allow_in_graph", "assume_constant_result", "config", "disable", "exc", "explain",
           "graph_break", "is_compiling", "mark_dynamic", "mark_static", "mark_static_address", "reset"]
