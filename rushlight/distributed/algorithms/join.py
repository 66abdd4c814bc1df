"""torch.distributed.algorithms.join, for processes with unequal numbers of batches; with one
process there is no waiting.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any


class Joinable:
    """The base of classes that can be used in a `Join`."""


class JoinHook:
    """The work of a process that has finished while others go on."""


class Join(nullcontext):
    """A context without effect."""

    def __init__(
        self,
        joinables: list,
        enable: bool = True,
        throw_on_early_termination: bool = False,
        **settings: Any,
    ):
        super().__init__()


__all__ = ["Join", "JoinHook", "Joinable"]
