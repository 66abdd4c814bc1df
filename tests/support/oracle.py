"""`oracle(lambda torch: ...)`: torch's answer, from torch itself or from a golden file."""

from __future__ import annotations

import os
import re

import numpy as np
import pytest


def torch_or_none():
    """torch, or None where it is missing or RUSHLIGHT_NO_TORCH is set (to try the golden files)."""
    if os.environ.get("RUSHLIGHT_NO_TORCH"):
        return None
    try:
        import torch
    except ImportError:
        return None
    return torch


def encode(value):
    """Tensors, arrays, numbers, text and nests of them -> JSON. Floats go as text with all their digits."""
    if hasattr(value, "detach"):
        return encode_tensor(value)
    if isinstance(value, np.ndarray):
        return {"dtype": value.dtype.name, "shape": list(value.shape), "data": flat(value)}
    if isinstance(value, dict):
        return {"dict": {k: encode(v) for k, v in value.items()}}
    if isinstance(value, (list, tuple)):
        return {"list": [encode(v) for v in value]}
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"oracle: cannot write {type(value).__name__} to a golden file; return tensors, numbers or text")


def encode_tensor(tensor):
    tensor = tensor.detach().resolve_conj().resolve_neg()
    name = str(tensor.dtype).removeprefix("torch.")
    array = (tensor.float() if name == "bfloat16" else tensor).numpy()
    return {"dtype": name, "shape": list(array.shape), "data": flat(array)}


def flat(array):
    if array.dtype.kind == "c":
        return [[z.real, z.imag] for z in array.ravel().tolist()]
    if array.dtype == np.float32:
        return [float(str(x)) for x in array.ravel()]  # the fewest digits that name it: half as many
    return array.ravel().tolist()


def decode(value):
    """The inverse: tensors come back as NumPy arrays (bfloat16 as float32 with the same values)."""
    if isinstance(value, dict):
        if "dtype" in value:
            name = {"bfloat16": "float32"}.get(value["dtype"], value["dtype"])
            data = [complex(*z) for z in value["data"]] if name.startswith("complex") else value["data"]
            return np.array(data, dtype=name).reshape(value["shape"])
        if "complex" in value:
            return complex(*value["complex"])
        if "list" in value:
            return [decode(v) for v in value["list"]]
        return {k: decode(v) for k, v in value["dict"].items()}
    return value


PRINTED = re.compile(r" *-?\d+\.\d*(?:e[-+]?\d+)?")  # a number with a point, and the spaces that align it


def outline(value):
    """What of an encoded answer is the same on every machine: all but the digits of its numbers."""
    if isinstance(value, float):
        return "a float"
    if isinstance(value, str):  # what a program printed; another processor rounds otherwise
        return PRINTED.sub(" #", value)
    if isinstance(value, (list, tuple)):
        return [outline(v) for v in value]
    if isinstance(value, dict):
        return {k: v if k in ("dtype", "shape") else None if k == "data" else outline(v) for k, v in value.items()}
    return value


class Oracle:
    """`oracle(lambda torch: ...)` -> the answer as NumPy arrays, numbers or text, in lists and dicts.

    With torch the function runs; without it the answer is read from tests/golden/<path of the file>.json, under the
    test's name and the call's place in the test. So a test asks its questions in a fixed order."""

    def __init__(self, store, test, write):
        self.store, self.test, self.write, self.calls = store, test, write, 0

    def __call__(self, ask):
        key = f"{self.test}/{self.calls}"
        self.calls += 1
        torch = torch_or_none()
        if torch is None:
            if key not in self.store:
                pytest.skip("torch is not installed and no golden answer was written (`make golden`)")
            return decode(self.store[key])
        answer = encode(ask(torch))
        if self.write:
            self.store[key] = answer
        else:
            assert outline(self.store.get(key)) == outline(answer), (
                f"{key}: no golden answer, or an old one (`make golden`)"
            )
        return decode(answer)
