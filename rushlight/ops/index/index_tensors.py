"""x[key] with index tensors in the key. Indexing along one dimension: ops/index/along_dim.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight.core.build import build, inner
from rushlight.core.worlds import adopt
from rushlight.kernels import index as kernels

if TYPE_CHECKING:  # names in rules, provided by the rule's world (core/worlds.py)
    from rushlight.core.rule_names import index_put

adopt(kernels)

# `key` holds HERE at the position of each index tensor.

# fmt: off
index = inner(lambda x, tensors, /, key: index(x, tensors, key),
    x=lambda g, tensors, key, x_shape: index_add_zeros(g, tensors, key, x_shape),
    called="indexing", linear="x", sizes="all")
index_add_zeros = inner(lambda x, tensors, /, key, size: index_add_zeros(x, tensors, key, size),
    x=lambda g, tensors, key: index(g, tensors, key), linear="x")
write_at = inner(lambda x, y, tensors, /, key, accumulate=False: index_put(x, y, tensors, key, accumulate),
    x=lambda g, tensors, key, accumulate: g if accumulate else clear(g, tensors, key),
    y=lambda g, tensors, key: index(g, tensors, key), node="IndexPutBackward0", onto=kernels.put_into, jointly="x y")
clear = inner(lambda x, tensors, /, key: clear(x, tensors, key), x=lambda g, tensors, key: clear(g, tensors, key),
    linear="x")
# fmt: on

build(globals())
