"""Initial values for parameters, drawn from torch's random stream in torch's order, so a seed gives torch's numbers.

Every function writes to its tensor, outside the graph, and returns it.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from rushlight.base.errors import value_error
from rushlight.base.missing_names import tell as _tell
from rushlight.core.tensor import Tensor, from_array
from rushlight.ops.grad_mode import no_grad
from rushlight.ops.tensor.random_tensors import randperm
from rushlight.random import Generator

GAINS = {
    "linear": 1.0, "conv1d": 1.0, "conv2d": 1.0, "conv3d": 1.0, "conv_transpose1d": 1.0, "conv_transpose2d": 1.0,
    "conv_transpose3d": 1.0, "sigmoid": 1.0, "tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4,
}  # fmt: skip
Seed = Generator | None

__all__ = [
    "calculate_gain", "constant", "constant_", "dirac", "dirac_", "eye", "eye_", "kaiming_normal", "kaiming_normal_",
    "kaiming_uniform", "kaiming_uniform_", "normal", "normal_", "ones_", "orthogonal", "orthogonal_", "sparse",
    "sparse_", "trunc_normal_", "uniform", "uniform_", "xavier_normal", "xavier_normal_", "xavier_uniform",
    "xavier_uniform_", "zeros_",
]  # fmt: skip


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which weights must be larger for a signal to keep its variance through a nonlinearity.

    1 for a linear layer and sigmoid, 5 / 3 for tanh, sqrt 2 for relu, 3 / 4 for selu, sqrt(2 / (1 + slope^2)) for
    leaky_relu with slope `param` (default 0.01). ValueError for an unknown name or a slope that is not a number.

    >>> rushlight.nn.init.calculate_gain("tanh")
    1.6666666666666667
    """
    if nonlinearity == "leaky_relu":
        if param is not None and (isinstance(param, bool) or not isinstance(param, (int, float))):
            raise value_error(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity not in GAINS:
        raise value_error(f"Unsupported nonlinearity {nonlinearity}: one of leaky_relu, {', '.join(GAINS)}")
    return GAINS[nonlinearity]


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Seed = None) -> Tensor:
    """tensor <- uniform numbers in [a, b).

    >>> _ = rushlight.manual_seed(0)
    >>> rushlight.nn.init.uniform_(rushlight.empty(3), 2.0, 3.0)
    tensor([2.4963, 2.7682, 2.0885])
    """
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Seed = None) -> Tensor:
    """tensor <- normal numbers of mean `mean` and deviation `std`.

    >>> _ = rushlight.manual_seed(0)
    >>> rushlight.nn.init.normal_(rushlight.empty(3))
    tensor([ 1.5410, -0.2934, -2.1788])
    """
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """tensor <- val, everywhere.

    >>> rushlight.nn.init.constant_(rushlight.empty(2), 0.3)
    tensor([0.3000, 0.3000])
    """
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """tensor <- 1, everywhere.

    >>> rushlight.nn.init.ones_(rushlight.empty(2))
    tensor([1., 1.])
    """
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """tensor <- 0, everywhere.

    >>> rushlight.nn.init.zeros_(rushlight.empty(2))
    tensor([0., 0.])
    """
    return constant_(tensor, 0.0)


def put(tensor: Tensor, array: np.ndarray) -> Tensor:
    """Write an array's elements into the tensor."""
    with no_grad():
        return tensor.copy_(from_array(array.astype(tensor._array.dtype)))


def eye_(tensor: Tensor) -> Tensor:
    """tensor[i, j] <- 1 where i = j, else 0: as a linear layer, the identity. ValueError unless the tensor is a matrix.

    >>> rushlight.nn.init.eye_(rushlight.empty(2, 3))
    tensor([[1., 0., 0.],
            [0., 1., 0.]])
    """
    if tensor.dim() != 2:
        raise value_error("Only tensors with 2 dimensions are supported")
    return put(tensor, np.eye(*tensor._array.shape))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """tensor[d, d, middle] <- 1, else 0: as a convolution, the identity on as many channels as possible.

    ValueError unless it has 3 to 5 dimensions, and for groups that do not divide the output channels.

    >>> x = rushlight.arange(4.).reshape(1, 1, 4)
    >>> rushlight.nn.functional.conv1d(x, rushlight.nn.init.dirac_(rushlight.empty(1, 1, 3)), padding=1)
    tensor([[[0., 1., 2., 3.]]])
    """
    shape = tensor._array.shape
    if len(shape) not in (3, 4, 5):
        raise value_error("Only tensors with 3, 4, or 5 dimensions are supported")
    if shape[0] % groups:
        raise value_error("dim 0 must be divisible by groups")
    r = np.zeros(shape)
    outputs = shape[0] // groups
    middle = tuple(k // 2 for k in shape[2:])
    for g in range(groups):
        for d in range(min(outputs, shape[1])):
            place = (g * outputs + d, d, *middle)
            r[place] = 1
    return put(tensor, r)


def fans(tensor: Tensor) -> tuple[int, int]:
    """(fan_in, fan_out) of a weight (out, in, *kernel): `in` and `out`, times the elements of the kernel.

    ValueError for fewer than 2 dimensions.
    """
    shape = tensor._array.shape
    if len(shape) < 2:
        raise value_error("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


_calculate_fan_in_and_fan_out = fans


def fan(tensor: Tensor, mode: str) -> int:
    """`fans` by name: 'fan_in' or 'fan_out'. ValueError for another name."""
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise value_error(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return fans(tensor)[mode == "fan_out"]


_calculate_correct_fan = fan


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Seed = None) -> Tensor:
    """tensor <- uniform in [-a, a), a = gain sqrt(6 / (fan_in + fan_out)).

    fan_in is the number of inputs of an output: `in` of a weight (out, in), times the kernel's elements. fan_out is
    `out` times the kernel's elements. ValueError for fewer than 2 dimensions. X. Glorot, Y. Bengio, *Understanding the
    difficulty of training deep feedforward neural networks*, 2010.

    >>> w = rushlight.nn.init.xavier_uniform_(rushlight.empty(100, 50))
    >>> bool(w.abs().max() <= 0.2)  # sqrt(6 / 150)
    True
    """
    std = gain * math.sqrt(2.0 / float(sum(fans(tensor))))
    a = math.sqrt(3.0) * std
    return uniform_(tensor, -a, a, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Seed = None) -> Tensor:
    """tensor <- normal of deviation gain sqrt(2 / (fan_in + fan_out)); fans and paper as for `xavier_uniform_`.

    >>> w = rushlight.nn.init.xavier_normal_(rushlight.empty(100, 100))
    >>> round(w.std().item(), 2)  # sqrt(2 / 200)
    0.1
    """
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / float(sum(fans(tensor)))), generator)


def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Seed = None
) -> Tensor:
    """tensor <- uniform in [-b, b), b = gain sqrt(3 / fan); `mode`: 'fan_in' or 'fan_out'; `a`: leaky_relu's slope.

    The gain is `calculate_gain(nonlinearity, a)`. ValueError for fewer than 2 dimensions or another mode. K. He et al.,
    *Delving deep into rectifiers*, 2015.

    >>> w = rushlight.nn.init.kaiming_uniform_(rushlight.empty(10, 150), nonlinearity="relu")
    >>> bool(w.abs().max() <= 0.2)  # sqrt(2) sqrt(3 / 150)
    True
    """
    if empty(tensor):
        return tensor
    std = calculate_gain(nonlinearity, a) / math.sqrt(fan(tensor, mode))
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Seed = None
) -> Tensor:
    """tensor <- normal of deviation gain / sqrt(fan); settings, errors and paper as for `kaiming_uniform_`.

    >>> w = rushlight.nn.init.kaiming_normal_(rushlight.empty(100, 200), nonlinearity="relu")
    >>> round(w.std().item(), 2)  # sqrt(2 / 200)
    0.1
    """
    if empty(tensor):
        return tensor
    return normal_(tensor, 0.0, calculate_gain(nonlinearity, a) / math.sqrt(fan(tensor, mode)), generator)


def empty(tensor: Tensor) -> bool:
    if 0 in tensor._array.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return True
    return False


def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Seed = None
) -> Tensor:
    """tensor <- normal numbers in [a, b].

    If more than 30 % of normal numbers are in [a, b], the others are drawn again. Otherwise uniform numbers are drawn,
    and each is kept with a probability in proportion to the density.

    >>> w = rushlight.nn.init.trunc_normal_(rushlight.empty(1000), std=2.0)
    >>> bool(w.abs().max() <= 2)
    True
    """
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be "
            "incorrect.",
            stacklevel=2,
        )
    low, high = (0.5 * (1 + math.erf((x - mean) / std / math.sqrt(2))) for x in (a, b))
    if tensor.is_meta:
        return tensor
    draw = redrawn if high - low > 0.3 else rejected
    return put(tensor, draw(tensor._array, mean, std, a, b, generator))


def redrawn(like: np.ndarray, mean: float, std: float, a: float, b: float, generator: Seed) -> np.ndarray:
    """Normal numbers in [a, b]. Until all are inside, all are drawn again, and numbers outside are replaced."""
    x = normal_(from_array(np.empty_like(like)), mean, std, generator)._array
    while (outside := (x < a) | (x > b)).any():
        x = np.where(outside, normal_(from_array(np.empty_like(like)), mean, std, generator)._array, x)
    return x


def rejected(like: np.ndarray, mean: float, std: float, a: float, b: float, generator: Seed) -> np.ndarray:
    """Uniform numbers in [a, b], accepted with probability density / peak (rejection sampling)."""
    peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2
    x, pending = np.empty_like(like), np.ones(like.shape, bool)
    while pending.any():
        candidates = uniform_(from_array(np.empty_like(like)), a, b, generator)._array
        x = np.where(pending, candidates, x)
        density = ((candidates - mean) / std) ** 2 * -0.5 - peak
        with np.errstate(divide="ignore"):
            pending &= np.log(uniform_(from_array(np.empty_like(like)), 0.0, 1.0, generator)._array) > density
    return x


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Seed = None) -> Tensor:
    """tensor <- gain Q, Q (rows, product of the other sizes) with orthonormal rows or columns, from normal numbers by
    QR.

    The normal numbers are torch's. QR is LAPACK's, so the last bits may differ. ValueError for fewer than 2 dimensions.
    A. Saxe, J. McClelland, S. Ganguli, *Exact solutions to the nonlinear dynamics of learning in deep linear neural
    networks*, 2014.

    >>> Q = rushlight.nn.init.orthogonal_(rushlight.empty(3, 5))
    >>> rushlight.allclose(Q @ Q.mT, rushlight.eye(3), atol=1e-6)
    True
    """
    if tensor.dim() < 2:
        raise value_error("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0 or tensor.is_meta:
        return tensor
    rows = tensor._array.shape[0]
    x = normal_(from_array(np.empty((rows, tensor.numel() // rows), tensor._array.dtype)), 0, 1, generator)._array
    q, r = np.linalg.qr(x.T if rows < x.shape[1] else x)
    q = q * np.sign(np.diagonal(r))
    q = q.T if rows < x.shape[1] else q
    return put(tensor, gain * q.reshape(tensor._array.shape))


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Seed = None) -> Tensor:
    """tensor <- normal numbers, the fraction `sparsity` of each column set to 0. ValueError unless it is a matrix.

    J. Martens, *Deep learning via Hessian-free optimization*, 2010.

    >>> (rushlight.nn.init.sparse_(rushlight.empty(10, 4), sparsity=0.3) == 0).sum(0)
    tensor([3, 3, 3, 3])
    """
    if tensor.dim() != 2:
        raise value_error("Only tensors with 2 dimensions are supported")
    rows, columns = tensor._array.shape
    zeros = math.ceil(sparsity * rows)
    normal_(tensor, 0, std, generator)
    x = tensor._array.copy()
    for column in range(columns):
        x[randperm(rows)._array[:zeros], column] = 0
    return put(tensor, x)


def deprecated(function: Any, given: str = "rushlight.empty(2, 3)") -> Any:
    """The old name of a function, without the underscore. `given`: arguments of the example."""
    name = function.__name__[:-1]

    def call(*args: Any, **kwargs: Any) -> Tensor:
        warnings.warn(f"`nn.init.{name}` is now deprecated in favor of `nn.init.{name}_`.", FutureWarning, stacklevel=2)
        return function(*args, **kwargs)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"""tensor <- {name}_(tensor, ...)'s numbers: `{name}_`, by its old name, with a warning.

    >>> rushlight.nn.init.{name}({given}).numel()
    6
    """
    return call


uniform, normal, eye = deprecated(uniform_), deprecated(normal_), deprecated(eye_)
constant, sparse = (
    deprecated(constant_, "rushlight.empty(2, 3), 0.3"),
    deprecated(sparse_, "rushlight.empty(2, 3), 0.5"),
)
xavier_uniform, xavier_normal = deprecated(xavier_uniform_), deprecated(xavier_normal_)
kaiming_uniform, kaiming_normal = deprecated(kaiming_uniform_), deprecated(kaiming_normal_)
orthogonal, dirac = deprecated(orthogonal_), deprecated(dirac_, "rushlight.empty(2, 3, 1)")

_tell(__name__)
