"""Deferred gradients of large tensors: the rules of consecutive elementwise ops in backward become one loop, which
reads every saved array once and writes no intermediate results.

The engine passes such an op a `Formula` (`Deferred.arriving`); its rule, run on symbols (fast/rule_text.py), gives the
formula of the next gradient. A formula is computed as soon as its numbers are needed: by any other op, a leaf, a
target, or a sum over broadcast dimensions. Only arithmetic that rounds like NumPy's is deferred, and every step is
rounded separately, so the numbers equal the results of separate ops to the last bit.

Backward of x sigmoid(1.7 x) + tanh(x) exp(-x x) for 10 million numbers: 16 passes over memory became one."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy import ndarray

from rushlight.base import faster
from rushlight.base.buffer_pool import memory
from rushlight.core.node import Node
from rushlight.core.table import TABLE, Op
from rushlight.core.worlds import AS_ARRAYS, Arrays, sum_to_array
from rushlight.fast.elementwise import EXACT, TYPES, run, shared
from rushlight.fast.index import DEFERRED_ELEMENTS
from rushlight.kernels.elementwise import where
from rushlight.loops import budget

MOST = 8  # most arrays that one loop reads
LONGEST = 1500  # most characters of a formula
BLOCK = 1 << 13  # numbers per block for NumPy: blocks stay in the cache
NAME = re.compile(r"\b([ab])(\d+)(\[i\])?")  # a12[i]: the element of an array; b12: one number


class Formula:
    """A deferred array. `scalar`: the expression of one element over `arrays`. `call`: (rule, arguments) if all
    arguments are arrays, so that NumPy can compute it directly.
    """

    __slots__ = ("arrays", "call", "dtype", "made", "scalar", "shape", "size")
    __array_ufunc__ = None  # array + formula calls the formula's __radd__

    def __init__(self, scalar: Any, shape: tuple[int, ...], arrays: dict[str, ndarray]):
        self.scalar, self.shape, self.arrays = scalar, shape, arrays
        self.dtype, self.size = scalar.dtype, prod(shape)
        self.made: Any = None
        self.call: tuple | None = None

    def through(self, op: Op, of: str, rule: Callable, args: tuple) -> Any:
        """The gradient of an input, from the output's gradient: `rule(*args)`, where this formula is among the
        arguments.
        """
        made = self.composed(on_symbols(op.name, of), args) if op.options.get("fused", True) else None
        if made is None:
            return run(op, of, rule, *map(whole, args))
        if made is not self and self.array_known():
            made.call = op, of, rule, *map(whole, args)
        return made

    def composed(self, rule: Callable, args: tuple) -> Formula | None:
        """The rule applied to formulas, arrays and settings; None if it must be computed at once."""
        from rushlight.fast.rule_text import NotFused, Scalar

        given, arrays = [], dict(self.arrays)
        for a in args:
            a = formula_of(a, self.shape) if a.__class__ is ndarray else a
            if a is None:
                return None
            if a.__class__ is Formula:
                arrays |= a.arrays
            given.append(a.scalar if a.__class__ is Formula else a)
        try:
            made = rule(*given)
        except (NotFused, TypeError, AttributeError, ValueError):
            return None
        if made is self.scalar:  # the gradient is unchanged, and the engine tests for the same object
            return self
        if not isinstance(made, Scalar) or made.dtype != self.dtype or len(made.text) > LONGEST:
            return None
        used = {name: arrays[name] for name in names_of(made.text)}
        fits = len(used) <= MOST and {f.removesuffix("64") for f in re.findall(r"(\w+)\(", made.text)} <= EXACT
        # in brackets, so that the step is rounded separately
        return Formula(Scalar(f"({made.text})", made.dtype), self.shape, used) if fits else None

    def __add__(self, other: Any) -> Any:
        made = self.composed(lambda x, y: x + y, (self, other))
        return np.add(whole(self), whole(other)) if made is None else made

    def __radd__(self, other: Any) -> Any:
        made = self.composed(lambda x, y: y + x, (self, other))
        return np.add(whole(other), whole(self)) if made is None else made

    def reshape(self, shape: tuple) -> ndarray:
        return self.array().reshape(shape)

    def copy(self) -> ndarray:
        return self.array().copy()

    def array_known(self) -> bool:
        """True if the formula is just one array."""
        return NAME.fullmatch(self.scalar.text) is not None

    def array(self) -> ndarray:
        """The numbers, computed on the first call; from then on the formula refers to the computed array."""
        if self.made is None:
            names = names_of(self.scalar.text)
            arrays = [self.arrays[name] for name in names]
            if self.array_known():
                self.made = arrays[0] if arrays[0].shape == self.shape else np.broadcast_to(arrays[0], self.shape)
                return self.made
            if self.call is not None:
                self.made, self.call = run(*self.call), None
            else:
                places = {name: f"x{k}" for k, name in enumerate(names)}
                text = NAME.sub(lambda m: places[m[1] + m[2]] + (m[3] or "_"), self.scalar.text)
                kinds = tuple((TYPES[a.dtype], name[0] == "a") for a, name in zip(arrays, names))
                self.made = chain(text, kinds, self.dtype).compute(arrays, self.shape)
            known = formula_of(self.made, self.shape)
            if known is not None:
                self.scalar, self.arrays = known.scalar, known.arrays
        return self.made


class Chain:
    """The text for each element, run by NumPy in blocks, until a compiled loop has paid for itself."""

    def __init__(self, text: str, kinds: tuple, dtype: np.dtype):
        from rushlight.loops.tiering import Loop

        self.dtype, self.kinds, passes = dtype, kinds, len(re.findall(r"[-+*/<>=(]", text))
        names = [f"x{k}" for k in range(len(kinds))]
        ones = [f"    {x}_ = {x}[()]" for x, (_, each) in zip(names, kinds) if not each]
        self.code = compile(text.replace("[i]", ""), "<a chain of gradients>", "eval")
        self.names = [x if each else f"{x}_" for x, (_, each) in zip(names, kinds)]
        self.how, self.cost = (1, *(int(each) for _, each in kinds)), 1 + passes // 4
        body = [
            f"def kernel(out, {', '.join(names)}):",
            "    restrict()",
            "    wide()",
            *ones,
            "    for i in range(out.shape[0]):",
            f"        out[i] = {text}",
        ]
        self.loop = Loop(lambda: "\n".join(body) + "\n", passes, self.example)

    def example(self) -> tuple:
        return np.empty(0, self.dtype), *(np.empty((0,) if each else (), kind) for kind, each in self.kinds)

    def compute(self, arrays: list[ndarray], shape: tuple[int, ...]) -> ndarray:
        out = memory.take(shape, self.dtype)
        flat = out.reshape(-1)
        given = [a.reshape(-1) if each else a[(0,) * a.ndim] for a, (_, each) in zip(arrays, self.kinds)]
        if self.loop.function is not None:
            shared(self.loop.function, (flat, *map(np.asarray, given)), self.how, len(flat) * self.cost)
            return out
        # as in fast/elementwise.py: the cost of NumPy's passes over fresh memory
        self.loop.pay(12 * len(flat))
        with np.errstate(all="ignore"):
            for start in range(0, len(flat), BLOCK):
                part = [a[start : start + BLOCK] if each else a for a, (_, each) in zip(given, self.kinds)]
                flat[start : start + BLOCK] = eval(self.code, functions(), dict(zip(self.names, part)))
        return out


chain = lru_cache(maxsize=1024)(Chain)


def whole(g: Any) -> Any:
    """An array in place of a formula."""
    return g.array() if g.__class__ is Formula else g


class Deferred(Arrays):
    """Gradients are arrays; gradients of large elementwise ops are deferred, as formulas.

    `targets`: the nodes whose gradients the caller needs, None for the leaves.
    """

    __slots__ = ("targets",)

    def __init__(self, targets: set[Node] | None):
        self.targets = targets

    def over(self, order: list[Node]) -> Arrays:
        """This kind of gradients, if no user code sees intermediate ones and faster ways are on; otherwise plain
        arrays."""
        unseen = all([n.hooks is None and (n.op is not None or n.leaf) for n in order])
        return self if unseen and budget.allowed else AS_ARRAYS

    def arriving(self, g: Any, node: Node) -> Any:
        """The gradient in the form that a node takes: a formula if the gradient is large and the node's op can be
        deferred.
        """
        if self.targets is not None and node in self.targets:
            return whole(g)
        if node.op is None or not node.op.elementwise:
            return whole(g)
        if g.__class__ is ndarray and g.size >= DEFERRED_ELEMENTS:
            return formula_of(g, g.shape) or g
        return g

    @staticmethod
    def fit(g: Any, shape: tuple) -> ndarray:
        return sum_to_array(whole(g), shape)


faster.deferred_kind = Deferred


def formula_of(a: ndarray, shape: tuple[int, ...]) -> Formula | None:
    """The formula of an array of this shape, or of one number for all elements; None if no loop supports the array."""
    from rushlight.fast.rule_text import Scalar

    if a.dtype not in TYPES or a.ndim > len(shape):
        return None
    if a.size == 1 or a.shape == shape and not any(a.strides):
        return Formula(Scalar(f"b{id(a)}", a.dtype), shape, {f"b{id(a)}": a})
    if a.shape != shape or not (a.flags.c_contiguous and a.flags.aligned):
        return None
    return Formula(Scalar(f"a{id(a)}[i]", a.dtype), shape, {f"a{id(a)}": a})


def names_of(text: str) -> list[str]:
    """The arrays of a formula, in order of appearance."""
    return list(dict.fromkeys(m[1] + m[2] for m in NAME.finditer(text)))


@lru_cache(maxsize=1024)
def on_symbols(name: str, of: str) -> Callable:
    from rushlight.fast.rule_text import NotFused, on_symbols

    try:
        return on_symbols(TABLE[name].rules[of])
    except NotFused:
        return lambda *args: None  # no formula


@cache
def functions() -> dict[str, Any]:
    """The functions that a formula calls, for arrays."""
    own = {
        "rsqrt": lambda x: x.dtype.type(1) / np.sqrt(x),
        "f32": np.float32,
        "f64": np.float64,
        "round": np.rint,
        "where": where,
    }
    known = {name: own.get(name) or getattr(np, name) for name in EXACT}
    return known | {f"{name}64": f for name, f in known.items()} | {"abs": np.abs, "inf": np.inf, "nan": np.nan}
