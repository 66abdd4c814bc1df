"""The ops: a table, a file a subject, and the families that make functions of its entries."""
from rushlight.ops import (
    arithmetic,
    aten,
    casts,
    elementwise,
    index,
    indexing,
    matmul,
    operators,
    products,
    reduce,
    shape,
    shapes,
)
