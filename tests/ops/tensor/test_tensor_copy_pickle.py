"""Copies and pickles of tensors; copy_ of numbers."""

from __future__ import annotations

import copy
import pickle

from tests.support.programs import Programs, leaf, outcome

program = Programs()


@program.found_in("libraries")
def results_are_pickled_as_leaves(torch):
    y = leaf(torch, 1.0, 2.0) * 2
    again, same = pickle.loads(pickle.dumps(y)), copy.copy(y)
    return [again, again.requires_grad, again.is_leaf, same, outcome(copy.deepcopy, y)]


@program.found_in("torch tests")
def numbers_are_copied_into_tensors(torch):
    w = leaf(torch, 1.0, 2.0)
    (w * 1).copy_(2.0).sum().backward()
    return [
        torch.zeros(2, 2).copy_(3.5),
        torch.zeros(2, dtype=torch.int64).copy_(True),
        torch.zeros(2).copy_(float("inf")),
        w.grad,
        outcome(torch.zeros(2).copy_, [1, 2]),
    ]


test_program = program.test()
