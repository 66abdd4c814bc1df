"""torch.multiprocessing: Python's own, with `spawn` and tensors in shared memory."""

from multiprocessing import *  # noqa: F403

from rushlight.base.missing_names import tell as _tell
from rushlight.utils.processes import *  # noqa: F403

_tell(__name__)
