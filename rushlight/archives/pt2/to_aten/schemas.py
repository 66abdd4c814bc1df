"""The parameters of the operators that programs call, by ATen's names. A star stands before parameters that are given
by name alone. torch's reader looks arguments up by these names."""

from __future__ import annotations

_SCHEMAS = """
    _upsample_nearest_exact1d.vec input output_size scale_factors
    _upsample_nearest_exact2d.vec input output_size scale_factors
    _upsample_nearest_exact3d.vec input output_size scale_factors
    abs.default self
    acos.default self
    acosh.default self
    adaptive_avg_pool1d.default self output_size
    adaptive_avg_pool2d.default self output_size
    adaptive_avg_pool3d.default self output_size
    adaptive_max_pool1d.default self output_size
    adaptive_max_pool2d.default self output_size
    adaptive_max_pool3d.default self output_size
    add.Scalar self other alpha
    add.Tensor self other * alpha
    addcmul.default self tensor1 tensor2 * value
    alias.default self
    all.default self
    all.dim self dim keepdim
    amax.default self dim keepdim
    amin.default self dim keepdim
    angle.default self
    any.default self
    any.dim self dim keepdim
    arange.start_step start end step * dtype layout device pin_memory
    argmax.default self dim keepdim
    argmin.default self dim keepdim
    as_strided.default self size stride storage_offset
    as_strided_scatter.default self src size stride storage_offset
    asin.default self
    asinh.default self
    atan.default self
    atan2.default self other
    atanh.default self
    avg_pool1d.default self kernel_size stride padding ceil_mode count_include_pad
    avg_pool2d.default self kernel_size stride padding ceil_mode count_include_pad divisor_override
    avg_pool3d.default self kernel_size stride padding ceil_mode count_include_pad divisor_override
    batch_norm.default input weight bias running_mean running_var training momentum eps cudnn_enabled
    binary_cross_entropy.default self target weight reduction
    bitwise_and.Tensor self other
    bitwise_left_shift.Tensor self other
    bitwise_not.default self
    bitwise_or.Tensor self other
    bitwise_right_shift.Tensor self other
    bitwise_xor.Tensor self other
    cat.default tensors dim
    ceil.default self
    clamp.default self min max
    clamp_max.Tensor self max
    clamp_min.Tensor self min
    clone.default self * memory_format
    col2im.default self output_size kernel_size dilation padding stride
    constant_pad_nd.default self pad value
    contiguous.default self * memory_format
    convolution.default input weight bias stride padding dilation transposed output_padding groups
    copy_.default self src non_blocking
    copysign.Tensor self other
    cos.default self
    cosh.default self
    cummax.default self dim
    cummin.default self dim
    cumprod.default self dim * dtype
    cumsum.default self dim * dtype
    deg2rad.default self
    diagonal.default self offset dim1 dim2
    digamma.default self
    div.Scalar self other
    div.Tensor self other
    div.Tensor_mode self other * rounding_mode
    elu.default self alpha scale input_scale
    embedding.default weight indices padding_idx scale_grad_by_freq sparse
    eq.Tensor self other
    erf.default self
    erfc.default self
    erfinv.default self
    exp.default self
    exp2.default self
    expand.default self size * implicit
    expm1.default self
    eye.default n * dtype layout device pin_memory
    flatten.using_ints self start_dim end_dim
    flip.default self dims
    floor.default self
    floor_divide.default self other
    fmax.default self other
    fmin.default self other
    fmod.Tensor self other
    frac.default self
    full.default size fill_value * dtype layout device pin_memory
    gather.default self dim index * sparse_grad
    ge.Tensor self other
    gelu.default self * approximate
    group_norm.default input num_groups weight bias eps cudnn_enabled
    gru.input input hx params has_biases num_layers dropout train bidirectional batch_first
    gt.Scalar self other
    gt.Tensor self other
    hardshrink.default self lambd
    hardsigmoid.default self
    hardswish.default self
    hardtanh.default self min_val max_val
    heaviside.default self values
    hypot.default self other
    i0.default self
    im2col.default self kernel_size dilation padding stride
    index.Tensor self indices
    index_add.default self dim index source * alpha
    index_copy.default self dim index source
    index_put.default self indices values accumulate
    index_select.default self dim index
    isfinite.default self
    isinf.default self
    isnan.default self
    isneginf.default self
    isposinf.default self
    kthvalue.default self k dim keepdim
    layer_norm.default input normalized_shape weight bias eps cudnn_enable
    le.Tensor self other
    leaky_relu.default self negative_slope
    lerp.Tensor self end weight
    lgamma.default self
    linalg_vector_norm.default self ord dim keepdim * dtype
    linear.default input weight bias
    linspace.default start end steps * dtype layout device pin_memory
    log.default self
    log10.default self
    log1p.default self
    log2.default self
    log_sigmoid.default self
    log_softmax.int self dim dtype
    logaddexp.default self other
    logaddexp2.default self other
    logcumsumexp.default self dim
    logical_and.default self other
    logical_not.default self
    logical_or.default self other
    logical_xor.default self other
    logit.default self eps
    logsumexp.default self dim keepdim
    lstm.input input hx params has_biases num_layers dropout train bidirectional batch_first
    lt.Tensor self other
    matmul.default self other
    max.dim self dim keepdim
    max_pool1d.default self kernel_size stride padding dilation ceil_mode
    max_pool1d_with_indices.default self kernel_size stride padding dilation ceil_mode
    max_pool2d.default self kernel_size stride padding dilation ceil_mode
    max_pool2d_with_indices.default self kernel_size stride padding dilation ceil_mode
    max_pool3d.default self kernel_size stride padding dilation ceil_mode
    max_pool3d_with_indices.default self kernel_size stride padding dilation ceil_mode
    maximum.default self other
    mean.default self * dtype
    mean.dim self dim keepdim * dtype
    median.dim self dim keepdim
    min.dim self dim keepdim
    minimum.default self other
    mish.default self
    mode.default self dim keepdim
    mse_loss.default self target reduction
    mul.Scalar self other
    mul.Tensor self other
    nan_to_num.default self nan posinf neginf
    nansum.default self dim keepdim * dtype
    narrow.default self dim start length
    ne.Tensor self other
    neg.default self
    nll_loss_nd.default self target weight reduction ignore_index
    pad.default self pad mode value
    permute.default self dims
    pow.Tensor_Tensor self exponent
    prod.default self * dtype
    prod.dim_int self dim keepdim * dtype
    rad2deg.default self
    reciprocal.default self
    relu.default self
    remainder.Tensor self other
    repeat.default self repeats
    reshape.default self shape
    rnn_relu.input input hx params has_biases num_layers dropout train bidirectional batch_first
    rnn_tanh.input input hx params has_biases num_layers dropout train bidirectional batch_first
    roll.default self shifts dims
    round.default self
    rsqrt.default self
    scaled_dot_product_attention.default query key value attn_mask dropout_p is_causal * scale enable_gqa
    scatter.src self dim index src
    scatter_add.default self dim index src
    scatter_reduce.two self dim index src reduce * include_self
    select.int self dim index
    sgn.default self
    sigmoid.default self
    sign.default self
    signbit.default self
    silu.default self
    sin.default self
    sinc.default self
    sinh.default self
    slice.Tensor self dim start end step
    softmax.int self dim dtype
    softplus.default self beta threshold
    softshrink.default self lambd
    sort.stable self * stable dim descending
    split_with_sizes.default self split_sizes dim
    sqrt.default self
    square.default self
    stack.default tensors dim
    sub.Tensor self other * alpha
    sum.default self * dtype
    sum.dim_IntList self dim keepdim * dtype
    tan.default self
    tanh.default self
    threshold.default self threshold value
    to.dtype self dtype non_blocking copy memory_format
    topk.default self k dim largest sorted
    transpose.int self dim0 dim1
    tril.default self diagonal
    triu.default self diagonal
    trunc.default self
    unbind.int self dim
    unfold.default self dimension size step
    unsqueeze.default self dim
    upsample_bicubic2d.vec input output_size align_corners scale_factors
    upsample_bilinear2d.vec input output_size align_corners scale_factors
    upsample_linear1d.vec input output_size align_corners scale_factors
    upsample_nearest1d.vec input output_size scale_factors
    upsample_nearest2d.vec input output_size scale_factors
    upsample_nearest3d.vec input output_size scale_factors
    upsample_trilinear3d.vec input output_size align_corners scale_factors
    var.correction self dim * correction keepdim
    where.self condition self other
    xlogy.Tensor self other
    zeros.default size * dtype layout device pin_memory
"""
# operator with overload -> (names, names after the star)
SCHEMAS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
for _line in _SCHEMAS.split("\n"):
    if _line.strip():
        _name, *_parameters = _line.split()
        _at = _parameters.index("*") if "*" in _parameters else len(_parameters)
        SCHEMAS[_name] = tuple(_parameters[:_at]), tuple(_parameters[_at + 1 :])
