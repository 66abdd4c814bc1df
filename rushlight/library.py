"""torch.library: users' functions as ops, with gradients."""

from rushlight.autograd.custom_ops import (
    Library,
    Tag,
    custom_op,
    define,
    impl,
    impl_abstract,
    register_autograd,
    register_fake,
    register_kernel,
    register_vmap,
    triton_op,
)
from rushlight.base.missing_names import tell as _tell

__all__ = [
    "Library", "Tag", "custom_op", "define", "impl", "impl_abstract", "register_autograd", "register_fake",
    "register_kernel", "register_vmap", "triton_op",
]  # fmt: skip

_tell(__name__)
