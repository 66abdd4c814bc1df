"""What the names in a rule mean. The text of a rule is written once; the world decides.

`ARRAYS`: kernels (the fast backward); `TENSORS`: the ops themselves (`create_graph`, tracing);
formulas: symbols that print themselves (introspect/formulas.py); scalars: the body of a compiled
loop (loops/scalar_math.py)."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from math import inf
from types import ModuleType
from typing import Any

import numpy as np

from rushlight.base.text import define, folded, indented, tupled
from rushlight.core.clock import tick
from rushlight.core.engine import second_time
from rushlight.core.faster import faster, least
from rushlight.core.lazy import next_part
from rushlight.core.node import Node, Output, unpacked
from rushlight.core.table import SHARED, Op, parameters, rebind
from rushlight.core.tensor import Tensor, created, from_array
from rushlight.kernels.float16 import in_single

ARRAYS: dict[str, Any] = {
    "__builtins__": builtins,
    "__name__": __name__,
}  # the name: warnings are filtered by it
HALVES = "eE"  # dtype.char of float16 and bfloat16
TENSORS: dict[str, Any] = {"__builtins__": builtins, "__name__": __name__}


def adopt(kernels: ModuleType) -> None:
    """Let every public function of a module of kernels be a name of the world of arrays; not
    Python's own (math.prod).

    Helpers of rules keep their names, in whatever order tables are loaded.
    """
    ARRAYS.update(
        (name, value)
        for name, value in vars(kernels).items()
        if not name.startswith("_")
        and callable(value)
        and name not in SHARED
        and getattr(value, "__module__", None) not in ("math", "itertools")
    )


def shared(function: Callable) -> Callable:
    """A helper of rules: like them written once, in names of ops, and there in all worlds."""
    SHARED[function.__name__] = function
    for world in (ARRAYS, TENSORS):
        world[function.__name__] = rebind(function, world)
    return function


@shared
def not_differentiable(function, argument):
    """The rule of an input that a function depends on, and by which neither torch nor this library
    differentiates it."""
    raise RuntimeError(
        f"The function '{function}' is not differentiable with respect to argument '{argument}'. "
        "This input "
        "cannot have requires_grad True.; hint: detach() it"
    )


@shared
def not_implemented(function):
    """The rule of an input whose derivative torch does not implement: backward raises."""
    raise NotImplementedError(
        f"the derivative for '{function}' is not implemented.; hint: detach() what it is given"
    )


# -- from the rules of an entry to the backward of its nodes ---------------------------------------


def backward_source(op: Op, world: str, kept: bool, several: bool, of_half: bool = False) -> str:
    """The text of (node, g) -> gradients of the inputs, in which each rule is given what its
    parameters name.

    `kept`: a reduction, whose rules see g and out with the reduced dimensions; `several`: g becomes
    a list, one for each output; `of_half`: for gradients of 16-bit floats. Rules of inputs that
    nobody wants are not run. Rules give g times the derivative; torch's gradient of a holomorphic
    function is g times its conjugate, which is conj(rule(conj(g))) for every rule linear in g."""
    kind = ".dtype.kind" if world == "arrays" else "._array.dtype.kind"
    is_complex, conjugate = f"g{kind} == 'c'", "conj(g)"
    lines = ["saved, edges = node.saved, node.edges"]
    if kept:
        lines += (
            ["if g.ndim:", "    g = g.reshape(saved[-1])"]
            if world == "arrays"
            else ["g = reshape(g, saved[-1])"]
        )
    if several:
        lines += ["g = parts(g, saved[-1])"]
        is_complex = f"any(x is not None and x{kind} == 'c' for x in g)"
        conjugate = "[None if x is None else conj(x) for x in g]"
    scalars = world == "arrays" and op.elementwise and not of_half and not several
    if scalars:
        lines += ["if g.dtype.char in HALVES:", "    return of_halves(node, g)"]
    lines += [f"is_complex = {is_complex}", "if is_complex:", f"    g = {conjugate}"]
    rules = gradients(op, world, kept, of_half)
    if scalars:  # NumPy multiplies two of its numbers in 55 ns, one and an array in 650
        lines += [
            "if g.__class__ is ndarray or g.size > 1:",
            *indented(rules),
            "else:  # scalars of NumPy",
            *indented(gradients(op, "numbers", kept)),
        ]
    else:
        lines += rules
    found = [f"grad_{name}" for name in ruled_inputs(op)]
    lines += ["grads = grad_tensors"] if op.inputs == ("tensors",) else tupled("grads = ", found)
    if several and world == "tensors":
        lines += ["grads = rounded(grads, g[0])"]
    lines += [
        "if is_complex:",
        "    return [None if grad is None else conj(grad) for grad in grads]",
        "return grads",
    ]
    return "\n".join([f"def backward_{op.name}(node, g):", *indented(lines)]) + "\n"


def rounded(found: Sequence[Any], g: Any) -> Sequence[Any]:
    """Gradients in half precision if that of the first output is: mean and variance, that rules
    read, are in single."""
    if g is None or g.dtype.itemsize != 2 or not g.is_floating_point():
        return found
    return [h if h is None or h.dtype is g.dtype else TENSORS["to"](h, g.dtype) for h in found]


def gradients(op: Op, world: str, kept: bool, of_half: bool = False) -> list[str]:
    """The lines for the gradients of all inputs; `numbers`: the world of arrays, where all are
    0-d."""
    names = ruled_inputs(op)
    if world == "arrays" and have_one_way(op):
        return gradients_together(op, names, kept)
    return [
        line for i, name in enumerate(names) for line in gradient(op, i, name, world, kept, of_half)
    ]


def have_one_way(op: Op) -> bool:
    """Whether one faster way gives the gradients of all inputs: it has their names."""
    names = ruled_inputs(op)
    return len(names) > 1 and not op.elementwise and least(op, " ".join(names)) < inf


def gradients_together(op: Op, names: list[str], kept: bool) -> list[str]:
    """The lines for the gradients of all inputs, where one faster way may give them all.

    The way is tried if the first input's gradient is wanted, with what the rule of that input is
    given. If the way does not take the arguments, `first_alone` runs that rule, and the other
    inputs have their own rules."""
    grads = [f"grad_{name}" for name in names]
    given = rule_arguments(op, names[0], "arrays", kept)
    call = ["op", repr(" ".join(names)), "first_alone", *given]
    lines = [
        " = ".join(grads) + " = None",
        "if edges[0] is not None:",
        *indented(folded(f"{', '.join(grads)} = faster(", call, ")")),
    ]
    for i, name in enumerate(names[1:], 1):
        lines += [f"if edges[{i}] is None:", f"    grad_{name} = None"]
        if op.rules[name] is not None:
            own = rule_call(op, name, "arrays", kept, False)
            lines += [f"elif grad_{name} is None:", *indented(own)]
    return lines


def first_alone(rule: Callable, count: int) -> Callable:
    """The rule of the first of `count` inputs, with None for the gradients of the others."""
    others = (None,) * (count - 1)
    return lambda *args: (rule(*args), *others)


def rule_arguments(op: Op, name: str, world: str, kept: bool) -> list[str]:
    """The expressions for what the rule of an input is given."""
    saved = parameters(op.rules[name])[1:]
    return ["g", *(saved_as(op, one, world, kept) for one in saved)]


def ruled_inputs(op: Op) -> list[str]:
    """The inputs that have an edge: all but a list of tensors without a rule."""
    return [name for name in op.inputs if name != "tensors" or op.rules[name] is not None]


def gradient(op: Op, i: int, name: str, world: str, kept: bool, of_half: bool) -> list[str]:
    """The lines for the gradient of one input: None where nobody wants it."""
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


def rule_call(op: Op, name: str, world: str, kept: bool, of_half: bool) -> list[str]:
    """The lines that call the rule of one input, by a faster way from some size on."""
    grad = f"grad_{name}"
    given = rule_arguments(op, name, world, kept)
    lines = folded(f"{grad} = rule_{name}(", given, ")")
    by_faster = folded(f"{grad} = faster(", ["op", repr(name), f"rule_{name}", *given], ")")
    from_elements = least(op, name, of_half) if world == "arrays" else inf
    tests = [f"if g.size < {from_elements}:", *indented(lines), "else:", *indented(by_faster)]
    return by_faster if from_elements == 0 else tests if from_elements < inf else lines


def saved_as(op: Op, name: str, world: str, kept: bool) -> str:
    """The expression for what is saved under a name, as the rule is given it."""
    at = f"saved[{op.saves.index(name)}]"
    outputs = op.options.get("outputs", "").split()
    if world == "numbers":
        return f"{at}._array[()]" if name in op.inputs else f"{at}[()]" if name == "out" else at
    if world == "arrays":
        if name == "tensors":
            return f"[t._array for t in {at}]"
        if name in op.inputs:
            return f"{at}._array" if op.elementwise else f"(None if {at} is None else {at}._array)"
        return f"{at}.reshape(saved[-1])" if name == "out" and kept else at
    if name == "out":
        return (
            f"reshape(saved_output(node, {at}), saved[-1])" if kept else f"saved_output(node, {at})"
        )
    return f"saved_part(node, {at}, {outputs.index(name)})" if name in outputs else at


def saved_items(op: Op) -> list[str]:
    """What nodes keep, as expressions of the arguments `a`, edges `e` and outputs `r`.

    A tensor is kept only if a rule that will run names it.
    """
    names, edges = op.inputs + op.settings, ruled_inputs(op)
    outputs = op.options.get("outputs", "out").split()
    kept = []
    for name in op.saves:
        base, _, fact = name.rpartition("_")
        users = [
            j
            for j, user in enumerate(edges)
            if op.rules[user] and name in parameters(op.rules[user])
        ]
        test = " or ".join(f"e[{j}] is not None" for j in users) or "False"
        if name in op.inputs:
            item = f"a[{names.index(name)}]"
            kept.append(
                item if "tensors" in op.inputs or len(edges) == 1 else f"{item} if {test} else None"
            )
        elif name in names:
            kept.append(f"a[{names.index(name)}]")
        elif name in outputs:  # a later write to it matters only to rules that will run
            item = f"r[{outputs.index(name)}]"
            item = f"apart({item})" if name == op.options.get("apart") else item
            kept.append(item if len(users) == len(edges) else f"{item} if {test} else None")
        elif name == "tensors_shapes":
            kept.append(f"[t._array.shape for t in a[{names.index('tensors')}]]")
        elif fact in ("shape", "dtype") and base in op.inputs:
            kept.append(
                f"a[{names.index(base)}]." + ("_array.shape" if fact == "shape" else "dtype")
            )
        else:
            raise TypeError(f"{op.name}: a rule names {name}, which is no input, output or setting")
    return kept


def apart(output: Any) -> Any:
    """What rules keep of an output that users may write to. vmap's samples stay: they have no array
    to copy."""
    return output.copy() if output.__class__ is np.ndarray else output


def save_function(op: Op) -> Callable:
    """(args, edges, outputs) -> what a node keeps for its rules."""
    text = "\n".join(["def save(a, e, r):", *indented(tupled("return ", saved_items(op)))]) + "\n"
    return define(text, "save", {"apart": apart}, f"saved by {op.name}")


def vjp(op: Op, world: str, kept: bool = False, several: bool = False) -> Callable:
    """(node, g) -> gradients of the inputs: made from the rules when the op's first node is run
    backward."""

    def first(node: Any, g: Any) -> Any:
        names = ARRAYS if world == "arrays" else TENSORS
        if world == "tensors":
            present(op)
        scope = {
            "conj": names["conj"],
            "reshape": names["reshape"],
            "saved_output": saved_output,
            "saved_part": saved_part,
            "op": op,
            "faster": faster,
            "ndarray": np.ndarray,
            "HALVES": HALVES,
            "rounded": rounded,
            "parts": array_parts if world == "arrays" else tensor_parts,
        }
        for name in ruled_inputs(op):
            if op.rules[name] is not None:
                scope[f"rule_{name}"] = rebind(op.rules[name], names)
        if world == "arrays" and have_one_way(op):
            names_of_inputs = ruled_inputs(op)
            first_rule = scope[f"rule_{names_of_inputs[0]}"]
            scope["first_alone"] = first_alone(first_rule, len(names_of_inputs))
        if world == "arrays" and op.elementwise:
            scope["of_halves"] = vjp_of_halves(op, scope)
        text = backward_source(op, world, kept, several)
        run = define(text, f"backward_{op.name}", scope, f"backward of {op.name}, {world}")
        setattr(op.node_class, world, run)
        return run(node, g)

    return first


def vjp_of_halves(op: Op, scope: dict[str, Any]) -> Callable:
    """(node, g) -> gradients of an elementwise op's inputs, of 16-bit floats: each rule computes in
    float32, and its result is rounded once. Written with the first such gradient."""

    def first(node: Any, g: Any) -> Any:
        own = scope | {
            name: in_single(op.name, rule)
            for name, rule in scope.items()
            if name.startswith("rule_")
        }
        text = backward_source(op, "arrays", False, False, of_half=True)
        run = scope["of_halves"] = define(
            text, f"backward_{op.name}", own, f"backward of {op.name}, 16-bit floats"
        )
        return run(node, g)

    return first


def present(op: Op) -> None:
    """Load parts of the library until all names in the op's rules are there (attributes are looked
    for in vain)."""
    names = {
        name for rule in op.rules.values() if rule is not None for name in rule.__code__.co_names
    }
    while not names <= TENSORS.keys() | vars(builtins).keys() and next_part():
        pass


def saved_output(node: Any, array: Any) -> Tensor:
    """A saved output as the tensor it was: nodes keep only its array, so that no cycle exists."""
    t = from_array(array)
    t._node = node
    return t if node.hooks is None or node.hooks.dual is None else node.hooks.dual(t, 0)


def saved_part(node: Any, array: Any, i: int) -> Tensor:
    """One of several saved outputs; its gradient goes to its place in the node, if it is
    differentiable."""
    t = from_array(array)
    if array.dtype.kind in "fcV" and i != node.op.options.get("fixed"):
        t._node = Output(node, i, tick(), array.shape)
    return t if node.hooks is None or node.hooks.dual is None else node.hooks.dual(t, i)


def array_parts(g: dict, facts: tuple) -> list:
    """A list with the gradient of each output: zeros where none arrived, None for one that has
    none."""
    return [
        g[i] if i in g else fact if fact is None else np.zeros(*fact)
        for i, fact in enumerate(facts)
    ]


def tensor_parts(g: dict, facts: tuple) -> list:
    return [
        g[i] if i in g else fact if fact is None else created(from_array(np.zeros(*fact)))
        for i, fact in enumerate(facts)
    ]


# -- for those who look at a node ------------------------------------------------------------------


def saved_tensors(self: Node) -> tuple[Tensor, ...]:
    """The tensors that the node keeps for its rules. RuntimeError once the graph was freed."""
    if self.saved is None:
        raise second_time(self)
    names = self.op.saves if self.op is not None else ()
    found: list[Tensor] = []
    for name, item in zip(names, map(unpacked, self.saved)):
        if isinstance(item, Tensor):
            found.append(item)
        elif name == "out" and item is not None:
            found.append(saved_output(self, item))
        elif isinstance(item, (tuple, list)):
            found.extend(t for t in item if isinstance(t, Tensor))
    return tuple(found)


Node.saved_tensors = property(saved_tensors)  # type: ignore[attr-defined]


TORCHS = {
    "x": ("self",),
    "y": ("other", "exponent"),
    "out": ("result",),
}  # torch's names of what is saved


def saved_by_name(op: Op) -> dict[str, property]:
    """`node._saved_self`, `_saved_result` and so on, as in torch: what a node keeps, by name."""
    return {
        f"_saved_{name}": saved_at(i, saved == "out")
        for i, saved in enumerate(op.saves)
        for name in (saved, *TORCHS.get(saved, ()))
    }


def saved_at(i: int, output: bool) -> property:
    def read(node: Node) -> Any:
        if node.saved is None:
            raise second_time(node)
        item = unpacked(node.saved[i])
        return saved_output(node, item) if output and item is not None else item

    return property(read)
