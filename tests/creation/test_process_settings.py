"""Settings of the process, and questions about tensors, as torch answers them."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import rushlight
from rushlight import Tensor
from rushlight.ops.tensor.predicates import WRITING


def answers(torch):
    x, y = torch.ones(2, 3), torch.ones(2, 3, dtype=torch.int64)
    return [
        torch.is_nonzero(torch.tensor([0.0])),
        torch.is_nonzero(torch.tensor(3)),
        torch.is_same_size(x, y),
        torch.is_same_size(x, x.t()),
        torch.is_signed(y),
        torch.is_signed(y.to(torch.uint8)),
        torch.is_conj(x),
        torch.is_neg(x),
        torch.is_inference(x),
        torch.is_distributed(x),
        torch.get_device(x),
        x.is_pinned(),
        x.is_shared(),
        x.is_set_to(x[:]),
        x.is_set_to(x[1:]),
        list(x.dim_order()),
        list(x.t().dim_order()),
        torch.typename(x),
        torch.typename(y),
        torch.typename(3),
        torch.typename("text"),
        str(torch.get_default_device()),
        torch.tensor([1.0, 2.0]).apply_(lambda a: a + 1),
        torch.tensor([1.0, 2.0]).map_(torch.tensor([3.0]), max),
        torch.is_warn_always_enabled(),
        torch.is_anomaly_enabled(),
        torch.exp_(torch.zeros(2)),
    ]


def test_questions_have_torchs_answers(oracle):
    for ours, theirs in zip(answers(rushlight), oracle(answers), strict=True):
        assert np.array_equal(ours.numpy(), theirs) if isinstance(ours, Tensor) else ours == theirs


def test_writing_functions_are_the_methods(torch):
    """In a process of its own: once classes of users are asked, functions ask them and methods do not."""
    code = f"import rushlight as r; print([n for n in {WRITING.split()} if getattr(r, n) != getattr(r.Tensor, n)])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
    assert all(hasattr(torch, name) for name in WRITING.split())


def test_determinism_is_remembered():
    try:
        rushlight.use_deterministic_algorithms(True, warn_only=True)
        assert rushlight.are_deterministic_algorithms_enabled()
        assert rushlight.is_deterministic_algorithms_warn_only_enabled()
        rushlight.set_deterministic_debug_mode("error")
        assert rushlight.get_deterministic_debug_mode() == 2
        for wrong in (7, "loud"):
            with pytest.raises(RuntimeError, match="invalid value of debug_mode"):
                rushlight.set_deterministic_debug_mode(wrong)
        assert rushlight.get_deterministic_debug_mode() == 2
    finally:
        rushlight.use_deterministic_algorithms(False)
    assert not rushlight.are_deterministic_algorithms_enabled()


def test_the_only_device_is_the_default():
    rushlight.set_default_device("cpu")
    rushlight.set_default_device(None)
    with pytest.raises(RuntimeError, match="cpu"):
        rushlight.set_default_device("cuda")
    assert rushlight.get_default_device() == rushlight.device("cpu")


def test_what_is_refused():
    with pytest.raises(RuntimeError, match="ambiguous"):
        rushlight.is_nonzero(rushlight.ones(2))
    with pytest.raises(RuntimeError, match="expects a bool"):
        rushlight.set_warn_always(1)
    with pytest.raises(RuntimeError, match="requires grad"):
        rushlight.ones(1, requires_grad=True).apply_(abs)
    assert rushlight.set_flush_denormal(True) is False
