"""The module of a TorchScript archive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.archives.budget import RUNNING, UNLIMITED, running
from rushlight.base.errors import not_implemented_error
from rushlight.core.tensor import Tensor
from rushlight.nn.module import Module
from rushlight.nn.parameter import Parameter
from rushlight.ops.grad_mode import is_grad_enabled, set_grad_enabled

from .values import Function, ScriptClass


class ScriptModule(Module):
    """A module that `torch.jit.load` makes of an archive. Its methods run the archive's code, `code` shows it.

    >>> isinstance(rushlight.jit.script(rushlight.nn.ReLU()), rushlight.jit.ScriptModule)
    False
    """

    script_class: ScriptClass

    def __init__(self, script_class: ScriptClass, text: str = ""):
        super().__init__()
        self.__dict__.update(script_class=script_class, _text=text, _values={})

    @property
    def original_name(self) -> str:
        """The name of the class in the program that wrote the archive."""
        return self.script_class.last

    @property
    def code(self) -> str:
        """The text of the archive that has the module's class."""
        return self._text

    def take(self, name: str, value: Any) -> None:
        """Set an attribute that the archive gives: a parameter, a buffer, a module, or a value."""
        if "." in name or name.startswith("__"):
            raise ValueError("names have no dots, and do not begin with two underscores")
        if name == "training":
            self.training = bool(value)
        elif name in self.script_class.parameters:
            if not isinstance(value, (Tensor, type(None))):
                raise TypeError(f"a parameter is a tensor, not a {type(value).__name__}")
            trained = isinstance(value, Tensor) and value.requires_grad
            self.register_parameter(name, Parameter(value.detach(), trained) if isinstance(value, Tensor) else None)
        elif name in self.script_class.buffers:
            self.register_buffer(name, value)
        elif isinstance(value, Module):
            self._modules[name] = value
        else:
            self._values[name] = value

    def script_attribute(self, name: str) -> Any:
        """An attribute, as the code of the archive reads it."""
        for values in (self._values, self._parameters, self._buffers, self._modules):
            if name in values:
                return values[name]
        if name == "training":
            return self.training
        if name in self.script_class.constants:
            return self.script_class.constants[name]
        raise AttributeError(f"the module {self.original_name} has no attribute {name!r}")

    def set_script_attribute(self, name: str, value: Any) -> None:
        """Set an attribute, as the code of the archive does."""
        if name in self._buffers or name in self._parameters:
            setattr(self, name, value)
        elif name in self._modules:
            raise AttributeError(f"the submodule {name!r} cannot be replaced")
        else:
            self._values[name] = value

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__"):
            values = self.__dict__.get("_values", {})
            kind = self.__dict__.get("script_class")
            if name in values:
                return values[name]
            if kind is not None and name in kind.methods:
                return bound(self, kind.methods[name])
            if kind is not None and name in kind.constants:
                return kind.constants[name]
        return super().__getattr__(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__.get("_values", ()):
            self._values[name] = value
        else:
            super().__setattr__(name, value)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The result of the archive's `forward`."""
        methods = self.script_class.methods
        if "forward" not in methods:
            raise NotImplementedError(f"the module {self.original_name} of the archive has no forward")
        return bound(self, methods["forward"])(*args, **kwargs)

    def save(self, f: Any, *args: Any, **kwargs: Any) -> None:
        """NotImplementedError: TorchScript archives are not written."""
        raise not_implemented_error(
            "TorchScript archives are not written",
            "torch.export.save(torch.export.export(model, args), 'model.pt2') writes a program that torch loads",
        )

    def _get_name(self) -> str:
        return "RecursiveScriptModule"

    def extra_repr(self) -> str:
        """The name of the class."""
        return f"original_name={self.original_name}"


ScriptModule.__module__ = "rushlight.jit"  # the module under which users find it


def bound(module: ScriptModule, method: Function) -> Callable[..., Any]:
    """A method of a module, for calls from Python: with a budget; grad mode stays as it was."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if RUNNING.get() is not UNLIMITED:
            return method.call([module, *args], kwargs)
        given = [*module.parameters(), *module.buffers(), *args, *kwargs.values()]
        with set_grad_enabled(is_grad_enabled()), running(given):
            return method.call([module, *args], kwargs)

    return call
