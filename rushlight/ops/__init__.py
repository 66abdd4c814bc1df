"""The ops: a table, a file a subject, and the families that make functions of its entries."""
from rushlight.ops import (
    arithmetic,
    casts,
    complex,
    elementwise,
    index,
    indexing,
    masks,
    matmul,
    operators,
    products,
    reduce,
    reductions,
    scattering,
    shape,
    shapes,
)
