"""torch's private name of `rushlight.utils.pytree`, which programs import all the same."""
from rushlight.utils.pytree import *  # noqa: F403
from rushlight.utils.pytree import _broadcast_to_and_flatten  # noqa: F401
