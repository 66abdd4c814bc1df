"""Activations: functions of one tensor, most of them element by element. `inplace=True` writes into the input."""
from __future__ import annotations

from typing import Any

import numpy as np

from rushlight import random
from rushlight.autograd.views import assign
from rushlight.creation import empty_like, zeros_like
from rushlight.errors import explain, warn
from rushlight.ops import activation as a
from rushlight.ops import elementwise as e
from rushlight.ops import reductions
from rushlight.ops.arguments import wrap
from rushlight.ops.node_names import called
from rushlight.ops.products import in_single
from rushlight.ops.shape import contiguous
from rushlight.ops.shapes import chunk
from rushlight.optional import LARGE
from rushlight.tensor import Tensor, from_array, method, noticed


def settle(input: Tensor, result: Tensor, inplace: bool) -> Tensor:
    """The result, or the input with the result written into it."""
    return assign(input, result) if inplace else result


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0), element by element.

    >>> rushlight.nn.functional.relu(rushlight.tensor([-1., 2.]))
    tensor([0., 2.])
    """
    return input.relu_() if inplace else e.relu(input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x, 0), 6), element by element."""
    return hardtanh(input, 0.0, 6.0, inplace)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where x > 0, else alpha (exp(x) - 1)."""
    return settle(input, e.elu(input, alpha), inplace)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where x > 0, else alpha (exp(x / alpha) - 1). RuntimeError for alpha = 0."""
    if alpha == 0:
        raise RuntimeError(explain("ZeroDivisionError: alpha cannot be 0 for CELU", "give another alpha"))
    return settle(input, called(e.elu(input, alpha, 1.0, 1 / alpha), "CeluBackward0"), inplace)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """1.0507 x where x > 0, else 1.0507 * 1.6733 (exp(x) - 1): the factors keep mean 0 and variance 1."""
    return settle(input, e.elu(input, 1.6732632423543772, 1.0507009873554805), inplace)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x where x > 0, else negative_slope x."""
    return settle(input, e.leaky_relu(input, negative_slope), inplace)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """min(max(x, min_val), max_val), element by element. ValueError if the bounds are the wrong way round."""
    if min_val > max_val:
        raise ValueError(explain("min_val cannot be greater than max_val", bounds=(min_val, max_val)))
    if input.array.dtype.kind in "iu":
        min_val, max_val = int(min_val), int(max_val)
    return settle(input, a.hardtanh(input, min_val, max_val), inplace)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x + 3, 0), 6) / 6, element by element."""
    return settle(input, a.hardsigmoid(input), inplace)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x min(max(x + 3, 0), 6) / 6, element by element."""
    return settle(input, a.hardswish(input), inplace)


@method
def hardshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """0 where |x| <= lambd, else x."""
    return a.hardshrink(input, lambd, out=out)


def softshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """x moved towards 0 by lambd, 0 where |x| <= lambd. RuntimeError for lambd < 0."""
    if lambd < 0:
        raise RuntimeError(explain(f"lambda must be in range [0, inf) for input dtype {input.dtype}, but found {lambd}"))
    return a.softshrink(input, lambd, out=out)


def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x), element by element."""
    return e.sub(input, e.tanh(input))


def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|), element by element."""
    return e.div(input, e.add(e.abs(input), 1))


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0, *, out: Tensor | None = None) -> Tensor:
    """log(1 + exp(beta x)) / beta, and x itself where beta x > threshold."""
    return e.softplus(input, beta, threshold, out=out)


def logsigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """log(1 / (1 + exp(-x))), element by element, without overflow."""
    return a.log_sigmoid(input, out=out)


def gelu(input: Tensor, approximate: str = "none", *, out: Tensor | None = None) -> Tensor:
    """x times the probability that a normal number is below x.

    `approximate`: 'none', or 'tanh' for a tanh in place of the error function. RuntimeError for another.
    """
    if approximate == "none":
        return a.gelu(input, out=out)
    if approximate == "tanh":
        return a.gelu_tanh(input, out=out)
    raise RuntimeError(explain(f"approximate argument must be either none or tanh, but found {approximate!r}."))


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x tanh(log(1 + exp(x))), element by element."""
    return settle(input, a.mish(input), inplace)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x / (1 + exp(-x)), element by element."""
    return settle(input, e.silu(input), inplace)


def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x)), element by element."""
    return e.sigmoid(input)


def tanh(input: Tensor) -> Tensor:
    """The hyperbolic tangent, element by element."""
    return e.tanh(input)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x where x > threshold, else value."""
    if input.array.dtype.kind in "iu":
        threshold, value = int(threshold), int(value)
    return settle(input, a.threshold(input, threshold, value), inplace)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """a sigmoid(b), a and b the halves of the input along `dim`. RuntimeError for an odd size, or 0 dimensions."""
    if input.array.ndim == 0:
        raise RuntimeError(explain("glu does not support 0-dimensional tensors"))
    n = input.array.shape[wrap(dim, input.array.ndim)]
    if n % 2:
        raise RuntimeError(explain(f"Halving dimension must be even, but dimension {dim} is size {n}"))
    value, gate = chunk(input, 2, dim)
    if gate.array.size >= LARGE:                  # loops take what lies in a row: 1024 x 1024 in 1.6 ms, not 2.0
        gate = contiguous(gate)
    return called(in_single(lambda a, b: e.mul(a, e.sigmoid(b)), value, gate), "GluBackward0")


@method
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x where x > 0, else weight x; weight has one element, or one for each channel (dimension 1).

    RuntimeError for a weight of another shape.
    """
    n, ndim = weight.numel(), input.array.ndim
    if weight.array.ndim > 1:
        raise RuntimeError(explain("prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = "
                                   f"{weight.array.ndim}"))
    if n != 1:
        if ndim == 0:
            raise RuntimeError(explain("Not allow zero-dim input tensor."))
        channels = input.array.shape[1] if ndim > 1 else 1
        if channels != n:
            raise RuntimeError(explain("Mismatch of parameter numbers and input channel size. Found parameter "
                                       f"numbers = {n} and channel size = {channels}.",
                                       f"make the layer take {channels} (num_parameters={channels}), or 1 for all"))
    if weight.array.ndim and ndim != 2:
        weight = weight.reshape((n,) + (1,) * (ndim - 2) if ndim > 2 else (1,) * ndim)
    return a.prelu_core(input, weight)


def rrelu(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False,
          inplace: bool = False) -> Tensor:
    """x where x > 0, else r x: r is uniform in [lower, upper] for each element in training, else their mean."""
    if lower > upper:
        raise RuntimeError(explain("Lower bound should be less than or equal to the upper bound", bounds=(lower, upper)))
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    return settle(input, called(e.mul(input, from_array(slopes(input, lower, upper))), "RreluWithNoiseBackward0"), inplace)


def slopes(input: Tensor, lower: float, upper: float) -> np.ndarray:
    """1 where x > 0, elsewhere uniform: drawn for those only, in order, with 53 bits, as torch does."""
    x = input.array
    noticed(input)
    negative = ~(x > 0)
    r = np.ones_like(x)
    low, high = (float(np.asarray(b, x.dtype)) for b in (lower, upper))
    r[negative] = random.default_generator.uniform(int(negative.sum()), np.float64, low, high).astype(x.dtype)
    return r


def default_dim(name: str, ndim: int) -> int:
    """The dimension that old programs left unsaid."""
    warn(f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.")
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """exp(x_i) / sum over j of exp(x_j), along `dim`; `dtype`: convert first.

    >>> rushlight.nn.functional.softmax(rushlight.tensor([1., 2., 3.]), dim=0)
    tensor([0.0900, 0.2447, 0.6652])
    """
    return reductions.softmax(input, default_dim("softmax", input.array.ndim) if dim is None else dim, dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """The softmax of -x."""
    return reductions.softmax(e.neg(input), default_dim("softmin", input.array.ndim) if dim is None else dim, dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """x_i - log sum over j of exp(x_j), along `dim`; `dtype`: convert first.

    >>> rushlight.nn.functional.log_softmax(rushlight.tensor([[1000., 0.]]), dim=1)
    tensor([[    0., -1000.]])
    """
    return reductions.log_softmax(input, default_dim("log_softmax", input.array.ndim) if dim is None else dim, dtype)


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """softmax((logits + noise) / tau) with Gumbel noise: a sample of the classes that has a gradient.

    `hard`: exactly one-hot going forward, soft going backward.
    """
    noise = empty_like(logits.detach()).exponential_().log()  # type: ignore[attr-defined]
    soft = reductions.softmax(e.div(e.sub(logits, noise), tau), dim)
    if not hard:
        return soft
    top = soft.argmax(dim, True)
    one_hot = zeros_like(soft.detach()).scatter(dim, top, 1.0)  # type: ignore[attr-defined]
    return e.add(e.sub(one_hot, soft.detach()), soft)


def in_place(function: Any) -> Any:
    """The form with an underscore."""
    def act(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return assign(input, function(input, *args, **kwargs))
    act.__name__ = act.__qualname__ = function.__name__ + "_"
    act.__doc__ = f"`{function.__name__}`, written into the input. Returns the input."
    return act


relu_, elu_, celu_, selu_, leaky_relu_ = (in_place(f) for f in (relu, elu, celu, selu, leaky_relu))
hardtanh_, threshold_, rrelu_ = (in_place(f) for f in (hardtanh, threshold, rrelu))
