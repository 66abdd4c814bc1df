"""Automatic differentiation: `backward`, `grad`, `Function`, hooks and checks."""
from rushlight.autograd.backward import backward, grad
from rushlight.autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = ["backward", "enable_grad", "grad", "inference_mode", "no_grad", "set_grad_enabled"]
