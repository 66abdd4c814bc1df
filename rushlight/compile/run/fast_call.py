"""The fast call of a program: one generated function, specialized to the arguments of the last successful call.

The function checks that arguments, guards and state are unchanged since that call. If so it runs the program and
returns the results; otherwise it returns MISSED without side effects, and `Compiled.long_way` handles the call.

    def enter(args):
        if len(args) != 2: return MISSED
        a0, a1, = args
        if type(a0) is not T0: return MISSED
        x0 = a0._array
        if x0.shape != (100, 2) or x0.dtype is not D0 ...: return MISSED
        # the Python values that the function can reach (compile/guards/guard_set.py)
        if not holds(): return MISSED
        # parameters in the memory that they had
        s1 = t1._array
        if s1 is not known[1] and not part.fits(...): return MISSED
        # an error before anything has changed: MISSED, too
        results, grads = part.call(new, x0, s1, x1, *views)
        ...  # writes are noted, gradients and results become tensors
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter, is_not
from threading import Lock
from typing import Any

from rushlight.base.dtypes import get_default_dtype
from rushlight.base.text import define
from rushlight.compile.guards.guard_predicates import PLAIN, equal
from rushlight.compile.guards.pytree_signature import SpentBackward, rebuilt
from rushlight.compile.run.program import Program
from rushlight.core.mode import current, mode
from rushlight.core.node import clock, tick
from rushlight.core.tensor import Tensor, from_array, writes_of

MISSED = object()
MAX_ARGUMENTS = 8  # functions with more arguments have no fast call
BACK = "return MISSED"


def entry(program: Program, args: tuple, lock: Lock, precision: Callable[[], Any]) -> Callable[[tuple], Any] | None:
    """The fast call of a program that has just run with `args`; None if these arguments are not supported.

    `lock` is held while the fast call runs; `precision()` is the dtype of an `autocast` around the call."""
    if (
        len(args) > MAX_ARGUMENTS
        or program.live
        or not all(
            isinstance(a, (Tensor, *PLAIN)) and type(a) is not slice and not (isinstance(a, Tensor) and a.__dict__)
            for a in args
        )
    ):
        return None
    part = program.forward
    names: dict[str, Any] = {
        "MISSED": MISSED,
        "lock": lock,
        "get": current.get,
        "known_mode": mode(),
        "precision": precision,
        "default": get_default_dtype,
        "dtype": get_default_dtype(),
        "autocast": precision(),
        "holds": program.holds,
        "program": program,
        "part": part,
        "known": part.known,
        "new": part.new,
        "apart": program.apart,
        "clock": clock,
        "tick": tick,
        "writes_of": writes_of,
        "from_array": from_array,
        "Spent": SpentBackward,
        "rebuilt": rebuilt,
        "plan": program.plan,
        "numbers": program.numbers,
        "equal": equal,
    }
    writer = Writer(program, args, names)
    checks = [*surroundings(), *writer.arguments(), *writer.state()]
    body = [*checks, *writer.outcome()]
    text = (
        "def enter(args):\n    if not lock.acquire(False): return MISSED\n    try:\n"
        + "".join(f"        {line}\n" for line in body)
        + "    finally:\n        lock.release()\n"
    )
    return define(text, "enter", names, "entry of a program")


def surroundings() -> list[str]:
    """The tests of the state around the call: mode, default dtype, autocast."""
    m = mode()
    tests = [
        f"m.grad is not {m.grad}",
        f"m.inference != {m.inference}",
        f"m.checks != {m.checks!r}",
        "m.watch is not None",
        "m.batch is not None",
    ]
    return [
        "m = get()",
        f"if m is not known_mode and ({' or '.join(tests)}): {BACK}",
        f"if default() is not dtype or precision() is not autocast: {BACK}",
    ]


class Writer:
    """Writes the lines that depend on the program. `names`: the globals of the text, filled by the writer."""

    def __init__(self, program: Program, args: tuple, names: dict[str, Any]):
        self.program, self.args, self.names = program, args, names
        # source ("argument", k) is args[tensors[k]]
        self.tensors = [i for i, a in enumerate(args) if isinstance(a, Tensor)]

    def arguments(self) -> list[str]:
        """The tests of the arguments, equivalent to `signature` in guards/pytree_signature.py."""
        lines = [f"if len(args) != {len(self.args)}: {BACK}"]
        if self.args:
            lines.append(f"{', '.join(f'a{i}' for i in range(len(self.args)))}, = args")
        seen: list[tuple[str, Any]] = []
        written = [self.tensors[k] for place, k in self.program.written if place == "argument"]
        for i, a in enumerate(self.args):
            self.names[f"T{i}"] = type(a)
            if not isinstance(a, Tensor):
                self.names[f"V{i}"] = a
                lines.append(f"if a{i} is not V{i} and not equal(a{i}, V{i}): {BACK}")
                continue
            x = a._array
            self.names[f"D{i}"] = x.dtype
            tests = [
                f"x{i}.shape != {x.shape}",
                f"x{i}.dtype is not D{i}",
                f"x{i}.strides != {x.strides}",
                f"a{i}._node is not None"
                if a._node is None
                else (f"a{i}._node is None or a{i}._node.leaf is not {a._node.leaf} or a{i}._node.hooks is not None"),
                f"a{i}.__dict__",
                f"a{i}._grad is {'not ' * (a._grad is None)}None",
            ]
            tests += [f"x{i} is {'not ' * (other is x)}{name}" for name, other in seen]
            tests += [f"not x{i}.flags.writeable"] * (i in written)
            lines += [f"if type(a{i}) is not T{i}: {BACK}", f"x{i} = a{i}._array", f"if {' or '.join(tests)}: {BACK}"]
            seen.append((f"x{i}", x))
        for k, t in self.program.identical:
            self.names[f"I{k}"] = t
            lines.append(f"if a{self.tensors[k]} is not I{k}: {BACK}")
        return lines

    def tensor(self, source: tuple[str, Any]) -> str:
        """An expression for the tensor of a source."""
        place, what = source
        if place == "argument" or place == "grad" and isinstance(what, int):
            text = f"a{self.tensors[what]}"
        else:
            text = f"t{id(what)}"
            self.names[text] = what
        return text + "._grad" * (place == "grad")

    def state(self) -> list[str]:
        """The tests of the guards, then the lines that fetch the arrays that the program reads."""
        part, given = self.program.forward, self.program.given_in
        if self.program.native is not None:
            return self.native_state()
        lines, arrays = [f"if not holds(): {BACK}"], ", ".join(f"s{i}" for i in range(len(part.sources)))
        if self.program.numbers:
            lines.append(f"if not all(n.agrees() for n in numbers): {BACK}")
        lines += [f"s{i} = {self.tensor(source)}._array" for i, source in enumerate(part.sources)]
        if part.watched:
            other = " or ".join(f"s{i} is not known[{i}]" for i in part.watched)
            lines.append(f"if ({other}) and not part.fits([{arrays}]): {BACK}")
        lines.append(f"views = part._views\nif views is None: {BACK}")
        if given:
            outside = [f"id(s{i}) in part.state" for i in given]
            doubt = ["program.seen is not views", "program.loose", *(f"s{i}.base is not None" for i in given)]
            lines.append(f"if {' or '.join(outside)} or ({' or '.join(doubt)}) and not apart([{arrays}]): {BACK}")
        return [line for text in lines for line in text.split("\n")]

    def native_state(self) -> list[str]:
        """The tests for a native function, which writes to no argument: parameters are in the same memory as before,
        since the function has a table of addresses."""
        part, names, moved = self.program.forward, self.names, self.program.native.moved
        if moved is not None:
            names["compare"], names["moved"] = moved.compare, moved.place
            return [f"if not holds(): {BACK}", "compare()", f"if part._views is None or moved.value: {BACK}"]
        names["array_of"], names["is_not"] = attrgetter("_array"), is_not
        names["parameters"] = [what for place, what in part.sources if place == "state"]
        return [
            f"if not holds(): {BACK}",
            f"if part._views is None or any(map(is_not, map(array_of, parameters), part.parameters)): {BACK}",
        ]

    def call(self) -> str:
        """The statement that runs the program."""
        program = self.program
        if program.native is None:
            arrays = "".join(f"s{i}, " for i in range(len(program.forward.sources)))
            return f"results, grads = part.call(new, {arrays}*views)"
        self.names["native"] = program.native.call
        return f"results = native({', '.join(f'{self.tensor(s)}._array' for s in program.native.sources)})"

    def outcome(self) -> list[str]:
        """The lines that run the program, log its writes, and make tensors of gradients and results."""
        program = self.program
        # frees the memory of old gradients
        lines = [f"{self.tensor(leaf)}._grad = None" for leaf in program.dropped]
        lines += [
            f"try: {self.call()}",
            "except Exception as error:",
            f"    if part.failed(error): {BACK}",
            "    raise",
        ]
        if program.written:
            lines.append("clock.last_write = now = tick()")
        for source in program.written:
            t = self.tensor(source)
            lines += [
                f"w = {t}._writes",
                f"if w is None or {t}._viewing is not None: w = writes_of({t})",
                "w.count += 1",
                "w.stamp = now",
            ]
        k = 0
        for leaf, given in program.leaves:
            lines.append(f"{self.tensor(leaf)}._grad = {f'from_array(grads[{k}])' if given else None}")
            k += given
        kind, what = program.plan
        gradients = {i: f"{self.tensor(program.leaves[k][0])}._grad" for i, k in program.outline.gradients.items()}
        made = [gradients.get(i, f"from_array(results[{i}])") for i in range(program.results)]
        if kind != "tensor":
            tensors = ", ".join(made)
            flat = ", ".join(f"a{i}" for i in self.tensors)
            return [*lines, f"return rebuilt(plan, [{tensors}], [{flat}])"]
        lines.append(f"r = {made[what[0]]}")
        return [*lines, *["r._node = Spent(r._array.shape)"] * what[1], "return r"]
