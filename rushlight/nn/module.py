"""class Module: a tree of modules that own parameters and buffers."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from rushlight.base.errors import Suggesting, explain, not_implemented_error, type_error, value_error
from rushlight.base.missing_names import NoAttribute
from rushlight.core.tensor import Tensor
from rushlight.nn.hooks import CALLED, HOOKS, Hooked, registered
from rushlight.nn.hooks import _global_buffer_registration_hooks as _global_buffer_registration_hooks  # torch's names
from rushlight.nn.hooks import _global_module_registration_hooks as _global_module_registration_hooks
from rushlight.nn.hooks import _global_parameter_registration_hooks as _global_parameter_registration_hooks
from rushlight.nn.parameter import Buffer, Parameter
from rushlight.nn.state_dict import EXTRA_STATE_KEY as _EXTRA_STATE_KEY_SUFFIX  # noqa: F401  # torch's names
from rushlight.nn.state_dict import IncompatibleKeys as _IncompatibleKeys  # noqa: F401
from rushlight.nn.state_dict import Stateful
from rushlight.nn.to_dtype import Convertible
from rushlight.ops.grad_mode import no_grad

M = TypeVar("M", bound="Module")
ATTRIBUTE_DICTS = ("_parameters", "_buffers", "_modules")  # dicts of the attributes that are not in __dict__


class Module(Hooked, Stateful, Convertible, Suggesting):
    """The base of all neural network modules: define `forward`, and assign parameters and submodules as attributes.

    >>> class Net(rushlight.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.hidden = rushlight.nn.Linear(2, 3)
    ...     def forward(self, x):
    ...         return self.hidden(x).relu()
    >>> Net()
    Net(
      (hidden): Linear(in_features=2, out_features=3, bias=True)
    )
    """

    dump_patches = False
    call_super_init = False
    training: bool
    _derived: tuple[str, ...] = ()  # computed attributes that torch's pickles contain

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init and (args or kwargs):
            what = (
                f"an unexpected keyword argument '{next(iter(kwargs))}'"
                if kwargs
                else f"{len(args) + 1} positional arguments but takes 1"
            )
            raise type_error(f"{type(self).__name__}.__init__() got {what}")
        own = self.__dict__
        own.update(training=True, _parameters={}, _buffers={}, _modules={})
        own.update(_non_persistent_buffers_set=set(), _hooks_with_module=set())
        for kind in HOOKS:
            own[kind] = OrderedDict()  # a plain dict takes no weak references
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Computes the result; every subclass defines this method."""
        raise not_implemented_error(
            f'Module [{type(self).__name__}] is missing the required "forward" function', self._missing_forward()
        )

    def _missing_forward(self) -> str:
        """The hint for a call of a module without forward."""
        return "define it in the class: def forward(self, x)"

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """From the next call on, run the code that `rushlight.compile` makes with these settings. The module stays the
        same object.
        """
        self.__dict__["forward"] = sys.modules["rushlight"].compile(self.forward, *args, **kwargs)

    # -- attributes --------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        if "_modules" in own:  # __init__ sets `_modules` last; a loop over SETS would be slower
            found = own["_modules"]
            if name in found:
                return found[name]
            found = own["_parameters"]
            if name in found:
                return found[name]
            found = own["_buffers"]
            if name in found:
                return found[name]
        hint = (
            "; TorchScript files are not supported, hint: torch.save(module.state_dict(), file)"
            if name == "save"
            else ""
        )
        text = f"'{type(self).__name__}' object has no attribute '{name}'{hint}"
        try:
            raise NoAttribute(text, name=name, obj=self)
        except NoAttribute as error:
            error.__traceback__ = None  # from Python 3.11 on, `raise` does not add this frame again
            raise

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        if isinstance(value, Parameter):
            check_initialized(own, "parameters")
            remove_name(self, name, "_parameters")
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            check_initialized(own, "module")
            remove_name(self, name, "_modules")
            own["_modules"][name] = registered(self, "module", name, value)
        elif isinstance(value, Buffer):
            check_initialized(own, "buffers")
            remove_name(self, name, "_buffers")
            self.register_buffer(name, value, value.persistent)
        elif "_parameters" not in own or not self._replace(name, value):
            object.__setattr__(self, name, value)

    def _replace(self, name: str, value: Any) -> bool:
        """Replace the object registered under the name by None or a tensor; False if the name is not registered."""
        if name in self._parameters:
            if value is not None:
                raise type_error(
                    f"cannot assign '{type_name(value)}' as parameter '{name}' (torch.nn.Parameter or None expected)",
                    f"wrap the tensor: nn.Parameter(tensor); or write the values: module.{name}.data.copy_(tensor)",
                )
            self._parameters[name] = None
        elif name in self._modules:
            if value is not None:
                raise type_error(
                    f"cannot assign '{type_name(value)}' as child module '{name}' (torch.nn.Module or None expected)"
                )
            self._modules[name] = registered(self, "module", name, None)
        elif name in self._buffers:
            if value is not None and not isinstance(value, Tensor):
                raise type_error(
                    f"cannot assign '{type_name(value)}' as buffer '{name}' (torch.nn.Buffer, torch.Tensor or "
                    "None expected)"
                )
            self._buffers[name] = registered(self, "buffer", name, value)
        else:
            return False
        return True

    def __delattr__(self, name: str) -> None:
        for kind in ATTRIBUTE_DICTS:
            if name in self.__dict__.get(kind, ()):
                del self.__dict__[kind][name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = {*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers}
        return sorted(name for name in names if not name[0].isdigit())

    def __getstate__(self) -> dict:
        return {**self.__dict__, **{name: getattr(self, name) for name in self._derived}}

    def __setstate__(self, state: dict) -> None:
        Module.__init__(self)
        self.__dict__.update({name: value for name, value in state.items() if name not in self._derived})
        if any([state.get(kind) for kind in CALLED]):  # modules pickled by torch lack `_hooked`
            self.__dict__["_hooked"] = True

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter; None keeps the name free. KeyError for a bad or taken name, TypeError for another type."""
        check_initialized(self.__dict__, "parameter")
        check_name(self, name, "parameter", "_parameters")
        if param is not None and not isinstance(param, Parameter):
            raise type_error(
                f"cannot assign '{type_name(param)}' object to parameter '{name}' (torch.nn.Parameter or None required)"
            )
        if param is not None and param.grad_fn is not None:
            raise value_error(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created "
                f"explicitly. To express '{name}' as a function of another Tensor, compute the value in the "
                "forward() method."
            )
        self._parameters[name] = param if param is None else registered(self, "parameter", name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that is not a parameter. It moves with the module and is saved, unless `persistent=False`."""
        check_initialized(self.__dict__, "buffer")
        check_name(self, name, "buffer", "_buffers")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise type_error(
                f"cannot assign '{type_name(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        self._buffers[name] = registered(self, "buffer", name, tensor)
        (self._non_persistent_buffers_set.discard if persistent else self._non_persistent_buffers_set.add)(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a submodule under a name. TypeError for another type, KeyError for a bad or taken name."""
        if module is not None and not isinstance(module, Module):
            raise not_a_module(module)
        check_initialized(self.__dict__, "module")
        check_name(self, name, "module", "_modules")
        self._modules[name] = registered(self, "module", name, module)

    register_module = add_module

    # -- walks -------------------------------------------------------------------------------------

    def named_modules(
        self, memo: set | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """(name, module) for this module and all below it, parents first."""
        seen = set() if memo is None else memo
        todo: list[tuple[str, Module]] = [(prefix, self)]
        while todo:
            name, module = todo.pop()
            if module in seen:
                continue
            if remove_duplicate:
                seen.add(module)
            yield name, module
            lead = name + "." if name else ""
            todo += [(lead + key, m) for key, m in reversed(module._modules.items()) if m is not None]

    def modules(self) -> Iterator[Module]:
        """This module and all below it, parents first, each once."""
        for _, module in self.named_modules():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """(name, module) for the modules directly below, each once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """The modules directly below, each once."""
        for _, module in self.named_children():
            yield module

    def _named_members(
        self, members: Callable[[Any], Any], prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        seen = set()
        found = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for lead, module in found:
            for key, value in members(module):
                if value is None or value in seen:
                    continue
                if remove_duplicate:
                    seen.add(value)
                yield (f"{lead}.{key}" if lead else key), value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """(name, parameter) of this module and, if `recurse`, of all below it.

        >>> [name for name, _ in rushlight.nn.Linear(2, 3).named_parameters()]
        ['weight', 'bias']
        """
        return self._named_members(lambda m: m._parameters.items(), prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters of this module and, if `recurse`, of all below it, each once."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """(name, buffer) of this module and, if `recurse`, of all below it."""
        return self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers of this module and, if `recurse`, of all below it, each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def get_submodule(self, target: str) -> Module:
        """The module at a dotted name. AttributeError if there is none."""
        module: Any = self
        for part in target.split(".") if target else ():
            if not hasattr(module, part):
                raise AttributeError(explain(f"{type(module).__name__} has no attribute `{part}`"))
            module = getattr(module, part)
            if not isinstance(module, Module):
                raise AttributeError(explain(f"`{part}` is not an nn.Module"))
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put a module at a dotted name; with `strict`, only in place of an existing one."""
        path, _, name = target.rpartition(".")
        if not name:
            raise value_error("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise value_error(f"`module` is not an nn.Module, found {type(module)}")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(explain(f"{type(parent).__name__} has no attribute `{name}`"))
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Module):
            raise AttributeError(explain(f"`{name}` is not an nn.Module"))
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a dotted name. AttributeError if there is none."""
        return member(self, target, "_parameters", "an nn.Parameter")

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a dotted name. AttributeError if there is none."""
        return member(self, target, "_buffers", "a buffer")

    # -- changes to all that is below --------------------------------------------------------------

    def apply(self: M, fn: Callable[[Module], Any]) -> M:
        """Call `fn` on every module below and then on this one. Returns the module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self: M, mode: bool = True) -> M:
        """Set training mode (dropout, batch statistics) for this module and all below. Returns the module."""
        if not isinstance(mode, bool):
            raise value_error("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self: M) -> M:
        """Set evaluation mode: `train(False)`. Returns the module."""
        return self.train(False)

    def requires_grad_(self: M, requires_grad: bool = True) -> M:
        """Set whether backward computes the parameters' gradients. Returns the module."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradients of the parameters to None, or to 0."""
        for parameter in self.parameters():
            if parameter.grad is not None:
                parameter.grad = None if set_to_none else zeroed(parameter.grad)

    # -- text --------------------------------------------------------------------------------------

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """Override it to add to the module's line in `repr`."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): {indented(repr(module))}" for name, module in self._modules.items()]
        if len(lines) == 1 and not children:
            return f"{self._get_name()}({extra})"
        inside = "".join(f"\n  {line}" for line in lines + children)
        return f"{self._get_name()}({inside}\n)" if inside else f"{self._get_name()}()"


# -- helpers ---------------------------------------------------------------------------------------


def check_initialized(own: dict, what: str) -> None:
    """AttributeError before `Module.__init__` has run."""
    if "_parameters" not in own:
        raise AttributeError(
            explain(f"cannot assign {what} before Module.__init__() call", "begin __init__ with super().__init__()")
        )


def remove_name(module: Module, name: str, kept: str) -> None:
    """Remove a name from all sets but one, and from the instance's __dict__."""
    own = module.__dict__
    own.pop(name, None)
    for kind in ATTRIBUTE_DICTS:
        if kind != kept:
            own[kind].pop(name, None)
    if kept != "_buffers":
        own["_non_persistent_buffers_set"].discard(name)


def check_name(module: Module, name: Any, what: str, kind: str) -> None:
    """TypeError or KeyError unless a name is a free identifier."""
    if not isinstance(name, str):
        raise type_error(f"{what} name should be a string. Got {type_name(name)}")
    if "." in name:
        raise KeyError(f'{what} name can\'t contain "."' + (f", got: {name}" if what == "module" else ""))
    if name == "":
        raise KeyError(f'{what} name can\'t be empty string ""')
    if hasattr(module, name) and name not in getattr(module, kind):
        raise KeyError(f"attribute '{name}' already exists")


def type_name(value: Any) -> str:
    """torch's name of a value's type."""
    kind = type(value)
    if kind is Tensor:
        return f"torch.{value.dtype.scalar_type}Tensor"
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def not_a_module(value: Any) -> TypeError:
    """The TypeError for a value that is not a module, with a hint."""
    if isinstance(value, type) and issubclass(value, Module):
        return type_error(
            f"{value.__module__}.{value.__name__} is not a Module subclass: it is a class, no module",
            f"make one: {value.__name__}()",
        )
    if isinstance(value, (list, tuple)):
        return type_error(f"{type_name(value)} is not a Module subclass", "unpack the list: nn.Sequential(*layers)")
    if callable(value) and hasattr(value, "__name__"):
        return type_error(
            f"{value.__name__} is not a Module subclass: it is a function",
            "use the module, nn.ReLU() for relu, or call the function in forward()",
        )
    return type_error(f"{type_name(value)} is not a Module subclass", "pass modules: nn.Linear(2, 3), nn.ReLU()")


def member(module: Module, path: str, kind: str, what: str) -> Any:
    """The parameter or buffer at a dotted name."""
    owner, _, name = path.rpartition(".")
    found = module.get_submodule(owner)
    if not hasattr(found, name):
        raise AttributeError(explain(f"{found._get_name()} has no attribute `{name}`"))
    if name not in getattr(found, kind):
        raise AttributeError(explain(f"`{name}` is not {what}"))
    return getattr(found, name)


def zeroed(grad: Tensor) -> Tensor:
    """A gradient outside the graph, full of 0."""
    with no_grad():
        return (grad if grad._node is None else grad.detach()).zero_()


def _addindent(s_: str, numSpaces: int) -> str:
    """The text with all lines but the first indented. Programs with their own `__repr__` import this helper."""
    return s_.replace("\n", "\n" + " " * numSpaces)


def indented(text: str) -> str:
    return text.replace("\n", "\n  ")
