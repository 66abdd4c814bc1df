"""_foreach functions: one op on lists of tensors."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight

FOREACH = {
    "add a number": lambda t, a: t._foreach_add(a, 2),
    "add with alpha": lambda t, a: t._foreach_add(a, a, alpha=2),
    "mul numbers": lambda t, a: t._foreach_mul(a, [2, 3.0]),
    "sqrt": lambda t, a: t._foreach_sqrt(a),
    "norm": lambda t, a: t._foreach_norm(a),
    "norm by ord": lambda t, a: t._foreach_norm(a, ord=1, dtype=t.float64),
    "sum of powers": lambda t, a: t._foreach_powsum(a, 3),
    "numbers to a power": lambda t, a: t._foreach_pow(2, a),
    "addcdiv with numbers": lambda t, a: t._foreach_addcdiv(a, a[::-1], a, [2, 3.0]),
    "addcmul with a tensor of numbers": lambda t, a: t._foreach_addcmul(a, a[::-1], a, t.tensor([2, 3.0])),
    "by name": lambda t, a: t._foreach_addcmul(t._foreach_add(self=a, scalar=1), tensor2=a, tensor1=a[::-1]),
    "addcmul": lambda t, a: t._foreach_addcmul(a, a, a, value=0.5),
    "lerp": lambda t, a: t._foreach_lerp(a, a[::-1], 0.25),
    "maximum": lambda t, a: t._foreach_maximum(a, 2.0),
    "max": lambda t, a: t._foreach_max(a),
    "in place": lambda t, a: [t._foreach_mul_(a, 3), t._foreach_addcdiv_(a, a, a[::-1], value=2.0), a][-1],
    "copy": lambda t, a: [t._foreach_copy_(a, a[::-1]), a][-1],
}


@pytest.mark.origin("programs")
@pytest.mark.parametrize("name", FOREACH)
def test_ops_on_lists(oracle, name):
    def call(t):
        return t.stack(list(FOREACH[name](t, [t.tensor([1.0, 4.0]), t.tensor([3.0, 2.0])])))

    np.testing.assert_allclose(call(rushlight).numpy(), oracle(call), rtol=1e-6)


@pytest.mark.origin("programs")
def test_lists_of_different_length():
    with pytest.raises(RuntimeError, match="same number of tensors, got 2 and 1"):
        rushlight._foreach_add([rushlight.ones(1)] * 2, [rushlight.ones(1)])
    assert isinstance(rushlight._foreach_abs([rushlight.ones(1)]), tuple)
    with pytest.raises(RuntimeError, match="at least one tensor"):
        rushlight._foreach_neg([])
    zeros = [rushlight.ones(1)]
    assert rushlight._foreach_zero_(zeros) is zeros
    assert zeros[0].item() == 0
