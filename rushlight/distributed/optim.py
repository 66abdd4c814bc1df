"""torch.distributed.optim: ZeroRedundancyOptimizer, and optimizers that step in backward."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from rushlight.base.errors import not_implemented_error, runtime_error
from rushlight.comm.groups import member
from rushlight.comm.join import Joinable, JoinHook
from rushlight.comm.objects import gather_object
from rushlight.core.tensor import Tensor
from rushlight.nn import Module
from rushlight.nn.parallel.module_state import broadcast_all
from rushlight.optim import Optimizer


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """`optimizer_class(params, **defaults)` with its state divided over the ranks: each rank steps its share of the
    parameters and sends the new values to the other ranks. `optim` is the optimizer of this rank's share.

    state_dict() needs `consolidate_state_dict(to)` on all ranks before, and is for rank `to`. ValueError without a
    process group."""

    def __init__(
        self, params: Any, optimizer_class: type[Optimizer], process_group: Any = None,
        parameters_as_bucket_view: bool = False, overlap_with_ddp: bool = False, **defaults: Any,
    ):  # fmt: skip
        if overlap_with_ddp:
            raise not_implemented_error("overlap_with_ddp is not supported", "leave it out")
        group = member(process_group)
        if group is None:
            raise runtime_error("this rank is not in the process group")
        self.group, self.consolidated = group, None
        super().__init__(params, defaults)
        self.owners = self.divided()
        mine = [
            {**g, "params": [p for p in g["params"] if self.owners[id(p)] == group.rank()]} for g in self.param_groups
        ]
        self.optim = optimizer_class(mine, **defaults)
        for own, local in zip(self.param_groups, self.optim.param_groups):
            for name, value in local.items():
                own.setdefault(name, value)
        self.state = self.optim.state

    def divided(self) -> dict[int, int]:
        """{id of a parameter: its rank in the group}. The largest parameters come first; each goes to the rank with the
        fewest elements."""
        sizes, owners = [0] * self.group.size(), {}
        for g in self.param_groups:
            for p in sorted(g["params"], key=Tensor.numel, reverse=True):
                owner = sizes.index(min(sizes))
                owners[id(p)] = owner
                sizes[owner] += p.numel()
        return owners

    def share_settings(self) -> None:
        """Copy the groups' settings, which schedulers change, to the optimizer of this rank's share."""
        copy_settings(self.param_groups, self.optim.param_groups)

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Step each rank's share, then send the new parameters to all ranks."""
        self.share_settings()
        loss = self.optim.step(closure, **kwargs)
        self.tell()
        return loss

    def tell(self) -> None:
        """Send the parameters of each share to all ranks."""
        every = [p for g in self.param_groups for p in g["params"]]
        for rank in range(self.group.size()):
            share = [p for p in every if self.owners[id(p)] == rank]
            if share:
                broadcast_all(share, self.group, rank)

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Gather the states of all ranks on rank `to`, for `state_dict()` there."""
        self.share_settings()
        at = self.group.numbers[to]
        shares: Any = [None] * self.group.size() if self.group.rank() == at else None
        gather_object(self.optim.state_dict()["state"], shares, group=self.group, group_dst=at)
        self.consolidated = shares

    def places(self) -> list[tuple[int, int]]:
        """(rank, number in the rank's share) for each parameter."""
        counts, found = [0] * self.group.size(), []
        for g in self.param_groups:
            for p in g["params"]:
                owner = self.owners[id(p)]
                found.append((owner, counts[owner]))
                counts[owner] += 1
        return found

    def state_dict(self) -> dict[str, Any]:
        """The state of one optimizer of all parameters. RuntimeError before `consolidate_state_dict`."""
        if self.group.size() == 1:
            self.consolidate_state_dict(self.group.world.rank)
        if self.consolidated is None:
            raise runtime_error(
                "Optimizer state has not been consolidated on this rank. Please call "
                f"`consolidate_state_dict(to={self.group.world.rank})` on all ranks beforehand if you meant to "
                "save the global state."
            )
        state = {
            i: self.consolidated[rank][number]
            for i, (rank, number) in enumerate(self.places())
            if number in self.consolidated[rank]
        }
        return {"state": state, "param_groups": super().state_dict()["param_groups"]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore a whole state: each rank keeps its share."""
        mine = {
            number: state_dict["state"][i]
            for i, (rank, number) in enumerate(self.places())
            if rank == self.group.rank() and i in state_dict["state"]
        }
        local = self.optim.state_dict()["param_groups"]
        copy_settings(state_dict["param_groups"], local)
        self.optim.load_state_dict({"state": mine, "param_groups": local})
        copy_settings(state_dict["param_groups"], self.param_groups)
        self.state = self.optim.state

    # -- for Join ----------------------------------------------------------------------------------

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """A hook that steps this rank's share. DDP's hook sets the gradients."""
        return StepShare(self)

    @property
    def join_process_group(self) -> Any:
        """The process group."""
        return self.group

    @property
    def join_device(self) -> Any:
        """The device of the parameters: the CPU."""
        return self.param_groups[0]["params"][0].device


def copy_settings(groups: Iterable[dict[str, Any]], to: Iterable[dict[str, Any]]) -> None:
    """Copy the settings of each group, but not its parameters."""
    for group, own in zip(groups, to):
        own.update({name: value for name, value in group.items() if name != "params"})


class StepShare(JoinHook):
    """The steps of a rank that has run out of batches."""

    def __init__(self, optimizer: ZeroRedundancyOptimizer):
        self.optimizer = optimizer

    def main_hook(self) -> None:
        """Step this rank's share."""
        self.optimizer.step()


def _apply_optimizer_in_backward(
    optimizer_class: type[Optimizer], params: Iterable[Tensor], optimizer_kwargs: dict[str, Any],
    register_hook: bool = True,
) -> None:  # fmt: skip
    """Step each parameter by a separate optimizer as soon as backward has computed the gradient, and free the gradient.
    Several calls for one parameter make several optimizers."""
    for p in params:
        first = not hasattr(p, "_in_backward_optimizers")
        known = getattr(p, "_in_backward_optimizers", [])
        p._in_backward_optimizers = [*known, optimizer_class([p], **optimizer_kwargs)]  # type: ignore[attr-defined]
        if first and register_hook:
            p.register_post_accumulate_grad_hook(step_and_free)


def step_and_free(parameter: Any) -> None:
    """Step the optimizers of a parameter."""
    for optimizer in parameter._in_backward_optimizers:
        optimizer.step()
    parameter.grad = None


def _get_in_backward_optimizers(module: Module) -> list[Optimizer]:
    """The optimizers that step in backward."""
    return [o for p in module.parameters() for o in getattr(p, "_in_backward_optimizers", ())]


__all__ = ["ZeroRedundancyOptimizer"]
