"""Human-readable times and sizes."""

from __future__ import annotations

UNITS = (("s", 1e6), ("ms", 1e3), ("us", 1.0))


def time_text(us: float, unit: str | None = None) -> str:
    name, size = next(((n, s) for n, s in UNITS if (n == unit if unit else us >= s)), UNITS[-1])
    return f"{us / size:.3f}{name}"


def in_bytes(count: int) -> str:
    for name, size in (("Gb", 2**30), ("Mb", 2**20), ("Kb", 2**10)):
        if count >= size:
            return f"{count / size:.2f} {name}"
    return f"{count} b"
