"""Methods of Tensor that load on first use. Written by `make stubs`."""

METHODS = """
_fill _indices _make_wrapper_subclass _nnz _typed_storage _values abs_ absolute_ acos acos_ acosh
acosh_ addbmm addbmm_ addcdiv addcdiv_ addr addr_ adjoint allclose aminmax apply_ arccos arccos_
arccosh arccosh_ arcsin arcsin_ arcsinh arcsinh_ arctan arctan2 arctan2_ arctan_ arctanh arctanh_
argsort argwhere as_strided as_strided_ as_strided_scatter asin asin_ asinh asinh_ atan atan2 atan2_
atan_ atanh atanh_ bernoulli bernoulli_ bincount bitwise_and_ bitwise_left_shift_ bitwise_not_
bitwise_or_ bitwise_right_shift_ bitwise_xor_ cauchy_ ccol_indices ceil_ cholesky cholesky_inverse
cholesky_solve clamp_max_ clamp_min_ coalesce col_indices conj conj_physical conj_physical_
copysign_ corrcoef cos cos_ cosh cosh_ count_nonzero cov cross crow_indices cummin cumprod cumprod_
cumsum cumsum_ deg2rad deg2rad_ dense_dim det diag diag_embed diagflat diagonal_scatter diff digamma
digamma_ dim_order dist dsplit eig eq_ equal erf_ erfc_ erfinv erfinv_ exp2_ exp_ expm1_
exponential_ fill_diagonal_ fix_ fliplr flipud float_power float_power_ floor_ floor_divide_ fmod_
frac_ frexp gather gcd gcd_ ge_ geometric_ geqrf get_device greater_ greater_equal_ gt_ hardshrink
hash_tensor heaviside_ histc histogram hsplit hypot_ i0 i0_ igamma igamma_ igammac igammac_ imag
index_add index_add_ index_copy index_copy_ index_fill index_fill_ index_put index_put_ index_reduce
index_reduce_ index_select indices inner inverse is_coalesced is_conj is_distributed is_inference
is_neg is_nonzero is_pinned is_same_size is_set_to is_shared is_signed isclose isreal istft kron
kthvalue lcm lcm_ ldexp ldexp_ le_ lerp_ less_ less_equal_ lgamma lgamma_ log10_ log1p_ log2_ log_
log_normal_ log_softmax logcumsumexp logdet logical_and_ logical_not_ logical_or_ logical_xor_ logit
logit_ lt_ lu lu_solve map2_ map_ masked_fill masked_fill_ masked_scatter masked_scatter_
masked_select matrix_exp matrix_power max median min mode msort mul_ multinomial multiply_ mvlgamma
mvlgamma_ nan_to_num_ nanmean nanmedian nanquantile narrow_copy ne_ neg_ negative_ new nextafter
nextafter_ nonzero nonzero_static norm normal_ not_equal_ orgqr ormqr pin_memory pinverse polygamma
polygamma_ positive pow_ prelu put put_ qr quantile rad2deg rad2deg_ random_ ravel real reciprocal_
relu_ remainder_ renorm renorm_ resize_ resize_as_ resolve_conj resolve_neg rot90 row_indices rsqrt_
scatter scatter_ scatter_add scatter_add_ scatter_reduce scatter_reduce_ select_scatter set_ sgn_
share_memory_ sigmoid_ sign_ sin sin_ sinc sinc_ sinh sinh_ slice_scatter slogdet softmax sparse_dim
sparse_mask sqrt_ square_ squeeze_ std stft storage sum_to_size svd swapaxes swapaxes_ swapdims_ t_
take take_along_dim tan tan_ tanh_ tensor_split to_dense to_sparse to_sparse_bsc to_sparse_bsr
to_sparse_coo to_sparse_csc to_sparse_csr trace transpose_ triangular_solve tril_ triu_ trunc_ type
uniform_ unique unique_consecutive unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze_
untyped_storage values var vdot vsplit where xlogy_
"""
