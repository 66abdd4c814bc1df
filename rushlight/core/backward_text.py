"""The backward of an op's nodes, written out as text from the rules of its entry.

    def backward_mul(node, g):
        saved, edges = node.saved, node.edges
        ...
        grad_x = rule_x(g, saved[1]._array)
        ...
        return grads

The first backward of an op writes its text. `print(rushlight.docs.mul.call)` shows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

import numpy as np

from rushlight.base.dtypes import HALVES, float32
from rushlight.base.text import define, folded, indented, tupled
from rushlight.core.faster import faster, least
from rushlight.core.gradient_worlds import AS_ARRAYS, AS_NUMBERS, AS_TENSORS, World
from rushlight.core.saved import saved_output, saved_part
from rushlight.core.table import Op, parameters, rebind, ruled_inputs
from rushlight.core.worlds import TENSORS, present
from rushlight.kernels.float16 import in_single


def written(op: Op, world: World, kept: bool = False, several: bool = False) -> Callable:
    """(node, g) -> gradients of the inputs, in this world. Arguments as in `backward_source`."""
    if world is AS_TENSORS:
        present(op)
    rules = {
        f"rule_{name}": rebind(op.rules[name], world.names) for name in ruled_inputs(op) if op.rules[name] is not None
    }
    if world is AS_TENSORS and op.options.get("wide_rules"):
        rules = {name: in_single_tensors(rule) for name, rule in rules.items()}
    scope = {
        "op": op,
        "conj": world.names["conj"],
        "reshape": world.names["reshape"],
        "parts": world.parts,
        "saved_output": saved_output,
        "saved_part": saved_part,
        "faster": faster,
        "ndarray": np.ndarray,
        "HALVES": HALVES,
        "rounded": rounded,
        **rules,
    }
    if have_one_way(op, world):
        scope["first_alone"] = first_alone(rules[f"rule_{op.inputs[0]}"], len(ruled_inputs(op)))
    if rounds_once(op, world, several):
        scope["of_halves"] = of_halves(op, scope, kept)
    text = backward_source(op, world, kept, several)
    return define(text, f"backward_{op.name}", scope, f"backward of {op.name}, {world.method}")


def of_halves(op: Op, scope: dict[str, Any], kept: bool) -> Callable:
    """(node, g) -> gradients of the inputs, of 16-bit floats: each rule computes in float32, and its result is rounded
    once. Written with the first such gradient."""

    def first(node: Any, g: Any) -> Any:
        own = scope | {name: in_single(op.name, rule) for name, rule in scope.items() if name.startswith("rule_")}
        text = backward_source(op, AS_ARRAYS, kept, of_half=True)
        run = scope["of_halves"] = define(text, f"backward_{op.name}", own, f"backward of {op.name}, 16-bit floats")
        return run(node, g)

    return first


def in_single_tensors(rule: Callable) -> Callable:
    """The rule, which takes tensors of 16-bit floats to float32, and rounds its result once."""

    def call(g: Any, *args: Any) -> Any:
        if g._array.dtype.char not in HALVES:
            return rule(g, *args)
        wide = [
            TENSORS["to"](a, float32) if a.__class__ is g.__class__ and a._array.dtype.char in HALVES else a
            for a in (g, *args)
        ]
        made = rule(*wide)
        return made if made is None else TENSORS["to"](made, g.dtype)

    return call


def computes_numbers(op: Op, world: World, several: bool) -> bool:
    """Whether gradients may be NumPy's scalars, which are computed apart."""
    return world is AS_ARRAYS and op.elementwise and not several


def rounds_once(op: Op, world: World, several: bool) -> bool:
    """Whether the rules compute in float32 with arrays of 16-bit floats."""
    wide = op.elementwise or op.options.get("wide_rules", False)
    return world is AS_ARRAYS and wide and not several


def backward_source(op: Op, world: World, kept: bool = False, several: bool = False, of_half: bool = False) -> str:
    """The text of (node, g) -> gradients of the inputs. Each rule is given what its parameters name.

    `kept`: a reduction, whose rules see g and out with the reduced dimensions; `several`: g becomes a list, one for
    each output; `of_half`: for gradients of 16-bit floats. The rule of an input without an edge is not run. Rules give
    g times the derivative; torch's gradient of a holomorphic function is g times its conjugate, which is
    conj(rule(conj(g))) for every rule linear in g."""
    is_complex, conjugate = f"{world.kind('g')} == 'c'", "conj(g)"
    lines = ["saved, edges = node.saved, node.edges"]
    if kept:
        lines += world.g_kept
    if several:
        lines += ["g = parts(g, saved[-1])"]
        is_complex = f"any(x is not None and {world.kind('x')} == 'c' for x in g)"
        conjugate = "[None if x is None else conj(x) for x in g]"
    numbers = computes_numbers(op, world, several) and not of_half
    if rounds_once(op, world, several) and not of_half:
        lines += ["if g.dtype.char in HALVES:", "    return of_halves(node, g)"]
    lines += [f"is_complex = {is_complex}", "if is_complex:", f"    g = {conjugate}"]
    rules = gradients(op, world, kept, of_half)
    if numbers:  # NumPy multiplies two of its numbers in 55 ns, one and an array in 650
        lines += [
            "if g.__class__ is ndarray or g.size > 1:",
            *indented(rules),
            "else:  # scalars of NumPy",
            *indented(gradients(op, AS_NUMBERS, kept)),
        ]
    else:
        lines += rules
    found = [f"grad_{name}" for name in ruled_inputs(op)]
    lines += ["grads = grad_tensors"] if op.inputs == ("tensors",) else tupled("grads = ", found)
    if several and world is AS_TENSORS:
        lines += ["grads = rounded(grads, g[0])"]
    lines += ["if is_complex:", "    return [None if grad is None else conj(grad) for grad in grads]", "return grads"]
    return "\n".join([f"def backward_{op.name}(node, g):", *indented(lines)]) + "\n"


def rounded(found: Sequence[Any], g: Any) -> Sequence[Any]:
    """Gradients in half precision if that of the first output is: mean and variance, that rules read, are in single."""
    if g is None or g._array.dtype.char not in HALVES:
        return found
    return [h if h is None or h.dtype is g.dtype else TENSORS["to"](h, g.dtype) for h in found]


def gradients(op: Op, world: World, kept: bool, of_half: bool = False) -> list[str]:
    """The lines for the gradients of all inputs."""
    names = ruled_inputs(op)
    if have_one_way(op, world):
        return gradients_together(op, names, kept)
    return [line for i, name in enumerate(names) for line in gradient(op, i, name, world, kept, of_half)]


def have_one_way(op: Op, world: World) -> bool:
    """Whether one faster way gives the gradients of all inputs: it has their names."""
    names = ruled_inputs(op)
    several = world is AS_ARRAYS and len(names) > 1 and not op.elementwise
    return several and least(op, " ".join(names)) < inf


def gradients_together(op: Op, names: list[str], kept: bool) -> list[str]:
    """The lines for the gradients of all inputs, where one faster way may give them all.

    The way is tried if the first input's gradient is wanted, with what the rule of that input is given. If the way does
    not take the arguments, `first_alone` runs that rule, and the other inputs have their own rules."""
    grads = [f"grad_{name}" for name in names]
    given = rule_arguments(op, names[0], AS_ARRAYS, kept)
    call = ["op", repr(" ".join(names)), "first_alone", *given]
    lines = [
        " = ".join(grads) + " = None",
        "if edges[0] is not None:",
        *indented(folded(f"{', '.join(grads)} = faster(", call, ")")),
    ]
    for i, name in enumerate(names[1:], 1):
        lines += [f"if edges[{i}] is None:", f"    grad_{name} = None"]
        if op.rules[name] is not None:
            own = rule_call(op, name, AS_ARRAYS, kept, False)
            lines += [f"elif grad_{name} is None:", *indented(own)]
    return lines


def first_alone(rule: Callable, count: int) -> Callable:
    """The rule of the first of `count` inputs, with None for the gradients of the others."""
    others = (None,) * (count - 1)
    return lambda *args: (rule(*args), *others)


def rule_arguments(op: Op, name: str, world: World, kept: bool) -> list[str]:
    """The expressions for what the rule of an input is given."""
    saved = parameters(op.rules[name])[1:]
    return ["g", *(world.saved(op, one, f"saved[{op.saves.index(one)}]", kept) for one in saved)]


def gradient(op: Op, i: int, name: str, world: World, kept: bool, of_half: bool) -> list[str]:
    """The lines for the gradient of one input: None where the input has no edge."""
    grad = f"grad_{name}"
    if op.rules[name] is None:
        return [f"{grad} = None"]
    lines = rule_call(op, name, world, kept, of_half)
    if name == "tensors" or len(op.inputs) == 1:
        return lines
    unwanted = [f"if edges[{i}] is None:", f"    {grad} = None"]
    if lines[0].startswith("if "):
        return [*unwanted, f"el{lines[0]}", *lines[1:]]
    return [*unwanted, "else:", *indented(lines)]


def rule_call(op: Op, name: str, world: World, kept: bool, of_half: bool) -> list[str]:
    """The lines that call the rule of one input, by a faster way from some size on."""
    grad = f"grad_{name}"
    given = rule_arguments(op, name, world, kept)
    lines = folded(f"{grad} = rule_{name}(", given, ")")
    by_faster = folded(f"{grad} = faster(", ["op", repr(name), f"rule_{name}", *given], ")")
    from_elements = least(op, name, of_half) if world is AS_ARRAYS else inf
    tests = [f"if g.size < {from_elements}:", *indented(lines), "else:", *indented(by_faster)]
    return by_faster if from_elements == 0 else tests if from_elements < inf else lines
