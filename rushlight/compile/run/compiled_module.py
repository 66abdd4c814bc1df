"""`OptimizedModule`, the result of `rushlight.compile(module)`: wraps the module as its child `_orig_mod`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from rushlight.nn.hooks import EVERYWHERE
from rushlight.nn.module import Module


class OptimizedModule(Module):
    """A module that runs compiled. Its only child `_orig_mod` is the original module, with its parameters and modes.

    As in torch, names in `state_dict()` begin with `_orig_mod.`; attributes are read from and set on the original
    module. Hooks registered here run around the compiled call.

    >>> fast = rushlight.compile(rushlight.nn.Linear(2, 1))
    >>> list(fast.state_dict()), fast.in_features
    (['_orig_mod.weight', '_orig_mod.bias'], 2)
    """

    def __init__(self, module: Module, compiled: Callable):
        super().__init__()
        del self.__dict__["training"]
        self._modules["_orig_mod"] = module
        self.__dict__["compiled"] = compiled

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._hooked or EVERYWHERE:
            return super().__call__(*args, **kwargs)
        return self.compiled(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's forward, compiled."""
        return self.compiled(*args, **kwargs)

    @property
    def training(self) -> bool:  # type: ignore[override]
        """Whether the original module is in training mode."""
        return bool(self._modules["_orig_mod"].training)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name.startswith("__") or "_modules" not in self.__dict__:
                raise
            return getattr(self._modules["_orig_mod"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__ or name == "_orig_mod":
            super().__setattr__(name, value)
        else:
            setattr(self._modules["_orig_mod"], name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._modules["_orig_mod"], name)

    def __dir__(self) -> list[str]:
        return [*{*super().__dir__(), *dir(self._modules["_orig_mod"])}]

    def __len__(self) -> int:
        return len(self._modules["_orig_mod"])

    def __iter__(self) -> Iterator:
        return iter(self._modules["_orig_mod"])

    def __bool__(self) -> bool:
        return True

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
