"""Complex numbers as pairs of real values, and Fourier transforms. ONNX's runtimes have no complex tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from rushlight.core.table import entries
from rushlight.onnx.to_onnx import elementwise as real
from rushlight.onnx.to_onnx.elementwise import atan2, cos, exp, sin, sqrt
from rushlight.onnx.to_onnx.onnx_graph import END, NotExpressed, OnnxGraph, Symbol
from rushlight.onnx.to_onnx.rules import RULES, Result, Step
from rushlight.ops.index import along_dim, index_tensors
from rushlight.ops.linalg import matmul
from rushlight.ops.math import complex, rare_functions
from rushlight.ops.math import elementwise as e
from rushlight.ops.reduce import reduce
from rushlight.ops.shape import pad, views
from rushlight.ops.signal import dft


class Pair(NamedTuple):
    """A complex value."""

    real: Symbol
    imag: Symbol

    @property
    def dtype(self) -> np.dtype:
        return np.result_type(self.real.dtype, np.complex64)

    @property
    def shape(self) -> Any:
        return self.real.shape

    @property
    def ndim(self) -> int:
        return len(self.shape)


def pair_of(graph: OnnxGraph, array: np.ndarray, name: str = "") -> Pair:
    """A constant."""
    real_name, imag_name = (f"{name}.real", f"{name}.imag") if name else ("", "")
    parts = np.ascontiguousarray(array.real), np.ascontiguousarray(array.imag)
    return Pair(graph.constant(parts[0], real_name), graph.constant(parts[1], imag_name))


# Ops that treat the real and the imaginary part alike.
ALIKE = entries(
    views.reshape, views.view_as_shape, views.flatten, views.unflatten, views.squeeze, views.unsqueeze, views.transpose,
    views.permute, views.unpermute, views.expand, views.narrow, views.select, views.getitem, views.unfold_dim,
    views.contiguous, views.clone, views.placed, views.laid_out, views.flip, views.rolled, views.tril, views.triu,
    views.repeat, views.cat, views.stack, views.unbind, views.split_sizes, views.diagonal, views.embed_diagonal,
    e.neg, e.add, e.sub, e.where, e.masked, reduce.sum, reduce.mean, reduce.cumsum, pad.constant_pad, pad.bordered,
    along_dim.index_select, along_dim.gather, along_dim.embedding, index_tensors.index,
)  # fmt: skip


def written(step: Step) -> Any:
    """The nodes of a step with complex numbers."""
    if step.op in ALIKE:
        return alike(step)
    if step.op not in FUNCTIONS:
        raise NotExpressed("ONNX has no such operator of complex numbers")
    return FUNCTIONS[step.op](step)


def alike(step: Step) -> Any:
    """The op of the real parts, and of the imaginary parts."""
    made: list[Any] = []
    for part in (0, 1):
        results = tuple([Result(part_type(r.dtype), r.shape, r.used) for r in step.results])
        now = step._replace(args=part_of(step.args, part), results=results)
        made.append(RULES[step.op](now) if step.op in RULES else real.written(now))
    if isinstance(made[0], list):
        return [Pair(a, b) for a, b in zip(*made)]
    return Pair(*made)


def part_type(dtype: np.dtype) -> np.dtype:
    """The dtype of a complex number's parts."""
    return np.empty(0, dtype).real.dtype


def part_of(a: Any, part: int) -> Any:
    """An argument's real (0) or imaginary (1) part. The imaginary part of a real value is 0."""
    if isinstance(a, Pair):
        return a[part]
    if isinstance(a, (tuple, list)) and not hasattr(a, "_make"):
        return type(a)([part_of(x, part) for x in a])
    if isinstance(a, Symbol) and part and a.dtype.kind == "f":
        return a * 0.0
    return a if not (part and isinstance(a, float)) else 0.0


def pair(a: Any) -> Pair:
    """A value as a pair."""
    return a if isinstance(a, Pair) else Pair(a, a * 0.0)


def product(x: Any, y: Any) -> Pair:
    """x y, where one may be real."""
    if not isinstance(x, Pair):
        return Pair(y.real * x, y.imag * x)
    if not isinstance(y, Pair):
        return Pair(x.real * y, x.imag * y)
    return Pair(x.real * y.real - x.imag * y.imag, x.real * y.imag + x.imag * y.real)


def quotient(x: Any, y: Any) -> Pair:
    if not isinstance(y, Pair):
        return Pair(x.real / y, x.imag / y)
    size = y.real * y.real + y.imag * y.imag
    found = product(x, Pair(y.real, -y.imag))
    return Pair(found.real / size, found.imag / size)


def matrix_product(step: Step) -> Pair:
    x, y = map(pair, step.args)

    def times(a: Symbol, b: Symbol) -> Symbol:
        return a.named("MatMul", b)

    return Pair(times(x.real, y.real) - times(x.imag, y.imag), times(x.real, y.imag) + times(x.imag, y.real))


def power(step: Step) -> Pair:
    x, n = step.args
    exponent = n.real.array if isinstance(n, Pair) else getattr(n, "array", None)
    if exponent is None or exponent.size != 1 or exponent not in (1, 2, 3):
        raise NotExpressed("complex numbers have powers 1, 2 and 3 only")
    found = x
    for _ in range(int(exponent) - 1):
        found = product(found, x)
    return found


def as_pairs(step: Step) -> Symbol:
    """(..., 2) real numbers."""
    x = step.args[0]
    return step.graph.joined([step.graph.unsqueezed(part, [x.ndim]) for part in x], x.ndim)


def from_pairs(step: Step) -> Pair:
    x = step.args[0]
    return halves(x, x.ndim - 1)


def halves(x: Symbol, axis: int) -> Pair:
    """The two elements along an axis, without the axis."""
    return Pair(*[x.named("Gather", x.graph.scalar(k), axis=axis) for k in (0, 1)])


def converted(step: Step) -> Any:
    """A real value as a complex one, or the real part."""
    x, out = step.args[0], step.out.dtype
    if out.kind != "c":
        return (x.real if isinstance(x, Pair) else x).to(out)
    return Pair(*[part.to(part_type(out)) for part in pair(x if isinstance(x, Pair) else x.to(part_type(out)))])


# -- Fourier transforms ------------------------------------------------------------------------------


def transformed(x: Any, axis: int, forward: bool, power: float, onesided: bool = False) -> Pair:
    """sum over j of x_j exp(-+ 2 pi i jk / n) / n^power along an axis. ONNX divides by n if the sign is plus."""
    parts = x if isinstance(x, Pair) else (x,)
    shape, graph = x.shape, parts[0].graph
    ndim = len(shape)
    given = graph.joined([graph.unsqueezed(part, [ndim]) for part in parts], ndim)
    settings: dict[str, Any] = {"inverse": int(not forward), "onesided": int(onesided)}
    inputs: list[Any] = [given]
    if graph.opset >= 20:
        inputs += [None, graph.scalar(axis)]
    else:
        settings["axis"] = axis
    found = halves(graph.node("DFT", inputs, dtype=given.dtype, **settings), ndim)
    exponent = power if forward else power - 1
    if not exponent:
        return found
    scale = real.power(graph.scalar(shape[axis]).to(given.dtype), float(-exponent))
    return Pair(found.real * scale, found.imag * scale)


def complex_to_complex(step: Step) -> Pair:
    x, dims, forward, power = step.args
    for dim in dims:
        shape = x.shape
        x = transformed(x, dim % len(shape), forward, power)
        for part in x:
            part.shape = shape
    return x


def real_to_complex(step: Step) -> Pair:
    x, dim, forward, power = step.args
    found = transformed(x, dim % x.ndim, True, power, onesided=True)
    return found if forward else Pair(found.real, -found.imag)


def complex_to_real(step: Step) -> Symbol:
    """The other half of the numbers are the conjugates, backward."""
    x, dim, n, forward, power = step.args
    graph, dim, size = step.graph, dim % x.ndim, x.shape[dim]
    if not isinstance(n, int) or size != n // 2 + 1:
        raise NotExpressed("the transform has another number of elements than its input says")
    wide = []
    for part, sign in zip(x, (1, -1)):
        turned = graph.sliced(part, dim, (n - 1) // 2, -END, -1)
        turned = graph.sliced(turned, dim, 0, (n - 1) // 2)
        wide.append(graph.joined([part, turned if sign > 0 else -turned], dim))
    for part in wide:
        part.shape = (*x.shape[:dim], n, *x.shape[dim + 1 :])
    return transformed(Pair(*wide), dim, forward, power).real


def table(*rules: tuple[tuple, Callable]) -> dict:
    return {function.op: rule for functions, rule in rules for function in functions}


FUNCTIONS: dict[Any, Callable[[Step], Any]] = table(
    ((e.mul,), lambda step: product(*step.args)),
    ((e.multiple,), lambda step: product(*step.args)),
    ((e.div, e.fraction), lambda step: quotient(pair(step.args[0]), step.args[1])),
    ((e.square,), lambda step: product(step.args[0], step.args[0])),
    ((e.pow,), power),
    ((matmul.mm, matmul.mv, matmul.dot), matrix_product),
    ((e.abs,), lambda step: sqrt(step.args[0].real * step.args[0].real + step.args[0].imag * step.args[0].imag)),
    ((e.angle,), lambda step: atan2(step.args[0].imag, step.args[0].real)),
    ((e.conj,), lambda step: Pair(step.args[0].real, -step.args[0].imag)),
    ((e.exp,), lambda step: product(polar(1.0, step.args[0].imag), exp(step.args[0].real))),
    ((views.to,), converted),
    ((complex.real_part,), lambda step: step.args[0].real),
    ((complex.imag_part,), lambda step: step.args[0].imag),
    ((complex.of_parts,), lambda step: Pair(*[a.to(part_type(step.out.dtype)) for a in step.args])),
    ((complex.view_as_real,), as_pairs),
    ((complex.view_as_complex,), from_pairs),
    ((rare_functions.polar_parts,), lambda step: polar(*step.args)),
    ((dft.c2c,), complex_to_complex),
    ((dft.r2c,), real_to_complex),
    ((dft.c2r,), complex_to_real),
)


def polar(size: Any, angle: Symbol) -> Pair:
    """size exp(i angle)."""
    return Pair(cos(angle) * size, sin(angle) * size)
