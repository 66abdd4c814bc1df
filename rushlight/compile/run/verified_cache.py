"""The cache of verified programs: a program that agreed with eager on this machine is not verified again.

For each there is an empty file in the cache folder. It is named by a digest of the recorded run, the program's text,
and everything on which the program's numbers depend."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import numpy as np

from rushlight.compile.graph import Graph, values_in
from rushlight.compile.report import listing
from rushlight.loops.cache import folder, versions

MAX_FILES = 2048


def recorded(graph: Graph) -> bytes:
    """A digest of a recorded run: its steps, settings, shapes, kinds of inputs and constants."""
    found = hashlib.sha256(listing(graph).encode())
    found.update(repr([(v.source[0], v._array.shape, v._array.strides, v.dtype.str) for v in graph.inputs]).encode())
    for v in {v: None for s in graph.steps for v in values_in(s.args) if v.kind == "constant"}:
        found.update(np.ascontiguousarray(v._array).data if v.dtype.kind in "biufc" else v._array.tobytes())
    return found.digest()


class Proof:
    """The cache file of a program. `graph`: the digest of its run (`recorded`); `texts`: the program's texts."""

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
        """Record that the program has been verified. Removes the oldest files if there are too many."""
        if self.path is None:
            return
        try:
            self.path.parent.mkdir(exist_ok=True)
            self.path.touch()
            notes = list(self.path.parent.iterdir())
            if len(notes) > MAX_FILES:
                for old in sorted(notes, key=lambda p: p.stat().st_mtime)[: MAX_FILES // 2]:
                    old.unlink(missing_ok=True)
        except OSError:
            return


# folders whose code affects the results of a program
LAYERS = ("loops", "kernels", "core", "ops", "fast", "compile")


@cache
def surroundings() -> list[bytes]:
    """Everything besides its text that a program's numbers depend on: versions, the processor's features, rushlight's
    own files.
    """
    own = Path(__file__).parents[2]
    files = [
        (p.name, p.stat().st_mtime_ns, p.stat().st_size)
        for folder in LAYERS
        for p in sorted((own / folder).rglob("*.py"))
    ]
    features = np._core._multiarray_umath.__cpu_features__  # type: ignore[attr-defined]
    return [
        repr(part).encode() for part in (versions(), np.__version__, sorted(k for k, v in features.items() if v), files)
    ]
