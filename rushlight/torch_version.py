"""torch.torch_version: versions that compare as numbers, "2.13" after "2.9"."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

from rushlight.version import torch_version

PARTS = re.compile(
    r"\s*v?(?P<release>\d+(\.\d+)*)([-_.]?(?P<pre>a|b|rc|c|alpha|beta|pre|preview)[-_.]?(?P<n>\d*))?"
    r"([-_.]?(?P<post>post)[-_.]?\d*)?([-_.]?(?P<dev>dev)[-_.]?\d*)?(\+(?P<local>[a-z0-9._-]+))?\s*"
)
PHASES = {"a": 0, "alpha": 0, "b": 1, "beta": 1, None: 3}  # release candidates and other phases: 2


def place(version: Any) -> tuple | None:
    """The sort key of a version (PEP 440), given as text, as numbers (2, 1), or as an object with `str`. None if it is
    not a version.
    """
    if isinstance(version, Iterable) and not isinstance(version, str):
        version = ".".join(map(str, version))
    found = PARTS.fullmatch(str(version).lower())
    if found is None:
        return None
    numbers = [int(n) for n in found["release"].split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    phase = -1 if found["dev"] and not found["pre"] and not found["post"] else PHASES.get(found["pre"], 2)
    return (numbers, phase, int(found["n"] or 0), bool(found["post"]), not found["dev"], found["local"] or "")


def by_place(name: str) -> Callable:
    """The method `name` that compares sort keys, or texts if one of the two is not a version."""
    of_texts = getattr(str, name)

    @wraps(of_texts)
    def compare(self: TorchVersion, other: Any) -> bool:
        own, others = place(self), place(other)
        if own is None or others is None:
            return of_texts(self, other)
        return getattr(own, name)(others)

    return compare


class TorchVersion(str):
    """A version as text. It compares with texts, tuples and Versions as a version; != compares texts, as in torch.

    >>> from rushlight.torch_version import TorchVersion
    >>> TorchVersion("2.13.0") > "2.9", TorchVersion("2.13.0") >= (2, 13), TorchVersion("2.13.0a0") < "2.13"
    (True, True, True)
    """

    __slots__ = ()
    __hash__ = str.__hash__
    __eq__, __lt__, __le__, __gt__, __ge__ = map(by_place, ("__eq__", "__lt__", "__le__", "__gt__", "__ge__"))


__version__ = TorchVersion(torch_version)
__all__ = ["TorchVersion"]
