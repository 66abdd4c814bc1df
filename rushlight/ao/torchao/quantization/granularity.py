"""Which elements share a scale, and whether numbers lie around zero."""

from __future__ import annotations

import enum
from dataclasses import dataclass


@dataclass(frozen=True)
class Granularity:
    """The base of the classes that name which elements share a scale."""


@dataclass(frozen=True)
class PerTensor(Granularity):
    """All elements share a scale."""


@dataclass(frozen=True)
class PerRow(Granularity):
    """The elements of a row share a scale."""

    dim: int = -1


class MappingType(enum.Enum):
    """SYMMETRIC: zero is the integer 0. ASYMMETRIC: zero is any integer, so that the whole range is used."""

    SYMMETRIC = enum.auto()
    ASYMMETRIC = enum.auto()
