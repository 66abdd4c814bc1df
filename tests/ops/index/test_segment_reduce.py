"""segment_reduce."""

from __future__ import annotations

from tests.support.programs import Programs

program = Programs()


@program.found_in("torch tests")
def segments_have_a_largest_and_a_smallest_by_both_names(torch):
    return [
        torch.segment_reduce(torch.tensor([1.0, 2.0, 3.0]), name, lengths=torch.tensor([2, 1]))
        for name in ("max", "amax", "min", "amin")
    ]


test_program = program.test()
