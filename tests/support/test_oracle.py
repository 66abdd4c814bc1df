"""The oracle fixture itself: an answer survives the way through a golden file."""

import json

import numpy as np
import pytest

from tests.support.oracle import Oracle, decode, encode


@pytest.mark.parametrize(
    "value",
    [
        np.array([1.5, np.inf, -0.0, np.nan, 1e-45], np.float32),
        np.array([[0.1, 2 / 3]]),
        np.array(3, np.int64),
        np.zeros((0, 3), np.float16),
        np.array([True, False]),
        np.array([1 + 2j, complex(np.nan, -1)], np.complex64),
    ],
)
def test_arrays_survive(value):
    back = decode(json.loads(json.dumps(encode(value))))
    assert back.dtype == value.dtype
    assert back.shape == value.shape
    assert back.tobytes() == value.tobytes()


def test_nests_survive():
    value = {"a": [1, 2.5, "x", None, True], "b": {"z": 1j}}
    assert decode(json.loads(json.dumps(encode(value)))) == value


def test_torch_tensors_survive(torch):
    values = [torch.tensor([1.0, 0.1]).bfloat16(), torch.tensor([1j]).conj(), torch.arange(3, dtype=torch.int8)]
    back = decode(json.loads(json.dumps(encode(values))))
    assert [a.tolist() for a in back] == [v.tolist() for v in values]


def test_golden_answers_are_used_without_torch(monkeypatch):
    monkeypatch.setenv("RUSHLIGHT_NO_TORCH", "1")
    oracle = Oracle({"t/0": encode(np.arange(3))}, "t", write=False)
    assert oracle(None).tolist() == [0, 1, 2]
    with pytest.raises(pytest.skip.Exception):
        oracle(None)


def test_with_torch_the_question_is_asked(torch):
    store = {"t/0": encode(1)}
    assert Oracle(store, "t", write=True)(lambda torch: torch.ones(2).sum()).item() == 2
    assert decode(store["t/0"]).item() == 2
