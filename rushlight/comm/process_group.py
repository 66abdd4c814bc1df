"""ProcessGroup: ranks that act together, and the errors of operations between them."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from rushlight.base.errors import explain, here
from rushlight.comm.debug_level import DebugLevel, get_debug_level
from rushlight.comm.errors import DistBackendError, DistError
from rushlight.comm.recorded import recorded
from rushlight.comm.transport import MpiTransport, OneRank
from rushlight.comm.work import Check, Work

if TYPE_CHECKING:
    from rushlight.comm.world import World

DEFAULT_TIMEOUT = timedelta(minutes=30)
TELL_SECONDS = 2.0  # how long a failed rank waits for the other ranks' texts


class ProcessGroup:
    """Ranks of the world that act together. `ranks`: their numbers in the world, sorted."""

    def __init__(
        self, world: World, ranks: Sequence[int], name: str, backend: str, timeout: timedelta,
        description: str | None = None,
    ):  # fmt: skip
        self.world, self.ranks, self.group_name = world, list(ranks), name
        self.unique_name = f"{world.rounds}/{name}"
        self.backend, self.timeout = backend, timeout
        self.group_desc = description or "undefined"
        self.count = 0  # number of operations begun
        self.pending: set[Work] = set()  # operations begun and not complete: MPI uses their memory
        self.failed: list[Work] = []
        self.numbers = {rank: i for i, rank in enumerate(self.ranks)}  # {rank in the world: rank in the group}
        self.own = self.numbers[world.rank]
        self.barriers = 0  # number of monitored barriers
        self.detailed = get_debug_level() is DebugLevel.DETAIL
        self.transport: Any
        if len(self.ranks) == 1:
            self.comm, self.transport = None, OneRank()
        else:
            self.comm = communicator(world, self.ranks, self.unique_name, timeout)
            self.transport = MpiTransport(world.MPI, self.comm)

    def rank(self) -> int:
        """The rank of this process in the group."""
        return self.own

    def size(self) -> int:
        """The number of ranks."""
        return len(self.ranks)

    def name(self) -> str:
        """The name of the backend."""
        return self.backend

    def __repr__(self) -> str:
        return f"<ProcessGroup {self.group_name}: ranks {self.ranks}>"

    # -- operations --------------------------------------------------------------------------------

    def begin(
        self, what: str, start: Callable[[], Sequence[Any]], finish: Callable[[], None] | None = None,
        outputs: Sequence[Any] = (), inputs: Sequence[Any] | None = None,
    ) -> Work:  # fmt: skip
        """Begin an operation that all ranks of the group call. `what`: the operation, dtypes and sizes; the text must
        be the same on all ranks. `inputs`: its tensors for the profiler; None: the outputs."""
        for work in list(self.pending):
            work.poll()
        self.count += 1
        check = None
        if self.comm is not None:
            if self.detailed:
                self.tell_line(what)
            check = Check(self, zlib.crc32(what.encode()))
        event = recorded(f"{self.backend}:{what.partition('(')[0]}", outputs if inputs is None else inputs)
        work = Work(self, what, start(), finish, outputs, check)
        work.event = event
        self.pending.add(work)
        return work

    def begin_message(self, work: Work) -> Work:
        """Keep a message between two ranks, and its memory, until it is complete."""
        if self.detailed:
            self.tell_line(work.what)
        name = work.what.partition("(")[0]
        if name == "recv" and work.what.endswith("src=any)"):
            name = "recvAnySource"
        work.event = recorded(f"{self.backend}:{name}", work.outputs)
        self.pending.add(work)
        return work

    # -- what fails --------------------------------------------------------------------------------

    def key(self, kind: str, count: int, rank: int) -> str:
        return f"rushlight/{kind}/{self.unique_name}/{count}/{rank}"

    def tell_line(self, what: str) -> None:
        """Write the operation and the line of the program that called it into the store, for errors of other ranks."""
        rank = self.world.rank
        self.world.store.set(f"rushlight/line/{rank}", f"{what}, group {self.group_name}, {here()}")

    def lines(self) -> str:
        """For each rank, the line that began its last operation, if `tell_line` wrote it."""
        if not self.detailed:
            return "\n  TORCH_DISTRIBUTED_DEBUG=DETAIL shows the line of each rank"
        found = []
        for rank in self.ranks:
            key = f"rushlight/line/{rank}"
            if self.world.store.check([key]):
                found.append(f"\n  rank {rank}: last in {self.world.store.get(key).decode()}")
            else:
                found.append(f"\n  rank {rank}: in no operation yet")
        return "".join(found)

    def answers(self, kind: str, work: Work, text: str, seconds: float) -> dict[int, str]:
        """{rank: its text about an operation}, for the ranks that write one into the store within `seconds`. This rank
        writes `text`."""
        store = self.world.store
        found: dict[int, str] = {}
        end = time.monotonic() + seconds
        try:
            store.set(self.key(kind, work.number, self.world.rank), text)
            while len(found) < self.size():
                for rank in self.ranks:
                    key = self.key(kind, work.number, rank)
                    if rank not in found and store.check([key]):
                        found[rank] = store.get(key).decode()
                if time.monotonic() > end:
                    break
                time.sleep(0.02)
        except DistError:
            pass  # the store has gone, too: return the texts so far
        return found

    def failure(self, work: Work, why: str) -> DistBackendError:
        """The error of an operation on this rank."""
        return DistBackendError(
            f"[Rank {self.world.rank}]: {work.what}, number {work.number} of group {self.group_name}, failed: {why}"
        )

    def gone(self, since: float) -> str:
        """A text about the ranks of the group that left before the time `since`; '' if there are none."""
        self.world.look()
        left = {
            rank: how
            for rank, how in self.world.left.items()
            if rank in self.numbers and self.world.left_at[rank] < since
        }
        return "; ".join(
            f"rank {rank} was {how}: its process is no more"
            if how != "ended"
            else f"rank {rank} has ended its program without taking part"
            for rank, how in sorted(left.items())
        )

    def late(self, work: Work, seconds: float) -> DistBackendError:
        """The error of a timeout, with the missing ranks."""
        gone = self.gone(time.monotonic() + 1.0)
        here = self.answers("late", work, "", TELL_SECONDS)
        missing = [rank for rank in self.ranks if rank not in here]
        why = f"ranks {missing} have not reached it" if missing else "all ranks have reached it"
        return self.failure(
            work, f"Timed out after {seconds * 1000:.0f}ms; {why}{'; ' if gone else ''}{gone}{self.lines()}"
        )

    def mismatch(self, work: Work) -> DistBackendError:
        """The error of ranks that have called different operations."""
        calls = self.answers("call", work, work.what, TELL_SECONDS)
        mine = self.world.rank
        other = next((rank for rank, what in calls.items() if what != work.what), None)
        told = (
            f"but Rank {other} is running collective: {calls[other]}"
            if other is not None
            else "but another rank is running another one"
        )
        return DistBackendError(
            explain(
                f"Detected mismatch between collectives on ranks. Rank {mine} is running collective: {work.what}, "
                f"{told}",
                "call the same operations in the same order, with the same shapes and dtypes, on all ranks",
                of_all="; ".join(f"rank {rank}: {what}" for rank, what in sorted(calls.items())),
            )
            + self.lines()
        )


def communicator(world: World, ranks: Sequence[int], name: str, timeout: timedelta) -> Any:
    """A new MPI communicator of these ranks, so that operations of two groups cannot mix. All ranks meet in the store
    first, since MPI would wait for a missing rank for ever."""
    world.meet(name, ranks, timeout)
    if len(ranks) == world.size:
        comm, request = world.comm.Idup()
        world.complete(request, timeout)
    else:
        part = world.comm.Get_group().Incl(list(ranks))
        tag = zlib.crc32(name.encode()) % 30000
        comm = world.call(lambda: world.comm.Create_group(part, tag), ranks, timeout)
    comm.Set_errhandler(world.MPI.ERRORS_RETURN)
    return comm
