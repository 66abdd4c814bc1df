"""Parameters computed from other parameters by modules: weight = f(original), computed on each read.

`register_parametrization(m, "weight", f)` moves the parameter to `m.parametrizations.weight.original`, and makes `m` an
instance of a class, Parametrized..., in which `weight` is a property."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from copy import deepcopy
from functools import lru_cache
from typing import Any

from rushlight.base.errors import runtime_error, value_error
from rushlight.core.tensor import Tensor
from rushlight.nn.containers import ModuleDict, ModuleList
from rushlight.nn.module import Module
from rushlight.nn.parameter import Parameter
from rushlight.ops.grad_mode import no_grad

__all__ = [
    "ParametrizationList", "cached", "is_parametrized", "register_parametrization", "remove_parametrizations",
    "transfer_parametrizations_and_params", "type_before_parametrizations",
]  # fmt: skip

# (id of a module, name) -> computed value, inside `cached()`; None outside.
CACHE: ContextVar[dict[tuple[int, str], Tensor] | None] = ContextVar("parametrized values", default=None)


@contextmanager
def cached() -> Iterator[None]:
    """Within it every parametrized tensor is computed once: for layers whose weight is used several times.

    >>> with rushlight.nn.utils.parametrize.cached():
    ...     pass
    """
    if CACHE.get() is not None:  # only the outermost context ends the cache
        yield
        return
    token = CACHE.set({})
    try:
        yield
    finally:
        CACHE.reset(token)


class ParametrizationList(ModuleList):
    """value = last(...(first(original))): the modules that compute one tensor, and the original tensor, or several.

    `original` is the trained parameter; there are `original0`, `original1`, ... if the first module takes several. A
    module may have a method `right_inverse(value)`, which returns the `original` for this value: a tensor, or a
    sequence for several. `unsafe`: dtype and shape may change.

    >>> m = rushlight.nn.utils.parametrizations.weight_norm(rushlight.nn.Linear(2, 3))
    >>> [name for name, _ in m.parametrizations.weight.named_parameters()]
    ['original0', 'original1']
    """

    original: Parameter | Tensor

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False):
        if not modules:
            raise value_error("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        new: Any = original
        with no_grad():
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    # a module may define right_inverse for later assignments only
                    with suppress(NotImplementedError):
                        new = module.right_inverse(new)
        if not isinstance(new, (Tensor, Sequence)):
            raise value_error(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got "
                f"{type(new).__name__}"
            )
        self.is_tensor, self.ntensors = isinstance(new, Tensor), 1 if isinstance(new, Tensor) else len(new)
        if isinstance(new, Tensor):
            if new.dtype != dtype:
                raise value_error(
                    "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                    f"original.dtype: {dtype}\nright_inverse(original).dtype: {new.dtype}"
                )
            put(original, new)
            register(self, "original", original)
        else:
            self._register_parts(new, original)
        if not unsafe:
            same_kind(self(), shape, dtype)

    def _register_parts(self, parts: Sequence[Any], original: Tensor) -> None:
        for i, part in enumerate(parts):
            if not isinstance(part, Tensor):
                raise value_error(
                    "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got element "
                    f"{i} of the sequence with type {type(part).__name__}."
                )
            if isinstance(original, Parameter):
                part = Parameter(part, original.requires_grad)
            register(self, f"original{i}", part.requires_grad_(original.requires_grad))

    def _originals(self) -> list[Tensor]:
        names = ["original"] if self.is_tensor else [f"original{i}" for i in range(self.ntensors)]
        return [getattr(self, name) for name in names]

    def right_inverse(self, value: Tensor) -> None:
        """Set `original` so that forward returns this value. RuntimeError if a module has no `right_inverse`."""
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise runtime_error(f"parametrization {type(module).__name__} does not implement right_inverse.")
                value = module.right_inverse(value)
        parts: Any = [value] if self.is_tensor else value
        olds = self._originals()
        if not self.is_tensor and not isinstance(value, Sequence):
            raise value_error(f"'right_inverse' must return a sequence of tensors. Got {type(value).__name__}.")
        if len(parts) != self.ntensors:
            raise value_error(
                f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. Got a sequence of "
                f"length {len(parts)}."
            )
        for i, (part, old) in enumerate(zip(parts, olds)):
            which = "`right_inverse` should return a tensor" if self.is_tensor else f"Tensor {i} of `right_inverse`"
            if not isinstance(part, Tensor):
                raise value_error(f"{which}. Got {type(part).__name__}")
            if part.dtype != old.dtype:
                raise value_error(
                    f"{which} may not change the dtype: it has {part.dtype}, and the original {old.dtype}"
                )
        for part, old in zip(parts, olds):
            put(old, part)

    def forward(self) -> Any:
        """The tensor."""
        first, *rest = self
        value = first(*self._originals())
        for module in rest:
            value = module(value)
        return value


def put(old: Tensor, new: Tensor) -> None:
    """Give `old` the elements and the shape of `new`."""
    if new is not old:
        old.data = new.detach().clone()


def same_kind(
    value: Any, shape: tuple, dtype: Any, old: str = "unparametrized ", new: str = "parametrized ", the: str = ""
) -> None:
    """ValueError, in torch's words, unless the value is a tensor of this shape and dtype."""
    flag = f"unless {the}`unsafe` flag is enabled."
    if not isinstance(value, Tensor):
        raise value_error(f"A parametrization must return a tensor. Got {type(value).__name__}.")
    if value.dtype != dtype:
        raise value_error(
            f"Registering a parametrization may not change the dtype of the tensor, {flag}\n"
            f"{old}dtype: {dtype}\n{new}dtype: {value.dtype}"
        )
    if value.shape != shape:
        raise value_error(
            f"Registering a parametrization may not change the shape of the tensor, {flag}\n"
            f"{old}shape: {shape}\n{new}shape: {value.shape}"
        )


def register(module: Module, name: str, tensor: Tensor) -> None:
    """Add a parameter, or a buffer."""
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


# -- classes with parametrized tensors as properties ------------------------------------------


@lru_cache(maxsize=256)
def parametrized_class(base: type, names: tuple[str, ...]) -> type:
    """The subclass of `base` with a property for each of these names; shared by all modules of class `base`."""

    def refuse(self: Any) -> Any:
        raise runtime_error(
            "Serialization of parametrized modules is only supported through "
            "state_dict(). See:\n"
            "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
            "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
        )

    def copied(self: Any, memo: dict) -> Any:
        twin = memo[id(self)] = object.__new__(type(self))
        twin.__dict__.update(deepcopy(self.__dict__, memo))
        return twin

    return type(
        f"Parametrized{base.__name__}",
        (base,),
        {
            "__module__": __name__,
            "__getstate__": refuse,
            "__deepcopy__": copied,
            "_parametrized": base,
            **{name: property(*accessors(name)) for name in names},
        },
    )


def accessors(name: str) -> tuple[Callable, Callable]:
    """The getter and the setter of one parametrized tensor."""

    def get(self: Module) -> Tensor:
        cache = CACHE.get()
        if cache is None:
            return self.parametrizations[name]()
        key = id(self), name
        if key not in cache:
            cache[key] = self.parametrizations[name]()
        return cache[key]

    def set(self: Module, value: Tensor) -> None:
        cache = CACHE.get()
        if cache is not None:
            cache.pop((id(self), name), None)
        self.parametrizations[name].right_inverse(value)

    return get, set


def reclass(module: Module) -> None:
    """Set the module's class to the one with its parametrized names."""
    names = tuple(module.parametrizations) if "parametrizations" in module._modules else ()
    base = type_before_parametrizations(module)
    module.__class__ = parametrized_class(base, names) if names else base


# -- public functions ------------------------------------------------------------------------------


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Compute a parameter or buffer by a module on each read. A tensor may have several parametrizations.

    The tensor itself becomes `module.parametrizations[tensor_name].original`, which is trained and saved; `original`
    becomes `parametrization.right_inverse(tensor)` if that method exists. Returns the module. ValueError if shape or
    dtype change, unless `unsafe`, and for an unknown name.

    >>> class Symmetric(rushlight.nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).mT
    >>> m = rushlight.nn.Linear(3, 3)
    >>> _ = rushlight.nn.utils.parametrize.register_parametrization(m, "weight", Symmetric())
    >>> rushlight.equal(m.weight, m.weight.T)
    True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        append(module, tensor_name, parametrization, unsafe)
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        chain = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            module.parametrizations = ModuleDict()
        module.parametrizations[tensor_name] = chain
        reclass(module)
    else:
        raise value_error(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
            f"'{tensor_name}'"
        )
    return module


def append(module: Module, name: str, parametrization: Module, unsafe: bool) -> None:
    """Add a module to the parametrizations of a tensor; if it does not fit, nothing is changed."""
    chain, old = module.parametrizations[name], getattr(module, name)
    if not unsafe:
        words = f"module.{name}.", f"parametrization(module.{name}).", "the "
        same_kind(parametrization(old), old.shape, old.dtype, *words)
        if hasattr(parametrization, "right_inverse"):
            back = parametrization.right_inverse(old)
            if not isinstance(back, Tensor):
                raise value_error("parametrization.right_inverse must return a tensor. Got: " + type(back).__name__)
            same_kind(back, old.shape, old.dtype, words[0], "parametrization.right_inverse().", "the ")
    chain.append(parametrization)
    chain.unsafe |= unsafe


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """True if a tensor of the module is computed by a parametrization: the one named, or any.

    >>> m = rushlight.nn.utils.parametrizations.weight_norm(rushlight.nn.Linear(2, 3))
    >>> P = rushlight.nn.utils.parametrize
    >>> P.is_parametrized(m, "weight"), P.is_parametrized(m, "bias")
    (True, False)
    """
    found = module.__dict__.get("_modules", {}).get("parametrizations")
    if not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Replace the parametrization by an ordinary tensor: the computed value, or the original. Returns the module.

    ValueError if the tensor is not parametrized, and for `leave_parametrized=False` (keep the original) if there are
    several originals.

    >>> m = rushlight.nn.utils.parametrizations.weight_norm(rushlight.nn.Linear(2, 3))
    >>> [name for name, _ in rushlight.nn.utils.parametrize.remove_parametrizations(m, "weight").named_parameters()]
    ['bias', 'weight']
    """
    if not is_parametrized(module, tensor_name):
        raise value_error(f"Module {module} does not have a parametrization on {tensor_name}")
    chain = module.parametrizations[tensor_name]
    if leave_parametrized:
        with no_grad():
            value = getattr(module, tensor_name)
        first = chain._originals()[0]
        if chain.is_tensor:
            put(first, value)
        else:
            first = Parameter(value.detach(), first.requires_grad) if isinstance(first, Parameter) else value
    elif chain.is_tensor:
        first = chain.original
    else:
        raise value_error(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a "
            "sequence of tensors."
        )
    del module.parametrizations[tensor_name]
    reclass(module)
    if not len(module.parametrizations):
        del module.parametrizations
    register(module, tensor_name, first)
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class of the module before parametrization.

    >>> m = rushlight.nn.utils.parametrizations.weight_norm(rushlight.nn.Linear(2, 3))
    >>> rushlight.nn.utils.parametrize.type_before_parametrizations(m).__name__, type(m).__name__
    ('Linear', 'ParametrizedLinear')
    """
    return getattr(type(module), "_parametrized", type(module))


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """to_module's weight = from_module's: parametrizations and their values, for one tensor or all. Returns to_module.

    >>> m, to = rushlight.nn.utils.parametrizations.weight_norm(rushlight.nn.Linear(2, 3)), rushlight.nn.Linear(2, 3)
    >>> to = rushlight.nn.utils.parametrize.transfer_parametrizations_and_params(m, to)
    >>> to.weight.equal(m.weight), rushlight.nn.utils.parametrize.is_parametrized(to)
    (True, True)
    """
    names: Iterable[str] = (
        [tensor_name]
        if tensor_name is not None
        else (list(from_module.parametrizations) if is_parametrized(from_module) else [])
    )
    for name in names:
        if not is_parametrized(from_module, name):
            raise value_error(f"Module {from_module} does not have a parametrization on {name}")
        if not hasattr(to_module, name):
            register(to_module, name, Parameter(getattr(from_module, name).detach().clone()))
        source = from_module.parametrizations[name]
        for module in source:
            register_parametrization(to_module, name, module, unsafe=source.unsafe)
        for old, new in zip(to_module.parametrizations[name]._originals(), source._originals()):
            put(old, new.detach().clone())
    return to_module
