"""The class of the texts in each subject's `docs.py`. introspect/op_docstrings.py puts the texts into docstrings. An
entry may have `doc=` instead.

The texts add only information that the entry lacks: no formula that the forward prints, no shape, dtype or error that
the family implies.
"""

from __future__ import annotations

from typing import NamedTuple


class Text(NamedTuple):
    """A sentence or two; `formula`, `shape`, `dtype`, `errors` if the family's text would be wrong or incomplete."""

    says: str = ""
    formula: str = ""
    example: str = ""  # a program; the docstring shows the last line and its value
    data: tuple[str, ...] = ()  # or, for an elementwise op, numbers for the inputs
    shape: str = ""
    dtype: str = ""
    errors: str = ""


NO_TEXT = Text()
INDEXED = "IndexError for an index out of range"
MATRIX = "x = rushlight.tensor([[1, 2, 3], [4, 5, 6]])\n"
