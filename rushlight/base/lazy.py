"""Tables that `import rushlight` does not load: the first lookup of a missing name loads them.

Loading all ops at once would double the time of the import, and few programs call them all. A lookup of a missing name,
in the package or in Tensor, loads the next part and is then repeated. No list records the part of each name;
`ops/tensor/method_names.py`, written by `make stubs`, lists the methods that Tensor will have.
"""

from __future__ import annotations

from _thread import get_ident
from importlib import import_module
from typing import Any

# The parts in the order of loading. rushlight/ops/__init__.py and rushlight/__init__.py add parts.
left: list[str] = []

loading: set[tuple[str, int]] = set()  # parts, and the threads that are loading them


def next_part() -> bool:
    """Load the next part of the library; False if all parts are loaded. ImportError if the part cannot be loaded.

    If a part needs a missing name while it is loading, the lookup loads the parts after it.
    """
    for part in tuple(left):
        mine = part, get_ident()
        if mine in loading:
            continue
        loading.add(mine)
        try:
            import_module(part)  # another thread waits here until it is loaded
        except AttributeError as error:  # Python would treat it as the missing name
            raise ImportError(f"{part} cannot be loaded: {error}") from error
        finally:
            loading.discard(mine)
        if part in left:
            left.remove(part)
        return True
    return False


def complete() -> None:
    """Load all remaining parts."""
    while next_part():
        pass


class Absent:
    """The placeholder of a method of the class `owner` (Tensor) until its part is loaded.

    `__getattr__` would need no list of names. But Python 3.11 would then look up every attribute of every tensor in a
    slow way, which costs a seventh of the time of a small op.
    """

    __slots__ = ("name", "owner")

    def __init__(self, name: str, owner: type):
        self.name, self.owner = name, owner

    def __get__(self, tensor: Any, cls: type) -> Any:
        while self.name not in vars(self.owner):
            if not next_part():
                raise AttributeError(
                    f"'{cls.__name__}' object has no attribute '{self.name}'", name=self.name, obj=tensor
                )
        return getattr(cls if tensor is None else tensor, self.name)

    def __set__(self, tensor: Any, value: Any) -> None:
        self.__get__(None, type(tensor))  # loads the property that `z.real = x` sets
        setattr(tensor, self.name, value)


def expect(owner: type, *names: str) -> None:
    """The class `owner` will have these methods once more parts are loaded. Placeholders are in its base class."""
    for name in names:
        if name not in vars(owner.__base__):
            setattr(owner.__base__, name, Absent(name, owner))
