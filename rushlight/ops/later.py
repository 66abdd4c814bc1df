"""What `import rushlight` leaves for later: tables that are loaded with the first name that nobody has found.

Half of the ops are seldom called; all of them at once would double the time of the import. No list says what stands
where: a name that is missing in the package, or in Tensor, loads the rest, and is then looked for again.
"""
from __future__ import annotations

from importlib import import_module
from typing import Any

from rushlight.tensor import Tensor

left = ["rushlight.ops.library"]                  # modules; the package adds those of higher layers


def complete() -> bool:
    """Load what is left of the library; False if that was done before."""
    if not left:
        return False
    for module in tuple(left):                    # another thread waits here until they are loaded
        import_module(module)
    left.clear()
    return True


def absent(self: Tensor, name: str) -> Any:
    """Python asks here for an attribute that a tensor does not have."""
    if not name.startswith("__") and complete():
        return getattr(self, name)
    raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'", name=name, obj=self)


def absent_in_class(cls: type, name: str) -> Any:
    """Python asks here for an attribute that Tensor itself does not have: Tensor.det."""
    if not name.startswith("__") and complete():
        return getattr(cls, name)
    raise AttributeError(f"type object '{cls.__name__}' has no attribute '{name}'", name=name, obj=cls)


Tensor.__getattr__ = absent  # type: ignore[attr-defined]
type(Tensor).__getattr__ = absent_in_class  # type: ignore[attr-defined]
