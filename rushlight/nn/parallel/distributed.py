"""DistributedDataParallel: a module on each rank, whose gradients are the means over all ranks."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rushlight.base.errors import not_implemented_error, runtime_error, type_error, value_error
from rushlight.comm.collectives import all_reduce
from rushlight.comm.groups import member
from rushlight.comm.join import Join, Joinable, JoinHook
from rushlight.comm.objects import numbers
from rushlight.comm.reduce_op import ReduceOp
from rushlight.core.mode import mode
from rushlight.core.tensor import Tensor, noticed
from rushlight.nn.module import Module
from rushlight.nn.parallel.buckets import GradBucket, Reducer
from rushlight.nn.parallel.ddp_log import _dump_DDP_relevant_env_vars, logging_data  # noqa: F401
from rushlight.nn.parallel.module_state import broadcast_all, check_same_model
from rushlight.nn.parallel.sparse_gradients import sparse_parameters

BUCKET_MB = 25.0
_DEFAULT_BUCKET_CAP_MB, _MB_TO_BYTES = 25, 1 << 20  # torch's names


class DistributedDataParallel(Module, Joinable):
    """`module` on each rank, with the parameters of rank 0. After backward, each gradient is its mean over all ranks,
    so that equal optimizers keep the parameters equal.

    Gradients are summed in buckets of `bucket_cap_mb`, each as soon as it is complete, while backward continues.
    `find_unused_parameters`: forward may omit parameters; `static_graph`: each forward omits the same parameters.
    `gradient_as_bucket_view`: gradients share the buckets' memory. `forward_sync_buffers`: each forward begins with the
    buffers of rank 0 (old name: `broadcast_buffers`; if False, the initial buffers of the ranks are not made equal
    either). In `no_sync()` gradients are added up on each rank alone. `join()` is for ranks with unequal numbers of
    batches.

    ValueError without a process group (`torch.distributed.init_process_group`), RuntimeError for a module without
    parameters that require gradients, and for different modules on the ranks."""

    def __init__(
        self,
        module: Module,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool | None = None,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: Any = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
        bucket_cap_mb_list: Sequence[float] | None = None,
        batched_grad_copy: bool = False,
        forward_sync_buffers: bool | None = None,
    ):
        super().__init__()
        check_settings(delay_all_reduce_named_params, mixed_precision)
        group = device_mesh.get_group() if device_mesh is not None else process_group
        self.process_group: Any = member(group)
        if self.process_group is None:
            raise runtime_error("this rank is not in the process group of the module")
        if not any(p.requires_grad for p in module.parameters()):
            raise runtime_error(
                "DistributedDataParallel is not needed when a module doesn't have any parameters that require a "
                "gradient."
            )
        if any(hasattr(p, "_in_backward_optimizers") for p in module.parameters()):
            raise not_implemented_error(
                "DistributedDataParallel of parameters whose optimizers step in backward",
                "optimizer.step() after backward",
            )
        if device_ids:
            raise value_error("device_ids are of GPUs, and there is none", "device_ids=None")
        self.device_ids, self.output_device = None, None
        self.dim, self.module = dim, module
        if broadcast_buffers is not None:
            warn_of_broadcast_buffers(forward_sync_buffers)
        given = broadcast_buffers if forward_sync_buffers is None else forward_sync_buffers
        self.forward_sync_buffers = True if given is None else given
        self.find_unused_parameters, self.static_graph = find_unused_parameters, static_graph
        self.gradient_as_bucket_view = gradient_as_bucket_view
        cap_mb = max(bucket_cap_mb_list) if bucket_cap_mb_list else bucket_cap_mb or BUCKET_MB
        self.bucket_bytes_cap = int(cap_mb * (1 << 20))
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self.parameters_to_ignore = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        self._set_up(init_sync, forward_sync_buffers is not None or self.forward_sync_buffers)

    def _set_up(self, init_sync: bool, buffers: bool = True) -> None:
        """Make the buckets. With `init_sync`, first copy the parameters of rank 0, and with `buffers` its buffers, to
        all ranks.
        """
        trained = [(name, p) for name, p in self._named("parameters") if p.requires_grad]
        if init_sync:
            check_same_model(trained, self.process_group)
            broadcast_all(self._states(buffers), self.process_group)
        self.reducer = Reducer(
            trained,
            self.process_group,
            self.bucket_bytes_cap,
            self.gradient_as_bucket_view,
            sparse_parameters(self.module),
            self.find_unused_parameters,
        )
        if self.static_graph:
            self._set_static_graph()

    def _named(self, kind: str) -> list[tuple[str, Tensor]]:
        named = getattr(self.module, f"named_{kind}")()
        return [(name, t) for name, t in named if name not in self.parameters_to_ignore]

    def _buffers_to_sync(self) -> list[Tensor]:
        return [b for _, b in self._named("buffers")]

    def _states(self, buffers: bool) -> list[Tensor]:
        """The parameters; with `buffers`, also the buffers."""
        parameters = [p for _, p in self._named("parameters")]
        return parameters + self._buffers_to_sync() if buffers else parameters

    @property
    def broadcast_buffers(self) -> bool:
        """The old name of `forward_sync_buffers`."""
        return self.forward_sync_buffers

    @broadcast_buffers.setter
    def broadcast_buffers(self, value: bool) -> None:
        self.forward_sync_buffers = value

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        joining = Join.notify_join_context(self)
        if mode().watch is not None:  # compile is recording, but a program cannot call other ranks
            noticed(self.reducer.buckets[0].parameters[0])
        self._before(joining)
        output = self.module(*inputs, **kwargs)
        sums = mode().grad and self.require_backward_grad_sync
        if sums:
            self.reducer.prepare(output)
        self.require_forward_param_sync = sums
        return output

    def _before(self, joining: Any) -> None:
        """The ranks' communication before forward."""
        if mode().grad:
            self.reducer.check_finished()
        if joining is not None:
            self._agree(True, self.require_backward_grad_sync)
            if not self._join_config.divide_by_initial_world_size:
                joining.wait()
                self.reducer.divisor = int(joining.result()[0].item())
        else:
            self.reducer.divisor = self.process_group.size()
        self._sync_buffers(self._common_rank(True) if joining is not None else 0)

    def _sync_buffers(self, root: int = 0) -> None:
        if self.will_sync_module_buffers():
            broadcast_all(self._buffers_to_sync(), self.process_group, root)

    def will_sync_module_buffers(self) -> bool:
        """Whether the next forward begins with the buffers of rank 0. As in torch, this is false after a forward in
        `no_sync()` or `no_grad()`.
        """
        return self.require_forward_param_sync and self.forward_sync_buffers and bool(self._buffers_to_sync())

    def _set_static_graph(self) -> None:
        """Declare that each backward has the graph of the first backward."""
        self.reducer.make_static()
        self.static_graph = True

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        """A description of the module and its buckets."""
        return logging_data(self)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """In this context, backward adds to the gradients of this rank alone. The first backward after the context sums
        the results over the ranks."""
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def register_comm_hook(self, state: Any, hook: Callable[[Any, GradBucket], Any]) -> None:
        """Call `hook(state, bucket)` in place of the sum of each bucket. It returns a future of the bucket's new value,
        and must itself divide by the number of ranks."""
        if not callable(hook):
            raise type_error("Communication hook must be callable.")
        if self.reducer.hook is not None:
            raise runtime_error("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self.reducer.hook, self.reducer.hook_state = hook, state

    # -- ranks with unequal numbers of batches -----------------------------------------------------

    def join(
        self, divide_by_initial_world_size: bool = True, enable: bool = True, throw_on_early_termination: bool = False
    ) -> Join:
        """A context for training in which ranks may have unequal numbers of batches: a rank without further batches
        adds zeros to the other ranks' sums. Gradients are divided by the number of all ranks, or with
        divide_by_initial_world_size=False by the number of ranks that have batches."""
        return Join(
            [self], enable, throw_on_early_termination, divide_by_initial_world_size=divide_by_initial_world_size
        )

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """The hook that runs on a rank without further batches."""
        return Shadow(self)

    @property
    def join_device(self) -> Any:
        """The device of the module: the CPU."""
        return next(self.module.parameters()).device

    @property
    def join_process_group(self) -> Any:
        """The group of the module."""
        return self.process_group

    def _agree(self, active: bool, wanted: bool) -> bool:
        """Whether the ranks that have batches sum gradients in this step."""
        flag = numbers([int(active and wanted)])
        all_reduce(flag, ReduceOp.MAX, self.process_group)
        return bool(flag.item())

    def _common_rank(self, active: bool) -> int:
        """The largest rank that has batches; all ranks take its buffers."""
        rank = numbers([self.process_group.rank() if active else -1])
        all_reduce(rank, ReduceOp.MAX, self.process_group)
        return int(rank.item())

    # -- copies and files --------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        for name in ("process_group", "reducer"):
            del state[name]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.process_group = member(None)
        self._set_up(False)


class Shadow(JoinHook):
    """A rank without further batches, which joins the operations of the other ranks."""

    def __init__(self, ddp: DistributedDataParallel):
        self.ddp = ddp

    def main_hook(self) -> None:
        """Take part in one step of the other ranks."""
        ddp = self.ddp
        sums = ddp._agree(False, False)
        ddp._sync_buffers(ddp._common_rank(False))
        ddp.require_forward_param_sync = sums
        if sums:
            ddp.reducer.shadow()

    def post_hook(self, is_last_joiner: bool) -> None:
        """Copy the parameters and buffers of a rank that had batches until the end to all ranks."""
        ddp = self.ddp
        root = ddp._common_rank(is_last_joiner)
        broadcast_all(ddp._states(ddp.forward_sync_buffers), ddp.process_group, root)


def warn_of_broadcast_buffers(forward_sync_buffers: bool | None) -> None:
    """Warn as torch 2.13 does."""
    if forward_sync_buffers is None:
        told = (
            "`broadcast_buffers` is deprecated. Use `forward_sync_buffers` instead. IMPORTANT: unlike "
            "`broadcast_buffers=False`, `forward_sync_buffers=False` still syncs buffers at init."
        )
    else:
        told = (
            "Both `broadcast_buffers` and `forward_sync_buffers` were specified. `broadcast_buffers` is deprecated "
            "and its value is ignored when `forward_sync_buffers` is provided."
        )
    warnings.warn(told, FutureWarning, stacklevel=3)


def check_settings(delayed: Any, mixed_precision: Any) -> None:
    """Raise for settings that are not supported."""
    for name, value in (("delay_all_reduce_named_params", delayed), ("mixed_precision", mixed_precision)):
        if value is not None:
            raise not_implemented_error(f"DistributedDataParallel has no {name}", "autocast, or module.to(dtype)")
