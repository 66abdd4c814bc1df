"""torch.fft: six transforms composed of three ops, each along one, two (fft2) or several dimensions (fftn); and
frequencies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import Any

import numpy as np

from rushlight.base import dtypes
from rushlight.base.errors import describe, index_error, runtime_error
from rushlight.core.arguments import as_tuple, wrap, wrap_dims
from rushlight.core.tensor import Tensor
from rushlight.creation.factories import made
from rushlight.ops.composites import composite, given
from rushlight.ops.linalg.arguments import check_tensor
from rushlight.ops.shape.pad import constant_pad
from rushlight.ops.shape.view_functions import roll
from rushlight.ops.shape.views import to
from rushlight.ops.signal import dft as f

Dims = tuple[int, ...]
Lengths = Sequence[int | None]

# -- the three kinds: x, the dims to transform, their lengths (None: the input's lengths) ------------


def complex_to_complex(x: Tensor, dims: Dims, lengths: Lengths, forward: bool, power: float) -> Tensor:
    x = resized(x, dims, lengths)
    return f.c2c(x, dims, forward, power) if dims else to(x, x.dtype.to_complex())


def real_to_complex(x: Tensor, dims: Dims, lengths: Lengths, forward: bool, power: float) -> Tensor:
    half = f.r2c(resized(x, dims, lengths), dims[-1], forward, power)
    return f.c2c(half, dims[:-1], forward, power) if dims[:-1] else half


def complex_to_real(x: Tensor, dims: Dims, lengths: Lengths, forward: bool, power: float) -> Tensor:
    n = 2 * (x._array.shape[dims[-1]] - 1) if lengths[-1] is None else lengths[-1]
    half = resized(to(x, x.dtype.to_complex()), dims, (*lengths[:-1], n // 2 + 1))
    if dims[:-1]:
        half = f.c2c(half, dims[:-1], forward, power)
    return f.c2r(half, dims[-1], counted(n), forward, power)


def resized(x: Tensor, dims: Dims, lengths: Lengths) -> Tensor:
    """x truncated or padded with zeros to these lengths. A length may not be 0."""
    shape = x._array.shape
    missing = {d: (0, counted(shape[d] if n is None else n) - shape[d]) for d, n in zip(dims, lengths)}
    if not any(more for _, more in missing.values()):
        return x
    return constant_pad(x, tuple([missing.get(d, (0, 0)) for d in range(len(shape))]), 0)


def counted(n: int) -> int:
    if n < 1:
        raise runtime_error(f"Invalid number of data points ({n}) specified", "give a length of at least 1")
    return n


# -- arguments -------------------------------------------------------------------------------------

# The power of n by which the sum is divided, for this direction and `norm`.
POWERS = {True: {"backward": 0, "ortho": 0.5, "forward": 1}, False: {"backward": 1, "ortho": 0.5, "forward": 0}}


def power_of(norm: str | None, forward: bool) -> float:
    try:
        return POWERS[forward]["backward" if norm is None else norm]
    except KeyError:
        raise runtime_error(f'Invalid normalization mode: "{norm}"', 'give "backward", "ortho" or "forward"') from None


def transform(name: str, kind: Callable, forward: bool, input: Any, s: Any, dim: Any, norm: Any, out: Any) -> Tensor:
    """One of the transforms, with `s` and `dim` as sequences or None."""
    check_tensor(input, f"fft_{name}", "input")
    if kind is real_to_complex and input.dtype.is_complex:
        raise runtime_error(
            f"{name} expects a real{'-valued' if name[-1] in '2n' else ''} input tensor, but got "
            f"{input.dtype.scalar_type}",
            f"take {name.replace('r', '').replace('h', '')}, or the real part: x.real",
            input=describe(input),
        )
    dims, lengths = sides(input, s, dim)
    if kind is not complex_to_complex and not dims:
        raise runtime_error(f"{name} must transform at least one axis", "pass dim", input=describe(input))
    if input.dtype.category < dtypes.FLOATING:
        input = to(input, dtypes.get_default_dtype())
    made = kind(input, dims, lengths, forward, power_of(norm, forward))
    if out is not None and out.dtype.is_complex is not made.dtype.is_complex:
        raise runtime_error(
            f"{name} expects a {'complex' if made.dtype.is_complex else 'floating point'} output tensor, but got "
            f"{out.dtype.scalar_type}",
            f"give an out= of dtype {made.dtype}",
        )
    return given(out, made)


def sides(input: Tensor, s: Any, dim: Any) -> tuple[Dims, Lengths]:
    """The dimensions to transform, counted from the front, and their lengths (None: the input's)."""
    ndim = input._array.ndim
    s = s if s is None or isinstance(s, (tuple, list)) else (s,)
    if dim is None:
        if s is not None and len(s) > ndim:
            raise runtime_error(
                f"Got shape with {len(s)} values but input tensor only has {ndim} dimensions.", input=describe(input)
            )
        dims = tuple(range(0 if s is None else ndim - len(s), ndim))
    else:
        dims = distinct(dim, ndim)
    if s is not None and len(s) != len(dims):
        raise runtime_error("When given, dim and shape arguments must have the same length", s=s, dim=dim)
    return dims, [None if n == -1 else index(n) for n in s] if s is not None else [None] * len(dims)


def distinct(dim: Any, ndim: int) -> Dims:
    """Valid and distinct dimensions, counted from the front."""
    dims = as_tuple(dim)
    if dims and not ndim:
        raise index_error(f"Dimension specified as {dims[0]} but tensor has no dimensions", "omit dim")
    found = tuple([wrap(d, ndim) for d in dims])
    if len(set(found)) < len(found):
        raise runtime_error("FFT dims must be unique", "name each dimension once", dim=dims)
    return found


# -- the transforms --------------------------------------------------------------------------------


def offer(name: str, kind: Callable, forward: bool, says: str, numbers: str, found: str) -> None:
    """Define torch.fft.<name>, <name>2 and <name>n. The text and example for a vector also serve for a matrix of one
    row."""

    def along(
        input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None
    ) -> Tensor:
        return transform(
            name, kind, forward, input, None if n is None else (counted(index(n)),), (index(dim),), norm, out
        )

    def plane(
        input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None, *, out: Tensor | None = None
    ) -> Tensor:
        return transform(name + "2", kind, forward, input, s, dim, norm, out)

    def several(
        input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Tensor | None = None
    ) -> Tensor:
        return transform(name + "n", kind, forward, input, s, dim, norm, out)

    for function, more, where in (
        (along, "", "along `dim`, of length `n`"),
        (plane, "2", "along two dimensions"),
        (several, "n", "along `dim` (None: all, or the last if `s` is given), of lengths `s`"),
    ):
        function.__name__ = function.__qualname__ = f"fft_{name}{more}"
        function.__doc__ = TEXT.format(
            says=says,
            where=where,
            name=name + more,
            also=", and for complex input" if kind is real_to_complex else "",
            numbers=f"[{numbers}]" if more == "2" else numbers,
            found=f"[{found}]" if more == "2" else found,
        )
        composite(function.__name__, tensor=False)(function)


TEXT = """{says}, {where}.

    Longer inputs are truncated, shorter inputs padded with zeros. `norm`: "backward" (None) divides the inverse
    transforms (ifft, irfft, ihfft) by n, "forward" divides the others by n, "ortho" divides all by sqrt(n). Single
    precision is kept; integers become the default dtype. RuntimeError for lengths below 1 and unknown norms{also};
    IndexError for a dimension out of range. Computed by SciPy's pocketfft.

    >>> rushlight.fft.{name}(rushlight.tensor({numbers}))
    tensor({found})
    """

# fmt: off
offer("fft", complex_to_complex, True,
      "X_k = sum_j x_j exp(-2 pi i jk / n)",
      "[1., 2., 3.]", "[ 6.0000-0.0000j, -1.5000+0.8660j, -1.5000-0.8660j]")
offer("ifft", complex_to_complex, False,
      "x_j = 1/n sum_k X_k exp(2 pi i jk / n): the inverse of `fft`",
      "[0., 4.j, 0., 0.]", "[ 0.+1.j, -1.+0.j,  0.-1.j,  1.+0.j]")
offer("rfft", real_to_complex, True,
      "X_k = sum_j x_j exp(-2 pi i jk / n) of real x, k = 0 ... n/2 (the others are the conjugates of these)",
      "[1., 2., 3.]", "[ 6.0000+0.0000j, -1.5000+0.8660j]")
offer("irfft", complex_to_real, False,
      "x_j = 1/n sum_k X_k exp(2 pi i jk / n), real, from the n/2 + 1 numbers that `rfft` gives",
      "[0., 2., 0.]", "[ 1.,  0., -1.,  0.]")
offer("hfft", complex_to_real, True,
      "X_k = sum_j x_j exp(-2 pi i jk / n), real, from x_0 ... x_n/2 (the others are the conjugates of these)",
      "[0., 1., 0.]", "[ 2.,  0., -2.,  0.]")
offer("ihfft", real_to_complex, False,
      "x_j = 1/n sum_k X_k exp(2 pi i jk / n) of real X, j = 0 ... n/2: the inverse of `hfft`",
      "[1., 2., 3.]", "[ 2.0000-0.0000j, -0.5000-0.2887j]")
# fmt: on


# -- frequencies and their order -------------------------------------------------------------------


def frequencies(
    name: str, whole: Callable, n: int, d: float, dtype: Any, device: Any, requires_grad: bool, out: Any
) -> Tensor:
    kind = dtypes.or_default(dtype)
    if kind.category < dtypes.FLOATING:
        raise runtime_error(f"{name} requires a floating point or complex dtype", dtype=kind)
    if index(n) < 0:
        raise runtime_error(f"Trying to create tensor with negative dimension {n}: [{n}]")
    return made(whole(index(n)) / np.float64(d * n), kind, requires_grad, device, out)


@composite(tensor=False)
def fft_fftfreq(
    n: int, d: float = 1.0, *, out: Tensor | None = None, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """[0, 1, ..., (n-1)/2, -(n/2), ..., -1] / (d n): the frequencies of the elements of `fft`, for n samples at a
    distance of `d`.

    >>> rushlight.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    return frequencies(
        "fftfreq", lambda n: (np.arange(n) + n // 2) % n - n // 2, n, d, dtype, device, requires_grad, out
    )


@composite(tensor=False)
def fft_rfftfreq(
    n: int, d: float = 1.0, *, out: Tensor | None = None, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """[0, 1, ..., n/2] / (d n): the frequencies of the elements of `rfft`, for n samples at a distance of `d`.

    >>> rushlight.fft.rfftfreq(4)
    tensor([0.0000, 0.2500, 0.5000])
    """
    return frequencies("rfftfreq", lambda n: np.arange(n // 2 + 1), n, d, dtype, device, requires_grad, out)


@composite(tensor=False)
def fft_fftshift(input: Tensor, dim: Any = None) -> Tensor:
    """out[i] = input[(i - n // 2) mod n]: frequencies of `fft` ascend, 0 in the middle, along `dim` (all if None).

    >>> rushlight.fft.fftshift(rushlight.fft.fftfreq(4))
    tensor([-0.5000, -0.2500,  0.0000,  0.2500])
    """
    return shifted(input, dim, lambda n: n // 2)


@composite(tensor=False)
def fft_ifftshift(input: Tensor, dim: Any = None) -> Tensor:
    """out[i] = input[(i + n // 2) mod n]: the inverse of `fftshift`; frequency 0 comes first.

    >>> rushlight.fft.ifftshift(rushlight.tensor([-2, -1, 0, 1]))
    tensor([ 0,  1, -2, -1])
    """
    return shifted(input, dim, lambda n: (n + 1) // 2)


def shifted(input: Tensor, dim: Any, by: Callable[[int], int]) -> Tensor:
    ndim = input._array.ndim
    dims = wrap_dims(range(ndim) if dim is None else dim, ndim)
    if not dims:
        raise runtime_error("`shifts` required", "shift along a dimension", input=describe(input))
    return roll(input, [by(input._array.shape[d]) for d in dims], dims)
