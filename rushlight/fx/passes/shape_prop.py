"""Shapes and dtypes of a graph's values, stored in its nodes."""

from __future__ import annotations

from typing import Any, NamedTuple

from rushlight.base.pytree import tree_map
from rushlight.base.size import Size
from rushlight.core.tensor import Tensor
from rushlight.fx.graph_module import Interpreter
from rushlight.fx.node import Node


class TensorMetadata(NamedTuple):
    """The metadata of a tensor, without its elements."""

    shape: Size
    dtype: Any
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any = None
    is_quantized: bool = False
    qparams: dict[str, Any] | None = None


def of(t: Any) -> Any:
    return TensorMetadata(t.shape, t.dtype, t.requires_grad, t.stride()) if isinstance(t, Tensor) else t


class ShapeProp(Interpreter):
    """Runs a GraphModule and writes to node.meta: 'tensor_meta' for tensors, 'type' for all values.

    >>> f = rushlight.fx.symbolic_trace(lambda x: x.sum(1))
    >>> out = rushlight.fx.passes.shape_prop.ShapeProp(f).propagate(rushlight.ones(2, 3))
    >>> [tuple(n.meta["tensor_meta"].shape) for n in f.graph.nodes]
    [(2, 3), (2,), (2,)]
    """

    def run_node(self, n: Node) -> Any:
        result = super().run_node(n)
        if isinstance(result, (Tensor, tuple, list, dict)):
            n.meta["tensor_meta"] = tree_map(of, result)
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """The graph's result for these arguments."""
        return super().run(*args)
