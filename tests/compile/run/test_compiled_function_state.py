"""Memory, gradients, generators and modes that a compiled function shares with its surroundings: as in eager."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight import nn, optim
from rushlight.compile import compile, programs

pytestmark = pytest.mark.filterwarnings("ignore")


def small():
    m = nn.Linear(2, 2)
    with torch.no_grad():
        m.weight.fill_(0.5)
        m.bias.fill_(0.25)
    return m


def ones(n=2):
    return torch.ones(n)


def state_that_comes_to_share_memory(how):
    a, b = ones(3), ones(4) * 2

    def f(x):
        a.add_(1)
        b.mul_(2)
        return a.sum() + b.sum() + x

    f = how(f)
    for i in range(8):
        if i == 3:
            a.data = b.data[1:]
        if i == 6:
            a.data = ones(3)
        yield f(ones()), a, b


def state_that_no_longer_shares_memory(how):
    a = ones()
    b = a.detach()
    f = how(lambda x: a * x + b * 2)
    for i in range(6):
        if i == 3:
            b.data = ones() * 9
        yield f(ones())


def argument_that_is_a_view_of_state(how):
    p = torch.arange(4.0)

    def f(x):
        x.add_(1)
        return p * 2 + x.sum()

    f = how(f)
    for x in (ones(), ones(), ones(), p[1:3], p.view(2, 2)[0], ones()):
        yield f(x), p


def argument_that_is_a_gradient(how):
    p = nn.Parameter(ones())
    p.grad = ones()

    def f(x):
        with torch.no_grad():
            p.sub_(p.grad)
        return x * 2

    f = how(f)
    for x in (p.grad, p.grad, p.grad, ones() * 7, ones() * 8):
        yield f(x), p


def gradients_that_were_there(how):
    """`.grad` stays the tensor that it was, in the memory that it has: a part of another one's here."""
    m, flat, held = small(), torch.zeros(6), []
    m.weight.grad, m.bias.grad = flat[:4].view(2, 2), flat[4:]

    def f(x):
        m(x).sum().backward()
        return m.bias.grad * 1

    f = how(f)
    for i in range(7):
        if i == 4:
            flat.zero_()
        if i == 5:
            m.bias.grad = None
        yield f(ones() * i), flat, m.weight.grad, m.bias.grad, *held
        held.append(m.bias.grad)


def two_parameters_with_one_gradient(how):
    a, b = nn.Parameter(ones()), nn.Parameter(ones() * 2)

    def f(x):
        (a * x).sum().backward()
        (b * x * 2).sum().backward()
        return a.grad + b.grad

    f = how(f)
    for i in range(6):
        if i == 3:
            a.grad = b.grad = torch.zeros(2)
        if i == 5:
            a.grad = torch.zeros(2)
        yield f(ones()), a.grad, b.grad


def gradients_set_to_zero_inside(how):
    m, held = small(), []
    optimizer = optim.Adam(m.parameters(), lr=0.1)

    def f(x):
        optimizer.zero_grad(set_to_none=False)
        loss = m(x).sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    f = how(f)
    for i in range(6):
        yield f(ones() * i), *m.parameters(), m.weight.grad, *held
        held.append(m.weight.grad)


def gradients_dropped_after_accumulation(how):
    m = small()
    optimizer = optim.SGD(m.parameters(), lr=0.1)

    def f(x, last):
        m(x).sum().backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()

    f = how(f)
    for i in range(12):
        f(ones() * i, i % 3 == 2)
        yield m.weight, m.weight.grad


def gradients_that_are_gone(how):
    p = nn.Parameter(ones())
    f = how(lambda: nn.utils.clip_grad_norm_([p], 1.0))
    for i in range(9):
        p.grad = None if i in (3, 5) else ones() * i
        yield f(), p.grad


def gradient_that_is_an_argument(how):
    p = nn.Parameter(ones())

    def f(x):
        p.grad = x
        return x + 1

    f = how(f)
    for i in range(5):
        x = ones() * i
        yield f(x), p.grad, torch.tensor(p.grad is x)


def memory_that_is_replaced(how):
    b = ones()

    def f(x):
        b.data = x * 2
        return b.sum() + x

    f = how(f)
    for i in range(5):
        yield f(ones() * i), b


def generator_that_is_set_back(how):
    def f(x):
        with torch.random.fork_rng():
            y = torch.rand(2)
        return x + y

    f = how(f)
    torch.manual_seed(2)
    for _ in range(6):
        yield f(ones()), torch.rand(2)


def generator_that_is_seeded(how):
    def f(x):
        torch.manual_seed(3)
        return x + torch.rand(2)

    f = how(f)
    for _ in range(6):
        yield f(ones()), torch.rand(2)


def mode_that_is_set(how):
    def f(x):
        torch.set_grad_enabled(False)
        return x * 2

    f = how(f)
    for _ in range(5):
        found = f(ones().requires_grad_()), torch.tensor(torch.is_grad_enabled())
        torch.set_grad_enabled(True)
        yield found


def dtype_that_is_set(how):
    def f(x):
        torch.set_default_dtype(torch.float64)
        return x * 2

    f = how(f)
    for _ in range(5):
        try:
            yield f(ones()), torch.tensor(torch.get_default_dtype() is torch.float64)
        finally:
            torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize(
    "story",
    [
        state_that_comes_to_share_memory,
        state_that_no_longer_shares_memory,
        argument_that_is_a_view_of_state,
        argument_that_is_a_gradient,
        gradients_that_were_there,
        two_parameters_with_one_gradient,
        gradients_set_to_zero_inside,
        gradients_dropped_after_accumulation,
        gradients_that_are_gone,
        gradient_that_is_an_argument,
        memory_that_is_replaced,
        generator_that_is_set_back,
        generator_that_is_seeded,
        mode_that_is_set,
        dtype_that_is_set,
    ],
)
def test_what_is_shared(story):
    def told(how):
        return [
            [None if t is None else t.reshape(-1).tolist() for t in (found if isinstance(found, tuple) else (found,))]
            for found in story(how)
        ]

    want, made = told(lambda f: f), []

    def compiled(f):
        made.append(compile(f, backend="numpy"))
        return made[-1]

    got = told(compiled)
    for a, b in zip(got, want):
        assert [None if x is None else pytest.approx(x, rel=1e-5) for x in b] == a
    assert len(got) == len(want)
    assert not any(f.given_up.startswith(("gave", "meets")) for f in made), made[0].given_up


@pytest.mark.parametrize(
    "kept",
    [
        lambda x: x * 1,
        lambda x: x / 1,
        lambda x: x.clone(),
        lambda x: x[0].clone(),
        lambda x: x.t().clone(),
        lambda x: x.t().contiguous(),
        lambda x: x.t().reshape(-1),
        lambda x: (x * 1).t(),
        lambda x: x.contiguous().clone(),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_what_was_computed_before_a_write_stays(kept, turned):
    """Also where it is what the memory held: the program may not read that memory later instead."""

    def calls(how):
        s = torch.arange(6.0).reshape(2, 3)
        s = s.t() if turned else s

        def f(x):
            y = kept(s)
            s.add_(x)
            return y * 2, s + 0

        f = how(f)
        return [[t.tolist() for t in f(torch.ones(1) * i)] for i in range(5)]

    made = compile(lambda x: x)
    want = calls(lambda f: f)

    def compiled(f):
        nonlocal made
        made = compile(f, backend="numpy")
        return made

    assert calls(compiled) == want
    assert programs(made) or turned  # views of memory out of order are looked at by Python


@pytest.mark.parametrize(
    "f",
    [
        lambda x: (lambda y: (y[0].detach(), y[0].detach(), y[1:]))(x * 1),  # looks at what is left out
        lambda x: (lambda y, v: (v.copy_(v.flip(0)), v, y)[1:])(*(lambda y: (y, y.T))(x + 1)),  # written through a look
        lambda x: (lambda y: (y[:1], y.T))(x.clone()),
    ],
)
def test_results_share_memory_as_eagers_do(f):
    run = torch.compile(f)
    for _ in range(5):
        x = torch.arange(12.0).reshape(3, 4)
        want, got = f(x.clone()), run(x.clone())
        for made in (want, got):
            for t in made:
                t.mul_(2)
        for a, b in zip(want, got, strict=True):
            assert torch.equal(a, b)
