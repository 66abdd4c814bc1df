"""What programs of courses, books and collections of examples do and no other test did: each was once a crash."""
from __future__ import annotations

import importlib
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
