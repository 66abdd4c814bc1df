"""Archives of models, for the fuzzer of files: good ones, and variants with right checksums."""

from __future__ import annotations

import io
import json
import pickle
import random
import struct
import zipfile
from typing import Any

import rushlight

CODE = "code/__torch__/m.py"
CLASS = """class M(Module):
  __parameters__ = ["w", ]
  __buffers__ = []
  w : Tensor
  training : bool
  def forward(self: __torch__.m.M,
    x: Tensor) -> Tensor:
{}
"""
GOOD = CLASS.format("    return torch.add(x, self.w)")


def text(value):
    return b"X" + struct.pack("<I", len(value)) + value.encode()


def number(value):
    return pickle.dumps(value, 2)[2:-1]


def tensor(key="0", offset=0, size=(2,), stride=(1,), elements=2, kind="FloatStorage"):
    """The pickle of a tensor."""
    storage = (
        b"("
        + text("storage")
        + b"ctorch\n"
        + kind.encode()
        + b"\n"
        + text(key)
        + text("cpu")
        + number(elements)
        + b"tQ"
    )
    return (
        b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + number(offset) + number(size) + number(stride)
        + b"\x89ccollections\nOrderedDict\n)RtR"
    )  # fmt: skip


def module(weight=None, name="__torch__.m\nM", more=b""):
    """The pickle of a module with a weight."""
    weight = tensor() if weight is None else weight
    return b"\x80\x02c" + name.encode() + b"\n)\x81}(" + text("w") + weight + text("training") + b"\x89" + more + b"ub."


def archive(code=GOOD, data=None, constants=b"\x80\x02).", folder="m/", **records):
    """The bytes of an archive."""
    file = io.BytesIO()
    parts = {
        "data.pkl": module() if data is None else data, "constants.pkl": constants, CODE: code,
        "data/0": struct.pack("<2f", 1, 2), "version": "3\n",
    } | records  # fmt: skip
    with zipfile.ZipFile(file, "w") as made:
        for name, content in parts.items():
            if content is not None:
                made.writestr(folder + name, content)
    return file.getvalue()


def exported() -> bytes:
    """A .pt2 archive."""
    rushlight.manual_seed(0)
    nn = rushlight.nn
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3)).eval()
    file = io.BytesIO()
    rushlight.export.save(rushlight.export.export(model, (rushlight.ones(2, 1, 4, 4),)), file)
    return file.getvalue()


def places(value: Any) -> list[tuple[Any, Any]]:
    """(container, key) of each part of a value of JSON."""
    found, todo = [], [value]
    while todo:
        at = todo.pop()
        if isinstance(at, (dict, list)):
            for key, part in at.items() if isinstance(at, dict) else enumerate(at):
                found.append((at, key))
                todo.append(part)
    return found


def json_variant(rng: random.Random, content: bytes, hostile: tuple[int, ...]) -> bytes:
    """JSON with some parts changed: hostile numbers, parts from elsewhere, parts that are twice or missing."""
    root = json.loads(content)
    for _ in range(rng.choice((1, 1, 2, 4))):
        every = places(root)
        at, key = rng.choice(every)
        other, there = rng.choice(every)
        values = [*hostile, "", "../x", "a" * 10**4, None, True, 1.5, [], {}, other[there], [other[there]] * 3]
        at[key] = json.loads(json.dumps(rng.choice(values)))
    return json.dumps(root).encode()


WORDS = (
    "torch.", "ops.prim.", "__torch__.", "self.", "x", "(", ")", "[", ",", "=", "\n", " ", "  ", ":", "if ", "while True:",
    "return ", "import os", "__class__", "CONSTANTS.c0", "0", "-", "None", "def f():", "class A:", "lambda: ",
)  # fmt: skip


def code_variant(rng: random.Random, content: bytes) -> bytes:
    """Code with some words put in, taken out, or moved."""
    text = content.decode()
    for _ in range(rng.choice((1, 1, 2, 4))):
        a, b = sorted(rng.randrange(len(text) + 1) for _ in range(2))
        b = min(b, a + rng.choice((0, 1, 10)))
        text = text[:a] + rng.choice(WORDS) + text[b:]
    return text.encode()
