"""torch.autograd.grad_mode: `no_grad`, `enable_grad` and `inference_mode`."""

from rushlight.ops.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled"]
