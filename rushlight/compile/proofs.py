"""Programs that have been compared with eager once, on this machine: the next process need not do it again.

Like the machine code of their loops, this is noted in the cache folder: by the run as it was recorded, the program's text,
and all that either depends on.
"""
from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import numpy as np

from rushlight.compile.cache import folder, versions
from rushlight.compile.graph import Graph, values_in
from rushlight.compile.report import listing

MOST = 2048                                       # files


def recorded(graph: Graph) -> bytes:
    """A digest of a recorded run: steps, settings, shapes, where inputs come from, constants."""
    found = hashlib.sha256(listing(graph).encode())
    found.update(repr([(v.source[0], v.array.shape, v.array.strides, v.dtype.str) for v in graph.inputs]).encode())
    for v in {v: None for s in graph.steps for v in values_in(s.args) if v.kind == "constant"}:
        found.update(np.ascontiguousarray(v.array).data if v.dtype.kind in "biufc" else v.array.tobytes())
    return found.digest()


class Proof:
    """Whether programs with these texts, made of this run, have been compared with it."""

    def __init__(self, graph: bytes, texts: Iterable[str]):
        place = folder()
        key = hashlib.sha256(b"\n".join([graph, *(text.encode() for text in texts), *surroundings()])).hexdigest()
        self.path = None if place is None else place.parent / "proofs" / key[:32]

    def there(self) -> bool:
        try:
            return self.path is not None and self.path.exists()
        except OSError:
            return False

    def note(self) -> None:
        """They have; the oldest notes go where there are too many."""
        if self.path is None:
            return
        try:
            self.path.parent.mkdir(exist_ok=True)
            self.path.touch()
            notes = list(self.path.parent.iterdir())
            if len(notes) > MOST:
                for old in sorted(notes, key=lambda p: p.stat().st_mtime)[:MOST // 2]:
                    old.unlink(missing_ok=True)
        except OSError:
            return


@cache
def surroundings() -> list[bytes]:
    """What the same text may give other numbers with: versions, the instructions of the processor, rushlight's own files."""
    own = Path(__file__).parents[1]
    files = [(p.name, p.stat().st_mtime_ns, p.stat().st_size)
             for folder in ("compile", "compile/passes", "ops", "ops/kernels") for p in sorted((own / folder).glob("*.py"))]
    features = np._core._multiarray_umath.__cpu_features__  # type: ignore[attr-defined]
    return [repr(part).encode() for part in (versions(), np.__version__, sorted(k for k, v in features.items() if v), files)]
