"""monitored_barrier: rank 0 waits for the other ranks over the store, and names the missing ones."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

from rushlight.comm.groups import member
from rushlight.comm.process_group import ProcessGroup

STEP_SECONDS = 0.005  # between two looks into the store


class Monitored:
    """One monitored barrier of a group, on this rank."""

    def __init__(self, group: ProcessGroup, seconds: float):
        group.barriers += 1
        self.group, self.store, self.seconds = group, group.world.store, seconds
        self.start = f"rushlight/monitored/{group.unique_name}/{group.barriers}"
        self.end = time.monotonic() + seconds

    def arrived(self, key: str) -> bool:
        """Wait until the key is in the store. False after the timeout."""
        while not self.store.check([f"{self.start}/{key}"]):
            if time.monotonic() >= self.end:
                return False
            for work in list(self.group.pending):
                work.poll()
            time.sleep(STEP_SECONDS)
        return True

    def put(self, key: str) -> None:
        self.store.set(f"{self.start}/{key}", "")

    def lead(self, wait_all_ranks: bool) -> None:
        """Rank 0: wait for the other ranks in turn."""
        missing: list[int] = []
        for number in range(1, self.group.size()):
            if not self.arrived(f"rank {number}"):
                missing.append(self.group.ranks[number])
                if not wait_all_ranks:
                    break
        if not missing:
            return self.put("all")
        self.put("failed")
        names = ", ".join(map(str, missing))
        failed = f"Rank{'s' if len(missing) > 1 else ''} {names} failed to pass monitoredBarrier"
        raise RuntimeError(f"[Rank {self.group.world.rank}]: {failed} in {self.seconds * 1000:.0f} ms")

    def follow(self) -> None:
        """Another rank: tell rank 0, and wait for its answer."""
        self.put(f"rank {self.group.rank()}")
        self.end += self.seconds + 1.0  # rank 0 waits for the other ranks first
        if not self.arrived("all"):
            rank, first = self.group.world.rank, self.group.ranks[0]
            raise RuntimeError(
                f"[Rank {rank}]: Rank {rank} successfully reached monitoredBarrier, but received errors while waiting "
                f"for send/recv from rank {first}. Please check rank {first} logs for faulty rank."
            )


def in_seconds(timeout: Any, group: ProcessGroup) -> float:
    """A timeout (timedelta or number) in seconds. None: the timeout of the group."""
    timeout = group.timeout if timeout is None else timeout
    return timeout.total_seconds() if isinstance(timeout, timedelta) else float(timeout)


def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> None:
    """Wait until all ranks are here. After the timeout, rank 0 of the group raises RuntimeError with the first missing
    rank, or with all of them if `wait_all_ranks`; the other ranks raise RuntimeError because rank 0 has failed."""
    if (own := member(group)) is None:
        return
    barrier = Monitored(own, in_seconds(timeout, own))
    if own.rank():
        barrier.follow()
    elif own.size() > 1 and barrier.seconds <= 0:
        raise RuntimeError(
            f"[Rank {own.world.rank}]: Rank {own.world.rank} timed out in monitoredBarrier after "
            f"{barrier.seconds * 1000:.0f} ms."
        )
    else:
        barrier.lead(wait_all_ranks)
