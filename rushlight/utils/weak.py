"""torch.utils.weak: dictionaries whose keys are compared by identity, such as tensors, and held weakly."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any
from weakref import ref

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]


class WeakIdRef(ref):
    """A weak reference that is equal to another if both are to the same object: tensors compare their elements."""

    __slots__ = ["_id"]

    def __init__(self, key: Any, callback: Any = None):
        super().__init__(key, callback)  # type: ignore[call-arg]
        self._id = id(key)

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        a, b = self(), other() if isinstance(other, ref) else None
        return a is b if a is not None and b is not None else self is other


TensorWeakRef = WeakIdRef


class WeakIdKeyDictionary(MutableMapping):
    """A dictionary by identity; an entry is removed when its key is freed.

    >>> x = rushlight.ones(2)
    >>> d = rushlight.utils.weak.WeakIdKeyDictionary({x: "known"})
    >>> d[x], len(d)
    ('known', 1)
    """

    def __init__(self, dict: Any = None, ref_type: Any = WeakIdRef):
        self.data: Any = {}
        self.ref_type = ref_type
        if dict is not None:
            self.update(dict)

    def _forget(self, gone: Any) -> None:
        self.data.pop(gone, None)

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self.ref_type(key, self._forget)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __contains__(self, key: object) -> bool:
        return self.ref_type(key) in self.data

    def __iter__(self) -> Iterator[Any]:
        return (key for key in [r() for r in list(self.data)] if key is not None)

    def __len__(self) -> int:
        return len(self.data)


WeakTensorKeyDictionary = WeakIdKeyDictionary
