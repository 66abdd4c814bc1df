"""Operators with several overloads, torch.library."""

from __future__ import annotations

import rushlight


def test_an_overload_is_an_op_of_its_own():
    library = rushlight.library
    library.define("overloads::plus.out", "(Tensor x, *, Tensor(a!) out) -> ()")
    library.define("overloads::plus", "(Tensor x) -> Tensor")
    library.impl("overloads::plus", "cpu")(lambda x: x + 1)

    @library.register_kernel("overloads::plus.out", "cpu")
    def _(x, *, out):
        out.copy_(x + 1)

    plus, out = rushlight.ops.overloads.plus, rushlight.zeros(2)
    assert plus.overloads() == ["default", "out"]
    assert plus(rushlight.ones(1)).tolist() == plus.default(rushlight.ones(1)).tolist() == [2]
    plus.out(rushlight.ones(2), out=out)
    assert out.tolist() == [2, 2]
    plus(rushlight.ones(2) * 2, out=out)
    assert out.tolist() == [3, 3]


def test_triton_op():
    @rushlight.library.triton_op("overloads::three_times", mutates_args={})
    def three_times(x: rushlight.Tensor) -> rushlight.Tensor:
        return x * 3

    assert three_times(rushlight.ones(2)).tolist() == [3, 3]
    assert rushlight.ops.overloads.three_times(rushlight.ones(1)).tolist() == [3]
