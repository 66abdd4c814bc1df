"""Complex numbers: parts, logarithms, what has no order and no view."""

from __future__ import annotations

from tests.support.programs import Programs, leaf, outcome

program = Programs()


@program.found_in("libraries")
def parts_of_complex_numbers_can_be_set(torch):
    z, x, w = torch.zeros(2, dtype=torch.complex64), torch.zeros(2), leaf(torch, 1.0, 2.0)
    z.real, z.imag, x.real = torch.ones(2), 3, torch.tensor([2.0, 3.0])
    c = torch.zeros(2, dtype=torch.complex128)
    c.imag = w * 2
    c.abs().sum().backward()
    return [z, x, w.grad, outcome(setattr, x, "imag", 1)]


@program.found_in("torch tests")
def logarithms_of_complex_numbers_near_one(torch):
    parts = [(a, b) for a in (0.0, 1e-19, -1e-10, 0.5, -0.5, -2.0, 1e20) for b in (0.0, 1e-12, -1e-5, 3.0)]
    made = torch.log1p(torch.tensor([complex(*p) for p in parts], dtype=torch.complex128))
    return [f"{part:.9e}" for z in made.tolist() for part in (z.real, z.imag)]


@program.found_in("torch tests")
def what_has_no_complex_view(torch):
    return [
        outcome(torch.view_as_complex, t)
        for t in (torch.ones(4, 2, dtype=torch.int64), torch.tensor(1.0), torch.ones(4, 3), torch.ones(2, 2))
    ]


@program.found_in("torch tests")
def complex_numbers_have_no_order(torch):
    c, d = torch.tensor([1 + 1j, 2.0]), torch.tensor([1.0, 2.0])
    tried = [
        lambda: c < 1,
        lambda: c > d,
        lambda: d <= 1j,
        lambda: d >= c,
        lambda: torch.maximum(c, c),
        lambda: torch.max(d, c),
        lambda: torch.minimum(d, c),
        lambda: c.relu(),
        lambda: c.round(),
        lambda: d.clone().lt_(1j),
        lambda: c.clone().round_(),
        lambda: torch.xlogy(c, c),
        lambda: d.to(torch.int64) > 1j,
    ]
    return [isinstance(outcome(f), str) for f in tried] + [c == c, c != d]


test_program = program.test()
