"""Linear maps."""

from __future__ import annotations

import math
from typing import Any

from rushlight.base.errors import value_error
from rushlight.core.tensor import Tensor
from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn.layer_settings import uninitialized
from rushlight.nn.module import Module
from rushlight.nn.parameter import Parameter
from rushlight.ops.linalg.matmul import linear


class Identity(Module):
    """x -> x; takes any arguments and ignores them.

    >>> rushlight.nn.Identity(54, unused=True)(rushlight.tensor([1., 2.]))
    tensor([1., 2.])
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Linear(Module):
    """out = x w^T + b: (..., in_features) -> (..., out_features), weight (out, in), bias (out,) or None.

    Both begin uniform in [-k, k), k = 1 / sqrt(in_features).

    >>> linear = rushlight.nn.Linear(3, 2)
    >>> linear(rushlight.ones(4, 3)).shape, linear.weight.shape
    (torch.Size([4, 2]), torch.Size([2, 3]))
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = uninitialized(out_features, in_features, dtype=dtype, device=device)
        self.register_parameter("bias", uninitialized(out_features, dtype=dtype, device=device) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weight, then the bias."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        try:  # faster than `self.weight`, which calls __getattr__
            own = self._parameters
            weight, bias = own["weight"], own["bias"]
        except (
            KeyError,
            AttributeError,
        ):  # no fast path: `weight` may not be a parameter (weight norm), or `self` not a Module
            weight, bias = self.weight, self.bias
        return linear(input, weight, bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Bilinear(Module):
    """(x1, x2) -> x1^T w_k x2 + b_k for each output k: weight (out, in1, in2), bias (out,) or None.

    Both begin uniform in [-k, k), k = 1 / sqrt(in1_features).

    >>> rushlight.nn.Bilinear(3, 4, 2)(rushlight.ones(5, 3), rushlight.ones(5, 4)).shape
    torch.Size([5, 2])
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, device: Any = None,
        dtype: Any = None,
    ):  # fmt: skip
        super().__init__()
        if in1_features <= 0:
            raise value_error(f"in1_features must be > 0, but got {in1_features}")
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        self.weight = uninitialized(out_features, in1_features, in2_features, dtype=dtype, device=device)
        self.register_parameter("bias", uninitialized(out_features, dtype=dtype, device=device) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weight, then the bias."""
        bound = 1 / math.sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )
