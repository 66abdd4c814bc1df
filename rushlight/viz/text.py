"""The backward graph as text: a tree for the terminal, and Graphviz's language."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import IO, Any

from rushlight.viz.graph import Box, Graph, Params, graph
from rushlight.viz.modules import MAX_BOXES, collapsed, modules_of

# shapes of a box, by its kind
COLOURS = {"output": "#fde8b0", "op": "#eef0f4", "leaf": "#cfe8d5", "module": "#d9e4f5"}
WHOLE = re.compile(r"(?:= |grad )-?\d+")
MAX_INDENT = 60  # depth in characters; below it, the input of a node with one input is not indented
PLAIN = str.maketrans({"├": "|", "└": "`", "─": "-", "│": "|"})
FRAME = 'style=rounded color="#b9c1cd" fontname="monospace" fontsize=10 fontcolor="#5b6474"'


def print_graph(output: Any, params: Params = None, file: IO[str] | None = None) -> None:
    """Print the backward graph of a tensor: the last op first, and below each op the ops of its inputs.

    A node used several times is printed once, with a number, and later only referred to. Constants, which get no
    gradient, are left out. Leaves and results have the names of your variables; `params` names leaves: a dict,
    `model.named_parameters()` or the model; `file`: by default standard output. Raises `ValueError` if nothing was
    recorded for `output`.

    >>> import rushlight as torch
    >>> x = torch.tensor([[1., 2., 3.]], requires_grad=True)
    >>> torch.viz.print_graph((x @ torch.ones(3, 2)).sum(), params={"x": x})
    SumBackward0 ()  = 12
    └─ MmBackward0 (1, 2)  = [[6, 6]]
       └─ x (1, 3) = [[1, 2, 3]]
    """
    encoding = getattr(sys.stdout if file is None else file, "encoding", None) or "utf-8"
    for line in lines(graph(output, params)):
        try:
            line.encode(encoding)
        except UnicodeEncodeError:  # the terminal's encoding lacks the box characters
            line = line.translate(PLAIN).encode(encoding, "replace").decode(encoding)
        print(line, file=file)


def lines(found: Graph) -> list[str]:
    numbers = shared(found)
    printed: set[int] = set()
    out, stack = [], [(0, "", "")]
    while stack:
        i, lead, below = stack.pop()
        mark = f"  #{numbers[i]}" if i in numbers else ""
        if i in printed:
            out.append(f"{lead}{title(found.boxes[i])}{mark}, see above")
            continue
        printed.add(i)
        out.append(lead + told(found.boxes[i]) + mark)
        inputs = found.inputs[i]
        if len(inputs) == 1 and len(below) >= MAX_INDENT:
            stack.append((inputs[0], below, below))
            continue
        branches = [(j, below + "├─ ", below + "│  ") for j in inputs[:-1]]
        branches += [(j, below + "└─ ", below + "   ") for j in inputs[-1:]]
        stack += reversed(branches)
    return out


def told(box: Box) -> str:
    """A box on one line: `w1 = -3.0, grad 1.0` for a leaf, `o: TanhBackward0 () = 0.7071` for an op."""
    if box.kind != "leaf":
        return "  ".join([title(box), *box.notes])
    notes = [note + ".0" * bool(WHOLE.fullmatch(note) and not box.shape) for note in box.notes]
    return " ".join([title(box), ", ".join(notes)]).rstrip()


def title(box: Box) -> str:
    """The name and the shape; for a leaf or a result, the name of your variable."""
    if box.kind != "leaf":
        return f"{box.variable}: {box.label}" if box.variable else box.label
    name = box.variable or "leaf" if box.name == "AccumulateGrad" else box.name
    return f"{name} {tuple(box.shape)}" if box.shape else name


def shared(found: Graph) -> dict[int, int]:
    """{box with several incoming edges: its number, from 1}."""
    counts = [0] * len(found.boxes)
    for inputs in found.inputs:
        for i in inputs:
            counts[i] += 1
    return {i: n for n, i in enumerate((i for i, count in enumerate(counts) if count > 1), 1)}


def dot(output: Any, params: Params = None, *, collapse: bool | int | None = None) -> str:
    """The backward graph of a tensor in Graphviz's language: `dot -Tpng` draws it.

    Arrows show where gradients go, from the output to the leaves. A leaf shows its shape and, if it has at most four
    elements, these and their gradient. `params` names the leaves: a dict, `model.named_parameters()` or the model.
    `collapse`: as in `svg`. Raises `ValueError` if nothing was recorded for `output`.

    >>> import rushlight as torch
    >>> x = torch.tensor(3., requires_grad=True)
    >>> torch.viz.dot(x * x, params={"x": x}).splitlines()[0]
    'digraph backward {'
    """
    return dot_text(grouped(graph(output, params), collapse))


def grouped(found: Graph, collapse: bool | int | None) -> Graph:
    """The graph with modules as single boxes, by `collapse`."""
    if collapse is False or (collapse is None and len(found.boxes) <= MAX_BOXES):
        return found
    return collapsed(found, None if collapse in (None, True) else int(collapse))


def dot_text(found: Graph) -> str:
    out = [
        "digraph backward {",
        '  node [shape=box style="rounded,filled" color="#8a93a3" fontname="monospace" fontsize=11]',
        '  edge [color="#8a93a3" arrowsize=0.7]',
    ]
    for i, box in enumerate(found.boxes):
        label = quoted("\n".join([box.label, *box.notes]))
        tip = f" tooltip={quoted(box.made_at)}" if box.made_at else ""
        out.append(f"  n{i} [label={label} fillcolor={quoted(COLOURS[box.kind])}{tip}]")
    out += frames(found)
    out += [f"  n{i} -> n{j}" for i, inputs in enumerate(found.inputs) for j in inputs]
    return "\n".join([*out, "}", ""])


def frames(found: Graph) -> Iterator[str]:
    """A frame around the boxes of each module; nested modules have frames inside."""
    homes = [() if box.kind == "module" else home for box, home in zip(found.boxes, modules_of(found))]
    opened: tuple[str, ...] = ()
    for home, i in sorted((home, i) for i, home in enumerate(homes) if home):
        shared = 0
        while shared < min(len(opened), len(home)) and opened[shared] == home[shared]:
            shared += 1
        yield from ["  }"] * (len(opened) - shared)
        for depth in range(shared, len(home)):
            name = ".".join(home[: depth + 1])
            yield (f"  subgraph {quoted('cluster ' + name)} {{ label={quoted(name)} labeljust=l {FRAME}")
        opened = home
        yield f"  n{i}"
    yield from ["  }"] * len(opened)


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
