"""Descriptions of the ops of this folder, for their docstrings. Loaded when a docstring is read."""

from __future__ import annotations

from rushlight.ops.doc_text import MATRIX, Text

SORTED = "`input`'s for the values, int64 for the indices"
COUNTED = "`input`'s; bool and integers give int64"
EMPTY = "RuntimeError if there are no elements"
NONE_LEFT = "IndexError if there are no elements"
EXTREMES = {"max": "largest", "min": "smallest"}

TEXTS = {
    "sum": Text("The sum of the elements.", "out = sum over `dim` of input", dtype=COUNTED),
    "mean": Text(
        "The sum of the elements divided by their number.",
        "out = (sum over `dim` of input) / n",
        errors="RuntimeError for integers and bool",
    ),
    "prod": Text(
        "The product of the elements; the gradient is also exact if elements are 0.",
        "out = product over `dim` of input",
        example=MATRIX + "NAME(x, 1)",
        dtype=COUNTED,
    ),
    **{
        f"a{name}": Text(
            f"The {kind} element; nan if one is nan. Ties share the gradient.",
            f"out = {kind} over `dim` of input",
            errors=EMPTY,
        )
        for name, kind in EXTREMES.items()
    },
    "logsumexp": Text(
        "The logarithm of the sum of the exponentials; nothing overflows.", "out = log(sum over `dim` of exp(input))"
    ),
    "all": Text(
        "Whether all elements are true; numbers are true unless 0.",
        "out = whether all of input over `dim`",
        dtype="bool",
    ),
    "any": Text(
        "Whether some element is true; numbers are true unless 0.",
        "out = whether any of input over `dim`",
        dtype="bool",
    ),
    **{
        f"arg{name}": Text(
            f"The index of the {kind} element, the first of equal elements; without `dim` among all elements.",
            example=MATRIX + "NAME(x, 1)",
            dtype="int64",
            shape="the input's without `dim`",
            errors=NONE_LEFT,
        )
        for name, kind in EXTREMES.items()
    },
    "sort": Text(
        "The elements in order along `dim`, and their indices in the input.",
        dtype=SORTED,
        shape="the input's",
        formula="values, indices = sort(input, dim, descending), values[i] = input[indices[i]]",
        example="NAME(rushlight.tensor([3., 1., 2.]))",
    ),
    "topk": Text(
        "The k largest (or smallest) elements along `dim`, and their indices.",
        dtype=SORTED,
        shape="the input's, with k along `dim`",
        example="NAME(rushlight.tensor([3., 1., 2.]), 2)",
        formula="values, indices = topk(input, k, dim, largest, sorted)",
        errors="RuntimeError if there are fewer than k",
    ),
    "cumsum": Text(
        "The running sums of the elements along `dim`.",
        formula="out_i = input_0 + ... + input_i",
        example="NAME(rushlight.tensor([1., 2., 3.]), 0)",
        dtype=COUNTED,
        shape="the input's",
    ),
    "cumprod": Text(
        "The running products of the elements along `dim`.",
        formula="out_i = input_0 * ... * input_i",
        example="NAME(rushlight.tensor([2., 3., 4.]), 0)",
        dtype=COUNTED,
        shape="the input's",
    ),
    "var_core": Text("The variance over `axes`, which are kept with length 1."),
    "softmax": Text(
        "Exponentials along `dim`, divided by their sum.", formula="out_i = exp(input_i) / sum_j exp(input_j)"
    ),
    "log_softmax": Text("The logarithm of softmax.", formula="out_i = input_i - log(sum_j exp(input_j))"),
    "max_dim": Text("The largest elements along `dim`, and their indices."),
    "min_dim": Text("The smallest elements along `dim`, and their indices."),
}
