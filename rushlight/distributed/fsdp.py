"""torch.distributed.fsdp: modules whose parameters, gradients and optimizer state are divided over the ranks.
Parameters are gathered module by module (sharding.py)."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from enum import Enum
from types import SimpleNamespace
from typing import Any, TypeVar

from rushlight.base.dtypes import dtype, float32
from rushlight.base.errors import assertion_error, not_implemented_error, runtime_error, value_error
from rushlight.base.submodules import importable
from rushlight.comm.groups import get_rank, get_world_size, member
from rushlight.comm.objects import broadcast_object_list
from rushlight.comm.process_group import ProcessGroup
from rushlight.distributed.device_mesh import DeviceMesh, init_device_mesh
from rushlight.distributed.optimizer_state import PREFIX, named_state, numbered_state
from rushlight.distributed.pieces import piece_of
from rushlight.distributed.sharding import Dtypes, Unit, converted, units_of
from rushlight.nn import Module, Parameter
from rushlight.nn.normalization import _BatchNorm
from rushlight.nn.parallel.module_state import broadcast_all
from rushlight.nn.utils import clip_grad_norm_
from rushlight.ops.grad_mode import no_grad

M = TypeVar("M", bound=Module)


class ShardingStrategy(Enum):
    """FULL_SHARD: parameters are freed between forward and backward; SHARD_GRAD_OP: they are kept until backward;
    HYBRID_SHARD and _HYBRID_SHARD_ZERO2: as these two, but parameters are divided over the ranks of each machine, and
    every machine has a replica. NO_SHARD: as SHARD_GRAD_OP."""

    FULL_SHARD, SHARD_GRAD_OP, NO_SHARD, HYBRID_SHARD, _HYBRID_SHARD_ZERO2 = range(1, 6)


HYBRID = (ShardingStrategy.HYBRID_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2)
RESHARDING = (None, ShardingStrategy.FULL_SHARD, ShardingStrategy.HYBRID_SHARD)


class StateDictType(Enum):
    """FULL_STATE_DICT: whole parameters. The other types: DTensors with the rows of this rank."""

    FULL_STATE_DICT, LOCAL_STATE_DICT, SHARDED_STATE_DICT = range(1, 4)


class BackwardPrefetch(Enum):
    """No effect: a unit is gathered when it is needed."""

    BACKWARD_PRE, BACKWARD_POST = range(1, 3)


@dataclass
class CPUOffload:
    """No effect: parameters are always in the CPU's memory."""

    offload_params: bool = False


@dataclass(frozen=True)
class OffloadPolicy:
    """Parameters are not offloaded: they are in the CPU's memory."""


@dataclass(frozen=True)
class CPUOffloadPolicy(OffloadPolicy):
    """No effect: parameters are always in the CPU's memory."""

    pin_memory: bool = True


@dataclass
class StateDictConfig:
    """How a state is returned. `offload_to_cpu` has no effect."""

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """`rank0_only`: the other ranks get an empty state."""

    rank0_only: bool = False


@dataclass
class LocalStateDictConfig(StateDictConfig):
    """The settings for LOCAL_STATE_DICT."""


@dataclass
class ShardedStateDictConfig(StateDictConfig):
    """The settings for SHARDED_STATE_DICT."""


class FullOptimStateDictConfig(FullStateDictConfig):
    """`FullStateDictConfig` for the state of an optimizer."""


OptimStateDictConfig = StateDictConfig


class LocalOptimStateDictConfig(LocalStateDictConfig):
    """`LocalStateDictConfig` for the state of an optimizer."""


class ShardedOptimStateDictConfig(ShardedStateDictConfig):
    """`ShardedStateDictConfig` for the state of an optimizer."""


@dataclass
class StateDictSettings:
    """The settings that `get_state_dict_type` returns."""

    state_dict_type: StateDictType = StateDictType.FULL_STATE_DICT
    state_dict_config: StateDictConfig = field(default_factory=FullStateDictConfig)
    optim_state_dict_config: StateDictConfig = field(default_factory=FullOptimStateDictConfig)


@dataclass(frozen=True)
class MixedPrecision:
    """Dtypes to compute in. `param_dtype`: of gathered parameters and of the inputs of the outermost module;
    `reduce_dtype`: of sums of gradients, by default `param_dtype`; `buffer_dtype`: of buffers. Parameters, gradients
    and optimizer state keep the dtype of the module. With an `auto_wrap_policy`, batch norms are wrapped separately and
    compute in float32."""

    param_dtype: dtype | None = None
    reduce_dtype: dtype | None = None
    buffer_dtype: dtype | None = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True
    _module_classes_to_ignore: Sequence[type] = (_BatchNorm,)

    def __post_init__(self) -> None:
        if self.keep_low_precision_grads:
            raise not_implemented_error("gradients have the dtype of parameters", "keep_low_precision_grads=False")


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """`MixedPrecision` for `fully_shard`. `output_dtype`: of the results of forward. `cast_forward_inputs`: convert
    floating-point inputs to `param_dtype`."""

    param_dtype: dtype | None = None
    reduce_dtype: dtype | None = None
    output_dtype: dtype | None = None
    cast_forward_inputs: bool = True


Groups = tuple[ProcessGroup, "ProcessGroup | None"]  # (group of the parts, group of the replicas)


def own_group(group: Any) -> ProcessGroup:
    """The process group; RuntimeError if this rank is not in it."""
    own = member(group)
    if own is None:
        raise runtime_error("this rank is not in the process group of the module")
    return own


def groups_of_mesh(mesh: DeviceMesh) -> Groups:
    """The groups of a mesh (replicas, parts) or (parts,)."""
    if mesh.ndim == 1:
        return own_group(mesh.get_group()), None
    if mesh.ndim != 2:
        raise value_error(f"fully_shard expects a 1D or 2D DeviceMesh but got {mesh}")
    return own_group(mesh.get_group(1)), own_group(mesh.get_group(0))


def chosen_groups(group: Any, mesh: DeviceMesh | None, hybrid: bool) -> Groups:
    """The groups given by the arguments of FullyShardedDataParallel."""
    if mesh is not None:
        return groups_of_mesh(mesh)
    if isinstance(group, tuple):
        return own_group(group[0]), own_group(group[1])
    if not hybrid:
        return own_group(group), None
    if group is not None:
        raise value_error("HYBRID_SHARD needs two groups", "process_group=(of a machine, of replicas)")
    world = get_world_size()
    local = int(os.environ.get("LOCAL_WORLD_SIZE", world))
    return groups_of_mesh(init_device_mesh("cpu", (world // local, local)))


def materialize(module: Module, init: Any) -> None:
    """Allocate and initialize parameters and buffers on the device meta: by `init(submodule)`, or by to_empty and
    reset_parameters."""
    todo = [module]
    while todo:
        one = todo.pop(0)
        if isinstance(one, FullyShardedDataParallel):
            continue
        todo.extend(one.children())
        own = [*one.parameters(recurse=False), *one.buffers(recurse=False)]
        if init is not None:
            init(one)
        elif any(t.is_meta for t in own):
            one.to_empty(device="cpu", recurse=False)
            one.reset_parameters()


def shard(module: Module, groups: Groups, **settings: Any) -> Unit:
    """Divide those parameters of a module that are not yet divided."""
    unit = Unit(module, *groups, **settings)
    if getattr(module, "_sharded_by", None) is None:
        module._sharded_by = unit
    return unit


class FullyShardedDataParallel(Module):
    """`module` with its parameters divided over the ranks: each rank has some rows of each parameter. They are gathered
    when forward begins, freed, and gathered again for backward; gradients are averaged and divided. `auto_wrap_policy`
    wraps submodules, so that only one of them is whole at a time.

    An optimizer of `parameters()` sees the parts. state_dict() gives whole parameters, with the names of the module.
    ValueError without a process group."""

    _unit: Unit
    _precision: MixedPrecision
    _buffer_dtype: dtype | None

    def __init__(
        self, module: Module, process_group: Any = None, sharding_strategy: ShardingStrategy | None = None,
        cpu_offload: Any = None, auto_wrap_policy: Any = None, backward_prefetch: Any = None,
        mixed_precision: Any = None, ignored_modules: Any = None, param_init_fn: Any = None, device_id: Any = None,
        sync_module_states: bool = False, forward_prefetch: bool = False, limit_all_gathers: bool = True,
        use_orig_params: bool = False, ignored_states: Any = None, device_mesh: Any = None,
    ):  # fmt: skip
        super().__init__()
        groups = chosen_groups(process_group, device_mesh, sharding_strategy in HYBRID)
        precision = mixed_precision or MixedPrecision()
        if any(t.is_meta for t in (*module.parameters(), *module.buffers())):
            materialize(module, param_init_fn)
        if sync_module_states:
            whole = [p for p in module.parameters() if piece_of(p) is None]
            for group in groups[::-1]:
                if group is not None:
                    broadcast_all([*whole, *module.buffers()], group)
        if auto_wrap_policy is not None:
            settings = {
                "process_group": groups[0] if groups[1] is None else groups,
                "sharding_strategy": sharding_strategy,
                "mixed_precision": mixed_precision,
            }
            wrap_children(module, auto_wrap_policy, settings)
        for inside in module.modules():
            if isinstance(inside, FullyShardedDataParallel):
                inside._unit.dtypes.inputs = inside._precision.cast_forward_inputs
                inside._buffer_dtype = None  # the outermost module converts the buffers
        ignored = [p for m in ignored_modules or () for p in m.parameters()]
        self._precision, self._buffer_dtype = precision, precision.buffer_dtype
        self._buffers_before: dict[str, dtype] = {}
        self._settings = StateDictSettings()
        self._unit = shard(
            module,
            groups,
            reshard=sharding_strategy in RESHARDING,
            dtypes=Dtypes(
                precision.param_dtype,
                precision.reduce_dtype,
                precision.cast_root_forward_inputs or precision.cast_forward_inputs,
            ),
            ignored={id(p) for p in (*ignored, *(ignored_states or ()))},
        )
        self._fsdp_wrapped_module = module
        self.register_state_dict_post_hook(without_prefix)
        self.register_load_state_dict_pre_hook(with_prefix)

    @property
    def module(self) -> Module:
        """The module inside."""
        return self._fsdp_wrapped_module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        if self._buffer_dtype is not None:
            self._convert_buffers(self._buffer_dtype)
        return self._unit.run(self._fsdp_wrapped_module, args, kwargs)

    def _convert_buffers(self, to: dtype) -> None:
        """Convert floating-point buffers, once. A state_dict keeps the dtype from before."""
        self._buffer_dtype = None
        inner = [m for m in self.module.modules() if isinstance(m, FullyShardedDataParallel)]
        kept = {id(b) for m in inner if not m._precision.buffer_dtype for b in m.buffers()}
        for name, buffer in self.module.named_buffers():
            if buffer.is_floating_point() and id(buffer) not in kept:
                self._buffers_before[name.replace(PREFIX, "")] = buffer.dtype
                buffer.data = buffer.to(to)

    def no_sync(self) -> AbstractContextManager:
        """A context without effect: each backward averages gradients over the ranks. The sums are equal."""
        return nullcontext()

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Any:
        """Scale the gradients so that their norm over all ranks is at most `max_norm`. Returns the norm before."""
        return clip_grad_norm_(self.parameters(), max_norm, norm_type)

    @staticmethod
    @contextmanager
    def summon_full_params(
        module: Module, recurse: bool = True, writeback: bool = True, rank0_only: bool = False,
        offload_to_cpu: bool = False, with_grads: bool = False,
    ) -> Iterator[None]:  # fmt: skip
        """Inside this context the module has whole parameters on all ranks; with `with_grads`, also whole gradients.
        `writeback`: each rank keeps its writes to its rows of the parameters. `recurse`: also for submodules.
        """
        units = units_of(module) if recurse else [module._sharded_by or module._unit]
        given = [(piece, Parameter(piece.gathered(piece.parameter._array))) for unit in units for piece in unit.pieces]
        for piece, whole in given:
            grad = piece.parameter._grad
            whole.requires_grad = piece.parameter.requires_grad
            if with_grads and grad is not None:
                whole.grad = piece.gathered(grad._array)
            piece.put(whole)
        try:
            yield
        finally:
            for piece, whole in given:
                piece.put(piece.parameter)
                if writeback:
                    with no_grad():
                        piece.parameter.copy_(piece.part(whole))

    @staticmethod
    def fsdp_modules(module: Module, root_only: bool = False) -> list[FullyShardedDataParallel]:
        """The wrapped modules inside, outermost first; with `root_only`, only modules that are in no other one."""
        found = [m for m in module.modules() if isinstance(m, FullyShardedDataParallel)]
        inner = {id(m) for one in found for m in one.module.modules()}
        return [m for m in found if not root_only or id(m) not in inner]

    @staticmethod
    def set_state_dict_type(
        module: Module, state_dict_type: StateDictType, state_dict_config: StateDictConfig | None = None,
        optim_state_dict_config: StateDictConfig | None = None,
    ) -> StateDictSettings:  # fmt: skip
        """Let state_dict() return whole parameters, or DTensors. Returns the previous settings."""
        full = state_dict_type is StateDictType.FULL_STATE_DICT
        config = state_dict_config or (FullStateDictConfig() if full else ShardedStateDictConfig())
        optim_config = optim_state_dict_config or (
            FullOptimStateDictConfig() if full else ShardedOptimStateDictConfig()
        )
        before = FullyShardedDataParallel.get_state_dict_type(module)
        for one in FullyShardedDataParallel.fsdp_modules(module):
            one._settings = StateDictSettings(state_dict_type, config, optim_config)
            one._unit.parts_in_state = not full
        return before

    @staticmethod
    def get_state_dict_type(module: Module) -> StateDictSettings:
        """The settings of `set_state_dict_type`."""
        found = FullyShardedDataParallel.fsdp_modules(module)
        return found[0]._settings if found else StateDictSettings()

    @staticmethod
    @contextmanager
    def state_dict_type(
        module: Module, state_dict_type: StateDictType, state_dict_config: StateDictConfig | None = None,
        optim_state_dict_config: StateDictConfig | None = None,
    ) -> Iterator[None]:  # fmt: skip
        """`set_state_dict_type` inside this context."""
        set_type = FullyShardedDataParallel.set_state_dict_type
        before = set_type(module, state_dict_type, state_dict_config, optim_state_dict_config)
        try:
            yield
        finally:
            set_type(module, before.state_dict_type, before.state_dict_config, before.optim_state_dict_config)

    @staticmethod
    def optim_state_dict(model: Module, optim: Any, *args: Any, **settings: Any) -> dict[str, Any]:
        """The state of an optimizer by the names of the parameters: whole tensors, or DTensors with a sharded
        `state_dict_type`."""
        set_to = FullyShardedDataParallel.get_state_dict_type(model)
        whole = set_to.state_dict_type is StateDictType.FULL_STATE_DICT
        state = named_state(model, optim, whole)
        rank0_only = getattr(set_to.optim_state_dict_config, "rank0_only", False)
        return {} if rank0_only and get_rank() else state

    @staticmethod
    def full_optim_state_dict(
        model: Module, optim: Any, optim_input: Any = None, rank0_only: bool = True, group: Any = None
    ) -> dict[str, Any]:
        """The whole state of an optimizer by the names of the parameters. With `rank0_only`, other ranks than 0 get
        {}."""
        state = named_state(model, optim, whole=True)
        return {} if rank0_only and get_rank() else state

    @staticmethod
    def sharded_optim_state_dict(model: Module, optim: Any, group: Any = None) -> dict[str, Any]:
        """The state of an optimizer by the names of the parameters, as DTensors."""
        return named_state(model, optim, whole=False)

    @staticmethod
    def optim_state_dict_to_load(
        model: Module, optim: Any, optim_state_dict: dict[str, Any], *args: Any, **settings: Any
    ) -> dict[str, Any]:
        """The argument for `optim.load_state_dict`, from a result of `optim_state_dict`; with `rank0_only`, from rank
        0's result.
        """
        set_to = FullyShardedDataParallel.get_state_dict_type(model)
        state = optim_state_dict
        if getattr(set_to.optim_state_dict_config, "rank0_only", False):
            holder = [state]
            broadcast_object_list(holder)
            state = holder[0]
        return numbered_state(model, optim, state)


def without_prefix(module: Any, state: dict, prefix: str, metadata: Any) -> None:
    """Hook after state_dict(): removes the wrapper's prefix, and restores the dtypes of buffers."""
    for key in [k for k in state if k.startswith(prefix + PREFIX)]:
        name = key[len(prefix + PREFIX) :]
        value = state.pop(key)
        before = module._buffers_before.get(name)
        state[prefix + name] = value if before is None else value.to(before)
    if getattr(module._settings.state_dict_config, "rank0_only", False) and get_rank():
        for key in [k for k in state if k.startswith(prefix)]:
            del state[key]


def with_prefix(module: Any, state: dict, prefix: str, *rest: Any) -> None:
    """Hook before loading: adds the wrapper's prefix."""
    for key in [k for k in state if k.startswith(prefix) and not k.startswith(prefix + PREFIX)]:
        state[prefix + PREFIX + key[len(prefix) :]] = state.pop(key)


def compute_in_float32(module: Module, output: dtype | None) -> None:
    """Let forward convert its inputs to float32, and its results to the dtype `output`."""
    module.register_forward_pre_hook(lambda _, args: converted(args, float32))
    module.register_forward_hook(lambda _, args, result: converted(result, output))


def wrap_children(module: Module, policy: Any, settings: dict[str, Any]) -> None:
    """Wrap the submodules that a policy chooses, innermost first."""
    if hasattr(policy, "chosen"):
        policy = policy.chosen
    for name, child in list(module.named_children()):
        wrap_children(child, policy, settings)
        size = sum(p.numel() for p in child.parameters() if piece_of(p) is None)
        precision = settings["mixed_precision"] or MixedPrecision()
        low = precision.param_dtype or precision.buffer_dtype
        if low and isinstance(child, tuple(precision._module_classes_to_ignore)):
            compute_in_float32(child, precision.param_dtype)
            own = {**settings, "mixed_precision": None}
            setattr(module, name, FullyShardedDataParallel(child, **own))
        elif size and policy(module=child, recurse=False, nonwrapped_numel=size):
            setattr(module, name, FullyShardedDataParallel(child, **settings))


def size_based_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, min_num_params: int = 100_000_000
) -> bool:
    """Whether at least `min_num_params` elements of parameters are in no wrapped module."""
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
    """A policy that wraps the modules of these classes."""

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
    """The module, wrapped by the settings of the enclosing `enable_wrap`; outside of one, the module itself."""
    if not wrapping:
        return module
    given = {**wrapping[-1], **settings}
    return given.pop("wrapper_cls")(module, **given)


class FSDPModule:
    """A base class that `fully_shard` adds before a module's class."""

    _sharded_by: Unit

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's forward, with whole parameters."""
        return self._sharded_by.run(super().forward, args, kwargs)  # type: ignore[misc]

    def __deepcopy__(self, memo: Any) -> Any:
        raise assertion_error(
            "FSDP does not support deepcopy. Please use state dict for serialization.",
            "copy the module before fully_shard, or load its state_dict() into another",
        )

    def reshard(self) -> None:
        """Free the whole parameters."""
        self._sharded_by.take_away()
        self._sharded_by.wholes = None

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Gather the whole parameters before forward, and put them into the module."""
        self._sharded_by.unshard()
        return UnshardHandle() if async_op else None

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Whether whole parameters are freed after forward."""
        for unit in units_of(self) if recurse else [self._sharded_by]:  # type: ignore[arg-type]
            unit.reshard = reshard_after_forward

    def set_requires_gradient_sync(self, wanted: bool, recurse: bool = True) -> None:
        """No effect: each backward averages gradients over the ranks. The sums are equal."""

    def set_is_last_backward(self, last: bool) -> None:
        """No effect."""

    def set_modules_to_forward_prefetch(self, modules: list[Any]) -> None:
        """No effect: a unit is gathered when it is needed."""

    set_modules_to_backward_prefetch = set_modules_to_forward_prefetch
    set_requires_all_reduce = set_reshard_after_backward = set_requires_gradient_sync


class UnshardHandle:
    """The result of `unshard(async_op=True)`."""

    def wait(self) -> None:
        """No effect: the parameters are already gathered."""


def register_fsdp_forward_method(module: Module, method_name: str) -> None:
    """Let another method of a divided module run with whole parameters, as forward does."""
    if not isinstance(module, FSDPModule):
        return
    method = getattr(module, method_name)

    def run(*args: Any, **kwargs: Any) -> Any:
        return module._sharded_by.run(method, args, kwargs)

    setattr(module, method_name, run)


classes: dict[type, type] = {}  # class -> its subclass of FSDPModule


def fully_shard(
    module: M, *, mesh: DeviceMesh | None = None, reshard_after_forward: bool | int | None = None,
    shard_placement_fn: Any = None, mp_policy: MixedPrecisionPolicy | None = None,
    offload_policy: OffloadPolicy | None = None, ignored_params: Collection[Parameter] | None = None,
) -> M:  # fmt: skip
    """The module, with its parameters sharded along dimension 0 over the ranks of the mesh (default: the world), except
    parameters of submodules that are sharded already; see `FullyShardedDataParallel`. On a two-dimensional mesh each
    row of the mesh has all parameters.

    Parameters are DTensors; state_dict() gives DTensors, and `full_tensor()` of one is whole. On the device meta they
    get memory by `to_empty(device="cpu")`. ValueError without a process group, NotImplementedError for a
    `shard_placement_fn`."""
    if shard_placement_fn is not None:
        raise not_implemented_error("parameters are divided along dimension 0", "no shard_placement_fn")
    settings = {
        "mesh": mesh,
        "reshard_after_forward": reshard_after_forward,
        "mp_policy": mp_policy,
        "ignored_params": ignored_params,
    }
    if isinstance(module, (list, tuple)):
        for one in module:
            fully_shard(one, **settings)
        return module
    policy = mp_policy or MixedPrecisionPolicy()
    shard(
        module,
        (own_group(None), None) if mesh is None else groups_of_mesh(mesh),
        reshard=reshard_after_forward is not False,
        dtypes=Dtypes(policy.param_dtype, policy.reduce_dtype, policy.cast_forward_inputs, policy.output_dtype),
        parts_in_state=True,
        ignored={id(p) for p in ignored_params or ()},
    )
    cls = type(module)
    if cls not in classes:
        classes[cls] = type(f"FSDP{cls.__name__}", (FSDPModule, cls), {"__module__": cls.__module__})
    module.__class__ = classes[cls]
    return module


fully_sharded_data_parallel = SimpleNamespace(  # torch has modules with these names
    FullyShardedDataParallel=FullyShardedDataParallel, ShardingStrategy=ShardingStrategy,
    BackwardPrefetch=BackwardPrefetch, StateDictType=StateDictType, FullStateDictConfig=FullStateDictConfig,
    FullOptimStateDictConfig=FullOptimStateDictConfig, ShardedStateDictConfig=ShardedStateDictConfig,
    ShardedOptimStateDictConfig=ShardedOptimStateDictConfig, CPUOffload=CPUOffload, MixedPrecision=MixedPrecision,
)  # fmt: skip
policies = SimpleNamespace(
    wrap=wrap, enable_wrap=enable_wrap, size_based_auto_wrap_policy=size_based_auto_wrap_policy,
    transformer_auto_wrap_policy=transformer_auto_wrap_policy, always_wrap_policy=always_wrap_policy,
    ModuleWrapPolicy=ModuleWrapPolicy,
)  # fmt: skip
wrap = policies  # type: ignore[assignment]  # torch.distributed.fsdp.wrap is a module
importable(__name__, "fully_sharded_data_parallel", "wrap")

__all__ = [
    "BackwardPrefetch", "CPUOffload", "CPUOffloadPolicy", "FSDPModule", "FullOptimStateDictConfig",
    "FullStateDictConfig", "FullyShardedDataParallel", "LocalOptimStateDictConfig", "LocalStateDictConfig",
    "MixedPrecision", "MixedPrecisionPolicy", "OffloadPolicy", "OptimStateDictConfig", "ShardedOptimStateDictConfig",
    "ShardedStateDictConfig", "ShardingStrategy", "StateDictConfig", "StateDictSettings", "StateDictType",
    "UnshardHandle", "fully_shard", "register_fsdp_forward_method",
]  # fmt: skip
