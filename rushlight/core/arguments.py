"""Arguments before an op runs: binding, dimensions, numbers, promotion; and ops on arguments without arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from numbers import Number
from operator import index
from typing import Any

import numpy as np
from numpy import ndarray

from rushlight.base import dtypes
from rushlight.base.errors import (
    NoArray,
    describe,
    not_implemented_error,
    out_of_range,
    runtime_error,
    type_error,
    unexpected,
)
from rushlight.base.higher import Higher
from rushlight.base.placeholder import Touched
from rushlight.core.mode import mode
from rushlight.core.table import FLOATING, NUMPY, PUBLIC, Op
from rushlight.core.tensor import Tensor, created, from_array, holder
from rushlight.core.views import filled
from rushlight.core.worlds import TENSORS

op_errors = Higher()  # the words of errors: rushlight/ops/op_errors.py

# -- dimensions ------------------------------------------------------------------------------------


def wrap(dim: Any, ndim: int) -> int:
    """A dimension counted from the front. IndexError outside; a 0-d tensor has 0 and -1."""
    n = ndim or 1
    if dim.__class__ is bool:  # x.sum(True) means keepdim, x.sort(True) descending
        raise type_error(f"argument 'dim' must be int, not bool: {dim}", "name it: keepdim=True, descending=True")
    dim = integer(dim, "dim")
    if not -n <= dim < n:
        raise out_of_range(dim, n)
    return dim % n


def integer(value: Any, name: str) -> int:
    """The argument `name` as a Python int. TypeError if it is of another kind, such as a word."""
    try:
        return index(value)
    except TypeError:
        what = f"argument '{name}' must be int, not {type(value).__name__}"
        raise type_error(what, got=describe(value)) from None


def wrap_new(dim: Any, ndim: int) -> int:
    """The position of a dimension that the op will insert."""
    return wrap(dim, ndim + 1)


def as_tuple(numbers: Any) -> tuple:
    """A tuple of one number or of several; a 0-d tensor is one number."""
    if numbers.__class__ is int:  # 0.1 us; `isinstance(numbers, Iterable)` takes 0.4
        return (numbers,)
    if numbers.__class__ is tuple:
        return numbers
    several = isinstance(numbers, Iterable) and getattr(numbers, "ndim", None) != 0
    return tuple(numbers) if several else (numbers,)


def wrap_dims(dims: Any, ndim: int) -> tuple[int, ...]:
    """One or several dimensions, counted from the front. RuntimeError for a repeated dimension."""
    n = ndim or 1
    found = tuple([d if d.__class__ is int and 0 <= d < n else wrap(d, ndim) for d in as_tuple(dims)])
    if len(found) > 1 and len(set(found)) < len(found):
        twice = next(d for d in found if found.count(d) > 1)
        raise runtime_error(f"dim {twice} appears multiple times in the list of dims", dims=tuple(dims))
    return found


def reduced_dims(dim: Any, ndim: int, empty: tuple | None = None) -> tuple[int, ...] | None:
    """The dimensions to reduce; None for all. An empty list means all, or with `empty` none."""
    if dim is None:
        return None
    if dim.__class__ is int and ndim:
        return (dim,) if 0 <= dim < ndim else (wrap(dim, ndim),)
    if not as_tuple(dim):
        return empty
    dims = wrap_dims(dim, ndim)
    return dims if ndim else ()


def reordered(dims: Any, ndim: int) -> tuple[int, ...]:
    """All dimensions, counted from the front, in another order; else RuntimeError."""
    dims = as_tuple(dims)
    if len(dims) != ndim:
        raise runtime_error(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the "
            f"desired ordering of dimensions i.e. input.dim() = {ndim} is not equal to len(dims) = {len(dims)}",
            f"name each of the {ndim} dimensions once",
        )
    return wrap_dims(dims, ndim)


def integers(numbers: Any, name: str) -> tuple[int, ...]:
    """The argument `name`, one number or several, as Python ints of either sign."""
    return tuple([integer(n, name) for n in as_tuple(numbers)])


def sizes(shape: Any, ndim: int = 0) -> tuple[int, ...]:
    """A shape as Python ints."""
    given = shape if shape.__class__ is tuple else as_tuple(shape)
    return tuple([n if n.__class__ is int and n >= -1 else size(n) for n in given])


def size(n: Any) -> int:
    """One size of a shape. RuntimeError if it is negative and not -1, the size that remains."""
    n = integer(n, "size")
    if n < -1:
        raise runtime_error(f"invalid shape dimension {n}", "-1 stands for the remaining size")
    return n


# The name of a setting -> its normal form: (value, number of dimensions) -> value. vmap shifts the dimensions by these
# roles, too.
ROLES: dict[str, Callable[[Any, int], Any]] = {
    "dim": wrap,
    "dim0": wrap,
    "dim1": wrap,
    "start_dim": wrap,
    "end_dim": wrap,
    "new_dim": wrap_new,
    "dims": wrap_dims,
    "new_order": reordered,
    "shape": sizes,
}


def binder(op: Op) -> Callable[[Sequence, dict], tuple]:
    """(args, kwargs) of the user's call -> the arguments in the order of the entry."""
    names = op.inputs + op.settings
    order = op.options.get("order", " ".join(names)).split()  # as the user gives them
    place = [names.index(name) for name in order]
    public = {**PUBLIC, **op.options.get("names", {})}
    position = {n: i for i, n in enumerate(names)} | {public.get(name, name): i for i, name in enumerate(names)}
    missing = object()
    template = [op.defaults.get(name, missing) for name in names]
    variadic = op.options.get("variadic")
    gather_at = order.index(variadic) if variadic else len(names)
    roles = [
        (i, ROLES[name], name in op.defaults) for i, name in enumerate(names) if name in ROLES and i >= len(op.inputs)
    ]
    short = short_way(op, names)

    def bind(args: Sequence, kwargs: dict) -> tuple:
        if short is not None and not kwargs and (found := short(args)) is not None:
            return found
        if variadic and len(args) > gather_at and not isinstance(args[gather_at], (tuple, list)):
            args = (*args[:gather_at], tuple(args[gather_at:]))
        values = placed(args, kwargs)
        if roles:
            ndim = dimensions(values[0])
            for i, role, optional in roles:
                if values[i] is not None or not optional:
                    values[i] = role(values[i], ndim)
        return tuple(values)

    def placed(args: Sequence, kwargs: dict) -> list:
        """The arguments in the order of the entry. TypeError for a missing or unknown argument."""
        values = template.copy()
        if len(args) > len(values):
            raise type_error(f"{op.called}() takes at most {len(values)} arguments, but {len(args)} were given")
        for i, value in zip(place, args):
            values[i] = value
        for name, value in kwargs.items():
            name = name if name in position else NUMPY.get(name, name)
            if name not in position:
                raise unexpected(op.called, name, [public.get(n, n) for n in names])
            values[position[name]] = value
        if any([value is missing for value in values]):  # `in` would compare tensors by ==
            lacking = [public.get(n, n) for n, v in zip(names, values) if v is missing]
            raise type_error(f"{op.called}() missing required argument: {', '.join(lacking)}")
        return values

    return with_plain_sizes(bind) if names == ("x", "shape") and variadic else bind


def with_plain_sizes(bind: Callable[[Sequence, dict], tuple]) -> Callable[[Sequence, dict], tuple]:
    """`bind` of x.view(2, 3) and x.view((2, 3)): ints that need no conversion are taken at once."""

    def bind_sizes(args: Sequence, kwargs: dict) -> tuple:
        if len(args) > 1 and not kwargs and args[0] is not None:
            numbers = args[1:] if args[1].__class__ is int else args[1]
            if numbers.__class__ is tuple:
                for n in numbers:
                    if n.__class__ is not int or n < -1:
                        break
                else:
                    return args[0], numbers
        return bind(args, kwargs)

    return bind_sizes


def short_way(op: Op, names: tuple[str, ...]) -> Callable[[Sequence], tuple | None] | None:
    """args -> (x, the setting) for an op of one tensor and one setting, such as x.reshape(2, 3); None if the arguments
    are bound in the long way. None for other ops."""
    if len(names) != 2 or names[0] != "x" or names[1] not in ROLES or op.inputs != ("x",):
        return None
    role, variadic = ROLES[names[1]], op.options.get("variadic")

    def several(args: Sequence) -> tuple | None:
        if len(args) < 2:
            return None
        x, first = args[0], args[1]
        numbers = args[1:] if len(args) > 2 or first.__class__ is int else first
        return x, role(numbers, x._array.ndim)

    def one(args: Sequence) -> tuple | None:
        if len(args) != 2 or args[1] is None:
            return None
        return args[0], role(args[1], args[0]._array.ndim)

    return several if variadic else one


def left_out(op: Op) -> tuple[int, tuple]:
    """The number of required arguments, in the order of the call, and the others' defaults."""
    names = op.options["order"].split() if "order" in op.options else [*op.inputs, *op.settings]
    needed = max([i + 1 for i, name in enumerate(names) if name not in op.defaults], default=0)
    return needed, tuple([op.defaults[name] for name in names[needed:]])


def binding(op: Op) -> dict[str, Any]:
    """How a call with all its positional arguments is bound without `bind`, in terms of their positions in the call.

    `direct`: whether that is possible; `order`: the position of each argument of the entry; `moved`: whether the order
    differs; `dims`: dimensions; `wrapped`: dimensions that may count from the end of the tensor at position `first`;
    `dim_lists`: tuples of dimensions. The kernel refuses dimensions that are too large, except in a call with another
    order. A list of dimensions is not checked further in an op that only this package calls."""
    names = op.inputs + op.settings
    roles = {i: ROLES[name] for i, name in enumerate(names) if name in ROLES and i >= len(op.inputs)}
    given = op.options["order"].split() if "order" in op.options else list(names)
    allowed = (wrap, wrap_new) if op.options.get("function", True) else (wrap, wrap_new, wrap_dims)
    direct = sorted(given) == sorted(names) and "variadic" not in op.options and {*roles.values()} <= {*allowed}
    order = tuple([given.index(name) for name in names]) if direct else ()
    return {
        "direct": direct,
        "required": left_out(op)[0],
        "order": order,
        "moved": given != list(names),
        "first": order[0] if direct else 0,
        "dims": tuple([order[i] for i, role in roles.items() if role is not wrap_dims]) if direct else (),
        "wrapped": tuple([order[i] for i, role in roles.items() if role is wrap and op.inputs[0] == "x"])
        if direct
        else (),
        "dim_lists": tuple([order[i] for i, role in roles.items() if role is wrap_dims]) if direct else (),
    }


def named(call: Any, op: Op) -> Callable:
    """The function with its parameters named as users know them: mm(input, mat2)."""
    if "names" in op.options:
        names = {PUBLIC.get(name, name): public for name, public in op.options["names"].items()}
        code = call.__code__
        call.__code__ = code.replace(co_varnames=tuple(names.get(name, name) for name in code.co_varnames))
    return call


def numpy_spellings(op: Op, given: dict, dim: Any, keepdim: bool) -> tuple[Any, bool]:
    """`dim` and `keepdim` of a reduction, which may be called axis and keepdims. TypeError for any other keyword."""
    for name in given:
        if name not in ("axis", "keepdims"):
            raise unexpected(op.called, name, ("input", "dim", "keepdim", "dtype", "out"))
    axis = given.get("axis")
    return dim if axis is None else axis, keepdim or given.get("keepdims", False)


def dimensions(value: Any) -> int:
    """The number of dimensions of a tensor, or of the tensors of a list. Else AttributeError."""
    if isinstance(value, (tuple, list)):
        return max((t._array.ndim for t in value if isinstance(t, Tensor)), default=0)
    return value._array.ndim


# -- scalars and promotion -------------------------------------------------------------------------

# Python numbers as 0-d tensors: 0.24 against 0.48 us in a ufunc
CONSTANTS: dict[tuple, Tensor | None] = {}


def constant(value: Any, dtype: np.dtype) -> Tensor | None:
    """A Python number as a 0-d tensor of this dtype; None if the dtype must give way to it (1.5 with integers), or
    would round it to half precision."""
    # not cached: nan != nan, and 0.0 == -0.0
    if value != value or value == 0 and value.__class__ is not int:
        return fresh_constant(value, dtype)
    key = (dtype, value, value.__class__)  # 1 == 1.0, but only one of them leaves integers whole
    try:
        return CONSTANTS[key]
    except KeyError:
        if len(CONSTANTS) > 4096:
            CONSTANTS.clear()
        found = CONSTANTS[key] = fresh_constant(value, dtype)
        return found


def fresh_constant(value: Any, dtype: np.dtype) -> Tensor | None:
    kind = dtype.kind
    if kind == "b" or (kind in "iu" and value.__class__ is float):
        return None
    if kind in "iu":
        array = np.asarray(value).astype(dtype)  # wraps around as torch's does
    else:
        array = np.asarray(value, dtype)
        if dtype.char in dtypes.HALVES and float(array) != value == value:
            return None
    array.flags.writeable = False
    return from_array(array)


def is_operand(value: Any) -> bool:
    """Whether a value can be an operand."""
    return isinstance(value, (Tensor, Number, ndarray, np.generic))


def checked_number(value: Any, name: str) -> Any:
    """The value. TypeError unless it is a number: NumPy would make nan of None."""
    if not is_operand(value):
        raise type_error(f"{name}(): value must be Number or Tensor, not {type(value).__name__}")
    return value


def number_of(value: Any, function: str, name: str) -> Any:
    """A setting as a number; from a tensor of one element, too. TypeError for several elements, and for a tensor that
    requires grad, since the result would not depend on it."""
    if not isinstance(value, Tensor):
        return value
    if value._array.size != 1 or value._node is not None:
        shape = f" of shape {tuple(value.shape)}" if value._array.size != 1 else ""
        raise type_error(
            f"{function}(): argument '{name}' must be Number, not Tensor{shape}",
            "x.item() is the number; no gradient flows back to it" if not shape else "",
        )
    return value.item()


def as_operand(value: Any, op: Op) -> tuple[Tensor, int]:
    """An operand as a tensor, with its kind for promotion: 0 tensor, 1 0-d tensor, 2 number."""
    if isinstance(value, Tensor):
        return value, 0 if value._array.ndim else 1
    if isinstance(value, (Number, np.bool_)) and not isinstance(value, np.generic):
        d = dtypes.of_scalar(value)
        return created(from_array(np.asarray(value, None if d.category < dtypes.FLOATING else number_dtype(d)))), 2
    if isinstance(value, (ndarray, np.generic)):
        # np.array(2.) counts as an array
        return created(from_array(np.asarray(value))), 0 if isinstance(value, ndarray) else 2
    raise type_error(
        f"{op.called}(): argument must be Tensor, not {type(value).__name__}",
        "make it a tensor first: torch.tensor(...)",
    )


def number_dtype(d: dtypes.dtype) -> np.dtype:
    """The dtype in which a Python number is held until promotion: double precision."""
    return np.dtype(np.complex128 if d.is_complex else np.float64)


def promoted(op: Op, operands: Sequence[Any]) -> list[Tensor]:
    """The operands as tensors of one dtype, by torch's rules. Conversions are recorded as ops."""
    pairs = [as_operand(value, op) for value in operands]
    if len(pairs) == 1:
        result = pairs[0][0].dtype
    else:
        result = dtypes.result_dtype(
            [(dtypes.of_scalar(v) if kind == 2 else t.dtype, kind) for v, (t, kind) in zip(operands, pairs)]
        )
    if result.numpy in op.refused:
        raise op_errors().not_taken(op, operands, result)
    if op.options.get("boolean") is False and any(t._array.dtype.kind == "b" for t, _ in pairs):
        raise runtime_error(op_errors().MASKED)
    if op.result == FLOATING and result.category < dtypes.FLOATING:
        result = dtypes.get_default_dtype()
    return [
        converted(t, result) if kind != 2 else created(from_array(t._array.astype(result.numpy))) for t, kind in pairs
    ]


def check_taken(op: Op, *tensors: Tensor) -> None:
    """NotImplementedError for a tensor of a dtype that the op does not take. For functions that do not call the op."""
    for t in tensors:
        if t._array.dtype in op.refused:
            raise op_errors().not_taken(op, tensors, t.dtype)


def check_dtypes(function: str, takes: str, *tensors: Tensor) -> None:
    """NotImplementedError for a tensor of a kind that is not in `takes` (see the table). For functions without
    entry."""
    for t in tensors:
        kind = t._array.dtype.kind
        if kind not in takes and not (kind == "V" and "f" in takes) and t._array.size:
            raise not_implemented_error(
                f"\"{function}\" not implemented for '{t.dtype.scalar_type}'",
                op_errors().hint_of_kinds(kind, takes),
                inputs=" ".join(map(describe, tensors)),
            )


def converted(t: Tensor, to: dtypes.dtype) -> Tensor:
    """The tensor in this dtype."""
    own, wanted = t._array.dtype, to.numpy
    if own is wanted:
        return t
    if own == wanted:  # an equal dtype that is another object: of unpickled arrays, long long
        t._array = t._array.view(wanted)
        return t
    return TENSORS["to"](t, to)


def check_numbers(op: Op, operands: Sequence[Any]) -> None:
    """TypeError for a Python number where the op takes tensors only, or if no operand is a tensor."""
    allowed = op.options.get("numbers", "y").split()
    numbers = [isinstance(value, Number) for value in operands]
    refused = [is_number and name not in allowed for name, is_number in zip(op.inputs, numbers)]
    if any(refused) or all(numbers):
        raise op_errors().misplaced_number(op, operands, allowed)


def all_true(condition: Tensor) -> bool:
    """Whether all elements are true (in vmap: of all samples), for checks of arguments. A traced program repeats the
    check; a Python `if` on the tensor would break the graph."""
    if condition.is_meta:  # no elements to check
        return True
    condition = holder(condition)
    if (watch := mode().watch) is not None:
        watch.on_assert(condition)
    return bool(condition._array.all())


def check_same_dtype(op: Op, tensors: Sequence[Tensor | None]) -> None:
    """RuntimeError unless all tensors that the op differentiates have one dtype."""
    if len({t._array.dtype for t in tensors if t is not None}) > 1:
        raise op_errors().dtypes_differ(op, tensors)


# -- arguments without arrays ----------------------------------------------------------------------


def fallback(op: Op, args: Sequence[Any], error: Exception, out: Any = None, *more: Any) -> Any:
    """The result of an op whose kernel raised `error`: a vmap batch among the arguments (and `more`) runs the op.
    Without a batch, the error is raised in terms of the user's call."""
    if isinstance(error, NoArray):
        return filled(out, error.instead(op.name, *args, *more))
    if isinstance(error, Touched):
        batch = error.batch
    else:
        batch = None if isinstance(error, (RuntimeError, ValueError, IndexError)) else first_batch(op, args)
    if batch is None:
        raise op_errors().failure(op, args, error) from None
    if out is not None:
        raise runtime_error(
            f"Batching rule not implemented for aten::{op.name}.out; the fallback path doesn't work on out= or "
            "view ops.",
            "leave out= away",
        )
    return batch.run(op, (*args, *more))


def first_batch(op: Op, args: Sequence[Any]) -> Any:
    """A batch among the arguments or in their lists; for a random op, the vmap that runs."""
    for a in args:
        for t in a if isinstance(a, (tuple, list)) else (a,):
            if isinstance(t, Tensor) and hasattr(type(t._array), "run"):
                return t._array
    return mode().batch if op.options.get("random") else None
