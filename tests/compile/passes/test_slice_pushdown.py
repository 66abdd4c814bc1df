"""narrow: what makes rows one by one makes those that somebody reads."""

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from tests.support.passes import agree, compiled, numbers, ops

F = nn.functional
X, W, B, GAIN = numbers(0, (2, 6, 8), (8, 8), (8,), (8,))
Q, K, V = numbers(1, (2, 3, 6, 4), (2, 3, 6, 4), (2, 3, 6, 4))
SEES = torch.tensor(np.tri(6, 6, 1) > 0)

CHAINS = {
    "elementwise": lambda x: torch.tanh(x * 2 + B),
    "of broadcast tensors": lambda x: torch.where(B > 0, x, x[:1, :, :1] * GAIN),
    "layer": lambda x: F.gelu(F.linear(x, W, B)),
    "product": lambda x: torch.sigmoid(x @ W),
    "products of a stack": lambda x: (x @ torch.stack([W, W.T])).exp(),
    "layer norm": lambda x: F.layer_norm(x, (8,), GAIN, B),
    "softmax": lambda x: F.log_softmax(F.softmax(x, -1), -1),
    "residual": lambda x: x + F.linear(F.layer_norm(x, (8,)), W),
    "other dtype": lambda x: x.double().mul(3).float(),
    "turned": lambda x: (x.transpose(1, 2) * 2).permute(0, 2, 1) + 1,
    "heads": lambda x: torch.tanh(x.view(2, 6, 2, 4).transpose(1, 2)).transpose(1, 2).contiguous().view(2, 6, 8),
    "attention": lambda x: F.scaled_dot_product_attention(Q, K, V).transpose(1, 2).reshape(2, 6, 12) * 2,
    "looking back": lambda x: (
        F.scaled_dot_product_attention(Q, K, V, is_causal=True).transpose(1, 2).reshape(2, 6, 12) * 2
    ),
    "with a mask": lambda x: F.scaled_dot_product_attention(Q, K, V, SEES).transpose(1, 2).reshape(2, 6, 12) * 2,
}
PARTS = {
    "last": lambda y: y[:, -1],
    "third": lambda y: y[:, 2, :],
    "two": lambda y: y[:, 1:3],
    "every third": lambda y: y[:, ::3],
    "first sequence": lambda y: y[0],
    "one number": lambda y: y[1, 3, 5],
    "some columns": lambda y: y[..., 2:5],
    "list": lambda y: y[:, [-1]],
    "list of two": lambda y: y[:, [0, 2]],
    "select": lambda y: y.select(-2, -3),
    "narrow": lambda y: y.narrow(1, -2, 2),
    "most": lambda y: y[:, 1:],
    "none": lambda y: y[:, :0],
}


@pytest.mark.parametrize("of", PARTS)
@pytest.mark.parametrize("chain", CHAINS)
def test_parts_are_those_of_the_whole(chain, of):
    f, part = CHAINS[chain], PARTS[of]
    _, got, _ = compiled(lambda x: part(f(x)) * 2, X)
    agree(got, part(f(X)) * 2)
    _, got, steps = compiled(lambda x: part(f(x)), X, narrow=False)
    agree(got, part(f(X)))
    assert "narrow" not in steps


def sizes(lines, op):
    return [line.split("[")[1].split("]")[0] for line in lines if f"= {op}(" in line]


def test_a_language_models_last_position():
    """Of the last block only the last query, its layers and the head are for one position; the list is nanoGPT's
    way."""

    def block(x):
        q, k, v = F.linear(F.layer_norm(x, (8,)), torch.cat([W, W.T, W])).split(8, 2)
        q, k, v = (z.view(2, 6, 2, 4).transpose(1, 2) for z in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).contiguous().view(2, 6, 8)
        x = x + F.linear(y, W)
        return x + F.linear(F.gelu(F.linear(F.layer_norm(x, (8,)), W)), W)

    for last in (
        lambda x: F.linear(F.layer_norm(block(block(x)), (8,)), W)[:, -1, :] / 0.8,
        lambda x: F.linear(F.layer_norm(block(block(x)), (8,))[:, [-1], :], W),
    ):
        _, got, steps = compiled(last, X)
        agree(got, last(X))
        made = steps["narrow"]
        assert sizes(made, "linear") == ["2, 6, 24", *["2, 6, 8"] * 3, "2, 6, 24", *["2, 1, 8"] * 4]
        assert sizes(made, "attention") == ["2, 2, 6, 4", "2, 2, 1, 4"]
        assert len(made) <= len(steps["as recorded"]) + 4


def test_what_others_read_is_made():
    cases = {
        "the whole as well": lambda x: (lambda y: (y[:, -1] * 2, y.sum()))(torch.tanh(x)),
        "returned": lambda x: (lambda y: (y, y[:, -1]))(torch.tanh(x)),
        "another part": lambda x: (lambda y: (y[:, -1] * 2, y[:, 0] * 3))(torch.tanh(x)),
        "a statistic": lambda x: (lambda y: y[0][:, -1] + y[1][:, -1])(
            torch.native_layer_norm(x, (8,), None, None, 1e-5)
        ),
    }
    for f in cases.values():
        _, got, _ = compiled(f, X)
        agree(got, f(X))


def test_random_numbers_are_drawn_for_all():
    f = lambda x: F.dropout(x.tanh(), 0.5)[:, -1]
    torch.manual_seed(0)
    want, after = f(X), torch.rand(1)
    run = torch.compile(f)
    for _ in range(4):
        torch.manual_seed(0)
        agree((run(X), torch.rand(1)), (want, after))


def test_gradients_of_a_part():
    w, x = W.clone().requires_grad_(), X.clone().requires_grad_()

    def step(x):
        return torch.autograd.grad((torch.tanh(x @ w)[:, -1] * B).sum(), [w, x])

    _, got, _ = compiled(step, x)
    agree(got, step(x))


def test_what_is_written_afterwards_is_read_before():
    def step(x, y):
        z = torch.tanh(y * 2)
        y.add_(1)
        return z[:, -1] + x[:, 0]

    for run in (step, torch.compile(step)):
        y, made = X.clone(), []
        for _ in range(4):
            made.append(run(X, y))
        if run is step:
            want = made, y
    agree((*made, y), (*want[0], want[1]))


@pytest.mark.parametrize(
    "copy",
    [
        lambda y: y.T.contiguous(),
        lambda y: y.T.reshape(2, 4, 3),
        lambda y: y.T.clone(),
        lambda y: y.T.to(torch.float32, copy=True),
    ],
)
def test_copies_of_what_is_written_afterwards_stay(copy):
    """A part of a copy is no copy of a part: column 0 of the transpose lies in order, and would be looked at."""

    def step(y):
        c = copy(y)
        y.add_(1)
        return c[..., :1] * 2

    run, (y, z) = torch.compile(step), [numbers(2, (3, 8))[0] for _ in range(2)]
    for _ in range(5):
        agree(run(y), step(z))
    agree(y, z)


def test_two_results_do_not_share_memory_that_eagers_do_not():
    f = lambda x: (lambda y: (y[:, [-1]], y[:, -1:]))(torch.tanh(x))
    _, got, _ = compiled(f, X)
    agree(got, f(X))
    got[0].zero_()
    agree(got[1], f(X)[1])


def test_steps_follow_their_program():
    program, _, steps = compiled(lambda x: (x * 2).exp()[:, 0], X)
    assert ops(steps["narrow"]) == ["getitem", "mul", "exp", "getitem"]
    assert "[:, 0]" in program.source
