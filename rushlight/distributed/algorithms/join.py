"""torch.distributed.algorithms.join: processes with unequal numbers of batches; one process waits
for nobody."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any


class Joinable:
    """What takes part in a `Join`."""


class JoinHook:
    """What it would do while others go on."""


class Join(nullcontext):
    """A context in which nothing is different."""

    def __init__(
        self,
        joinables: list,
        enable: bool = True,
        throw_on_early_termination: bool = False,
        **settings: Any,
    ):
        super().__init__()


__all__ = ["Join", "JoinHook", "Joinable"]
