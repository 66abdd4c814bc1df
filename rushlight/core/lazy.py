"""What `import rushlight` leaves for later: tables that are loaded with the first name that nobody
has found.

All ops at once would double the time of the import, and few programs call them all. No list says
what stands where: a name that is missing in the package, or in Tensor, loads the next part, and is
then looked for again. (That Tensor will have it, `core/method_names.py` says, which `make stubs`
writes.)"""

from __future__ import annotations

from _thread import get_ident
from importlib import import_module
from typing import Any

from rushlight.core.method_names import METHODS
from rushlight.core.tensor import Tensor

# The parts in the order in which they are loaded; the package adds those of higher layers.
left = ["rushlight.ops.rest"]


loading: set[tuple[str, int]] = set()  # parts, and the threads that are loading them


def next_part() -> bool:
    """Load the next part of the library; False if nothing is left. ImportError if it cannot be
    loaded.

    What a part asks for while it is loaded is looked for in those after it.
    """
    for part in tuple(left):
        mine = part, get_ident()
        if mine in loading:
            continue
        loading.add(mine)
        try:
            import_module(part)  # another thread waits here until it is loaded
        except AttributeError as error:  # Python would take it for the missing name
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


class Absent:
    """What stands for a method of Tensor until its part is loaded.

    `__getattr__` would need no list of names; but with it Python 3.11 takes the slow way to every
    attribute of every tensor, a seventh of the time of a small op."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __get__(self, tensor: Tensor | None, cls: type) -> Any:
        while self.name not in vars(Tensor):
            if not next_part():
                raise AttributeError(
                    f"'{cls.__name__}' object has no attribute '{self.name}'",
                    name=self.name,
                    obj=tensor,
                )
        return getattr(cls if tensor is None else tensor, self.name)

    def __set__(self, tensor: Tensor, value: Any) -> None:
        self.__get__(
            None, type(tensor)
        )  # `z.real = x` is a write, and a method an attribute like any other
        setattr(tensor, self.name, value)


def expect(*names: str) -> None:
    """Tensor will have these methods once more is loaded."""
    for name in names:
        if name not in vars(Tensor.__base__):
            setattr(Tensor.__base__, name, Absent(name))


expect(*METHODS.split())
