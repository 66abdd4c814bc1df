"""Activations as modules."""

from __future__ import annotations

from typing import Any

from rushlight.base.errors import value_error, warn
from rushlight.core.tensor import Tensor
from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn.layer_settings import Layer, uninitialized
from rushlight.nn.module import Module
from rushlight.nn.parameter import Parameter
from rushlight.ops.math import elementwise


class ReLU(Layer, function=F.relu):
    """max(x, 0), element by element.

    >>> rushlight.nn.ReLU()(rushlight.tensor([-1., 2.]))
    tensor([0., 2.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(input, True) if self.inplace else elementwise.relu(input)


class Hardtanh(Layer, function=F.hardtanh):
    """min(max(x, min_val), max_val), element by element. ValueError unless min_val < max_val.

    >>> rushlight.nn.Hardtanh()(rushlight.tensor([-3., 0.5, 3.]))
    tensor([-1.0000,  0.5000,  1.0000])
    """

    def __init__(
        self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False, min_value: float | None = None,
        max_value: float | None = None,
    ):  # fmt: skip
        for old, new in (("min_value", "min_val"), ("max_value", "max_val")):
            if (min_value if old == "min_value" else max_value) is not None:
                warn(f"keyword argument `{old}` is deprecated and renamed to `{new}`", FutureWarning)
        min_val, max_val = min_val if min_value is None else min_value, max_val if max_value is None else max_value
        if min_val >= max_val:
            raise value_error(f"max_val must be larger than min_val, got min_val={min_val} and max_val={max_val}")
        super().__init__(min_val=min_val, max_val=max_val, inplace=inplace)


class ReLU6(Hardtanh, shows="inplace"):
    """min(max(x, 0), 6), element by element.

    >>> rushlight.nn.ReLU6()(rushlight.tensor([-1., 2., 9.]))
    tensor([0., 2., 6.])
    """

    def __init__(self, inplace: bool = False):
        super().__init__(0.0, 6.0, inplace)


class ELU(Layer, function=F.elu):
    """x where x > 0, else alpha (exp(x) - 1). D.-A. Clevert, T. Unterthiner, S. Hochreiter, 2016.

    >>> rushlight.nn.ELU()(rushlight.tensor([-50., -1., 2.]))
    tensor([-1.0000, -0.6321,  2.0000])
    """


class CELU(Layer, function=F.celu):
    """max(x, 0) + min(0, alpha (exp(x / alpha) - 1)). J. T. Barron, 2017.

    >>> rushlight.nn.CELU(alpha=2.0)(rushlight.tensor([-50., -1., 2.]))
    tensor([-2.0000, -0.7869,  2.0000])
    """


class SELU(Layer, function=F.selu):
    """1.0507 x where x > 0, else 1.0507 * 1.6733 (exp(x) - 1): mean 0 and variance 1 stay. G. Klambauer et al., 2017.

    >>> rushlight.nn.SELU()(rushlight.tensor([-1., 0., 1.]))
    tensor([-1.1113,  0.0000,  1.0507])
    """


class GELU(Layer, function=F.gelu):
    """x Phi(x), where Phi is the distribution function of the standard normal; `approximate`: 'none' or 'tanh'.

    D. Hendrycks, K. Gimpel, *Gaussian error linear units*, 2016.

    >>> rushlight.nn.GELU()(rushlight.tensor([-1., 0., 1.]))
    tensor([-0.1587,  0.0000,  0.8413])
    """


class LeakyReLU(Layer, function=F.leaky_relu):
    """x where x > 0, else negative_slope x.

    >>> rushlight.nn.LeakyReLU(0.1)(rushlight.tensor([-10., 2.]))
    tensor([-1.,  2.])
    """


class PReLU(Module):
    """x where x > 0, else w x. The weight w is learned: one number, or one for each channel (dimension 1).

    It begins at `init`. K. He et al., *Delving deep into rectifiers*, 2015.

    >>> rushlight.nn.PReLU()(rushlight.tensor([-4., 2.])).detach()
    tensor([-1.,  2.])
    """

    weight: Parameter

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None):
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = uninitialized(num_parameters, dtype=dtype, device=device)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set all weights to `init`."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class RReLU(Layer, function=F.rrelu):
    """x where x > 0, else r x, r uniform in [lower, upper) in training, the mean of both bounds in evaluation. B. Xu et
    al., 2015.

    >>> rushlight.nn.RReLU().eval()(rushlight.tensor([-24., 1.]))
    tensor([-5.5000,  1.0000])
    """


class Threshold(Layer, function=F.threshold):
    """x where x > threshold, else value.

    >>> rushlight.nn.Threshold(0.1, 20.)(rushlight.tensor([-1., 0.1, 2.]))
    tensor([20., 20.,  2.])
    """


class Hardsigmoid(Layer, function=F.hardsigmoid, shows=""):
    """min(max(x + 3, 0), 6) / 6, element by element.

    >>> rushlight.nn.Hardsigmoid()(rushlight.tensor([-4., 0., 1.5, 4.]))
    tensor([0.0000, 0.5000, 0.7500, 1.0000])
    """


class Hardswish(Layer, function=F.hardswish, shows=""):
    """x min(max(x + 3, 0), 6) / 6, element by element.

    >>> rushlight.nn.Hardswish()(rushlight.tensor([0., 1.5, 4.]))
    tensor([0.0000, 1.1250, 4.0000])
    """


class SiLU(Layer, function=F.silu):
    """x / (1 + exp(-x)), element by element.

    >>> rushlight.nn.SiLU()(rushlight.tensor([-1., 0., 1.]))
    tensor([-0.2689,  0.0000,  0.7311])
    """


class Mish(Layer, function=F.mish):
    """x tanh(log(1 + exp(x))), element by element. D. Misra, 2019.

    >>> rushlight.nn.Mish()(rushlight.tensor([-1., 0., 1.]))
    tensor([-0.3034,  0.0000,  0.8651])
    """


class Softplus(Layer, function=F.softplus):
    """log(1 + exp(beta x)) / beta, and x itself where beta x > threshold.

    >>> rushlight.nn.Softplus()(rushlight.tensor([-1., 0., 100.]))
    tensor([  0.3133,   0.6931, 100.0000])
    """


class _Shrink(Layer):
    """An activation with a bound, `lambd`; `repr` shows the value without the name."""

    def extra_repr(self) -> str:
        return str(self.lambd)


class Hardshrink(_Shrink, function=F.hardshrink):
    """0 where |x| <= lambd, else x.

    >>> rushlight.nn.Hardshrink()(rushlight.tensor([-1., -0.3, 0.3, 1.]))
    tensor([-1.,  0.,  0.,  1.])
    """


class Softshrink(_Shrink, function=F.softshrink):
    """sign(x) max(|x| - lambd, 0): x moved towards 0 by lambd.

    >>> rushlight.nn.Softshrink()(rushlight.tensor([-1., 0.3, 1.]))
    tensor([-0.5000,  0.0000,  0.5000])
    """


class GLU(Layer, function=F.glu):
    """a sigmoid(b), a and b the halves of the input along `dim`. Y. N. Dauphin et al., 2017.

    >>> rushlight.nn.GLU()(rushlight.tensor([3., 4., 0., 100.]))
    tensor([1.5000, 4.0000])
    """


class Sigmoid(Layer, function=F.sigmoid):
    """1 / (1 + exp(-x)), element by element.

    >>> rushlight.nn.Sigmoid()(rushlight.tensor([-1., 0., 1.]))
    tensor([0.2689, 0.5000, 0.7311])
    """

    def forward(self, input: Tensor) -> Tensor:
        return elementwise.sigmoid(input)


class Tanh(Layer, function=F.tanh):
    """(exp(x) - exp(-x)) / (exp(x) + exp(-x)), element by element.

    >>> rushlight.nn.Tanh()(rushlight.tensor([-1., 0., 1.]))
    tensor([-0.7616,  0.0000,  0.7616])
    """

    def forward(self, input: Tensor) -> Tensor:
        return elementwise.tanh(input)


class LogSigmoid(Layer, function=F.logsigmoid):
    """log(1 / (1 + exp(-x))), element by element, without overflow.

    >>> rushlight.nn.LogSigmoid()(rushlight.tensor([-100., 0.]))
    tensor([-100.0000,   -0.6931])
    """


class Softsign(Layer, function=F.softsign):
    """x / (1 + |x|), element by element.

    >>> rushlight.nn.Softsign()(rushlight.tensor([-9., 0., 1.]))
    tensor([-0.9000,  0.0000,  0.5000])
    """


class Tanhshrink(Layer, function=F.tanhshrink):
    """x - tanh(x), element by element.

    >>> rushlight.nn.Tanhshrink()(rushlight.tensor([0., 1., 10.]))
    tensor([0.0000, 0.2384, 9.0000])
    """


class Softmax(Layer, function=F.softmax, settings="dim"):
    """exp(x_i) / sum over j of exp(x_j), along `dim`.

    >>> rushlight.nn.Softmax(dim=0)(rushlight.tensor([1., 2., 3.]))
    tensor([0.0900, 0.2447, 0.6652])
    """


class Softmin(Layer, function=F.softmin, settings="dim"):
    """exp(-x_i) / sum over j of exp(-x_j), along `dim`: the softmax of -x.

    >>> rushlight.nn.Softmin(dim=0)(rushlight.tensor([1., 2., 3.]))
    tensor([0.6652, 0.2447, 0.0900])
    """


class LogSoftmax(Layer, function=F.log_softmax, settings="dim"):
    """x_i - log sum over j of exp(x_j), along `dim`.

    >>> rushlight.nn.LogSoftmax(dim=0)(rushlight.tensor([1000., 0.]))
    tensor([    0., -1000.])
    """


class Softmax2d(Module):
    """exp(x_c) / sum over channels d of exp(x_d), at each pixel of (N, C, H, W) or (C, H, W).

    ValueError for another number of dimensions.

    >>> rushlight.nn.Softmax2d()(rushlight.zeros(4, 1, 2))[0]
    tensor([[0.2500, 0.2500]])
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (3, 4):
            raise value_error(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3)
