"""torch.quasirandom: Sobol points, which fill a cube more evenly than random points."""

from rushlight.ops.tensor.quasirandom import SobolEngine

__all__ = ["SobolEngine"]
