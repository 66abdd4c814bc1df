"""Random numbers around infinity and in other memory formats."""

from __future__ import annotations

from tests.support.programs import Programs

program = Programs()


@program.found_in("torch tests")
def random_numbers_around_infinity_and_in_other_memory_formats(torch):
    torch.manual_seed(0)
    inf, image = float("inf"), torch.zeros(2, 3, 2, 2).contiguous(memory_format=torch.channels_last)
    drawn = [
        torch.empty(3).cauchy_(inf, 0.5),
        torch.empty(3).cauchy_(0.0, inf),
        torch.empty(3, dtype=torch.float64).normal_(inf, 2.0),
        torch.randint_like(image, 3, 30),
        torch.randint_like(image, 9, dtype=torch.int64),
    ]
    return [
        *drawn,
        list(drawn[3].stride()),
        torch.bernoulli(torch.ones(3), out=torch.zeros(3, dtype=torch.int64)),
        list(image.nan_to_num().stride()),
    ]


test_program = program.test()
