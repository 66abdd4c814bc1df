"""Families: closure factories that turn an entry of the table into a fast function.

Decisions about the op are made once, not per call. The fast path of each closure is the usual case: tensors of one
dtype. Numbers and promotion take the slow path, which converts the operands and calls the closure again. Each closure
repeats the lines that make the result and its node: a shared function would add a tenth to the time of the op."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from sys import _getframe as frame
from typing import Any

from numpy import asarray, ndarray

from rushlight.base.dtypes import HALVES, dtype, float32, float64
from rushlight.base.errors import NoArray
from rushlight.base.faster import LeastByDtype, faster, least
from rushlight.base.size import in_order
from rushlight.core.arguments import (
    check_numbers,
    check_same_dtype,
    constant,
    fallback,
    is_operand,
    named,
    numpy_spellings,
    op_errors,
    promoted,
    reduced_dims,
)
from rushlight.core.engine import saved_by_name
from rushlight.core.mode import mode
from rushlight.core.node import Node, remember, tick, user
from rushlight.core.table import FLOATING, Op, node_name
from rushlight.core.tensor import Tensor
from rushlight.core.views import filled, into
from rushlight.core.worlds import AS_ARRAYS, AS_TENSORS, GradientKind
from rushlight.kernels.layout import led, with_strides

new = object.__new__


def node_class(op: Op, **how: Any) -> type[Node]:
    """The class of the op's nodes, which carries the rules for both kinds of gradients."""
    name = op.options.get("node") or node_name(op.name)
    several = {} if isinstance(name, str) else {"name": name}  # a function of the node
    return type(
        node_name(op.name) if several else name,
        (Node,),
        {
            "__slots__": (),
            "op": op,
            "first": op.freed[0] if op.freed else None,
            **several,
            **saved_by_name(op),
            "__module__": "rushlight.autograd",
            "arrays": vjp(op, AS_ARRAYS, how),
            "tensors": vjp(op, AS_TENSORS, how),
        },
    )


def vjp(op: Op, kind: GradientKind, how: dict[str, Any]) -> Callable:
    """(node, g) -> gradients of the inputs: specialised with the first backward."""

    def first(node: Any, g: Any) -> Any:
        from rushlight.core.backward_call import function_of

        run = function_of(op, kind, **how)
        setattr(op.node_class, kind.method, run)
        return run(node, g)

    return first


def rules_that_name(op: Op, saved: str) -> tuple[bool, ...]:
    """For each input, whether its rule names this saved value."""
    return tuple([saved in names for names in op.rule_arguments])


def unary(op: Op) -> Callable:
    """x -> kernel(x), element by element."""
    kernel = op.kernel
    rerouted = op.rerouted
    least = LeastByDtype(op)
    smallest = least.smallest
    op.make_node = node_class
    saves_x, saves_out = "x" in op.saves, "out" in op.saves
    differentiable = op.rules["x"] is not None
    order = op.saves

    def call(input: Tensor, *, out: Tensor | None = None) -> Tensor:
        try:
            a = input._array
            if a.size < smallest or a.size < least[a.dtype]:
                r = kernel(a)
            else:
                r = faster(op, "", kernel, a)
        except NoArray as sparse:
            return filled(out, sparse.instead(op.name, input))
        except Exception as error:
            op_errors().check_tensors(op, (input,))
            if a.dtype in rerouted:
                return call(promoted(op, (input,))[0], out=out)
            return fallback(op, (input,), error, out)
        if r.__class__ is not ndarray:  # NumPy makes scalars of 0-d results
            r = asarray(r)
        if rerouted and a.dtype in rerouted:
            return call(promoted(op, (input,))[0], out=out)
        t = new(Tensor)
        t._array, t._grad, t._viewing, t._writes = r, None, None, None
        m = mode()
        if differentiable and input._node is not None and m.grad:
            n = t._node = new(op.node_class)
            if saves_x:
                n.saved = ((input, r) if order[0] == "x" else (r, input)) if saves_out else (input,)
            else:
                n.saved = (r,) if saves_out else ()
            n.edges, n.seq, n.shape = (input._node,), tick(), r.shape
            f = frame(1)
            c = n.code = f.f_code
            n.at = f.f_lasti if c is user.code else remember(n, f)
        else:
            t._node = None
        if m.watch is not None:
            m.watch.on_op(op, (input,), t)
        return t if out is None else into(out, t)

    return call


def operands(op: Op, input: Any, other: Any, as_operator: bool) -> list[Tensor]:
    """The operands converted to one dtype, after the fast path found no two tensors of one dtype."""
    if not as_operator:
        check_numbers(op, (input, other))
    elif not (isinstance(input, Tensor) or isinstance(other, Tensor)):  # Tensor.__radd__(1, 2)
        raise TypeError(
            f"descriptor '__{op.name}__' for 'Tensor' objects doesn't apply to a '{type(other).__name__}' object"
        )
    if op.options.get("strict"):
        op_errors().check_tensors(op, (input, other))
        check_same_dtype(op, (input, other))
    return promoted(op, (input, other))


def beside_number(*operands: Any) -> dtype | None:
    """The dtype of a half-precision tensor beside a number or a 0-d tensor of another dtype, else None."""
    for t, n in (operands, operands[::-1]):
        if isinstance(t, Tensor) and t._array.dtype.char in HALVES:
            if n.__class__ is float or n.__class__ is int:
                return t.dtype
            if isinstance(n, Tensor) and n._array.ndim == 0 < t._array.ndim and n.dtype in (float32, float64):
                return t.dtype
    return None


def long_way(op: Op, as_operator: bool, call: Callable) -> Callable:
    """A binary call whose operands are brought to one dtype first."""
    takes_numbers = as_operator or "x" in op.options.get("numbers", "y")
    single = op.options.get("single")
    rerouted = op.rerouted

    def slow(input: Any, other: Any, out: Tensor | None) -> Any:
        if takes_numbers and (input.__class__ is float or input.__class__ is int) and other.__class__ is Tensor:
            d = other._array.dtype  # 1 - x: 3 us; the path below takes 20
            k = None if d in rerouted else constant(input, d)
            if k is not None:
                return call(k, other, out=out)
        if as_operator and not (is_operand(input) and is_operand(other)):
            return NotImplemented
        try:
            half = beside_number(input, other) if single else None
            if half is not None:
                t = call(*[x.to(float32) if isinstance(x, Tensor) else x for x in (input, other)]).to(half)
                return t if out is None else into(out, t)
            return call(*operands(op, input, other, as_operator), out=out)
        except NoArray as error:
            return filled(out, error.instead(op.name, input, other))

    return slow


def binary(op: Op, as_operator: bool = False) -> Callable:
    """(x, y) -> kernel(x, y), broadcast, element by element.

    `as_operator`: as operators and rules call it, with numbers on either side; it returns NotImplemented for operands
    of unknown types."""
    kernel = op.kernel
    rerouted = op.rerouted
    least = LeastByDtype(op)
    smallest = least.smallest
    takes_numbers = as_operator or "y" in op.options.get("numbers", "y")
    by_elements = op.elementwise
    x_for_x, x_for_y = rules_that_name(op, "x")
    y_for_x, y_for_y = rules_that_name(op, "y")
    out_for_x, out_for_y = rules_that_name(op, "out")
    has_x, has_y = [op.rules[name] is not None for name in op.inputs]
    saves_out = out_for_x or out_for_y
    arrays = {op.saves[i] for i in op.freed}
    # a fixed order, so that no call sorts the saved values
    op.saves = ("x", "y", "out") if saves_out else ("x", "y")
    op.freed = tuple([i for i, name in enumerate(op.saves) if name in arrays])
    op.make_node = node_class

    def call(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
        try:
            a = input._array
            c = other.__class__
            if c is float or c is int:
                k = constant(other, a.dtype) if takes_numbers else None
                if k is None:
                    return slow(input, other, out)
                number, other = other, k
            b = other._array
        except (AttributeError, NoArray):
            return slow(input, other, out)
        dtype = a.dtype
        if dtype is not b.dtype:
            return slow(input, other, out)
        if rerouted and dtype in rerouted:  # uint8 / -1: promotion needs the number itself
            return slow(input, number if c is int else other, out)
        try:
            if a.size < smallest or a.size < least[dtype]:
                r = kernel(a, b)
            else:
                r = faster(op, "", kernel, a, b)
        except Exception as error:
            return fallback(op, (input, other), error, out)
        if r.__class__ is not ndarray:
            r = asarray(r)
        elif by_elements and not a.flags.c_contiguous:  # matrix products are always in C order
            r = led(r, a, b)
        t = new(Tensor)
        t._array, t._grad, t._viewing, t._writes = r, None, None, None
        m = mode()
        x, y = input._node if has_x else None, other._node if has_y else None
        if (x is not None or y is not None) and m.grad:
            n = t._node = new(op.node_class)
            n.edges, n.seq, n.shape = (x, y), tick(), r.shape
            sx = input if (x is not None and x_for_x) or (y is not None and x_for_y) else None
            sy = other if (x is not None and y_for_x) or (y is not None and y_for_y) else None
            so = r if (x is not None and out_for_x) or (y is not None and out_for_y) else None
            n.saved = (sx, sy, so) if saves_out else (sx, sy)
            c = n.code = (f := frame(1)).f_code
            n.at = f.f_lasti if c is user.code else remember(n, f)
        else:
            t._node = None
        if m.watch is not None:
            m.watch.on_op(op, (input, other), t)
        return t if out is None else into(out, t)

    slow = long_way(op, as_operator, call)
    return named(call, op)


# What a reduction's rules may ask for besides x and out: (shape, dims) -> value, dims None for all.
FACTS: dict[str, Callable] = {
    "x_shape": lambda shape, dims: shape,
    "dims": lambda shape, dims: tuple(range(len(shape))) if dims is None else dims,
    "n": lambda shape, dims: float(prod(shape) if dims is None else prod([shape[d] for d in dims])),
}


MEANS = ("x_shape", "n")
# the shape of a whole tensor reduced, its dimensions kept
POINTS = [(1,) * ndim for ndim in range(65)]


def kept_shape(shape: tuple, dims: tuple) -> tuple:
    """The shape with the reduced dimensions as 1."""
    return tuple([1 if i in dims else n for i, n in enumerate(shape)])


def saved_facts(saves: tuple, x: Tensor, r: ndarray, shape: tuple, axes: tuple | None, kept: tuple) -> tuple:
    """The saved values of a reduction: those that its rules name, then the kept shape."""
    if saves == MEANS:  # 0.5 us, against 1.5
        return shape, float(x._array.size // max(r.size, 1)), kept
    return *[x if name == "x" else r if name == "out" else FACTS[name](shape, axes) for name in saves], kept


def check_settings(op: Op, args: tuple) -> None:
    """TypeError for a dimension that is not an integer, before the dtype is refused."""
    if args[1] is not None and args[1].__class__ is not int:
        op_errors().check_settings(op, args)


def reduction(op: Op) -> Callable:
    """x, dims -> kernel(x, dims, keepdim): one number from many.

    Rules get `g` and `out` with the reduced dimensions as size 1. They may name `dims` (always a tuple) and `n`, the
    number of elements per result."""
    kernel = getattr(op.kernel, "reference", op.kernel)
    rerouted, floating = op.rerouted, op.result == FLOATING
    from_elements = least(op)
    op.make_node = partial(node_class, reduces=True)
    differentiable = op.rules["x"] is not None
    saves = op.saves
    only_shape = saves == ("x_shape",)
    check_out = op.options.get("out")
    empty = op.options.get("empty")

    def call(
        input: Tensor,
        dim: Any = None,
        keepdim: bool = False,
        *,
        dtype: Any = None,
        out: Tensor | None = None,
        **others: Any,
    ) -> Tensor:
        if others:  # the empty dict costs 20 ns
            dim, keepdim = numpy_spellings(op, others, dim, keepdim)
        try:
            if dtype is not None:
                input = input.to(dtype)
            a = input._array
        except (AttributeError, NoArray) as error:
            return fallback(op, (input, dim), error, out, keepdim)
        if rerouted and a.dtype in rerouted and (floating or a.size):  # an empty array may have any dtype
            check_settings(op, (input, dim))
            (input,) = promoted(op, (input,))
            a = input._array
        try:
            axes = None if dim is None else reduced_dims(dim, a.ndim, empty)
            r = kernel(a, axes, keepdim) if a.size < from_elements else faster(op, "", kernel, a, axes, keepdim)
        except Exception as error:
            t = fallback(op, (input, dim), error, out, keepdim)
            return t if dtype is None else t.to(dtype)
        if r.__class__ is not ndarray:
            r = asarray(r)
        elif keepdim and not a.flags.c_contiguous:
            r = with_strides(r, in_order(r.shape))
        if dtype is not None:  # the sum may have been computed in a wider dtype
            r = r.astype(a.dtype, copy=False)
        t = new(Tensor)
        t._array, t._grad, t._viewing, t._writes = r, None, None, None
        m = mode()
        if differentiable and input._node is not None and m.grad:
            n = t._node = new(op.node_class)
            shape = a.shape
            kept = POINTS[len(shape)] if axes is None else kept_shape(shape, axes)
            n.saved = (shape, kept) if only_shape else saved_facts(saves, input, r, shape, axes, kept)
            n.edges, n.seq, n.shape = (input._node,), tick(), r.shape
            f = frame(1)
            c = n.code = f.f_code
            n.at = f.f_lasti if c is user.code else remember(n, f)
        else:
            t._node = None
        if m.watch is not None:
            m.watch.on_op(op, (input, axes, keepdim), t)
        return t if out is None else into(out, t) if check_out is None else check_out(op, out, t)

    return call


def view(op: Op) -> Callable:
    """x -> a view of the same memory."""
    kernel = op.kernel
    op.make_node = node_class

    def run(*given: Any) -> Any:  # the first call makes the real one
        from rushlight.core.call import function_of

        nonlocal run
        run = function_of(op)
        return run(*given)

    def call(*args: Any, **kwargs: Any) -> Tensor:
        return run(kernel, args, kwargs, None)

    return call


def general(op: Op, kernel: Callable | None = None) -> Callable:
    """Tensors and settings -> one array or several: all other ops (core/call.py)."""
    kernel = kernel or op.kernel
    op.make_node = partial(node_class, several=" " in op.options.get("outputs", "") or op.options.get("list"))

    def run(*given: Any) -> Any:  # the first call makes the real one
        from rushlight.core.call import function_of

        nonlocal run
        run = function_of(op)
        return run(*given)

    def call(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        return run(kernel, args, kwargs, out)

    return call
