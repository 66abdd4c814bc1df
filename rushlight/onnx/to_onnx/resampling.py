"""Resizing and sampling at points."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rushlight.kernels.resize import table
from rushlight.onnx.to_onnx.onnx_graph import NotExpressed, Symbol
from rushlight.onnx.to_onnx.rules import Step, expresses
from rushlight.onnx.to_onnx.sizes import Size, Varying
from rushlight.ops.nn import grid_sample
from rushlight.ops.nn.resize import blend

PIXELS, CORNERS = "half_pixel", "align_corners"


class Resizing(NamedTuple):
    """A node of Resize: its input, its attributes, and for each dimension the size, or the factor where a number is
    given."""

    x: Symbol
    attributes: dict[str, Any]
    dims: tuple[int, ...]
    sizes: tuple[int | Size, ...]
    factors: tuple[float | None, ...]


@expresses(blend)
def write_resize(step: Step) -> Symbol:
    """Resizing along one dimension. Two steps for two dimensions of an image become one node."""
    x, dim, how = step.args[:3]
    if step.setting(3, False):
        raise NotExpressed("ONNX has no transpose of a resizing")
    attributes, out = attributes_of(how), step.out.shape[dim]
    if attributes is None or not takes(x, dim, attributes):
        return by_matrix(step, x, dim, how)
    made = Resizing(x, attributes, (dim,), (out,), (None if how[-1] is True else factor(how, out),))
    before = step.graph.same.get(("resizing", x.name))
    if before is not None and before.attributes == attributes and (None in before.factors) == (None in made.factors):
        made = Resizing(before.x, attributes, *[a + b for a, b in zip(made[2:], before[2:])])
    found = resized(made)
    step.graph.same["resizing", found.name] = made
    return found


def takes(x: Symbol, dim: int, attributes: dict[str, Any]) -> bool:
    """Whether onnxruntime resizes this input so."""
    mode = attributes["mode"]
    return mode == "nearest" or x.dtype.kind == "f" and (mode != "cubic" or x.ndim == 4 and dim > 1)


def resized(made: Resizing) -> Symbol:
    """The node of a resizing."""
    graph = made.x.graph
    inputs: list[Any] = [made.x, None, None, None]
    if None in made.factors:
        inputs[3] = graph.integers(made.sizes)
    else:
        inputs[2] = graph.constant(np.array(made.factors, np.float32))
    return graph.node("Resize", inputs, dtype=made.x.dtype, axes=[*made.dims], **made.attributes)


def attributes_of(how: tuple) -> dict[str, Any] | None:
    """The attributes of ONNX's Resize; None for a mode that ONNX lacks."""
    mode, *_, last = how
    if mode == "nearest":
        if last:
            return {"mode": "nearest", "nearest_mode": "round_prefer_ceil", "coordinate_transformation_mode": PIXELS}
        return {"mode": "nearest", "nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"}
    if mode == "linear":
        return {"mode": "linear", "coordinate_transformation_mode": CORNERS if last else PIXELS}
    if mode == "bicubic":
        return {"mode": "cubic", "cubic_coeff_a": -0.75, "coordinate_transformation_mode": CORNERS if last else PIXELS}
    return None


def factor(how: tuple, out: int | Size) -> float | None:
    """The scale factor that the user gave; None if the result's size decides the scale."""
    _, size, _, scale = how[:4]
    sizes = size.values if isinstance(size, Size) else (size,)
    outs = out.values if isinstance(out, Size) else (out,) * len(sizes)
    if isinstance(scale, Varying):
        return None
    by_size = not isinstance(out, Size) and all(abs(n / m - scale) < 1e-12 for n, m in zip(sizes, outs))
    return None if by_size else 1 / scale


def by_matrix(step: Step, x: Symbol, dim: int, how: tuple) -> Symbol:
    """A resizing of a fixed size as a product with the matrix of its weights."""
    if any(isinstance(part, (Size, Varying)) for part in how):
        raise NotExpressed("ONNX has no such resizing for a dynamic dimension")
    rows = table(tuple(how), False)
    matrix = np.zeros((rows.out, how[1]))
    for outs, places, weights in zip(rows.outs, rows.places, rows.weights):
        at = np.arange(rows.out) if outs is None else outs
        np.add.at(matrix, (at, places), 1.0 if weights is None else weights)
    if x.dtype.kind != "f":
        raise NotExpressed(f"ONNX does not resize {x.dtype.name} so")
    order = [d for d in range(x.ndim) if d != dim]
    turned = step.graph.transposed(x, [*order, dim])
    product = turned.named("MatMul", step.graph.constant(matrix.T.astype(x.dtype)))
    product.shape = (*turned.shape[:-1], rows.out)
    back = [*order, dim]
    return step.graph.transposed(product, np.argsort(back).tolist())


# -- sampling images at points -----------------------------------------------------------------------


@expresses(grid_sample.grid_position, grid_sample.grid_taps, grid_sample.bilinear)
def write_nothing(step: Step) -> Any:
    """The parts of grid_sample before `sampled`, which writes ONNX's operator for all of them."""
    reason = "a part of grid_sample is read"
    made: list[Any] = [step.graph.unwritten(r.dtype, r.shape, reason) for r in step.results]
    return made if len(made) > 1 else made[0]


@expresses(grid_sample.sampled)
def write_grid_sample(step: Step) -> Symbol:
    """x (N, C, S) -> (N, C, P): the image at points (N, P, n)."""
    x, _, at = step.args
    graph, taps = step.graph, step.made_by.get(at.name)
    if taps is None or not taps.runs(grid_sample.grid_taps):
        raise NotExpressed("its points come from no grid_sample")
    _, sizes, mode, padding, align = taps.args
    points = step.made_by[taps.args[0].name].args[0]
    if graph.opset >= 20:  # the modes have other names
        mode = mode.replace("bilinear", "linear").replace("bicubic", "cubic")
    image = graph.reshaped(x, [*x.shape[:2], *sizes[::-1]])
    places = graph.reshaped(points, [*points.shape[:2], *[1] * (len(sizes) - 1), len(sizes)])
    made = image.named(
        "GridSample", places, mode=mode, padding_mode=padding,
        align_corners=int(align),
    )  # fmt: skip
    return graph.reshaped(made, step.out.shape)
