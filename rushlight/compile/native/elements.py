"""Elementwise ops on vectors of LLVM values: the rules of the op table, run on symbols whose printer emits
instructions."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import numpy as np

from rushlight.compile.graph import Call, Value, with_each
from rushlight.compile.native.errors import NotNative
from rushlight.compile.native.schedule import Group
from rushlight.compile.passes.fuse import same_elements
from rushlight.compile.passes.simplify import uniform
from rushlight.core.table import TABLE
from rushlight.fast.rule_text import BOOL, NotFused, Scalar, expression
from rushlight.loops import llvm
from rushlight.loops.llvm import TYPES, Function, Module, Target
from rushlight.loops.llvm_math import functions

SIGNS = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "<": operator.lt,
    "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
    "&": operator.and_, "|": operator.or_, "^": operator.xor,
}  # fmt: skip


class Instructions:
    """The printer of Scalars (fast/rule_text.py) that emits instructions of one function."""

    def __init__(self, f: Function):
        self.f = f

    def infix(self, sign: str, x: Any, y: Any, rank: int, compares: bool) -> llvm.Value:
        return SIGNS[sign](x.text, y.text)

    def logical(self, sign: str, x: Any, y: Any) -> llvm.Value:
        return SIGNS[sign](x.text, y.text)

    def negative(self, x: Any) -> llvm.Value:
        return -x.text

    def inverted(self, x: Any) -> llvm.Value:
        return ~x.text

    def absolute(self, x: Any) -> llvm.Value:
        return abs(x.text)

    def number(self, value: Any, dtype: np.dtype) -> llvm.Value:
        return self.f.number(TYPES[dtype.name], value)

    def converted(self, x: Any, dtype: np.dtype) -> llvm.Value:
        return x.text != 0 if dtype == BOOL else llvm.converted(x.text, TYPES[dtype.name])

    def call(self, name: str, args: tuple, dtype: np.dtype) -> llvm.Value:
        try:
            return functions(dtype.name)[name](*[a.text for a in args])
        except NotImplementedError as error:
            raise NotNative(str(error)) from None


def computed(f: Function, steps: list[Call], known: Mapping[Value, llvm.Value]) -> dict[Value, llvm.Value]:
    """The results of elementwise steps. `known`: the elements of the values from outside."""
    printer = Instructions(f)
    env = {v: Scalar(x, v.dtype, printer=printer) for v, x in known.items()}

    def symbol(v: Value) -> Scalar:
        if v not in env:
            number = uniform(v)
            if v.kind != "constant" or number is None:
                raise NotNative("a value has no element")
            env[v] = Scalar(printer.number(number.item(), v.dtype), v.dtype, printer=printer)
        return env[v]

    for step in steps:
        args, out = with_each(tuple(step.args), symbol), step.outs[0]
        try:
            env[out] = args[0] if same_elements(step) else expression(TABLE[step.op], args, out.dtype)
        except NotFused:
            raise NotNative(f"{step.op} has no formula") from None
    return {v: s.text for v, s in env.items()}


def written(target: Target, group: Group) -> int:
    """The number of instructions of a group's elementwise steps."""
    f = Function(Module(target), "tried", "")
    given = [*group.reads(), *(group.anchor.outs if group.anchor else ())]
    numbers = {v: f.number(TYPES[v.dtype.name], 1, target.lanes) for v in given if v.dtype.name in TYPES}
    computed(f, group.steps, numbers)
    return len(f.lines)
