"""A program that trains, saves and loads in a Python without what some machines lack: modules of Python's own that need
a library (ssl, sqlite3, lzma, bz2, readline, ctypes), or POSIX (resource, fcntl, fork), or processes.
tests/test_import.py runs the program in a fresh interpreter."""

from __future__ import annotations

import importlib.abc
import os
import signal
import socket
import sys
import tempfile
import warnings

LACKING = set(
    """
    resource fcntl termios pwd grp _posixshmem multiprocessing.shared_memory _multiprocessing readline
    ssl _ssl sqlite3 _sqlite3 lzma _lzma bz2 _bz2 ctypes _ctypes curses tkinter
""".split()
)
ATTRIBUTES = {
    os: "fork forkpty register_at_fork sched_getaffinity O_ASYNC memfd_create killpg getuid fchmod",
    signal: "SIGIO SIGALRM SIGUSR1 setitimer alarm ITIMER_VIRTUAL ITIMER_REAL pthread_sigmask",
    socket: "AF_UNIX",
}


class Absent(importlib.abc.MetaPathFinder):
    """The modules of LACKING cannot be found."""

    def find_spec(self, name, path=None, target=None):
        if name in LACKING:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Absent())
for name in LACKING:
    sys.modules.pop(name, None)
for place, names in ATTRIBUTES.items():
    for name in names.split():
        if hasattr(place, name):
            delattr(place, name)

import rushlight as torch  # noqa: E402
from rushlight import nn  # noqa: E402
from rushlight.utils.data import DataLoader, TensorDataset  # noqa: E402

torch.manual_seed(0)
torch.set_num_threads(1)
data = TensorDataset(torch.rand(64, 3, 8, 8), torch.randint(0, 4, (64,)))
conv = [nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten()]
model = nn.Sequential(*conv, nn.Dropout(0.1), nn.Linear(144, 4))
optimizer = torch.optim.AdamW(model.parameters(), 0.01)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.01, total_steps=100)
losses = []
for _ in range(3):
    for x, y in DataLoader(data, 16, shuffle=True):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
assert losses[-1] < losses[0], losses

with tempfile.TemporaryDirectory() as folder:
    for zipped in (True, False):
        path = os.path.join(folder, "model.pt")
        torch.save(model.state_dict(), path, _use_new_zipfile_serialization=zipped)
        model.load_state_dict(torch.load(path))

compiled = torch.compile(model)
for _ in range(4):  # recorded, checked, replayed
    compiled(data.tensors[0]).sum().backward()
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    assert len(list(DataLoader(data, 16, num_workers=2))) == 4
assert any("num_workers" in str(w.message) for w in seen), [str(w.message) for w in seen]
torch.ones(3).share_memory_()
torch.linalg.svd(torch.rand(4, 4))
torch.fft.fft(torch.rand(8))
nn.LSTM(3, 4)(torch.rand(2, 1, 3))
torch.distributions.Normal(0.0, 1.0).sample((3,))
print(repr(torch.func.vmap(torch.func.grad(lambda v: v.sin().sum()))(torch.ones(2, 1)).shape))
