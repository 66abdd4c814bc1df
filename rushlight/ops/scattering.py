"""scatter and index_add with torch's signatures: numbers for tensors, factors, reductions."""
from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.errors import explain
from rushlight.ops import index as table
from rushlight.ops.arithmetic import scaled, writing
from rushlight.ops.build import composite
from rushlight.ops.families import into
from rushlight.tensor import Tensor, created, from_array, method


@composite()
def scatter(input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None,
            out: Tensor | None = None) -> Tensor:
    """The input with src[i][j] written at [index[i][j]][j] (for dim 0, and so on); a number is written everywhere.

    `reduce='add'` adds instead of writing. Where an index stands twice, the last one written stays.

    >>> rushlight.zeros(1, 3).scatter(1, rushlight.tensor([[2]]), 5.)
    tensor([[0., 0., 5.]])
    """
    source = src if value is None else value
    if not isinstance(source, Tensor):
        source = created(from_array(np.asarray(source).astype(input.array.dtype)))
    if reduce is None:
        r = table.scatter(input, dim, index, source)
    elif reduce == "add":
        r = table.scatter_add(input, dim, index, source if source.array.ndim else source.expand(index.array.shape))
    else:
        raise NotImplementedError(explain(f"scatter(): reduce='{reduce}' is not there", "use reduce='add'"))
    return r if out is None else into(out, r)


@composite()
def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1,
              out: Tensor | None = None) -> Tensor:
    """The input with alpha times the slices of `source` added at `index` along `dim`.

    >>> rushlight.zeros(3).index_add(0, rushlight.tensor([0, 0]), rushlight.ones(2))
    tensor([2., 0., 0.])
    """
    r = table.index_add(input, dim, index, source if alpha == 1 else scaled(source, source, alpha))
    return r if out is None else into(out, r)


for function in (scatter, index_add):
    method(writing(function))
