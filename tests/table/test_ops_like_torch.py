"""Every op against torch: values, shapes, dtypes, gradients, shared memory, `out=`, names."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import rushlight
from rushlight import Tensor
from rushlight.core.table import TABLE, in_namespace
from rushlight.kernels.index import HERE
from tests.support.op_calls import agree, arrays_in, call, check_all, fixed, gradients, varies, weights
from tests.table.samples import INTERNAL, NAMES, SAMPLES, function_of

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning")
DTYPES = ["float32", "float64", "int64", "bool", "complex128"]


def merged(key, tensors):
    rest = iter(tensors)
    return tuple(next(rest) if part is HERE else part for part in key)


def functional(name, *args, **how):
    """A reference in torch.nn.functional, of the same arguments but for what is given here."""
    return lambda torch, *inputs, **more: getattr(torch.nn.functional, name)(*inputs, *args, **more, **how)


def normalized(torch, x, w, b, dims, eps):
    return torch.nn.functional.layer_norm(x, [x.shape[d] for d in dims], w, b, eps)


def pooled(name):
    """max_pool and its like for as many dimensions as the setting has numbers."""
    return lambda torch, x, size, *more: getattr(torch.nn.functional, f"{name}{len(size)}d")(x, size, *more)


# What torch calls the ops that it has under other names.
REFERENCE = {
    **{
        name: functional(name)
        for name in (
            "silu",
            "softplus",
            "leaky_relu",
            "gelu",
            "mish",
            "hardtanh",
            "hardsigmoid",
            "hardswish",
            "softshrink",
            "hardshrink",
            "threshold",
            "nll_loss",
            "linear",
        )
    },
    **{
        name: functional(name, reduction="none")
        for name in (
            "mse_loss",
            "huber_loss",
            "smooth_l1_loss",
            "binary_cross_entropy",
            "binary_cross_entropy_with_logits",
        )
    },
    "elu": lambda torch, *args, **how: torch.ops.aten.elu(*args, **how),
    "gelu_tanh": functional("gelu", approximate="tanh"),
    "log_sigmoid": functional("logsigmoid"),
    "layer_norm": normalized,
    "batch_norm": lambda torch, x, w, b, dims, eps: torch.nn.functional.batch_norm(x, None, None, w, b, True, 0.1, eps),
    "frozen_batch_norm": lambda torch, x, w, b, mu, var, eps: torch.nn.functional.batch_norm(
        x, mu, var, w, b, False, 0.0, eps
    ),
    "convolution": lambda torch, x, w, b, stride, padding, dilation, groups: torch.convolution(
        x, w, b, stride, padding, dilation, False, (0,) * len(stride), groups
    ),
    "max_pool": pooled("max_pool"),
    "avg_pool": pooled("avg_pool"),
    "adaptive_avg_pool": pooled("adaptive_avg_pool"),
    "constant_pad": lambda torch, x, amounts, value: torch.nn.functional.pad(
        x, [n for pair in reversed(amounts) for n in pair], value=value
    ),
    "im2col": functional("unfold"),
    "col2im": functional("fold"),
    "embedding": lambda torch, w, i, padding=None: torch.nn.functional.embedding(i, w, padding),
    "getitem": lambda torch, x, key: x[key],
    "index": lambda torch, x, tensors, key: x[merged(key, tensors)],
    "unfold_dim": lambda torch, x, *args: x.unfold(*args),
    "split_sizes": lambda torch, *args: torch.split(*args),
    "view_as_shape": lambda torch, x, shape: x.view(shape),
    "max_dim": lambda torch, *args, **how: torch.max(*args, **how),
    "min_dim": lambda torch, *args, **how: torch.min(*args, **how),
    "var_core": lambda torch, x, axes, n: torch.var(x, axes, correction=n, keepdim=True),
    "overwrite": lambda torch, x, y: y.expand(x.shape).clone(),
    "real_part": lambda torch, x: torch.real(x),
    "imag_part": lambda torch, x: torch.imag(x),
}
KNOWN = [name for name in NAMES if name in REFERENCE or name not in INTERNAL]


def theirs(torch, name):
    """torch's function, or method, for the op."""
    if name in REFERENCE:
        return partial(REFERENCE[name], torch)
    if in_namespace(name):
        home, _, rest = name.partition("_")
        return getattr(getattr(torch, home), rest)
    return getattr(torch, name, None) or getattr(torch.Tensor, name)


# Answers of torch that are no measure.
NO_MEASURE = {
    ("gelu/4", "float32"): "gelu(inf) is nan there, in single precision",
    ("softmax/3", "int64"): "no dtype is refused where there are no elements",
    ("softmax/3", "bool"): "as above",
    ("log_softmax/3", "int64"): "as above",
    ("log_softmax/3", "bool"): "as above",
}
UP_TO_SIGN = {"linalg_eigh", "linalg_eig", "linalg_svd", "svd"}  # or phase: vectors that no definition turns
LOOSE = {"hardsigmoid": 1e-7, "hardswish": 1e-7}  # their gradients are divided by 6 in single precision


def torch_answers(oracle, name, dtype, ask):
    """For each sample what `ask(torch, function, sample)` gives; "refused" where torch raises."""

    def answers(torch):
        return [refusable(ask, torch, theirs(torch, name), sample) for sample in SAMPLES[name]]

    return [
        (sample, "refused" if (sample.name, dtype) in NO_MEASURE else answer)
        for sample, answer in zip(SAMPLES[name], oracle(answers))
    ]


def refusable(ask, *args):
    try:
        return ask(*args)
    except (RuntimeError, TypeError, ValueError, IndexError, AttributeError, NotImplementedError, ZeroDivisionError):
        return "refused"


# -- against torch ---------------------------------------------------------------------------------


def compared(name, result):
    """What of a result is determined."""
    return tuple(map(abs, result)) if name in UP_TO_SIGN else result


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", KNOWN)
def test_values_shapes_and_dtypes_are_torchs(oracle, name, dtype):
    ours = function_of(name)

    def ask(torch, function, sample):
        if dtype == "complex128" and not sample.smooth:
            return "refused"  # what complex infinities give is the C library's choice
        return compared(name, call(function, sample, dtype, torch.from_numpy)[0])

    def check(sample, expected):
        made = compared(name, call(ours, sample, dtype, fixed)[0])
        agree(made if isinstance(expected, list) or not isinstance(made, tuple) else made[0], expected)

    check_all(torch_answers(oracle, name, dtype, ask), check)


def torch_gradients(torch, function, sample, dtype):
    """Which results require grad, and the gradients of all tensors that went in."""
    made, inside = call(function, sample, dtype, lambda a: torch.from_numpy(np.array(a)).requires_grad_(varies(a)))
    outs = arrays_in(made)
    chosen = [t for t in outs if t.requires_grad]
    leaves = [t for t in inside if t.requires_grad]
    seeds = [torch.from_numpy(weights(t.shape, t.detach().resolve_conj().numpy().dtype)) for t in chosen]
    grads = torch.autograd.grad(chosen, leaves, seeds, allow_unused=True) if chosen and leaves else ()
    return {
        "requires": [t.requires_grad for t in outs],
        "grads": [torch.zeros_like(t) if g is None or g._is_zerotensor() else g for t, g in zip(leaves, grads)],
    }


SEVERAL = {"layer_norm", "batch_norm", "frozen_batch_norm", "max_pool"}  # with outputs that torch keeps to itself
WRONG_IN_TORCH = {
    "as_strided_scatter",  # 2.13: passes gradient where src was written, and none elsewhere
    "cholesky_solve",
    "cholesky_inverse",  # and to the triangle that is not read
    *(f"special_bessel_{name}" for name in ("j0", "j1", "y0", "y1")),  # 2.13 has no derivatives, 2.15 has:
    *("special_modified_bessel_k0", "special_modified_bessel_k1"),  # tests/test_torch_version_2_15.py
}


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", [name for name in KNOWN if name not in SEVERAL | WRONG_IN_TORCH])
def test_gradients_are_torchs(oracle, name, dtype):
    """Also at corners, where a derivative is a matter of convention."""
    ours = function_of(name)

    def ask(torch, function, sample):
        if not (sample.smooth if dtype == "complex128" else sample.slopes):
            return "refused"
        return torch_gradients(torch, function, sample, dtype)

    def check(sample, expected):
        found = gradients(ours, sample, dtype)
        agree(found["requires"], expected["requires"], "requires_grad")
        agree(found["grads"], expected["grads"], "gradients", LOOSE.get(name))
        if dtype == "complex128":  # real ones: test_both_worlds_give_one_gradient
            found = gradients(ours, sample, dtype, create_graph=True)
            agree(found["grads"], expected["grads"], "gradients of tensors")

    check_all(torch_answers(oracle, name, dtype, ask), check)


@pytest.mark.parametrize("name", KNOWN)
def test_views_share_memory_where_torchs_do(oracle, name):
    ours = function_of(name)

    def ask(torch, function, sample):
        made, inside = call(function, sample, "float64", lambda a: torch.from_numpy(np.array(a)))
        memory = {t.untyped_storage().data_ptr() for t in inside}
        return [t.numel() == 0 or t.untyped_storage().data_ptr() in memory for t in arrays_in(made)]

    def check(sample, expected):
        made, inside = call(ours, sample, "float64", fixed)
        found = [t.numel() == 0 or any(np.shares_memory(t._array, i._array) for i in inside) for t in arrays_in(made)]
        assert found[: len(expected)] == expected, f"shares memory: {found}, not {expected}"
        for t in arrays_in(made):
            if t._is_view():  # of an argument, or of what the function made on its way
                assert any(t._base is i for i in inside) or not any(
                    np.shares_memory(t._array, i._array) for i in inside
                ), "a view's _base is the tensor that it views"

    check_all(torch_answers(oracle, name, "float64", ask), check)


def test_names_are_torchs(oracle):
    """Functions, methods and in-place forms exist where torch has them, under all their names."""
    known = sorted({alias for name in KNOWN for alias in [name, *aliases(name)]} - INTERNAL)
    methods = known + [name + "_" for name in known]
    there = oracle(
        lambda torch: {
            "methods": [name for name in methods if hasattr(torch.Tensor, name)],
            "functions": [name for name in known if callable(getattr(torch, name, None))],
        }
    )
    assert not {name for name in there["methods"] if not hasattr(Tensor, name)}
    assert not {name for name in there["functions"] if not hasattr(rushlight, name)}


def aliases(name):
    return TABLE[name].options.get("alias", "").split() if name in TABLE else []


@pytest.mark.parametrize("name", KNOWN)
def test_out_is_filled_where_torch_takes_it(oracle, name):
    ours = function_of(name)

    def ask(torch, function, sample):
        made, _ = call(function, sample, "float64", torch.from_numpy)
        blank = [torch.empty_like(t) for t in arrays_in(made)]
        call(function, sample, "float64", torch.from_numpy, out=tuple(blank) if isinstance(made, tuple) else blank[0])
        return "takes it"

    def check(sample, _):
        made, _ = call(ours, sample, "float64", fixed)
        outs = arrays_in(made)
        for shape in {tuple(outs[0].shape), (7,)}:  # an out= of another shape is given the right one
            blank = [rushlight.ones(shape, dtype=t.dtype) for t in outs]
            back = call(ours, sample, "float64", fixed, out=tuple(blank) if isinstance(made, tuple) else blank[0])[0]
            agree(blank, [t._array for t in outs], f"out= of shape {shape}")
            if back is not None or not name.endswith("_copy"):  # torch's unbind_copy(out=) returns nothing
                assert all(a is b for a, b in zip(arrays_in(back), blank)), "out= is not what is returned"
                assert type(back) is type(made)

    check_all(torch_answers(oracle, name, "float64", ask), check)
