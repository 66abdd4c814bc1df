"""Mutation probe: runs a function with a snapshot after each statement, to find statements that change Python state."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable
from typing import Any

from rushlight.compile.capture.graph_breaks import home, tree_of_function
from rushlight.compile.capture.syntax import Place, function_of
from rushlight.compile.guards.guard_set import Snapshot


class Probe:
    """`run(args, kwargs)` returns the function's result; then `places` has the statements that changed Python state."""

    def __init__(self, whole: Any, others: Iterable):
        self.whole, self.others = whole, [*others]
        self.places: dict[Place, None] = {}
        self.marks: list[Place] = []
        found = home(whole)
        tree = found and tree_of_function(found[0])
        if found is None or tree is None:
            self.function = whole
            return
        node = copy.deepcopy(tree)
        node.body = self.watched(node.body)
        made = function_of(ast.fix_missing_locations(node), found[0], {"look": self.look})
        self.function = made if found[1] is None else made.__get__(found[1])

    def run(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        self.last = self.now()
        return self.function(*args, **kwargs)

    def now(self) -> Snapshot:
        return Snapshot(self.whole, self.others)

    def look(self, i: int) -> None:
        """Called after statement i: compares snapshots."""
        before, self.last = self.last, self.now()
        if before.difference(self.last) or before.state_difference(self.last):
            self.places[self.marks[i]] = None

    def watched(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """The statements, with a call of `look` after each."""
        out: list[ast.stmt] = []
        for s in body:
            head = getattr(s, "test", None) or getattr(s, "iter", None)
            for field in ("body", "orelse", "finalbody"):
                inside = getattr(s, field, None)
                if (
                    isinstance(inside, list)
                    and inside
                    and isinstance(inside[0], ast.stmt)
                    and not isinstance(s, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef))
                ):
                    begin = [self.mark(head)] if head is not None else []
                    setattr(s, field, begin + self.watched(inside))
            if isinstance(s, ast.Return) and s.value is not None:
                value = ast.copy_location(ast.Assign([ast.Name("value of return", ast.Store())], s.value), s)
                back = ast.copy_location(ast.Return(ast.Name("value of return", ast.Load())), s)
                out += [value, self.mark(s), back]
            elif isinstance(s, (ast.Return, ast.Break, ast.Continue, ast.Raise)):
                out.append(s)
            else:
                out += [s, self.mark(s)]
        return out

    def mark(self, s: Any) -> ast.stmt:
        """A call of `look` for a statement or expression."""
        self.marks.append(Place(s.lineno, s.end_lineno, s.col_offset, s.end_col_offset))
        call = ast.Call(ast.Name("look", ast.Load()), [ast.Constant(len(self.marks) - 1)], [])
        return ast.copy_location(ast.Expr(call), s)
