"""How the processes of a job find each other: rank, number of ranks, and the job server's host and port, from torch's
init_method.

- `env://`: RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, which torchrun and `rushlight launch`
  set;
- `tcp://host:port`, and `file://path`, a path that all processes can reach;
- under mpiexec or srun, MPI itself (world.py)."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlparse

from rushlight.base.errors import runtime_error, value_error
from rushlight.comm.store import FileStore, Store
from rushlight.comm.tcp_store import start_server, taken

# Set by MPI's own launchers: MPICH and Intel, PMIx (Open MPI 5, srun), Open MPI, MVAPICH.
LAUNCHED_BY_MPI = ("PMI_RANK", "PMI_FD", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK")


@dataclass
class Place:
    """The place of a process in its job."""

    rank: int
    size: int
    host: str
    port: int
    owner: Any = None  # keeps the server alive, if this process has started it
    here: int = 1  # the number of ranks on this machine


def launched_by_mpi(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether mpiexec or srun has started this process."""
    return any(name in environment for name in LAUNCHED_BY_MPI)


def from_environment(name: str) -> str:
    """The value of a variable that torchrun sets. ValueError if it is not set."""
    if name not in os.environ:
        raise value_error(
            f"Error initializing torch.distributed using env:// rendezvous: environment variable {name} expected, "
            "but not set",
            "start with `rushlight launch` or mpiexec, or give rank=0, world_size=1",
        )
    return os.environ[name]


def rank_and_size(init_method: str | None, rank: int, size: int) -> tuple[int, int]:
    """(rank, size). -1 stands for the value in the URL, or else in RANK and WORLD_SIZE."""
    query = parse_qs(urlparse(init_method or "").query)
    if size == -1:
        size = int(query["world_size"][0] if "world_size" in query else from_environment("WORLD_SIZE"))
    if rank == -1:
        rank = int(query["rank"][0] if "rank" in query else from_environment("RANK"))
    if not 0 <= rank < size:
        raise value_error(f"rank {rank} is not in the range of world_size {size}")
    return rank, size


def find(init_method: str | None, store: Store | None, rank: int, size: int, timeout: timedelta) -> Place:
    """This process's place, with the address of the job's server. Rank 0 starts the server."""
    if store is not None:
        return by_store(store, rank, size)
    url = urlparse(init_method or "env://")
    if url.scheme == "file":
        path = FileStore(url.netloc + url.path, size)
        path.set_timeout(timeout)
        return by_store(path, rank, size, "rushlight/server/" + url.query)
    if url.scheme == "tcp":
        host, port = url.hostname or "127.0.0.1", url.port or 0
    elif url.scheme == "env":
        host, port = from_environment("MASTER_ADDR"), int(from_environment("MASTER_PORT"))
        # torch's torchrun has its own store at MASTER_PORT
        port += os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    else:
        raise runtime_error(f"No rendezvous handler for {url.scheme}://")
    return at(rank, size, host, port)


def at(rank: int, size: int, host: str, port: int) -> Place:
    """The place, if the server has a known port."""
    if rank:
        return Place(rank, size, host, port)
    try:
        port, owner = start_server(port)
    except OSError:
        raise taken(port) from None
    return Place(rank, size, host, port, owner)


def by_store(store: Store, rank: int, size: int, key: str = "rushlight/server") -> Place:
    """The place, if the server has a free port, which rank 0 writes into a store."""
    if rank:
        host, text = store.get(key).decode().rsplit(":", 1)
        return Place(rank, size, host, int(text))
    port, owner = start_server(0)
    host = own_host()
    store.set(key, f"{host}:{port}")
    return Place(rank, size, host, port, owner)


def own_host() -> str:
    """The host name of this machine if it can be resolved, otherwise 127.0.0.1."""
    name = socket.gethostname()
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        return "127.0.0.1"
    return name
