"""Loads mpi4py so that MPI is initialized once, and not finalized by mpi4py at exit."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from rushlight.base.errors import explain, runtime_error
from rushlight.comm.errors import DistBackendError
from rushlight.comm.mpi_later import mpi

if TYPE_CHECKING:
    from rushlight.comm.tcp_store import Connection

PMI_VARIABLES = ("PMI_PORT", "PMI_ID", "PMI_RANK", "PMI_SIZE")
FORWARD_SECONDS = 0.3  # mpiexec forwards the traceback before it ends all ranks
SHARED_MEMORY = "/dev/shm/mpich_shm_"


def load() -> Any:
    """mpi4py.MPI, with MPI initialized. ImportError with a hint if mpi4py is missing."""
    try:
        import mpi4py
    except ImportError as error:
        raise ImportError(
            explain(
                f"a world of several processes needs MPI: {error}",
                "pip install mpi4py mpich, or on a cluster mpi4py for its own MPI",
            )
        ) from None
    mpi4py.rc.finalize = False
    return mpi()


@contextmanager
def ended_by(watch: Connection) -> Iterator[None]:
    """Inside, end this process as soon as the server reports over the connection that a rank was lost. MPI_Init would
    wait for the lost rank for ever. It holds Python's GIL, so no thread can watch the connection: the kernel's signal
    SIGIO ends the process."""
    if not hasattr(signal, "SIGIO") or not hasattr(os, "O_ASYNC"):
        yield
        return
    import faulthandler
    import fcntl

    faulthandler.register(signal.SIGIO, chain=True)  # prints the traceback
    sock = watch.sock
    flags = fcntl.fcntl(sock, fcntl.F_GETFL)
    fcntl.fcntl(sock, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(sock, fcntl.F_SETFL, flags | os.O_ASYNC)
    try:
        if watch.receive(0.0) is not None:  # the report came before SIGIO was enabled
            raise DistBackendError("a rank was lost while MPI started")
        yield
    finally:
        fcntl.fcntl(sock, fcntl.F_SETFL, flags)
        faulthandler.unregister(signal.SIGIO)


def load_without_launcher(rank: int, size: int, address: str, watch: Connection) -> Any:
    """MPI for processes that were not started by mpiexec: the server at `address` replaces mpiexec. The PMI variables
    are removed again, so that child processes do not become ranks of this world."""
    values = (address, str(rank), str(rank), str(size))
    os.environ.update(zip(PMI_VARIABLES, values))
    try:
        with ended_by(watch):
            MPI = load()
    finally:
        for name in PMI_VARIABLES:
            os.environ.pop(name, None)
    if MPI.COMM_WORLD.size != size:
        library = MPI.Get_library_version().splitlines()[0]
        raise runtime_error(
            f"MPI has made a world of {MPI.COMM_WORLD.size} processes and not of {size}: {library}",
            "start with mpiexec; or `pip install mpich`, whose MPI needs no mpiexec",
        )
    return MPI


def forget_shared_memory() -> None:
    """Remove the names of MPICH's shared memory once all ranks of this machine have opened it. The kernel then frees
    the memory when the last rank ends, even if it is killed."""
    try:
        with open("/proc/self/maps") as maps:
            names = {line.split()[-1] for line in maps if SHARED_MEMORY in line}
    except OSError:  # no Linux
        return
    for name in names:
        with suppress(OSError):
            os.unlink(name)


def finalize_at_exit(MPI: Any) -> None:
    """Call MPI_Finalize at exit: under mpiexec, a rank without it counts as failed. A failed rank ends all ranks."""
    hook = sys.excepthook
    failed = []

    def on_exception(*about: Any) -> None:
        failed.append(about)
        hook(*about)

    def at_exit() -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        if failed:
            time.sleep(FORWARD_SECONDS)
            MPI.COMM_WORLD.Abort(1)
        elif not MPI.Is_finalized():
            MPI.Finalize()

    sys.excepthook = on_exception
    atexit.register(at_exit)
