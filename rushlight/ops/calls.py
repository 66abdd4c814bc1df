"""The call of an op, written out as text from its entry: what is fixed for an op is decided there, not at each call.

    def run(kernel, args, kwargs, out):
        if kwargs or len(args) != 3: args = bind(args, kwargs)
        v0, v1, v2 = values = args
        r = kernel(v0.array, v1.array, v2)
        ...

An op's first call writes its text; most ops share one with others, so that few are compiled (a loop over the inputs
takes twice the time of the call).
"""
from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from sys import _getframe as frame
from types import CodeType
from typing import Any

from numpy import asarray, ndarray

from rushlight.autograd.clock import Writes, tick
from rushlight.autograd.grad_mode import mode
from rushlight.autograd.node import Output, outside, remember, share_writes, user
from rushlight.autograd.views import register
from rushlight.errors import PACKAGE, NoArray
from rushlight.ops.arguments import binder, constant, left_out, otherwise, promoted, same_dtype, unbound
from rushlight.ops.failures import check_tensors, failure
from rushlight.ops.results import filled, into, result_type
from rushlight.ops.table import FLOATING, TABLE, Op
from rushlight.ops.worlds import save_source
from rushlight.tensor import Tensor, from_array


def written(op: Op, view: bool = False) -> Callable:
    """(kernel, args, kwargs, out) -> the op's result, recorded; `view`: in the memory of its input."""
    scope = {**SCOPE, "op": op, "again": op.call, "bind": binder(op), "defaults": left_out(op)[1], "result": result_type(op)}
    exec(code(source(op, view)), scope)
    return scope["run"]


@lru_cache(maxsize=256)
def code(text: str) -> CodeType:
    return compile(text, PACKAGE + "<call>", "exec")


def source(op: Op, view: bool = False) -> str:
    """The text of `run`. v0, v1, ... are the arguments, a0, ... the arrays of the inputs, n0, ... their nodes."""
    n, inputs = len(op.inputs), range(len(op.inputs))
    values = ", ".join(f"v{i}" for i in range(n + len(op.settings))) + ","
    listed = op.inputs.index("tensors") if "tensors" in op.inputs else None
    lists_ruled = listed is not None and op.rules["tensors"] is not None
    promoted_here = [op.inputs.index(name) for name in op.options.get("promote", "").split()]
    single = [i for i in inputs if i != listed]
    ruled = [i for i in single if op.rules[op.inputs[i]] is not None]
    apart = [i for i in ruled if i not in promoted_here]
    (bound, behind, counted), (needed, defaults) = unbound(op), left_out(op)
    lines = ["def run(kernel, args, kwargs, out):", " try:"]
    if defaults and bound != "True":              # 0.1 us, where `bind` takes 1 to 2
        fewer = f"{needed} <= len(args) < {needed + len(defaults)} and not kwargs"
        lines += [f"  if {fewer}: args = (*args, *defaults[len(args) - {needed}:])"]
    lines += [f"  if {bound}: args, kwargs = bind(args, kwargs), {{}}",
             *[f"  elif {behind}: args = ({counted},)"] * bool(behind), f"  {values} = values = args"]
    if promoted_here:
        some = ", ".join(f"v{i}" for i in promoted_here) + ","
        lines += [f"  {some} = together(op, ({some}))"]
    if listed is not None:
        lines += [f"  v{listed} = of_list(op, ({values}), {listed}, {lists_ruled})"]
    if promoted_here or listed is not None:
        lines += [f"  values = ({values})"]
    lines += [f"  a{i} = None if v{i} is None else v{i}.array" for i in single]
    if listed is not None:
        lines += [f"  a{listed} = [t.array for t in v{listed}]"]
    lines += [" except NoArray as error:", "  return filled(out, error.instead(op.name, *args, **kwargs))",
              f" except {'Exception' if view else 'AttributeError'} as error:",
              "  raise failure(op, args, error) from error"]
    if len(apart) > 1:
        first, *others = [f"a{i}" for i in apart]
        differ = " or ".join(f"{a} is not None and {a}.dtype is not {first}.dtype" for a in others)
        lines += [f" if {first} is None or {differ}: alike(op, ({first}, {', '.join(others)}), "
                  f"({', '.join(f'v{i}' for i in apart)}))"]
    given = ", ".join([f"a{i}" for i in inputs] + [f"v{n + i}" for i in range(len(op.settings))])
    lines += [" try:", f"  r = kernel({given})", " except Exception as error:", "  return otherwise(op, values, error, out)"]
    if op.options.get("itself"):                  # contiguous() of a contiguous tensor is the tensor
        lines += [" if r is a0: return v0"]
    lines += [" m = mode()", *recorded(single, ruled, listed if lists_ruled else None)]
    apart_from_out = ", ".join(["out", "t", *([f"*values[:{n}]"] if op.options.get("separate") else [])])
    if op.options.get("outputs") or op.options.get("list"):
        lines += [" t = finish(op, values, edges, r, result)"]
    else:
        whole = "op.save(values, edges, (r,))"
        lines += [line.replace("SAVED", whole if listed is not None else saved(op, ruled)) for line in ONE]
        lines += looking(op) if view else []
    return "\n".join([*lines, f" return t if out is None else into({apart_from_out})"])


def recorded(single: Sequence[int], ruled: Sequence[int], listed: int | None) -> list[str]:
    """The lines that find `edges`: None where nothing is recorded."""
    if listed is not None:
        return [f" edges = tuple([t.node for t in v{listed}]) if m.grad else ()",
                " if edges.count(None) == len(edges): edges = None"]
    if not ruled:
        return [" edges = None"]
    nodes = [f" n{i} = None if v{i} is None else v{i}.node" for i in ruled]
    some = " or ".join(f"n{i} is not None" for i in ruled)
    edges = ", ".join(f"n{i}" if i in ruled else "None" for i in single)
    return [*nodes, f" edges = ({edges},) if m.grad and ({some}) else None"]


# What follows where an op has one output: the same as in the families of one and two inputs.
ONE = [
    " if r.__class__ is not ndarray: r = asarray(r)",
    " t = new(Tensor)",
    " t.array, t.node, t._grad, t.viewing, t.writes = r, None, None, None, None",
    " if edges is not None:",
    "  n = t.node = new(op.node)",
    "  n.edges, n.saved, n.seq, n.shape = edges, SAVED, tick(), r.shape",
    "  f = frame(2)",
    "  c = n.code = f.f_code",
    "  n.at = f.f_lasti if c is user.code else remember(n, f)",
    " if m.watch is not None: m.watch.on_op(op, values, t)"]


def saved(op: Op, ruled: Sequence[int]) -> str:
    """What the node keeps, as `save_source` says it, in the names of the call."""
    text = save_source(op).partition(": ")[2]
    text = re.sub(r"e\[(\d+)\]", lambda found: f"n{found[1]}" if int(found[1]) in ruled else "None", text)
    return re.sub(r"a\[(\d+)\]", r"v\1", text).replace("r[0]", "r")


def looking(op: Op) -> list[str]:
    """The lines that note whose memory a view is."""
    copies = " if r is a0 or r.base is not None and (r.base is a0 or r.base is a0.base):" if op.options.get("copies") else ""
    return [f"{copies} register(t, v0, again, values[1:], m.grad)"]


def together(op: Op, operands: Sequence[Any]) -> list[Any]:
    """The operands that are there, brought to one dtype."""
    dtype, numbers = None, False
    for v in operands:                            # tensors of one dtype, and Python's numbers
        kind = v.__class__
        if kind is float or kind is int:
            numbers = True
        elif kind is not Tensor or dtype is not None and v.array.dtype is not dtype:
            break
        else:
            dtype = v.array.dtype
    else:
        if dtype is not None and (op.result != FLOATING or dtype.kind in "fcV"):
            if not numbers:                       # 2 us of the 9 that `where` takes
                return list(operands)
            if mode().watch is None:              # where(mask, x, 0.) in 4.2 us, not 7
                made = [v if v.__class__ is Tensor else constant(v, dtype) for v in operands]
                if all([v is not None for v in made]):
                    return made
    given = [v for v in operands if v is not None]
    if not given:
        check_tensors(op, operands)
    there = iter(promoted(op, given))
    return [None if v is None else next(there) for v in operands]


def of_list(op: Op, values: Sequence[Any], place: int, one_dtype: bool) -> tuple[Tensor, ...]:
    """The list of tensors among the arguments, brought to one dtype if gradients go back to it."""
    tensors = tuple(values[place])
    for t in tensors:
        if t.__class__ is not Tensor:             # a class of the user's, or no tensor
            check_tensors(op, [*values[:place], tensors, *values[place + 1:]])
            break
    try:
        if one_dtype and len({t.array.dtype for t in tensors}) > 1:
            tensors = tuple(promoted(op, tensors))
    except NoArray:                               # the kernel meets it next, and asks what is done instead
        pass
    return tensors


def alike(op: Op, arrays: Sequence[Any], tensors: Sequence[Tensor | None]) -> None:
    """RuntimeError unless the arrays that are there have one dtype."""
    first = None
    for a in arrays:
        if a is not None:
            if first is None:
                first = a.dtype
            elif a.dtype is not first:
                same_dtype(op, tensors)
                return


def finish(op: Op, args: Sequence[Any], edges: tuple | None, r: Any, result: Callable) -> Any:
    """Tensors from what a kernel returned; several differentiable outputs share a node, each with its place in it."""
    outs = [from_array(one if one.__class__ is ndarray else asarray(one)) for one in r]
    if edges is not None:
        arrays, fixed = [t.array for t in outs], op.options.get("fixed")
        smooth = [i for i, one in enumerate(arrays) if one.dtype.kind in "fcV" and i != fixed]
        if smooth:
            node = object.__new__(op.node)
            node.edges, node.seq, node.where, node.shape = edges, tick(), outside(frame(3)), None
            facts = tuple([(one.shape, one.dtype) if i in smooth else None for i, one in enumerate(arrays)])
            node.saved = (*op.save(args, edges, arrays), facts)
            for i in smooth:
                outs[i].node = Output(node, i, tick(), arrays[i].shape)
            for i in op.keeps.keys() - smooth:    # indices: by these the node sees what is written to them
                outs[i].writes = Writes()
                share_writes(node, i, outs[i].writes)
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
    if t is None or t.node is None:
        return []
    copy = t.node.edges[0].saved[op.saves.index(name)]
    return [(t, from_array(copy))] if copy.__class__ is ndarray else []


# What the texts name besides the op's own.
SCOPE = {"Tensor": Tensor, "ndarray": ndarray, "asarray": asarray, "new": object.__new__, "mode": mode, "tick": tick,
         "frame": frame, "user": user, "remember": remember, "otherwise": otherwise, "failure": failure, "into": into,
         "finish": finish, "alike": alike, "register": register, "together": together, "of_list": of_list,
         "NoArray": NoArray, "filled": filled}
