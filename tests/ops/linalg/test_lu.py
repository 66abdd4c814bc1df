"""LU factors: pivots are rows."""

from __future__ import annotations

from tests.support.programs import Programs, outcome

program = Programs()


@program.found_in("torch tests")
def pivots_are_rows(torch):
    LU, pivots = torch.linalg.lu_factor(torch.tensor([[4.0, 1.0], [2.0, 3.0]]))
    calls = [(torch.linalg.lu_solve, LU, p, torch.ones(2, 1)) for p in (pivots * 0, pivots + 2)]
    return [outcome(*call) for call in (*calls, (torch.lu_unpack, LU, pivots * 0), (torch.lu_unpack, LU, pivots + 2))]


test_program = program.test()
