"""A module's state: its parameters and buffers, saved to a dict and loaded from it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from rushlight.base.errors import explain, runtime_error, type_error, warn
from rushlight.core.node import Handle
from rushlight.core.tensor import Tensor
from rushlight.nn.hooks import add
from rushlight.nn.parameter import Parameter, is_lazy
from rushlight.ops.grad_mode import no_grad

EXTRA_STATE_KEY = "_extra_state"


NO_MODEL = (
    "load_state_dict() changes the model and returns its keys: write model.load_state_dict(state), not model = "
    "model.load_state_dict(state)"
)


class IncompatibleKeys(NamedTuple):
    """The keys that `load_state_dict(strict=False)` did not use or find."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not any(self):
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"

    def __getattr__(self, name: str) -> Any:
        """AttributeError, with a hint for a program that takes the keys for the model."""
        raise AttributeError(
            explain(f"{type(self).__name__!r} object has no attribute {name!r}", NO_MODEL)
            if not name.startswith("_")
            else name
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise type_error(f"{type(self).__name__!r} object is not callable", NO_MODEL)


class Errors(list):
    """Error messages of loading, and the copies to make once all tensors fit."""

    def __init__(self) -> None:
        super().__init__()
        self.todo: list[Callable[[], None]] = []


class Stateful:
    """The part of Module that saves and loads."""

    _version = 1
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _state_dict_hooks: dict[int, Callable]
    _state_dict_pre_hooks: dict[int, Callable]
    _load_state_dict_pre_hooks: dict[int, Callable]
    _load_state_dict_post_hooks: dict[int, Callable]
    _hooks_with_module: set[int]  # keys of the load hooks that take the module

    # -- saving ------------------------------------------------------------------------------------

    def get_extra_state(self) -> Any:
        """Override it to save more than parameters and buffers. The key is `_extra_state`."""
        raise runtime_error("Reached a code path in Module.get_extra_state() that should never be called: override it")

    def set_extra_state(self, state: Any) -> None:
        """Override it to restore the result of `get_extra_state`."""
        raise runtime_error("Reached a code path in Module.set_extra_state() that should never be called: override it")

    def _own_state(self) -> dict[str, Tensor]:
        """Parameters and persistent buffers of this module, without submodules."""
        own: dict[str, Tensor] = {name: t for name, t in self._parameters.items() if t is not None}
        own.update(
            (name, t)
            for name, t in self._buffers.items()
            if t is not None and name not in self._non_persistent_buffers_set
        )
        return own

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        """Put this module's own state into `destination`; override it for a state of another form."""
        for name, t in self._own_state().items():
            destination[prefix + name] = t if keep_vars or is_lazy(t) else t.detach()
        if type(self).get_extra_state is not Stateful.get_extra_state:
            destination[prefix + EXTRA_STATE_KEY] = self.get_extra_state()

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """Parameters and persistent buffers by name. Names in submodules begin with 'submodule.'.

        Tensors share the module's memory and are detached, unless `keep_vars`.

        >>> list(rushlight.nn.Linear(2, 3).state_dict())
        ['weight', 'bias']
        """
        if args:  # the old order: destination, prefix, keep_vars
            warn(
                "Positional args are being deprecated, use kwargs instead. Refer to "
                "https://pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.state_dict for details.",
                FutureWarning,
            )
            given = [destination, prefix, keep_vars]
            given[: len(args)] = args
            destination, prefix, keep_vars = given
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in tuple(self._state_dict_pre_hooks.values()):
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in tuple(self._state_dict_hooks.values()):
            answer = hook(self, destination, prefix, metadata)
            destination = destination if answer is None else answer
        return destination

    def _register_state_dict_hook(self, hook: Callable) -> Handle:
        return add(self._state_dict_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable) -> Handle:
        """Call `hook(module, prefix, keep_vars)` before `state_dict` collects."""
        return add(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable) -> Handle:
        """Call `hook(module, state_dict, prefix, local_metadata)` after `state_dict`; it may change the dict."""
        return add(self._state_dict_hooks, hook)

    # -- loading -----------------------------------------------------------------------------------

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copy parameters and buffers from a state; with `assign`, take its tensors themselves.

        Returns (missing_keys, unexpected_keys). RuntimeError, and no change, for different shapes and, if `strict`, for
        missing or unexpected keys. TypeError if the state is not a mapping.

        >>> a, b = rushlight.nn.Linear(2, 3), rushlight.nn.Linear(2, 3)
        >>> b.load_state_dict(a.state_dict())
        <All keys matched successfully>
        """
        if not isinstance(state_dict, Mapping):
            raise type_error(f"Expected state_dict to be dict-like, got {type(state_dict)}.", "pass model.state_dict()")
        metadata = getattr(state_dict, "_metadata", None) or {}
        found, errors = IncompatibleKeys([], []), Errors()
        state: Any = OrderedDict(state_dict)
        if metadata:
            state._metadata = metadata
        visited: list = []
        load_tree(self, state, "", metadata, assign, found, errors, visited)
        hooked = any(module._load_state_dict_post_hooks for module in visited)
        if errors or (not hooked and strict and any(found)):
            raise failure(self, found, errors, strict)
        for act in errors.todo:
            act()
        for module in visited:
            for hook in tuple(module._load_state_dict_post_hooks.values()):
                if hook(module, found) is not None:
                    raise runtime_error(
                        "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return "
                        "new values, if incompatible_keys need to be modified, it should be done inplace."
                    )
        if errors or (strict and any(found)):
            raise failure(self, found, errors, strict)
        return found

    def _load_from_state_dict(
        self, state_dict: dict, prefix: str, local_metadata: dict, strict: bool, missing_keys: list[str],
        unexpected_keys: list[str], error_msgs: list[str],
    ) -> None:  # fmt: skip
        """Load this module's own state from `state_dict`; a subclass may override it to read a state of another
        form."""
        for key, hook in tuple(self._load_state_dict_pre_hooks.items()):
            first = (self,) if key in self._hooks_with_module else ()
            hook(*first, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        own = self._own_state()
        for name, t in own.items():
            if prefix + name in state_dict:
                load_tensor(self, name, t, prefix + name, state_dict[prefix + name], local_metadata, error_msgs)
            elif strict:
                missing_keys.append(prefix + name)
        extra = type(self).set_extra_state is not Stateful.set_extra_state
        if extra and prefix + EXTRA_STATE_KEY in state_dict:
            self.set_extra_state(state_dict[prefix + EXTRA_STATE_KEY])
        elif extra and strict:
            missing_keys.append(prefix + EXTRA_STATE_KEY)
        if strict:
            known = {*own, EXTRA_STATE_KEY} if extra else {*own}
            unexpected_keys += unknown_keys(state_dict, prefix, known, self._modules)

    _load_from_state_dict.waits = True  # type: ignore[attr-defined]  # copies are made only after all tensors fit

    def _register_load_state_dict_pre_hook(self, hook: Callable, with_module: bool = False) -> Handle:
        handle = add(self._load_state_dict_pre_hooks, hook)
        if with_module:
            self._hooks_with_module.add(handle.key)
        return handle

    def register_load_state_dict_pre_hook(self, hook: Callable) -> Handle:
        """Call `hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)`
        before this module takes its own state."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook: Callable) -> Handle:
        """Call `hook(module, incompatible_keys)` after loading; it may change the lists of keys in place."""
        return add(self._load_state_dict_post_hooks, hook)


def load_tree(
    module: Any, state: dict, prefix: str, metadata: Mapping, assign: bool, found: IncompatibleKeys, errors: Errors,
    visited: list,
) -> None:  # fmt: skip
    """Load the state of a module and its submodules; `visited` lists them, children first."""
    local = {**metadata.get(prefix[:-1], {}), "assign_to_params_buffers": assign}
    own_way = not getattr(type(module)._load_from_state_dict, "waits", False)
    messages: Any = [] if own_way else errors  # an override may expect immediate copies
    module._load_from_state_dict(state, prefix, local, True, found.missing_keys, found.unexpected_keys, messages)
    if own_way:
        errors += messages
    for name, child in module._modules.items():
        if child is not None:
            start = f"{prefix}{name}."
            part = {key: value for key, value in state.items() if key.startswith(start)}
            load_tree(child, part, start, metadata, assign, found, errors, visited)
    visited.append(module)


def unknown_keys(
    state_dict: Mapping[str, Any], prefix: str, known: set[str], modules: Mapping[str, Any]
) -> Iterator[str]:
    """The keys with this prefix that name neither a module inside nor one of the `known` names."""
    for key in state_dict:
        first, dot, _ = key[len(prefix) :].partition(".")
        if key.startswith(prefix) and first not in (modules if dot else known):
            yield key


def load_tensor(module: Any, name: str, old: Tensor, key: str, new: Any, metadata: Mapping, errors: list) -> None:
    """Copy or assign one tensor, or add an error message."""
    if not isinstance(new, Tensor):
        errors.append(
            f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like '
            "object from "
            f"checkpoint but received {type(new)}"
        )
        return
    if is_lazy(old):
        if is_lazy(new):
            return
    elif old.dim() == 0 and not is_lazy(new) and new.dim() == 1:
        new = new[0]  # files older than 0-d tensors
    if not is_lazy(old) and new.shape != old.shape:
        errors.append(
            f"size mismatch for {key}: copying a param with shape {new.shape} from checkpoint, the shape in current "
            f"model is {old.shape}."
        )
        return
    if old.is_meta and not new.is_meta and not metadata.get("assign_to_params_buffers"):
        warn(
            f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current "
            "model, which is a no-op. (Did you mean to pass `assign=True` to assign items in the state dictionary to "
            "their corresponding key in the module instead of copying them in place?)"
        )
    put = replace if metadata.get("assign_to_params_buffers") else copy
    act = partial(put, module, name, old, key, new, errors)
    if isinstance(errors, Errors):
        errors.todo.append(act)
    else:
        act()


def replace(module: Any, name: str, old: Tensor, key: str, new: Tensor, errors: list) -> None:
    """Make the tensor of the state itself the module's tensor."""
    if isinstance(old, Parameter):
        new = new.requires_grad_(old.requires_grad) if isinstance(new, Parameter) else Parameter(new, old.requires_grad)
    setattr(module, name, new)


def copy(module: Any, name: str, old: Tensor, key: str, new: Tensor, errors: list) -> None:
    """Copy the elements into the module's tensor."""
    try:
        with no_grad():
            if is_lazy(old):
                old.materialize(new.shape)
            old.copy_(new)
    except Exception as error:
        errors.append(
            f'While copying the parameter named "{key}", whose dimensions in the model are '
            f"{old.shape} and "
            f"whose dimensions in the checkpoint are {new.shape}, an exception occurred : "
            f"{error.args}."
        )


def common_prefix(found: IncompatibleKeys) -> str:
    """The common prefix of the module's names in the state: "module." of nn.DataParallel, "_orig_mod." of
    torch.compile; "" without a common prefix."""
    first = next(iter(found.missing_keys), "")
    keys = found.unexpected_keys
    prefix = next((key[: -len(first)] for key in keys if first and key.endswith(f".{first}")), "")
    return prefix if {prefix + name for name in found.missing_keys} == {*keys} else ""


def failure(module: Any, found: IncompatibleKeys, errors: list[str], strict: bool) -> RuntimeError:
    """torch's message: missing keys, unexpected keys, then the rest, a line each."""
    lines = list(errors)
    if strict:
        for what, keys in (("Unexpected", found.unexpected_keys), ("Missing", found.missing_keys)):
            if keys:
                names = ", ".join(f'"{key}"' for key in keys)
                lines.insert(0, f"{what} key(s) in state_dict: {names}. ")
    what = "\n\t".join([f"Error(s) in loading state_dict for {type(module).__name__}:", *lines])
    hint = "load it into a module of the saved architecture"
    prefix = common_prefix(found)
    if prefix:
        hint = (
            f"the names begin with {prefix!r}: load {{name.removeprefix({prefix!r}): value for name, value in "
            "state.items()}"
        )
    elif not errors:  # with strict=False, wrong shapes are still errors
        hint += "; load_state_dict(strict=False) ignores missing and unexpected keys"
    return runtime_error(what, hint)
