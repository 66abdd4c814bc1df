"""Names of torch that programs call now and then: what they make, against torch."""
from __future__ import annotations

import importlib
import math

import numpy as np
import pytest

import rushlight


def made(lib):
    w, at, starts = lib.arange(12.0).reshape(6, 2), lib.tensor([0, 2, 5, 1, 1]), lib.tensor([0, 2, 2])
    x = lib.arange(6.0).reshape(2, 3)
    for mode in (0, 1, 2):
        yield from (lib.embedding_bag(w, at, starts, False, mode, False, None, False, pad) for pad in (None, 1))
    yield lib.embedding_renorm_(x.clone(), lib.tensor([1]), 1.0, 2.0)
    yield from (lib.norm_except_dim(x, 2, dim) for dim in (0, 1, -1))
    yield from (lib.frobenius_norm(x, [0, 1]), lib.frobenius_norm(x, [1], True))
    yield from (lib.max_pool1d_with_indices(x, 2), lib.native_dropout(x, 0.5, False), lib.native_dropout(x, 0.0, True))
    yield lib.addmv_(lib.ones(2), x, lib.ones(3))
    yield from (lib.sym_max(1, 2.0), lib.sym_min(True, 2), lib.sym_int(2.7), lib.sym_float(2), lib.sym_not(True),
                lib.sym_ite(True, 1, 2), lib.sym_sum([1, 2]), lib.sym_sqrt(4))
    yield lib.compiler.is_exporting()
    lib.manual_seed(0)
    for f in (lib.feature_dropout, lib.feature_dropout_, lib.dropout_, lib.alpha_dropout_, lib.feature_alpha_dropout_):
        yield f(lib.ones(3, 2, 2, 2), 0.5, True)
    yield lib.native_dropout(lib.ones(4, 4), 0.3, True)


def plain(value):
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    return (str(value.dtype), value.tolist()) if hasattr(value, "tolist") else (type(value), value)


def test_what_they_make(torch):
    for ours, theirs in zip(made(rushlight), made(torch), strict=True):
        assert repr(ours) == repr(theirs)
        a, b = plain(ours), plain(theirs)
        assert a == b or np.allclose(np.array(a[1], float), np.array(b[1], float))


def test_gradients_go_through():
    x = rushlight.ones(3, 4, requires_grad=True)
    out, kept = rushlight.native_dropout(x, 0.5, True)
    out.sum().backward()
    assert rushlight.equal(x.grad, kept * 2.0)
    w = rushlight.ones(3, 2, requires_grad=True)
    rushlight.embedding_bag(w, rushlight.tensor([0, 2, 2]), rushlight.tensor([0, 1]))[0].sum().backward()
    assert w.grad.tolist() == [[1, 1], [0, 0], [2, 2]]


def test_memory_that_nobody_has_set(torch):
    def run(lib):
        filling = importlib.import_module(f"{lib.__name__}.utils.deterministic")
        assert filling.fill_uninitialized_memory is True
        try:
            lib.use_deterministic_algorithms(True)
            asked = [t.tolist() for t in (
                lib.empty(2), lib.empty(2, dtype=lib.int32), lib.empty(1, dtype=lib.bool), lib.empty_like(lib.ones(2)),
                lib.ones(2).new_empty(3), lib.empty_strided((2,), (1,)), lib.empty(2, dtype=lib.bfloat16))]
            filling.fill_uninitialized_memory = False
            lib.empty(2)
            with pytest.raises((TypeError, RuntimeError)):
                filling.fill_uninitialized_memory = 1
        finally:
            filling.fill_uninitialized_memory = True
            lib.use_deterministic_algorithms(False)
        return asked
    assert repr(run(rushlight)) == repr(run(torch))
    rushlight.ones(1000)
    assert not any(math.isnan(rushlight.empty(1000).fill_(1)[0]) for _ in range(3))


def test_a_loop_of_functions():
    i, x = rushlight.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (rushlight.tensor(0), rushlight.ones(1)))
    assert (i.item(), x.item()) == (3, 8)
