"""The arguments of torchrun and `rushlight launch`."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

DESCRIPTION = """\
Start a program as several processes, the ranks of one world, on this machine or on
several: one call on each. The program is written for torch, or for rushlight; it
calls torch.distributed.init_process_group(). If one rank fails, all are
stopped and restarted, at most --max-restarts times.

  rushlight launch --nproc-per-node 4 train.py --epochs 3
  rushlight launch --nnodes 2 --node-rank 0 --rdzv-endpoint host0:29400 train.py
"""
DEFAULT_PORT = 29500  # the port for ranks on a single machine
RENDEZVOUS_PORT = 29400


def both(name: str) -> list[str]:
    """Both spellings of an option: with - and with _."""
    return [f"--{name}", "--" + name.replace("-", "_")]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add torchrun's options."""
    add = parser.add_argument
    add(*both("nproc-per-node"), default="1", metavar="N", help="ranks on this machine, or auto")
    add("--nnodes", default="1", metavar="N", help="machines")
    add(*both("node-rank"), type=int, default=None, metavar="I", help="number of this machine")
    add(*both("rdzv-endpoint"), default="", metavar="HOST:PORT", help="where machines meet")
    add(*both("rdzv-backend"), default="static", metavar="NAME", help="static or c10d: the same here")
    add(*both("rdzv-id"), default="none", metavar="ID", help="a name of the job")
    add(*both("rdzv-conf"), default="", metavar="timeout=SECONDS", help="how long machines wait for each other")
    add("--standalone", action="store_true", help="this machine alone, on a free port")
    add(*both("master-addr"), default="127.0.0.1", metavar="HOST", help="the host of rank 0")
    add(*both("master-port"), type=int, default=None, metavar="PORT", help="a port of that host")
    add(*both("max-restarts"), type=int, default=0, metavar="N", help="starts after a failure")
    add(
        *both("monitor-interval"),
        type=float,
        default=0.1,
        metavar="SECONDS",
        help="time between two looks at the ranks",
    )
    add(*both("log-dir"), default=None, metavar="DIR", help="write outputs of ranks to files there")
    add(*both("start-method"), default="spawn", metavar="NAME", help="accepted for torchrun compatibility; ignored")
    add("--role", default="default", metavar="NAME", help="accepted for torchrun compatibility; ignored")
    add("-m", "--module", action="store_true", help="the program is a module")
    add(*both("no-python"), action="store_true", help="the program is a command")
    add(*both("run-path"), action="store_true", help="accepted for torchrun compatibility; ignored")
    add(*both("use-env"), action="store_true", default=True, help=argparse.SUPPRESS)
    for name in ("redirects", "tee", "local-ranks-filter", "local-addr", "logs-specs"):
        add(*both(name), default=None, help=argparse.SUPPRESS)
    add("-r", dest="redirects", help=argparse.SUPPRESS)
    add("-t", dest="tee", help=argparse.SUPPRESS)
    add("program", help="a script, a module or a command")
    add("arguments", nargs=argparse.REMAINDER, help="arguments of the program, its sys.argv")


def ranks_here(text: str) -> int:
    """The number of ranks from --nproc-per-node; auto, cpu and gpu: the number of cores."""
    return cores() if text in ("auto", "cpu", "gpu") else int(text)


def cores() -> int:
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def nodes(text: str) -> int:
    """The number of machines; of MIN:MAX, the maximum."""
    return int(text.split(":")[-1])


def settings(text: str) -> dict[str, str]:
    """{"timeout": "900"} of "timeout=900"."""
    return dict(part.split("=", 1) for part in text.split(",") if "=" in part)


def parse(arguments: Sequence[str] | None, use_env: bool = True) -> argparse.Namespace:
    """The parsed arguments. `use_env`: the program reads its rank on this machine from LOCAL_RANK; otherwise
    --local-rank=I is its first argument, unless --use-env is given."""
    parser = argparse.ArgumentParser(
        prog="torchrun",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add_arguments(parser)
    parser.set_defaults(use_env=use_env)
    return parser.parse_args(arguments)
