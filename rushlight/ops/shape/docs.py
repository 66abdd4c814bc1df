"""Descriptions of the ops of this folder, for their docstrings. Loaded when a docstring is read."""

from __future__ import annotations

from rushlight.ops.doc_text import INDEXED, MATRIX, Text

TEXTS = {
    "reshape": Text(
        "The elements, in their order, in another shape; -1 stands for the remaining size.",
        example=MATRIX + "NAME(x, 3, -1)",
        errors="RuntimeError if the number of elements differs",
    ),
    "flatten": Text("The dimensions from `start_dim` to `end_dim` as one.", example=MATRIX + "NAME(x)"),
    "unflatten": Text(
        "One dimension as several; -1 stands for the remaining size.", example="NAME(rushlight.arange(6), 0, (2, 3))"
    ),
    "squeeze": Text(
        "The tensor without dimensions of length 1: all of them, or those in `dim`.",
        example="NAME(rushlight.ones(1, 2, 1)).shape",
    ),
    "unsqueeze": Text(
        "The tensor with a new dimension of length 1 at `dim`.", example="NAME(rushlight.ones(2, 3), 1).shape"
    ),
    "transpose": Text("Two dimensions swapped.", example=MATRIX + "NAME(x, 0, 1)"),
    "permute": Text(
        "The dimensions in another order.",
        example="NAME(rushlight.ones(2, 3, 4), (2, 0, 1)).shape",
        errors="RuntimeError unless each dimension occurs once",
    ),
    "expand": Text(
        "Dimensions of length 1 repeated to `size`, without a copy; -1 keeps a length.",
        example="rushlight.tensor([[1], [2]]).expand(2, 3)",
    ),
    "narrow": Text(
        "`length` slices along `dim`, from `start` on.",
        example=MATRIX + "NAME(x, 1, 1, 2)",
        errors="RuntimeError if there are fewer slices",
    ),
    "select": Text(
        "The slice at `index` along `dim`, without that dimension.", example=MATRIX + "NAME(x, 1, 2)", errors=INDEXED
    ),
    "diagonal": Text(
        "The elements whose indices along `dim2` are `offset` more than along `dim1`, as the last dimension.",
        example="NAME(rushlight.tensor([[1, 2], [3, 4]]))",
    ),
    "contiguous": Text(
        "The tensor in row-major memory order; the tensor itself if it has this order.",
        example="rushlight.ones(2, 3).T.contiguous().stride()",
    ),
    "flip": Text(
        "The tensor with the order along `dims` reversed; a copy.",
        example=MATRIX + "NAME(x, (1,))",
        shape="the input's",
        dtype="the input's",
    ),
    "tril": Text(
        "The lower triangle of a matrix, up to the diagonal number `diagonal`; 0 elsewhere.",
        example="NAME(rushlight.ones(3, 3))",
    ),
    "triu": Text(
        "The upper triangle of a matrix, from the diagonal number `diagonal`; 0 elsewhere.",
        example="NAME(rushlight.ones(3, 3))",
    ),
    "repeat": Text(
        "Copies of the tensor side by side, `repeats` times along each dimension.",
        example="rushlight.tensor([1, 2]).repeat(2, 2)",
        shape="the input's times `repeats`",
    ),
    "cat": Text(
        "Tensors joined along an existing dimension.",
        dtype="promoted as in torch",
        shape="lengths along `dim` add up, the others agree",
        example="NAME((rushlight.tensor([1, 2]), rushlight.tensor([3])))",
    ),
    "stack": Text(
        "Tensors joined along a new dimension.",
        dtype="promoted as in torch",
        shape="the tensors', with their number at `dim`",
        example="NAME((rushlight.tensor([1, 2]), rushlight.tensor([3, 4])), 1)",
    ),
    "unpermute": Text("The inverse of `permute`."),
    "getitem": Text("Indexing by integers, slices, None and `...`.", formula="out = input[key]"),
    "embed": Text("Zeros of the size, with x at `key`."),
    "to": Text("The tensor in another dtype."),
    "clone": Text("A copy with its own memory."),
    "unbind": Text("The slices along `dim`, without this dimension."),
    "split_sizes": Text("Parts of the given lengths along `dim`."),
}
