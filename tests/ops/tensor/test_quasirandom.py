"""Sobol's points are torch's."""

from __future__ import annotations

from tests.support.programs import Programs, outcome

program = Programs()


@program.found_in("libraries")
def sobol_points_are_torchs(torch):
    engine = torch.quasirandom.SobolEngine
    e, many = engine(5), engine(300)
    made = [
        e.draw(3),
        e.draw(1),
        e.draw(20),
        e.reset().draw(1),
        e.draw(7, dtype=torch.float64),
        many.draw_base2(3),
        repr(e),
        outcome(engine, 0),
        outcome(engine(2).fast_forward(3).draw_base2, 2),
    ]
    for seed in (0, 7):
        s = engine(6, scramble=True, seed=seed)
        made += [repr(s), s.draw(9), s.fast_forward(1000).draw(5, dtype=torch.float64), s.num_generated]
    torch.manual_seed(3)
    return [
        *made,
        engine(3, True).draw(2),
        torch.rand(2),
        engine(3).fast_forward(1).draw(2),
        engine(3).fast_forward(0).draw(2),
        engine(2).draw(4, out=torch.empty(0)),
    ]


test_program = program.test()
