"""The agent of a machine: it starts the machine's ranks, watches them, and ends all ranks when one fails. The agents of
several machines communicate through a store at the rendezvous endpoint."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from rushlight.comm.errors import DistError
from rushlight.comm.rendezvous import own_host
from rushlight.comm.store import HashStore, PrefixStore, Store
from rushlight.comm.tcp_store import TCPStore
from rushlight.distributed.launch_arguments import (
    DEFAULT_PORT,
    RENDEZVOUS_PORT,
    cores,
    nodes,
    parse,
    ranks_here,
    settings,
)

GRACE_SECONDS = 3.0  # time between SIGTERM and SIGKILL
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG of prctl


def free_port() -> int:
    with socket.create_server(("", 0)) as one:
        return one.getsockname()[1]


def die_with_parent() -> None:
    """Called in a rank before its program starts: the kernel then kills the rank if the agent dies."""
    import ctypes

    with suppress(OSError, AttributeError):  # no Linux
        ctypes.CDLL(None).prctl(DIES_WITH_PARENT, signal.SIGKILL)


def rank_variables(
    rank: int, size: int, local: int, here: int, node: int, nodes: int, role: str, host: str, port: int | str,
    job: str, restart: int, max_restarts: int,
) -> dict[str, str]:  # fmt: skip
    """The environment variables of a rank. `local`: its number among the `here` ranks of its machine; `node`: the
    number of the machine among all `nodes`; `host`, `port`: the address of rank 0."""
    variables = {
        "RANK": rank,
        "LOCAL_RANK": local,
        "WORLD_SIZE": size,
        "LOCAL_WORLD_SIZE": here,
        "GROUP_RANK": node,
        "GROUP_WORLD_SIZE": nodes,
        "ROLE_RANK": rank,
        "ROLE_WORLD_SIZE": size,
        "ROLE_NAME": role,
        "MASTER_ADDR": host,
        "MASTER_PORT": port,
        "TORCHELASTIC_RUN_ID": job,
        "TORCHELASTIC_RESTART_COUNT": restart,
        "TORCHELASTIC_MAX_RESTARTS": max_restarts,
        "TORCHELASTIC_USE_AGENT_STORE": "False",
    }
    return {name: str(value) for name, value in variables.items()}


class Agent:
    """The ranks of this machine."""

    def __init__(self, arguments: argparse.Namespace):
        self.arguments = arguments
        self.count, self.nodes = ranks_here(arguments.nproc_per_node), nodes(arguments.nnodes)
        self.node = arguments.node_rank or 0
        self.workers: list[subprocess.Popen] = []
        self.store: Store = HashStore()
        self.host, self.first, self.size = "127.0.0.1", 0, self.count
        if self.nodes > 1:
            self.meet()

    # -- several machines --------------------------------------------------------------------------

    def meet(self) -> None:
        """Exchange the numbers of ranks and the address of rank 0 with the agents of the other machines."""
        given = self.arguments
        endpoint = given.rdzv_endpoint or f"{given.master_addr}:{given.master_port or 0}"
        host, _, port = endpoint.partition(":")
        seconds = float(settings(given.rdzv_conf).get("timeout", 600))
        store, hosts_it = self.endpoint(host, int(port or 0) or RENDEZVOUS_PORT, seconds)
        store = PrefixStore(f"agents/{given.rdzv_id}", store)
        if given.node_rank is None:
            self.node = 0 if hosts_it else store.add("nodes", 1)
        store.set(f"ranks/{self.node}", str(self.count))
        if self.node == 0:
            store.set("host", own_host() if host in ("", "localhost", "127.0.0.1") else host)
        counts = [int(store.get(f"ranks/{i}")) for i in range(self.nodes)]
        self.first, self.size = sum(counts[: self.node]), sum(counts)
        self.host = store.get("host").decode()
        self.store = store

    def endpoint(self, host: str, port: int, seconds: float) -> tuple[Store, bool]:
        """(the agents' store, whether this agent serves it). The server is machine 0; without --node-rank, the machine
        with the given host."""
        timeout, node = timedelta(seconds=seconds), self.arguments.node_rank
        if node == 0 or (node is None and is_this_machine(host)):
            try:
                return TCPStore("127.0.0.1", port, is_master=True, timeout=timeout), True
            except DistError:
                if node == 0:
                    raise
        return TCPStore(host, port, timeout=timeout), False

    # -- one start of all ranks --------------------------------------------------------------------

    def run(self) -> int:
        """Run all ranks, with restarts. Returns the exit status: 0 if all ranks have succeeded."""
        status = 1
        for restart in range(self.arguments.max_restarts + 1):
            self.begin(restart)
            status = self.watch(restart)
            if status == 0 or restart == self.arguments.max_restarts:
                break
            print(f"rushlight launch: start {restart + 2} of all ranks", file=sys.stderr)
        return status

    def begin(self, restart: int) -> None:
        """Start the ranks of this machine."""
        given, key = self.arguments, f"{restart}/port"
        if self.node == 0:
            fixed = given.master_port if self.nodes == 1 else None
            if self.nodes == 1 and not given.standalone and fixed is None and free(DEFAULT_PORT):
                fixed = DEFAULT_PORT
            self.store.set(key, str(fixed or free_port()))
        port = self.store.get(key).decode()
        self.workers = [self.start(i, restart, port) for i in range(self.count)]

    def start(self, local: int, restart: int, port: str) -> subprocess.Popen:
        rank = self.first + local
        output: Any = None
        if self.arguments.log_dir:
            folder = Path(self.arguments.log_dir) / f"attempt_{restart}" / str(rank)
            folder.mkdir(parents=True, exist_ok=True)
            output = open(folder / "output.log", "wb")  # noqa: SIM115
        try:
            return subprocess.Popen(
                self.command(local),
                env=self.environment(local, restart, port),
                stdout=output,
                stderr=None if output is None else subprocess.STDOUT,
                preexec_fn=die_with_parent if hasattr(os, "fork") else None,
            )
        finally:
            if output is not None:
                output.close()

    def command(self, local: int) -> list[str]:
        given = self.arguments
        arguments = list(given.arguments)
        if not given.use_env:
            arguments.insert(0, f"--local-rank={local}")
        if given.no_python:
            return [given.program, *arguments]
        module = ["-m"] if given.module else []
        run = [sys.executable, "-u", "-m", "rushlight", "run"]
        return [*run, *module, given.program, *arguments]

    def environment(self, local: int, restart: int, port: str) -> dict[str, str]:
        threads, given = str(max(1, cores() // self.count)), self.arguments
        sizes = (self.first + local, self.size, local, self.count, self.node, self.nodes)
        about_job = (given.role, self.host, port, given.rdzv_id, restart, given.max_restarts)
        return {**dict.fromkeys(THREAD_VARIABLES, threads), **os.environ, **rank_variables(*sizes, *about_job)}

    def watch(self, restart: int) -> int:
        """Wait until all ranks of all machines have succeeded (0), or one has failed (1). Then end all ranks here."""
        failed, reported = f"{restart}/failed", False
        try:
            while True:
                states = [worker.poll() for worker in self.workers]
                bad = next((i for i, state in enumerate(states) if state), None)
                if bad is not None:
                    self.report(bad)
                    self.store.set(failed, str(self.first + bad))
                    return 1
                if self.store.check([failed]):
                    return 1
                if None not in states:
                    if not reported:
                        self.store.set(f"{restart}/done/{self.node}", "")
                        reported = True
                    if self.store.check([f"{restart}/done/{i}" for i in range(self.nodes)]):
                        return 0
                time.sleep(self.arguments.monitor_interval)
        except DistError as error:
            print(f"rushlight launch: the agents' store is gone: {error}", file=sys.stderr)
            return 1
        finally:
            self.end()

    def report(self, local: int) -> None:
        """Print which rank failed."""
        worker = self.workers[local]
        how = f"exit code {worker.returncode}"
        if worker.returncode < 0:
            how = f"signal {signal.Signals(-worker.returncode).name}"
        print(
            f"rushlight launch: rank {self.first + local} failed with {how} (pid {worker.pid}, host "
            f"{socket.gethostname()}); all ranks are ended",
            file=sys.stderr,
        )

    def end(self) -> None:
        """End the ranks of this machine that still run."""
        running = [worker for worker in self.workers if worker.poll() is None]
        for worker in running:
            worker.terminate()
        deadline = time.monotonic() + GRACE_SECONDS
        for worker in running:
            try:
                worker.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()


def free(port: int) -> bool:
    """Whether no process listens at a port."""
    try:
        socket.create_server(("", port)).close()
    except OSError:
        return False
    return True


def is_this_machine(host: str) -> bool:
    """Whether a host name or address belongs to this machine."""
    if host in ("", "localhost", "127.0.0.1", socket.gethostname(), socket.getfqdn()):
        return True
    try:
        with socket.create_server((socket.gethostbyname(host), 0)):
            return True
    except OSError:
        return False


def launch(arguments: argparse.Namespace) -> int:
    """Run the ranks of this machine. Returns the exit status."""

    def stop(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    agent = Agent(arguments)
    try:
        return agent.run()
    except KeyboardInterrupt:
        agent.end()
        return 130


def main(arguments: Sequence[str] | None = None) -> int:
    """torchrun."""
    return launch(parse(arguments))
