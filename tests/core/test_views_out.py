"""Results in `out`: pairs, dtypes."""

from __future__ import annotations

from tests.support.programs import Programs, outcome

program = Programs()


@program.found_in("torch tests")
def pairs_of_results_go_into_tensors_of_their_dtypes(torch):
    x, pair = torch.tensor([[1.0, 4.0], [3.0, 2.0]]), lambda *dtypes: tuple(torch.zeros(2, dtype=d) for d in dtypes)
    made = []
    for f in (
        torch.max,
        torch.median,
        torch.sort,
        torch.mode,
        torch.cummax,
        lambda x, _, out: torch.linalg.qr(x, out=out),
    ):
        made += [outcome(f, x, 0, out=pair(*d)) for d in ((torch.float64, torch.int64), (torch.float32, torch.int32))]
    return [
        *made,
        *torch.max(x, 0, out=pair(torch.float32, torch.int64)),
        str(torch.linalg.lstsq(x, x, out=pair(torch.float64, torch.float64, torch.int64, torch.float64))[0].dtype),
    ]


test_program = program.test()
