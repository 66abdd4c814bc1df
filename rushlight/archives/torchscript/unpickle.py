"""The pickles of a TorchScript archive: modules with their tensors. Nothing but containers, tensors and objects of the
archive's own classes is made."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from typing import Any

from rushlight.serialization.unpickler import WeightsUnpickler, refusal

from .values import Instance, ScriptClass


def same(value: Any, *rest: Any) -> Any:
    """The value: the archive marks its type."""
    return value


def a_list(value: Any) -> list:
    """A list of numbers or tensors."""
    if not isinstance(value, (list, tuple)):
        raise ValueError("a list is written as a list")
    return [*value]


KNOWN: dict[tuple[str, str], Callable[..., Any]] = {
    ("torch.jit._pickle", name): a_list
    for name in ("build_intlist", "build_doublelist", "build_boollist", "build_tensorlist")
} | {("torch.jit._pickle", "restore_type_tag"): same}


class ScriptUnpickler(WeightsUnpickler):
    """Reads the records data.pkl and constants.pkl. `find`: the class of the archive for a name."""

    dispatch = dict(WeightsUnpickler.dispatch)

    def __init__(self, content: Any, lookup: Callable[[Any], Any], find: Callable[[str], Any]) -> None:
        super().__init__(io.BytesIO(content), lookup)
        self.find = find
        self.allowed = self.allowed | KNOWN
        self.callables = self.callables | {id(f) for f in KNOWN.values()}

    def find_class(self, module: str, name: str) -> Any:
        """The object for a name in the file, if it is allowed: a class of the archive, too."""
        if module.partition(".")[0] == "__torch__":
            found = self.find(f"{module}.{name}")
            if not isinstance(found, ScriptClass):
                raise refusal(f"{module}.{name} is not a class")
            return found
        return super().find_class(module, name)

    def load_newobj(self) -> None:
        """Make an object of a class of the archive, which has no state yet."""
        kind, args = self.stack[-2:]
        if not isinstance(kind, ScriptClass) or args != ():
            return super().load_newobj()
        self.stack[-2:] = [Instance(kind)]

    def load_build(self) -> None:
        """Give an object its state."""
        target, state = self.stack[-2:]
        if not isinstance(target, Instance):
            return super().load_build()
        if target.state is not None or not isinstance(state, dict):
            raise refusal("the state of a module is a dict, and is given once")
        target.state = self.stack.pop()

    dispatch[pickle.NEWOBJ[0]] = load_newobj
    dispatch[pickle.BUILD[0]] = load_build
