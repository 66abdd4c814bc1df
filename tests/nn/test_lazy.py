"""Lazy modules: shapes from the first input or from a loaded state, and clear errors before."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import rushlight as rl
from rushlight import nn
from rushlight.nn.lazy import LazyModuleMixin
from tests.support.programs import Programs

MADE = [
    (lambda nn: nn.LazyLinear(3), (2, 5)),
    (lambda nn: nn.LazyConv1d(4, 3), (2, 3, 6)),
    (lambda nn: nn.LazyConv2d(4, 3, padding=1, groups=2), (2, 6, 5, 5)),
    (lambda nn: nn.LazyConv3d(2, 2, bias=False), (1, 3, 4, 4, 4)),
    (lambda nn: nn.LazyConvTranspose1d(4, 3, stride=2), (2, 3, 6)),
    (lambda nn: nn.LazyConvTranspose2d(4, 3, groups=2, output_padding=0), (6, 5, 5)),
    (lambda nn: nn.LazyConvTranspose3d(2, 2), (1, 3, 3, 3, 3)),
    (lambda nn: nn.LazyBatchNorm1d(), (4, 3)),
    (lambda nn: nn.LazyBatchNorm2d(affine=False), (4, 3, 2, 2)),
    (lambda nn: nn.LazyBatchNorm3d(track_running_stats=False), (2, 3, 2, 2, 2)),
    (lambda nn: nn.LazyInstanceNorm1d(), (2, 3, 4)),
    (lambda nn: nn.LazyInstanceNorm2d(), (2, 3, 4, 4)),
    (lambda nn: nn.LazyInstanceNorm3d(affine=False), (2, 3, 2, 2, 2)),
]


def life(nn, ones, manual_seed, make, shape):
    """What can be seen of a lazy module before, at and after its first call."""
    manual_seed(0)
    m = make(nn)
    before = [repr(m), list(m.state_dict()), [repr(p) for p in m.parameters()]]
    out = m(ones(*shape))
    return [*before, repr(m), list(out.shape), {k: v.detach() for k, v in m.state_dict().items()}]


@pytest.mark.parametrize(("make", "shape"), MADE)
def test_first_call(oracle, make, shape):
    expected = oracle(lambda torch: life(torch.nn, torch.ones, torch.manual_seed, make, shape))
    got = life(nn, rl.ones, rl.manual_seed, make, shape)
    assert got[:5] == expected[:5]
    assert list(got[5]) == list(expected[5])
    for name, value in got[5].items():
        np.testing.assert_allclose(value.numpy(), expected[5][name], rtol=1e-6, err_msg=name)


def test_becomes_an_ordinary_module():
    m = nn.LazyLinear(3)
    m(rl.ones(2, 5))
    assert type(m) is nn.Linear
    assert type(m.weight) is nn.Parameter
    assert not m._forward_pre_hooks
    m(rl.ones(1, 5)).sum().backward()
    assert m.weight.grad.shape == (3, 5)


def test_what_needs_elements_is_refused():
    p = nn.UninitializedParameter(dtype=rl.float64)
    assert p.dtype is rl.float64
    assert p.requires_grad
    assert p.is_leaf
    for use in (lambda: p + 1, p.numel, p.detach, lambda: rl.zeros(2) * p):
        with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter in"):
            use()
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized parameter or buffer"):
        p.shape
    with pytest.raises(RuntimeError, match="Can't share memory on an uninitialized parameter"):
        p.share_memory_()


def test_loading():
    full = nn.Linear(2, 3)
    lazy = nn.LazyLinear(3)
    lazy.load_state_dict(full.state_dict())
    assert rl.equal(lazy.weight, full.weight)
    assert not lazy.has_uninitialized_params()
    with pytest.raises(RuntimeError, match="uninitialized parameter or buffer"):
        full.load_state_dict(nn.LazyLinear(3).state_dict())
    assert rl.equal(lazy(rl.ones(2)), full(rl.ones(2)))
    assert lazy.in_features == 2


def test_a_failed_load_leaves_it_lazy():
    lazy = nn.LazyLinear(3)
    with pytest.raises(RuntimeError, match="Missing key"):
        lazy.load_state_dict({"weight": rl.ones(3, 2)})
    assert lazy.has_uninitialized_params()


def test_conversion_and_copies():
    m = nn.LazyBatchNorm1d().double()
    assert m.weight.dtype is m.running_mean.dtype is rl.float64
    for twin in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        assert twin(rl.ones(3, 4, dtype=rl.float64)).dtype is rl.float64
        assert type(twin) is nn.BatchNorm1d
        assert not twin._forward_pre_hooks
    assert m.has_uninitialized_params()


def test_wrong_inputs():
    with pytest.raises(RuntimeError, match=r"Expected 3D \(unbatched\) or 4D \(batched\) input to LazyConv2d"):
        nn.LazyConv2d(4, 3)(rl.ones(3, 4))
    m = nn.LazyConv2d(4, 3, groups=2)
    with pytest.raises(ValueError, match="in_channels must be divisible by groups"):
        m(rl.ones(3, 4, 4))
    assert m.has_uninitialized_params()
    assert m(rl.ones(2, 4, 4)).shape == (4, 2, 2)


def test_own_lazy_module():
    class Scale(LazyModuleMixin, nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = nn.UninitializedParameter()

        def initialize_parameters(self, x):
            if x.dim() == 1:
                self.factor.materialize(x.shape)

        def forward(self, x):
            return x * self.factor

    with pytest.raises(RuntimeError, match="has not been fully initialized"):
        Scale()(rl.ones(2, 2))
    assert Scale()(rl.ones(3)).shape == (3,)


program = Programs()


@program.found_in("torch tests")
def a_lazy_parameter_takes_one_number_for_its_shape(torch):
    waiting = torch.nn.parameter.UninitializedParameter()
    waiting.materialize(3)
    return list(waiting.shape)


test_program = program.test()
