"""From the entries of a file to functions, methods and in-place forms."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from rushlight.base.docstring import introduce
from rushlight.base.dtypes import HALVES
from rushlight.base.errors import NoArray, runtime_error, type_error
from rushlight.base.faster import LeastByDtype, dispatching, faster, has_own_way
from rushlight.base.lazy import expect
from rushlight.core import families
from rushlight.core.arguments import constant
from rushlight.core.mode import mode
from rushlight.core.table import BOOL, FLOATING, REAL, SAME, TABLE, Op, entry, in_namespace
from rushlight.core.tensor import FUNCTIONS_ONLY, Tensor, method
from rushlight.core.views import assign, into, wrote
from rushlight.core.worlds import ARRAYS, TENSORS, rebind
from rushlight.kernels.float16 import in_single
from rushlight.kernels.layout import led

F = TypeVar("F", bound=Callable)


def is_general(op: Op) -> bool:
    """Whether an elementwise op needs the family `general`: it has settings, renamed inputs, or more than two."""
    return bool(op.settings) or op.inputs not in (("x",), ("x", "y")) or op.options.get("names", {}).get("x") == "x"


def elementwise(op: Op) -> Callable:
    """The family of an op that works element by element: by the number of its inputs."""
    if is_general(op):
        op.options.setdefault("promote", " ".join(op.inputs) if len(op.inputs) > 1 or op.result == FLOATING else "")
        if op.result in (SAME, FLOATING):
            op.kernel = in_input_dtype(op, op.kernel, len(op.inputs) - 1)
        return families.general(op)
    return families.unary(op) if len(op.inputs) == 1 else families.binary(op)


def in_input_dtype(op: Op, kernel: Callable, last: int) -> Callable:
    """The kernel with its result converted to the dtype of the last input (the first input of `where` is a condition).
    A bound of 1.0 then leaves integers and bfloat16 as they are."""

    def stay(*args: Any) -> np.ndarray:
        r, dtype = kernel(*args), args[last].dtype
        r = r if r.__class__ is np.ndarray and r.dtype is dtype else np.asarray(r).astype(dtype, copy=False)
        if args[0].flags.c_contiguous and (
            not last or args[last].flags.c_contiguous and (last == 1 or args[1].flags.c_contiguous)
        ):  # written out: a loop takes twice as long
            return r
        return led(r, *args[: last + 1])

    least = LeastByDtype(op)
    return lambda *args: stay(*args) if args[0].size < least[args[last].dtype] else faster(op, "", stay, *args)


def write_at_places(op: Op) -> Callable:
    """The function of an op that writes to some elements of x: in a copy of x, or in x itself if `out` is x. Copying 10
    million elements takes 50 ms, writing four of them 10 us."""
    copying, own = op.family(op), families.general(op, op.options["onto"])

    def call(*args: Any, out: Tensor | None = None, **kwargs: Any) -> Tensor:
        if out is None:
            return copying(*args, **kwargs)
        if out is not args[0] or not may_write_into(out, args[1:]):
            return into(out, copying(*args, **kwargs))
        own(*args, **kwargs)
        wrote(out)
        return out

    call.forms = copying, own  # type: ignore[attr-defined]
    return call


def may_write_into(x: Tensor, args: tuple) -> bool:
    """Whether a kernel may write into x's array: it is in C order, no argument shares it, and nothing is recorded."""
    a, m, root = x._array, mode(), x._root
    if m.watch is not None or a.__class__ is not np.ndarray or not a.flags.carray:
        return False
    if m.grad and (x._node is not None or root._node is not None):
        return False
    for arg in args:
        for t in arg if arg.__class__ in (list, tuple) else (arg,):
            if isinstance(t, Tensor) and (
                t._array.__class__ is not np.ndarray
                or (t._node is not None and m.grad)
                or np.may_share_memory(a, t._array)
            ):
                return False
    return True


# The words that entries begin with.
op = entry(elementwise, SAME)  # element by element, the dtype stays
floating = entry(elementwise, FLOATING)  # integers become floating
predicate = entry(elementwise, BOOL, inplace=True)
real_valued = entry(elementwise, REAL)  # complex numbers become real
reduction = entry(families.reduction, SAME, inplace=False)
averaging = entry(families.reduction, FLOATING, inplace=False)
view = entry(families.view, SAME, inplace=False)
product = entry(families.binary, SAME, inplace=False, strict=True, numbers="")
general = entry(families.general, SAME, inplace=False)
floating_general = entry(families.general, FLOATING, inplace=False)
# Ops that rules and composites use, not users.
inner = entry(families.general, SAME, inplace=False, method=False, function=False)
inner_floating = entry(families.general, FLOATING, inplace=False, method=False, function=False)
inner_view = entry(families.view, SAME, inplace=False, method=False, function=False)


def build(namespace: dict[str, Any]) -> None:
    """Make a function of every entry in a module's namespace, and put it in the entry's place."""
    found = {name: value for name, value in namespace.items() if isinstance(value, Op) and not value.name}
    for name, one in found.items():
        one.name = name
        one.kernel = one.options.get("kernel") or ARRAYS.get(name) or rebind(one.forward, ARRAYS)
        ARRAYS[name] = one.kernel
        if one.family is elementwise:
            one.elementwise = True
            if not isinstance(getattr(one.kernel, "ufunc", one.kernel), np.ufunc) and not one.options.get("exact"):
                # NumPy rounds after each step
                one.kernel = in_single(name, one.kernel, len(one.inputs) - 1)
        if has_own_way(one):
            one.kernel = ARRAYS[name] = dispatching(one, one.kernel)
        one.call = write_at_places(one) if "onto" in one.options else one.family(one)
        introduce(one.call, one)
        (TABLE.own if "own" in one.options else TABLE)[name] = one
        namespace[name] = one.call
        one.rule_call = TENSORS[name] = rule_call(one)
        one.method = one.call if one.options.get("order", "x").startswith("x") else one.rule_call
        attach(one)


def rule_call(one: Op) -> Callable:
    """`Op.rule_call` of an entry."""
    if "order" not in one.options:
        return one.call if one.options.get("numbers", "y") == "y" else families.binary(one, as_operator=True)
    names = one.inputs + one.settings

    def call(*args: Any, **more: Any) -> Any:
        return one.call(**dict(zip(names, args)), **more)

    introduce(call, one)
    return call


def attach(one: Op) -> None:
    """Give Tensor the op's method and in-place form, under all its names."""
    names = [name for name in one.names if not in_namespace(name)]
    if names and one.options.get("method", True) and one.inputs[:1] == ("x",):
        method(one.method, *names)
        if one.options.get("inplace", True):
            if waiting is None:
                method(one.inplace, *(f"{name}_" for name in names))
            else:
                waiting.append((one, names))
                expect(Tensor, *({f"{name}_" for name in names} - FUNCTIONS_ONLY))


# the ops whose in-place forms are made later; None: in-place forms are made at once
waiting: list[tuple[Op, list[str]]] | None = []


def in_place_forms() -> None:
    """Make the in-place forms in `waiting`. ops/frequent.py calls this after the import, which saves 0.7 ms there."""
    global waiting
    left, waiting = waiting or [], None
    for one, names in left:
        # the others are made of ops
        missing = [f"{name}_" for name in names if f"{name}_" not in vars(Tensor)]
        if missing:
            method(one.inplace, *missing)


def inplace(one: Op) -> Callable:
    """`Op.inplace`: the op written back into its first argument, x.mul_(y)."""
    at_once = written_at_once(one)
    name, out_of_place, answers = one.name + "_", one.method, one.result == BOOL
    real_valued = one.result == REAL
    constants = name.startswith("logical_")  # torch gives the second argument no gradient

    def call(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if at_once is not None and not kwargs and unrecorded(input, args):
            try:
                return at_once(input, *args)
            except (TypeError, ValueError, AttributeError, NoArray):
                pass  # promotion, broadcasting, a sparse operand or an error: see below
        if real_valued and input.dtype.is_complex:
            raise runtime_error(f"In-place {one.name} is not supported for complex tensors.", "x = x.abs()")
        m = mode()
        if m.watch is None and m.batch is None:  # then before_write would return the input
            try:
                made = out_of_place(input, *args, **kwargs)
            except TypeError as error:
                if error.__traceback__.tb_next is not None:  # type: ignore[union-attr]
                    raise
                # the function was not entered: the arguments are not its parameters
                raise type_error(str(error).replace("() ", "_() ", 1)) from None
        else:
            before = before_write(input, args)
            made = out_of_place(before, *[before if a is input else a for a in args], **kwargs)
        if answers and (input.dtype.is_floating_point or input.dtype.is_complex):
            others = () if constants else args
            made = flat_in(made, input, others) if recorded(input, others) else made
        return assign(input, made, name)

    introduce(call, one, writes=True)
    return call


def written_at_once(one: Op) -> Callable | None:
    """ufunc(x, y, out=x) for operands of one dtype, else TypeError. None for other ops."""
    kernel: Any = one.kernel
    if not isinstance(kernel, np.ufunc) or one.result == BOOL:
        return None
    # 16-bit floats have a faster way, out of place; np.reciprocal has integers, too
    refused = HALVES + "".join([dtype.char for dtype in one.rerouted])
    refused += "FD" * (one.result == REAL)

    def one_input(input: Tensor) -> Tensor:
        a = input._array
        if a.dtype.char in refused:
            raise TypeError
        kernel(a, out=a)
        wrote(input)
        return input

    def two_inputs(input: Tensor, other: Any) -> Tensor:
        a = input._array
        if a.dtype.char in refused:
            raise TypeError
        if other.__class__ is float or other.__class__ is int:
            other = constant(other, a.dtype)
        b = other._array
        if b.dtype is not a.dtype:
            raise TypeError
        kernel(a, b, out=a)
        wrote(input)
        return input

    return one_input if len(one.inputs) == 1 else two_inputs


def flat_in(made: Tensor, input: Tensor, args: tuple) -> Tensor:
    """The result of a comparison as 0 and 1 in the input's dtype, with a gradient of zeros: x.lt_(y) is recorded."""
    shape, made = made._array.shape, TENSORS["to"](made, input.dtype)
    tensors = [t for t in (input, *args) if isinstance(t, Tensor) and t._node is not None]
    for t in tensors or [input]:  # `overwrite(t, made)` is `made`, with a gradient of zeros for t
        made = TENSORS["overwrite"](TENSORS["expand"](t, shape), made)
    return made


def recorded(input: Tensor, args: Iterable) -> bool:
    """Whether an op on these arguments is recorded: an argument requires grad or has tangents."""
    m = mode()
    if m.watch is not None and m.watch.differentiates:
        return True
    if not m.grad:
        return False
    if input._node is not None or input._viewing is not None and input._viewing[0]._node is not None:
        return True
    for a in args:
        if isinstance(a, Tensor) and a._node is not None:
            return True
    return m.batch is not None and m.batch.records(input, *args)  # their samples may be recorded


def unrecorded(input: Tensor, args: tuple) -> bool:
    """Whether an in-place op may write at once: no operand requires grad, and there is no watcher."""
    return mode().watch is None and not recorded(input, args)


def before_write(x: Tensor, args: Iterable = ()) -> Tensor:
    """The tensor that an in-place op on x reads: a clone if the value before the write is needed later, else x itself.

    Hooks on saved tensors, forward mode (tangents may be differentiated) and graphs around a vmap need that value. In
    the graph of x alone, `views.keep_old` copies the saved tensors of a node."""
    m = mode()
    if ((m.watch is not None and m.watch.snapshots) or m.batch is not None) and recorded(x, args):
        return x.clone()
    return x
