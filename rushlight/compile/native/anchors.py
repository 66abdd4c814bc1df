"""All modules that register anchors (`@anchor` in lowering.py)."""

from rushlight.compile.native import (
    attention,
    convolution,
    gather,
    join,
    pooling,
    products,
    quantized,
    recurrent,
    reductions,
    rows,
    transposed,
)

__all__ = [
    "attention",
    "convolution",
    "gather",
    "join",
    "pooling",
    "products",
    "quantized",
    "recurrent",
    "reductions",
    "rows",
    "transposed",
]
