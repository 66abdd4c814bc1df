"""rushlight: PyTorch's API in pure Python on NumPy. Small, quick to import, and able to show every step it takes."""

from __future__ import annotations

import gc
import importlib
import os
import sys
import warnings
from typing import Any

# NumPy warns of overflow and division by zero; torch gives inf and nan silently. Only what our own modules cause is
# silenced, so that the user's own NumPy code still warns.
warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"rushlight\.")

# The import makes no garbage; a garbage collector that looks for it takes a fifth of the import's time.
_collects = gc.isenabled()
gc.disable()
try:
    from rushlight import autograd, ops
    from rushlight.base import docstring, dtypes, lazy
    from rushlight.core import backward as _backward
    from rushlight.core import engine as _engine
    from rushlight.creation import factories

    # both calls together move all objects to the oldest generation, without a look at each object
    if not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()
finally:
    if _collects:
        gc.enable()
from rushlight.base.device import Layout as layout
from rushlight.base.device import device, jagged, sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr, strided
from rushlight.base.dtypes import can_cast, dtype, finfo, get_default_dtype, iinfo, promote_types, set_default_dtype
from rushlight.base.memory_format import FORMATS, memory_format
from rushlight.base.public_function import public as _public
from rushlight.base.size import Size
from rushlight.core.table import in_namespace as _in_namespace
from rushlight.core.tensor import Tensor
from rushlight.ops.composites import offered as _offered
from rushlight.ops.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)

# Modules of higher layers that lower layers import on first use.
docstring.op_docstrings.module = "rushlight.introspect.op_docstrings"
_engine.graph_errors.module = "rushlight.autograd.graph_errors"
_backward.nan_check.module = "rushlight.autograd.nan_check"
_backward.sparse_graph.module = "rushlight.sparse.graph"
_backward.batched_grad.module = "rushlight.func.batched_grad"
factories.meta_tensors.module = "rushlight.ops.meta.meta_tensors"
ops.aten_namespace.module = "rushlight.autograd.aten"

# Names that exist only because programs written for torch import them: rushlight._dynamo, rushlight.cuda.
__path__.append(os.path.join(__path__[0], "compat", "names"))

inf, nan, pi, e = float("inf"), float("nan"), 3.141592653589793, 2.718281828459045
newaxis = None

globals().update(factories.FUNCTIONS | dtypes.NAMES | FORMATS)
globals().update((name, _public(value)) for name, value in [*globals().items()] if not name.startswith("_"))


def _offer() -> None:
    """Add the loaded ops to the package; existing names stay."""
    globals().update(
        (name, _public(f)) for name, f in _offered().items() if name not in globals() and not _in_namespace(name)
    )


# attach methods too: x.hardshrink(), x.to_sparse()
lazy.left += ["rushlight.nn.functional", "rushlight.sparse"]

_MODULES = """
    nn optim utils amp vision viz docs profiler compiler cpu cuda mps xpu accelerator backends distributions random
    serialization linalg fft special masked signal sparse jit hub onnx archives export multiprocessing distributed
    testing func futures fx library overrides return_types storage types torch_version functional version _C __config__
    _tensor_str classes _dynamo _guards _subclasses _inductor _utils ao quasirandom _functorch _higher_order_ops _VF
    quantization
"""
_LAZY = tuple(_MODULES.split())
# Functions that are loaded on first use: module -> names.
_FUNCTIONS = {
    "version": "__version__",
    "base.printing": "set_printoptions",
    "backends": """
        set_float32_matmul_precision get_float32_matmul_precision has_cuda has_cudnn has_mps has_lapack has_mkl
        has_openmp has_spectral get_device_module
    """,
    "ops.user_ops": "op",
    "viz.chain_rule": "explain",
    "viz.contribution_shares": "contributions",
    "teaching": "teach",
    "recording": "record replay",
    "sparse": """
        sparse_coo_tensor sparse_csr_tensor sparse_csc_tensor sparse_compressed_tensor sparse_bsr_tensor
        sparse_bsc_tensor smm hspmm sspaddmm spmm dsmm
    """,
    "utils.dlpack": "to_dlpack",
    "serialization": "save load",
    "compiler": "compile",
    "func": "vmap",
    "jit": "ScriptModule ScriptFunction",
    "_C": "PyTorchFileReader TensorType _assert_async _has_compatible_shallow_copy_type",
    "ops.tensor.control_flow": """
        _assert _check _check_index _check_is_size _check_not_implemented _check_tensor_all _check_tensor_all_with
        _check_type _check_value _check_with cond sym_float sym_int sym_ite sym_max sym_min sym_not sym_sqrt sym_sum
        while_loop
    """,
    "futures": "Future",
    "cuda": "OutOfMemoryError Event Stream",
    "library": "Tag",
    "types": "SymInt SymFloat SymBool DeviceObjType",
    "creation.process_settings": """
        are_deterministic_algorithms_enabled get_default_device get_deterministic_debug_mode is_anomaly_enabled
        is_deterministic_algorithms_warn_only_enabled is_warn_always_enabled set_default_device
        set_deterministic_debug_mode set_flush_denormal set_warn_always use_deterministic_algorithms
    """,
    "distributions.gamma": "_standard_gamma",
    "random": "Generator default_generator manual_seed seed initial_seed",
    "base.threads": "get_num_threads set_num_threads get_num_interop_threads set_num_interop_threads",
    "ops.tensor.quantized_tensor": """
        dequantize per_channel_affine per_channel_affine_float_qparams per_channel_symmetric per_tensor_affine
        per_tensor_symmetric qscheme quantize_per_channel quantize_per_tensor
    """,
    "amp.legacy_api": """
        clear_autocast_cache get_autocast_cpu_dtype get_autocast_gpu_dtype set_autocast_cpu_dtype
        set_autocast_cpu_enabled set_autocast_gpu_dtype
    """,
    "amp": """
        GradScaler autocast get_autocast_dtype is_autocast_cache_enabled is_autocast_cpu_enabled is_autocast_enabled
        set_autocast_cache_enabled set_autocast_dtype set_autocast_enabled
    """,
    "nn.functional.recurrent": "lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell",
    "nn.functional.aten_positional": """
        batch_norm binary_cross_entropy_with_logits cosine_embedding_loss ctc_loss embedding hinge_embedding_loss
        instance_norm kl_div margin_ranking_loss poisson_nll_loss triplet_margin_loss
    """,
    "nn.functional.aten_norms": "native_batch_norm native_group_norm native_layer_norm",
    "nn.functional.aten_functions": """
        alpha_dropout_ dropout_ embedding_bag embedding_renorm_ feature_alpha_dropout_ feature_dropout
        feature_dropout_ frobenius_norm max_pool1d_with_indices native_dropout norm_except_dim nuclear_norm
        affine_grid_generator convolution lstm gru rnn_tanh rnn_relu
    """,
    "nn.functional": """
        adaptive_avg_pool1d adaptive_max_pool1d alpha_dropout avg_pool1d bilinear celu celu_ channel_shuffle conv1d
        conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d cosine_similarity dropout
        feature_alpha_dropout group_norm hardshrink layer_norm max_pool1d max_pool2d max_pool3d pairwise_distance
        pdist pixel_shuffle pixel_unshuffle prelu relu_ rms_norm rrelu rrelu_ selu selu_ threshold threshold_
    """,
}
_HOME = {name: module for module, names in _FUNCTIONS.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name == "torch":  # torch.torch is torch
        return sys.modules[__name__]
    if name in _LAZY:
        return importlib.import_module(f"rushlight.{name}")
    if name in _HOME:
        value = getattr(importlib.import_module(f"rushlight.{_HOME[name]}"), name)
        value = globals()[name] = _public(value)
        return value
    if not name.startswith("__"):
        _offer()  # loaded ops are added on the first access to a missing name
        while name not in globals() and lazy.next_part():
            _offer()
        if name in globals():
            return globals()[name]
    from rushlight.base.missing_names import missing

    return missing(__name__, name)


def __dir__() -> list[str]:
    lazy.complete()
    _offer()
    return sorted({*globals(), *_LAZY, *_HOME})
