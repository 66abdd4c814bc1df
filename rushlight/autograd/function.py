"""torch.autograd.function: `Function`, an op of the user's with a forward and a backward."""

from rushlight.core.function import (
    Function,
    FunctionCtx,
    InplaceFunction,
    once_differentiable,
)

__all__ = [
    "Function",
    "FunctionCtx",
    "InplaceFunction",
    "once_differentiable",
]
