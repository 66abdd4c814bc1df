"""The functions whose arguments `autocast` converts, and the wrappers that convert them.

The lists are torch's for the CPU. When autocast is first entered, the functions are wrapped wherever users find them; a
program without autocast has no overhead. Functions composed of products in torch (einsum, tensordot, cov) are not
listed: their products are converted. Products inside the package's own functions (interpolation, decompositions) are
not converted, as in torch."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from threading import Lock
from types import ModuleType
from typing import Any

from rushlight import fft, linalg, nn
from rushlight.base import shown_names
from rushlight.base.dtypes import bfloat16, dtype, float16, float32, float64
from rushlight.base.lazy import complete
from rushlight.base.public_function import private, public
from rushlight.core.table import TABLE
from rushlight.core.tensor import Tensor
from rushlight.nn import functional
from rushlight.nn.recurrent import RNNBase
from rushlight.ops.composites import FUNCTIONS
from rushlight.ops.linalg import einsum
from rushlight.ops.linalg.matmul import dot, linear, mm
from rushlight.ops.nn.conv import convolution

# the lower precision; None outside of autocast
current: ContextVar[dtype | None] = ContextVar("autocast", default=None)

LOWER = """mm matmul bmm addmm addbmm baddbmm vecdot __matmul__ __rmatmul__ linear convolution
    conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d conv_tbc prelu
    scaled_dot_product_attention multi_head_attention_forward"""
SINGLE = """avg_pool3d adaptive_avg_pool3d adaptive_max_pool3d adaptive_max_pool3d_with_indices fractional_max_pool2d
    fractional_max_pool2d_with_indices fractional_max_pool3d fractional_max_pool3d_with_indices
    max_unpool1d max_unpool2d max_unpool3d grid_sample grid_sampler grid_sampler_2d grid_sampler_3d cdist prod trace
    quantile nanquantile polar stft view_as_complex cholesky cholesky_inverse cholesky_solve inverse lu_solve orgqr
    ormqr pinverse geqrf lu triangular_solve householder_product inv_ex
    binary_cross_entropy binary_cross_entropy_with_logits cosine_embedding_loss cross_entropy ctc_loss
    hinge_embedding_loss huber_loss kl_div l1_loss margin_ranking_loss mse_loss multi_margin_loss multilabel_margin_loss
    nll_loss poisson_nll_loss smooth_l1_loss soft_margin_loss triplet_margin_loss
    fft ifft fft2 ifft2 fftn ifftn rfft irfft rfft2 irfft2 rfftn irfftn hfft ihfft
    inv cond eigvals eigvalsh eig eigh matrix_rank solve cholesky_ex svd svdvals tensorinv tensorsolve lstsq qr pinv"""
WIDEST = "cat concat concatenate stack index_copy"
MIXED = "batch_norm layer_norm group_norm instance_norm rms_norm"

# ops that are composed of products in torch, too
PRODUCTS = ("linalg.einsum", "reduce.covariance", "linalg.low_rank", "linalg.products_api")

ELIGIBLE = frozenset({float32, float16, bfloat16})


def converted(value: Any, to: dtype) -> Any:
    """A value with its tensors in another dtype, except tensors of double precision."""
    if isinstance(value, Tensor):
        found = value.dtype
        return value.to(to) if found in ELIGIBLE and found is not to else value
    if type(value) in (list, tuple):
        return type(value)([converted(item, to) for item in value])
    return value


def tensors(values: Any) -> list[Tensor]:
    """The tensors in arguments, also in lists of them."""
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found.extend(tensors(value))
    return found


def lower(lowest: dtype, args: tuple, kwargs: dict) -> dtype:
    """Products: bfloat16, or the dtype given to autocast."""
    return lowest


def single(lowest: dtype, args: tuple, kwargs: dict) -> dtype:
    """Losses and other functions that accumulate errors: float32."""
    return float32


def padding(lowest: dtype, args: tuple, kwargs: dict) -> dtype | None:
    """float32 for modes that repeat elements, or reflect them in up to two dimensions."""
    mode = kwargs.get("mode", args[2] if len(args) > 2 else "constant")
    sides = kwargs.get("pad", args[1] if len(args) > 1 else ())
    return float32 if mode == "replicate" or mode == "reflect" and len(sides) <= 4 else None


def pooling(lowest: dtype, args: tuple, kwargs: dict) -> dtype | None:
    """float32, but not with indices."""
    return None if kwargs.get("return_indices", args[6] if len(args) > 6 else False) else float32


def widest(lowest: dtype, args: tuple, kwargs: dict) -> dtype | None:
    """Functions that join tensors: the widest dtype among them."""
    found = {t.dtype for t in tensors(args) + tensors(kwargs.values())}
    return None if float64 in found else float32 if float32 in found else lowest


def mixed(lowest: dtype, args: tuple, kwargs: dict) -> dtype:
    """Normalisations: computed in float32, the dtype of weights and running averages; the result has the dtype of the
    input."""
    return float32


# torch's name of a function -> its policy: (lower precision, args, kwargs) -> dtype of the converted tensors, None for
# no conversion. Most of these functions are composed of several ops.
POLICIES: dict[str, Callable[[dtype, tuple, dict], dtype | None]] = {
    **dict.fromkeys(LOWER.split(), lower),
    **dict.fromkeys(SINGLE.split(), single),
    **dict.fromkeys(WIDEST.split(), widest),
    **dict.fromkeys(MIXED.split(), mixed),
    "pad": padding,
    "max_pool3d": pooling,
}


def gate(function: Callable, name: str, home: str) -> Callable:
    """The function with a wrapper: inside autocast its tensors are converted by the policy of this name."""
    policy = POLICIES[name]

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        lowest = current.get()
        to = None if lowest is None or "out" in kwargs else policy(lowest, args, kwargs)
        if to is None:
            return function(*args, **kwargs)
        token = current.set(None)  # inside it, nothing is converted again
        try:
            found = function(*converted(args, to), **{key: converted(value, to) for key, value in kwargs.items()})
            return converted(found, args[0].dtype) if policy is mixed else found
        finally:
            current.reset(token)

    call.__module__ = home
    return call


def recurrent_gate(operands: Callable) -> Callable:
    """The operands of recurrent layers in the lower precision; for a GRU in the dtype of its state, as in torch."""

    @wraps(operands)
    def call(layer: Any, x: Tensor, states: tuple | None) -> tuple:
        lowest = current.get()
        if lowest is not None:
            state = x if states is None else states[0]
            to = state.dtype if layer.mode == "GRU" and state.dtype in ELIGIBLE else lowest
            x, states = converted((x, states), to)
        x, states, weights = operands(layer, x, states)
        return (x, states, weights if lowest is None else [type(w)(*converted(tuple(w), to)) for w in weights])

    return call


Space = dict[str, Callable]


def originals() -> dict[str, Space]:
    """The listed functions by the module where users find them."""
    own = {name: one.call for name, one in TABLE.items() if one.options.get("function", True)} | FUNCTIONS
    spaces = {
        "rushlight": own,
        **{m.__name__: vars(m) for m in (functional, fft, linalg)},
        "rushlight.core.tensor": vars(Tensor),
    }
    return {
        home: {name: private(space[name]) for name in POLICIES if callable(space.get(name))}
        for home, space in spaces.items()
    }


def inside(name: str) -> bool:
    """Whether a module belongs to the package's internals: products there are not converted."""
    if name in (functional.__name__, fft.__name__, linalg.__name__):
        return False
    layers = name.startswith(nn.__name__) and not name.startswith(functional.__name__)
    return name.startswith("rushlight.") and not layers


_lock = Lock()
_installed = False


def install() -> None:
    """Replace the functions by their gates, also under names that were imported earlier; once."""
    global _installed
    with _lock:
        if _installed:
            return
        complete()  # load all ops,
        dir(sys.modules["rushlight"])  # and their names in the package
        # id of a function -> (the function, its wrapper)
        gates: dict[int, tuple[Callable, Callable]] = {}
        for home, space in originals().items():
            for name, function in space.items():
                gates.setdefault(id(function), (function, gate(function, name, home)))
        for function in (linear, convolution):  # the functions that modules call
            gates[id(function)] = function, gate(function, function.__name__, function.__module__)
        for module in list(sys.modules.values()):
            if isinstance(module, ModuleType) and not inside(module.__name__):
                replace(module, gates)
                for layer in vars(module).values() if module.__name__.startswith(nn.__name__) else ():
                    if isinstance(layer, type) and shown_names.home(layer) == module.__name__:
                        replace(layer, gates)
        for name in PRODUCTS:
            replace(sys.modules[f"rushlight.ops.{name}"], gates)
        replace(einsum, {id(entry): (entry, gate(entry, "mm", entry.__module__)) for entry in (mm, dot)})
        replace(Tensor, gates)
        RNNBase._operands = recurrent_gate(RNNBase._operands)  # type: ignore[method-assign]
        _installed = True


def replace(space: Any, gates: dict[int, tuple[Callable, Callable]]) -> None:
    """Replace the functions in a module or class, under all names, by their gates."""
    for name, value in list(vars(space).items()):
        function = private(value.__func__ if isinstance(value, staticmethod) else value)
        found = gates.get(id(function))
        if found is not None and found[0] is function:
            made: Any = found[1]
            if isinstance(value, staticmethod):
                made = staticmethod(made)
            elif function is not value:
                made = public(made)
            setattr(space, name, made)
