"""Eager programs: views, writes, hooks, custom Functions, checkpoints, modes and second derivatives.

Each statement is tried in torch before it is kept (live.py); torch's refusals are kept now and then. A program ends
with a backward pass and returns values, gradients, what hooks saw, and what the tensors are and share."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from operator import mul
from typing import Any

import eager_parts as parts
import numpy as np
from harness import library, shares
from live import DTYPES, SHAPES, Writer

REFUSED = 0.02  # share of statements that are kept although torch refuses them
IN_CONTEXT = 0.12  # share of statements that stand in a `with`


def program(rng: random.Random) -> str:
    """Tensors, 2 to 10 statements, a backward pass, and everything that can be compared."""
    writer = Writer(rng, library("torch"), {"log": []})
    writer.lines.append("log = []")
    for _ in range(rng.randint(1, 3)):
        leaf(writer)
    wanted = len(writer.lines) + rng.randint(2, 10)
    for _ in range(30):
        if len(writer.lines) >= wanted:
            break
        kind = rng.choices(list(STATEMENTS), weights=[weight for _, weight in STATEMENTS.values()])[0]
        STATEMENTS[kind][0](writer)
    ending(writer)
    return "\n".join([*writer.lines, answer(writer)])


def leaf(writer: Writer) -> None:
    """A tensor of few numbers, like the first in half of all cases; most require gradients."""
    rng = writer.rng
    first = writer.scope[writer.made[0]] if writer.made and rng.random() < 0.6 else None
    shape = tuple(first.shape) if first is not None else rng.choice(SHAPES)
    dtype = str(first.dtype).split(".")[-1] if first is not None else rng.choice(DTYPES)
    made = writer.values(shape, dtype)
    wants = rng.random()
    name = writer.fresh()
    if writer.attempt(made if wants < 0.3 else f"{made[:-1]}, requires_grad=True)", name):
        writer.leaves.append(name)


# -- statements ------------------------------------------------------------------------------------


def floating(x) -> bool:
    return x.is_floating_point() or x.is_complex()


def statement(writer: Writer, templates: list[str], named: bool, f: str = "", where: Callable = floating) -> None:
    """One of these templates for one of the tensors, perhaps in a context; a few tries."""
    rng = writer.rng
    for _ in range(6):
        x = writer.pick(where)
        if x is None:
            return
        text = writer.filled(rng.choice(templates).replace("{f}", f), x)
        if avoided(writer, x, text, templates):
            continue
        name = writer.fresh() if named or ".requires_grad_(" in text and rng.random() < 0.2 else None
        if rng.random() < IN_CONTEXT:
            context = writer.filled(rng.choice(parts.CONTEXTS), x)
            if writer.attempt(f"with {context}: {name + ' = ' if name else ''}{text}"):
                writer.made += [name] if name and writer.is_small(writer.scope[name]) else []
                return
        elif writer.attempt(text, name):
            return
    if rng.random() < REFUSED:
        writer.lines.append(text)


def avoided(writer: Writer, x: str, text: str, templates: list[str]) -> bool:
    """Whether torch's answer is a matter of chance: a write to a tensor that overlaps an operand; or `requires_grad_`
    and `detach_` where views exist already, or inside a checkpoint."""
    one = writer.scope[x]
    if "requires_grad" in text or "detach_(" in text:
        return writer.inner or any(getattr(writer.scope[name], "_base", None) is one for name in writer.made)
    if templates in (parts.VIEWS, parts.RESULTS, parts.HOOKS):
        return False
    operands = [writer.scope[name] for name in writer.made if name != x and re.search(rf"\b{name}\b", text)]
    return any(overlap(one, other) for other in operands)


def overlap(x: Any, y: Any) -> bool:
    """Whether two tensors share elements, and are not the same window."""
    if not shares(x, y) or x.data_ptr() == y.data_ptr() and (x.stride(), x.shape) == (y.stride(), y.shape):
        return False
    return x.itemsize != y.itemsize or not places(x).isdisjoint(places(y))


def places(x: Any) -> set[int]:
    """Where the elements of a tensor stand in its storage."""
    steps = x.stride()
    return {x.storage_offset() + sum(map(mul, at, steps)) for at in np.ndindex(*x.shape)}


def view(writer: Writer) -> None:
    statement(writer, parts.VIEWS, True)


def result(writer: Writer) -> None:
    statement(writer, parts.RESULTS, True)


def write(writer: Writer) -> None:
    statement(writer, parts.WRITES, False)


def write_named(writer: Writer) -> None:
    statement(writer, [text for text in parts.WRITES if text.startswith(("{x}.", "F."))], True)


def assignment(writer: Writer) -> None:
    statement(writer, parts.ASSIGNMENTS, False)


def out(writer: Writer) -> None:
    statement(writer, parts.OUT, False)


def hook(writer: Writer) -> None:
    """Not on views: torch drops a hook of a view when the view's memory is written to. On nodes that torch has too."""

    def simple(x: Any) -> bool:
        return floating(x) and not x._is_view() and (x.grad_fn is None or x.grad_fn.name() in SIMPLE)

    statement(writer, parts.HOOKS, False, where=simple)


SIMPLE = [
    f"{name}Backward0" for name in ("Mul", "Add", "Sub", "Sin", "Cos", "Tanh", "Exp", "Neg", "Clone", "Sum", "Cat")
]


def backward(writer: Writer) -> None:
    statement(writer, parts.BACKWARDS, False)


def gradient(writer: Writer) -> None:
    statement(writer, parts.GRADIENTS, True)


def checkpoint(writer: Writer) -> None:
    """A function of a few statements, and a call of it under a checkpoint."""
    name = writer.fresh()
    x = writer.pick(floating)
    if x is None:
        return
    body = inner(writer, x)
    if writer.attempt("\n".join([f"def {name}(x):", *(f"    {line}" for line in body)])):
        statement(writer, parts.CHECKPOINTS, True, name)


def inner(writer: Writer, x: str) -> list[str]:
    """The body of a function of x: statements tried on a copy of the tensor that x names now."""
    rng = writer.rng
    copied = writer.scope[x].detach().clone().requires_grad_(writer.scope[x].requires_grad)
    inside = Writer(rng, writer.lib, {"x": copied, "log": []})
    inside.made, inside.count, inside.inner = ["x"], 12, True
    if rng.random() < 0.7:
        inside.attempt(rng.choice(["x.clone()", "x * 1", "x.sin()", "x.view_as(x)"]), inside.fresh())
    for _ in range(rng.randint(1, 4)):
        rng.choice([view, result, write, write_named, assignment])(inside)
    return [*inside.lines, f"return {inside.pick(floating) or 'x'}"]


def function(writer: Writer) -> None:
    """A custom Function of one or two tensors, and a call of it."""
    rng, name = writer.rng, writer.fresh().upper()
    x = writer.pick(floating)
    if x is None or not writer.attempt(function_text(rng, name)):
        return
    y = writer.filled("{same}", x)
    names = [writer.fresh() for _ in range(writer.scope[name].outputs)]
    call = f"{', '.join(names)} = {name}.apply({x}, {y})"
    if writer.attempt(call):
        writer.made += names


def function_text(rng: random.Random, name: str) -> str:
    """Old style, forward(ctx, x, y), or new style, forward(x, y) and setup_context; see parts.OUTPUTS."""
    made = [rng.choice(parts.OUTPUTS) for _ in range(rng.choice([1, 1, 1, 2, 2, 3]))]
    names = [f"o{i}" for i in range(len(made))]
    dirty = rng.random() < 0.25
    if dirty:
        made = [rng.choice(parts.OWN) for _ in made]
        made[0] = ("x", rng.choice(["g * 2", "g", "g.cos()"]))
    notes = [f"ctx.save_for_backward({rng.choice(['x, y', 'x, y', 'x.clone(), y', 'y, x'])})"]
    notes += [
        f"ctx.mark_non_differentiable({o})"
        for o, (f, b) in zip(names, made)
        if not b or f.startswith("x.") and rng.random() < 0.05
    ]
    notes += ["ctx.set_materialize_grads(False)"] if rng.random() < 0.3 else []
    notes += ["ctx.mark_dirty(x)"] if dirty else []
    body = [rng.choice(["x.mul_(2)", "x.sin_()", "x.add_(y)", "x[...] = y"])] if dirty else []
    body += [f"{o} = {f}" for o, (f, _) in zip(names, made)]
    returned = f"return {', '.join(names)}"
    if rng.random() < 0.5:
        forward = ["def forward(ctx, x, y):", *body, *notes, returned]
        static = [forward]
    else:
        unpacked = ["x, y = inputs", f"{', '.join(names)} = outputs"]
        static = [
            ["def forward(x, y):", *body, returned],
            ["def setup_context(ctx, inputs, outputs):", *unpacked, *notes],
        ]
    static.append(backward_text(rng, names, [b for _, b in made]))
    lines = [f"class {name}(t.autograd.Function):", f"    outputs = {len(made)}"]
    for head, *inside in static:
        lines += ["    @staticmethod", f"    {head}", *(f"        {line}" for line in inside)]
    return "\n".join(lines)


def backward_text(rng: random.Random, names: list[str], rules: list[str]) -> list[str]:
    """backward: the sum of what each rule makes of its gradient, and a multiple of it for y."""
    body = ["s, r = ctx.saved_tensors", "h = t.zeros_like(s)"]
    for o, rule in zip(names, rules):
        if rule:
            body += [f"g = {o}", f"h = h if g is None else h + {rule}"]
    if rng.random() < 0.2:
        body.append("h.mul_(2)")
    if rng.random() < 0.1:
        body.append("log.append(h.sum())")
    gradient_of_y = rng.choice(["None", "h * 2", "h if ctx.needs_input_grad[1] else None", "h"])
    return [f"def backward(ctx, {', '.join(names)}):", *body, f"return h, {gradient_of_y}"]


STATEMENTS = {
    "view": (view, 24),
    "result": (result, 22),
    "write": (write, 16),
    "write_named": (write_named, 4),
    "assignment": (assignment, 9),
    "out": (out, 2),
    "hook": (hook, 6),
    "backward": (backward, 2),
    "gradient": (gradient, 3),
    "checkpoint": (checkpoint, 5),
    "function": (function, 4),
    "leaf": (leaf, 3),
}


# -- the end of a program --------------------------------------------------------------------------


def real_sum(writer: Writer, x: str) -> str:
    """A real number that depends on each element of x in another way."""
    one = writer.scope[x]
    if one.is_complex():
        return f"{x}.abs().square().sum()"
    return f"{x}{writer.rng.choice([' * 1', '.square()', '.sin()', ' * 2'])}".join(("(", ")")) + ".sum()"


def ending(writer: Writer) -> None:
    """A backward pass of some kind, from a few of the tensors."""
    rng = writer.rng
    for _ in range(4):
        ends = writer.tensors(lambda x: x.requires_grad and floating(x) and x.numel() > 0)
        if not ends:
            return
        ends = list(dict.fromkeys(ends[-1:] + rng.sample(ends, min(len(ends), rng.randint(0, 3)))))
        leaves = writer.tensors(lambda x: x.requires_grad and x.is_leaf and x.dim() < 4)
        total = " + ".join(real_sum(writer, x) for x in ends)
        if rng.choice(ENDINGS)(writer, total, leaves):
            return


def once(writer: Writer, total: str, leaves: list[str]) -> bool:
    return writer.attempt(f"({total}).backward()")


def twice(writer: Writer, total: str, leaves: list[str]) -> bool:
    return writer.attempt(f"loss = {total}") and writer.attempt("loss.backward(retain_graph=True)\nloss.backward()")


def second(writer: Writer, total: str, leaves: list[str]) -> bool:
    """Second derivatives, by grad or by backward."""
    if not leaves or not writer.attempt(
        f"gs = t.autograd.grad({total}, [{', '.join(leaves)}], create_graph=True, allow_unused=True)"
    ):
        return False
    writer.lines.append("log.extend(gs)")
    return writer.attempt("sum(g.abs().square().sum() for g in gs if g is not None).backward()") or True


ENDINGS = [once, once, once, twice, second, second]


def answer(writer: Writer) -> str:
    """The values, facts and gradients of all tensors, whether pairs of them share memory, and what hooks saw. Of second
    derivatives, zeros count as none: torch's relu has some (docs/differences.md)."""
    names = writer.tensors()
    full = writer.tensors(lambda x: x.numel() > 0 and not x.is_conj())
    leaves = [x for x in writer.leaves if x in full]  # results of several ops have other versions
    own = [x for x in full if any(shares(writer.scope[x], writer.scope[leaf]) for leaf in leaves)]
    text = "".join(writer.lines)
    if ".set_(" in text or "inference_mode" in text:
        own = []  # torch counts those writes in another way
    parts = [f"[{x}, flags({x}), {x}.grad{f', {x}._version, steps({x})' if x in own else ''}]" for x in names]
    pairs = [(a, b) for i, a in enumerate(full) for b in full[:i]]
    log = "log"
    if "create_graph" in text:
        log = "[g for g in log if g is not None and not (g.abs() < 1e-12).all()]"
        parts = [
            re.sub(r"(\w+\.grad)\b", r"[\1] if \1 is not None and not (\1.abs() < 1e-12).all() else 0", part)
            for part in parts
        ]
    for a, b in writer.rng.sample(pairs, min(3, len(pairs))):
        parts.append(f"shares({a}, {b})")
    return f"return [{', '.join(parts)}, {log}]"
