"""The call of an op, written out as text from its entry: what is fixed for an op is decided there, not at each call.

    def call_where(kernel, args, kwargs, out):
        try:
            if kwargs or len(args) != 3:
                args, kwargs = bind(args, kwargs), {}
            condition, x, y = values = args
            ...
        result = kernel(condition_array, x_array, y_array)
        ...

An op's first call writes its text (0.5 ms); a loop over the inputs would take twice the time of each call.
`print(rushlight.docs.where.call)` shows the whole text."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from sys import _getframe as frame
from typing import Any

from numpy import asarray, ndarray

from rushlight.base.errors import NoArray
from rushlight.base.text import conditional, define, folded, indented, tupled
from rushlight.core.arguments import (
    binder,
    check_taken,
    constant,
    left_out,
    number_of,
    op_errors,
    otherwise,
    promoted,
    same_dtype,
    unbound,
)
from rushlight.core.clock import Writes, tick
from rushlight.core.mode import mode
from rushlight.core.node import Output, outside, remember, share_writes, user
from rushlight.core.results import filled, into, result_type
from rushlight.core.saved import saved_items
from rushlight.core.table import TABLE, Op
from rushlight.core.tensor import Tensor, from_array
from rushlight.core.views import register

# Settings that are Python numbers. Users may give a tensor of one element: F.softplus(x, beta=t).
NUMBERS = frozenset(
    (
        *("alpha", "beta", "delta", "eps", "high", "input_scale", "lambd", "low", "max_val"),
        *("min_val", "nan", "negative_slope", "neginf", "p", "posinf", "rcond", "scale"),
        *("threshold", "value"),
    )
)


@lru_cache(maxsize=2048)
def written(op: Op, view: bool = False) -> Callable:
    """(kernel, args, kwargs, out) -> the op's result, recorded; `view`: in the memory of its input."""
    scope = {
        **SCOPE,
        "op": op,
        "again": op.call,
        "bind": binder(op),
        "defaults": left_out(op)[1],
        "result_type": result_type(op),
    }
    return define(source(op, view), f"call_{op.name}", scope, f"call of {op.name}")


def source(op: Op, view: bool = False) -> str:
    """The text of the op's call. `x` is an argument, `x_array` its array, `x_node` its node."""
    said = Arguments(op)
    lines = [
        "try:",
        *indented(said.bound()),
        *indented(said.arrays()),
        "except NoArray as error:",
        "    return filled(out, error.instead(op.name, *args, **kwargs))",
        f"except {'Exception' if view else 'AttributeError'} as error:",
        "    raise op_errors().failure(op, args, error) from None",
        *said.checked(),
        "try:",
        *indented(folded("result = kernel(", said.given(), ")")),
        "except Exception as error:",
        "    return otherwise(op, values, error, out)",
    ]
    if op.options.get("itself"):  # contiguous() of a contiguous tensor is the tensor
        lines += [f"if result is {said.single[0]}_array:", f"    return {said.single[0]}"]
    lines += ["# edges: the nodes that the gradients go to; None: nothing is recorded", "state = mode()", *said.edges()]
    if op.options.get("outputs") or op.options.get("list"):
        lines += ["tensor = finish(op, values, edges, result, result_type)"]
    else:
        lines += [*one_output(said.saved()), *(noted_view(op) if view else [])]
    apart = f", *values[:{len(op.inputs)}]" * bool(op.options.get("separate"))
    lines += [f"return tensor if out is None else into(out, tensor{apart})"]
    return "\n".join([f"def call_{op.name}(kernel, args, kwargs, out):", *indented(lines)]) + "\n"


class Arguments:
    """An op's arguments by their names in the text, and the lines about them.

    `single`: the inputs but for a list of tensors, `listed`; `ruled`: those of `single` that have a gradient."""

    def __init__(self, op: Op):
        self.op = op
        self.inputs, self.all = [*map(own, op.inputs)], [*map(own, op.inputs + op.settings)]
        self.listed = "tensors" in op.inputs
        self.list_ruled = self.listed and op.rules["tensors"] is not None
        self.single = [own(name) for name in op.inputs if name != "tensors"]
        self.ruled = [own(name) for name in op.inputs if name != "tensors" and op.rules[name] is not None]
        self.promoted = [own(name) for name in op.options.get("promote", "").split()]

    def bound(self) -> list[str]:
        """The arguments in the order of the entry, those to promote in one dtype."""
        op, lines = self.op, ["# the arguments, in the order of the entry"]
        (unfit, behind, counted), (needed, defaults) = unbound(op), left_out(op)
        bind = "args, kwargs = bind(args, kwargs), {}"
        if unfit == "True":
            lines += [bind]
        else:
            if defaults:  # 0.1 us, where `bind` takes 1 to 2
                lines += [
                    f"if {needed} <= len(args) < {needed + len(defaults)} and not kwargs:",
                    f"    args = (*args, *defaults[len(args) - {needed}:])",
                ]
            lines += [*conditional("if", unfit), f"    {bind}"]
            if behind == "True":
                lines += ["else:", *indented(tupled("args = ", counted.split(", ")))]
            elif behind:
                lines += [*conditional("elif", behind), *indented(tupled("args = ", counted.split(", ")))]
        names = ", ".join(self.all) + "," * (len(self.all) == 1)
        lines += [f"{names} = values = args"] if len(names) < 70 else tupled("", self.all, " = values = args")
        numbers = [own(name) for name in op.settings if name in NUMBERS]
        if numbers:
            test = " or ".join([f"isinstance({name}, Tensor)" for name in numbers])
            lines += [*conditional("if", test), f"    {names} = values = as_numbers(op, values)"]
        if self.promoted:
            some = ", ".join(self.promoted) + "," * (len(self.promoted) == 1)
            lines += [f"{some} = to_one_dtype(op, ({some}))"]
        if self.listed:
            place = op.inputs.index("tensors")
            lines += tupled("tensors = tensor_list(op, ", self.all, f", {place}, {self.list_ruled})")
        if self.promoted or self.listed:
            lines += tupled("values = ", self.all)
        return lines

    def arrays(self) -> list[str]:
        lines = [f"{name}_array = None if {name} is None else {name}._array" for name in self.single]
        return [*lines, "tensors_array = [t._array for t in tensors]"] if self.listed else lines

    def checked(self) -> list[str]:
        """The dtype of the first input is one that the op takes; the dtypes of inputs with a gradient agree. Promotion
        has seen to those that were promoted."""
        names = [name for name in self.ruled if name not in self.promoted]
        lines = []
        if self.op.refused and self.single[0] not in self.promoted:
            x = self.single[0]
            some = "" if self.op.elementwise else f" and {x}_array.size"
            some += f" and {x}_array.ndim" if "0" in self.op.takes else ""
            lines += [
                f"if {x}_array.dtype in op.refused{some}:",
                f"    raise op_errors().not_taken(op, values, {x}.dtype)",
            ]
        if len(names) < 2:
            return lines
        first, *others = names
        differ = [f"{a}_array is not None and {a}_array.dtype is not {first}_array.dtype" for a in others]
        arrays, tensors = ", ".join(f"{name}_array" for name in names), ", ".join(names)
        return [
            *lines,
            *conditional("if", " or ".join([f"{first}_array is None", *differ])),
            *indented(folded("check_one_dtype(", ["op", f"({arrays})", f"({tensors})"], ")")),
        ]

    def given(self) -> list[str]:
        """What the kernel is given."""
        return [f"{name}_array" if name in self.inputs else name for name in self.all]

    def edges(self) -> list[str]:
        """The lines that find `edges`: None where nothing is recorded."""
        if self.list_ruled:
            return [
                "edges = tuple([t._node for t in tensors]) if state.grad else ()",
                "if edges.count(None) == len(edges):",
                "    edges = None",
            ]
        if not self.ruled:
            return ["edges = None"]
        nodes = [f"{name}_node = None if {name} is None else {name}._node" for name in self.ruled]
        some = " or ".join(f"{name}_node is not None" for name in self.ruled)
        found = [f"{name}_node" if name in self.ruled else "None" for name in self.single]
        test = (
            conditional("if state.grad and", some, brackets=True) if len(nodes) > 1 else [f"if state.grad and {some}:"]
        )
        return [*nodes, *test, *indented(tupled("edges = ", found)), "else:", "    edges = None"]

    def saved(self) -> list[str]:
        """The lines that give the node its `saved_items`, in the names of the call."""
        if self.listed:
            return ["node.saved = op.save(values, edges, (result,))"]
        nodes = [f"{name}_node" if name in self.ruled else "None" for name in self.inputs]
        items = [re.sub(r"e\[(\d+)\]", lambda found: nodes[int(found[1])], item) for item in saved_items(self.op)]
        items = [re.sub(r"a\[(\d+)\]", lambda found: self.all[int(found[1])], item) for item in items]
        return tupled("node.saved = ", [item.replace("r[0]", "result") for item in items])


def own(name: str) -> str:
    """The name of an argument in the text, where the text has no other use for the name."""
    return f"{name}_" if name in TAKEN else name


def one_output(saved: Sequence[str]) -> list[str]:
    """The lines that make the tensor and its node, for an op with one output: the same statements as in `unary` and
    `binary`."""
    return [
        "# the result as a tensor",
        "if result.__class__ is not ndarray:",
        "    result = asarray(result)",
        "tensor = new(Tensor)",
        "tensor._array = result",
        "tensor._node = tensor._grad = tensor._viewing = tensor._writes = None",
        "if edges is not None:",
        "    # its node: what backward needs, and the user's line",
        "    node = tensor._node = new(op.node_class)",
        *indented(saved),
        "    node.edges, node.seq, node.shape = edges, tick(), result.shape",
        "    caller = frame(2)",
        "    code = node.code = caller.f_code",
        "    node.at = caller.f_lasti if code is user.code else remember(node, caller)",
        "if state.watch is not None:",
        "    state.watch.on_op(op, values, tensor)",
    ]


def noted_view(op: Op) -> list[str]:
    """The lines that note whose memory a view is."""
    name = own(op.inputs[0])
    note = f"register(tensor, {name}, again, values[1:], state.grad)"
    if not op.options.get("copies"):
        return [note]
    array = f"{name}_array"
    return [
        "base = result.base",
        f"if result is {array} or base is not None and (base is {array} or base is {array}.base):",
        f"    {note}",
    ]


def as_numbers(op: Op, values: Sequence[Any]) -> tuple:
    """The arguments with settings that are tensors as numbers."""
    n, names = len(op.inputs), op.inputs + op.settings
    settings = zip(names[n:], values[n:])
    return (*values[:n], *[number_of(v, op.called, name) for name, v in settings])


def to_one_dtype(op: Op, operands: Sequence[Any]) -> list[Any]:
    """The operands that are there, brought to one dtype."""
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
    """RuntimeError unless the tensors beside numbers have one dtype, of an op that asks for it."""
    if op.options.get("strict"):
        tensors = [v for v in given if isinstance(v, Tensor)]
        same_dtype(op, tensors)
        check_taken(op, *tensors)


def tensor_list(op: Op, values: Sequence[Any], place: int, one_dtype: bool) -> tuple[Tensor, ...]:
    """The list of tensors among the arguments, brought to one dtype if gradients go back to it."""
    tensors = tuple(values[place])
    for t in tensors:
        if t.__class__ is not Tensor:  # a class of the user's, or no tensor
            op_errors().check_tensors(op, [*values[:place], tensors, *values[place + 1 :]])
            break
    try:
        if one_dtype and len({t._array.dtype for t in tensors}) > 1:
            tensors = tuple(promoted(op, tensors))
    except NoArray:  # the kernel meets it next, and asks what is done instead
        pass
    return tensors


def check_one_dtype(op: Op, arrays: Sequence[Any], tensors: Sequence[Tensor | None]) -> None:
    """RuntimeError unless the arrays that are there have one dtype."""
    first = None
    for a in arrays:
        if a is not None:
            if first is None:
                first = a.dtype
            elif a.dtype is not first:
                same_dtype(op, tensors)
                return


def finish(op: Op, args: tuple, edges: tuple | None, r: Any, result: Callable) -> Any:
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
            for i in op.keeps.keys() - smooth:  # indices: the node shares their write logs
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
    """The output that is saved as a copy, and the copy: who watches sees where backward has its numbers from."""
    name = op.options.get("apart")
    t = None if name is None else outs[op.options["outputs"].split().index(name)]
    if t is None or t._node is None:
        return []
    copy = t._node.edges[0].saved[op.saves.index(name)]
    return [(t, from_array(copy))] if copy.__class__ is ndarray else []


# What the texts name besides what is the op's own.
SCOPE = {
    "Tensor": Tensor,
    "ndarray": ndarray,
    "asarray": asarray,
    "new": object.__new__,
    "mode": mode,
    "tick": tick,
    "frame": frame,
    "user": user,
    "remember": remember,
    "otherwise": otherwise,
    "op_errors": op_errors,
    "into": into,
    "finish": finish,
    "check_one_dtype": check_one_dtype,
    "register": register,
    "as_numbers": as_numbers,
    "to_one_dtype": to_one_dtype,
    "tensor_list": tensor_list,
    "NoArray": NoArray,
    "filled": filled,
}
TAKEN = {
    *SCOPE,
    "again",
    "args",
    "base",
    "bind",
    "caller",
    "code",
    "defaults",
    "edges",
    "error",
    "kernel",
    "kwargs",
    "node",
    "op",
    "out",
    "result",
    "result_type",
    "state",
    "t",
    "tensor",
    "values",
}
