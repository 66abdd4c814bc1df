"""torch._tensor_str: the names that libraries import: the elements of a tensor as text, and the print options."""

from __future__ import annotations

from typing import Any

from rushlight.base.printing import elements_of, get_printoptions, printoptions
from rushlight.core.tensor import Tensor


class Options:
    """The current print options, as attributes."""

    def __getattr__(self, name: str) -> Any:
        options = get_printoptions()
        if name not in options:
            raise AttributeError(name)
        return options[name]


PRINT_OPTS = Options()


def _tensor_str(self: Tensor, indent: int) -> str:
    """The elements in their brackets, lines after the first indented by `indent`.

    >>> rushlight._tensor_str._tensor_str(rushlight.eye(2), 1)
    '[[1., 0.],\\n  [0., 1.]]'
    """
    return elements_of(self._array, self.dtype, indent)


def _str_intern(inp: Any, *, tensor_contents: str | None = None) -> str:
    """The text of a tensor.

    >>> rushlight._tensor_str._str_intern(rushlight.ones(2))
    'tensor([1., 1.])'
    """
    return repr(inp) if tensor_contents is None else f"tensor({tensor_contents})"


__all__ = ["PRINT_OPTS", "printoptions"]
