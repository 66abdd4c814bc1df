"""Coordinates of flat positions."""

from __future__ import annotations

from tests.support.programs import Programs, outcome

program = Programs()


@program.found_in("torch tests")
def what_is_no_shape_has_no_coordinates(torch):
    shapes = [(2, 2.0), 2.0, torch.tensor([2, 3]), torch.tensor(3), "ab", (2, -3), torch.Size([2, 3]), 7]
    at = torch.tensor([1])
    return [outcome(lambda s=shape: list(torch.unravel_index(at, s))) for shape in shapes]


@program.found_in("torch tests")
def indices_of_all_integers_have_coordinates_in_int64(torch):
    kinds = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
    at = [torch.tensor([7, 100], dtype=kind) for kind in kinds]
    return [torch.unravel_index(i, shape) for i in at for shape in ((3, 50), (2, 300), (70000,))]


@program.found_in("torch tests")
def repeated_positions_have_the_dtype_of_the_repeats(torch):
    return [torch.repeat_interleave(torch.tensor([1, 2], dtype=k)) for k in (torch.int32, torch.int64)]


test_program = program.test()
