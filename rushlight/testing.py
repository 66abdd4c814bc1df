"""torch.testing: `assert_close` compares results, `make_tensor` makes inputs."""

from rushlight.base.missing_names import tell as _tell
from rushlight.utils.assert_close import assert_allclose, assert_close, make_tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]

_tell(__name__)
