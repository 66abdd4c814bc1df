"""torch.distributed.launcher.api: `elastic_launch(config, entrypoint)(*args)` starts ranks on this machine. Each rank
calls a function or runs a program."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from typing import Any

from rushlight.base.errors import not_implemented_error
from rushlight.distributed.agent import free_port, rank_variables
from rushlight.distributed.elastic.multiprocessing.errors import ChildFailedError
from rushlight.utils.processes import get_context


@dataclass
class LaunchConfig:
    """The settings of `elastic_launch`: it starts `nproc_per_node` ranks on this machine. NotImplementedError for
    several machines (use `rushlight launch`)."""

    min_nodes: int
    max_nodes: int
    nproc_per_node: int
    logs_specs: Any = None
    run_id: str = ""
    role: str = "default_role"
    rdzv_endpoint: str = ""
    rdzv_backend: str = "etcd"
    rdzv_configs: dict[str, Any] = field(default_factory=dict)
    rdzv_timeout: int = -1
    max_restarts: int = 3
    monitor_interval: float = 0.1
    start_method: str = "spawn"
    log_line_prefix_template: str | None = None
    metrics_cfg: dict[str, str] = field(default_factory=dict)
    local_addr: str | None = None

    def __post_init__(self) -> None:
        if self.max_nodes != 1:
            raise not_implemented_error(
                f"elastic_launch starts ranks on one machine, not on {self.max_nodes}", "rushlight launch --nnodes ..."
            )

    def variables(self, rank: int, port: int, restart: int) -> dict[str, str]:
        """The environment variables of a rank."""
        size, job = self.nproc_per_node, self.run_id or "none"
        about_job = (self.role, "127.0.0.1", port, job, restart, self.max_restarts)
        return rank_variables(rank, size, rank, size, 0, 1, *about_job)


class elastic_launch:
    """elastic_launch(config, entrypoint)(*args) = {rank: entrypoint(*args)}; each call runs in a separate process.
    `entrypoint`: a function, or the path of a program. ChildFailedError after `config.max_restarts` restarts.
    """

    def __init__(self, config: LaunchConfig, entrypoint: Callable | str | None):
        self.config, self.entrypoint = config, entrypoint

    def __call__(self, *args: Any) -> dict[int, Any]:
        return launch_agent(self.config, self.entrypoint, list(args))


def launch_agent(config: LaunchConfig, entrypoint: Callable | str | None, args: list[Any]) -> dict[int, Any]:
    """Start the ranks, and wait for their results."""
    start = call_function if callable(entrypoint) else run_program
    restart = 0
    while True:
        try:
            return start(config, entrypoint, args, free_port(), restart)
        except ChildFailedError:
            restart += 1
            if restart > config.max_restarts:
                raise


def rank_main(pipe: Any, variables: dict[str, str], function: Callable, args: list[Any]) -> None:
    """The process of a rank."""
    os.environ.update(variables)
    pipe.send(function(*args))


def call_function(config: LaunchConfig, function: Any, args: list[Any], port: int, restart: int) -> dict[int, Any]:
    """{rank: function(*args)}; each call runs in a separate process."""
    context: Any = get_context(config.start_method)
    started, results = {}, {}
    for rank in range(config.nproc_per_node):
        ours, theirs = context.Pipe(duplex=False)
        settings = (theirs, config.variables(rank, port, restart), function, args)
        process = context.Process(target=rank_main, args=settings)
        process.start()
        theirs.close()
        started[rank] = process, ours
    waiting = {pipe: rank for rank, (_, pipe) in started.items()}
    try:
        while waiting:
            pipe: Any
            for pipe in wait(list(waiting)):
                rank = waiting.pop(pipe)
                try:
                    results[rank] = pipe.recv()
                except EOFError:
                    started[rank][0].join()
                    raise failed(function, rank, started[rank][0].exitcode) from None
        return results
    finally:
        for process, _ in started.values():
            if waiting:
                process.terminate()
            process.join()


def run_program(config: LaunchConfig, program: Any, args: list[Any], port: int, restart: int) -> dict[int, Any]:
    """Run a program as each rank: {rank: None}."""
    command = [program or sys.executable, *map(str, args)]
    ranks = [
        subprocess.Popen(command, env={**os.environ, **config.variables(rank, port, restart)})
        for rank in range(config.nproc_per_node)
    ]
    try:
        for rank, process in enumerate(ranks):
            if process.wait():
                raise failed(program, rank, process.returncode)
    finally:
        for process in ranks:
            process.terminate()
            process.wait()
    return dict.fromkeys(range(config.nproc_per_node))


def failed(entrypoint: Any, rank: int, code: int | None) -> ChildFailedError:
    """The error of a rank that has failed."""
    name = getattr(entrypoint, "__qualname__", str(entrypoint))
    return ChildFailedError(name, {rank: code})


__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]
