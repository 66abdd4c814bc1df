"""The form of what `docs.py` of a subject says of its ops, for their docstrings
(introspect/op_docstrings.py); an entry may say it with `doc=`.

Only what the entry does not tell: no formula that the forward prints, no shape, dtype or error that
the family implies."""

from __future__ import annotations

from typing import NamedTuple


class Text(NamedTuple):
    """A sentence or two; `formula`, `shape`, `dtype`, `errors` where what the family says is wrong
    or too little."""

    says: str = ""
    formula: str = ""
    example: str = ""  # a program; its last line is shown with what it gives
    data: tuple[str, ...] = ()  # or, for an elementwise op, numbers for its inputs
    shape: str = ""
    dtype: str = ""
    errors: str = ""


NO_TEXT = Text()
INDEXED = "IndexError for an index that is not there"
MATRIX = "x = rushlight.tensor([[1, 2, 3], [4, 5, 6]])\n"
