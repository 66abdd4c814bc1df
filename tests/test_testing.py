"""assert_close and make_tensor: what they accept, what they say, against torch."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import rushlight
from rushlight.base.errors import first_line
from rushlight.utils.assert_close import assert_close, make_tensor
from tests.support.programs import Programs, outcome

NAN, INF = float("nan"), float("inf")


def pairs(torch):
    """Pairs to compare, and how: every kind of value, alike, close and different."""
    tensor, half = torch.tensor, torch.float16
    return [
        (tensor([1.0, 2.0]), tensor([1.0, 3.0]), {}),
        (tensor([1, 2]), tensor([1, 3]), {}),
        (tensor([1.0, 2.0]), tensor([1.0, 2.0, 3.0]), {}),
        (tensor([1.0]), tensor([1.0], dtype=torch.float64), {}),
        (tensor([1.0]), tensor([1.0], dtype=torch.float64), {"check_dtype": False}),
        (tensor([1.0], dtype=half), tensor([1.001], dtype=half), {}),
        (tensor([1.0], dtype=half), tensor([1.01], dtype=half), {}),
        (tensor([1.0], dtype=torch.bfloat16), tensor([1.01], dtype=torch.bfloat16), {}),
        (tensor([NAN]), tensor([NAN]), {}),
        (tensor([NAN]), tensor([NAN]), {"equal_nan": True}),
        (tensor([INF, 1.0]), tensor([INF, 2.0]), {}),
        (tensor([INF]), tensor([1.0]), {}),
        (tensor([True, False]), tensor([True, True]), {}),
        (tensor([1 + 1j]), tensor([1 + 2j]), {}),
        (tensor(2.0), tensor(3.0), {}),
        (tensor([[1.0, 2], [3, 4]]), tensor([[1.0, 2], [4, 4]]), {}),
        (tensor([[1.0, 2], [3, 4]]), tensor([[1.0, 2], [4, 4]]), {"rtol": 0.5, "atol": 0.0}),
        (tensor([1.0]), tensor([2.0]), {"rtol": 0.0, "atol": 0.0}),
        (tensor([1.0]), tensor([2.0]), {"rtol": 0.1}),
        (tensor([1.0]), tensor([2.0]), {"msg": "mine"}),
        (tensor([1.0]), tensor([2.0]), {"msg": lambda text: "before: " + text}),
        (tensor([1.0, 2.0]), tensor([[1.0, 9.0], [2.0, 9.0]])[:, 0], {"check_stride": True}),
        (tensor([1.0, 2.0]), tensor([[1.0, 9.0], [2.0, 9.0]])[:, 0], {}),
        (torch.nn.Parameter(tensor([1.0])), tensor([1.0]), {}),
        (tensor([]), tensor([]), {}),
        (1.0, 1.1, {}),
        (1.0, 1.0, {}),
        (1, 2, {}),
        (1, 1.0, {}),
        (1.0, NAN, {}),
        (3, 4, {"rtol": 0, "atol": 2}),
        (True, False, {}),
        (None, None, {}),
        (None, 1, {}),
        ("a", "a", {}),
        ([1.0, tensor(2.0)], [1.0, tensor(3.0)], {}),
        ([tensor(1.0), 2], (tensor(1.0), 2), {}),
        ([1.0], [1.0, 2.0], {}),
        ({"a": [tensor(1.0)]}, {"a": [tensor(5.0)]}, {}),
        ({"a": 1.0}, {"b": 1.0}, {}),
        ([], [], {}),
        (np.array([1.0, 2.0]), np.array([1.0, 3.0]), {}),
        (1.0, np.float64(1.0), {}),
        (np.float32(1.0), 1.0, {}),
        (np.int64(1), 2, {}),
        (np.float64(1.0), 1, {}),
    ]


def said(check, a, b, how):
    try:
        check(a, b, **how)
    except (AssertionError, ValueError, TypeError) as error:
        return f"{type(error).__name__}: {first_line(error)}"
    return "close"


def test_answers_and_messages_are_torchs(oracle):
    expected = oracle(lambda torch: [said(torch.testing.assert_close, *pair) for pair in pairs(torch)])
    assert [said(assert_close, *pair) for pair in pairs(rushlight)] == expected
    assert expected.count("close") > 8


def test_a_tensor_is_not_a_number():
    with pytest.raises(TypeError, match="No comparison pair was able to handle inputs of type"):
        assert_close(rushlight.tensor(1.0), 1.0)
    with pytest.raises(TypeError, match="No comparison pair"):
        assert_close(rushlight.nn.Parameter(rushlight.ones(1)), rushlight.ones(1), allow_subclasses=False)


def test_deep_lists_need_no_recursion():
    deep = 1.0
    for _ in range(5000):
        deep = [deep]
    assert_close(deep, deep)


REQUESTS = [
    {"dtype": "float32"},
    {"dtype": "float64", "noncontiguous": True},
    {"dtype": "complex64", "low": 0, "high": 1},
    {"dtype": "int64"},
    {"dtype": "uint8"},
    {"dtype": "bool"},
    {"dtype": "int8", "low": -1000, "high": 1000},
    {"dtype": "bfloat16"},
    {"dtype": "int64", "low": 0, "high": 2, "exclude_zero": True},
    {"dtype": "float32", "low": 3, "high": 1},
    {"dtype": "float32", "low": NAN},
    {"dtype": "int64", "requires_grad": True},
    {"dtype": "uint8", "low": -3, "high": -1},
    {"dtype": "float32", "requires_grad": True},
]


def tensors(make, torch, request):
    torch.manual_seed(0)
    try:
        t = make((2, 3), device="cpu", **{**request, "dtype": getattr(torch, request["dtype"])})
    except ValueError as error:
        return first_line(error)
    return [
        t.detach().to(torch.float64) if t.dtype == torch.bfloat16 else t.detach(),
        t.requires_grad,
        t.is_contiguous(),
    ]


def test_made_tensors_are_torchs(oracle):
    expected = oracle(lambda torch: [tensors(torch.testing.make_tensor, torch, request) for request in REQUESTS])
    for request, answer in zip(REQUESTS, expected):
        made = tensors(make_tensor, rushlight, request)
        if isinstance(answer, str):
            assert made == answer.replace("torch.", str(rushlight.float32).partition("float")[0])
        else:
            assert made[1:] == answer[1:], request
            assert np.array_equal(made[0].numpy(), answer[0]), request


def test_shapes_are_given_as_numbers_or_as_one_tuple():
    assert (
        make_tensor(2, 3, dtype=rushlight.float32).shape == make_tensor((2, 3), dtype=rushlight.float32).shape == (2, 3)
    )
    assert make_tensor((), dtype=rushlight.int64).shape == ()
    with pytest.raises(ValueError, match="mutually exclusive"):
        make_tensor(2, dtype=rushlight.float32, noncontiguous=True, memory_format=rushlight.contiguous_format)


program = Programs()


@program.found_in("suites")
def older_comparisons(torch):
    close = torch.testing.assert_allclose
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [
            outcome(close, *args)
            for args in (
                (torch.tensor([1.0]), torch.tensor([1.00005])),
                (torch.tensor([1.0]), torch.tensor([1.001])),
                (torch.tensor([1.0]), [1.0]),
                (torch.tensor([float("nan")]), torch.tensor([float("nan")])),
                (torch.ones(1), torch.ones(1, dtype=torch.float64)),
                (torch.ones(1), torch.ones(1) + 1, 1.0, 1.0),
            )
        ]


test_program = program.test()
