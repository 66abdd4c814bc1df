"""From an optimizer's rule to a program of NumPy calls, which write their results in place.

A rule is a formula for the new parameter and its new state. On tensors, the rule is recorded or differentiated. Run
once on symbols, it gives a list of calls. Each call writes its result into the memory of the parameter or its state,
if the old value is not needed any more, else into one of a few buffers, which later calls reuse. Numbers are computed
separately, once for all parameters at the same step. The program is faster than the rule on arrays, which allocates
memory for each result.

>>> def momentum(p, g, buf, /, lr, mu):
...     buf = mu * buf + g
...     return p - lr * buf, buf
>>> print(program(momentum, (True, True, True), (True, True)).source)
def update(p, g, buf, b0, k0, k1):
    mul(k0, buf, out=b0)
    add(b0, g, out=buf)
    mul(k1, buf, out=b0)
    sub(p, b0, out=p)
<BLANKLINE>
def numbers(lr, mu):
    used = (mu, lr)
    raised = ()
    return used, raised
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import lru_cache, partial
from numbers import Number
from typing import Any

import numpy as np
from numpy import ndarray

from rushlight.base.errors import describe, type_error
from rushlight.base.text import define, folded, indented, tupled
from rushlight.core.table import TABLE
from rushlight.core.worlds import ARRAYS
from rushlight.optim.rule import HINT, RuleError, check_results, evaluate, names_of

# A world: ops of numbers as text (names in a rule -> text). `pow` and the comparisons are for numbers only.
FORMULAS = {
    "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "div": "{} / {}", "pow": "{} ** {}", "neg": "-{}",
    "gt": "{} > {}", "lt": "{} < {}", "ge": "{} >= {}", "le": "{} <= {}", "eq": "{} == {}", "ne": "{} != {}",
    "abs": "abs({})", "clamp_min": "max({}, {})",
}  # fmt: skip
OPERATORS = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "pow": "pow", "neg": "neg", "gt": "gt", "lt": "lt",
    "ge": "ge", "le": "le", "eq": "eq", "ne": "ne",
}  # fmt: skip


class Symbol:
    """An unknown array (it has the tape that records its calls) or an unknown number."""

    __slots__ = ("tape", "text", "true")

    def __init__(self, text: str, tape: list | None = None, true: bool | None = None):
        self.text, self.tape, self.true = text, tape, true

    @property
    def shown(self) -> str:
        return self.text or "a result"

    def __bool__(self) -> bool:
        if self.true is None:
            hint = f"write `if lr:` or `if not lr:` for a setting lr, or multiply by {self.text}, which is 0 or 1"
            if self.tape is not None:
                hint = "select elements by where(g > 0, a, b), maximum(a, b) or clamp_min(g, 0)"
            raise RuleError(f"an `if` may test only whether a setting is 0 or state is None, not {self.shown}", hint)
        return self.true

    def __getitem__(self, i: int) -> Symbol:
        if self.tape is not None:
            raise RuleError(f"{self.shown}[{i}]: a rule computes all elements alike, and has no index", HINT)
        return Symbol(f"{self.text}[{i}]")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        hint = f"write {name}({self.text or 'x'})" if name in ARRAYS else HINT
        raise RuleError(f"{self.shown}.{name}: a rule has no methods and attributes of tensors", hint)

    def __iter__(self) -> Any:
        hint = HINT if self.tape is not None else f"write {self.text}[0], {self.text}[1]"
        raise RuleError(f"{self.shown} cannot be unpacked in a rule", hint)

    def __float__(self) -> float:
        raise RuleError(f"{self.shown} is not a number yet: a rule is first run on symbols", "lr ** 0.5 is a root")


def apply(name: str, *operands: Any, **named: Any) -> Symbol:
    """Note an op on arrays; write an op on numbers as a formula."""
    if named:
        raise RuleError(f"{name}() takes its arguments by position in a rule", f"omit {next(iter(named))}=")
    for value in operands:
        if not isinstance(value, (Symbol, Number)):
            hint = "test `if m is None`, or let _new_state return this state" if value is None else "make it a setting"
            raise RuleError(f"an operand of {name} is {describe(value)}, not an array or a number", hint)
    tape = next((o.tape for o in operands if isinstance(o, Symbol) and o.tape is not None), None)
    if tape is None:
        if name not in FORMULAS:
            raise RuleError(
                f"{name}({', '.join(map(written, operands))}): in a rule, numbers have only operators",
                "write lr ** 0.5, or compute the setting in the constructor",
            )
        return Symbol(f"({FORMULAS[name].format(*map(written, operands))})")
    if name in TABLE and not TABLE[name].elementwise:
        raise RuleError(
            f"{name} is not elementwise, and a rule computes each element alone",
            "subclass PerParameter instead, as rushlight/optim/muon.py does",
        )
    result = Symbol("", tape)
    tape.append((name, operands, result))
    return result


def written(number: Any) -> str:
    return number.text if isinstance(number, Symbol) else repr(number)


def operator(name: str, swapped: bool = False) -> Callable:
    def call(*operands: Any) -> Symbol:
        return apply(name, *(operands[::-1] if swapped else operands))

    return call


for python_name, op_name in OPERATORS.items():
    setattr(Symbol, f"__{python_name}__", operator(op_name))
    if python_name in ("add", "sub", "mul", "truediv", "pow"):
        setattr(Symbol, f"__r{python_name}__", operator(op_name, swapped=True))


class Program:
    """`numbers(*settings)` -> (numbers for `update`, new values of the counters); `update(*arrays, *buffers, *numbers)`
    writes the new values into the parameter and its state; `buffers`: the number of buffers; `source`: the text.

    `given`: the arrays; `tape`: the calls; `wanted`: what each array becomes; `constants`: the names of the numbers.
    Tests read these."""

    __slots__ = ("buffers", "constants", "given", "numbers", "source", "tape", "update", "wanted")

    def __init__(self, numbers: str, update: str, buffers: int, given: list, tape: list, wanted: dict, constants: dict):
        self.given, self.tape, self.wanted, self.constants = given, tape, wanted, constants
        self.source, self.buffers = f"{update}\n{numbers}", buffers
        self.numbers = define(numbers, "numbers", {}, "numbers of an optimizer")
        self.update = define(update, "update", {**ARRAYS, "copyto": np.copyto}, "update of an optimizer")


@lru_cache(maxsize=256)
def program(rule: Callable, present: tuple[bool, ...], true: tuple[bool, ...]) -> Program:
    """The program of a rule `(p, g, *state, /, *settings) -> (new p, *new state, *new values of the first settings)`.

    `present`: for each array, whether it exists; `true`: for each setting, whether it is not zero or false. An `if` in
    a rule may test only these two."""
    arrays, settings = names_of(rule)
    tape: list = []
    given = [Symbol(name, tape) if there else None for name, there in zip(arrays, present)]
    world = {**ARRAYS, **{name: partial(apply, name) for name in ARRAYS if not name.startswith("_")}}
    results = evaluate(rule, world, [*given, *(Symbol(name, None, t) for name, t in zip(settings, true))])
    targets = [given[0], *given[2:]]
    check_results(rule, targets, results, Symbol)
    wanted = {target: value for target, value in zip(targets, results) if target is not None and value is not target}
    if any(value is target for value in wanted.values() for target in targets):
        raise type_error(
            f"rule {rule.__name__} returns an old value, which is overwritten, as the new value of other state",
            "compute a new value: 1 * p instead of p",
        )
    places, buffers = placed(tape, wanted)
    numbers: dict[str, str] = {}
    lines = [call_text(name, operands, result, places, numbers) for name, operands, result in tape]
    lines += [
        f"copyto({target.text}, {place(value, places, numbers)})"
        for target, value in wanted.items()
        if place(value, places, numbers) != target.text
    ]
    there = [s for s in given if s is not None]
    parameters = [*(s.text for s in there), *(f"b{i}" for i in range(buffers)), *numbers.values()]
    raised = [written(value) for value in results[len(targets) :]]
    used = [*tupled("used = ", [*numbers]), *tupled("raised = ", raised), "return used, raised"]
    return Program(
        "\n".join([*folded("def numbers(", settings, "):"), *indented(used)]) + "\n",
        "\n".join([*folded("def update(", parameters, "):"), *indented(lines)]) + "\n",
        buffers,
        there,
        tape,
        wanted,
        numbers,
    )


def placed(tape: list, wanted: dict[Symbol, Symbol]) -> tuple[dict[Symbol, str], int]:
    """(place of each result, number of buffers). `wanted`: target -> its value after the program.

    A value may go into its target at once if the target's old value is not read later. All ops work element by element,
    so a result may overwrite an operand that is not used later."""
    last = {o: i for i, (_, operands, _) in enumerate(tape) for o in operands if isinstance(o, Symbol)}
    made = {result: i for i, (_, _, result) in enumerate(tape)}
    places: dict[Symbol, str] = {}
    for target, value in wanted.items():
        if value in made and value not in places and last.get(target, -1) <= made[value]:
            places[value] = target.text
    free: list[str] = []
    count, kept = 0, set(wanted.values()) | set(places)
    for i, (_, operands, result) in enumerate(tape):
        free += {places[o] for o in operands if last.get(o) == i and o in made and o not in kept}
        if result not in places:
            if not free:
                free.append(f"b{count}")
                count += 1
            places[result] = free.pop()
    return places, count


def call_text(name: str, operands: tuple, result: Symbol, places: dict, numbers: dict) -> str:
    """The text of one call that writes its result."""
    given = ", ".join(place(o, places, numbers) for o in operands)
    if isinstance(ARRAYS[name], np.ufunc):
        return f"{name}({given}, out={places[result]})"
    return f"copyto({places[result]}, {name}({given}))"


def place(operand: Any, places: dict, numbers: dict) -> str:
    """The name of an array, or of a number: k0, k1, ..."""
    if isinstance(operand, Symbol) and operand.tape is not None:
        return places.get(operand, operand.text)
    return numbers.setdefault(written(operand), f"k{len(numbers)}")


# -- running a program on arrays of any size -------------------------------------------------------

BLOCK_ELEMENTS = 32768  # a block of all arrays and buffers stays in the cache


class Buffers(threading.local):
    """Memory for intermediate results, reused by the next parameter of the same shape; each thread has its own."""

    def __init__(self) -> None:
        self.known: dict[tuple, list[ndarray]] = {}

    def get(self, like: ndarray, count: int) -> list[ndarray]:
        if like.size > BLOCK_ELEMENTS:
            return [np.empty(like.shape, like.dtype) for _ in range(count)]
        key = like.shape, like.dtype.num, count  # hashing a dtype is slow
        found = self.known.get(key)
        if found is None:
            if len(self.known) >= 64:
                self.known.clear()
            found = self.known[key] = [np.empty(like.shape, like.dtype) for _ in range(count)]
        return found


buffers = Buffers()


def run(one: Program, arrays: list[ndarray], numbers: list[ndarray]) -> None:
    """Run the program on arrays of one shape; long arrays are processed block by block."""
    if all(a.flags.c_contiguous for a in arrays):
        flat = [a.reshape(-1) for a in arrays]
    elif all(a.flags.f_contiguous for a in arrays):
        flat = [a.T.reshape(-1) for a in arrays]
    else:
        one.update(*arrays, *buffers.get(arrays[0], one.buffers), *numbers)
        return
    for start in range(0, flat[0].size, BLOCK_ELEMENTS):
        part = [a[start : start + BLOCK_ELEMENTS] for a in flat]
        one.update(*part, *buffers.get(part[0], one.buffers), *numbers)
