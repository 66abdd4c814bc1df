"""Copies of views: `NAME_copy` clones the view; `NAME_scatter` clones the tensor and overwrites a view of the clone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.base.errors import not_implemented_error, runtime_error
from rushlight.base.memory_format import contiguous_format
from rushlight.core.tensor import Tensor
from rushlight.core.views import into
from rushlight.ops.composites import composite, given
from rushlight.ops.linalg.matmul_api import t
from rushlight.ops.math import complex as c
from rushlight.ops.shape import view_functions
from rushlight.ops.shape import views as s
from rushlight.ops.shape.as_strided import as_strided
from rushlight.ops.tensor.casts import clone, copy_, detach


def alias(input: Tensor) -> Tensor:
    return input


def expand(input: Tensor, size: Any, *, implicit: bool = False) -> Tensor:
    return s.expand(input, tuple(size))


def slice_of(input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    """The elements from start to end along `dim`, every `step`: a view."""
    if step <= 0:
        raise runtime_error("slice step must be positive")
    return s.getitem(
        input, (slice(None),) * view_functions.wrap(dim, input._array.ndim) + (slice(start, end, step), ...)
    )


VIEWS: dict[str, Callable] = {
    "alias": alias,
    "as_strided": as_strided,
    "detach": detach,
    "diagonal": s.diagonal,
    "expand": expand,
    "narrow": view_functions.narrow,
    "permute": s.permute,
    "select": s.select,
    "slice": slice_of,
    "split": view_functions.split_method,
    "split_with_sizes": view_functions.split_with_sizes,
    "squeeze": s.squeeze,
    "t": t,
    "transpose": s.transpose,
    "unbind": view_functions.unbind,
    "unfold": s.unfold_dim,
    "unsqueeze": s.unsqueeze,
    "view": view_functions.view,
    "view_as_complex": c.view_as_complex,
    "view_as_real": c.view_as_real,
}


def copied(view: Callable) -> Callable:
    """The function that clones the result of `view`, or each of its results."""

    def copy(input: Tensor, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        seen = view(input, *args, **kwargs)
        if isinstance(seen, Tensor):
            return given(out, clone(seen, memory_format=contiguous_format))
        several = tuple([clone(part, memory_format=contiguous_format) for part in seen])
        if out is None:
            return several
        into(tuple(out), several)  # torch returns None in this case
        return None

    return copy


def same_memory(input: Tensor) -> Tensor:
    """A copy whose strides address the same elements as in the input's memory. NotImplementedError if the memory has
    gaps.
    """
    made = clone(input)
    if made.stride() != input.stride() or input.storage_offset():
        raise not_implemented_error(
            "as_strided_scatter(): the input's memory must have no gaps",
            "call contiguous(), and use the strides of the result",
            strides=input.stride(),
        )
    return made


def scattered(view: Callable, name: str) -> Callable:
    """The function that clones a tensor and writes `src` to the view of the clone."""
    copy = same_memory if view is as_strided else clone

    def scatter(input: Tensor, src: Tensor, *args: Any, out: Tensor | None = None, **kwargs: Any) -> Tensor:
        made = copy(input)
        region = view(made, *args, **kwargs)
        if region._array.shape != src._array.shape:
            raise runtime_error(
                f"expected src to have a size equal to the slice of self. src size = {list(src.shape)}, slice "
                f"size = {list(region.shape)}",
                op=name,
            )
        copy_(region, src)
        return given(out, made)

    return scatter


class Parameters:
    """The `__wrapped__` of a function: `inspect.signature` finds the view's parameters there, computed on demand."""

    def __init__(self, view: Callable, *more: str):
        self.view, self.more = view, more

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.view(*args, **kwargs)

    @property
    def __signature__(self) -> Any:
        from inspect import Parameter, Signature, signature

        first, *rest = [p for p in signature(self.view).parameters.values() if p.name != "out"]
        between = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in self.more]
        first = Parameter("input", Parameter.POSITIONAL_OR_KEYWORD)
        return Signature([first, *between, *rest, Parameter("out", Parameter.KEYWORD_ONLY, default=None)])


def offer(function: Callable, name: str, says: str, method: bool, parameters: Parameters) -> None:
    function.__name__ = function.__qualname__ = name
    function.__wrapped__ = parameters  # type: ignore[attr-defined]
    function.__doc__ = says
    composite(name, tensor=method, looks=name.endswith("_scatter"))(function)


# The arguments in an example, for x of shape (2, 2).
CALLS = {
    "as_strided": ", (2,), (3,)",
    "expand": ", (3, 2, 2)",
    "narrow": ", 0, 0, 1",
    "permute": ", (1, 0)",
    "select": ", 0, 1",
    "slice": ", 0, 1",
    "split": ", 1",
    "split_with_sizes": ", [1, 1]",
    "transpose": ", 0, 1",
    "unfold": ", 0, 2, 1",
    "unsqueeze": ", 0",
    "view": ", (4,)",
}
SHOWN = {
    "as_strided": (2, "1., 0.", "0., 1."),
    "diagonal": (2, "1., 0.", "0., 1."),
    "select": (2, "0., 0.", "1., 1."),
    "slice": ("1, 2", "0., 0.", "1., 1."),
}

for name, view in VIEWS.items():
    dtype = ", dtype=rushlight.complex64" if name == "view_as_real" else ""
    first = "[0]" if name in ("split", "split_with_sizes", "unbind") else ""
    offer(
        copied(view),
        f"{name}_copy",
        f"""out = {name}(input, ...).clone(): the result of `{name}`, with its own memory.

    >>> x = rushlight.ones(2, 2{dtype})
    >>> made = rushlight.{name}_copy(x{CALLS.get(name, "")}){first}
    >>> made.data_ptr() == x.data_ptr()
    False
    """,
        name == "narrow",
        Parameters(view),
    )
for name, (size, *rows) in SHOWN.items():
    offer(
        scattered(VIEWS[name], f"{name}_scatter"),
        f"{name}_scatter",
        f"""out = input, but {name}(out, ...) = src; a copy. RuntimeError if src has another shape.

    >>> rushlight.{name}_scatter(rushlight.zeros(2, 2), rushlight.ones({size}){CALLS.get(name, "")})
    tensor([[{rows[0]}],
            [{rows[1]}]])
    """,
        True,
        Parameters(VIEWS[name], "src"),
    )
