"""unfold and as_strided; how copies of expanded tensors lie in memory."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from tests.support.programs import Programs


@pytest.mark.origin("sizes in use")
@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize(("size", "step"), [(1, 1), (3, 1), (4, 2), (5, 2), (5, 3), (2, 4), (7, 7), (6, 5)])
def test_windows_add_up_where_they_came_from(size, step, dim):
    x = rushlight.zeros(7, 9, 8, dtype=rushlight.float64, requires_grad=True)
    windows = x.unfold(dim, size, step)
    g = rushlight.randn(windows.shape, dtype=rushlight.float64)
    windows.backward(g)
    expected, shown = np.zeros(x.shape), np.moveaxis(g.numpy(), -1, dim + 1)
    for i in range(windows.shape[dim]):
        expected[(slice(None),) * dim + (slice(i * step, i * step + size),)] += shown[(slice(None),) * dim + (i,)]
    np.testing.assert_allclose(x.grad.numpy(), expected, atol=1e-12)
    assert x.grad.is_contiguous()


program = Programs()


@program.found_in("suites")
def copies_of_expanded_tensors_lie_as_torchs(torch):
    a = torch.arange(4).view(1, 4).expand(3, 4)
    b = torch.arange(3).view(1, 3, 1).expand(2, 3, 4)
    c = torch.rand(4, 3).t().unsqueeze(0).expand(5, 3, 4)
    return [
        list(t.stride())
        for t in (
            a.float(),
            a.clone(),
            a.double(),
            a * 1.5,
            b.float(),
            b.clone(),
            c.clone(),
            c.double(),
            a.t().float(),
            b.permute(2, 0, 1).clone(),
            c[:, :, :1].clone(),
        )
    ] + [a.float().view(12), b.float().view(-1)]


test_program = program.test()
