"""cat and stack of nothing."""

from __future__ import annotations

from tests.support.programs import Programs, outcome

program = Programs()


@program.found_in("torch tests")
def nothing_is_joined_along_any_dimension(torch):
    return [
        torch.cat([torch.ones(0), torch.ones(0)], 1),
        outcome(torch.linspace, 0, 1j, 3, dtype=torch.float32),
        outcome(torch.logspace, 0j, 1, 3, dtype=torch.float64),
        torch.linspace(0, 1j, 3),
    ]


test_program = program.test()
