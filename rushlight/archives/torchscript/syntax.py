"""The text of an archive's code as a syntax tree. Nothing of the text is ever compiled or run by Python."""

from __future__ import annotations

import ast
import string
from collections.abc import Callable

MAX_CODE = 2**21  # bytes of one file of code
MAX_SIGNS = 300_000  # punctuation in it: a tree takes about 300 bytes for each sign


def parsed(text: str, name: str, damaged: Callable[[str], Exception]) -> ast.Module:
    """The tree of a text; `damaged` makes the error for other texts, and for long ones."""
    if len(text) > MAX_CODE or sum(map(text.count, string.punctuation)) > MAX_SIGNS:
        raise damaged(f"{name} is too long for a program")
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise damaged(f"{name} is no TorchScript: {str(error)[:200]}") from None


def dotted(node: ast.AST) -> str | None:
    """`a.b.c` of an attribute of attributes of a name; None for other expressions."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else None


def where(node: ast.AST, name: str) -> str:
    """The place of a node, for messages."""
    return f"{name}, line {getattr(node, 'lineno', 1)}"
