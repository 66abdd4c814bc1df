"""torch.utils.flop_counter, names that libraries import."""

from __future__ import annotations

from typing import Any

from rushlight.base.errors import explain


class FlopCounterMode:
    """A context that would count operations. Entering it raises NotImplementedError.

    >>> try:
    ...     with rushlight.utils.flop_counter.FlopCounterMode():
    ...         pass
    ... except NotImplementedError:
    ...     print("rushlight.profiler counts bytes and times")
    rushlight.profiler counts bytes and times
    """

    def __init__(self, *args: Any, **kwargs: Any):
        pass

    def __enter__(self) -> FlopCounterMode:
        raise NotImplementedError(
            explain(
                "torch.utils.flop_counter is not supported",
                "rushlight.utils.summary(model, "
                "input) counts multiplications and additions; rushlight.profiler measures times",
            )
        )

    def __exit__(self, *exc: object) -> None:
        """Nothing to end."""


__all__ = ["FlopCounterMode"]
