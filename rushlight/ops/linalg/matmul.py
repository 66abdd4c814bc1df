"""Products of matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight.core.build import build, inner, product
from rushlight.core.worlds import adopt
from rushlight.kernels import matmul as kernels
from rushlight.ops.tensor.node_names import of_linear, of_product

if TYPE_CHECKING:  # names in rules, provided by the rule's world (core/worlds.py)
    from rushlight.core.rule_names import rows, unrows, unsqueeze

adopt(kernels)

# Stacks of matrices, (..., n, k) @ (..., k, m); the leading dimensions broadcast, and the engine sums gradients over
# broadcast dimensions.
# fmt: off
mm = product(lambda x, y, /: x @ y, x=lambda g, y: g @ y.mT, y=lambda g, x: x.mT @ g,
    names={"y": "mat2"}, node=of_product, linear="x y", sizes="all")
dot = product(lambda x, y, /: dot(x, y), x=lambda g, y: g * y, y=lambda g, x: g * x,
    names={"y": "tensor"}, strict="dot : expected both vectors to have same dtype", linear="x y", sizes="all",
    takes="uifc")
mv = product(lambda x, y, /: mv(x, y), x=lambda g, y: unsqueeze(g, 1) * y, y=lambda g, x: mv(x.mT, g),
    names={"y": "vec"}, strict="addmv input tensors must have the same dtype", linear="x y", sizes="all", takes="uifc")
# x w^T + b with w of shape (out, in), as in nn.Linear
linear = inner(lambda x, weight, bias, /: linear(x, weight, bias), x=lambda g, weight: unrows(mm(rows(g), weight), g),
    weight=lambda g, x: mm(rows(g).mT, rows(x)), bias=lambda g: sum(rows(g), (0,)),
    node=of_linear, linear="x weight", added="bias", sizes="all")
# fmt: on

build(globals())
