"""torch.distributed.fsdp: modules whose parameters, gradients and optimizer state are divided over
the ranks, and gathered module by module (sharding.py)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from enum import Enum
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np

from rushlight.base.dtypes import dtype, float32
from rushlight.base.errors import explain
from rushlight.base.submodules import importable
from rushlight.comm.collectives import all_reduce
from rushlight.comm.groups import member
from rushlight.comm.reduce_op import ReduceOp
from rushlight.core.tensor import Tensor, from_array
from rushlight.distributed.optimizer_state import PREFIX, named_state, numbered_state
from rushlight.distributed.sharding import (
    Unit,
    state_has_parts,
    state_of_parts,
)
from rushlight.nn import Module
from rushlight.nn.parallel.module_state import broadcast_all

M = TypeVar("M", bound=Module)


class ShardingStrategy(Enum):
    """FULL_SHARD: parameters are freed between forward and backward; SHARD_GRAD_OP: they are kept
    until backward; NO_SHARD: use DistributedDataParallel."""

    FULL_SHARD, SHARD_GRAD_OP, NO_SHARD, HYBRID_SHARD, _HYBRID_SHARD_ZERO2 = range(1, 6)


class StateDictType(Enum):
    """FULL_STATE_DICT: whole parameters; the others: the parts of this rank."""

    FULL_STATE_DICT, LOCAL_STATE_DICT, SHARDED_STATE_DICT = range(1, 4)


class BackwardPrefetch(Enum):
    """Means nothing here: a unit is gathered when it is needed."""

    BACKWARD_PRE, BACKWARD_POST = range(1, 3)


class Settings(SimpleNamespace):
    """A setting of torch's; it may be made, and means nothing."""


class CPUOffload(Settings):
    """Parameters are in the CPU's memory."""


class CPUOffloadPolicy(Settings):
    """Parameters are in the CPU's memory."""


class FullStateDictConfig(Settings):
    """See `Settings`."""


class ShardedStateDictConfig(Settings):
    """See `Settings`."""


class MixedPrecision(Settings):
    """Dtypes to compute in. NotImplementedError for any but float32: parameters are used as they
    are."""

    def __init__(
        self, param_dtype: Any = None, reduce_dtype: Any = None, *more: Any, **settings: Any
    ):
        for wanted in (param_dtype, reduce_dtype, *more, *settings.values()):
            if isinstance(wanted, dtype) and wanted is not float32:
                raise NotImplementedError(
                    explain(
                        f"{type(self).__name__} with {wanted}: sharded modules compute in the "
                        "dtype of their parameters",
                        "use autocast, or module.to(dtype)",
                    )
                )
        super().__init__(param_dtype=param_dtype, reduce_dtype=reduce_dtype, **settings)


class MixedPrecisionPolicy(MixedPrecision):
    """See `MixedPrecision`."""


def shard(module: Module, group: Any, reshard: bool, ignored: Any = ()) -> Unit:
    """Divide the parameters of a module that are not divided yet; rank 0's values count."""
    own = member(group)
    if own is None:
        raise RuntimeError(explain("this rank is not in the process group of the module"))
    whole = [p for p in module.parameters() if not hasattr(p, "_piece")]
    broadcast_all([*whole, *module.buffers()], own)
    unit = Unit(module, own, reshard, {id(p) for p in ignored})
    if getattr(module, "_sharded_by", None) is None:
        module._sharded_by = unit
    return unit


def total_norm(parameters: Sequence[Tensor], norm_type: float) -> float:
    """The norm of the gradients of all ranks: parts are counted once, whole ones, too."""
    parts: dict[int, tuple[Any, list[Tensor]]] = {}
    for p in parameters:
        if p.grad is not None:
            group = p._piece.group if hasattr(p, "_piece") else None
            parts.setdefault(id(group), (group, []))[1].append(p.grad)
    total = 0.0
    for group, grads in parts.values():
        if math.isinf(norm_type):
            here = max([float(np.abs(g._array).max(initial=0)) for g in grads])
        else:
            here = sum(float((np.abs(g._array).astype("f8") ** norm_type).sum()) for g in grads)
        value = from_array(np.array([here]))
        if group is not None:
            all_reduce(value, ReduceOp.MAX if math.isinf(norm_type) else ReduceOp.SUM, group)
        total = max(total, value.item()) if math.isinf(norm_type) else total + value.item()
    return total if math.isinf(norm_type) else total ** (1.0 / norm_type)


class FullyShardedDataParallel(Module):
    """`module`, whose parameters are divided over the ranks: each has some rows of each. They are
    gathered when forward begins, freed, and gathered again for backward; gradients are averaged
    and divided. `auto_wrap_policy` divides submodules apart, so that only one is whole at a time.

    An optimizer of `parameters()` sees the parts. state_dict() gives whole parameters, with the
    names of the module. ValueError without a process group."""

    def __init__(
        self,
        module: Module,
        process_group: Any = None,
        sharding_strategy: ShardingStrategy | None = None,
        cpu_offload: Any = None,
        auto_wrap_policy: Any = None,
        backward_prefetch: Any = None,
        mixed_precision: Any = None,
        ignored_modules: Any = None,
        param_init_fn: Any = None,
        device_id: Any = None,
        sync_module_states: bool = False,
        forward_prefetch: bool = False,
        limit_all_gathers: bool = True,
        use_orig_params: bool = False,
        ignored_states: Any = None,
        device_mesh: Any = None,
    ):
        super().__init__()
        group = device_mesh.get_group() if device_mesh is not None else process_group
        member(group)
        settings = {"process_group": group, "sharding_strategy": sharding_strategy}
        if auto_wrap_policy is not None:
            wrap_children(module, auto_wrap_policy, settings)
        ignored = [p for m in ignored_modules or () for p in m.parameters()]
        reshard = sharding_strategy in (None, ShardingStrategy.FULL_SHARD)
        unit = shard(module, group, reshard, [*ignored, *(ignored_states or ())])
        self._fsdp_wrapped_module, self._unit = module, unit
        self.register_state_dict_post_hook(without_prefix)
        self.register_load_state_dict_pre_hook(with_prefix)

    @property
    def module(self) -> Module:
        """The module inside."""
        return self._fsdp_wrapped_module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._unit.run(self._fsdp_wrapped_module, args, kwargs)

    def no_sync(self) -> AbstractContextManager:
        """A context without effect: each backward averages gradients over the ranks. The sums are
        the same."""
        return nullcontext()

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Any:
        """Scale the gradients so that their norm over all ranks is at most `max_norm`: the norm."""
        return clip_grad_norm_(self, max_norm, norm_type)

    @staticmethod
    @contextmanager
    def summon_full_params(module: Module, **settings: Any) -> Iterator[None]:
        """In this context the whole parameters are in their places; what is written to them is
        lost."""
        units = [m._sharded_by for m in module.modules() if getattr(m, "_sharded_by", None)]
        for unit in units:
            unit.put([from_array(array) for array in unit.gather()])
        try:
            yield
        finally:
            for unit in units:
                unit.take_away()
                unit.wholes = None

    @staticmethod
    def state_dict_type(
        module: Module, state_dict_type: StateDictType, *settings: Any
    ) -> AbstractContextManager[None]:
        """A context in which state_dict() returns whole parameters, or the parts of this rank."""
        return state_of_parts(state_dict_type is not StateDictType.FULL_STATE_DICT)

    @staticmethod
    def optim_state_dict(model: Module, optim: Any, **settings: Any) -> dict[str, Any]:
        """The state of an optimizer by the names of the parameters: whole, or in the context of a
        sharded `state_dict_type` the parts of this rank."""
        return named_state(model, optim, whole=not state_has_parts())

    full_optim_state_dict = optim_state_dict

    @staticmethod
    def optim_state_dict_to_load(
        model: Module, optim: Any, optim_state_dict: dict[str, Any], **settings: Any
    ) -> dict[str, Any]:
        """What `optim.load_state_dict` takes, of what `optim_state_dict` gave."""
        return numbered_state(model, optim, optim_state_dict)


def clip_grad_norm_(module: Module, max_norm: float, norm_type: float = 2.0) -> Tensor:
    """Scale the gradients of a divided module: its norm over all ranks before."""
    parameters = list(module.parameters())
    norm = total_norm(parameters, norm_type)
    factor = min(1.0, max_norm / (norm + 1e-6))
    for p in parameters:
        if p.grad is not None:
            p.grad.mul_(factor)
    return from_array(np.array(norm, np.float32))


def without_prefix(module: Any, state: dict, prefix: str, metadata: Any) -> None:
    """Names in a state are those of the module inside."""
    for key in [k for k in state if k.startswith(prefix + PREFIX)]:
        state[prefix + key[len(prefix + PREFIX) :]] = state.pop(key)


def with_prefix(module: Any, state: dict, prefix: str, *rest: Any) -> None:
    """The opposite of `without_prefix`, before loading."""
    for key in [k for k in state if k.startswith(prefix) and not k.startswith(prefix + PREFIX)]:
        state[prefix + PREFIX + key[len(prefix) :]] = state.pop(key)


def wrap_children(module: Module, policy: Any, settings: dict[str, Any]) -> None:
    """Wrap the submodules that a policy chooses, innermost first."""
    if hasattr(policy, "chosen"):
        policy = policy.chosen
    for name, child in list(module.named_children()):
        wrap_children(child, policy, settings)
        size = sum(p.numel() for p in child.parameters() if not hasattr(p, "_piece"))
        if size and policy(module=child, recurse=False, nonwrapped_numel=size):
            setattr(module, name, FullyShardedDataParallel(child, **settings))


def size_based_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, min_num_params: int = 100_000_000
) -> bool:
    """Whether a module has at least that many parameters that are in no wrapped module."""
    return nonwrapped_numel >= min_num_params


def transformer_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, transformer_layer_cls: Any = ()
) -> bool:
    """Whether a module is of one of these classes."""
    return isinstance(module, tuple(transformer_layer_cls))


def always_wrap_policy(*args: Any, **kwargs: Any) -> bool:
    """True."""
    return True


class ModuleWrapPolicy:
    """The modules of some classes."""

    def __init__(self, module_classes: Any):
        self.classes = tuple(module_classes)

    def chosen(self, module: Module, recurse: bool, nonwrapped_numel: int) -> bool:
        """Whether a module is of one of the classes."""
        return isinstance(module, self.classes)


wrapping: list[dict[str, Any]] = []  # the settings of the enclosing `enable_wrap`


@contextmanager
def enable_wrap(*, wrapper_cls: Any, **settings: Any) -> Iterator[None]:
    """In this context `wrap` wraps modules."""
    wrapping.append({"wrapper_cls": wrapper_cls, **settings})
    try:
        yield
    finally:
        wrapping.pop()


def wrap(module: Module, **settings: Any) -> Module:
    """The module, wrapped as the enclosing `enable_wrap` says; the module itself outside."""
    if not wrapping:
        return module
    given = {**wrapping[-1], **settings}
    return given.pop("wrapper_cls")(module, **given)


class FSDPModule:
    """The class of modules that `fully_shard` has divided, before their own."""

    _sharded_by: Unit

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's forward, with whole parameters."""
        return self._sharded_by.run(super().forward, args, kwargs)  # type: ignore[misc]

    def reshard(self) -> None:
        """Let the whole parameters go."""
        self._sharded_by.wholes = None

    def unshard(self, async_op: bool = False) -> None:
        """Gather the whole parameters before forward."""
        self._sharded_by.gather()

    def set_requires_gradient_sync(self, wanted: bool, recurse: bool = True) -> None:
        """No effect: each backward averages gradients over the ranks."""

    def set_is_last_backward(self, last: bool) -> None:
        """Means nothing."""

    set_modules_to_forward_prefetch = set_modules_to_backward_prefetch = set_is_last_backward


classes: dict[type, type] = {}  # class -> its class with FSDPModule


def fully_shard(
    module: M,
    *,
    mesh: Any = None,
    reshard_after_forward: bool | int = True,
    mp_policy: Any = None,
    offload_policy: Any = None,
    ignored_params: Any = None,
    **settings: Any,
) -> M:
    """The module, whose parameters are divided over the ranks of the mesh (the world), each into
    rows of dimension 0, without those of submodules that are divided already; see
    `FullyShardedDataParallel`. Parameters are plain tensors, the parts of this rank, not DTensors.
    ValueError without a process group."""
    if isinstance(module, (list, tuple)):
        for one in module:
            fully_shard(one, mesh=mesh, reshard_after_forward=reshard_after_forward)
        return module
    shard(
        module,
        None if mesh is None else mesh.get_group(),
        bool(reshard_after_forward),
        ignored_params or (),
    )
    cls = type(module)
    if cls not in classes:
        classes[cls] = type(
            f"FSDP{cls.__name__}", (FSDPModule, cls), {"__module__": cls.__module__}
        )
    module.__class__ = classes[cls]
    return module


fully_sharded_data_parallel = SimpleNamespace(  # torch's modules of these
    FullyShardedDataParallel=FullyShardedDataParallel,
    ShardingStrategy=ShardingStrategy,
    BackwardPrefetch=BackwardPrefetch,
    StateDictType=StateDictType,
    FullStateDictConfig=FullStateDictConfig,
    CPUOffload=CPUOffload,
    MixedPrecision=MixedPrecision,
)
policies = SimpleNamespace(
    wrap=wrap,
    enable_wrap=enable_wrap,
    size_based_auto_wrap_policy=size_based_auto_wrap_policy,
    transformer_auto_wrap_policy=transformer_auto_wrap_policy,
    always_wrap_policy=always_wrap_policy,
    ModuleWrapPolicy=ModuleWrapPolicy,
)
wrap = policies  # type: ignore[assignment]  # torch.distributed.fsdp.wrap is a module
importable(__name__, "fully_sharded_data_parallel", "wrap")

__all__ = [
    "BackwardPrefetch",
    "CPUOffload",
    "CPUOffloadPolicy",
    "FSDPModule",
    "FullStateDictConfig",
    "FullyShardedDataParallel",
    "MixedPrecision",
    "MixedPrecisionPolicy",
    "ShardedStateDictConfig",
    "ShardingStrategy",
    "StateDictType",
    "fully_shard",
]
