"""The agent of a machine: it starts the machine's ranks, watches them, and ends all when one fails. The agents of
several machines meet in a store at the rendezvous endpoint."""

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

GRACE_SECONDS = 3.0  # between SIGTERM and SIGKILL
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG of prctl


def free_port() -> int:
    with socket.create_server(("", 0)) as one:
        return one.getsockname()[1]


def die_with_parent() -> None:
    """In a rank before its program: the kernel ends it if the agent is killed."""
    import ctypes

    with suppress(OSError, AttributeError):  # no Linux
        ctypes.CDLL(None).prctl(DIES_WITH_PARENT, signal.SIGKILL)


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
        """Meet the agents of the other machines: which ranks are here, and where rank 0 is."""
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
        """(the agents' store, whether this agent is the server). Machine 0 is the server, or the machine of the given
        host."""
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
        """The exit status: 0 if all ranks have ended well, after some restarts or none."""
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
        threads = str(max(1, cores() // self.count))
        return {
            **dict.fromkeys(THREAD_VARIABLES, threads),
            **os.environ,
            "RANK": str(self.first + local),
            "LOCAL_RANK": str(local),
            "WORLD_SIZE": str(self.size),
            "LOCAL_WORLD_SIZE": str(self.count),
            "GROUP_RANK": str(self.node),
            "GROUP_WORLD_SIZE": str(self.nodes),
            "ROLE_RANK": str(self.first + local),
            "ROLE_WORLD_SIZE": str(self.size),
            "ROLE_NAME": self.arguments.role,
            "MASTER_ADDR": self.host,
            "MASTER_PORT": port,
            "TORCHELASTIC_RUN_ID": self.arguments.rdzv_id,
            "TORCHELASTIC_RESTART_COUNT": str(restart),
            "TORCHELASTIC_MAX_RESTARTS": str(self.arguments.max_restarts),
            "TORCHELASTIC_USE_AGENT_STORE": "False",
        }

    def watch(self, restart: int) -> int:
        """Wait until all ranks of all machines have ended, or one has failed: then end all."""
        failed, told = f"{restart}/failed", False
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
                    if not told:
                        self.store.set(f"{restart}/done/{self.node}", "")
                        told = True
                    if self.store.check([f"{restart}/done/{i}" for i in range(self.nodes)]):
                        return 0
                time.sleep(self.arguments.monitor_interval)
        except DistError as error:
            print(f"rushlight launch: the agents' store is gone: {error}", file=sys.stderr)
            return 1
        finally:
            self.end()

    def report(self, local: int) -> None:
        """Report the rank that failed first."""
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
    """Whether a host's name or address is of this machine."""
    if host in ("", "localhost", "127.0.0.1", socket.gethostname(), socket.getfqdn()):
        return True
    try:
        with socket.create_server((socket.gethostbyname(host), 0)):
            return True
    except OSError:
        return False


def launch(arguments: argparse.Namespace) -> int:
    """Start the ranks of this machine: the exit status."""

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
