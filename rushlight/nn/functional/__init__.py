"""torch.nn.functional: the functions behind the modules; parameters are arguments."""

# ruff: noqa: I001  # several names a line

from rushlight.base.errors import suggesting as _suggesting
from rushlight.base.missing_names import tell as _tell
from rushlight.base.public_function import public as _public
from rushlight.nn import grad
from rushlight.nn.functional.activation import (
    celu, celu_, elu, elu_, gelu, glu, gumbel_softmax, hardshrink, hardsigmoid, hardswish, hardtanh, hardtanh_,
    leaky_relu, leaky_relu_, log_softmax, logsigmoid, mish, prelu, relu, relu6, relu_, rrelu, rrelu_, selu, selu_,
    sigmoid, silu, softmax, softmin, softplus, softshrink, softsign, tanh, tanhshrink, threshold, threshold_,
)  # fmt: skip
from rushlight.nn.functional.attention import scaled_dot_product_attention
from rushlight.nn.functional.conv import (
    conv1d, conv2d, conv3d, conv_tbc, conv_transpose1d, conv_transpose2d, conv_transpose3d, fold, unfold,
)  # fmt: skip
from rushlight.nn.functional.ctc import ctc_loss
from rushlight.nn.functional.dropout import (
    alpha_dropout, dropout, dropout1d, dropout2d, dropout3d, feature_alpha_dropout,
)  # fmt: skip
from rushlight.nn.functional.embedding import embedding, embedding_bag, one_hot
from rushlight.nn.functional.fractional import (
    fractional_max_pool2d, fractional_max_pool2d_with_indices, fractional_max_pool3d,
    fractional_max_pool3d_with_indices,
)  # fmt: skip
from rushlight.nn.functional.grid import affine_grid, grid_sample
from rushlight.nn.functional.linear import bilinear, cosine_similarity, linear, normalize, pairwise_distance, pdist
from rushlight.nn.functional.loss import (
    binary_cross_entropy, binary_cross_entropy_with_logits, cross_entropy, gaussian_nll_loss, huber_loss, kl_div,
    l1_loss, linear_cross_entropy, mse_loss, nll_loss, poisson_nll_loss, smooth_l1_loss,
)  # fmt: skip
from rushlight.nn.functional.margin_losses import (
    cosine_embedding_loss, hinge_embedding_loss, margin_ranking_loss, multi_margin_loss, multilabel_margin_loss,
    multilabel_soft_margin_loss, soft_margin_loss, triplet_margin_loss, triplet_margin_with_distance_loss,
)  # fmt: skip
from rushlight.nn.functional.multihead import multi_head_attention_forward
from rushlight.nn.functional.multihead import projected as _in_projection_packed
from rushlight.nn.functional.normalization import (
    batch_norm, group_norm, instance_norm, layer_norm, local_response_norm, rms_norm,
)  # fmt: skip
from rushlight.nn.functional.padding import pad
from rushlight.nn.functional.pooling import (
    adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d, adaptive_max_pool1d,
    adaptive_max_pool1d_with_indices, adaptive_max_pool2d, adaptive_max_pool2d_with_indices, adaptive_max_pool3d,
    adaptive_max_pool3d_with_indices, avg_pool1d, avg_pool2d, avg_pool3d, lp_pool1d, lp_pool2d, lp_pool3d, max_pool1d,
    max_pool1d_with_indices, max_pool2d, max_pool2d_with_indices, max_pool3d, max_pool3d_with_indices, max_unpool1d,
    max_unpool2d, max_unpool3d,
)  # fmt: skip
from rushlight.nn.functional.resize import (
    channel_shuffle, interpolate, native_channel_shuffle, pixel_shuffle, pixel_unshuffle, upsample, upsample_bilinear,
    upsample_nearest,
)  # fmt: skip

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices", "adaptive_max_pool2d", "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d", "adaptive_max_pool3d_with_indices", "affine_grid", "alpha_dropout", "avg_pool1d",
    "avg_pool2d", "avg_pool3d", "batch_norm", "bilinear", "binary_cross_entropy", "binary_cross_entropy_with_logits",
    "celu", "celu_", "channel_shuffle", "conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d",
    "conv_transpose2d", "conv_transpose3d", "cosine_embedding_loss", "cosine_similarity", "cross_entropy", "ctc_loss",
    "dropout", "dropout1d", "dropout2d", "dropout3d", "elu", "elu_", "embedding", "embedding_bag",
    "feature_alpha_dropout", "fold", "fractional_max_pool2d", "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d", "fractional_max_pool3d_with_indices", "gaussian_nll_loss", "gelu", "glu", "grad",
    "grid_sample", "group_norm", "gumbel_softmax", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "hardtanh_",
    "hinge_embedding_loss", "huber_loss", "instance_norm", "interpolate", "kl_div", "l1_loss", "layer_norm",
    "leaky_relu", "leaky_relu_", "linear", "linear_cross_entropy", "local_response_norm", "log_softmax", "logsigmoid",
    "lp_pool1d", "lp_pool2d", "lp_pool3d", "margin_ranking_loss", "max_pool1d", "max_pool1d_with_indices", "max_pool2d",
    "max_pool2d_with_indices", "max_pool3d", "max_pool3d_with_indices", "max_unpool1d", "max_unpool2d", "max_unpool3d",
    "mish", "mse_loss", "multi_head_attention_forward", "multi_margin_loss", "multilabel_margin_loss",
    "multilabel_soft_margin_loss", "native_channel_shuffle", "nll_loss", "normalize", "one_hot", "pad",
    "pairwise_distance", "pdist", "pixel_shuffle", "pixel_unshuffle", "poisson_nll_loss", "prelu", "relu", "relu6",
    "relu_", "rms_norm", "rrelu", "rrelu_", "scaled_dot_product_attention", "selu", "selu_", "sigmoid", "silu",
    "smooth_l1_loss", "soft_margin_loss", "softmax", "softmin", "softplus", "softshrink", "softsign", "tanh",
    "tanhshrink", "threshold", "threshold_", "triplet_margin_loss", "triplet_margin_with_distance_loss", "unfold",
    "upsample", "upsample_bilinear", "upsample_nearest",
]  # fmt: skip

# Activations and layers of one op: a wrapper would make their calls slower.
_QUICK = frozenset(["gelu", "linear", "relu", "relu_", "sigmoid", "silu", "tanh"])
globals().update(
    (_name, _suggesting(_f, home=__name__, always=_name not in _QUICK))
    for _name, _f in [*globals().items()]
    if getattr(_f, "__module__", "").startswith(f"{__name__}.")
)
# built-in functions in torch; like those, they do not bind as methods
_BUILTIN = frozenset(
    [
        *("adaptive_avg_pool1d", "avg_pool1d", "avg_pool2d", "avg_pool3d", "bilinear", "celu_"),
        *("channel_shuffle", "conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d"),
        *("conv_transpose2d", "conv_transpose3d", "cosine_similarity", "elu_", "gelu"),
        *("hardshrink", "hardtanh_", "leaky_relu_", "linear", "logsigmoid", "one_hot"),
        *("native_channel_shuffle", "pairwise_distance", "pdist", "pixel_shuffle"),
        *("pixel_unshuffle", "prelu", "relu_", "rrelu_", "scaled_dot_product_attention"),
        *("selu_", "softplus", "softshrink", "threshold_"),
    ]
)
globals().update((_name, _public(globals()[_name])) for _name in _BUILTIN if _name in globals())

_tell(__name__)
