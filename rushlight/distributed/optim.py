"""torch.distributed.optim in one process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.distributed import check_initialized
from rushlight.optim import Optimizer


class ZeroRedundancyOptimizer(Optimizer):
    """A wrapper of `optimizer_class(params, **defaults)`. One process holds the whole state;
    `optim` is the optimizer.

    ValueError without a process group.
    """

    def __init__(
        self,
        params: Any,
        optimizer_class: type[Optimizer],
        process_group: Any = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ):
        check_initialized()
        self.optim = optimizer_class(params, **defaults)
        super().__init__(self.optim.param_groups, self.optim.defaults)
        self.param_groups, self.state = self.optim.param_groups, self.optim.state

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """The optimizer's step."""
        return self.optim.step(closure, **kwargs)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.optim.load_state_dict(state_dict)
        self.param_groups, self.state = self.optim.param_groups, self.optim.state

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Nothing to do: the state is here."""


__all__ = ["ZeroRedundancyOptimizer"]
