"""Descriptions of the ops of this folder, for their docstrings. Loaded when a docstring is read."""

from __future__ import annotations

from rushlight.ops.doc_text import Text

TEXTS = {
    "mm": Text(
        "The product of matrices.", example="NAME(rushlight.tensor([[1., 2.]]), rushlight.tensor([[3.], [4.]]))"
    ),
    "dot": Text(
        "The sum of the products of two vectors' elements.",
        shape="two vectors of equal length give one number",
        formula="out = sum over i of input_i * tensor_i",
        example="NAME(rushlight.tensor([1., 2.]), rushlight.tensor([3., 4.]))",
    ),
    "mv": Text(
        "The product of a matrix and a vector.",
        shape="(n, k) and (k) give (n)",
        formula="out_i = sum over k of input_ik * vec_k",
        example="NAME(rushlight.tensor([[1., 2.], [3., 4.]]), rushlight.tensor([1., 10.]))",
    ),
    "linear": Text(
        "The product with a weight matrix, plus a bias; `input` may have any leading dimensions.",
        formula="out = input @ weight.mT + bias",
        shape="(..., n), (m, n) and (m) give (..., m)",
    ),
}
