"""The expression of NumPy for a step of a graph, as a person would write it (compile/export/numpy_page.py).

A rule gets a `Written` step and returns the expression, or None for arguments that it does not cover. Functions that a
rule names stand in numpy_functions.py."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np

from rushlight.compile.export import numpy_functions
from rushlight.compile.graph import Value
from rushlight.core.table import TABLE, Op
from rushlight.fast.rule_text import ATOM, BOOL, SUM, NotFused, Scalar, TextPrinter
from rushlight.fast.rule_text import expression as rule_expression
from rushlight.ops.index import along_dim, index_tensors
from rushlight.ops.linalg.matmul import linear, mm
from rushlight.ops.math import activation
from rushlight.ops.math import elementwise as E
from rushlight.ops.nn import normalization, pool, recurrent
from rushlight.ops.nn.attention import attention
from rushlight.ops.nn.conv import conv_input_grad, convolution
from rushlight.ops.reduce import reduce
from rushlight.ops.shape import pad, views


class Written(NamedTuple):
    """A step. `args`: values and settings; `texts`: their expressions; `shape`: the expression for the first result's
    shape; `dtype`: the first result's; `used`: which results are read."""

    op: str
    args: tuple
    texts: list[Any]
    shape: str
    dtype: np.dtype
    used: list[bool]

    def function(self, name: str) -> str:
        """A call of a function with all arguments."""
        return f"{name}({', '.join(map(flat, self.texts))})"


Rule = Callable[[Written], "str | None"]
RULES: dict[Op, Rule] = {}
SIGNS = {
    np.add: "+", np.subtract: "-", np.multiply: "*", np.divide: "/", np.power: "**", np.greater: ">", np.less: "<",
    np.greater_equal: ">=", np.less_equal: "<=", np.equal: "==", np.not_equal: "!=", np.matmul: "@",
}  # fmt: skip


def rule(*functions: Any) -> Callable[[Rule], Rule]:
    """The decorated function writes the steps of these ops."""

    def register(function: Rule) -> Rule:
        RULES.update((f.op, function) for f in functions)
        return function

    return register


def flat(text: Any) -> str:
    """The expression for a list or tuple of expressions."""
    if isinstance(text, str):
        return text
    return f"({', '.join(map(flat, text))}{',' if len(text) == 1 else ''})"


def expression(step: Written) -> str | None:
    """The expression for a step whose first result alone is read, or which has one result; None if no rule covers the
    step."""
    op = TABLE[step.op]
    if op in RULES:
        return RULES[op](step)
    kernel = op.kernel
    if not isinstance(kernel, np.ufunc) or len(step.args) != kernel.nin:
        return from_rule(step)
    sign = SIGNS.get(kernel)
    if sign and len(step.texts) == 2:
        return f"{operand(step.texts[0])} {sign} {operand(step.texts[1])}"
    return step.function(f"np.{kernel.__name__}")


class ArrayPrinter(TextPrinter):
    """Writes the formula of an elementwise op as an expression of whole arrays."""

    def inverted(self, x: Any) -> str:
        return f"~{x.within(ATOM)}"

    def absolute(self, x: Any) -> str:
        return f"np.abs({x.text})"

    def number(self, value: Any, dtype: np.dtype) -> str:
        if not np.isfinite(value):
            return f"float({str(float(value))!r})"
        return repr(int(value) if abs(value) < 1e6 and int(value) == value else float(value))

    def converted(self, x: Any, dtype: np.dtype) -> str:
        return f"{x.within(SUM)} != 0" if dtype == BOOL else f"{x.within(ATOM)}.astype(np.{dtype.name})"

    def call(self, name: str, args: tuple, dtype: np.dtype) -> str:
        own = hasattr(numpy_functions, name)
        if not own and not hasattr(np, name):
            raise NotFused
        return f"{'' if own else 'np.'}{name}({', '.join([a.text for a in args])})"


PRINTER = ArrayPrinter()


def from_rule(step: Written) -> str | None:
    """The formula of an elementwise op of arrays in float32, float64, int64 or bool."""
    if not TABLE[step.op].elementwise:
        return None
    pairs = zip(step.args, step.texts)
    args = tuple([Scalar(text, a.dtype, printer=PRINTER) if isinstance(a, Value) else a for a, text in pairs])
    try:
        return rule_expression(TABLE[step.op], args, step.dtype).text
    except NotFused:
        return None


def operand(text: Any) -> str:
    """An operand of a sign, in brackets if necessary."""
    return text if text.replace(".", "").replace("_", "").isalnum() or text.endswith(("]", ")")) else f"({text})"


def named(name: str, *functions: Any) -> None:
    """These ops are calls of a function with the same arguments."""
    rule(*functions)(lambda step: step.function(name))


for name in ("relu", "sigmoid", "silu"):
    named(name, getattr(E, name))
for name in ("gelu", "hardswish", "hardsigmoid"):
    named(name, getattr(activation, name))
named("erf", E.erf)
named("softmax", reduce.softmax)
named("log_softmax", reduce.log_softmax)
named("batch_norm", normalization.frozen_batch_norm)
named("convolution", convolution)
named("transposed_convolution", conv_input_grad)
named("np.where", E.where)


def first_alone(step: Written) -> bool:
    return not any(step.used[1:])


@rule(normalization.layer_norm)
def write_layer_norm(step: Written) -> str | None:
    return step.function("layer_norm") if first_alone(step) else None


@rule(linear)
def write_linear(step: Written) -> str:
    x, weight, bias = step.texts
    return f"linear({x}, {weight})" if step.args[2] is None else f"linear({x}, {weight}, {bias})"


@rule(mm)
def write_product(step: Written) -> str:
    x, y = step.texts
    return f"{operand(x)} @ {operand(y)}"


@rule(pool.max_pool, pool.max_values)
def write_max_pool(step: Written) -> str | None:
    x, kernel, stride, padding, dilation, ceil_mode = step.args
    if ceil_mode or x.dtype.kind != "f" or not first_alone(step):
        return None
    return f"max_pool({', '.join(map(flat, step.texts[:5]))})"


@rule(pool.avg_pool)
def write_avg_pool(step: Written) -> str | None:
    x, _, _, padding, ceil_mode, with_padding, divisor = step.args
    if ceil_mode or divisor is not None or (any(padding) and not with_padding) or x.dtype.kind != "f":
        return None
    return f"avg_pool({', '.join(map(flat, step.texts[:4]))})"


@rule(normalization.group_norm)
def write_group_norm(step: Written) -> str | None:
    return step.function("group_norm") if first_alone(step) else None


@rule(pool.adaptive_avg_pool)
def write_adaptive(step: Written) -> str | None:
    return f"mean_of_all({step.texts[0]})" if prod(step.args[1]) == 1 else None


@rule(along_dim.embedding)
def write_embedding(step: Written) -> str:
    weight, index = step.texts[:2]
    return f"rows({weight}, {index})"


@rule(along_dim.index_select)
def write_index_select(step: Written) -> str | None:
    x, index, dim = step.args
    return step.function("rows") if x.shape and index.shape else None


@rule(attention)
def write_attention(step: Written) -> str | None:
    if not first_alone(step):
        return None
    tensors, causal, scale = step.texts
    mask = f", {tensors[3]}" if len(tensors) > 3 else ""
    how = ", causal=True" if step.args[1] else ""
    return f"attention({', '.join(tensors[:3])}{mask}{how}, scale={scale})"


@rule(recurrent.lstm_layer)
def write_lstm(step: Written) -> str | None:
    return recurrent_layer(step, "lstm", 3)


@rule(recurrent.gru_layer)
def write_gru(step: Written) -> str | None:
    return recurrent_layer(step, "gru", 2)


@rule(recurrent.rnn_layer)
def write_rnn(step: Written) -> str | None:
    (tensors, relu, *how), (given, _, *texts) = step.args, step.texts
    rest = step._replace(args=(tensors, *how), texts=[given, "relu" if relu else "np.tanh", texts[1]])
    found = recurrent_layer(rest, "rnn", 2)
    return found and found.removesuffix(")").rpartition(", ")[0] + f", {rest.texts[1]}, {texts[1]})"


def recurrent_layer(step: Written, name: str, results: int) -> str | None:
    """A recurrent layer over sequences of equal lengths."""
    tensors, sizes, _ = step.args
    given = step.texts[0]
    if sizes is not None or tensors[0].shape[1:2] != tensors[1].shape[:1] or len(tensors[0].shape) != 3:
        return None
    if len(given) > results + 2 or any(step.used[results:]):
        return None
    bias = given[results + 1] if len(given) > results + 1 else "0"
    return f"{name}({', '.join([*given[: results + 1], bias])}, {step.texts[2]})"


# -- shapes --------------------------------------------------------------------------------------------------------


@rule(views.reshape, views.flatten, views.unflatten, views.squeeze, views.unsqueeze, views.view_as_shape)
def write_reshape(step: Written) -> str:
    return f"{operand(step.texts[0])}.reshape{step.shape if step.shape != '()' else '(())'}"


@rule(views.expand)
def write_expand(step: Written) -> str:
    return f"np.broadcast_to({step.texts[0]}, {step.shape})"


@rule(views.transpose)
def write_transpose(step: Written) -> str:
    x, a, b = step.texts
    return f"{operand(x)}.swapaxes({a}, {b})"


@rule(views.permute)
def write_permute(step: Written) -> str:
    x, order = step.texts
    return f"{operand(x)}.transpose{flat(order)}" if step.args[1] else x


@rule(views.contiguous)
def write_contiguous(step: Written) -> str:
    return f"np.ascontiguousarray({step.texts[0]})"


@rule(views.clone)
def write_clone(step: Written) -> str:
    return f"{operand(step.texts[0])}.copy()"


@rule(views.to)
def write_to(step: Written) -> str | None:
    x, dtype = step.args
    return f"{operand(step.texts[0])}.astype(np.{np.dtype(dtype.numpy).name})" if x.dtype.kind != "c" else None


@rule(views.getitem)
def write_getitem(step: Written) -> str:
    keys = [sliced(k) for k in step.texts[1]]
    if keys and keys[-1] == "...":
        keys.pop()
    return f"{operand(step.texts[0])}[{', '.join(keys) or '...'}]"


def sliced(text: Any) -> str:
    """`slice(None, 5, None)` as `:5`."""
    if isinstance(text, str) and text.startswith("slice("):
        start, stop, step = text[6:-1].split(", ")
        return ":".join(["" if n == "None" else n for n in (start, stop, *([] if step == "None" else [step]))])
    return "..." if text == "Ellipsis" else flat(text)


@rule(index_tensors.index)
def write_index(step: Written) -> str:
    tensors = iter(step.texts[1])
    keys = [next(tensors) if k is HERE else sliced(k) for k in step.texts[2]]
    return f"{operand(step.texts[0])}[{', '.join(keys)}]"


HERE = "HERE"  # the expression of a key's place for an index tensor


@rule(views.flip)
def write_flip(step: Written) -> str:
    return step.function("np.flip")


named("np.tril", views.tril)
named("np.triu", views.triu)


@rule(views.cat)
def write_cat(step: Written) -> str:
    return step.function("np.concatenate")


@rule(views.stack)
def write_stack(step: Written) -> str:
    return step.function("np.stack")


@rule(views.unbind)
def write_unbind(step: Written) -> str:
    x, dim = (*step.texts, "0")[:2]
    return x if dim == "0" else f"np.moveaxis({x}, {dim}, 0)"


@rule(views.split_sizes)
def write_split(step: Written) -> str:
    ends = np.cumsum(step.args[1])[:-1].tolist()
    return f"np.split({step.texts[0]}, {ends}, {(*step.texts, '0')[2]})"


@rule(pad.constant_pad)
def write_pad(step: Written) -> str | None:
    x, amounts, value = step.texts
    if min(n for pair in step.args[1] for n in pair) < 0:
        return None
    number = "" if step.args[2] == 0 else f", constant_values={value}"
    return f"np.pad({x}, {flat(amounts)}{number})"


@rule(reduce.mean, reduce.sum, reduce.amax, reduce.amin)
def write_reduction(step: Written) -> str | None:
    x = step.args[0]
    if x.dtype.kind != "f" or not x.size:
        return None
    name = next(n for n, f in METHODS.items() if TABLE[step.op] is f.op)
    given = [flat(step.texts[1]) if len(step.texts) > 1 else "None"]
    given += ["keepdims=True"] * (len(step.args) > 2 and bool(step.args[2]))
    return f"{operand(step.texts[0])}.{name}({', '.join(given)})"


@rule(reduce.logsumexp)
def write_logsumexp(step: Written) -> str | None:
    x, *rest = step.args
    return step.function("logsumexp") if x.size and x.dtype.kind == "f" and rest and rest[0] is not None else None


@rule(reduce.var_core)
def write_variance(step: Written) -> str | None:
    x, axes, correction = step.texts
    return f"{operand(x)}.var({flat(axes)}, ddof={correction}, keepdims=True)" if step.args[0].size else None


@rule(reduce.argmax, reduce.argmin)
def write_argmax(step: Written) -> str | None:
    x, *_ = step.args
    if x.dtype.kind not in "fiu" or not x.size:
        return None
    name = "argmax" if TABLE[step.op] is reduce.argmax.op else "argmin"
    given = [*(step.texts[1:2] or ["None"]), *["keepdims=True"] * bool(len(step.args) > 2 and step.args[2])]
    return f"{operand(step.texts[0])}.{name}({', '.join(map(flat, given))})"


METHODS = {"mean": reduce.mean, "sum": reduce.sum, "max": reduce.amax, "min": reduce.amin}
