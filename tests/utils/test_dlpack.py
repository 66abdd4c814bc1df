"""DLPack: capsules and dtypes."""

from __future__ import annotations

import numpy as np

import rushlight
from tests.support.programs import Programs, leaf, outcome

program = Programs()


@program.found_in("torch tests")
def capsules_of_older_programs_are_tensors(torch):
    x = torch.arange(3.0)
    y = torch.from_dlpack(torch.utils.dlpack.to_dlpack(x))
    y[0] = 5.0
    return [x, torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x))]


@program.found_in("torch tests")
def a_tensor_is_taken_by_dlpack_whatever_its_dtype(torch):
    def shared(dtype):
        x = torch.zeros(3, dtype=dtype)
        y = torch.from_dlpack(x)
        y[1] = 1
        return [x.float(), str(y.dtype), y.is_leaf]

    return [shared(d) for d in (torch.bfloat16, torch.float16, torch.int8, torch.float64)] + [
        outcome(torch.from_dlpack, leaf(torch, 1.0))
    ]


test_program = program.test()


def test_options_of_the_protocol():
    x = rushlight.ones(2)
    shared = rushlight.from_dlpack(x, device="cpu", copy=False)
    copied = rushlight.from_dlpack(x, copy=True)
    shared[0] = 3
    assert x.tolist() == [3, 1]
    assert copied.tolist() == [1, 1]
    assert np.from_dlpack(x).tolist() == [3, 1]
    assert x.__dlpack__(stream=None) is not None
