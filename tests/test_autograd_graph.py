"""autograd.graph: hooks on several gradients, writes to what is saved."""

from __future__ import annotations

import pytest
from ops_calls import agree
from programs import leaf

import rushlight


def several(torch, mode):
    """What the hook sees in three runs of backward, and after it was taken away."""
    a, b = leaf(torch, 2.0, 3.0), leaf(torch, 5.0, 7.0)
    c, d = a * b, a + b
    seen = []

    def hook(found):
        found = found if isinstance(found, (list, tuple)) else [found]
        seen.append([None if g is None else g.clone() for g in found])
    handle = torch.autograd.graph.register_multi_grad_hook((a, b, c, d), hook, mode=mode)
    c.sum().backward(retain_graph=True)
    c.sum().backward(inputs=(a,), retain_graph=True)
    (c * d).sum().backward(retain_graph=True)
    handle.remove()
    c.sum().backward()
    return seen


@pytest.mark.parametrize("mode", ["all", "any"])
def test_a_hook_on_several_gradients(oracle, mode):
    found, expected = several(rushlight, mode), oracle(lambda torch: several(torch, mode))
    assert len(found) == len(expected)
    if mode == "all":
        agree(found, expected)


def test_where_a_hook_cannot_be():
    with pytest.raises(RuntimeError, match="does not require gradients"):
        rushlight.autograd.graph.register_multi_grad_hook([rushlight.ones(1)], print)
    with pytest.raises(ValueError, match="Expects mode to be one of"):
        rushlight.autograd.graph.register_multi_grad_hook([leaf(rushlight, 1.0)], print, mode="some")


def test_gradient_edges():
    x = leaf(rushlight, 1.0, 2.0)
    edge = rushlight.autograd.graph.get_gradient_edge(x.split(1)[1])
    assert edge.node.name() == "SplitBackward0"
    assert edge.output_nr == 1
    assert rushlight.autograd.graph.get_gradient_edge(x).node.variable is x


def written_input(b):
    out = (b ** 2).sum()
    b.sin_()
    return out + b.sum()


def written_output(b):
    out = b.exp()
    total = (out * 1).sum()
    out.mul_(2)
    return total + out.sum()


def written_view(b):
    out = b.exp() * b
    b[0] = 5.0
    return out.sum() + b.sum()


@pytest.mark.parametrize("program", [written_input, written_output, written_view])
def test_writes_to_what_is_saved(oracle, program):
    def ask(torch):
        with torch.autograd.graph.allow_mutation_on_saved_tensors():
            a = leaf(torch, 0.5, 2.0)
            y = program(a * 3)
            y.backward()
        return [y.detach(), a.grad]
    agree(ask(rushlight), oracle(ask))
    a = leaf(rushlight, 0.5, 2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        program(a * 3).backward()
