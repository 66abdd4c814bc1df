"""Modules that hold modules or parameters: in order, by name, or one after the other."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from operator import index
from typing import Any, TypeVar

from rushlight.base.errors import index_error, runtime_error, type_error, value_error
from rushlight.core.tensor import Tensor
from rushlight.nn.module import Module, indented
from rushlight.nn.parameter import Parameter

L = TypeVar("L", bound="Row")


class Row(Module):
    """The base of Sequential and ModuleList: modules in order, under the names '0', '1', ...."""

    def _key(self, i: Any) -> str:
        """The name at a position; negative positions count from the end. IndexError for a position out of range."""
        names = list(self._modules)
        i = index(i)
        if not -len(names) <= i < len(names):
            raise index_error(f"index {i} is out of range")
        return names[i]

    def _refill(self, modules: Iterable[Any]) -> None:
        self._modules.clear()
        self._modules.update((str(i), m) for i, m in enumerate(modules))

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return self._slice(i)
        return self._modules[self._key(i)]

    def _slice(self, i: slice) -> Any:
        return type(self)(list(self)[i])

    def __setitem__(self, i: int, module: Module) -> None:
        setattr(self, self._key(i), module)

    def __delitem__(self, i: Any) -> None:
        left = list(self._modules.values())
        if not isinstance(i, slice):
            i = list(self._modules).index(self._key(i))
        del left[i]
        self._refill(left)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __iadd__(self: L, other: Iterable[Any]) -> L:
        return self.extend(other)

    def append(self: L, module: Module) -> L:
        """Put a module at the end. Returns the container."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self: L, modules: Iterable[Any]) -> L:
        """Put modules at the end. Returns the container."""
        for module in list(modules):
            self.append(module)
        return self

    def insert(self, i: int, module: Module) -> Any:
        """Put a module in front of position i."""
        held = list(self._modules.values())
        if not -len(held) <= i <= len(held):
            raise index_error(f"Index out of range: {i}")
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        held.insert(i, module)
        self._refill(held)
        return self

    def pop(self, i: Any) -> Module:
        """Take a module out and return it."""
        module = self[i]
        del self[i]
        return module


class Sequential(Row):
    """x -> last(...(second(first(x)))): the modules one after the other, given in order or as an OrderedDict.

    >>> rushlight.nn.Sequential(rushlight.nn.Linear(4, 2), rushlight.nn.ReLU())(rushlight.ones(1, 4)).shape
    torch.Size([1, 2])
    """

    def __init__(self, *args: Any):
        super().__init__()
        named = args[0].items() if len(args) == 1 and isinstance(args[0], OrderedDict) else enumerate(args)
        for name, module in named:
            self.add_module(str(name), module)

    def forward(self, input: Any) -> Tensor:  # a tuple if the last module is an LSTM
        for module in self._modules.values():
            input = module(input)
        return input

    def _slice(self, i: slice) -> Sequential:
        return type(self)(OrderedDict(list(self._modules.items())[i]))

    def __add__(self, other: Any) -> Sequential:
        if not isinstance(other, Sequential):
            raise value_error(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return Sequential(*self, *other)

    def __mul__(self, times: int) -> Sequential:
        if not isinstance(times, int):
            raise type_error(f"unsupported operand type(s) for *: {type(self)} and {type(times)}")
        if times <= 0:
            raise value_error(f"Non-positive multiplication factor {times} for {type(self)}")
        return Sequential(*list(self) * times)

    __rmul__ = __mul__

    def __imul__(self, times: int) -> Sequential:
        self._refill(list(self * times))
        return self


class ModuleList(Row):
    """A list of modules. Unlike in a plain list, the modules are registered.

    >>> layers = rushlight.nn.ModuleList(rushlight.nn.Linear(n, n) for n in (1, 2))
    >>> len(list(layers.parameters()))
    4
    """

    def _missing_forward(self) -> str:
        return "it only holds modules: call each of them in your forward()"

    def __init__(self, modules: Iterable[Any] | None = None):
        super().__init__()
        self.extend(modules or ())

    def extend(self, modules: Iterable[Any]) -> ModuleList:
        """Append modules. Returns the list. TypeError if `modules` is not iterable."""
        if not isinstance(modules, Iterable):
            raise type_error(f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}")
        return super().extend(modules)

    def __add__(self, other: Iterable[Any]) -> ModuleList:
        return ModuleList([*self, *other])

    def insert(self, i: int, module: Module) -> None:
        """Put a module in front of position i, as a list does."""
        held = list(self._modules.values())
        held.insert(i, module)
        self._refill(held)

    def __repr__(self) -> str:
        """Consecutive equal modules share a line: (0-2): 3 x ReLU()."""
        runs: list[tuple[int, int, str]] = []
        for i, text in enumerate(map(repr, self)):
            if runs and runs[-1][2] == text:
                runs[-1] = (runs[-1][0], i, text)
            else:
                runs.append((i, i, text))
        if not runs:
            return f"{self._get_name()}()"
        lines = (f"({a}): {text}" if a == b else f"({a}-{b}): {b - a + 1} x {text}" for a, b, text in runs)
        return f"{self._get_name()}(" + "".join(f"\n  {indented(line)}" for line in lines) + "\n)"


class ModuleDict(Module):
    """A dict of modules by name. Unlike in a plain dict, the modules are registered.

    >>> choices = rushlight.nn.ModuleDict({"relu": rushlight.nn.ReLU()})
    >>> choices["relu"]
    ReLU()
    """

    def _missing_forward(self) -> str:
        return "it only holds modules: call each of them in your forward()"

    def __init__(self, modules: Any = None):
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Take all modules out."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Take a module out and return it."""
        return self._modules.pop(key)

    def keys(self) -> Any:
        """The names."""
        return self._modules.keys()

    def items(self) -> Any:
        """(name, module) pairs."""
        return self._modules.items()

    def values(self) -> Any:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Add modules from a mapping or from (name, module) pairs. TypeError or ValueError for anything else."""
        for key, module in pairs(modules, "ModuleDict"):
            self[key] = module


def pairs(values: Any, owner: str) -> list[tuple[str, Any]]:
    """(name, value) pairs of an argument of a dict's `update`. TypeError or ValueError for anything else."""
    if not isinstance(values, Iterable):
        raise type_error(
            f"{owner}.update should be called with an iterable of key/value pairs, but got {type(values).__name__}"
        )
    if isinstance(values, (Mapping, ModuleDict, ParameterDict)):
        return list(values.items())
    found = list(values)
    for i, pair in enumerate(found):
        if not isinstance(pair, Iterable):
            raise type_error(f"{owner} update sequence element #{i} should be Iterable; is {type(pair).__name__}")
        found[i] = tuple(pair)
        if len(found[i]) != 2:
            raise value_error(f"{owner} update sequence element #{i} has length {len(found[i])}; 2 is required")
    return found


def held(value: Any) -> Any:
    """A tensor as a parameter; other values unchanged."""
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def described(name: Any, value: Any, kind: str) -> str:
    """A line of the repr of a container of parameters."""
    if isinstance(value, Tensor):
        what = "Parameter" if isinstance(value, Parameter) else "Tensor"
        return f"  ({name}): {what} containing: [{kind} of size {'x'.join(map(str, value.shape))}]"
    return f"  ({name}): Object of type: {type(value).__name__}"


class ParameterList(Module):
    """Parameters in a list; tensors become parameters, other values are only kept.

    >>> weights = rushlight.nn.ParameterList([rushlight.zeros(2), rushlight.zeros(3)])
    >>> [w.numel() for w in weights]
    [2, 3]
    """

    def __init__(self, values: Iterable[Any] | None = None):
        super().__init__()
        self._size = 0
        self.extend(values or ())

    def _key(self, i: Any) -> str:
        i = index(i)
        if not -len(self) <= i < len(self):
            raise index_error(f"index {i} is out of range")
        return str(i % len(self))

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return type(self)(list(self)[i])
        return getattr(self, self._key(i))

    def __setitem__(self, i: int, value: Any) -> None:
        setattr(self, self._key(i), held(value))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(len(self))])

    def __iadd__(self, values: Iterable[Any]) -> ParameterList:
        return self.extend(values)

    def append(self, value: Any) -> ParameterList:
        """Put a value at the end. Returns the list."""
        self._size += 1
        self[-1] = value
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Append values. Returns the list. TypeError if `values` is not iterable."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise type_error(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in list(values):
            self.append(value)
        return self

    def extra_repr(self) -> str:
        return "\n".join(described(i, v, str(getattr(v, "dtype", ""))) for i, v in enumerate(self))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise runtime_error("ParameterList should not be called.")


class ParameterDict(Module):
    """Parameters by name; tensors become parameters, other values are only kept.

    >>> weights = rushlight.nn.ParameterDict({"a": rushlight.zeros(2)})
    >>> weights["a"].requires_grad
    True
    """

    def __init__(self, parameters: Any = None):
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        return getattr(self, text(key))

    def __setitem__(self, key: str, value: Any) -> None:
        setattr(self, text(key), held(value))
        self._keys[key] = None

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def __or__(self, other: Any) -> ParameterDict:
        return ParameterDict([*self.items(), *other.items()])

    def __ror__(self, other: Any) -> ParameterDict:
        return ParameterDict([*other.items(), *self.items()])

    def __ior__(self, other: Any) -> ParameterDict:
        self.update(other)
        return self

    def keys(self) -> Any:
        """The names."""
        return self._keys.keys()

    def values(self) -> Iterator[Any]:
        """The parameters."""
        return map(self.__getitem__, self._keys)

    def items(self) -> Iterator[tuple[str, Any]]:
        """(name, parameter) pairs."""
        return zip(self._keys, self.values())

    def get(self, key: str, default: Any = None) -> Any:
        """The parameter of that name, or `default`."""
        return getattr(self, key) if key in self._keys else default

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The parameter of that name; if it is missing, it is first set to `default`."""
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: str) -> Any:
        """Take a parameter out and return it."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Take the last parameter out and return (name, parameter)."""
        key = next(reversed(self))
        return key, self.pop(key)

    def clear(self) -> None:
        """Take all parameters out."""
        for key in list(self):
            del self[key]

    def copy(self) -> ParameterDict:
        """Another dict that holds the same parameters."""
        return ParameterDict(list(self.items()))

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A dict with these names, each with `default`."""
        return ParameterDict([(key, default) for key in keys])

    def update(self, parameters: Any) -> None:
        """Add from a mapping (sorted by name unless it keeps an order) or from (name, parameter) pairs."""
        found = pairs(parameters, "ParameterDict")
        unordered = isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict)
        for key, value in sorted(found) if unordered else found:
            self[key] = value

    def extra_repr(self) -> str:
        return "\n".join(
            described(key, v, f"torch.{v.dtype.scalar_type}Tensor" if isinstance(v, Tensor) else "")
            for key, v in self.items()
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise runtime_error("ParameterDict should not be called.")


def text(key: Any) -> str:
    """TypeError unless a key is text."""
    if not isinstance(key, str):
        raise type_error(
            "Index given to ParameterDict cannot be used as a key as it is not a string (type is "
            f"'{type(key).__name__}')"
        )
    return key
