"""torch.utils.pytree: nested tuples, lists and dicts as a flat list and a description, and back."""

from rushlight.base.pytree import *  # noqa: F403
