"""Libraries that start ranks themselves train with two processes, under `rushlight run`. The numbers are those of torch
2.13 with gloo."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

from tests.support.paths import ROOT
from tests.support.ranks import needs_mpi

TELL = """
import os
def tell(*values):
    os.write(1, (" ".join(map(str, ("RESULT", *values))) + "\\n").encode())  # in one piece
"""
LIGHTNING = """
import sys, torch, lightning as L
from torch.utils.data import DataLoader, TensorDataset

class Module(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    def training_step(self, batch, i):
        loss = torch.nn.functional.mse_loss(self.net(batch[0]), batch[1])
        self.log("loss", loss, sync_dist=True)
        return loss
    def validation_step(self, batch, i):
        self.log("val", torch.nn.functional.mse_loss(self.net(batch[0]), batch[1]), sync_dist=True)
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

if __name__ == "__main__":
    L.seed_everything(0, verbose=False)
    x = torch.randn(32, 4)
    loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), 4)
    model = Module()
    quiet = dict(enable_progress_bar=False, logger=False, enable_checkpointing=False, enable_model_summary=False)
    trainer = L.Trainer(max_epochs=3, accelerator="cpu", devices=2, strategy=STRATEGY, **quiet)
    trainer.fit(model, loader, loader)
    sums = [round(p.double().sum().item(), 4) for p in model.parameters()]
    tell(trainer.world_size, sums, round(float(trainer.callback_metrics["val"]), 5))
"""
ACCELERATE = """
import torch
from accelerate import Accelerator, notebook_launcher
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset

def train():
    accelerator = Accelerator(cpu=True)
    set_seed(0)
    x = torch.randn(32, 4)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), 4)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for _ in range(3):
        for a, b in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(a), b)
            accelerator.backward(loss)
            optimizer.step()
    losses = [round(v, 5) for v in accelerator.gather(loss.detach().reshape(1)).tolist()]
    sums = [round(p.double().sum().item(), 4) for p in model.parameters()]
    tell(accelerator.num_processes, sums, losses)

if __name__ == "__main__":
    notebook_launcher(train, (), num_processes=2)
"""


def run(tmp_path, text):
    """The lines RESULT that the program's processes print."""
    program = tmp_path / "program.py"
    program.write_text(TELL + text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "rushlight", "run", str(program)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return sorted(line for line in done.stdout.splitlines() if line.startswith("RESULT"))


def needs(library):
    return pytest.mark.skipif(find_spec(library) is None, reason=f"{library} is not installed")


@needs_mpi
@needs("lightning")
@pytest.mark.parametrize(("strategy", "printed"), [("ddp", 2), ("ddp_spawn", 1)])
def test_lightning(tmp_path, strategy, printed):
    lines = run(tmp_path, LIGHTNING.replace("STRATEGY", repr(strategy)))
    assert lines == ["RESULT 2 [-1.6345, -1.0751, -1.1229, 0.1352] 0.13072"] * printed


@needs_mpi
@needs("accelerate")
def test_accelerate(tmp_path):
    lines = run(tmp_path, ACCELERATE)
    assert lines == ["RESULT 2 [-1.4869, -1.0455, -1.0246, 0.113] [0.37116, 0.04466]"] * 2
