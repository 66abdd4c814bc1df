"""Functions of shapes, composed of ops, with torch's signatures: splitting, stacking, moving dimensions, repeating."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any
from weakref import ref

import numpy as np

from rushlight.base import dtypes
from rushlight.base.errors import index_error, runtime_error, type_error, value_error
from rushlight.base.intp import as_intp
from rushlight.core.arguments import as_tuple, integer, integers, op_errors, sizes, wrap
from rushlight.core.mode import mode
from rushlight.core.tensor import Tensor, created, from_array, method
from rushlight.core.views import detached, first_views, forget_lost, into, register, unregistered, views_of
from rushlight.kernels.shape import keys_of
from rushlight.ops.composites import composite
from rushlight.ops.shape import views as s
from rushlight.ops.tensor.node_names import called

ONLY_TENSORS = frozenset((Tensor,))


def several(tensors: Any, name: str) -> Any:
    """The argument if it is a list or tuple of tensors. TypeError for anything else."""
    if isinstance(tensors, Tensor):
        raise type_error(
            f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor",
            "give a list, or use unbind()",
        )
    if ONLY_TENSORS.issuperset(map(type, tensors)):
        return tensors
    for i, t in enumerate(tensors):
        if not isinstance(t, Tensor):
            what = "None" if t is None else type(t).__name__
            raise type_error(
                f"{name}(): expected Tensor as element {i} in argument 0, but got {what}",
                "make it a tensor: torch.tensor(...)",
            )
    return tensors


@composite("cat", "concat", "concatenate", tensor=False)
def cat(tensors: Sequence[Tensor], dim: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Tensors joined along an existing dimension; empty vectors are ignored. dtypes promote.

    ValueError without tensors, RuntimeError if other sizes differ.

    >>> rushlight.cat([rushlight.ones(1, 2), rushlight.zeros(2, 2)])
    tensor([[1., 1.],
            [0., 0.],
            [0., 0.]])
    """
    if not len(several(tensors, "cat")):
        raise value_error("cat(): expected a non-empty list of Tensors")
    made = s.cat(tensors, dim)
    return made if out is None else into(out, made, *tensors)


@composite(tensor=False)
def stack(tensors: Sequence[Tensor], dim: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Tensors of one size joined along a new dimension. dtypes promote; RuntimeError if sizes differ.

    >>> rushlight.stack([rushlight.tensor([1, 2]), rushlight.tensor([3, 4])], 1)
    tensor([[1, 3],
            [2, 4]])
    """
    if not len(several(tensors, "stack")):
        raise runtime_error("stack expects a non-empty TensorList")
    return s.stack(tensors, dim, out=out)


def register_all(made: Sequence[Tensor], parent: Tensor, replay: Callable, keys: Iterable) -> None:
    """Register several views, each `replay(parent, key)`, without a call of `register` per view."""
    root = parent if parent._viewing is None else parent._viewing[0]
    recorded = mode().grad
    for view, key in zip(made, keys):
        view._viewing = (root, parent, replay, (key,), recorded)
    try:
        views = views_of(root)
    except AttributeError:
        views = first_views(root)
    before = len(views)
    views.extend(map(ref, made))
    if len(views) > 16 and len(views).bit_length() > before.bit_length():
        forget_lost(views)


def pieces(made: tuple, input: Tensor, keys: Sequence[tuple]) -> tuple[Tensor, ...]:
    """Outputs of one node, each a view of a part of the input."""
    register_all(made, input, s.getitem, keys)
    return made


@composite()
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The slices along `dim`, without it: views.

    >>> rushlight.unbind(rushlight.tensor([[1, 2], [3, 4]]), 1)
    (tensor([1, 3]), tensor([2, 4]))
    """
    if not input._array.ndim:
        raise index_error(f"Dimension specified as {dim} but tensor has no dimensions", "reshape(1) it first")
    dim = wrap(dim, input._array.ndim)
    lead = (slice(None),) * dim
    return pieces(s.unbind(input, dim), input, [(*lead, i, ...) for i in range(input._array.shape[dim])])


@composite()
def split(tensor: Tensor, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts of the given size (the last may be smaller), or of the given sizes, along `dim`: views.

    >>> rushlight.split(rushlight.arange(5), 2)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    dim = wrap(dim, tensor._array.ndim)
    return parts(tensor, split_lengths(tensor._array.shape[dim], split_size_or_sections), dim)


def parts(x: Tensor, lengths: tuple[int, ...], dim: int) -> tuple[Tensor, ...]:
    """Views of these lengths along `dim`, which counts from the front."""
    return pieces(s.split_sizes(x, lengths, dim), x, keys_of(lengths, dim))


def split_method(self: Tensor, split_size: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts of the given size (the last may be smaller), or of the given sizes, along `dim`: views."""
    return split(self, split_size, dim)


method(split_method, "split")


@composite()
def split_with_sizes(input: Tensor, split_sizes: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """input = cat(parts): parts of the given sizes along `dim`, views. RuntimeError if they do not add up to the
    dimension.

    >>> rushlight.split_with_sizes(rushlight.arange(5), [1, 4])
    (tensor([0]), tensor([1, 2, 3, 4]))
    """
    return split(input, tuple(split_sizes), dim)


def split_lengths(n: int, size_or_sizes: Any) -> tuple[int, ...]:
    """The lengths of the parts when a dimension of length n is split."""
    several = size_or_sizes.__class__ is not int and isinstance(size_or_sizes, Iterable)
    if several and getattr(size_or_sizes, "ndim", 1) > 0:
        return sizes(size_or_sizes)
    step = integer(size_or_sizes, "split_size")
    if step < 0 or (step == 0 and n):
        raise runtime_error(f"split expects split_size be non-negative, but got split_size={step}")
    return tuple([min(step, n - i) for i in range(0, n, step)]) if n else (0,)


def chunk_lengths(n: int, chunks: int) -> tuple[int, ...]:
    """The lengths of the parts when `chunk` splits a dimension of length n."""
    chunks = integer(chunks, "chunks")
    if chunks <= 0:
        raise runtime_error("chunk expects `chunks` to be greater than 0, got: " + str(chunks))
    return split_lengths(n, max(-(-n // chunks), 1) if n else [0] * chunks)


@composite()
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """input = cat(chunks): at most `chunks` parts of equal size (the last may be smaller) along `dim`, views.

    >>> rushlight.chunk(rushlight.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    """
    dim = wrap(dim, input._array.ndim)
    return parts(input, chunk_lengths(input._array.shape[dim], chunks), dim)


def view(input: Tensor, *shape: Any, size: Any = None, dtype: dtypes.dtype | None = None) -> Tensor:
    """The same memory in another shape (-1: the size that remains), or with another dtype; never a copy (RuntimeError).

    >>> x = rushlight.arange(6)
    >>> x.view(2, -1), x.view(2, 3).data_ptr() == x.data_ptr()
    (tensor([[0, 1, 2],
            [3, 4, 5]]), True)
    """
    if dtype is not None or (len(shape) == 1 and isinstance(shape[0], dtypes.dtype)):
        return seen_as(input, shape[0] if dtype is None else dtype)
    return s.view_as_shape(input, *(shape if size is None else (size,)))


def seen_as(input: Tensor, dtype: dtypes.dtype) -> Tensor:
    """The same bytes as elements of another dtype, which have no gradient."""
    if dtype is input.dtype:
        return input
    a = input._array
    what = unlike(input, dtype.itemsize // a.itemsize) if dtype.itemsize != a.itemsize else None
    if what is not None:
        raise runtime_error(
            f"{what[0]} to view {input.dtype.scalar_type} as {dtype.scalar_type} (different element sizes){what[1]}",
            "use .to(dtype) to convert the numbers",
            shape=list(a.shape),
        )
    t = from_array(a.view(dtype.numpy))
    register(t, input, seen_as, (dtype,))
    return t


def unlike(x: Tensor, times: int) -> tuple[str, str] | None:
    """The condition that x violates if it is viewed as a dtype of `times` the element size (0: of a smaller size), and
    the text of x's value. None if the view is possible.
    """
    if not x._array.ndim:
        return "self.dim() cannot be 0", ""
    steps = x.stride()
    if steps[-1] != 1:
        return "self.stride(-1) must be 1", f", but got {steps[-1]}"
    if times:
        for what, n in (
            ("size(-1)", x._array.shape[-1]),
            ("storage_offset()", x.storage_offset()),
            *((f"stride({d})", step) for d, step in enumerate(steps[:-1])),
        ):
            if n % times:
                return f"self.{what} must be divisible by {times}", f", but got {n}"
    return None


@composite()
def narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """The part of `length` elements from `start` on along `dim`, a view; `start` may count from the end.

    >>> rushlight.narrow(rushlight.arange(5), 0, 1, 2)
    tensor([1, 2])
    """
    if isinstance(start, Tensor):
        if start._array.ndim or start._array.dtype.kind not in "iu":
            raise runtime_error("start must be an 0-dim integral Tensor.", "give an int")
        start = start.item()
    return s.narrow(input, dim, start, length)


@composite()
def unflatten(input: Tensor, dim: int, sizes: Any) -> Tensor:
    """Split the dimension `dim` into dimensions of the given sizes, of which one may be -1. A view if possible.

    >>> rushlight.unflatten(rushlight.zeros(2, 6), 1, (2, -1)).shape
    torch.Size([2, 2, 3])
    """
    return s.unflatten(input, dim, sizes)


method(view, "view")


@composite(function=False)
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """out = input.view(other.shape): the same memory in the shape of another tensor.

    >>> rushlight.arange(4).view_as(rushlight.zeros(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    return s.view_as_shape(input, other._array.shape)


def alias(self: Tensor) -> Tensor:
    """A view of the whole tensor, in the graph."""
    return called(view_as(self, self), "AliasBackward0")


def as_subclass(self: Tensor, cls: type) -> Any:
    """The same memory, in the graph, as a tensor of a user's class, which functions preserve
    (ops/tensor/torch_function.py).
    """
    if not issubclass(cls, Tensor):
        raise type_error(
            "Creating a Tensor subclass from a class that does not inherit from Tensor is not possible. Make sure "
            "your class inherits from Tensor.",
            cls=cls,
        )
    made = alias(self)
    made.__class__ = cls
    return made


def _make_subclass(cls: type, data: Tensor, require_grad: bool = False) -> Any:
    """The same memory, outside the graph, as a tensor of a user's class."""
    made = detached(data)
    made.__class__ = cls
    return made.requires_grad_(require_grad)


method(as_subclass)
method(staticmethod(_make_subclass), "_make_subclass")


@composite(function=False)
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """out = input.reshape(other.shape).

    >>> rushlight.arange(4).reshape_as(rushlight.zeros(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    return s.reshape(input, other._array.shape)


@composite(function=False)
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """out = input.expand(other.shape): repeated to another tensor's shape, without a copy.

    >>> rushlight.tensor([[1.], [2.]]).expand_as(rushlight.zeros(2, 3))
    tensor([[1., 1., 1.],
            [2., 2., 2.]])
    """
    return s.expand(input, other._array.shape)


@composite()
def broadcast_to(input: Tensor, size: Any) -> Tensor:
    """out[i] = input[i], or input[0] along dimensions of 1: the tensor repeated to `size`, a view.

    >>> rushlight.broadcast_to(rushlight.tensor([[1.], [2.]]), (2, 3))
    tensor([[1., 1., 1.],
            [2., 2., 2.]])
    """
    return s.expand(input, sizes(size))


@composite(tensor=False)
def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """(x, y, ...) repeated to their common shape: views, or the tensors themselves. RuntimeError if there is no common
    shape.

    >>> x, y = rushlight.broadcast_tensors(rushlight.zeros(3, 1), rushlight.zeros(2))
    >>> x.shape, y.shape
    (torch.Size([3, 2]), torch.Size([3, 2]))
    """
    ts = tensors[0] if len(tensors) == 1 and not isinstance(tensors[0], Tensor) else tensors
    try:
        shape = np.broadcast_shapes(*(t._array.shape for t in ts))
    except ValueError:
        raise runtime_error(op_errors().mismatch(ts), "make them equal, or 1", op="broadcast_tensors") from None
    return tuple(t if t._array.shape == shape else s.expand(t, shape) for t in ts)


@composite()
def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """Move the dimensions at `source` to `destination`; the others keep their order.

    >>> rushlight.movedim(rushlight.zeros(2, 3, 4), 0, -1).shape
    torch.Size([3, 4, 2])
    """
    n = input._array.ndim
    if source.__class__ is destination.__class__ is int and n:
        order = list(range(n))
        order.insert(wrap(destination, n), order.pop(wrap(source, n)))
        return s.permute(input, tuple(order))
    given = [as_tuple(d) for d in (source, destination)]
    if len(given[0]) != len(given[1]):
        raise runtime_error(
            f"movedim: Invalid source or destination dims: source ({list(given[0])} dims) should contain the same "
            f"number of dims as destination ({list(given[1])} dims)"
        )
    a, b = (tuple([wrap(d, n) for d in dims]) for dims in given)
    for name, dims, found in zip(("source", "destination"), given, (a, b)):
        if len(set(found)) < len(found):
            raise runtime_error(f"movedim: repeated dim in `{name}` ({list(dims)})")
    if not n:
        return s.permute(input, ())
    rest = iter(d for d in range(n) if d not in a)
    return s.permute(input, tuple(a[b.index(d)] if d in b else next(rest) for d in range(n)))


composite("moveaxis")(movedim)


@composite(looks=True)
def repeat_interleave(
    input: Any = None, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """out = x_0, x_0, ..., x_1, x_1, ...: each element (or slice along `dim`) `repeats` times in a row.

    `repeats`: one number, or a tensor with a number for each element. If a tensor of repeats is the only argument, the
    indices 0, 1, ... are repeated.

    >>> x = rushlight.tensor([1, 2, 3])
    >>> rushlight.repeat_interleave(x, 2), rushlight.repeat_interleave(x, rushlight.tensor([0, 1, 2]))
    (tensor([1, 1, 2, 2, 3, 3]), tensor([2, 3, 3]))
    """
    if repeats is None or input is None:
        repeats = input if repeats is None else repeats
        input = created(from_array(np.arange(repeats._array.size, dtype=repeats._array.dtype)))
    if output_size is not None:
        integer(output_size, "output_size")
    if isinstance(repeats, Tensor) and repeats._array.dtype.char not in "ilq":
        raise runtime_error("repeats has to be Long or Int tensor", "repeats.long()")
    if not isinstance(repeats, (Tensor, list, tuple)):
        integer(repeats, "repeats")
    from_all = dim is None
    x = s.flatten(input) if from_all else input
    d = 0 if from_all else wrap(dim, input._array.ndim)
    times = np.asarray(repeats)  # reading a tensor's values is reported to a watcher
    if times.ndim and times.shape[0] not in (1, x._array.shape[d]):
        raise runtime_error(
            f"repeats must have the same size as input along dim, but got repeats.size(0) = {times.shape[0]} and "
            f"input.size({d}) = {x._array.shape[d]}",
            "pass one number, or one for each element",
        )
    if times.size and times.min() < 0:
        raise runtime_error("Repeats must be non-negative", f"the least is {times.min()}")
    if not times.ndim and not isinstance(repeats, Tensor):
        shape = (*x._array.shape[: d + 1], int(times), *x._array.shape[d + 1 :])
        whole = (*shape[:d], shape[d] * shape[d + 1], *shape[d + 2 :])
        return s.reshape(s.contiguous(s.expand(s.unsqueeze(x, d + 1), shape)), whole)
    places = np.repeat(np.arange(x._array.shape[d]), as_intp(times))
    return x.index_select(d, created(from_array(places)))


@composite()
def tile(input: Tensor, *repeats: Any, dims: Any = None) -> Tensor:
    """out = input, input, ...: the tensor repeated `dims` times along its last dimensions.

    >>> rushlight.tile(rushlight.tensor([1, 2]), (2, 2))
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    given = repeats if dims is None else (dims,)
    times = sizes(given[0] if len(given) == 1 and isinstance(given[0], Iterable) else given)
    return s.repeat(input, (1,) * (input._array.ndim - len(times)) + times)


@composite()
def roll(input: Tensor, shifts: Any, dims: Any = None) -> Tensor:
    """out[(i + shifts) mod n] = input[i] along `dims`: elements shifted beyond one end reappear at the other.

    >>> rushlight.roll(rushlight.arange(5), 2)
    tensor([3, 4, 0, 1, 2])
    """
    moves = integers(shifts, "shifts")
    if not moves:
        raise runtime_error("`shifts` required")
    if dims is None or dims == ():
        if len(moves) > 1:
            raise runtime_error(f"shifts and dimensions must align. shifts: {len(moves)}, dims:0")
        return called(unregistered(s.reshape(roll(s.flatten(input), shifts, 0), input._array.shape)), "RollBackward0")
    along = as_tuple(dims)
    if len(along) != len(moves):
        raise runtime_error(f"shifts and dimensions must align. shifts: {len(moves)}, dims:{len(along)}")
    if not input._array.ndim:
        raise index_error(f"Dimension specified as {along[0]} but tensor has no dimensions")
    return s.rolled(input, moves, tuple([wrap(d, input._array.ndim) for d in along]))
