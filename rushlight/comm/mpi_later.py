"""A stand-in for `mpi4py.MPI`, so that a library cannot initialize MPI too early.

MPI is initialized once in a process. Lightning checks for mpiexec by `MPI.COMM_WORLD.Get_size() > 1`. That would
initialize MPI in a world of one process, and `init_process_group` could not enter a larger world. Without mpiexec,
`rushlight run` therefore loads this stand-in: it has the rank and size of a world of one process, and loads MPI itself
for any other attribute."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from rushlight.comm.rendezvous import launched_by_mpi

NAME = "mpi4py.MPI"
_wanted: list[bool] = []  # if this list is not empty, MPI itself is loaded


def mpi() -> Any:
    """MPI itself, in place of the stand-in."""
    _wanted.append(True)
    if isinstance(sys.modules.get(NAME), Later):
        del sys.modules[NAME]
    return import_module(NAME)


class OneProcess:
    """`MPI.COMM_WORLD` of the stand-in."""

    rank, size = 0, 1

    def Get_rank(self) -> int:
        """0."""
        return 0

    def Get_size(self) -> int:
        """1."""
        return 1

    def __getattr__(self, name: str) -> Any:
        return getattr(mpi().COMM_WORLD, name)


class Later(ModuleType):
    """The stand-in."""

    COMM_WORLD = OneProcess()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__pyx_capi__":  # Python reads these of every module
            raise AttributeError(name)
        return getattr(mpi(), name)


class Loader:
    """Makes the stand-in."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module."""
        return Later(NAME)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to do."""


def spec(name: str) -> ModuleSpec | None:
    """The spec of the stand-in; None for other modules, and if MPI itself is to be loaded."""
    if name != NAME or _wanted or launched_by_mpi():
        return None
    return ModuleSpec(name, Loader())  # type: ignore[arg-type]
