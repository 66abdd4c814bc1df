"""The world of this process: its rank among all processes of the job, their MPI communicator, the connection over which
the server reports ranks that have left, and the job's store.

A process has one world as long as it lives, since MPI cannot be initialized twice. A second init_process_group uses the
same world."""

from __future__ import annotations

import atexit
import os
import socket
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from datetime import timedelta
from threading import Thread
from typing import Any

from rushlight.base import threads
from rushlight.base.errors import explain, runtime_error
from rushlight.comm import mpi_library
from rushlight.comm.errors import DistBackendError, DistError, DistStoreError
from rushlight.comm.rendezvous import Place, at, find, launched_by_mpi, own_host, rank_and_size
from rushlight.comm.server import pack
from rushlight.comm.store import HashStore, Store
from rushlight.comm.tcp_store import Connection, TCPStore
from rushlight.comm.work import give_way

LOOK_SECONDS = 0.02  # between two looks for ranks that have left
MEET_STEP = timedelta(seconds=0.5)


class World:
    """The processes of the job. `comm` and `MPI` are None in a world of one process."""

    def __init__(self, rank: int, size: int, MPI: Any, comm: Any, store: Store):
        self.rank, self.size, self.MPI, self.comm, self.store = rank, size, MPI, comm, store
        self.watch: Connection | None = None
        self.left: dict[int, str] = {}  # rank -> "lost" or "ended"
        self.left_at: dict[int, float] = {}  # rank -> time of the report
        self.owner: Any = None  # keeps the server alive until its `close()`
        self.next_look = 0.0
        self.rounds = 0  # number of calls of init_process_group
        self.pid = os.getpid()

    def look(self) -> None:
        """Read the server's reports of ranks that have left."""
        if self.watch is None or time.monotonic() < self.next_look:
            return
        self.next_look = time.monotonic() + LOOK_SECONDS
        try:
            while (report := self.watch.receive(0.0)) is not None:
                rank = int(report[1])
                self.left[rank] = report[0].decode()
                self.left_at[rank] = time.monotonic()
        except DistError:  # the server is gone: its machine has failed, or another process has killed it
            self.watch = None
            self.left.setdefault(0, "lost, or the machine of its server")
            self.left_at.setdefault(0, time.monotonic())

    def stopped(self, ranks: Sequence[int], end: float) -> str:
        """Why to stop waiting for these ranks: a rank has left, or the time `end` is over. '' to continue."""
        self.look()
        if gone := set(self.left) & set(ranks):
            return f"rank {min(gone)} was lost"
        return "timed out" if time.monotonic() > end else ""

    def complete(self, request: Any, timeout: timedelta) -> None:
        """Wait until a request of all ranks is complete. DistBackendError if a rank leaves before, or after the
        timeout."""
        end = time.monotonic() + timeout.total_seconds()
        while not request.Test():
            give_way()
            if why := self.stopped(range(self.size), end):
                raise DistBackendError(f"[Rank {self.rank}]: the world was not made: {why}")

    def call(self, function: Callable[[], Any], ranks: Sequence[int], timeout: timedelta) -> Any:
        """The result of an MPI call that waits for these ranks and has no timeout itself. A thread makes the call.
        DistBackendError after the timeout, or if one of the ranks leaves."""
        if self.MPI.Query_thread() < self.MPI.THREAD_SERIALIZED:
            return function()
        results: Future = Future()

        def run() -> None:
            try:
                results.set_result(function())
            except BaseException as error:
                results.set_exception(error)

        Thread(target=run, daemon=True).start()
        end = time.monotonic() + timeout.total_seconds()
        while True:
            try:
                return results.result(LOOK_SECONDS)
            except FutureTimeout:
                if why := self.stopped(ranks, end):
                    raise DistBackendError(
                        f"[Rank {self.rank}]: a group of {list(ranks)} was not made: {why}"
                    ) from None

    def meet(self, name: str, ranks: Sequence[int], timeout: timedelta) -> None:
        """Wait over the store until all these ranks are here. DistBackendError if one leaves before, or after the
        timeout."""
        keys = {rank: f"rushlight/meet/{name}/{rank}" for rank in ranks}
        self.store.set(keys[self.rank], "")
        end = time.monotonic() + timeout.total_seconds()
        while True:
            try:
                return self.store.wait(list(keys.values()), MEET_STEP)
            except DistStoreError:
                if why := self.stopped(ranks, end):
                    missing = [rank for rank, key in keys.items() if not self.store.check([key])]
                    raise DistBackendError(
                        f"[Rank {self.rank}]: group {name} was not made: {why}; ranks {missing} have not come"
                    ) from None

    def leave(self) -> None:
        """Tell the server that this process ends normally."""
        if self.watch is not None and os.getpid() == self.pid:
            try:
                self.watch.sock.settimeout(1.0)
                self.watch.sock.sendall(pack([b"leave"]))
            except OSError:
                pass

    def after_fork(self) -> None:
        """In a forked child, for example a DataLoader's worker, which has no rank: close the copies of the parent's
        connections."""
        if self.watch is not None:
            self.watch.close()
            self.watch = None
        if self.owner is not None:
            self.owner.close()
            self.owner = None
        if isinstance(self.store, TCPStore):
            self.store.connection.close()


_worlds: dict[int, World] = {}  # pid -> world of several processes; a forked child has no entry


def world_of(init_method: str | None, store: Store | None, rank: int, size: int, timeout: timedelta) -> World:
    """The world that these arguments of init_process_group describe."""
    known = _worlds.get(os.getpid())
    by_mpi = launched_by_mpi() and store is None and init_method in (None, "env://")
    if known is None and by_mpi and -1 in (rank, size) and "RANK" not in os.environ:
        return kept(start_under_launcher(timeout))
    if known is not None and rank == size == -1 and "RANK" not in os.environ:
        return known
    rank, size = rank_and_size(init_method, rank, size)
    if size == 1:
        return World(0, 1, None, None, store or HashStore())
    if known is None:
        if launched_by_mpi():
            return kept(start_under_launcher(timeout, rank, size))
        check_can_start(size)
        return kept(start(find(init_method, store, rank, size, timeout), timeout))
    if known.size != size:
        raise runtime_error(
            f"this process is in a world of {known.size} processes and cannot enter one of {size}: MPI is "
            "initialized once",
            "new_group(ranks) for a part of them",
        )
    if known.rank != rank:
        raise runtime_error(f"this process is rank {known.rank} of its world and cannot become rank {rank}")
    return known


def check_can_start(size: int) -> None:
    """RuntimeError on Windows, whose MPIs need mpiexec."""
    if not hasattr(os, "fork"):
        raise runtime_error(
            f"a world of {size} processes is started by mpiexec on this system",
            f"mpiexec -n {size} rushlight run program.py",
        )


def kept(world: World) -> World:
    """Remember the world of this process."""
    if os.getpid() not in _worlds:
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=world.after_fork)
        atexit.register(world.leave)
    _worlds.clear()
    _worlds[os.getpid()] = world
    return world


def host_id() -> str:
    """An id that two processes have in common if they can share memory."""
    try:
        return f"{socket.gethostname()} {os.stat('/dev/shm').st_dev}"
    except OSError:
        return socket.gethostname()


def start(place: Place, timeout: timedelta) -> World:
    """Enter the job: wait for all ranks, then let MPI find them."""
    watch = joined(place, timeout)
    address = f"{socket.gethostbyname(place.host)}:{place.port}"
    MPI = mpi_library.load_without_launcher(place.rank, place.size, address, watch)
    return entered(place, MPI, MPI.COMM_WORLD, watch, timeout)


def start_under_launcher(timeout: timedelta, rank: int = -1, size: int = -1) -> World:
    """The world that mpiexec or srun has made. If `rank` is given, the ranks are reordered by it."""
    MPI = mpi_library.load()
    mpi_library.finalize_at_exit(MPI)
    comm = MPI.COMM_WORLD
    if size not in (-1, comm.size):
        raise runtime_error(
            f"WORLD_SIZE is {size}, and mpiexec has started {comm.size} processes",
            "unset RANK and WORLD_SIZE: MPI knows them",
        )
    if rank not in (-1, comm.rank):
        comm = comm.Split(0, rank)
    if comm.size == 1:
        return World(0, 1, None, None, HashStore())
    hosts = comm.allgather(host_id())
    place = Place(comm.rank, comm.size, "", 0)
    if comm.rank == 0:
        host = "127.0.0.1" if len(set(hosts)) == 1 else own_host()
        place = at(0, comm.size, host, 0)
    place.host, place.port = comm.bcast((place.host, place.port))
    return entered(place, MPI, comm, joined(place, timeout), timeout)


def joined(place: Place, timeout: timedelta) -> Connection:
    """The connection of this rank to the server, once all ranks have one."""
    seconds = timeout.total_seconds()
    watch = Connection(place.host, place.port, seconds)
    watch.send("join", str(place.rank), str(place.size), host_id(), str(seconds))
    while True:
        report = watch.receive(seconds + 10.0)
        if report is None or report[0] == b"timeout":
            missing = report[1].decode() if report else "unknown"
            raise DistStoreError(
                f"Timed out after {seconds:.0f} seconds waiting for clients: of {place.size} ranks these have not "
                f"come: {missing}"
            )
        if report[0] == b"joined":
            place.here = int(report[1])
            return watch
        if report[0] == b"error":
            raise DistBackendError(explain(report[1].decode(), "one process for each rank"))
        raise DistBackendError(f"rank {report[1].decode()} was lost before all had come")


def entered(place: Place, MPI: Any, comm: Any, watch: Connection, timeout: timedelta) -> World:
    """The world of several processes; MPI is initialized already."""
    comm.Set_errhandler(MPI.ERRORS_RETURN)
    store = TCPStore(place.host, place.port, timeout=timeout)
    world = World(place.rank, place.size, MPI, comm, store)
    world.watch, world.owner = watch, place.owner
    world.complete(comm.Ibarrier(), timeout)  # afterwards all ranks have opened MPICH's shared memory
    mpi_library.forget_shared_memory()
    divide_threads(place)
    return world


def divide_threads(place: Place) -> None:
    """Divide the cores among the ranks of this machine, unless OMP_NUM_THREADS or set_num_threads gives a number."""
    if threads.chosen is None and not os.environ.get("OMP_NUM_THREADS"):
        threads.set_num_threads(max(1, threads.available() // max(1, place.here)))
