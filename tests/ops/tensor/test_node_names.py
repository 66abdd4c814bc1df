"""Nodes have torch's names."""

from __future__ import annotations

import pytest

import rushlight

NAMED = {
    "max": lambda t, x: x.max(),
    "min": lambda t, x: x.min(),
    "max along": lambda t, x: x.max(0).values,
    "std": lambda t, x: x.std(),
    "var": lambda t, x: x.var(0),
    "clamp": lambda t, x: x.clamp(0, 1),
    "clamp from below": lambda t, x: x.clamp(min=0.0),
    "clamp by a tensor": lambda t, x: x.clamp(max=t.ones(3, 3)),
    "t": lambda t, x: x.t(),
    "T": lambda t, x: x.T,
    "trace": lambda t, x: x.trace(),
    "dist": lambda t, x: t.dist(x, x * 2),
    "roll": lambda t, x: x.roll(1),
    "roll along": lambda t, x: x.roll(1, 0),
    "rot90": lambda t, x: x.rot90(),
    "pow": lambda t, x: x**3,
    "of a number": lambda t, x: 2**x,
    "of tensors": lambda t, x: x**x,
    "addmm": lambda t, x: t.addmm(x, x, x),
    "aminmax": lambda t, x: x.aminmax().max,
    "celu": lambda t, x: t.celu(x),
    "masked_select": lambda t, x: x.masked_select(t.eye(3) > 0),
    "diag_embed": lambda t, x: x.diag_embed(),
    "svdvals": lambda t, x: t.linalg.svdvals(x),
    "eigvalsh": lambda t, x: t.linalg.eigvalsh(x),
    "deg2rad": lambda t, x: x.deg2rad(),
    "nearest": lambda t, x: t.nn.functional.interpolate(x[None, None], scale_factor=2),
    "bilinear": lambda t, x: t.nn.functional.interpolate(x[None, None], (2, 5), mode="bilinear"),
}


@pytest.mark.origin("tutorials")
@pytest.mark.parametrize("name", NAMED)
def test_nodes_have_the_names_of_torch(oracle, name):
    def named(t):
        return NAMED[name](t, (t.arange(9.0).view(3, 3) / 9 + t.eye(3)).requires_grad_()).grad_fn.name()

    assert named(rushlight) == oracle(named)
