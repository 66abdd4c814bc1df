"""Each op takes the dtypes that torch's takes: `takes` in the op's entry, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from rushlight.base import lazy
from rushlight.core.table import TABLE
from tests.support.programs import Programs

DTYPES = ("bool", "uint8", "int64", "float32", "complex64")
UNARY = """abs ceil floor trunc round frac sign neg relu square sqrt exp sigmoid erf lgamma digamma
logit median nanmedian mode amax amin argmax argmin sort cov trace mean nansum signbit i0""".split()
BINARY = """add sub mul div pow remainder fmod floor_divide hypot atan2 logaddexp logaddexp2 xlogy maximum
fmin copysign heaviside nextafter gcd lcm bitwise_and bitwise_left_shift lt clamp_min igamma""".split()
ACTIVATIONS = """elu celu selu gelu silu mish softplus hardswish hardsigmoid logsigmoid leaky_relu
hardshrink softshrink tanhshrink softsign glu relu6 rrelu""".split()
LOSSES = """mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy kl_div hinge_embedding_loss
binary_cross_entropy_with_logits soft_margin_loss cosine_similarity""".split()


def taken(call, torch):
    """The dtypes of the result for each dtype that the call takes; '-' for a refusal."""
    found = []
    for name in DTYPES:
        try:
            made = call(torch.ones(3, 4, dtype=getattr(torch, name)))
            made = made[0] if isinstance(made, tuple) else made
            found.append(str(made.dtype).split(".")[-1])
        except (RuntimeError, TypeError):
            found.append("-")
    return found


def doubled(function):
    """The function of two tensors as one of one tensor."""
    return lambda x: function(x, x)


program = Programs()


@program
def functions_of_one_tensor(torch):
    return [[name, *taken(getattr(torch, name), torch)] for name in UNARY if name != "trace"]


@program
def functions_of_two_tensors(torch):
    return [[name, *taken(doubled(getattr(torch, name)), torch)] for name in BINARY]


@program
def activations(torch):
    F = torch.nn.functional
    return [[name, *taken(getattr(F, name), torch)] for name in ACTIVATIONS]


@program
def losses(torch):
    F = torch.nn.functional
    return [[name, *taken(doubled(getattr(F, name)), torch)] for name in LOSSES]


@program
def dropouts(torch):
    F = torch.nn.functional
    calls = (
        lambda x: F.dropout(x, 0.5),
        lambda x: F.dropout(x, 0.5, False),
        lambda x: F.dropout(x, 0.0),
        lambda x: F.alpha_dropout(x, 0.5, True),
        lambda x: F.dropout2d(x.reshape(1, 3, 2, 2), 0.5),
    )
    return [taken(call, torch) for call in calls]


@program
def layers(torch):
    F = torch.nn.functional
    calls = (
        lambda x: F.layer_norm(x, (4,)),
        lambda x: F.batch_norm(x, None, None, training=True),
        lambda x: F.group_norm(x.reshape(1, 4, 3), 2),
        lambda x: F.avg_pool1d(x, 2),
        lambda x: F.adaptive_max_pool1d(x, 2),
        lambda x: F.unfold(x.reshape(1, 1, 3, 4), 2),
        lambda x: F.interpolate(x.reshape(1, 3, 4), 2),
        lambda x: F.interpolate(x.reshape(1, 3, 4), 2, mode="linear"),
        lambda x: F.pad(x, (1, 1), mode="reflect"),
        lambda x: F.softmax(x, 1),
        lambda x: F.embedding_bag(torch.tensor([[1]]), x),
        lambda x: F.pdist(x),
    )
    return [taken(call, torch) for call in calls]


@program
def operands_of_one_dtype(torch):
    x, whole = torch.ones(3, 3), torch.ones(3, 3, dtype=torch.int64)
    calls = (
        lambda: torch.lerp(x, whole, 0.5),
        lambda: torch.lerp(whole, whole, 0.5),
        lambda: torch.heaviside(x, whole),
        lambda: torch.linalg.cross(x, whole),
        lambda: torch.addmm(whole, x, x),
        lambda: torch.nn.functional.prelu(x, torch.ones(1, dtype=torch.float64)),
        lambda: torch.gather(x, 0, whole.to(torch.uint8)),
        lambda: (whole * 1j).abs_(),
        lambda: torch.sub(x, x > 0, alpha=2),
        lambda: torch.addr(whole, x[0], x[0]),
    )
    found = []
    for call in calls:
        try:
            found.append(str(call().dtype).split(".")[-1])
        except RuntimeError:
            found.append("refused")
    return found


test_program = program.test()


def test_a_refusal_names_the_op_the_dtype_and_a_way_out():
    with pytest.raises(NotImplementedError) as error:
        rushlight.nn.functional.gelu(rushlight.ones(2, dtype=rushlight.int64))
    text = str(error.value)
    assert text.startswith("\"gelu\" not implemented for 'Long'")
    assert "x.float()" in text
    assert "inputs: input=int64[2]" in text


def test_takes_of_every_entry_is_a_word_of_known_letters():
    lazy.complete()
    for op in TABLE.values():
        assert set(op.takes) <= set("buifc0"), op
        assert all(isinstance(dtype, np.dtype) for dtype in op.refused)


@pytest.mark.origin("newcomers")
def test_an_entry_in_a_users_file_names_the_way_to_define_an_op():
    from rushlight.core.build import floating

    log_cosh = floating(lambda x, /: log(cosh(x)), x=lambda g, x: g * tanh(x))  # noqa: F821
    with pytest.raises(AttributeError, match=r"define the op with rushlight.op\(...\)"):
        log_cosh(rushlight.ones(2))
