"""The call of an op: arguments, kernel, tensor, node.

`call` is the template of the calls of all ops whose arguments follow no common pattern. It never runs itself: with the
first call of an op, `base/specialise.py` makes the op's function from it. `op.view` stands for a value in `facts(op)`,
or for an attribute of `Op`; `value[name]` stands for a local variable. Conditions about the op are decided once, loops
over its inputs are unrolled. `print(rushlight.docs.where.call)` shows a result: read it first. Elementwise ops and
reductions have functions of their own (families.py)."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import lru_cache
from sys import _getframe as frame
from typing import Any

from numpy import asarray, ndarray

from rushlight.base.errors import NoArray
from rushlight.base.return_types import return_type
from rushlight.base.specialise import specialise, specialised
from rushlight.core.arguments import (
    binder,
    binding,
    check_same_dtype,
    check_taken,
    constant,
    fallback,
    left_out,
    number_of,
    op_errors,
    promoted,
)
from rushlight.core.mode import mode
from rushlight.core.node import Output, Writes, outside, remember, share_writes, tick, user
from rushlight.core.table import TABLE, Op, parameters, ruled_inputs
from rushlight.core.tensor import Tensor, from_array
from rushlight.core.views import filled, into, register

new = object.__new__

# Settings that are Python numbers, like every setting of a user's own op. A tensor of one element counts as a number:
# F.softplus(x, beta=t).
NUMBERS = frozenset((
    "alpha", "beta", "delta", "eps", "high", "input_scale", "lambd", "low", "max_val", "min_val", "nan",
    "negative_slope", "neginf", "p", "posinf", "rcond", "scale", "threshold", "value",
))  # fmt: skip

# value["x"] becomes the variable x, array["x"] x_array, and edge["x"] x_edge: the node to which the gradient of x goes
VARIABLES = {"value": "{}", "array": "{}_array", "edge": "{}_edge"}


# -- what a node keeps for its rules -----------------------------------------------------------------


def save_plan(op: Op) -> tuple[tuple[str, int, tuple[int, ...], bool], ...]:
    """(kind, place, users, always) of each value that nodes save. `place`: the position of the argument or output;
    `users`: the numbers of the edges whose rules name the value; `always`: whether the edges do not matter."""
    names, edges = op.inputs + op.settings, ruled_inputs(op)
    outputs = op.options.get("outputs", "out").split()
    kept = []
    for name in op.saves:
        base, _, fact = name.rpartition("_")
        users = tuple([j for j, user in enumerate(edges) if op.rules[user] and name in parameters(op.rules[user])])
        always = True
        if name in op.inputs:
            kind, place, always = "argument", names.index(name), "tensors" in op.inputs or len(edges) == 1
        elif name in names:
            kind, place = "argument", names.index(name)
        elif name in outputs:  # a later write to it matters only to rules that will run
            kind, place = "copy" if name == op.options.get("apart") else "output", outputs.index(name)
            always = len(users) == len(edges)
        elif name == "tensors_shapes":
            kind, place = "shapes", names.index("tensors")
        elif fact in ("shape", "dtype") and base in op.inputs:
            kind, place = fact, names.index(base)
        else:
            raise TypeError(f"{op.name}: a rule names {name}, which is not an input, output or setting")
        kept.append((kind, place, users, always))
    return tuple(kept)


def saved_items(op: Any, values: Any, edges: Any, outputs: Any) -> tuple:
    """The saved values of a node: a tensor only if a rule that will run names it. Specialised for `save_plan`."""
    return tuple(
        [
            (
                values[place] if kind == "argument"
                else outputs[place] if kind == "output"
                else apart(outputs[place]) if kind == "copy"
                else [t._array.shape for t in values[place]] if kind == "shapes"
                else values[place]._array.shape if kind == "shape"
                else values[place].dtype
            )
            if always or any(edges[j] is not None for j in users) else None
            for kind, place, users, always in op.plan
        ]
    )  # fmt: skip


def apart(output: Any) -> Any:
    """A copy of an output that users may write to. A batch of vmap has no array to copy and is returned."""
    return output.copy() if output.__class__ is ndarray else output


def save_function(op: Op) -> Callable:
    """(arguments, edges, outputs) -> the saved values of a node: `saved_items` specialised for the op."""
    return specialise(saved_items, {"plan": save_plan(op)}, locals={}, scope={"apart": apart}, name=f"save_{op.name}")


# -- the template ------------------------------------------------------------------------------------


def call(op: Any, kernel: Callable, args: Any, kwargs: dict, out: Any) -> Any:
    value: dict = {}
    array: dict = {}
    edge: dict = {}
    try:
        # the arguments in the order of the entry; `bind` takes 1 to 2 us, the ordinary cases 0.1
        if (
            op.direct
            and op.required < len(op.arguments)
            and op.required <= len(args) < len(op.arguments)
            and not kwargs
        ):
            args = (*args, *op.defaults[len(args) - op.required :])
        if (
            not op.direct
            or kwargs
            or len(args) != op.count
            or any(
                args[i].__class__ is not int
                or args[i] < 0 and (i not in op.wrapped or args[i] < -args[op.first]._array.ndim)
                or op.moved and i in op.wrapped and args[i] >= args[op.first]._array.ndim
                for i in op.dims
            )
            or any(args[i].__class__ is not tuple or args[i] and min(args[i]) < 0 for i in op.dim_lists)
        ):  # fmt: skip
            args, kwargs = op.bind(args, kwargs), {}
        elif op.moved or any(args[i] < 0 for i in op.wrapped):
            args = tuple(
                [args[i] + args[op.first]._array.ndim if i in op.wrapped and args[i] < 0 else args[i] for i in op.order]
            )
        value[op.arguments] = values = args
        if any(isinstance(value[name], Tensor) for name in op.number_settings):
            value[op.arguments] = values = as_numbers(op, values)
        if op.to_promote:
            value[op.to_promote] = to_one_dtype(op, value[op.to_promote])
        if op.has_list:
            value["tensors"] = tensor_list(op, value[op.arguments], op.list_at, op.list_ruled)
        if op.to_promote or op.has_list:
            values = value[op.arguments]
        for name in op.single:
            array[name] = None if value[name] is None else value[name]._array
        if op.has_list:
            array["tensors"] = [t._array for t in value["tensors"]]
    except NoArray as error:
        return filled(out, error.instead(op.name, *args, **kwargs))
    except op.input_errors as error:
        raise op_errors().failure(op, args, error) from None

    # promotion has checked the dtypes of the promoted inputs
    if (
        op.refuses
        and array[op.single[0]].dtype in op.refused
        and (op.refuses_empty or array[op.single[0]].size)
        and (op.refuses_single or array[op.single[0]].ndim)
    ):
        raise op_errors().not_taken(op, values, value[op.single[0]].dtype)
    if len(op.compared) > 1 and (
        array[op.compared[0]] is None
        or any(
            array[name] is not None and array[name].dtype is not array[op.compared[0]].dtype for name in op.compared[1:]
        )
    ):
        check_one_dtype(op, array[op.compared], value[op.compared])

    try:
        result = kernel(*[array[name] if name in op.inputs else value[name] for name in op.arguments])
    except Exception as error:
        return fallback(op, values, error, out)
    if op.itself and result is array[op.single[0]]:  # contiguous() of a contiguous tensor is the tensor
        return value[op.single[0]]

    # edges: the nodes that the gradients go to; None: nothing is recorded
    state = mode()
    if op.list_ruled:
        edges: Any = tuple([t._node for t in value["tensors"]]) if state.grad else ()
        if edges.count(None) == len(edges):
            edges = None
    elif op.ruled:
        for name in op.single:
            edge[name] = None if name not in op.ruled or value[name] is None else value[name]._node
        edges = edge[op.single] if state.grad and any(edge[name] is not None for name in op.ruled) else None
    else:
        edges = None

    if op.several:
        tensor = several_tensors(op, values, edges, result, op.result_types)
    else:
        if result.__class__ is not ndarray:  # NumPy makes scalars of 0-d results
            result = asarray(result)
        tensor = new(Tensor)
        tensor._array = result
        tensor._node = tensor._grad = tensor._viewing = tensor._writes = None
        if edges is not None:
            # its node: what backward needs, and the user's line
            node = tensor._node = new(op.node_class)
            if op.has_list:
                node.saved = op.save(values, edges, (result,))
            else:
                node.saved = saved_items(op, value[op.arguments], edge[op.inputs], (result,))
            node.edges, node.seq, node.shape = edges, tick(), result.shape
            caller = frame(2)  # 0: this function, 1: the closure of the family, 2: the user's
            code = node.code = caller.f_code
            node.at = caller.f_lasti if code is user.code else remember(node, caller)
        if state.watch is not None:
            state.watch.on_op(op, values, tensor)
        if op.view and (
            not op.copies
            or result is array[op.single[0]]
            or result.base is not None
            and (result.base is array[op.single[0]] or result.base is array[op.single[0]].base)
        ):
            register(tensor, value[op.single[0]], op.again, values[1:], state.grad)
    return tensor if out is None else into(out, tensor, *(values[: len(op.inputs)] if op.separate else ()))


# -- the facts about an op -----------------------------------------------------------------------------


def result_type(op: Any) -> type:
    """The class of an op's results: a named tuple if its entry has `outputs`, else tuple."""
    fields = op.options.get("outputs", "").split()
    return return_type(op.options.get("called", op.name).replace(".", "_"), fields) if fields else tuple


def facts(op: Op) -> dict[str, Any]:
    """The constants of `call` for one op."""
    option = op.options.get
    listed = "tensors" in op.inputs
    single = tuple([name for name in op.inputs if name != "tensors"])
    ruled = tuple([name for name in single if op.rules[name] is not None])
    to_promote = tuple(option("promote", "").split())
    return {
        **binding(op),
        "arguments": op.inputs + op.settings,
        "count": len(op.inputs + op.settings),
        "inputs": op.inputs,
        "number_settings": tuple([name for name in op.settings if name in NUMBERS or "own" in op.options]),
        "to_promote": to_promote,
        "has_list": listed,
        "list_at": op.inputs.index("tensors") if listed else 0,
        "list_ruled": listed and op.rules["tensors"] is not None,
        "single": single,
        "ruled": ruled,
        "compared": tuple([name for name in ruled if name not in to_promote]),
        "refuses": bool(op.refused) and single[0] not in to_promote,
        "refuses_empty": op.elementwise,
        "refuses_single": "0" not in op.takes,
        "view": op.is_view,
        "copies": bool(option("copies")),
        "itself": bool(option("itself")),
        "several": bool(option("outputs") or option("list")),
        "separate": bool(option("separate")),
        "plan": save_plan(op),
        "input_errors": Exception if op.is_view else AttributeError,
        "again": op.call,
        "bind": binder(op),
        "defaults": left_out(op)[1],
        "result_types": result_type(op),
    }


@lru_cache(maxsize=2048)
def function_of(op: Op) -> Callable:
    """(kernel, args, kwargs, out) -> the op's result, recorded: `call` specialised for the op."""
    scope = {**SCOPE, "op": op}
    return specialise(call, facts(op), locals=VARIABLES, inlined=[saved_items], scope=scope, name=f"call_{op.name}")


def source(op: Op) -> str:
    """The text of the op's call."""
    tree = specialised(call, facts(op), locals=VARIABLES, inlined=[saved_items], name=f"call_{op.name}")
    return ast.unparse(tree) + "\n"


def as_numbers(op: Op, values: Sequence[Any]) -> tuple:
    """The arguments with settings that are tensors as numbers."""
    n, names = len(op.inputs), op.inputs + op.settings
    settings = zip(names[n:], values[n:])
    return (*values[:n], *[number_of(v, op.called, name) for name, v in settings])


def to_one_dtype(op: Op, operands: Sequence[Any]) -> list[Any]:
    """The operands that are not None, converted to one dtype."""
    dtype, numbers = None, False
    for v in operands:  # tensors of one dtype, and Python's numbers
        kind = v.__class__
        if kind is float or kind is int:
            numbers = True
        elif kind is not Tensor or dtype is not None and v._array.dtype is not dtype:
            break
        else:
            dtype = v._array.dtype
    else:
        if dtype is not None and dtype not in op.rerouted:
            if not numbers:  # 2 us of the 9 that `where` takes
                return list(operands)
            if mode().watch is None:  # where(mask, x, 0.) in 4.2 us, not 7
                made = [v if v.__class__ is Tensor else constant(v, dtype) for v in operands]
                if all([v is not None for v in made]):
                    return made
    given = [v for v in operands if v is not None]
    if not given:
        op_errors().check_tensors(op, operands)
    check_strict(op, given)
    there = iter(promoted(op, given))
    return [None if v is None else next(there) for v in operands]


def check_strict(op: Op, given: Sequence[Any]) -> None:
    """RuntimeError unless the tensors among the operands have one dtype, for an op with `strict`."""
    if op.options.get("strict"):
        tensors = [v for v in given if isinstance(v, Tensor)]
        check_same_dtype(op, tensors)
        check_taken(op, *tensors)


def tensor_list(op: Op, values: Sequence[Any], place: int, one_dtype: bool) -> tuple[Tensor, ...]:
    """The list of tensors among the arguments, converted to one dtype if the list has a rule."""
    tensors = tuple(values[place])
    for t in tensors:
        if t.__class__ is not Tensor:  # a class of the user's, or no tensor
            op_errors().check_tensors(op, [*values[:place], tensors, *values[place + 1 :]])
            break
    try:
        if one_dtype and len({t._array.dtype for t in tensors}) > 1:
            tensors = tuple(promoted(op, tensors))
    except NoArray:  # the kernel raises it again, and `fallback` runs the op
        pass
    return tensors


def check_one_dtype(op: Op, arrays: Sequence[Any], tensors: Sequence[Tensor | None]) -> None:
    """RuntimeError unless the arrays (except None) have one dtype."""
    first = None
    for a in arrays:
        if a is not None:
            if first is None:
                first = a.dtype
            elif a.dtype is not first:
                check_same_dtype(op, tensors)
                return


def several_tensors(op: Op, args: tuple, edges: tuple | None, r: Any, result: Callable) -> Any:
    """Tensors from a kernel's results. All differentiable outputs share a node; an `Output` has the number of each."""
    outs = [from_array(one if one.__class__ is ndarray else asarray(one)) for one in r]
    if edges is not None:
        arrays, fixed = [t._array for t in outs], op.options.get("fixed")
        smooth = [i for i, one in enumerate(arrays) if one.dtype.kind in "fcV" and i != fixed]
        if smooth:
            node = object.__new__(op.node_class)
            node.edges, node.seq, node.where, node.shape = edges, tick(), outside(frame(3)), None
            facts = tuple([(one.shape, one.dtype) if i in smooth else None for i, one in enumerate(arrays)])
            node.saved = (*op.save(args, edges, arrays), facts)
            for i in smooth:
                outs[i]._node = Output(node, i, tick(), arrays[i].shape)
            for i in op.saved_outputs.keys() - smooth:  # indices: the node shares their write logs
                outs[i]._writes = Writes()
                share_writes(node, i, outs[i]._writes)
    made = result(outs)
    watch = mode().watch
    if watch is not None:
        kept = kept_apart(op, outs)
        watch.on_op(op, args, made)
        for t, copy in kept:
            watch.on_op(TABLE["clone"], (t,), copy)
    return made


def kept_apart(op: Op, outs: Sequence[Tensor]) -> list[tuple[Tensor, Tensor]]:
    """[(the output that the node saved as a copy, the copy)], for watchers; empty for other ops."""
    name = op.options.get("apart")
    t = None if name is None else outs[op.options["outputs"].split().index(name)]
    if t is None or t._node is None:
        return []
    copy = t._node.edges[0].saved[op.saves.index(name)]
    return [(t, from_array(copy))] if copy.__class__ is ndarray else []


SCOPE = {name: value for name, value in globals().items() if not name.startswith("__")}
