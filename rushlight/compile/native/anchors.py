"""All modules that register anchors (`@anchor` in lowering.py)."""

from rushlight.compile.native import attention, convolution, pooling, products, rows

__all__ = ["attention", "convolution", "pooling", "products", "rows"]
