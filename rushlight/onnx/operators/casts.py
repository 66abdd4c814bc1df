"""Casts between element types; types that tensors lack are NumPy arrays of ml_dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

import rushlight as torch
from rushlight import Tensor
from rushlight.onnx.tensors import CODES, has_tensors, numpy_type

from .table import Value, operator


def torch_type(code: int) -> Any:
    """torch's dtype for ONNX's code of an element type; None if tensors lack it."""
    dtype = numpy_type(code)
    return getattr(torch, dtype.name) if has_tensors(dtype) else None


def element_type(x: Any) -> np.dtype:
    """NumPy's dtype of a tensor or an array."""
    return numpy_type(CODES[str(x.dtype).removeprefix("torch.")])


@operator("Cast")
def cast(x: Value, *, to: int, saturate: int = 1, round_mode: str = "up") -> Any:
    """x in another element type."""
    return converted(x, numpy_type(to), saturate, round_mode)


@operator("CastLike")
def cast_like(x: Value, like: Value, *, saturate: int = 1, round_mode: str = "up") -> Any:
    """x in the element type of `like`."""
    if isinstance(x, Tensor) and isinstance(like, Tensor):
        return x.to(like.dtype)
    return converted(x, element_type(like), saturate, round_mode)


@operator("BitCast")
def bit_cast(x: Value, *, to: int) -> Any:
    """The bits of x as another element type of the same size."""
    if isinstance(x, Tensor) and (dtype := torch_type(to)) is not None:
        return x.view(dtype)
    return (x.detach().numpy() if isinstance(x, Tensor) else x).view(numpy_type(to))


def converted(x: Any, to: np.dtype, saturate: int, round_mode: str) -> Any:
    """A tensor or an array in another element type."""
    if isinstance(x, Tensor):
        if has_tensors(to):
            return x.to(getattr(torch, to.name))
        x = x.detach().numpy()
    return cast_array(x, to, saturate, round_mode)


def cast_array(x: np.ndarray, to: np.dtype, saturate: int = 1, round_mode: str = "up") -> np.ndarray:
    """An array in another element type. Small floating types saturate: large numbers become the largest finite one."""
    if to.kind == "O":
        return as_texts(x)
    if x.dtype.kind == "O":
        return from_texts(x, to)
    if to.name.startswith("float8_e8m0"):
        return powers_of_two(x, to, saturate, round_mode)
    if to.name.startswith(("float8", "float4")):
        return small_floats(x, to, saturate)
    if to.name in ("int4", "uint4", "int2", "uint2"):
        bits = int(to.name[-1])
        whole = np.trunc(x.astype(np.float32)).astype(np.int64) if x.dtype.kind not in "biu" else x.astype(np.int64)
        whole = whole & ((1 << bits) - 1)
        return (
            np.where(whole >> (bits - 1) & (to.name[0] == "i"), whole - (1 << bits), whole).astype(np.int8).astype(to)
        )
    return x.astype(to)


def small_floats(x: np.ndarray, to: np.dtype, saturate: int) -> np.ndarray:
    """An array in float8 or float4."""
    import ml_dtypes

    wide = x.astype(np.float32)
    if not saturate and not to.name.startswith("float4"):
        return wide.astype(to)
    limit = np.float32(ml_dtypes.finfo(to).max)
    inside = np.clip(wide, -limit, limit)
    return np.where(np.isnan(wide), wide, inside).astype(to)


def powers_of_two(x: np.ndarray, to: np.dtype, saturate: int, round_mode: str) -> np.ndarray:
    """An array in float8_e8m0fnu, whose numbers are 2 ** e for e from -127 to 127."""
    wide = np.abs(x.astype(np.float32)).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        e = np.log2(wide)
    match round_mode:
        case "up":
            e = np.ceil(e)
        case "down":
            e = np.floor(e)
        case _:  # the nearest power, upwards from the middle of two powers
            low = np.floor(e)
            e = np.where(wide >= 1.5 * np.exp2(low), low + 1, low)
    bad = np.isnan(wide) | (np.isinf(wide) & (not saturate)) | ((e > 127) & (not saturate))
    codes = np.where(bad, 255, np.clip(np.nan_to_num(e, nan=0, posinf=127, neginf=-127), -127, 127) + 127)
    return codes.astype(np.uint8).view(to)


def as_texts(x: np.ndarray) -> np.ndarray:
    """Numbers as strings, in as few digits as give the number back."""
    if x.dtype.kind == "f":
        texts = [np.format_float_positional(v, trim="-") if np.isfinite(v) else text_of(v) for v in x.reshape(-1)]
    else:
        texts = [str(v) for v in x.reshape(-1).tolist()]
    return np.array([*texts, None], object)[:-1].reshape(x.shape)


def text_of(value: Any) -> str:
    return "NaN" if np.isnan(value) else "INF" if value > 0 else "-INF"


def from_texts(x: np.ndarray, to: np.dtype) -> np.ndarray:
    """The numbers of strings."""
    made = [float(text) if to.kind == "f" or to.kind not in "biu" else int(text) for text in x.reshape(-1)]
    return np.array(made, np.float64 if to.kind not in "biu" else to).astype(to).reshape(x.shape)
