"""nonzero and masks."""

from __future__ import annotations

from tests.support.programs import Programs, outcome

program = Programs()


@program.found_in("torch tests")
def positions_go_into_integers_alone(torch):
    x = torch.tensor([0.0, 1.0])
    return [
        outcome(torch.nonzero, x, out=torch.zeros(1)),
        outcome(torch.nonzero, x, out=torch.zeros(1, dtype=torch.long)),
        outcome(torch.nonzero, x, as_tuple=True, out=torch.zeros(1, dtype=torch.long)),
    ]


test_program = program.test()
