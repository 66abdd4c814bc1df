"""Descriptions of the ops of this folder, for their docstrings. Loaded when a docstring is read."""

from __future__ import annotations

from rushlight.ops.doc_text import INDEXED, MATRIX, Text

TEXTS = {
    "gather": Text(
        "The elements of `input` whose positions along `dim` are in `index`.",
        shape="the shape of `index`",
        formula="out[i][j] = input[index[i][j]][j] for dim 0, and so on",
        errors=INDEXED,
        example="NAME(rushlight.tensor([[1, 2], [3, 4]]), 1, rushlight.tensor([[0], [1]]))",
    ),
    "scatter": Text(
        "A copy of `input` with the elements of `src` (or one number) written at `index` along `dim`.",
        formula="out = input, but out[index[i][j]][j] = src[i][j] for dim 0, and so on",
        errors=INDEXED,
        example="NAME(rushlight.zeros(3), 0, rushlight.tensor([2, 0]), rushlight.tensor([5., 6.]))",
    ),
    "scatter_add": Text(
        "A copy of `input` with the elements of `src` added at `index` along `dim`.",
        formula="out = input, but out[index[i][j]][j] += src[i][j] for dim 0, and so on",
        errors=INDEXED,
        example="NAME(rushlight.zeros(2), 0, rushlight.tensor([1, 1]), rushlight.tensor([5., 6.]))",
    ),
    "index_select": Text(
        "The slices at `index` along `dim`, a copy.",
        shape="the input's, with those slices along `dim`",
        formula="out[i] = input[index[i]] for dim 0, and so on",
        errors=INDEXED,
        example=MATRIX + "NAME(x, 1, rushlight.tensor([2, 0]))",
    ),
    "index_add": Text(
        "A copy of `input` with the slices of `source` added at `index` along `dim`.",
        formula="out = input, but out[index[i]] += source[i] for dim 0, and so on",
        errors=INDEXED,
        example="NAME(rushlight.zeros(3), 0, rushlight.tensor([0, 0]), rushlight.tensor([1., 2.]))",
    ),
    "index_copy": Text(
        "A copy of `input` with the slices of `source` written at `index` along `dim`.",
        formula="out = input, but out[index[i]] = source[i] for dim 0, and so on",
        errors=INDEXED,
        example="NAME(rushlight.zeros(3), 0, rushlight.tensor([0, 2]), rushlight.tensor([1., 2.]))",
    ),
    "write_at": Text("A copy of `input` with `other` written, or added, at `key`."),
}
