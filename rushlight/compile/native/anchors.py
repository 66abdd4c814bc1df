"""All modules that register anchors (`@anchor` in lowering.py)."""

from rushlight.compile.native import convolution, pooling, products

__all__ = ["convolution", "pooling", "products"]
