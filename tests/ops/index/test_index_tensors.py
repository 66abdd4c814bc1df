"""Coordinates of flat positions."""

from __future__ import annotations

from tests.support.programs import Programs, outcome

program = Programs()


@program.found_in("torch tests")
def what_is_no_shape_has_no_coordinates(torch):
    shapes = [
        (2, 2.0),
        2.0,
        torch.tensor([2, 3]),
        torch.tensor(3),
        "ab",
        (2, -3),
        torch.Size([2, 3]),
        7,
    ]
    at = torch.tensor([1])
    return [outcome(lambda s=shape: list(torch.unravel_index(at, s))) for shape in shapes]


test_program = program.test()
