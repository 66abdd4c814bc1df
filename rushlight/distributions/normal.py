"""torch.distributions.normal."""
from rushlight.distributions.continuous import Normal

__all__ = ["Normal"]
