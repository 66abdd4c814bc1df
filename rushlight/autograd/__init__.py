"""Automatic differentiation: `backward`, `grad`, `Function`, hooks and checks."""

from typing import TYPE_CHECKING, Any

from rushlight.base.missing_names import missing
from rushlight.core.backward import backward, grad
from rushlight.core.mode import mode
from rushlight.ops.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled

if TYPE_CHECKING:
    from rushlight.autograd import forward_ad, function, functional, graph, profiler
    from rushlight.autograd.anomaly import detect_anomaly, set_detect_anomaly
    from rushlight.autograd.function import Function
    from rushlight.autograd.variable import Variable
    from rushlight.func.gradcheck import gradcheck, gradgradcheck

# name -> its module in this package ("": the name is a module). Loaded on first use, since these modules import the
# ops.
_HOME = {
    "Variable": "autograd.variable",
    "variable": "",
    "Function": "autograd.function",
    "gradcheck": "func.gradcheck",
    "gradgradcheck": "func.gradcheck",
    "GradcheckError": "func.gradcheck",
    "detect_anomaly": "autograd.anomaly",
    "set_detect_anomaly": "autograd.anomaly",
    "graph": "",
    "function": "",
    "functional": "",
    "forward_ad": "",
    "profiler": "",
}

__all__ = [
    "Function", "backward", "detect_anomaly", "enable_grad", "grad", "gradcheck", "gradgradcheck", "inference_mode",
    "no_grad", "set_detect_anomaly", "set_grad_enabled",
]  # fmt: skip


def _is_checkpoint_valid() -> bool:
    """Whether the running backward computes all gradients (`Tensor.backward`), not only some of them (`grad`)."""
    return not mode().targeted


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        return missing(__name__, name)
    from importlib import import_module

    module = import_module(f"rushlight.{_HOME[name] or 'autograd.' + name}")
    value = getattr(module, name) if _HOME[name] else module
    globals()[name] = value
    return value
