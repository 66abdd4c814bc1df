"""What `import rushlight` leaves for later: tables that are loaded with the first name that nobody has found.

All ops at once would double the time of the import, and few programs call them all. No list says what stands where: a
name that is missing in the package, or in Tensor, loads the next part, and is then looked for again.
"""
from __future__ import annotations

from _thread import get_ident
from importlib import import_module
from typing import Any

from rushlight.tensor import Tensor

# The parts in the order in which they are loaded; the package adds those of higher layers.
left = ["rushlight.ops.library"]


loading: set[tuple[str, int]] = set()             # parts, and the threads that are loading them


def next_part() -> bool:
    """Load the next part of the library; False if nothing is left. ImportError if it cannot be loaded.

    What a part asks for while it is loaded is looked for in those after it.
    """
    for part in tuple(left):
        mine = part, get_ident()
        if mine in loading:
            continue
        loading.add(mine)
        try:
            import_module(part)                   # another thread waits here until it is loaded
        except AttributeError as error:           # Python would take it for the missing name
            raise ImportError(f"{part} cannot be loaded: {error}") from error
        finally:
            loading.discard(mine)
        if part in left:
            left.remove(part)
        return True
    return False


def complete() -> None:
    """Load all that is left."""
    while next_part():
        pass


def absent(self: Tensor, name: str) -> Any:
    """Python asks here for an attribute that a tensor does not have."""
    if not name.startswith("__") and next_part():
        return getattr(self, name)
    raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'", name=name, obj=self)


def absent_in_class(cls: type, name: str) -> Any:
    """Python asks here for an attribute that Tensor itself does not have: Tensor.det."""
    if not name.startswith("__") and next_part():
        return getattr(cls, name)
    raise AttributeError(f"type object '{cls.__name__}' has no attribute '{name}'", name=name, obj=cls)


Tensor.__getattr__ = absent  # type: ignore[attr-defined]
type(Tensor).__getattr__ = absent_in_class  # type: ignore[attr-defined]
