"""Stores and worlds where processes cannot be forked and no open files are handed down, as on Windows."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rushlight.comm import tcp_store
from rushlight.comm.tcp_store import TCPStore
from tests.support.paths import ROOT

# What Windows lacks is taken away, before rushlight is loaded.
WINDOWS = """
import os, signal, subprocess, sys, multiprocessing
for name in ("fork", "register_at_fork", "sched_getaffinity", "getuid", "geteuid", "O_ASYNC", "forkpty"):
    delattr(os, name) if hasattr(os, name) else None
for name in ("SIGIO", "SIGKILL", "SIGHUP"):
    delattr(signal, name) if hasattr(signal, name) else None
for name in ("fcntl", "resource", "pwd"):
    sys.modules[name] = None
start = subprocess.Popen.__init__
def popen(self, *args, **settings):
    if settings.get("pass_fds") or settings.get("preexec_fn"):
        raise ValueError("not supported on Windows platforms")
    start(self, *args, **settings)
subprocess.Popen.__init__ = popen
multiprocessing.get_all_start_methods = lambda: ["spawn"]
import rushlight as torch
import rushlight.distributed as dist
"""
PROGRAM = """
store = dist.TCPStore("127.0.0.1", 0, is_master=True)
other = dist.TCPStore("127.0.0.1", store.port)
store.set("key", "value")
print(other.get("key"), other.add("count", 2))
try:
    dist.TCPStore("127.0.0.1", store.port, is_master=True)
except dist.DistNetworkError as error:
    print("address already in use" in str(error))
dist.init_process_group("gloo", rank=0, world_size=1)
dist.all_reduce(x := torch.ones(2))
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
model(torch.ones(1, 2)).sum().backward()
print(x.tolist(), model.module.bias.grad.tolist())
dist.destroy_process_group()
try:
    dist.FileStore(FILE, 1).set("a", "b")
except NotImplementedError as error:
    print("use TCPStore" in str(error))
try:
    dist.init_process_group("gloo", rank=0, world_size=2, init_method="tcp://127.0.0.1:1")
except RuntimeError as error:
    print("mpiexec -n 2 rushlight run program.py" in str(error))
from rushlight.comm.world import World, kept
kept(World(0, 2, None, None, dist.HashStore()))
from rushlight.distributed.agent import main
print(main(["--nproc-per-node", "1", SCRIPT]))
"""


def test_as_on_windows(tmp_path):
    script = tmp_path / "program.py"
    script.write_text("import torch; print(torch.ones(2).sum().item(), flush=True)")
    text = PROGRAM.replace("FILE", repr(str(tmp_path / "f"))).replace("SCRIPT", repr(str(script)))
    done = subprocess.run([sys.executable, "-c", WINDOWS + text], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["b'value' 2", "True", "[1.0, 1.0] [1.0]", "True", "True", "2.0", "0"]


def test_a_server_that_is_started_apart(monkeypatch):
    """It ends with what holds it."""
    monkeypatch.delattr("os.fork", raising=False)
    store = TCPStore("127.0.0.1", 0, is_master=True)
    server = tcp_store.SERVERS[-1]
    store.set("a", "b")
    assert store.get("a") == b"b"
    with pytest.raises(OSError, match="Address already in use"):
        tcp_store.start_apart(store.port)
    assert server.poll() is None
    store.connection.close()
    store.owner.close()
    assert server.wait(20) == 0
