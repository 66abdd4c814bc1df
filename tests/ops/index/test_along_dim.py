"""Ops along a dimension: numbers, slices of one shape."""

from __future__ import annotations

from tests.support.programs import Programs, outcome

program = Programs()


@program.found_in("torch tests")
def a_number_has_one_place(torch):
    x, at, beyond, v = torch.tensor(1.0), torch.tensor([0]), torch.tensor([1]), torch.tensor([2.0])
    return [
        [
            outcome(x.index_copy, 0, i, v),
            outcome(x.index_select, 0, i),
            outcome(x.scatter, 0, i, v),
            outcome(x.scatter_add, 0, i, v),
        ]
        for i in (at, beyond)
    ]


@program.found_in("torch tests")
def slices_to_add_or_copy_have_one_shape(torch):
    at, two, zeros = torch.tensor([0]), torch.tensor(2.0), torch.zeros(2, 3)
    return [
        outcome(getattr(x, name), 0, at, y)
        for name in ("index_add", "index_copy")
        for x in (torch.tensor(1.0), torch.zeros(3), zeros)
        for y in (two, two.reshape(1), two.reshape(1, 1))
    ]


test_program = program.test()
