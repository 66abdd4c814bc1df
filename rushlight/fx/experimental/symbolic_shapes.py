"""torch.fx.experimental.symbolic_shapes: sizes are plain numbers, and every condition has a known value."""

from __future__ import annotations

from typing import Any


class GuardOnDataDependentSymNode(RuntimeError):
    """torch's error for a condition on an unknown size; never raised."""


def guard_or_false(a: Any) -> bool:
    """The value of a condition.

    >>> rushlight.fx.experimental.symbolic_shapes.guard_or_false(2 > 1)
    True
    """
    return bool(a)


guard_or_true = statically_known_true = guard_size_oblivious = definitely_true = guard_or_false


def free_symbols(val: Any) -> set:
    """Always set(): all sizes are known."""
    return set()


free_unbacked_symbols = free_symbols


def is_symbolic(val: Any) -> bool:
    """Always False: sizes are plain numbers."""
    return False


__all__ = [
    "GuardOnDataDependentSymNode", "free_symbols", "free_unbacked_symbols", "guard_or_false", "guard_or_true",
    "guard_size_oblivious", "is_symbolic", "statically_known_true",
]  # fmt: skip
