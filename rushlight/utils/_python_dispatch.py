"""torch.utils._python_dispatch: names that libraries import; to observe ops, use TorchFunctionMode."""

from __future__ import annotations

from typing import Any

from rushlight.base.errors import not_implemented_error


class TorchDispatchMode:
    """torch's base of contexts that observe each op below autograd. NotImplementedError when it is entered."""

    def __enter__(self) -> TorchDispatchMode:
        raise not_implemented_error(
            "TorchDispatchMode: rushlight has no level of ops below autograd",
            "use torch.overrides.TorchFunctionMode, which sees function calls",
        )

    def __exit__(self, *exc: object) -> None:
        """No effect."""


def is_traceable_wrapper_subclass(t: Any) -> bool:
    """False: no tensor is made by __torch_dispatch__."""
    return False


__all__ = ["TorchDispatchMode", "is_traceable_wrapper_subclass"]
