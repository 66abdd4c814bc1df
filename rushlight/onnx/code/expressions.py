"""Frequent operators as expressions of torch: what a person would write in their place.

A function of `EXPRESSIONS` receives a `Node` and returns the text, or None where the operator's own function is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.onnx.operators.elementwise import ARITHMETIC, BINARY, UNARY
from rushlight.onnx.program import Constant, Step
from rushlight.onnx.tensors import ELEMENTS, has_tensors, numpy_type

SYMBOLS = {
    "Add": "+", "Sub": "-", "Mul": "*", "MatMul": "@", "Equal": "==", "Less": "<", "LessOrEqual": "<=",
    "Greater": ">", "GreaterOrEqual": ">=",
}  # fmt: skip
REDUCTIONS = {"ReduceSum": "sum", "ReduceMean": "mean", "ReduceMax": "amax", "ReduceMin": "amin"}


class Node:
    """A step, with the texts of its inputs. `ranks`: the dimensions of weights, by name."""

    def __init__(self, step: Step, texts: list[str], ranks: dict[str, int]):
        self.step, self.texts, self.ranks = step, texts, ranks

    def __getitem__(self, i: int) -> str:
        return self.texts[i]

    def __len__(self) -> int:
        return len(self.texts)

    def has(self, i: int) -> bool:
        """Whether the i-th input is given."""
        return i < len(self.step.sources) and self.step.sources[i] is not None

    def constant(self, i: int) -> np.ndarray | None:
        """The array of an input that is a constant."""
        source = self.step.sources[i] if i < len(self.step.sources) else None
        return source.array if isinstance(source, Constant) else None

    def ints(self, i: int, name: str) -> list[int] | None:
        """Integers from a constant input, or from an attribute."""
        array = self.constant(i)
        if array is not None:
            return [int(v) for v in array.reshape(-1)]
        return self.setting(name)

    def rank(self, i: int) -> int | None:
        """The number of dimensions of an input, if it is a weight or a constant."""
        source = self.step.sources[i] if i < len(self.step.sources) else None
        if isinstance(source, Constant):
            return source.array.ndim
        return self.ranks.get(source) if isinstance(source, str) else None

    def setting(self, name: str, default: Any = None) -> Any:
        return self.step.settings.get(name, default)


Writer = Callable[[Node], "str | None"]
EXPRESSIONS: dict[str, Writer] = {}


def written(*names: str) -> Callable[[Writer], Writer]:
    """Enter a function as the writer of operators."""

    def enter(function: Writer) -> Writer:
        EXPRESSIONS.update(dict.fromkeys(names, function))
        return function

    return enter


def expression(node: Node) -> str | None:
    """The text of a step; None if the operator's function is needed."""
    name = node.step.operator.name
    if name in SYMBOLS and len(node) == 2 and "axis" not in node.step.settings:
        return f"{node[0]} {SYMBOLS[name]} {node[1]}"
    if node.step.operator.text:
        return f"{(UNARY | BINARY | ARITHMETIC)[name]}({', '.join(node.texts)})"
    writer = EXPRESSIONS.get(name)
    return None if writer is None else writer(node)


def call(function: str, inputs: list[str], **settings: Any) -> str:
    """The text of a call; settings that are None are left out."""
    named = [f"{key}={value!r}" for key, value in settings.items() if value is not None]
    return f"{function}({', '.join([*inputs, *named])})"


def same(numbers: list[int] | None, usual: int) -> Any:
    """A list as one number if all are equal; None if they have the usual value."""
    if numbers is None or all(n == usual for n in numbers):
        return None
    return numbers[0] if len(set(numbers)) == 1 else tuple(numbers)


def symmetric(node: Node, count: int) -> Any:
    """The padding as torch writes it; "" if both ends differ."""
    pads = node.setting("pads")
    if node.setting("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        return ""
    if pads is None or node.setting("auto_pad") == "VALID":
        return None
    return same(pads[:count], 0) if pads[:count] == pads[count:] else ""


@written("Conv")
def conv(node: Node) -> str | None:
    rank = node.rank(1)
    if rank not in (3, 4, 5):
        return None
    count = rank - 2
    padding = symmetric(node, count)
    if padding == "":
        return None
    group = node.setting("group", 1)
    return call(
        f"F.conv{count}d",
        node.texts[:3],
        stride=same(node.setting("strides"), 1),
        padding=padding,
        dilation=same(node.setting("dilations"), 1),
        groups=None if group == 1 else group,
    )


@written("MaxPool")
def max_pool(node: Node) -> str | None:
    kernel = node.setting("kernel_shape")
    padding = symmetric(node, len(kernel))
    wide = padding not in ("", None) and any(2 * p > k for p, k in zip(node.setting("pads"), kernel))
    if padding == "" or wide or node.setting("ceil_mode") or len(node.step.outputs) > 1 or len(kernel) > 3:
        return None
    size, stride = same(kernel, -1), node.setting("strides") or [1] * len(kernel)
    inputs = [node[0], repr(size)]
    return call(
        f"F.max_pool{len(kernel)}d",
        inputs,
        stride=same(stride, -1),
        padding=padding,
        dilation=same(node.setting("dilations"), 1),
    )


@written("BatchNormalization")
def batch_norm(node: Node) -> str | None:
    if node.setting("training_mode") or len(node.step.outputs) > 1:
        return None
    x, scale, bias, mean, var = node.texts
    return call("F.batch_norm", [x, mean, var, scale, bias], eps=unless(node.setting("epsilon"), 1e-5))


@written("LayerNormalization")
def layer_norm(node: Node) -> str | None:
    if len(node.step.outputs) > 1 or node.setting("axis", -1) != -1 or node.rank(1) != 1:
        return None
    shape = f"{node[1]}.shape"
    return call("F.layer_norm", [node[0], shape, *node.texts[1:]], eps=unless(node.setting("epsilon"), 1e-5))


def unless(value: float | None, usual: float) -> float | None:
    """A number, in the digits of float32; None for the usual value."""
    return None if value is None or np.float32(value) == np.float32(usual) else float(str(np.float32(value)))


@written("Gemm")
def gemm(node: Node) -> str | None:
    plain = node.setting("alpha", 1.0) == 1 and node.setting("beta", 1.0) == 1 and not node.setting("transA")
    if not plain or (node.has(2) and node.rank(2) != 1):
        return None
    if node.setting("transB"):
        return call("F.linear", node.texts)
    return f"{node[0]} @ {node[1]}" + (f" + {node[2]}" if node.has(2) else "")


@written("Softmax", "LogSoftmax")
def softmax(node: Node) -> str | None:
    if node.step.operator.since < 13:
        return None
    name = "torch.softmax" if node.step.operator.name == "Softmax" else "torch.log_softmax"
    return call(name, [node[0]], dim=node.setting("axis", -1))


@written("LeakyRelu")
def leaky_relu(node: Node) -> str:
    return call("F.leaky_relu", [node[0]], negative_slope=unless(node.setting("alpha"), 0.01))


@written("Gelu")
def gelu(node: Node) -> str:
    return call("F.gelu", [node[0]], approximate=node.setting("approximate"))


@written("Identity", "Dropout")
def identity(node: Node) -> str | None:
    if len(node.step.outputs) > 1 or len(node) > 2:
        return None
    return node[0]


@written("Reshape")
def reshape(node: Node) -> str | None:
    shape = node.ints(1, "shape")
    if shape is None or 0 in shape:
        return None
    return f"{node[0]}.reshape({', '.join(map(str, shape)) or '()'})"


@written("Transpose")
def transpose(node: Node) -> str | None:
    perm = node.setting("perm")
    return None if perm is None else f"{node[0]}.permute({', '.join(map(str, perm))})"


@written("Squeeze")
def squeeze(node: Node) -> str | None:
    axes = node.ints(1, "axes")
    if axes is None:
        return None if node.has(1) else f"{node[0]}.squeeze()"
    return f"{node[0]}.squeeze({axes[0] if len(axes) == 1 else tuple(axes)})"


@written("Unsqueeze")
def unsqueeze(node: Node) -> str | None:
    axes = node.ints(1, "axes")
    return f"{node[0]}.unsqueeze({axes[0]})" if axes is not None and len(axes) == 1 else None


@written("Concat")
def concat(node: Node) -> str:
    return f"torch.cat([{', '.join(node.texts)}], {node.setting('axis', 1)})"


@written("Split")
def split(node: Node) -> str | None:
    sizes = node.ints(1, "split")
    return None if sizes is None else f"{node[0]}.split({sizes}, {node.setting('axis', 0)})"


@written("Slice")
def slices(node: Node) -> str | None:
    starts, ends, axes = node.ints(1, "starts"), node.ints(2, "ends"), node.ints(3, "axes")
    steps = node.ints(4, "steps") or [1] * len(starts or ())
    computed = any(node.has(i) and node.constant(i) is None for i in range(1, 5))
    if computed or starts is None or ends is None or min(steps, default=0) < 1:
        return None
    axes = list(range(len(starts))) if axes is None else axes
    if min(axes) < 0:
        return None
    parts = [":"] * (max(axes) + 1)
    for axis, start, end, step in zip(axes, starts, ends, steps):
        first, last = "" if start == 0 else str(start), "" if end > 2**30 else str(end)
        parts[axis] = f"{first}:{last}" + ("" if step == 1 else f":{step}")
    return f"{node[0]}[{', '.join(parts)}]"


@written("Cast")
def cast(node: Node) -> str | None:
    code = node.setting("to")
    if not has_tensors(numpy_type(code)):
        return None
    return f"{node[0]}.to(torch.{ELEMENTS[code].name})"


@written("Where")
def where(node: Node) -> str:
    return call("torch.where", node.texts)


@written("Pow")
def power(node: Node) -> str | None:
    exponent = node.constant(1)
    return None if exponent is None or exponent.ndim or node.rank(0) else f"{node[0]} ** {exponent.item()!r}"


@written("Div")
def div(node: Node) -> str | None:
    y = node.constant(1)
    return None if y is None or y.dtype.kind != "f" else f"{node[0]} / {node[1]}"


@written("Clip")
def clip(node: Node) -> str | None:
    low, high = node.constant(1), node.constant(2)
    if (low is None) != (not node.has(1)) or (high is None) != (not node.has(2)):
        return None
    low_text, high_text = node.setting("min"), node.setting("max")
    low_text = low.item() if low is not None else low_text
    high_text = high.item() if high is not None else high_text
    return node[0] if low_text is None and high_text is None else f"torch.clamp({node[0]}, {low_text}, {high_text})"


@written(*REDUCTIONS)
def reduction(node: Node) -> str | None:
    axes = node.ints(1, "axes")
    if node.has(1) and axes is None:
        return None
    if not axes:
        whole = not node.setting("noop_with_empty_axes") and not node.setting("keepdims", 1)
        return f"{node[0]}.{REDUCTIONS[node.step.operator.name]}()" if whole else None
    keep = ", keepdim=True" if node.setting("keepdims", 1) else ""
    return f"{node[0]}.{REDUCTIONS[node.step.operator.name]}({tuple(axes)}{keep})"


@written("Shape")
def shape(node: Node) -> str:
    start, end = node.setting("start", 0), node.setting("end")
    part = f"[{start or ''}:{'' if end is None else end}]" if start or end is not None else ""
    return f"torch.tensor({node[0]}.shape{part}, dtype=torch.int64)"


@written("Size")
def size(node: Node) -> str:
    return f"torch.tensor({node[0]}.numel())"


@written("Gather")
def gather(node: Node) -> str | None:
    at, axis = node.constant(1), node.setting("axis", 0)
    if at is None or at.ndim or axis < 0:
        return None
    return f"{node[0]}[{':, ' * axis}{at.item()}]"
