"""torch.distributions.categorical."""
from rushlight.distributions.discrete import Categorical

__all__ = ["Categorical"]
