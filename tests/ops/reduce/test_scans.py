"""Running sums and products: infinities, the dtype of `out`."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rushlight
from tests.support.programs import Programs, outcome


@pytest.mark.origin("fuzzing")
def test_gradients_of_logcumsumexp_beside_infinities(torch):
    def run(lib):
        x = lib.tensor(
            [[1.0, 0.0, math.inf, 2.0, math.inf], [-math.inf, -math.inf, 1.0, -math.inf, 2.0]], requires_grad=True
        )
        x.logcumsumexp(1).backward(lib.arange(1.0, 11.0).reshape(2, 5))
        return x.grad.tolist()

    ours, theirs = np.array(run(rushlight)), np.array(run(torch))
    finite = np.isfinite(theirs)
    assert np.allclose(ours[finite], theirs[finite])


program = Programs()


@program.found_in("torch tests")
def running_sums_and_products_in_the_dtype_of_out(torch):
    x = torch.tensor([[1.5, 2.0], [2.5, 3.0]])
    made = []
    for f in (torch.cumsum, torch.cumprod):
        write = getattr(torch.Tensor, f.__name__ + "_")
        made += [f(x, 0, out=torch.zeros(2, 2, dtype=d)) for d in (torch.int64, torch.float64)]
        made += [
            outcome(f, x, 0, dtype=torch.float32, out=torch.zeros(2, 2, dtype=torch.float64)),
            outcome(write, x.clone(), 0, dtype=torch.float64),
            outcome(write, x > 2, 0),
            f(x > 2, 0),
            write((x * 50).to(torch.uint8), 0),
            write(x.to(torch.int32), 0),
            outcome(f, x, 0, dtype=torch.bool),
        ]
    return made


test_program = program.test()
