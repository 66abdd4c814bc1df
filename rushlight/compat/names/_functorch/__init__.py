"""torch._functorch: the private package of torch.func, which libraries import."""

from rushlight._functorch import vmap

__all__ = ["vmap"]
