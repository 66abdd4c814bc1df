"""What programs of courses, books and collections of examples do and no other test did: each was once a crash."""
from __future__ import annotations

import importlib
import pickle
import subprocess
import sys

import pytest

PARTS = ["_C", "_dynamo.config", "_inductor.config", "_subclasses.fake_tensor", "backends.cuda", "backends.cudnn",
         "backends.mps", "cpu.amp.autocast_mode", "cuda.amp.grad_scaler", "distributed.constants",
         "distributed.fsdp.fully_sharded_data_parallel", "distributed.nn.functional", "jit.annotations",
         "utils.data._utils.collate", "utils.tensorboard.writer"]


@pytest.mark.parametrize("name", PARTS)
def test_what_is_a_module_in_torch_can_be_imported(name):
    parent, _, own = name.rpartition(".")
    part = importlib.import_module(f"rushlight.{name}")
    assert part is getattr(importlib.import_module(f"rushlight.{parent}".rstrip(".")), own)


# a stand-in for torch of somebody else's: each module of torch is the one of that name in rushlight
ALIAS = """
import importlib, importlib.util, sys

class Loader:
    def __init__(self, name): self.name = name
    def create_module(self, spec): return importlib.import_module("rushlight" + self.name)
    def exec_module(self, module): pass

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            return importlib.util.spec_from_loader(name, Loader(name[len("torch"):]))

sys.meta_path.insert(0, Finder())
import torch.backends.cudnn as cudnn, torch._inductor.config as settings, torch._dynamo.config
from torch.utils.data._utils.collate import default_collate
cudnn.benchmark = settings.coordinate_descent_tuning = True
print(torch.backends.cudnn.benchmark, torch._inductor.config.coordinate_descent_tuning)
"""


def test_parts_are_found_under_an_alias():
    done = subprocess.run([sys.executable, "-c", ALIAS], capture_output=True, text=True, timeout=600, check=False)
    assert done.stdout == "True True\n", done.stderr


READ = """
import rushlight.compat, pickle, sys
rushlight.compat.install()
import torch
for file in sys.argv[1:]:
    found = pickle.load(open(file, "rb")) if file.endswith("pkl") else torch.load(file, weights_only=False)
    print(*(repr(part) for part in found), sep="\\n")
"""


def test_pickles_that_torch_wrote(torch, tmp_path):
    nn, x = torch.nn, torch.arange(6.0).reshape(2, 3)
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(inplace=True), nn.LeakyReLU(0.2), nn.Flatten(),
                          nn.Linear(8, 2), nn.Dropout(0.3), nn.Softmax(dim=1))
    parts = [x.t(), x[1], x.half(), torch.tensor(True), torch.zeros(0, 3), x.to_sparse(), nn.Parameter(x),
             {"weight": x.bfloat16()}, torch.Size([2]), torch.float64, model]
    for protocol in (2, 4):
        (tmp_path / f"{protocol}.pkl").write_bytes(pickle.dumps(parts, protocol))
    torch.save(parts[-1:], tmp_path / "whole.pt")
    files = sorted(tmp_path.iterdir())
    done = subprocess.run([sys.executable, "-c", READ, *map(str, files)], capture_output=True, text=True, timeout=600,
                          check=False)
    text = "\n".join(repr(part) for part in parts)
    assert done.stdout == f"{text}\n{text}\n{model!r}\n", done.stderr
