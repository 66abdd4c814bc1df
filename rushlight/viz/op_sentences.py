"""Sentences that explain an op and the gradients of its inputs, for ops whose formulas are not enough."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from rushlight.core.node import Node
from rushlight.core.table import ruled_inputs

PLACES = ("first", "second", "third")


@dataclass(frozen=True)
class Use:
    """The use of input number `slot` by an op. `out`, `into`: the names of the result and of the input; `rule`: the
    gradient as a formula, or None."""

    node: Node
    slot: int
    out: str
    into: str
    rule: str | None

    @property
    def saved(self) -> dict[str, Any]:
        """{name: value saved by the node}, such as settings."""
        return saved_by(self.node)

    @property
    def gets(self) -> str:
        return f"{self.into} gets {self.rule or 'its gradient'}"


Sentence = str | Callable[[Use], "str | None"]  # a text with the fields {out}, {into}, {gets}, {along}; or a function


def saved_by(node: Node) -> dict[str, Any]:
    return dict(zip(node.op.saves, node.saved or ())) if node.op is not None else {}


def place_of(node: Node, slot: int) -> str:
    """The place of an input that the op uses several times, as in x * x: first, second; "" for other inputs."""
    target = node.edges[slot]
    if target is None or node.edges.count(target) == 1:
        return ""
    before = node.edges[:slot].count(target)
    return PLACES[before] if before < len(PLACES) else f"{before + 1}th"


def array_of(item: Any) -> Any:
    return getattr(item, "_array", item)


# -- backward --------------------------------------------------------------------------------------


def of_averages(use: Use) -> str:
    saved = use.saved
    kernel, divisor = saved.get("kernel", ()), saved.get("divisor_override")
    inside = not (any(saved.get("padding", (1,))) or saved.get("ceil_mode"))
    n = divisor or (prod(kernel) if kernel and inside else None)
    share = f"g / {n}" if n else "g / (the count by which the window's sum was divided)"
    return (
        f"{use.out} holds the mean of each window of {use.into}: a number gets the sum of {share} over the windows "
        "that cover it."
    )


def mean_of(use: Use) -> str:
    """One number of the result is the mean of n numbers of the input."""
    target = use.node.edges[use.slot]
    n = max(1, prod(target.shape or ()) // max(1, prod(use.node.shape or ())))
    if use.node.shape == ():
        each = f"each has the factor 1/{n}, so each gets g / {n}"
        return f"{use.out} is the mean of {n} numbers: {each}."
    return f"Each number of {use.out} is the mean of {n} numbers of {use.into}: each gets g / {n}."


def summed_up(use: Use) -> str:
    whole = f"a term of {use.out}" if use.node.shape == () else f"a term of one sum in {use.out}"
    which = "g" if use.node.shape == () else "the g of its sum"
    return f"Each element of {use.into} is {whole} with the factor 1: each gets {which}."


def log_likelihood(use: Use) -> str | None:
    """The sentence of a log-likelihood, for ignored labels, class weights and each of the three reductions."""
    saved = use.saved
    target, weight = array_of(saved.get("target")), array_of(saved.get("weight"))
    if target is None or "reduction" not in saved:
        return None
    counts = target != saved["ignore_index"]
    n, ignored = int(np.count_nonzero(counts)), int(np.count_nonzero(~counts))
    if not n:
        return f"All labels are ignored: no number of {use.into} went into {use.out}."
    weighted, reduction = weight is not None, saved["reduction"]
    share = "−its g" if reduction == "none" else "−g"
    share += " · (the weight of its class)" * weighted
    if reduction == "none":
        head = f"In {use.out} stands minus the number of {use.into} at each label"
    elif reduction == "sum":
        head = f"{use.out} is minus the sum of {use.into} at the labels"
    elif weighted:
        head = f"{use.out} is minus the weighted mean of {use.into} at the labels"
        share += " / (the sum of these weights)"
    else:
        head = f"{use.out} is minus the mean of {use.into} at {n} label{'s' * (n > 1)}"
        share += f" / {n}" * (n > 1)
    head += ", each times the weight of its class" * (weighted and reduction != "mean")
    head += f" ({ignored} more {'are' if ignored > 1 else 'is'} ignored)" if ignored else ""
    return f"{head}: at each label that counts {use.into} gets {share}, elsewhere 0."


def rows_of_table(use: Use) -> str:
    padding = use.saved.get("padding_idx")
    text = f"{use.out} holds rows of {use.into}: each row gets the sum of g over its uses, "
    if padding is None or padding < 0:
        return text + "unused rows get 0."
    return text + f"unused rows and the padding row {padding} get 0."


NORM_WEIGHT = (
    "{into} multiplied the normalized numbers in {out}: it gets the sum of g times the normalized numbers that it "
    "multiplied."
)
NORM_BIAS = (
    "{into} was added to the normalized numbers in {out}: it gets the sum of g over the places where it was added."
)


def normalized(group: Callable[[Use], str]) -> dict[str, Sentence]:
    """The sentences of a normalization of groups of numbers, by input."""

    def x(use: Use) -> str:
        weighted = array_of(use.saved.get("weight")) is not None
        scaled = "ĝ = g · weight" if weighted else "ĝ = g"
        return (
            f"With {scaled} and x̂ = ({use.into} − mean) / √(var + eps): {use.into} gets (ĝ − mean of ĝ − x̂ · "
            f"mean of ĝ · x̂) / √(var + eps). Each mean is over {group(use)}."
        )

    return {"x": x, "weight": NORM_WEIGHT, "bias": NORM_BIAS}


def channel(use: Use) -> str:
    return "a channel" if 0 in use.saved.get("dims", (0,)) else "a channel of one sample"


def frozen(use: Use) -> str:
    weighted = array_of(use.saved.get("weight")) is not None
    return (
        f"Mean and variance are constants in evaluation: {use.into} gets g{' · weight' * weighted} / √(running "
        "variance + eps), channel by channel."
    )


def attended(use: Use) -> str | None:
    """q, k and v of attention; `scale` is a number."""
    heads = {(edge.shape or ())[:-2] for edge in use.node.edges[:3] if edge is not None}
    if len(heads) > 1:  # several heads of the queries share one head of the keys
        return None
    if use.slot > 2:
        return f"{use.into} was added to the scores: it gets the gradient of the scores."
    scale = use.saved.get("scale")
    if use.slot == 2:
        return (
            f"{use.out} = A @ {use.into}, where A holds the attention weights: {use.into} gets A.T @ g, for each head."
        )
    other, turned = ("key", "ds") if use.slot == 0 else ("query", "ds.T")
    return (
        "With the attention weights A = softmax(scores) and dA = g @ value.T, the scores get ds = A · (dA − sum "
        f"of A · dA over the keys), and {use.into} gets {scale:.4g} · {turned} @ {other}, for each head."
    )


RECURRENT_INPUTS = {  # the tensors of the ops, in order
    "lstm_layer": ("x", "start", "start", "weight", "bias"),
    "gru_layer": ("x", "start", "weight", "bias"),
    "rnn_layer": ("x", "start", "weight", "bias"),
}
RECURRENT = {
    "x": "{into} is read step by step: the input of each step gets the gradient that comes back to this step, from "
    "its own output and from all later steps.",
    "start": "{into} is the state before the first step: it gets the gradient that comes back through all steps.",
    "weight": "{into} is used again in each step: it gets the sum over all steps of (gradient of the step's sums) "
    "times (the numbers that it multiplied there).",
    "bias": "{into} is added in each step: it gets the sum over all steps of the gradient of the step's sums.",
}


def recurrent(use: Use) -> str:
    kinds = RECURRENT_INPUTS[use.node.op.name]
    return RECURRENT[kinds[min(use.slot, len(kinds) - 1)]].format(into=use.into)


def norm_of(use: Use) -> str | None:
    p, into, out = use.saved.get("p"), use.into, use.out
    if p == 2:
        return f"{out} = √(sum of {into}²): {into} gets g · {into} / {out}, and 0 where {out} is 0."
    return f"{out} = sum of |{into}|: {into} gets g · sign({into})." if p == 1 else None


def variance_of(use: Use) -> str | None:
    correction = use.saved.get("correction")
    if correction is None:
        return None
    count = "n" if not correction else f"(n − {correction:g})"
    return (
        f"{use.out} is the mean square of {use.into} less its mean, over {count}: {use.into} gets g · 2 · "
        f"({use.into} − mean) / {count}, where n numbers make one variance."
    )


MOVES = ("reshape", "flatten", "unflatten", "squeeze", "unsqueeze", "transpose", "permute")
MOVES_TOO = ("view_as_shape", "flip", "rolled", "contiguous", "clone", "unpermute", "cat", "stack", "sort")
PICKS = ("index", "narrow", "select", "getitem", "diagonal", "unbind", "tril", "triu")
CHOICES = ("max_dim", "min_dim", "median_dim", "nanmedian_dim", "topk", "kthvalue", "mode")
NORMALIZATIONS = {
    "layer_norm": lambda use: "the numbers that were normalized together",
    "group_norm": lambda use: "a group of channels of one sample",
    "batch_norm": channel,
}

# texts with the fields {out}, {into}, {gets} and {along}
MOVED = "{out} holds each number of {into}: the number gets the gradient of its place in {out}."
PICKED = (
    "{out} holds some elements of {into}: these get their gradients (the sum, if an element was "
    "picked several times), all other elements get 0."
)
LARGEST = "Only the chosen elements of {into} went into {out}: each gets the gradient of its place, the others get 0."
OF_WINDOW = (
    "Only the largest number of each window went into {out}: a number gets the sum of g over the windows "
    "that chose it; a number that no window chose gets 0."
)
PUT_BACK = (
    "{into} was cut into parts: their gradients are put side by side again, with 0 for a part that nothing has used."
)
REPEATED = "{into} was repeated in {out}: it gets the sum over its copies."
EXTREMES = (
    "Only the largest or smallest number of each group went into {out}: it gets g, and numbers that tie "
    "share it evenly; all others get 0."
)
MIDDLE = (
    "Only the chosen element of {into} went into {out}: it gets g, and elements that tie share it "
    "evenly; all others get 0."
)

# (op, input) -> sentence; ("op", "") is for every input. g is the gradient that arrived.
BACKWARD: dict[tuple[str, str], Sentence] = {
    ("linear", "x"): "{gets}: each number of {into} gets g times the weights that it went through.",
    ("linear", "weight"): (
        "{gets}: in each row of the input, {into}[i, j] multiplies number j, and the product is added to "
        "number i of {out}. So {into}[i, j] gets the sum over the rows of g[row, i] times input[row, j]."
    ),
    ("linear", "bias"): "{gets}: it was added to each row of {out}, so its gradient is the sum over the rows.",
    ("mm", "x"): (
        "{gets}: {into}[i, j] was multiplied by element [j, k] of the right matrix and added into "
        "{out}[i, k]. So it gets the sum over k of g[i, k] times this element."
    ),
    ("mm", "y"): (
        "{gets}: {into}[j, k] was multiplied by element [i, j] of the left matrix and added into "
        "{out}[i, k]. So it gets the sum over i of this element times g[i, k]."
    ),
    **{(f"{kind}max_pool", ""): OF_WINDOW for kind in ("", "adaptive_", "fractional_")},
    **{(f"{kind}avg_pool", ""): of_averages for kind in ("", "adaptive_")},
    ("sum", ""): summed_up,
    ("mean", ""): mean_of,
    ("convolution", "x"): (
        "A number of {into} was multiplied by a weight of the kernels for each place of {out} whose window "
        "contains it: it gets the sum of g at these places times these weights, and 0 if no window contains it."
    ),
    ("convolution", "weight"): (
        "Each weight of {into} was used at every position: it gets the sum of g times the input number that it "
        "multiplied there."
    ),
    ("convolution", "bias"): "{into} was added at every position of its channel: it gets the sum of g over them.",
    ("log_softmax", ""): (
        "{out} is the logarithm of the probabilities: {into} gets g − softmax({into}) · (sum of g){along}."
    ),
    ("softmax", ""): (
        "The numbers of {out} are probabilities with sum 1: {into} gets {out} · (g − (sum of g · {out})){along}."
    ),
    ("nll_loss", "x"): log_likelihood,
    ("split_sizes", ""): PUT_BACK,
    ("embedding", ""): rows_of_table,
    **{(op, input): sentence for op, group in NORMALIZATIONS.items() for input, sentence in normalized(group).items()},
    ("frozen_batch_norm", "x"): frozen,
    ("frozen_batch_norm", "weight"): NORM_WEIGHT,
    ("frozen_batch_norm", "bias"): NORM_BIAS,
    ("attention", ""): attended,
    **{(op, ""): recurrent for op in RECURRENT_INPUTS},
    **{(name, ""): MOVED for name in MOVES + MOVES_TOO},
    **{(name, ""): PICKED for name in PICKS},
    **{(name, ""): LARGEST for name in CHOICES},
    **{(name, ""): EXTREMES for name in ("amax", "amin")},
    **{(name, ""): MIDDLE for name in ("median_all", "nanmedian_all")},
    ("vector_norm", ""): norm_of,
    ("var_core", ""): variance_of,
    ("prod", ""): "Each number of {into} gets g times the product of the others.",
    ("gather", "x"): PICKED,
    ("index_select", "x"): PICKED,
    ("cummax", ""): PICKED,
    ("cummin", ""): PICKED,
    ("to", ""): "{out} holds the same numbers in another dtype: {into} gets g.",
    ("constant_pad", ""): "Each number of {into} that is in {out} gets the gradient of its place.",
    ("overwrite", "x"): "{into} was overwritten: it gets 0.",
    ("overwrite", "y"): "{out} holds {into}: it gets g.",
    ("write_at", "x"): lambda use: into_a_part(use, 0),
    ("write_at", "y"): lambda use: into_a_part(use, 1),
    **{(name, ""): REPEATED for name in ("expand", "repeat", "tile")},
}


def into_a_part(use: Use, slot: int) -> str:
    """The array that was written to (slot 0), and the value that was written or added (slot 1)."""
    added = bool(use.saved.get("accumulate"))
    if slot:
        how = "added into" if added else "written into"
        return f"{use.into} was {how} {use.out}: it gets g at the places where it is."
    if added:
        return f"Numbers were added to {use.into}: it gets g."
    return f"A part of {use.into} was overwritten: the overwritten places get 0, all others get g."


def along(use: Use) -> str:
    """The dimension of the sums, if there are several sums."""
    dim = use.saved.get("dim")
    return f", with sums over dim {dim}" if isinstance(dim, int) and len(use.node.shape or ()) > 1 else ""


def backward_sentence(use: Use, incoming: Any = None) -> str | None:
    """The sentence of the op; None if it has none, or if gradients arrived at its statistics."""
    op = use.node.op
    inputs = ruled_inputs(op)
    slot = inputs[use.slot] if "tensors" not in op.inputs else ""
    found = BACKWARD.get((op.name, slot)) or BACKWARD.get((op.name, ""))
    if op.name in NORMALIZATIONS and isinstance(incoming, dict) and set(incoming) - {0}:
        return None
    if isinstance(found, str):
        return found.format(out=use.out, into=use.into, gets=use.gets, along=along(use))
    return None if found is None else found(use)


# elementwise op of an array -> sentence
ELEMENTWISE: dict[str, Callable[[str, str], str]] = {
    "relu": lambda out, into: (
        f"{out} = relu({into}): where {into} is positive the derivative is 1, elsewhere 0. {into} gets g there, and 0 "
        "elsewhere."
    ),
    "abs": lambda out, into: f"{out} = |{into}|: the derivative is the sign of {into}. {into} gets g · sign({into}).",
}

# -- forward ---------------------------------------------------------------------------------------


def at_the_labels(node: Node) -> str:
    saved = saved_by(node)
    target, reduction = array_of(saved.get("target")), saved.get("reduction")
    weighted = array_of(saved.get("weight")) is not None
    how = {
        "none": "Minus the number at each label",
        "sum": "Minus the sum of the numbers at the labels",
        "mean": f"Minus the {'weighted ' * weighted}mean of the numbers at the labels",
    }.get(str(reduction), "Minus the numbers at the labels")
    if weighted and reduction != "mean":
        how += ", each times the weight of its class"
    ignored = 0 if target is None else int(np.count_nonzero(target == saved["ignore_index"]))
    if not ignored:
        return f"{how}."
    return f"{how}; {ignored} label{'s are' if ignored > 1 else ' is'} ignored."


def scaled(what: str) -> Callable[[Node], str]:
    def sentence(node: Node) -> str:
        weight, bias = (edge is not None for edge in node.edges[1:3])
        then = " and ".join(["scaled"] * weight + ["shifted"] * bias)
        return f"{what}{', then ' + then if then else ''}."

    return sentence


STEPPED = "One step after the other along the sequence, each from its input and the state before."

# op -> one sentence, for ops whose formula is not enough
FORWARD: dict[str, str | Callable[[Node], str]] = {
    "linear": "Each row of the input with each row of the weights: the sum of products.",
    "convolution": "The kernel slides over the input: at each position the sum of products.",
    "max_pool": "The largest number of each window.",
    "avg_pool": "The mean of each window.",
    "flatten": "The same numbers in fewer dimensions.",
    "reshape": "The same numbers in another shape.",
    "log_softmax": "Probabilities that sum to 1, as logarithms.",
    "softmax": "Numbers from 0 to 1 that sum to 1.",
    "nll_loss": at_the_labels,
    "embedding": "One row of the table for each index.",
    "layer_norm": scaled("Mean 0 and variance 1 within each row"),
    "group_norm": scaled("Mean 0 and variance 1 within each group of channels of a sample"),
    "batch_norm": scaled("Each channel less its mean, divided by its deviation"),
    "frozen_batch_norm": scaled("Each channel less the running mean, divided by the running deviation"),
    "attention": "Each query takes a mean of the values, weighted by the softmax of its scores with the keys.",
    "lstm_layer": STEPPED,
    "gru_layer": STEPPED,
    "rnn_layer": STEPPED,
    "split_sizes": "Parts along one dimension.",
    "relu": "Negative numbers become 0.",
    "mean": "The sum divided by the count.",
}


def forward_sentence(node: Node) -> str:
    found = FORWARD.get(node.op.name, "") if node.op is not None else ""
    return found if isinstance(found, str) else found(node)
