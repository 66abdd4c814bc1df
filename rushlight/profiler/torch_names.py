"""The names of ops in torch's profiler: `aten::conv2d`; `rushlight::NAME` for ops that torch lacks.

An op has one name here. torch records the ops inside an op, too: `aten::convolution` inside `aten::conv2d`,
`aten::addmm` inside `aten::linear`."""

from __future__ import annotations

from collections.abc import Callable

Name = str | Callable[[tuple], str]  # a name, or a function of the op's arguments
ACCUMULATE = "torch::autograd::AccumulateGrad"


def product(args: tuple) -> str:
    """mm of two matrices, or of a stack and a matrix, which torch folds; else bmm."""
    return "aten::mm" if min(args[0].ndim, args[1].ndim) <= 2 else "aten::bmm"


def spatial(name: str) -> Callable[[tuple], str]:
    """The name with the number of spatial dimensions of the first argument, (N, C, *size)."""
    return lambda args: f"aten::{name}{args[0].ndim - 2}d"


OTHER_NAMES: dict[str, Name] = {
    "mm": product,
    "int8_linear": "quantized::linear_dynamic",
    "convolution": spatial("conv"),
    "conv_input_grad": spatial("conv_transpose"),
    "max_values": spatial("max_pool"),
    **{name: spatial(name) for name in ("max_pool", "max_unpool", "avg_pool", "fractional_max_pool")},
    **{name: spatial(name) for name in ("adaptive_max_pool", "adaptive_avg_pool")},
    **{
        ours: f"aten::{theirs}"
        for ours, theirs in {
            "apart": "pdist",
            "attention": "scaled_dot_product_attention",
            "c2c": "_fft_c2c",
            "c2r": "_fft_c2r",
            "cholesky_solution": "cholesky_solve",
            "constant_pad": "constant_pad_nd",
            "ctc": "ctc_loss",
            "euclidean": "cdist",
            "farthest": "cdist",
            "frozen_batch_norm": "batch_norm",
            "gelu_tanh": "gelu",
            "gru_layer": "gru",
            "indexing": "index",
            "inverse_of_rank": "linalg_pinv",
            "laid_out": "clone",
            "ldl": "linalg_ldl_factor_ex",
            "ldl_solution": "linalg_ldl_solve",
            "least_squares": "linalg_lstsq",
            "lookup": "embedding",
            "lstm_layer": "lstm",
            "lu_core": "linalg_lu_factor_ex",
            "overwrite": "copy_",
            "prelu_core": "prelu",
            "r2c": "_fft_r2c",
            "solution": "linalg_solve",
            "rows_summed": "_embedding_bag",
            "split_sizes": "split_with_sizes",
            "triangular": "linalg_solve_triangular",
            "unique": "_unique2",
            "var_core": "var",
            "vector_norm": "linalg_vector_norm",
            "write_at": "index_put_",
        }.items()
    },
}
# steps of ops, and derivatives, for which torch has no op
OURS = """
    adaptive_avg_pool_grad add_windows attention_back avg_pool_grad batch_dots blend bordered cofactors
    conv_weight_grad ctc_slope draw dropout_mask embed embed_diagonal embedding_grad fold_repeats gather_spatial
    gelu_slope grid_position grid_slope grid_taps gru_back imag_part index_add_zeros lie_again lstm_back moved
    nll_loss_grad nonzeros placed real_part region rnn_back rnn_layer sampled sampled_back sampled_product
    sampled_slope scaled_once scatter_spatial sparse_product unbordered unlie unpermute with_region
    with_scaled_gradient without_gradient"""


def profiler_name(op: str) -> Name:
    """The name of an op in a profile, or a function of its arguments that returns the name."""
    space = "rushlight" if op in OURS.split() else "aten"
    return OTHER_NAMES.get(op) or f"{space}::{op.replace('.', '_')}"
