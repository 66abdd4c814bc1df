"""torch._subclasses: the names that libraries import; no tensor is fake."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from rushlight.base.submodules import importable


class FakeTensor:
    """torch's class of tensors without elements; no tensor is an instance."""


def is_fake(x: Any) -> bool:
    """False."""
    return False


@contextmanager
def unset_fake_temporarily() -> Iterator[None]:
    """No effect: no mode of fake tensors is ever active."""
    yield None


fake_tensor = SimpleNamespace(FakeTensor=FakeTensor, is_fake=is_fake, unset_fake_temporarily=unset_fake_temporarily)

importable(__name__, "fake_tensor")

__all__ = ["FakeTensor", "fake_tensor", "is_fake"]
