"""Sentences of the step page: the computation of a step, and the reason for each input's gradient."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from decimal import ROUND_HALF_UP, Context
from math import floor, isfinite, log10
from typing import Any

import numpy as np

from rushlight.core.node import Node, Output
from rushlight.core.table import Op, ruled_inputs
from rushlight.core.views import CopySlices
from rushlight.introspect.formulas import Formula
from rushlight.viz.backward_steps import Arrival, Step
from rushlight.viz.graph_formulas import Symbols, is_partial, readable
from rushlight.viz.node_names import CALL_ORDER, MAX_EXPRESSION_LETTERS, Places
from rushlight.viz.op_sentences import (
    ELEMENTWISE,
    Use,
    backward_sentence,
    forward_sentence,
    into_a_part,
    place_of,
    saved_by,
)

# ops that are written with signs, such as + and @
ARITHMETIC = {"add", "sub", "mul", "div", "pow", "neg", "mm", "dot", "mv", "square"}
# A number with more digits than a factor needs; a bound used in a comparison keeps its digits.
LONG_NUMBER = re.compile(r"(?<![\d.])(?<![<>=] )(?<![<>=] -)\d+\.\d{6,}")
INDEXING = ("index", "getitem")
CALLED = {  # op -> its name in programs
    "split_sizes": "split",
    "attention": "scaled_dot_product_attention",
    "lstm_layer": "lstm",
    "gru_layer": "gru",
    "rnn_layer": "rnn",
    "max_dim": "max",
    "min_dim": "min",
    "median_all": "median",
    "var_core": "var",
    "frozen_batch_norm": "batch_norm",
    "gelu_tanh": "gelu",
    "log_sigmoid": "logsigmoid",
    "constant_pad": "pad",
    "bordered": "pad",
    "im2col": "unfold",
    "col2im": "fold",
    "sampled": "grid_sample",
    "prelu_core": "prelu",
    "euclidean": "cdist",
    "linalg_inv_ex": "inverse",
    "conv_input_grad": "conv_transpose",
    "rows_summed": "embedding_bag",
    "write_at": "index_put",
    "overwrite": "copy_",
    "index": "getitem",
}
ALIASES = {  # op -> functions of the program that make only this op
    "square": ("pow",),
    "elu": ("selu", "celu"),
    "hardtanh": ("relu6",),
    "vector_norm": ("norm",),
    "euclidean": ("norm",),
    "linalg_inv_ex": ("inv",),
    "amax": ("max",),
    "amin": ("min",),
}
BOUNDS = {"low": "min", "high": "max"}  # setting -> argument; a bound keeps all its digits
LOSS_PARTS = {  # the elementwise part of losses, before their mean or sum
    "mse_loss",
    "huber_loss",
    "smooth_l1_loss",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
}
DIGITS = 4  # most characters of a number on the page; pointing at it shows all digits
MAX_FORMULA_LETTERS = 90  # most characters of a formula in a sentence or a box; a longer one is left out


def called(op: Op) -> str:
    """The name of an op in programs."""
    return CALLED.get(op.name, op.called)


def kind_of(node: Node) -> str:
    """The origin of the node in a word or two, for a box and a title."""
    op = node.op
    if isinstance(node, CopySlices) or (op is not None and op.name == "write_at"):
        return "write into a part"
    if op is None:
        return node.name()
    if op.name == "mse_loss":
        return "squared difference"
    return f"{called(op)} (elements)" if op.name in LOSS_PARTS else called(op)


class NamedFormulas(Symbols):
    """Formulas of nodes in the names of their inputs: no formula is expanded into leaves."""

    def __init__(
        self, order: list[Node], values: dict[Node, np.ndarray], names: dict[Node, str], constants: dict[int, str], *,
        places: Places, spoken: Callable[[Node, int], str], frozen_bias: Callable[[Node], str | None],
        reserved: Iterable[str] = (),
    ):  # fmt: skip
        self.frozen_bias = frozen_bias  # the bias of a linear layer; "" if it has none, None if unknown
        self.texts: dict[Node, str] = {}
        self.places = places
        self.spoken = spoken  # the program's name for input number `slot` of a node; or ""
        super().__init__(order, values, names, constants, reserved)

    def given(self, node: Node, inputs: dict[Node, Formula]) -> dict[str, Any]:
        """Like `Symbols.given`; an unknown constant is shown as written in the program."""
        found = super().given(node, inputs)
        if node.op is not None and node.op.elementwise:
            for slot, name in enumerate(ruled_inputs(node.op)):
                if found.get(name) is None:
                    found[name] = Formula("name", self.spoken(node, slot) or "constant")
        return found

    def in_leaves(self, node: Node) -> Formula:
        return self.name(node)

    def applied(self, function: Any, given: dict[str, Any]) -> Any:
        return spread_out(super().applied(function, given))

    def constant(self, array: np.ndarray) -> Any:
        """A constant as the user's variable; without one, as a number."""
        name = self.called.get(id(array))
        if not name and array.ndim and array.size == 1:
            name = self.letter_of(array)
            self.called[id(array)] = name
        if name and name not in self.taken:
            self.known[name] = array
            return Formula("name", name)
        return super().constant(array)

    def step(self, node: Node) -> str:
        """The op as text: a formula for arithmetic, for other ops a call such as `relu(a)`."""
        if node not in self.texts:
            self.texts[node] = self.written_step(node)
        return self.texts[node]

    def written_step(self, node: Node) -> str:
        op = node.op
        if isinstance(node, Output):
            return f"{self.names[node.source()[0]]}[{node.number}]"
        if isinstance(node, CopySlices):
            return self.part_written(node)
        if op is None or op.name in ARITHMETIC:
            return super().step(node)
        if op.name in SPECIAL:
            return SPECIAL[op.name](self, node)
        if "tensors" in op.inputs:
            return self.call_of_several(node)
        if op.name in INDEXING:
            return f"{self.given(node, {})['x']}[…]"
        return self.call(node)

    def call_of_several(self, node: Node) -> str:
        """The call of an op with a list, such as `cat([a, b])`."""
        op = node.op
        assert op is not None
        names = [self.names[edge] for edge in node.edges if edge is not None]
        listed = ", ".join(names)
        listed = listed if op.name in CALLED else f"[{listed}]"
        return f"{names[0]}[…]" if op.name in INDEXING else f"{called(op)}({listed})"

    def call(self, node: Node) -> str:
        op = node.op
        assert op is not None
        given = self.given(node, {})
        order = CALL_ORDER.get(op.name, op.inputs)
        inputs = [str(given[n]) for n in order if given.get(n) is not None]
        if "bias" in op.inputs and given.get("bias") is None:
            text = self.frozen_bias(node)
            inputs += ["…"] if text is None else [text] if text else []
        dim = given.get("dim")
        inputs += [f"dim={dim}"] if dim is not None and not isinstance(dim, Formula) else []
        function = self.places.callee(node).rstrip("_")
        if function not in ALIASES.get(op.name, ()):
            function = called(op)
            inputs += settings_shown(op, given)
        inputs += ["reduction='none'"] if op.name in LOSS_PARTS else []
        return f"{function}({', '.join(inputs)})"

    def squared_difference(self, node: Node) -> str:
        given = self.given(node, {})
        return f"({given['x']} - {given['y']})²"

    def part_written(self, node: Node) -> str:
        """The array after a write into a part of it: `h₁ after h[0] = 10.0`."""
        if node.op is not None and saved_by(node).get("accumulate"):
            return self.call_of_several(node)
        before, written = [self.names[e] if e is not None else "" for e in node.edges[:2]]
        target, value = self.places.write(node)
        value = written or value or "constant"
        if not target or len(value) > MAX_EXPRESSION_LETTERS:
            return f"{before or 'constant'} with {written or 'a constant'} written into a part"
        return f"{before or 'constant'} after {target} = {value}"

    def copied(self, node: Node) -> str:
        before, written = [self.names[e] if e is not None else "constant" for e in node.edges]
        return f"{before}.copy_({written})"

    def sum_of_rows(self, node: Node) -> str:
        return f"embedding_bag({self.given(node, {})['x']}, …, mode='sum')"

    def linear_step(self, node: Node) -> str:
        """`x @ weight.T + bias`, or a call if it is unknown whether there is a bias."""
        given = self.given(node, {})
        x, weight = (
            self.spoken(node, slot) or name if given.get(name) is None else given[name]
            for slot, name in enumerate(("x", "weight"))
        )
        bias = given.get("bias")
        text = self.frozen_bias(node) if bias is None else str(bias)
        if text is None:
            return f"linear({x}, {weight}, …)"
        return f"{x} @ {weight}.T" + (f" + {text}" if text else "")

    def derivative(self, node: Node, slot: int) -> str | None:
        """The elementwise derivative by an input, such as `1 - o²`; None if it has no formula."""
        edge = node.edges[slot]
        if edge is None:
            return None
        made = self.local(node, slot, {}, self.name(node))
        if made is None:
            return None
        known = {"g", *self.names.values(), *self.known, *map(str, self.given(node, {}).values())}
        if place_of(node, slot) and (apart := self.local_apart(node, slot)) is not None:
            made = apart
            known |= {f"{place_of(node, i)} {self.names[e]}" for i, e in enumerate(node.edges) if e is edge}
        text = squares(str(made)) if readable(made, known) else ""
        text = LONG_NUMBER.sub(lambda number: written(float(number[0])), text)
        return text if 0 < len(text) <= MAX_FORMULA_LETTERS else None


SPECIAL: dict[str, Callable[[NamedFormulas, Node], str]] = {
    "linear": NamedFormulas.linear_step,
    "mse_loss": NamedFormulas.squared_difference,
    "write_at": NamedFormulas.part_written,
    "overwrite": NamedFormulas.copied,
    "rows_summed": NamedFormulas.sum_of_rows,
}


def settings_shown(op: Op, given: dict[str, Any]) -> list[str]:
    """The settings of an elementwise op that differ from the default: `alpha=1.673`."""
    if not op.elementwise:
        return []
    return [
        f"{BOUNDS[name]}={given[name]}" if name in BOUNDS else f"{name}={written(given[name])}"
        for name in op.settings
        if isinstance(given.get(name), (int, float)) and given[name] != op.defaults.get(name)
    ]


def spread_out(value: Any) -> Any:
    """The formula without `expand`: a repeated number is written once."""
    if isinstance(value, (tuple, list)):
        return type(value)([spread_out(part) for part in value])
    if not isinstance(value, Formula):
        return value
    parts = [spread_out(part) for part in value.parts]
    if value.head == "call" and str(parts[0]) == "expand":
        return parts[1][0]
    return Formula(value.head, *parts)


def squares(text: str) -> str:
    """`o * o` as o², `x ** 2` as x²."""
    text = re.sub(r"(?<![\w.)\]*/] )(?<![\w.])([^\W\d][\w.]*) \* \1(?![\w.\[(])", r"\1²", text)
    return re.sub(r"(?<=[\w)\]]) \*\* 2(?![\w.])", "²", text)


def written(value: Any) -> str:
    """A number with four digits, or all digits before the point, in the same format as numbers.js."""
    number = np.asarray(value).reshape(-1)[0]
    if isinstance(number, (np.bool_, np.integer)):
        return str(number)
    if np.iscomplexobj(number):
        return f"{number:.4g}"
    real = float(number)
    size = abs(real)
    if real.is_integer() and size < 1e6:
        return str(int(real))
    if 1e-4 <= size < 1e7:
        digits = max(DIGITS, floor(log10(size)) + 1)
        return f"{to_digits(real, digits):.9f}".rstrip("0").rstrip(".")
    mantissa, e, exponent = f"{to_digits(real, DIGITS):.{DIGITS - 1}e}".partition("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}" if e else mantissa


def to_digits(real: float, digits: int) -> float:
    """`real` rounded to `digits` digits. Ties are rounded away from 0, like JavaScript's toPrecision, which numbers.js
    calls.
    """
    return float(Context(digits, ROUND_HALF_UP).create_decimal(real)) if isfinite(real) else real


def factor(value: Any) -> str:
    """A number after a multiplication sign: in brackets if negative."""
    text = written(value)
    return f"({text})" if text.startswith("-") else text


def one_number(value: Any) -> bool:
    return value is not None and not isinstance(value, dict) and np.size(value) == 1


def forward_reason(formulas: NamedFormulas, node: Node, result: Node | None = None) -> str:
    """The op as a sentence, with numbers if all inputs are single numbers: `o = tanh(n) = 0.7`. `result`: for an op
    with several outputs, the one in the graph.
    """
    name, value = formulas.names[node], formulas.values.get(node)
    step = formulas.step(node)
    op = node.op
    text = f"{name} = {step}"
    if len(step) > MAX_FORMULA_LETTERS:
        text = f"{name} = {kind_of(node)}(…)"
    inputs = [formulas.values.get(edge) for edge in node.edges if edge is not None]
    if one_number(value) and all(map(one_number, inputs)):
        known = [
            f"{formulas.names[edge]} = {written(formulas.values[edge])}"
            for edge in dict.fromkeys(node.edges)
            if edge is not None
        ]
        return f"{text} = {written(value)}" + (f", where {', '.join(known)}" if known else "")
    meaning = forward_sentence(node)
    sizes = np.shape(value) if value is not None else (result or node).shape or ()
    shape = "×".join(map(str, sizes)) or "one number"
    options = {} if op is None else op.options
    several = value is None and result is None and bool(options.get("list") or options.get("outputs"))
    if len(sizes) == 1:
        shape = "1 number" if sizes[0] == 1 else f"{sizes[0]} numbers"
    made = "Several results." if several else f"Result: {shape}."
    return " ".join([f"{text}.", *filter(None, [meaning]), made, *formulas.defined(text)])


def arrival_reason(formulas: NamedFormulas, step: Step, arrival: Arrival, uses: int) -> str:
    """The reason for the input's gradient. `uses`: the number of edges that use the input."""
    node, target = step.node, arrival.target
    if isinstance(node, Output):
        return handed_back(formulas, node, target)
    scalar = one_number(step.incoming) and one_number(arrival.gives)
    local = formulas.derivative(node, arrival.slot)
    if scalar and local is not None:
        text = scalar_chain(formulas, step, arrival, local)
    else:
        text = array_chain(formulas, step, arrival, local)
        if local is None and (place := place_of(node, arrival.slot)):
            text = f"For the {place} {formulas.names[target]}: {text}"
    text += broadcast(formulas, arrival) + summed(formulas, arrival, uses)
    return " ".join([text, *formulas.defined(text)])


def scalar_chain(formulas: NamedFormulas, step: Step, arrival: Arrival, local: str) -> str:
    """`0.5 arrives: o = tanh(n), so do/dn = 1 - o² = 0.5; n gets 0.5 · 0.5 = 0.25.`"""
    node, names = step.node, formulas.names
    out, into = names[node], names[arrival.target]
    derivative = node.arrays(np.ones_like(step.incoming))[arrival.slot]
    shown = written(derivative)
    equals = f"{local} = {shown}" if local != shown else local
    return (
        f"{written(step.incoming)} arrives: {out} = {formulas.step(node)}, "
        f"{slope_text(node, arrival, out, into, equals)}; {into} gets {written(step.incoming)} · {factor(derivative)} "
        f"= {written(arrival.gives)}."
    )


def slope_text(node: Node, arrival: Arrival, out: str, into: str, derivative: str) -> str:
    """`so do/dn = 1 - o²`; for a * a, the derivative by one of the two inputs alone."""
    if node.edges.count(arrival.target) == 1:
        return f"so {quotient(out, into, is_partial(node))} = {derivative}"
    places = {place_of(node, slot) for slot, edge in enumerate(node.edges) if edge is arrival.target}
    the = "the " if derivative.split(" ", 1)[0] in places else ""
    return f"the derivative by the {place_of(node, arrival.slot)} {into} alone is {the}{derivative}"


def array_chain(formulas: NamedFormulas, step: Step, arrival: Arrival, local: str | None) -> str:
    node, names = step.node, formulas.names
    op = node.op
    out, into = names[node], names[arrival.target]
    if op is not None and op.name in ELEMENTWISE:
        return ELEMENTWISE[op.name](out, into)
    if local is not None:
        many = "" if np.size(arrival.gives) == 1 else "Element by element, "
        start = f"{out} = {formulas.step(node)}"
        rule = formulas.gradient_rule(node, arrival.slot)
        product = squares(rule) if rule is not None else f"g · ({local})"
        slope = slope_text(node, arrival, out, into, local)
        return f"{many}{start}, {slope}: {into} gets {product}."
    if isinstance(node, CopySlices):
        return into_a_part(Use(node, arrival.slot, out, into, None), arrival.slot)
    if op is None:
        return f"{into} gets what the backward of {node.name()} returns."
    if op.elementwise:
        return f"Element by element: {into} gets g times the derivative of {called(op)}."
    rule = formulas.gradient_rule(node, arrival.slot)
    sentence = backward_sentence(Use(node, arrival.slot, out, into, rule), step.incoming)
    if sentence is not None:
        return sentence
    if rule is not None and len(rule) <= MAX_FORMULA_LETTERS:
        made = formulas.step(node)
        return f"{out} = {made}: by the rule of {called(op)}, {into} gets {rule}."
    return f"{into} gets the gradient that the rule of {called(op)} computes from g."


def quotient(out: str, into: str, partial: bool) -> str:
    """`do/dn`, or ∂o/∂n if o has several inputs; with spaces around long names."""
    d, short = "∂" if partial else "d", max(len(out), len(into)) <= 4
    return f"{d}{out}/{d}{into}" if short else f"{d} {out} / {d} {into}"


def handed_back(formulas: NamedFormulas, node: Node, target: Node) -> str:
    names = formulas.names
    return f"{names[node]} is a result of {names[target]}: the gradient goes on there."


def broadcast(formulas: NamedFormulas, arrival: Arrival) -> str:
    """The sum over the dimensions along which the forward pass repeated the input."""
    before = getattr(arrival.gives, "shape", None)
    if before is None or before == arrival.part.shape:
        return ""
    name, count = formulas.names[arrival.target], np.size(arrival.gives) // np.size(arrival.part)
    if count == 1:
        return ""
    return f" {name} was used {count} times by broadcasting, so these {count} gradients are added."


def summed(formulas: NamedFormulas, arrival: Arrival, uses: int) -> str:
    """The sum over the uses of an input that several ops read."""
    if uses < 2:
        return ""
    name = formulas.names[arrival.target]
    if arrival.before is None:
        return f" {name} is used {uses} times: this is the first of {uses} gradients to be added."
    if one_number(arrival.part):
        added = f"{written(arrival.before)} + {factor(arrival.part)} = {written(arrival.total)}"
        return f" {name} is used {uses} times: {added}."
    return f" {name} is used {uses} times: this gradient is added to those before."
