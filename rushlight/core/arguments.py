"""What families do with arguments before an op runs: dimensions, scalars, promotion, names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from numbers import Number
from operator import index
from typing import Any

import numpy as np
from numpy import ndarray

from rushlight.base import dtypes
from rushlight.base.errors import NoArray, describe, explain, unexpected
from rushlight.core.mode import mode
from rushlight.core.op_errors import MASKED, check_tensors, failure, out_of_range
from rushlight.core.results import filled
from rushlight.core.table import FLOATING, NUMPY, PUBLIC, Op
from rushlight.core.tensor import Tensor, created, from_array, holder
from rushlight.core.worlds import TENSORS

# -- dimensions ------------------------------------------------------------------------------------


def wrap(dim: Any, ndim: int) -> int:
    """A dimension counted from the front. IndexError if there is none such; a 0-d tensor has 0 and
    -1."""
    n = ndim or 1
    if dim.__class__ is bool:  # x.sum(True) was to be keepdim, x.sort(True) descending
        raise TypeError(
            explain(
                f"argument 'dim' must be int, not bool: {dim}",
                "name it: keepdim=True, descending=True",
            )
        )
    dim = index(dim)
    if not -n <= dim < n:
        raise out_of_range(dim, n)
    return dim % n


def wrap_new(dim: Any, ndim: int) -> int:
    """The place of a dimension still to be made."""
    return wrap(dim, ndim + 1)


def listed(numbers: Any) -> tuple:
    """One number, or several; a tensor of no dimensions is one."""
    if numbers.__class__ is int:  # 0.1 us, to ask for Iterable takes 0.4
        return (numbers,)
    return (
        tuple(numbers)
        if isinstance(numbers, Iterable) and getattr(numbers, "ndim", 1)
        else (numbers,)
    )


def wrap_all(dims: Any, ndim: int) -> tuple[int, ...]:
    """Several dimensions counted from the front, or one. RuntimeError if one stands twice."""
    n = ndim or 1
    found = tuple([d if d.__class__ is int and 0 <= d < n else wrap(d, ndim) for d in listed(dims)])
    if len(found) > 1 and len(set(found)) < len(found):
        twice = next(d for d in found if found.count(d) > 1)
        raise RuntimeError(
            explain(f"dim {twice} appears multiple times in the list of dims", dims=tuple(dims))
        )
    return found


def reduced_dims(dim: Any, ndim: int, empty: tuple | None = None) -> tuple[int, ...] | None:
    """The dimensions to reduce; None for all of them. An empty list means all as well, or `empty`:
    none."""
    if dim is None:
        return None
    if not listed(dim):
        return empty
    dims = wrap_all(dim, ndim)
    return dims if ndim else ()


def reordered(dims: Any, ndim: int) -> tuple[int, ...]:
    """All dimensions counted from the front, in another order. RuntimeError if they are fewer or
    more."""
    dims = listed(dims)
    if len(dims) != ndim:
        raise RuntimeError(
            explain(
                "permute(sparse_coo): number of dimensions in the tensor input does not match the "
                "length "
                f"of the desired ordering of dimensions i.e. input.dim() = {ndim} is not equal to "
                f"len(dims) = {len(dims)}",
                "name each dimension once",
                dims=dims,
            )
        )
    return wrap_all(dims, ndim)


def sizes(shape: Any) -> tuple[int, ...]:
    """A shape as Python ints."""
    return tuple(map(index, listed(shape)))


# What settings of these names are, so that families can normalise them (and vmap can shift them).
ROLES: dict[str, Callable[[Any, int], Any]] = {
    "dim": wrap,
    "dim0": wrap,
    "dim1": wrap,
    "start_dim": wrap,
    "end_dim": wrap,
    "new_dim": wrap_new,
    "dims": wrap_all,
    "new_order": reordered,
    "shape": lambda shape, ndim: sizes(shape),
}


def binder(op: Op) -> Callable[[Sequence, dict], tuple]:
    """A function from what the user passed to the arguments in the order of the entry."""
    names = op.inputs + op.settings
    order = op.options.get("order", " ".join(names)).split()  # as the user gives them
    place = [names.index(name) for name in order]
    straight = place == list(range(len(names)))
    public = {**PUBLIC, **op.options.get("names", {})}
    position = {n: i for i, n in enumerate(names)} | {
        public.get(name, name): i for i, name in enumerate(names)
    }
    missing = object()
    template = [op.defaults.get(name, missing) for name in names]
    variadic = op.options.get("variadic")
    gather_at = order.index(variadic) if variadic else len(names)
    optional = [i for i, name in enumerate(names) if name in op.defaults]
    normal = [
        (i, ROLES[name]) for i, name in enumerate(names) if name in ROLES and i >= len(op.inputs)
    ]
    required = [i for i, name in enumerate(names) if name not in op.defaults]
    only = (
        normal[0][1] if normal and len(names) == 2 and names[0] == "x" else None
    )  # x.reshape(2, 3)
    sized = variadic == "shape"

    def bind(args: Sequence, kwargs: dict) -> Sequence:
        if (
            only is not None
            and not kwargs
            and (len(args) > 1 if variadic else len(args) == 2 and args[1] is not None)
        ):
            x, first = args[0], args[1]
            if variadic and (len(args) > 2 or first.__class__ is int):
                first = args[1:]
            return x, tuple(map(index, first)) if sized and first.__class__ is tuple else only(
                first, x._array.ndim
            )
        values = template.copy()
        if variadic and len(args) > gather_at and not isinstance(args[gather_at], (tuple, list)):
            args = (*args[:gather_at], tuple(args[gather_at:]))
        if len(args) > len(values):
            raise TypeError(
                f"{op.called}() takes at most {len(values)} arguments, but {len(args)} were given"
            )
        if straight:
            values[: len(args)] = args
        else:
            for i, value in zip(place, args):
                values[i] = value
        for name, value in kwargs.items():
            name = name if name in position else NUMPY.get(name, name)
            if name not in position:
                raise unexpected(op.called, name, [public.get(n, n) for n in names])
            values[position[name]] = value
        if any([values[i] is missing for i in required]):  # `in` would ask the tensors, by ==
            lacking = [public.get(n, n) for n, v in zip(names, values) if v is missing]
            raise TypeError(f"{op.called}() missing required argument: {', '.join(lacking)}")
        return normalised(values) if normal else tuple(values)

    def normalised(values: list) -> tuple:
        ndim = dimensions(values[0])
        for i, role in normal:
            value = values[i]
            if value is not None or i not in optional:
                values[i] = role(value, ndim)
        return tuple(values)

    return bind


def left_out(op: Op) -> tuple[int, tuple]:
    """How many arguments, in the order of the call, must be there; and the defaults of those behind
    them."""
    names = op.options["order"].split() if "order" in op.options else [*op.inputs, *op.settings]
    needed = max([i + 1 for i, name in enumerate(names) if name not in op.defaults], default=0)
    return needed, tuple([op.defaults[name] for name in names[needed:]])


def unbound(op: Op) -> tuple[str, str, str]:
    """Three texts: the condition under which arguments must go through `bind`; else that under
    which dimensions count from behind; and the arguments with these counted from the front.

    Not bound need be arguments that are all there, in the order of the call. Too large dimensions
    the kernel finds, but where the call has another order (of 0 dimensions its kernels do not ask);
    lists of them are right in ops that only our own functions call."""
    names = op.inputs + op.settings
    roles = {
        i: ROLES[name] for i, name in enumerate(names) if name in ROLES and i >= len(op.inputs)
    }
    order = op.options["order"].split() if "order" in op.options else list(names)
    direct = (wrap, wrap_new) if op.options.get("function", True) else (wrap, wrap_new, wrap_all)
    if (
        sorted(order) != sorted(names)
        or "variadic" in op.options
        or not all(role in direct for role in roles.values())
    ):
        return "True", "", ""
    at, moved = (
        [order.index(name) for name in names],
        order != list(names),
    )  # where each is in the call
    known = [i for i, role in roles.items() if role is wrap and op.inputs[0] == "x"]
    ndim = f"args[{at[0]}]._array.ndim"
    conditions = [f"kwargs or len(args) != {len(names)}"]
    for i, role in roles.items():
        d = f"args[{at[i]}]"
        if role is wrap_all:
            conditions += [f"{d}.__class__ is not tuple or {d} and min({d}) < 0"]
        else:
            far = f" and {d} < -{ndim}" + f" or {d} >= {ndim}" * moved if i in known else ""
            conditions += [f"{d}.__class__ is not int or {d} < 0{far}"]
    given = [
        f"args[{k}]" + f" if args[{k}] >= 0 else args[{k}] + {ndim}" * (i in known)
        for i, k in enumerate(at)
    ]
    behind = "True" if moved else " or ".join(f"args[{i}] < 0" for i in known)
    return " or ".join(conditions), behind, ", ".join(given)


def named(call: Any, op: Op) -> Callable:
    """The function with its parameters named as users know them: mm(input, mat2)."""
    if "names" in op.options:
        names = {PUBLIC.get(name, name): public for name, public in op.options["names"].items()}
        code = call.__code__
        call.__code__ = code.replace(
            co_varnames=tuple(names.get(name, name) for name in code.co_varnames)
        )
    return call


def numpy_spellings(op: Op, given: dict, dim: Any, keepdim: bool) -> tuple[Any, bool]:
    """`dim` and `keepdim` of a reduction, which may be called axis and keepdims. TypeError for any
    other keyword."""
    for name in given:
        if name not in ("axis", "keepdims"):
            raise unexpected(op.called, name, ("input", "dim", "keepdim", "dtype", "out"))
    axis = given.get("axis")
    return dim if axis is None else axis, keepdim or given.get("keepdims", False)


def dimensions(value: Any) -> int:
    """How many dimensions a tensor has, or the tensors of a list. AttributeError for anything
    else."""
    if isinstance(value, (tuple, list)):
        return max((t._array.ndim for t in value if isinstance(t, Tensor)), default=0)
    return value._array.ndim


# -- scalars and promotion -------------------------------------------------------------------------

CONSTANTS: dict[
    tuple, Tensor | None
] = {}  # Python numbers as 0-d tensors: 0.24 against 0.48 us in a ufunc


def constant(value: Any, dtype: np.dtype) -> Tensor | None:
    """A Python number as a 0-d tensor of this dtype; None if the dtype must give way to it (1.5
    with integers), or would round it to half precision."""
    if (
        value != value or value == 0 and value.__class__ is not int
    ):  # nan is never found again, 0.0 == -0.0: made anew
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
        if dtype.itemsize == 2 and float(array) != value == value:
            return None
    array.flags.writeable = False
    return from_array(array)


def known(value: Any) -> bool:
    """Whether a value can be an operand."""
    return isinstance(value, (Tensor, Number, ndarray, np.generic))


def as_operand(value: Any, op: Op) -> tuple[Tensor, int]:
    """An operand as a tensor, with its kind for promotion: 0 tensor, 1 0-d tensor, 2 number."""
    if isinstance(value, Tensor):
        return value, 0 if value._array.ndim else 1
    if isinstance(value, (Number, np.bool_)) and not isinstance(value, np.generic):
        d = dtypes.of_scalar(value)
        return created(
            from_array(np.asarray(value, None if d.category < dtypes.FLOATING else number_dtype(d)))
        ), 2
    if isinstance(value, (ndarray, np.generic)):
        return created(from_array(np.asarray(value))), 0 if isinstance(
            value, ndarray
        ) else 2  # np.array(2.) is no number
    raise TypeError(
        explain(
            f"{op.called}(): argument must be Tensor, not {type(value).__name__}",
            "make it a tensor first: torch.tensor(...)",
        )
    )


def number_dtype(d: dtypes.dtype) -> np.dtype:
    """Numbers are held in double precision until the dtype they are used in is known."""
    return np.dtype(np.complex128 if d.is_complex else np.float64)


def promoted(op: Op, operands: Sequence[Any]) -> list[Tensor]:
    """The operands as tensors of one dtype, by torch's rules; conversions are ops, so gradients go
    back."""
    pairs = [as_operand(value, op) for value in operands]
    if len(pairs) == 1:
        result = pairs[0][0].dtype
    else:
        if op.options.get("boolean") is False and any(t._array.dtype.kind == "b" for t, _ in pairs):
            raise RuntimeError(explain(MASKED))
        result = dtypes.result_dtype(
            [
                (dtypes.of_scalar(v) if kind == 2 else t.dtype, kind)
                for v, (t, kind) in zip(operands, pairs)
            ]
        )
    if op.result == FLOATING and result.category < dtypes.FLOATING:
        result = dtypes.get_default_dtype()
    return [
        brought(t, result) if kind != 2 else created(from_array(t._array.astype(result.numpy)))
        for t, kind in pairs
    ]


def brought(t: Tensor, to: dtypes.dtype) -> Tensor:
    """The tensor in this dtype."""
    own, wanted = t._array.dtype, to.numpy
    if own is wanted:
        return t
    if own == wanted:  # another object for the same: of an unpickled array, a long long
        t._array = t._array.view(wanted)
        return t
    return TENSORS["to"](t, to)


def check_numbers(op: Op, operands: Sequence[Any]) -> None:
    """TypeError for a Python number where the op takes tensors only; one of its operands is a
    tensor."""
    allowed = op.options.get("numbers", "y").split()
    for name, value in zip(op.inputs, operands):
        if isinstance(value, Number) and name not in allowed:
            if not allowed:
                check_tensors(op, operands)
            break
    else:
        if any(not isinstance(value, Number) for value in operands):
            return
    got = ", ".join(type(value).__name__ for value in operands)
    forms = " or ".join(
        f"({', '.join('Number' if n in numbers else 'Tensor' for n in op.inputs)})"
        for numbers in ([], *([name] for name in allowed))
    )
    raise TypeError(
        explain(
            f"{op.called}() received an invalid combination of arguments - got ({got}), but "
            "expected one "
            f"of: {forms}",
            f"make the number a tensor: torch.tensor({operands[0]!r})",
        )
    )


def holds(condition: Tensor) -> bool:
    """Whether all of it is true, for checks of arguments that raise an error if not: a program
    makes the same test, where it could not follow Python if that looked at numbers to decide. In
    vmap, of all samples."""
    if condition.is_meta:  # there are no numbers that could be wrong
        return True
    condition = holder(condition)
    if (watch := mode().watch) is not None:
        watch.on_assert(condition)
    return bool(condition._array.all())


def same_dtype(op: Op, tensors: Sequence[Tensor | None]) -> None:
    """RuntimeError unless all tensors that the op differentiates have one dtype."""
    found = {t._array.dtype for t in tensors if t is not None}
    if len(found) > 1:
        names = " and ".join(sorted(dtypes.of(d).scalar_type for d in found))
        strict = op.options.get("strict")
        what = (
            strict
            if isinstance(strict, str)
            else f"{op.called}(): expected inputs to have the same dtype"
        )
        raise RuntimeError(
            explain(
                f"{what}, but got {names}",
                "convert float64 (NumPy's default) to float32: x.float()"
                if {d.str[1:] for d in found} == {"f4", "f8"}
                else "convert one with .to(dtype)",
                inputs=", ".join(describe(t) for t in tensors),
            )
        )


# -- arguments that are no arrays ------------------------------------------------------------------


class Touched(RuntimeError, AttributeError, TypeError):
    """A kernel met a `Placeholder`, which runs the op in its own way. `what`: the NumPy function,
    for the text: it is written when somebody reads it, since each op inside a vmap raises this
    error once."""

    def __init__(self, text: str, batch: Any, what: str = ""):
        super().__init__(text)
        self.batch, self.what = batch, what

    def __str__(self) -> str:
        text = self.args[0]
        return text.format(what=self.what, shape=self.batch.shape) if self.what else text


class Placeholder:
    """What only looks like an array: a batch of vmap (func/batching.py), a shape on the device
    "meta" (ops/meta/meta_tensors.py). Who would compute with it meets the error that `touched`
    gives, for what it was asked."""

    __slots__ = ()
    touched: Callable[[str], Touched]

    def __getattr__(self, name: str) -> Any:
        raise self.touched(name)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise self.touched("NumPy")

    def __iter__(self) -> Iterator:
        raise self.touched("iteration")

    def _refuse(self, *args: Any) -> Any:
        raise self.touched("arithmetic of arrays")

    __hash__ = object.__hash__
    __eq__ = __ne__ = _refuse
    __getitem__ = __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = (
        __rtruediv__
    ) = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __neg__ = __invert__ = __matmul__ = __rmatmul__ = (
        __index__
    ) = _refuse
    __and__ = __or__ = __abs__ = __pow__ = __mod__ = __float__ = __int__ = _refuse


def otherwise(op: Op, args: Sequence[Any], error: Exception, out: Any = None, *more: Any) -> Any:
    """The op run by a batch that is among its arguments (and `more`), for which the kernel failed;
    else raises the error in terms of the user's call. Kernels look at shapes first: what they find
    wrong there is wrong for each sample too."""
    if isinstance(error, NoArray):
        return filled(out, error.instead(op.name, *args, *more))
    if isinstance(error, Touched):
        batch = error.batch
    else:
        batch = (
            None
            if isinstance(error, (RuntimeError, ValueError, IndexError))
            else first_batch(op, args)
        )
    if batch is None:
        raise failure(op, args, error) from error
    if out is not None:
        raise RuntimeError(
            explain(
                f"Batching rule not implemented for aten::{op.name}.out; the fallback path "
                "doesn't work "
                "on out= or view ops.",
                "leave out= away",
            )
        )
    return batch.run(op, (*args, *more))


def first_batch(op: Op, args: Sequence[Any]) -> Any:
    """A batch among the arguments or in their lists; for a random op, the vmap that runs."""
    for a in args:
        for t in a if isinstance(a, (tuple, list)) else (a,):
            if isinstance(t, Tensor) and hasattr(type(t._array), "run"):
                return t._array
    return mode().batch if op.options.get("random") else None
