"""The errors of backward, in terms of the user's program: the statement that made the node, the variable that kept a
freed graph, the statement that wrote to a saved tensor."""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from rushlight.base.errors import first_line, located, place, runtime_error
from rushlight.base.tracebacks import hide_frames, ours, user_frame
from rushlight.core.engine import reachable
from rushlight.core.node import Node
from rushlight.core.table import ruled_inputs
from rushlight.core.tensor import Tensor


def blame(error: Exception, node: Node) -> None:
    """Say in an error of a node's rules which statement made the node; in an error of the user's own, as a note."""
    if node.op is not None and "own" in node.op.options and isinstance(error, Exception):
        check_rule(error, node)
    explained = located(error)
    hide_frames(own=explained)
    if explained:
        if "\n  made at: " not in error.args[0]:
            error.args = (error.args[0].replace("\n  at: ", f"\n  made at: {node.made_at}\n  at: ", 1), *error.args[1:])
    elif hasattr(error, "add_note"):  # notes exist from Python 3.11 on
        error.add_note(f"in backward of {node.name()}, made at {node.made_at}")


CHECK = "check the rules: torch.autograd.gradcheck({name}, inputs of dtype float64)"


def check_rule(error: Exception, node: Node) -> None:
    """RuntimeError that names the rule of a user's op in which the error was raised."""
    op: Any = node.op
    names = {rule.__code__: name for name, rule in op.rules.items() if rule is not None}
    step = error.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        if code in names:
            raise runtime_error(
                f"{op.called}: the rule of '{names[code]}' failed: {first_line(error)}",
                CHECK.format(name=op.called),
                rule=place(code, step.tb_lasti),
                made_at=node.made_at,
            ) from None
        step = step.tb_next


def check_fits(node: Node, edge: Node, g: Any) -> None:
    """RuntimeError if the rule of a user's op returned a gradient that is not of the shape of the op's output."""
    shape, given, op = tuple(edge.shape or ()), tuple(g.shape), node.op
    missing = len(given) - len(shape)
    if missing < 0 or any([n not in (1, m) for n, m in zip(shape, given[missing:])]):
        name = ruled_inputs(op)[node.edges.index(edge)]
        raise runtime_error(
            f"{op.called}: the rule of '{name}' returned a gradient of shape {given}, but '{name}' has shape {shape}",
            "return the gradient in the shape of the output; backward sums over broadcast dimensions",
            made_at=node.made_at,
        )


def second_time(node: Node) -> RuntimeError:
    name, tensor = outlived(node) or (None, None)
    told = None if tensor is None else f"{name}, of shape {tuple(tensor.shape)}; an earlier backward() freed its graph"
    made_at = node.made_at if tensor is None or tensor._node is None else tensor._node.made_at
    return runtime_error(
        "Trying to backward through the graph a second time (or directly access saved tensors after they have "
        "already been freed).",
        "run the forward pass again in each step (was a tensor computed outside the loop?); detach() tensors "
        "carried over from the last step; or use retain_graph=True in the first backward()",
        tensor=told,
        op=node.name(),
        made_at=made_at,
    )


def outlived(node: Node) -> tuple[str, Tensor] | None:
    """The user's variable that kept a freed node in use: of those computed through it, the first that was made."""
    found = [(t._node.seq, name, t) for name, t in held_tensors() if t._node is not None and t._node.seq >= node.seq]
    for _, name, tensor in sorted(found, key=lambda entry: entry[0])[:100]:
        if node in reachable([tensor._node]):  # type: ignore[list-item]
            return name, tensor
    return None


NOTEBOOKS = re.compile(r"_+\d*|_[io]h|_i+|_i\d+|In|Out")  # names that a notebook gives to results: _, ___, _12, Out


def held_tensors() -> Iterator[tuple[str, Tensor]]:
    """(name, tensor) for the tensors in the user's variables, here and in the callers, and in their lists, dicts and
    objects: h, self.h, states[2].
    """
    frame = user_frame(1)
    while frame is not None:
        for space in () if ours(frame.f_code.co_filename) else (frame.f_locals, frame.f_globals):
            for name, value in [*space.items()]:
                if NOTEBOOKS.fullmatch(name):
                    continue
                yield from ((name + inner, t) for inner, t in tensors_of(value))
        frame = frame.f_back


def tensors_of(value: Any) -> Iterator[tuple[str, Tensor]]:
    """(access path, tensor) for a tensor, or for the tensors in a list, dict or object."""
    if isinstance(value, Tensor):
        yield "", value
    elif isinstance(value, (list, tuple)):
        yield from ((f"[{i}]", t) for i, t in enumerate(value[:1000]) if isinstance(t, Tensor))
    elif isinstance(value, dict):
        yield from ((f"[{key!r}]", t) for key, t in [*value.items()][:1000] if isinstance(t, Tensor))
    elif not isinstance(value, (type, ModuleType)):
        inside = getattr(value, "__dict__", None)
        yield from ((f".{key}", t) for key, t in (inside or {}).items() if isinstance(t, Tensor))


AUGMENTED = re.compile(r"^([\w.]+(?:\[[^\]]*\])?) *(\*\*|//|[-+*/%&|^@])= *(.+)$")
WRITING = re.compile(r"^(?:([\w.]+) *= *)?([\w.]+)\.(\w*[a-z])_\((.*)\)$")


def instead_of_writing(written_at: str) -> str:
    """The hint for the statement that wrote, `file.py:3: y += 1`."""
    text = written_at.partition(": ")[2]
    for part in [part.strip() for part in text.split(";")]:
        if (hint := out_of_place(part)) != "":
            return hint
    if re.search(r"\.step\(", text):
        return (
            "the optimizer has changed parameters after the forward pass that used them: run the forward pass "
            "again after step(), or call all backward() before the first step()"
        )
    if re.search(r"\w\(", text) and not re.search(r"\] *=[^=]|_\(", text):
        return "leave out inplace=True of the layer, or clone() the tensor before the call"
    return "clone() the tensor before it is written to: x = x.clone()"


def out_of_place(statement: str) -> str:
    """The hint for `y += 1` or `y.mul_(2)`; "" for other statements."""
    found = AUGMENTED.match(statement)
    if found is not None and "[" not in found[1]:
        x, sign, y = found.groups()
        y = y if re.fullmatch(r"[\w.]+", y) else f"({y})"
        return f"write `{x} = {x} {sign} {y}` instead of `{statement}`: that makes a new tensor"
    found = WRITING.match(statement)
    if found is not None and found[3] not in ("zero", "fill", "copy"):
        x, name, given = found[2], found[3], found[4]
        return f"write `{found[1] or x} = {x}.{name}({given})`: that makes a new tensor"
    return ""


def overwritten(node: Node, writes: Any, what: str, shape: tuple | None) -> RuntimeError:
    written_at = place(*writes.where) if writes.where else "<unknown>"
    return runtime_error(
        f"one of the variables needed for gradient computation has been modified by an inplace operation: {what} "
        f"of {node.name()}, shape {shape}, now at version {writes.count}",
        instead_of_writing(written_at),
        saved_by=node.made_at,
        written_at=written_at,
    )
