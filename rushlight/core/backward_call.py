"""The backward of an op's nodes: saved values -> rules -> gradients of the inputs.

`backward` is the template of the backward of all ops. It never runs itself: with the first backward of an op,
`base/specialise.py` makes the op's function from it, one for gradients that are arrays and one for tensors
(worlds.py).
`print(rushlight.docs.mul.call)` shows the function for arrays."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from math import inf
from typing import Any

from numpy import ndarray

from rushlight.base.dtypes import HALVES, float32
from rushlight.base.faster import faster, least
from rushlight.base.specialise import specialise, specialised
from rushlight.core.engine import saved_output, saved_part
from rushlight.core.table import Op, parameters, rebind, ruled_inputs
from rushlight.core.worlds import AS_ARRAYS, AS_TENSORS, TENSORS, GradientKind, present
from rushlight.kernels.float16 import in_single

# rule["x"] becomes the variable rule_x, grad["x"] grad_x
VARIABLES = {"rule": "rule_{}", "grad": "grad_{}"}


def backward(op: Any, node: Any, g: Any) -> Any:
    """Rules give g times the derivative; torch's gradient of a holomorphic function is g times its conjugate, which is
    conj(rule(conj(g))) for every rule linear in g."""
    rule: dict = {}
    grad: dict = {}
    saved, edges = node.saved, node.edges
    if op.reduces:  # a reduction: its rules see g and out with the reduced dimensions
        if not op.on_arrays:
            g = op.reshape(g, saved[-1])
        elif g.ndim:
            g = g.reshape(saved[-1])
    if op.several:  # one gradient for each output
        g = op.parts(g, saved[-1])
        is_complex = any([one is not None and dtype_kind(op, one) == "c" for one in g])
        if is_complex:
            g = [None if one is None else op.conj(one) for one in g]
    else:
        if op.rounds_once and g.dtype.char in HALVES:
            return op.of_halves(node, g)
        is_complex = dtype_kind(op, g) == "c"
        if is_complex:
            g = op.conj(g)

    if op.scalars and g.__class__ is not ndarray and g.size <= 1:
        # NumPy multiplies two of its scalars in 55 ns, a scalar and an array in 650
        for i, name, given, _ in op.rules:
            if given is None or not op.only_input and edges[i] is None:
                grad[name] = None
            else:
                grad[name] = rule[name](g, *[as_scalar(op, what, saved[at]) for what, at in given])
    else:
        if op.together:  # one faster way may give all gradients; otherwise each input has its rule
            grad[op.names] = (None,) * len(op.names)
            if edges[0] is not None:
                grad[op.names] = faster(
                    op,
                    op.joined,
                    op.first_alone,
                    g,
                    *[as_given(op, what, saved[at], saved, node) for what, at in op.given],
                )
        for i, name, given, from_elements in op.rules:
            if given is None or not op.only_input and edges[i] is None:
                grad[name] = None
            elif not op.together or i > 0 and grad[name] is None:
                if from_elements is None or from_elements and g.size < from_elements:
                    grad[name] = rule[name](g, *[as_given(op, what, saved[at], saved, node) for what, at in given])
                else:
                    grad[name] = faster(
                        op, name, rule[name], g, *[as_given(op, what, saved[at], saved, node) for what, at in given]
                    )
    grads = grad["tensors"] if op.names == ("tensors",) else grad[op.names]
    if op.several and not op.on_arrays:
        grads = rounded(grads, g[0])
    if is_complex:
        return [None if one is None else op.conj(one) for one in grads]
    return grads


# -- parts of `backward`, replaced by their expressions


def dtype_kind(op: Any, g: Any) -> str:
    return g.dtype.kind if op.on_arrays else g._array.dtype.kind


def as_given(op: Any, what: Any, item: Any, saved: Any, node: Any) -> Any:
    """A saved item as the rule is given it: `what` is an entry of `classified`."""
    return (
        (
            [t._array for t in item] if what == "tensors"
            else item._array if what == "input" and op.elementwise
            else (None if item is None else item._array) if what == "input"
            else item.reshape(saved[-1]) if what == "out" and op.reduces
            else item
        )
        if op.on_arrays
        else (
            op.reshape(saved_output(node, item), saved[-1]) if what == "out" and op.reduces
            else saved_output(node, item) if what == "out"
            else item if what in ("", "input", "tensors")
            else saved_part(node, item, what)
        )
    )  # fmt: skip


def as_scalar(op: Any, what: str, item: Any) -> Any:
    """A saved item of an elementwise op whose arrays are 0-d: NumPy's scalar."""
    return item._array[()] if what == "input" else item[()] if what == "out" else item


INLINED = dtype_kind, as_given, as_scalar


# -- the facts about an op


def classified(op: Op, name: str) -> str | int:
    """What a saved name is: "tensors", "input", "out", the number of one of several outputs, or "" for a fact."""
    outputs = op.options.get("outputs", "").split()
    if name in outputs and name != "out":
        return outputs.index(name)
    return name if name in ("tensors", "out") else "input" if name in op.inputs else ""


def facts(
    op: Op, kind: GradientKind, reduces: bool = False, several: bool = False, of_half: bool = False
) -> dict[str, Any]:
    """The constants of `backward` for one op.

    `reduces`: a reduction; `several`: the op has several outputs; `of_half`: for gradients of 16-bit floats."""
    on_arrays, names = kind is AS_ARRAYS, ruled_inputs(op)
    rules = []
    for i, name in enumerate(names):
        rule = op.rules[name]
        given = rule and tuple([(classified(op, one), op.saves.index(one)) for one in parameters(rule)[1:]])
        from_elements = least(op, name, of_half) if on_arrays and rule else inf
        # `given`: None without a rule. The last item: None, never faster; 0, always try; n, from n elements on
        rules.append((i, name, given, None if from_elements == inf else from_elements))
    return {
        "names": tuple(names),
        "joined": " ".join(names),
        "rules": tuple(rules),
        "on_arrays": on_arrays,
        "elementwise": op.elementwise,
        "scalars": on_arrays and op.elementwise and not several and not of_half,
        "rounds_once": rounds_once(op, kind, several) and not of_half,
        "reduces": reduces,
        "several": several,
        "only_input": names == ["tensors"] or len(op.inputs) == 1,
        "together": has_one_way(op, kind),
        "given": rules[0][2],
        "conj": kind.names["conj"],
        "reshape": kind.names["reshape"],
        "parts": kind.parts,
    }


def rounds_once(op: Op, kind: GradientKind, several: bool) -> bool:
    """Whether the rules compute in float32 with arrays of 16-bit floats."""
    wide = op.elementwise or op.options.get("wide_rules", False)
    return kind is AS_ARRAYS and wide and not several


def has_one_way(op: Op, kind: GradientKind) -> bool:
    """Whether one faster way gives the gradients of all inputs: it has their names."""
    names = ruled_inputs(op)
    several = kind is AS_ARRAYS and len(names) > 1 and not op.elementwise
    return several and least(op, " ".join(names)) < inf


# -- the function of an op


def function_of(op: Op, kind: GradientKind, reduces: bool = False, several: bool = False) -> Callable:
    """(node, g) -> gradients of the inputs, for this kind of gradients. Arguments as in `facts`."""
    if kind is AS_TENSORS:
        present(op)
    rules = {
        f"rule_{name}": rebind(op.rules[name], kind.names) for name in ruled_inputs(op) if op.rules[name] is not None
    }
    if kind is AS_TENSORS and op.options.get("wide_rules"):
        rules = {name: in_single_tensors(rule) for name, rule in rules.items()}
    scope, known = {**SCOPE, "op": op, **rules}, facts(op, kind, reduces, several)
    if known["together"]:
        known["first_alone"] = first_alone(rules[f"rule_{op.inputs[0]}"], len(ruled_inputs(op)))
    if known["rounds_once"]:
        known["of_halves"] = of_halves(op, scope, reduces)
    return made(op, known, scope)


def made(op: Op, known: dict[str, Any], scope: dict[str, Any]) -> Callable:
    return specialise(backward, known, locals=VARIABLES, inlined=INLINED, scope=scope, name=f"backward_{op.name}")


def source(op: Op, kind: GradientKind, reduces: bool = False, several: bool = False) -> str:
    """The text of the op's backward."""
    known = facts(op, kind, reduces, several)
    tree = specialised(backward, known, locals=VARIABLES, inlined=INLINED, name=f"backward_{op.name}")
    return ast.unparse(tree) + "\n"


def of_halves(op: Op, scope: dict[str, Any], reduces: bool) -> Callable:
    """(node, g) -> gradients of the inputs, of 16-bit floats: each rule computes in float32, and its result is rounded
    once. Made with the first such gradient."""

    def first(node: Any, g: Any) -> Any:
        own = scope | {name: in_single(op.name, rule) for name, rule in scope.items() if name.startswith("rule_")}
        run = scope["of_halves"] = made(op, facts(op, AS_ARRAYS, reduces, of_half=True), own)
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


def rounded(found: Sequence[Any], g: Any) -> Sequence[Any]:
    """The gradients in half precision if the first output's gradient is: the saved mean and variance are in float32."""
    if g is None or g._array.dtype.char not in HALVES:
        return found
    return [h if h is None or h.dtype is g.dtype else TENSORS["to"](h, g.dtype) for h in found]


def first_alone(rule: Callable, count: int) -> Callable:
    """The rule of the first of `count` inputs, with None for the gradients of the others."""
    others = (None,) * (count - 1)
    return lambda *args: (rule(*args), *others)


# the globals of the function made from `backward`
SCOPE = {
    "ndarray": ndarray, "HALVES": HALVES, "faster": faster, "rounded": rounded,
    "saved_output": saved_output, "saved_part": saved_part,
}  # fmt: skip
