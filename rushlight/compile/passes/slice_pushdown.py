"""Unread rows are not computed: f(x)[:, -1] becomes f(x[:, -1:])[:, 0], if f works row by row.

A language model reads its next token from the last position. All ops after the last attention, and the last attention's
query, then run for one position: for a GPT of four layers 0.8 of the multiplications are left.
"""

from __future__ import annotations

from typing import Any

from rushlight.compile.graph import Call, Graph, Store, Value, is_random, memory_of, substitute, values_in
from rushlight.compile.passes.decompose import Builder
from rushlight.compile.passes.row_dependence import ALL, Box, part_of, places
from rushlight.ops.index.along_dim import embedding
from rushlight.ops.shape.views import getitem, to


def narrow(graph: Graph) -> None:
    """Visits steps from the last to the first, so that a slice moves up as far as possible."""
    readers, final = graph.users(), set(graph.outputs())
    home, written = memory_of(graph), {s.target for s in graph.steps if isinstance(s, Store)}
    steps: list[Any] = []  # the last step first
    by: dict[Value, Value] = {}
    for step in reversed(graph.steps):
        box = asked(step, readers, final)
        if may_copy(step) and home.get(step.args[0], step.args[0]) in written:
            box = None  # a slice may alias memory that is written before it is read
        b = before(step, box) if isinstance(step, Call) and box is not None else None
        if b is None:
            steps.append(step)
            continue
        made = b.steps[-1].outs[0]
        for reader in readers[step.outs[0]]:
            rest = tuple([0 if isinstance(k, int) else ALL for k in places(reader) or ()])
            assert isinstance(reader, Call)  # a store reads the whole value, so no slice suffices
            reader.op, reader.args = getitem.op.name, (made, (*rest, ...))
            if 0 not in rest:
                by[reader.outs[0]] = made
        for new in b.steps:
            for v in values_in(new.args):
                readers[v] = [s for s in readers.get(v, ()) if s is not step] + [new]
        steps += b.steps[::-1]
    graph.steps = [s for s in reversed(steps) if not by.keys() & set(s.outs)]
    substitute(graph, by)


def asked(step: Any, readers: dict[Value, list], final: set[Value]) -> Box | None:
    """The part of a step's result that all its readers need, if it is at most half of the result. None for an
    embedding, which raises an error for an index out of range even in unread rows."""
    out, *others = step.outs or (None,)
    if (
        out is None
        or step.runs(embedding)
        or is_random(step)
        or any(v in final for v in step.outs)
        or any(v in readers for v in others)
    ):
        return None
    boxes = [box_of(places(reader), out.shape) for reader in readers.get(out, ())]
    if not boxes or boxes[0] is None or any(box != boxes[0] for box in boxes):
        return None
    return boxes[0] if 0 < 2 * out._array[boxes[0]].size <= out.size else None


def may_copy(step: Any) -> bool:
    """Whether a step's result is a copy of its argument for some arguments, and a view for others."""
    return step.runs(to) or step.entry is not None and "copies" in step.entry.options


def box_of(found: list[int | range] | None, shape: tuple) -> Box | None:
    if found is None:
        return None
    whole = [range(k, k + 1) if isinstance(k, int) else k for k in found]
    return tuple([ALL if k == range(n) else slice(k.start, k.stop, k.step) for k, n in zip(whole, shape)])


def before(step: Call, box: Box) -> Builder | None:
    """The calls that compute this part of a step's result, the step itself last; None if the op does not work row by
    row.
    """
    b = Builder(step)
    made = part_of(step, box, lambda v, key: b.call(getitem, v, (*key, ...), shape=v._array[key].shape))
    if made is None:
        return None
    b.steps.append(made)
    return b
