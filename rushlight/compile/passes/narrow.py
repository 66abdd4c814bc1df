"""What nobody reads is not made: f(x)[:, -1] becomes f(x[:, -1:])[:, 0] where f makes its rows one by one.

A language model's next token is read off its last position. All that follows its last attention, and of this the last
query, then runs for one position: of a GPT of four layers 0.8 of the multiplications are left.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from rushlight.compile.graph import Call, Graph, Store, Value, is_random, memory_of, substitute, values_in, with_each
from rushlight.compile.passes.decompose import Builder
from rushlight.ops.kernels.index import HERE
from rushlight.ops.shape import part
from rushlight.ops.table import TABLE

Box = tuple[slice, ...]                           # what is read, along each dimension
ALL = slice(None)
ONE_BY_ONE = "to", "clone", "contiguous"          # each element by itself, as elementwise ops do
MAY_COPY = "to", "contiguous", "reshape"

# Along which dimensions of its result an op needs all of its first argument; along the others it needs what is read.
WHOLE: dict[str, Callable[..., Iterable[int]]] = {
    "linear": lambda x, weight, bias: (-1,),
    "mm": lambda x, y: (-1, *range(len(y.shape) - 2)),
    "softmax": lambda x, dim: (dim,),
    "log_softmax": lambda x, dim: (dim,),
    "layer_norm": lambda x, weight, bias, dims, eps: dims,
}


def narrow(graph: Graph) -> None:
    """From the last step to the first, so that a part asked for goes up as far as it can."""
    readers, final = graph.users(), set(graph.outputs())
    home, written = memory_of(graph), {s.target for s in graph.steps if isinstance(s, Store)}
    steps: list[Any] = []                         # the last one first
    by: dict[Value, Value] = {}
    for step in reversed(graph.steps):
        box = asked(step, readers, final)
        if step.op in MAY_COPY and home.get(step.args[0], step.args[0]) in written:
            box = None                            # of a part it may be a look at what is written before it is read
        b = None if box is None else before(step, box)
        if b is None:
            steps.append(step)
            continue
        made = b.steps[-1].outs[0]
        for reader in readers[step.outs[0]]:
            rest = tuple([0 if isinstance(k, int) else ALL for k in places(reader) or ()])
            reader.op, reader.args = "getitem", (made, (*rest, ...))
            if 0 not in rest:
                by[reader.outs[0]] = made
        for new in b.steps:
            for v in values_in(new.args):
                readers[v] = [s for s in readers.get(v, ()) if s is not step] + [new]
        steps += b.steps[::-1]
    graph.steps = [s for s in reversed(steps) if not by.keys() & set(s.outs)]
    substitute(graph, by)


def asked(step: Any, readers: dict[Value, list], final: set[Value]) -> Box | None:
    """The part of a step's result that all who read it want, if it is half of it at most."""
    out, *others = step.outs or (None,)
    if out is None or is_random(step) or out in final or any(v in final or v in readers for v in others):
        return None
    boxes = [box_of(places(reader), out.shape) for reader in readers.get(out, ())]
    if not boxes or boxes[0] is None or any(box != boxes[0] for box in boxes):
        return None
    return boxes[0] if 0 < 2 * out.array[boxes[0]].size <= out.size else None


def box_of(found: list[int | range] | None, shape: tuple) -> Box | None:
    if found is None:
        return None
    whole = [range(k, k + 1) if isinstance(k, int) else k for k in found]
    return tuple([ALL if k == range(n) else slice(k.start, k.stop, k.step) for k, n in zip(whole, shape)])


def places(reader: Call | Store) -> list[int | range] | None:
    """Along each dimension of what is read the index, or those from first to last; None if `reader` does not read a part."""
    x, *settings = reader.args
    if reader.op == "select":
        key = part(settings[0] % len(x.shape), settings[1], None)
    elif reader.op == "narrow":
        key = part(settings[0] % len(x.shape), *settings[1:])
    elif reader.op == "getitem":
        key = settings[0] if isinstance(settings[0], tuple) else settings
    elif reader.op == "index":
        key = of_list(*settings)
    else:
        return None
    if not all([type(k) is int or type(k) is slice or k is ... for k in key]):
        return None
    lead = key.index(...) if ... in key else len(key)
    between = [ALL] * (len(x.shape) - len(key) + (... in key))
    found = [range(n)[k] for n, k in zip(x.shape, (*key[:lead], *between, *key[lead + 1:]))]
    return found if all([isinstance(k, int) or k.step > 0 for k in found]) else None


def of_list(indices: tuple, key: tuple) -> tuple:
    """The key that reads the same part as x[:, [i]]."""
    if len(indices) > 1 or indices[0].kind != "constant" or indices[0].shape != (1,) or any(type(k) is int for k in key):
        return (HERE,)
    [i] = indices[0].array.tolist()
    return tuple([slice(i, i + 1 or None) if k is HERE and type(i) is int else k for k in key])


def before(step: Call, box: Box) -> Builder | None:
    """The calls that make this part of a step's result, the step itself last; None where it does not come row by row."""
    b, n = Builder(step), len(box)
    touched = [d for d in range(n) if box[d] != ALL]

    def cut(v: Value, box: Box) -> Value:
        """This part of a value, whose dimensions are the last of the box's; all of it along those of size 1."""
        key = tuple([ALL if size == 1 else k for k, size in zip(box[len(box) - len(v.shape):], v.shape)])
        return v if all([k == ALL for k in key]) else b.call("getitem", v, (*key, ...), shape=v.array[key].shape)

    args = None
    if TABLE[step.op].elementwise or step.op in ONE_BY_ONE:
        args = with_each(step.args, lambda v: cut(v, box))
    elif step.op in WHOLE and len(step.args[0].shape) == n:
        if not {d % n for d in WHOLE[step.op](*step.args)} & {*touched}:
            args = (cut(step.args[0], box), *step.args[1:])
    elif step.op in ARGUMENTS:
        args = ARGUMENTS[step.op](step, box, touched, cut)
    if args is None:
        return None
    outs = [Value(np.broadcast_to(np.zeros((), v.dtype), v.array[box[:len(v.shape)]].shape)) for v in step.outs]
    b.steps.append(Call(step.op, args, tuple(outs), step.line, step.late))
    return b


def of_turned(step: Call, box: Box, touched: list[int], cut: Callable) -> tuple:
    """The dimension of its result that each of x's becomes is found by moving sizes that all differ."""
    x, *settings = step.args
    order = [size - 1 for size in TABLE[step.op].kernel(np.empty(range(1, len(box) + 1)), *settings).shape]
    return cut(x, tuple([box[order.index(d)] for d in range(len(box))])), *settings


def of_reshaped(step: Call, box: Box, touched: list[int], cut: Callable) -> tuple | None:
    """Where only leading dimensions are touched, which x has as well."""
    x, out = step.args[0], step.outs[0]
    lead = max(touched) + 1
    if x.shape[:lead] != out.shape[:lead]:
        return None
    return cut(x, (*box[:lead], *[ALL] * (len(x.shape) - lead))), (*out.array[box].shape[:lead], *out.shape[lead:])


def of_attention(step: Call, box: Box, touched: list[int], cut: Callable) -> tuple | None:
    """Queries are one by one. Where they look back only, a single one, of place i, sees all of the first i + 1 keys."""
    (q, k, v, *mask), causal, scale = step.args
    rows = box[-2]
    if touched != [len(box) - 2] or mask or len(q.shape) != len(box):
        return None
    if causal and rows.stop - rows.start > 1:
        return None
    q, seen = cut(q, (*box[:-1], ALL)), slice(0, rows.stop) if causal else ALL
    k, v = [cut(t, (*[ALL] * (len(t.shape) - 2), seen, ALL)) for t in (k, v)]
    return (q, k, v), False, scale


ARGUMENTS: dict[str, Callable[..., tuple | None]] = {
    "transpose": of_turned, "permute": of_turned, "reshape": of_reshaped, "view_as_shape": of_reshaped,
    "attention": of_attention,
}
