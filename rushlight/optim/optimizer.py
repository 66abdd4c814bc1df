"""The base class of all optimizers: groups of parameters with their settings, state of each parameter, saving,
hooks."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from copy import deepcopy
from functools import wraps
from itertools import chain, count
from typing import Any

from rushlight.base import dtypes
from rushlight.base.errors import Suggesting, explain, not_implemented_error, runtime_error, type_error, value_error
from rushlight.core.mode import mode
from rushlight.core.node import Handle
from rushlight.core.tensor import Tensor
from rushlight.creation.factories import tensor
from rushlight.ops.grad_mode import enable_grad, no_grad
from rushlight.optim.vendored import (  # noqa: F401
    _default_to_fused_or_foreach,
    _get_capturable_supported_devices,
    _get_value,
    _stack_if_compiling,
    _to_scalar,
    _use_grad_for_differentiable,
    _view_as_real,
)

Params = Iterable[Any]  # of tensors, of dicts (groups), or of (name, tensor)
ParamsT = Params  # torch's name
Group = dict[str, Any]  # {"params": tensors} and the settings of the group
State = dict[str, Any]  # the state of one parameter, by torch's names


class Required:
    """The default of a setting that every group must give."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = Required()


class Hooks:
    """Hooks by kind, each kind in the order of registration."""

    KINDS = ("step_pre", "step_post", "state_dict_pre", "state_dict_post", "load_pre", "load_post")

    def __init__(self) -> None:
        self.count = count()
        self.kinds: dict[str, dict[int, Callable]] = {kind: {} for kind in self.KINDS}

    def add(self, kind: str, hook: Callable, prepend: bool = False) -> Handle:
        hooks, key = self.kinds[kind], next(self.count)
        later = dict(hooks) if prepend else {}
        if prepend:
            hooks.clear()
        hooks[key] = hook
        hooks.update(later)
        return Handle(hooks, key)

    def of(self, kind: str) -> list[Callable]:
        return list(self.kinds[kind].values())


EVERYWHERE = Hooks()  # hooks of all optimizers


def register_optimizer_step_pre_hook(hook: Callable) -> Handle:
    """Call `hook(optimizer, args, kwargs)` before every step of every optimizer."""
    return EVERYWHERE.add("step_pre", hook)


def register_optimizer_step_post_hook(hook: Callable) -> Handle:
    """Call `hook(optimizer, args, kwargs)` after every step of every optimizer."""
    return EVERYWHERE.add("step_post", hook)


# the hooks of an optimizer whose class does not call `Optimizer.__init__`
NO_HOOKS: dict[str, dict[int, Callable]] = {}


def hooked(step: Callable) -> Callable:
    """`step` with hooks. A scheduler warns of a wrong order if `_opt_called` is not set."""
    own, everywhere = ("step_pre", "step_post"), EVERYWHERE.kinds

    @wraps(step)
    def call(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        self._opt_called = True
        kinds = NO_HOOKS if self._hooks is None else self._hooks.kinds
        if kinds is NO_HOOKS or not any(kinds[k] or everywhere[k] for k in own):
            return step(self, *args, **kwargs)
        given = (self, *args)
        for hook in EVERYWHERE.of("step_pre") + self._hooks.of("step_pre"):
            changed = hook(self, given, kwargs)
            if changed is not None:
                if not isinstance(changed, tuple) or len(changed) != 2:
                    raise runtime_error(
                        f"{step} must return None or a tuple of (new_args, new_kwargs), but got {changed}.",
                        "return None from the pre-hook, or (args, kwargs)",
                    )
                given, kwargs = changed
        result = step(*given, **kwargs)
        for hook in self._hooks.of("step_post") + EVERYWHERE.of("step_post"):
            hook(self, given, kwargs)
        return result

    call.hooked = True  # type: ignore[attr-defined]
    return call


class Optimizer(Suggesting):
    """The base class of all optimizers, with `param_groups`, `state`, `state_dict()` and hooks.

    `params`: tensors, (name, tensor) pairs, or dicts with "params" and the settings of this group. `defaults`: the
    settings that a group does not give. A subclass implements `step(closure=None)`. TypeError for a parameter that is
    not a tensor; ValueError for no parameters, for a non-leaf, or for a parameter in two groups.

    >>> w, b = (rushlight.ones(1, requires_grad=True) for _ in range(2))
    >>> optimizer = rushlight.optim.SGD([{"params": w}, {"params": b, "lr": 0.5}], lr=0.1)
    >>> (w + b).backward()
    >>> optimizer.step()
    >>> w.item(), b.item(), isinstance(optimizer, rushlight.optim.Optimizer)  # b has its own lr
    (0.8999999761581421, 0.5, True)
    """

    _hooks: Any = None
    _elementwise = False  # whether each element of a step depends on that element alone

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = cls.__dict__.get("step")
        if own is not None and not hasattr(own, "hooked"):
            cls.step = hooked(own)  # type: ignore[method-assign]

    def __init__(self, params: Params, defaults: dict[str, Any]):
        self.defaults = defaults
        self.state: defaultdict[Any, Any] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        self._hooks, self._opt_called = Hooks(), False
        if isinstance(params, Tensor):
            raise type_error(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                f"torch.{params.dtype.scalar_type}Tensor",
                "put it into a list: [x]",
            )
        # a module is not iterable, but a ParameterList is
        if hasattr(params, "named_parameters") and not hasattr(params, "__iter__"):
            raise type_error(f"'{type(params).__name__}' object is not iterable", "pass model.parameters()")
        groups = list(params)
        if not groups:
            raise value_error(
                "optimizer got an empty parameter list",
                "pass model.parameters(); layers in a plain list are not found: use nn.ModuleList; a generator "
                "can be read only once",
            )
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    # -- groups ------------------------------------------------------------------------------------

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group, such as an unfrozen layer: {"params": tensors, and settings that differ from the defaults}."""
        if not isinstance(param_group, dict):
            raise type_error(
                f"param_group must be a dict, but got {type(param_group)}", 'write {"params": [...], "lr": ...}'
            )
        group = param_group
        if "params" not in group:
            raise KeyError(
                explain(
                    f"params: the group has {', '.join(map(repr, group)) or 'nothing'}",
                    'write {"params": [...], "lr": ...}',
                )
            )
        group["params"], names = named(listed(group["params"]))
        if names is not None:
            group["param_names"] = names
        for p in group["params"]:
            self._check_parameter(p)
        for name, value in self.defaults.items():
            if value is required and name not in group:
                raise value_error(
                    f"parameter group didn't specify a value of required optimization parameter {name}",
                    f"pass {name}= to the optimizer, or set it in the group",
                )
            group.setdefault(name, value)
        self._check_group(group)
        self.param_groups.append(group)

    def _check_parameter(self, p: Any) -> None:
        """TypeError or ValueError for a parameter that cannot be optimized."""
        if not isinstance(p, Tensor):
            raise type_error(
                f"optimizer can only optimize Tensors, but one of the params is {type(p).__name__}",
                "give tensors or nn.Parameters (of a model: model.parameters())",
            )
        if not (self.defaults.get("differentiable") or p.is_leaf or p.retains_grad):
            raise value_error(
                "can't optimize a non-leaf Tensor",
                "optimize the leaf from which it was computed, or x.detach().requires_grad_()",
                tensor=tuple(p.shape),
            )
        piece = getattr(p, "_piece", None)  # the rows of this rank; all rows if there is one rank
        if piece is not None and piece.group.size() > 1 and not self._elementwise:
            raise not_implemented_error(
                f"{type(self).__name__} needs whole parameters, and a parameter is divided over the ranks",
                "use an elementwise optimizer (AdamW), or DistributedDataParallel",
                tensor=tuple(p.shape),
            )

    def _check_group(self, group: Group) -> None:
        """ValueError for parameters of another group, or if only some groups have names."""
        params = group["params"]
        if len({id(p) for p in params}) != len(params):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; "
                "see github.com/pytorch/pytorch/issues/40967 for more information",
                stacklevel=5,
            )
        known = {id(p) for other in self.param_groups for p in other["params"]}
        if any(id(p) in known for p in params):
            raise value_error(
                "some parameters appear in more than one parameter group", "keep each parameter in one group only"
            )
        if self.param_groups and ("param_names" in group) != ("param_names" in self.param_groups[0]):
            how = "with" if "param_names" in group else "without"
            raise value_error(
                f"all optimizer param groups should be with/without names. cannot add param group {how} names to "
                "the optimizer",
                "use named_parameters() for all groups, or for none",
            )

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set all gradients to None. `set_to_none=False`: fill them with 0 instead, and detach them from the graph."""
        for group in self.param_groups:
            for p in group["params"]:
                if p._overrides:  # its __torch_function__ may keep the gradient elsewhere
                    if p.grad is not None:
                        p.grad = None if set_to_none else p.grad.detach().zero_()
                elif set_to_none:
                    p._grad = None
                elif p._grad is not None:
                    if p._grad._node is not None:
                        p._grad.detach_()
                    p._grad.zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters once. `closure`: recomputes the gradients and returns the loss."""
        raise NotImplementedError

    # -- saving ------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """{"state": {number of parameter: its state}, "param_groups": [...]}, in torch's format; not a copy."""
        for hook in self._hooks.of("state_dict_pre"):
            hook(self)
        number = {id(p): i for i, p in enumerate(self._parameters())}
        saved = {
            "state": {number[id(k)] if isinstance(k, Tensor) else k: v for k, v in self.state.items()},
            "param_groups": [
                {name: value for name, value in group.items() if name != "params"}
                | {"params": [number[id(p)] for p in group["params"]]}
                for group in self.param_groups
            ],
        }
        for hook in self._hooks.of("state_dict_post"):
            changed = hook(self, saved)
            saved = saved if changed is None else changed
        return saved

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what `state_dict()` returned, here or in torch. Parameters are matched by their order.

        State gets the dtype of its parameter; `step` keeps its dtype. ValueError if the groups differ in number or
        size."""
        saved = dict(state_dict)
        for hook in self._hooks.of("load_pre"):
            changed = hook(self, saved)
            saved = saved if changed is None else changed
        groups = deepcopy(saved["param_groups"])
        check_sizes(self.param_groups, groups)
        parameter = dict(zip(chain.from_iterable(g["params"] for g in groups), self._parameters()))
        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, value in saved["state"].items():
            p = parameter.get(key)
            state[key if p is None else p] = fitted(value, p)
        for own, group in zip(self.param_groups, groups):
            group["params"] = own["params"]
            if "param_names" in own:
                group.setdefault("param_names", own["param_names"])
        self.__setstate__({"state": state, "param_groups": groups})
        for hook in (*EVERYWHERE.of("load_post"), *self._hooks.of("load_post")):
            hook(self)

    def _parameters(self) -> Iterable[Tensor]:
        return dict.fromkeys(p for group in self.param_groups for p in group["params"])

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: State) -> None:
        self.__dict__.update(state)
        self._patch_step_function()
        for group in self.param_groups:  # settings that the saved version did not have
            for name, value in self.defaults.items():
                if name != "lr":
                    group.setdefault(name, value)
        for one in self.state.values():
            if isinstance(one, dict) and isinstance(one.get("step"), (int, float)):
                one["step"] = new_step(one["step"])

    def _patch_step_function(self) -> None:
        """Attributes that `step` needs in an object made without __init__. torch has this name."""
        self.__dict__.setdefault("_hooks", Hooks())
        self.__dict__.setdefault("_opt_called", False)

    # -- hooks -------------------------------------------------------------------------------------

    def register_step_pre_hook(self, hook: Callable) -> Handle:
        """Call `hook(optimizer, args, kwargs)` before each step; it may return other (args, kwargs)."""
        return self._hooks.add("step_pre", hook)

    def register_step_post_hook(self, hook: Callable) -> Handle:
        """Call `hook(optimizer, args, kwargs)` after each step."""
        return self._hooks.add("step_post", hook)

    def register_state_dict_pre_hook(self, hook: Callable, prepend: bool = False) -> Handle:
        """Call `hook(optimizer)` before `state_dict`."""
        return self._hooks.add("state_dict_pre", hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable, prepend: bool = False) -> Handle:
        """Call `hook(optimizer, state_dict)` after `state_dict`; it may return another one."""
        return self._hooks.add("state_dict_post", hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable, prepend: bool = False) -> Handle:
        """Call `hook(optimizer, state_dict)` before `load_state_dict`; it may return another one."""
        return self._hooks.add("load_pre", hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable, prepend: bool = False) -> Handle:
        """Call `hook(optimizer)` after `load_state_dict`."""
        return self._hooks.add("load_post", hook, prepend)

    def __repr__(self) -> str:
        groups = [
            [f"Parameter Group {i}", *(f"    {k}: {v}" for k, v in sorted(group.items()) if k != "params")]
            for i, group in enumerate(self.param_groups)
        ]
        return f"{type(self).__name__} (\n" + "\n\n".join(map("\n".join, groups)) + "\n)"


class PerParameter(Optimizer):
    """An optimizer that updates each parameter separately, by `_new_state` and `_update`.

    With a true setting `differentiable`, grad mode stays on, so that the step can be differentiated."""

    def _new_state(self, p: Tensor, group: Group) -> State:
        """The state of a parameter before its first step."""
        return {}

    def _update(self, p: Tensor, g: Tensor, state: State, group: Group) -> None:
        """Update a parameter and its state by ops of the table."""
        raise NotImplementedError

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient. `closure` recomputes the gradients and returns the loss."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        for group in self.param_groups:
            params = [p for p in group["params"] if p._grad is not None]
            if params:
                self._update_group(params, group)
        return loss

    def _update_group(self, params: list[Any], group: Group) -> None:
        """Update the parameters of a group that have a gradient. RuntimeError for a sparse one."""
        if any([p._grad.is_sparse for p in params]):
            raise no_sparse(self)
        with nullcontext() if group.get("differentiable") else no_grad():
            for p in params:
                self._update(p, p._grad, self._state_of(p, group), group)

    def _state_of(self, p: Tensor, group: Group) -> State:
        """The state of a parameter; it is stored in `self.state` unless it is empty."""
        state = self.state.get(p)
        if not state:
            state = self._new_state(p, group)
            if state:
                self.state[p] = state
        return state


def no_sparse(optimizer: Optimizer) -> RuntimeError:
    return runtime_error(
        f"{type(optimizer).__name__} does not support sparse gradients, please consider SparseAdam instead",
        "or create the embedding with sparse=False",
    )


def listed(params: Any) -> list:
    """A list of one tensor or of a collection. TypeError for a set, whose order changes between runs."""
    if isinstance(params, Tensor):
        return [params]
    if isinstance(params, (set, frozenset)):
        raise type_error(
            "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in "
            "sets will change between runs. Please use a list instead."
        )
    return list(params)


def named(params: list) -> tuple[list, list | None]:
    """(tensors, names or None), from tensors or from (name, tensor) pairs."""
    pairs = [isinstance(p, tuple) for p in params]
    if not any(pairs):
        return params, None
    if not all(pairs):
        raise value_error(
            "all optimizer params should be with/without names. Some param names are missing",
            "pass named_parameters() or parameters(), not a mixture",
        )
    return [p for _, p in params], [name for name, _ in params]


def check_sizes(own: list[dict], saved: list[dict]) -> None:
    """ValueError unless both have the same number of groups, of the same sizes."""
    if len(own) != len(saved):
        raise value_error(
            "loaded state dict has a different number of parameter groups",
            "create the optimizer with the same groups as the saved one",
            saved=len(saved),
            here=len(own),
        )
    sizes = [[len(group["params"]) for group in groups] for groups in (saved, own)]
    if sizes[0] != sizes[1]:
        raise value_error(
            "loaded state dict contains a parameter group that doesn't match the size of optimizer's group",
            "create the optimizer for the same model",
            saved=sizes[0],
            here=sizes[1],
        )


def fitted(value: Any, p: Tensor | None, key: str = "") -> Any:
    """A copy of saved state, with floating-point tensors in the parameter's dtype; `step` keeps its dtype."""
    if isinstance(value, Tensor):
        other = p is not None and key != "step" and p.is_floating_point() and value.dtype is not p.dtype
        return value.to(p.dtype) if other else value.detach().clone()  # type: ignore[union-attr]
    if isinstance(value, dict):
        return {k: fitted(v, p, k) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)([fitted(v, p) for v in value])
    return value


def settings(arguments: dict[str, Any], order: str = "") -> dict[str, Any]:
    """A constructor's `locals()` as the defaults of its groups.

    `order`: the first keys of torch's groups, if they are not in the order of the constructor's parameters."""
    names = [*order.split(), *(name for name in arguments if name not in ("self", "params", "__class__"))]
    return {name: arguments[name] for name in names}


def new_step(value: float = 0.0, fused: bool | None = False) -> Tensor:
    """The counter of steps as a 0-d tensor, so that a recorded step does not make it a constant. It is float64 if that
    is the default dtype, unless torch's `fused` kernels are chosen; else float32.
    """
    wide = dtypes.get_default_dtype() is dtypes.float64 and not fused
    return tensor(float(value), dtype=dtypes.float64 if wide else dtypes.float32)


def is_recorded() -> bool:
    """Whether ops are recorded, so that the update must run as ops."""
    watch = mode().watch
    return watch is not None and watch.records


__all__ = [
    "Optimizer", "Params", "PerParameter", "is_recorded", "new_step", "register_optimizer_step_post_hook",
    "register_optimizer_step_pre_hook", "required", "settings",
]  # fmt: skip
