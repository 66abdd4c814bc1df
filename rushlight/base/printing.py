"""Tensors as text, exactly as torch prints them.

A tensor becomes text in three steps: choose the shown elements (`_corners`), write each as a cell (`_cells`), nest the
cells in brackets (`_nested`). The cost depends on the shown elements, not on the size of the tensor.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from operator import index
from types import SimpleNamespace as _Options  # a NamedTuple would make the import slower
from typing import Any

import numpy as np

from rushlight.base.dtypes import bool_, complex64, complex128, dtype, float64, get_default_dtype, int64, of
from rushlight.base.errors import value_error

# -- options ---------------------------------------------------------------------------------------


_DEFAULT = _Options(precision=4, threshold=1000, edgeitems=3, linewidth=80, sci_mode=None)


def _with(options: _Options, **changes: Any) -> _Options:
    return _Options(**{**vars(options), **changes})


_PROFILES = {
    "default": _DEFAULT,
    "short": _with(_DEFAULT, precision=2, edgeitems=2),
    "full": _with(_DEFAULT, threshold=math.inf),
}

# set_printoptions applies to the whole process, as in torch: a context variable would not be seen by other threads and,
# with some versions of ipykernel, by the next notebook cell. `with printoptions()` applies to its context only.
_everywhere = _DEFAULT
_here: ContextVar[_Options | None] = ContextVar("rushlight.printoptions", default=None)


def set_printoptions(
    precision: int | None = None, threshold: float | None = None, edgeitems: int | None = None,
    linewidth: float | None = None, profile: str | None = None, sci_mode: bool | None = None,
) -> None:  # fmt: skip
    """Set how tensors print, for the whole process or until the end of a `with printoptions()` around the call.

    precision: digits after the point (4). threshold: tensors with more elements are summarised (1000), showing
    edgeitems (3) at both ends of each dimension. linewidth: the length of lines (80). sci_mode: scientific notation
    always (True), never (False), or depending on the values (None, also if omitted). profile: 'default', 'short'
    (precision 2, edgeitems 2) or 'full' (all elements); the profile is applied before the other options.

    ValueError for an unknown profile or a negative number.

    >>> rushlight.set_printoptions(precision=2)
    >>> rushlight.tensor([3.14159])
    tensor([3.14])
    >>> rushlight.set_printoptions(profile="default")
    """
    global _everywhere
    chosen = _changed(_options(), precision, threshold, edgeitems, linewidth, profile, sci_mode)
    if _here.get() is None:
        _everywhere = chosen
    else:
        _here.set(chosen)


def get_printoptions() -> dict[str, Any]:
    """The current options, as a dict for `set_printoptions(**options)`."""
    return dict(vars(_options()))


@contextmanager
def printoptions(**changes: Any) -> Iterator[None]:
    """Inside `with printoptions(...)`, tensors print with these options, in this thread or task only.

    >>> with printoptions(precision=2):
    ...     print(rushlight.tensor([3.14159]))
    tensor([3.14])
    """
    token = _here.set(_changed(_options(), **changes))
    try:
        yield
    finally:
        _here.reset(token)


def _options() -> _Options:
    return _here.get() or _everywhere


def _changed(
    options: _Options, precision: int | None = None, threshold: float | None = None, edgeitems: int | None = None,
    linewidth: float | None = None, profile: str | None = None, sci_mode: bool | None = None,
) -> _Options:  # fmt: skip
    if profile is not None and profile not in _PROFILES:
        raise value_error(f"set_printoptions(): there is no profile {profile!r}: choose one of " + ", ".join(_PROFILES))
    changes: dict[str, Any] = {"sci_mode": sci_mode}
    if precision is not None:
        changes["precision"] = _count("precision", precision)
    if edgeitems is not None:
        changes["edgeitems"] = _count("edgeitems", edgeitems)
    if threshold is not None:
        changes["threshold"] = threshold
    if linewidth is not None:
        changes["linewidth"] = int(min(linewidth, sys.maxsize))  # inf: everything in one line
    return _with(options if profile is None else _PROFILES[profile], **changes)


def _count(option: str, value: int) -> int:
    if index(value) < 0:
        raise value_error(f"set_printoptions(): {option} is {value}, but must be at least 0")
    return index(value)


# -- a tensor --------------------------------------------------------------------------------------


def format_tensor(
    array: np.ndarray, dtype: dtype, requires_grad: bool = False, grad_fn_name: str | None = None, *,
    prefix: str = "tensor", contents: str | None = None,
) -> str:  # fmt: skip
    """The repr of a tensor with these elements, equal to torch's.

    dtype: the tensor's. grad_fn_name: the name of the node that made it, such as 'AddBackward0'. prefix: the name of a
    subclass. contents: text in place of the elements.

    >>> format_tensor(np.float32([1, 2.5]), rushlight.float32, grad_fn_name="AddBackward0")
    'tensor([1.0000, 2.5000], grad_fn=<AddBackward0>)'
    """
    options = _options()
    indent = len(prefix) + 1
    if contents is None:
        contents = _contents(array, dtype, indent, options) if isinstance(array, np.ndarray) else "..."
    suffixes = [*_suffixes_of_data(array, dtype, options)]
    if grad_fn_name is not None:
        suffixes.append(f"grad_fn=<{grad_fn_name}>")
    elif requires_grad:
        suffixes.append("requires_grad=True")
    return _with_suffixes(f"{prefix}({contents}", suffixes, indent, options.linewidth)


def format_sparse(
    arrays: dict[str, np.ndarray], size: tuple[int, ...], nnz: int, requires_grad: bool = False,
    grad_fn_name: str | None = None, layout: str = "torch.sparse_coo",
) -> str:  # fmt: skip
    """The repr of a sparse tensor with these parts (the values come last), equal to torch's."""
    options, indent = _options(), len("tensor(")
    parts = []
    for name, array in arrays.items():
        prefix = f"{name}=tensor("
        body = _contents(array, of(array.dtype), indent + len(prefix), options)
        parts.append(prefix + body + (f", size={array.shape}" if array.size == 0 else "") + ")")
    suffixes, values = [f"nnz={nnz}"], arrays["values"]
    if of(values.dtype) not in (get_default_dtype(), complex64, int64, bool_):
        suffixes.append(f"dtype={of(values.dtype)}")
    suffixes.append(f"layout={layout}")
    if grad_fn_name is not None or requires_grad:
        suffixes.append(f"grad_fn=<{grad_fn_name}>" if grad_fn_name is not None else "requires_grad=True")
    if layout == "torch.sparse_coo":
        parts.append(f"size={size}")  # on a separate line
    else:
        suffixes.insert(0, f"size={size}")
    return _with_suffixes("tensor(" + (",\n" + " " * indent).join(parts), suffixes, indent, options.linewidth)


def format_parameter(
    array: np.ndarray, dtype: dtype, requires_grad: bool = True, grad_fn_name: str | None = None
) -> str:
    """The repr of an `nn.Parameter` with these elements, equal to torch's."""
    return "Parameter containing:\n" + format_tensor(array, dtype, requires_grad, grad_fn_name)


def _suffixes_of_data(array: np.ndarray, dtype: dtype, options: _Options) -> Iterator[str]:
    """The suffixes for size and dtype, unless the elements show them."""
    default = get_default_dtype()
    if not isinstance(array, np.ndarray):  # on the device "meta": no elements
        yield f"device='{array.device}'"
        obvious = False, dtype is default
    elif array.size == 0:
        obvious = array.ndim == 1, dtype is default
    else:
        shown = default, complex128 if default is float64 else complex64, int64, bool_
        obvious = options.edgeitems > 0, dtype in shown
    if not obvious[0]:
        yield f"size={array.shape}"
    if not obvious[1]:
        yield f"dtype={dtype}"


def _with_suffixes(text: str, suffixes: Iterable[str], indent: int, linewidth: int) -> str:
    used = len(text) - text.rfind("\n") + 1  # width of the last line plus 2, like torch
    for suffix in suffixes:
        if used + len(suffix) + 2 > linewidth:
            text += ",\n" + " " * indent + suffix
            used = indent + len(suffix)
        else:
            text += ", " + suffix
            used += len(suffix) + 2
    return text + ")"


def elements_of(array: np.ndarray, dtype: dtype, indent: int) -> str:
    """The elements in brackets, without "tensor(" and suffixes."""
    return _contents(array, dtype, indent, _options())


def _contents(array: np.ndarray, dtype: dtype, indent: int, options: _Options) -> str:
    """The elements in brackets, for a prefix of `indent` characters."""
    if array.size == 0:
        return "[]"
    shown = array
    if array.size > options.threshold and array.ndim > 0:
        if options.edgeitems == 0:
            return "[...]"
        shown = _corners(array, options.edgeitems)
    cells, width = _cells(shown, dtype, options)
    last = array.ndim - 1
    # a cell is followed by ", "
    per_line = max(1, (options.linewidth - indent - last) // (width + 2))
    return _nested(cells, shown.shape, array.shape, indent, per_line)


def _corners(array: np.ndarray, edge: int) -> np.ndarray:
    """The array with each dimension longer than 2 edge cut to its first and last `edge` elements."""
    places = [[*range(edge), *range(n - edge, n)] if n > 2 * edge else range(n) for n in array.shape]
    return array if array.shape == tuple(map(len, places)) else array[np.ix_(*places)]


def _nested(texts: list[str], shape: tuple[int, ...], full: tuple[int, ...], indent: int, per_line: int) -> str:
    """Cells of shape `shape` in brackets, with "..." in dimensions that are longer in the shape `full`."""
    last = len(shape) - 1
    for dim in range(last, -1, -1):  # inside out: each round replaces the texts of a dimension by one text
        groups = _chunks(texts, shape[dim])
        if full[dim] > shape[dim]:
            edge = shape[dim] // 2
            gap = " ..." if dim == last else "..."
            groups = [[*group[:edge], gap, *group[edge:]] for group in groups]
        if dim == last:
            groups = [[", ".join(line) for line in _chunks(group, per_line)] for group in groups]
        between = "," + "\n" * max(1, last - dim) + " " * (indent + dim + 1)
        texts = [f"[{between.join(group)}]" for group in groups]
    return texts[0]


def _chunks(items: list[str], size: int) -> list[list[str]]:
    return [items[start : start + size] for start in range(0, len(items), size)]


# -- elements --------------------------------------------------------------------------------------


def _cells(shown: np.ndarray, dtype: dtype, options: _Options) -> tuple[list[str], int]:
    """(the elements as texts in C order, the width of a cell for breaking lines)."""
    values = shown.reshape(-1)
    if dtype.is_complex:
        return _complex_cells(values, options)
    if dtype.is_floating_point:
        return _float_cells(values, options)
    texts = [str(value) for value in values.tolist()]
    width = max(map(len, texts))
    return [text.rjust(width) for text in texts], width


def _complex_cells(values: np.ndarray, options: _Options) -> tuple[list[str], int]:
    real, real_width = _float_cells(values.real, options)
    imag, imag_width = _float_cells(values.imag, options)
    signed = [text if text[0] == "-" else "+" + text for text in map(str.lstrip, imag)]
    return [f"{a}{b}j" for a, b in zip(real, signed)], real_width + imag_width + len("j")


def _float_cells(values: np.ndarray, options: _Options) -> tuple[list[str], int]:
    values = values.astype(np.float64)  # (n,), exact
    measured = np.isfinite(values) & (values != 0)
    spec, point = _style(np.abs(values[measured]), options)
    texts = [format(value, spec) for value in values.tolist()]
    if point:
        # append the point, except after inf and nan
        texts = [text if text[-1] in "fn" else text + "." for text in texts]
    # Zeros, infinities and nans do not affect the width, and may be wider, as in torch.
    width = max((len(text) for text, counts in zip(texts, measured.tolist()) if counts), default=1)
    return [text.rjust(width) for text in texts], width


def _style(magnitudes: np.ndarray, options: _Options) -> tuple[str, bool]:
    """(format specification for elements of these magnitudes, whether a point is appended)."""
    if magnitudes.size == 0:
        return ".0f", True
    scientific = options.sci_mode
    if scientific is None:
        low, high = float(magnitudes.min()), float(magnitudes.max())
        scientific = high / low > 1000 or high > 1e8 or low < 1e-4
    if scientific:
        return f".{options.precision}e", False
    if (magnitudes == np.ceil(magnitudes)).all():
        return ".0f", True
    return f".{options.precision}f", False
