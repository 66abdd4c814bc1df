"""The table of ATen's operators: name -> function of ours, with ATen's order of arguments.

`PUBLIC` names the operators with the arguments of torch's public function or method of that name. The files of
this folder have the others. A name that ends in `_` without an entry is the operator without `_`, written into the
first argument. Overloads of one name are one function."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

import rushlight as torch
from rushlight.base import dtypes
from rushlight.core.tensor import Tensor

F = TypeVar("F", bound=Callable)
FILES = ["elementwise", "layers", "normalization", "recurrent", "attention", "shape", "creation", "reduction", "loss"]
OWN: dict[str, Callable[..., Any]] = {}
# settings that change nothing: of devices, of layouts, of the order in memory
IGNORED = frozenset(("layout", "device", "pin_memory", "memory_format", "non_blocking", "generator"))

_PUBLIC = """
    abs absolute acos acosh addbmm addcdiv addcmul addmm addmv addr alpha_dropout amax amin angle argmax argmin
    argsort asin asinh atan atan2 atanh baddbmm bernoulli bincount bitwise_and bitwise_left_shift bitwise_not
    bitwise_or bitwise_right_shift bitwise_xor block_diag bmm broadcast_tensors broadcast_to bucketize
    cartesian_prod cat cdist ceil celu channel_shuffle clamp clamp_max clamp_min clip column_stack complex concat
    conj copysign cos cosh cosine_similarity count_nonzero cross cummax cummin cumprod cumsum deg2rad det detach
    diag diag_embed diagonal diff digamma dist dot dstack eq erf erfc erfinv exp exp2 expand_as expm1 fix flatten
    flip fliplr flipud floor floor_divide fmax fmin fmod frac gather ge glu greater greater_equal gru gru_cell gt
    hardshrink hardsigmoid heaviside histc hstack hypot igamma igammac imag index_add index_copy index_fill
    index_select inner inverse isclose isfinite isin isinf isnan isneginf isposinf item kron kthvalue ldexp le
    leaky_relu lerp less less_equal lgamma linalg_cholesky linalg_cross linalg_det linalg_eigh linalg_inv
    linalg_matrix_norm linalg_norm linalg_qr linalg_solve linalg_svd linalg_vector_norm linear log log10 log1p log2
    logaddexp logaddexp2 logcumsumexp logical_and logical_not logical_or logical_xor logit logsumexp lstm lstm_cell
    lt masked_fill masked_scatter masked_select matmul matrix_exp max maximum mean median min minimum mish mm mode
    moveaxis movedim multiply mv mvlgamma nan_to_num nanmean nansum narrow ne neg negative nonzero norm normal
    not_equal numel one_hot outer pairwise_distance permute pinverse pixel_shuffle pixel_unshuffle polar polygamma
    positive pow prelu prod quantile rad2deg ravel real reciprocal relu relu6 remainder renorm repeat_interleave
    reshape_as rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell roll rot90 round rsqrt scatter scatter_add
    scatter_reduce searchsorted select_scatter selu sgn sigmoid sign signbit silu sin sinc sinh softplus softshrink
    sort special_expit special_gammaln special_ndtr sqrt square squeeze stack std std_mean subtract sum swapaxes
    swapdims t take take_along_dim tan tanh tensordot tile topk trace transpose trapezoid tril triu true_divide
    trunc unflatten unique_consecutive unsqueeze vander var var_mean vdot view_as view_as_complex view_as_real
    vstack where xlogy fft_fft fft_fft2 fft_fftn fft_fftshift fft_ifft fft_ifft2 fft_ifftn fft_ifftshift fft_irfft
    fft_irfftn fft_rfft fft_rfftn is_complex is_floating_point is_nonzero is_signed hamming_window hann_window
    blackman_window bartlett_window kaiser_window adjoint all any
"""
PUBLIC = frozenset(_PUBLIC.split())
NAMESPACES = ("linalg", "fft", "special")
# c10::ScalarType -> dtype: the numbers in TorchScript's code
SCALAR_TYPES = {
    0: dtypes.uint8, 1: dtypes.int8, 2: dtypes.int16, 3: dtypes.int32, 4: dtypes.int64, 5: dtypes.float16,
    6: dtypes.float32, 7: dtypes.float64, 9: dtypes.complex64, 10: dtypes.complex128, 11: dtypes.bool_,
    15: dtypes.bfloat16,
}  # fmt: skip


def operator(*names: str) -> Callable[[F], F]:
    """Enter a function in the table, for the operators `names`."""

    def enter(function: F) -> F:
        OWN.update(dict.fromkeys(names, function))
        return function

    return enter


def dtype_of(given: Any) -> dtypes.dtype | None:
    """A dtype of its number in TorchScript, or of a dtype; None for None."""
    if given is None or isinstance(given, dtypes.dtype):
        return given
    if given in SCALAR_TYPES:
        return SCALAR_TYPES[given]
    raise NotImplementedError(f"tensors of ScalarType {given} are not supported")


@cache
def found(name: str) -> Callable[..., Any]:
    """The function for an operator of ATen. NotImplementedError for operators that the table lacks."""
    for file in FILES:
        import_module(f"rushlight.archives.aten.{file}")
    if name in OWN:
        return OWN[name]
    if name in PUBLIC:
        return public(name)
    if name.endswith("_") and not name.endswith("__"):
        return in_place(found(name[:-1]))
    raise NotImplementedError(f"the operator aten::{name} is not supported")


def public(name: str) -> Callable[..., Any]:
    """torch's function of this name: of the package, of nn.functional, of a namespace, or a method."""
    for home, there in ((torch, name), (torch.nn.functional, name), (Tensor, name)):
        if callable(function := getattr(home, there, None)):
            return function
    space, _, last = name.partition("_")
    if space in NAMESPACES:
        return getattr(getattr(torch, space), last)
    raise NotImplementedError(f"the operator aten::{name} is not supported")


def in_place(function: Callable[..., Any]) -> Callable[..., Any]:
    """The operator that writes its result into its first argument."""
    return lambda x, *args, **settings: x.copy_(function(x, *args, **settings))


def settings(named: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments without those that change nothing; `dtype` as a dtype."""
    kept = {name: value for name, value in named.items() if name not in IGNORED}
    if "dtype" in kept:
        kept["dtype"] = dtype_of(kept["dtype"])
        if kept["dtype"] is None:
            del kept["dtype"]
    return kept
