"""autograd.graph: hooks on several gradients, writes to what is saved."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from tests.support.op_calls import agree
from tests.support.programs import leaf


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
    out = (b**2).sum()
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


def test_leaves_are_told_as_soon_as_their_gradient_is_whole():
    """An optimizer that steps in a hook needs one gradient at a time."""
    log = []
    a, b = (rushlight.ones(2, requires_grad=True) for _ in range(2))
    h = a * 2
    h.register_hook(lambda g: log.append("h"))
    k = h * b
    for name, t in (("a", a), ("b", b)):
        t.register_post_accumulate_grad_hook(
            lambda t, name=name: (log.append((name, t.grad.tolist())), setattr(t, "grad", None))
        )
    k.sum().backward()
    (k.detach() * b + b).sum().backward()  # b in two places
    assert log == [("b", [2.0, 2.0]), "h", ("a", [2.0, 2.0]), ("b", [3.0, 3.0])]
    assert a.grad is b.grad is None


def test_what_retains_its_gradient_goes_on_after_a_write():
    x = rushlight.ones(3, requires_grad=True)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: log.append(g.tolist()))
    log = []
    y.mul_(3)
    (y * y).sum().backward()
    assert y.grad.tolist() == [12.0] * 3  # of what y is now; the hook, of what it was
    assert log == [[36.0] * 3]
    assert x.grad.tolist() == [72.0] * 3


def test_writes_that_torch_refuses():
    x = rushlight.ones(3, requires_grad=True)
    with rushlight.no_grad():
        v = x[:2]
        v.mul_(1)
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode and is being modified inplace"):
        v.mul_(2)
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode"):
        v.copy_(rushlight.zeros(2))
    assert x.tolist() == [1.0] * 3
    with rushlight.inference_mode(), rushlight.enable_grad():
        assert not (x * 2).requires_grad


def test_a_gradient_that_no_backward_fills_is_warned_of():
    y = rushlight.ones(3, requires_grad=True) * 2
    with pytest.warns(UserWarning, match="is not a leaf Tensor is being accessed"):
        assert y.grad is None


def test_nodes_are_torchs_where_we_have_several(torch):
    """The losses' graphs that tutorials walk, and names that a printed tensor shows."""

    def chain(node):
        return "-" if node is None else f"{type(node).__name__}({', '.join(chain(n) for n, _ in node.next_functions)})"

    shown = []
    for library in (rushlight, torch):
        F = library.nn.functional
        x, y = library.full((2, 4), 0.5).requires_grad_(), library.ones(2, 4)
        index = library.tensor([[0], [1]])
        losses = [loss(x, y) for loss in (F.mse_loss, F.smooth_l1_loss, F.huber_loss, F.binary_cross_entropy)]
        made = [
            1 - x,
            1 / x,
            library.rsub(x, 2),
            x.t().contiguous(),
            F.glu(x),
            x.scatter(1, index, 0.0),
            x.take(index),
            F.pixel_shuffle(x.reshape(1, 8, 1, 1), 2),
        ]
        shown.append(
            [*map(chain, (loss.grad_fn for loss in losses)), *(type(tensor.grad_fn).__name__ for tensor in made)]
        )
    assert shown[0] == shown[1]


def test_no_tensor_is_its_own_gradient():
    x = rushlight.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="can't assign Variable as its own grad"):
        x.grad = x
    assert x.grad is None


@pytest.mark.origin("scripts")
@pytest.mark.parametrize(
    "f", [lambda x: x**2, lambda x: x.exp(), lambda x: x.prod(), lambda x: 2**x, lambda x: x.norm()]
)
def test_hooks_of_saved_tensors_meet_what_is_saved_only(oracle, f):
    """A rule that does not need its op's result saves None for it, which was handed to the hook."""

    def gradient(t):
        x = t.tensor([1.0, 2.0, 3.0], requires_grad=True)
        with t.autograd.graph.saved_tensors_hooks(lambda s: s * 4, lambda s: s / 4):
            y = f(x).sum()
        y.backward()
        return x.grad

    np.testing.assert_allclose(gradient(rushlight), oracle(gradient), rtol=1e-6)
