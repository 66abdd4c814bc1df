"""Pickles that torch wrote are read."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

READ = """
import rushlight.compat, pickle, sys
rushlight.compat.install()
import torch
for file in sys.argv[1:]:
    found = pickle.load(open(file, "rb")) if file.endswith("pkl") else torch.load(file, weights_only=False)
    print(*(repr(part) for part in found), sep="\\n")
"""


@pytest.mark.origin("courses")
def test_pickles_that_torch_wrote(torch, tmp_path):
    nn, x = torch.nn, torch.arange(6.0).reshape(2, 3)
    model = nn.Sequential(
        nn.Conv2d(1, 2, 3),
        nn.BatchNorm2d(2),
        nn.ReLU(inplace=True),
        nn.LeakyReLU(0.2),
        nn.Flatten(),
        nn.Linear(8, 2),
        nn.Dropout(0.3),
        nn.Softmax(dim=1),
    )
    parts = [
        x.t(),
        x[1],
        x.half(),
        torch.tensor(True),
        torch.zeros(0, 3),
        x.to_sparse(),
        nn.Parameter(x),
        {"weight": x.bfloat16()},
        torch.Size([2]),
        torch.float64,
        model,
    ]
    for protocol in (2, 4):
        (tmp_path / f"{protocol}.pkl").write_bytes(pickle.dumps(parts, protocol))
    torch.save(parts[-1:], tmp_path / "whole.pt")
    files = sorted(tmp_path.iterdir())
    done = subprocess.run(
        [sys.executable, "-c", READ, *map(str, files)], capture_output=True, text=True, timeout=600, check=False
    )
    text = "\n".join(repr(part) for part in parts)
    assert done.stdout == f"{text}\n{text}\n{model!r}\n", done.stderr
