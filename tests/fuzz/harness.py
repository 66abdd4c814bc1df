"""Differential fuzzing: random programs as text, run by torch and by rushlight, compared, minimised and kept.

A fuzzer is a module with one function `program(rng) -> str`. The text it returns is the body of a function of one
argument, `t`, which is torch or rushlight: one statement a line (or a `def` with an indented body), the last line a
`return` of tensors, numbers, strings, or lists and tuples of these. The names `t`, `F` (nn.functional), `func`, `math`,
`facts`, `flags`, `layout`, `steps`, `shared` and `shares` are there. Where it is not torch that is compared with, the
fuzzer has `sides()`."""

from __future__ import annotations

import ast
import importlib
import itertools
import math
import random
import re
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import process

CORPUS = Path(__file__).parent / "corpus"
PARTS = ("func", "autograd.forward_ad", "autograd.functional", "autograd.graph", "utils.checkpoint", "nn.functional")
# How far two right answers may lie apart, relative to the largest number of the answer, by the bytes of a real number.
TOLERANCE = {2: 5e-2, 4: 2e-3, 8: 1e-6}


def library(name: str) -> ModuleType:
    """torch or rushlight, with the submodules that programs use."""
    for part in PARTS:
        importlib.import_module(f"{name}.{part}")
    return importlib.import_module(name)


def facts(x: Any) -> tuple:
    """What a tensor is besides its values: strides, where it begins in its storage, version, flags."""
    return (
        tuple(x.shape),
        tuple(x.stride()),
        x.storage_offset(),
        x.is_contiguous(),
        x._version,
        x.requires_grad,
        x.is_leaf,
    )


def layout(x: Any) -> tuple:
    """How a tensor lies in memory, and its flags: what `facts` says, but for the version, which counts the steps of an
    op's making."""
    return (
        tuple(x.shape),
        tuple(steps(x)),
        x.numel() and x.storage_offset(),
        x.is_contiguous(),
        x.requires_grad,
        x.is_leaf,
    )


def shared(x: Any, y: Any) -> bool:
    """Whether two tensors stand on the same memory."""
    return bool(x.numel() and y.numel()) and x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr()


def steps(x: Any) -> list[int]:
    """The strides that a program can depend on: not those of dimensions along which there is one element or none."""
    return [step for size, step in zip(x.shape, x.stride()) if size > 1 and x.numel()]


def flags(x: Any) -> tuple:
    """What a tensor is for autograd."""
    return (tuple(x.shape), x.requires_grad and not torn(x), x.is_leaf or torn(x))


def torn(x: Any) -> bool:
    """Whether it is a view of which torch 2.13 says that it requires gradients, and gives it none: made in no_grad, or
    before its base required them, or of a base that was detached."""
    if not type(x).__module__.startswith("torch") or not x.requires_grad or not x._is_view():
        return False
    return x.is_leaf or all(node is None for node, _ in x.grad_fn.next_functions)


def shares(a: Any, b: Any) -> bool:
    """Whether two tensors have one storage."""
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


# -- running a program -----------------------------------------------------------------------------


@dataclass
class Side:
    """One of the two that are compared: a library, and names that programs see in it."""

    name: str
    lib: ModuleType
    names: dict[str, Any] = field(default_factory=dict)


def torch_and_ours() -> tuple[Side, Side]:
    return Side("torch", library("torch")), Side("rushlight", library("rushlight"))


@dataclass
class Outcome:
    """What a program gave: the leaves of its result, or the error that ended it."""

    leaves: list = field(default_factory=list)
    error: str = ""
    raised: str = ""  # the built-in class of the error


NAMESPACES = ("t", "F", "func", "math", "np")


def names_of(lib: ModuleType) -> dict[str, Any]:
    """The names that a program sees, besides its argument t."""
    return {
        "F": lib.nn.functional,
        "func": lib.func,
        "math": math,
        "np": np,
        "facts": facts,
        "flags": flags,
        "layout": layout,
        "steps": steps,
        "shared": shared,
        "shares": shares,
    }


def restore(lib: ModuleType) -> None:
    """Undo what an earlier program may have left: its random numbers, and modes that it switched as statements."""
    lib.manual_seed(0)
    lib.set_grad_enabled(True)
    lib.set_default_dtype(lib.float32)
    lib.autograd.set_detect_anomaly(False)


def run(text: str, side: Side | ModuleType) -> Outcome:
    """The program run by one side, from the same state."""
    side = side if isinstance(side, Side) else Side(side.__name__, side)
    scope = {**names_of(side.lib), **side.names}
    body = "\n".join(f"    {line}" for line in text.strip("\n").split("\n"))
    restore(side.lib)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            exec(compile(f"def program(t):\n{body}", "<program>", "exec"), scope)
            return Outcome(list(leaves(scope["program"](side.lib))))
        except Exception as error:
            line = (str(error).splitlines() or [""])[0]
            raised = next(c for c in type(error).__mro__ if c.__module__ == "builtins")
            return Outcome([], f"{type(error).__name__}: {line[:160]}", raised.__name__)


def leaves(made: Any) -> Iterator[Any]:
    """The tensors as arrays, numbers and strings of a result, in order."""
    if isinstance(made, dict):
        made = [part for key in sorted(made) for part in (key, made[key])]
    if isinstance(made, (tuple, list)):
        for part in made:
            yield from leaves(part)
    elif hasattr(made, "detach"):
        x = made.detach().resolve_conj().resolve_neg()
        yield str(made.dtype).split(".")[-1]
        yield (x.float() if x.dtype.itemsize == 2 and x.is_floating_point() else x).numpy().copy()
    elif made is None or isinstance(made, (bool, int, float, complex, str)):
        yield made
    else:
        raise TypeError(f"a program returned {type(made).__name__}")


def same(a: Any, b: Any, itemsize: int) -> bool:
    """Whether two leaves agree: values up to rounding, all else exactly."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        if a.shape != b.shape:
            return False
        if a.dtype.kind not in "fc":
            return bool((a == b).all())
        finite = np.isfinite(a)
        if not (finite == np.isfinite(b)).all():
            return False
        far = np.abs(np.where(finite, a, 0) - np.where(finite, b, 0))
        limit = TOLERANCE[itemsize] * max(1.0, float(np.abs(a[finite]).max(initial=0.0)))
        return bool((far <= limit).all())
    if isinstance(a, float) and isinstance(b, float):
        return a == b or math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-6) or (a != a and b != b)
    return type(a) is type(b) and bool(a == b)


def compared(torchs: Outcome, ours: Outcome) -> str:
    """'same', 'wrong' (both answer, and differ), 'refused' (only torch answers), 'accepted' (only rushlight does)."""
    if torchs.error or ours.error:
        return "same" if torchs.error and ours.error else "refused" if ours.error else "accepted"
    if len(torchs.leaves) != len(ours.leaves):
        return "wrong"
    itemsize = 8
    for a, b in zip(torchs.leaves, ours.leaves):
        if isinstance(a, str) and a in SIZES:  # the dtype stands before the numbers
            itemsize = SIZES[a]
        if not same(a, b, itemsize):
            return "wrong"
    return "same"


SIZES = {"float16": 2, "bfloat16": 2, "float32": 4, "complex64": 4, "float64": 8, "complex128": 8}


# -- making a divergence small ---------------------------------------------------------------------


def minimised(text: str, keeps: Callable[[str], bool], tries: int = 600) -> str:
    """A shorter program for which `keeps` still holds: edit after edit, until no edit is left that keeps it."""
    text, changed = ast.unparse(ast.parse(text)), True
    if not keeps(text):
        return text
    while changed:
        changed, number = False, 0
        while (shorter := edited(text, number)) is not None:
            if (tries := tries - 1) < 0:
                return text
            if len(shorter) < len(text) and keeps(shorter):
                text, changed = shorter, True  # the edit with this number is now another one
            else:
                number += 1
    return text


def edited(text: str, number: int) -> str | None:
    """The program after its edit of this number; None if it has fewer edits."""
    tree = ast.parse(text)
    edit = next(itertools.islice(edits(tree), number, None), None)
    if edit is None:
        return None
    edit()
    return ast.unparse(tree)


def edits(tree: ast.AST) -> Iterator[Callable[[], None]]:
    """Ways to make a program shorter: without a part of a list, with a block as its body, with a call as one operand.
    Statements that differ between the libraries stay whole: an edit in one branch would make another program of it."""
    for node in walked(tree):
        for name, value in ast.iter_fields(node):
            if isinstance(value, list) and name not in ("decorator_list", "ops"):
                for i in reversed(range(len(value))):
                    opens = isinstance(value[i], (ast.With, ast.For, ast.If))
                    block = value[i].body if opens and not is_fork(value[i]) else []
                    for parts in ([], *([part] for part in inside(value[i])), block):
                        if parts or len(value) > 1 or name in ("args", "keywords"):
                            yield partial(value.__setitem__, slice(i, i + 1), parts)
            elif isinstance(value, ast.expr):
                for part in inside(value):
                    yield partial(setattr, node, name, part)


def walked(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a program without forks and what is inside them."""
    todo = [tree]
    while todo:
        node = todo.pop(0)
        if not is_fork(node):
            yield node
            todo.extend(ast.iter_child_nodes(node))


def is_fork(node: ast.AST) -> bool:
    """Whether a statement has a branch for each library: `if t.__name__ == 'torch'`."""
    return isinstance(node, ast.If) and "t.__name__" in ast.unparse(node.test)


def inside(node: Any) -> list[ast.expr]:
    """The expressions that can stand for an expression: the operands of a call, an operator or an index."""
    if isinstance(node, ast.Call):
        method = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        return [part for part in method + node.args if not (isinstance(part, ast.Name) and part.id in NAMESPACES)]
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    return [node.value] if isinstance(node, (ast.Subscript, ast.Starred)) else []


def ops_in(text: str) -> str:
    """The names that are called in a program, as the name of its class."""
    names = re.findall(r"\.?([A-Za-z_]\w*)\(", text)
    return " ".join(dict.fromkeys(n for n in names if n not in ("tensor", "return", "f", "facts")))


def corpus(kind: str) -> list[tuple[str, str]]:
    """The names and texts of the kept programs of a kind: each stands below a line `## name`."""
    file = CORPUS / f"{kind}.txt"
    found = re.split(r"^## (.*)\n", file.read_text(), flags=re.M)[1:] if file.exists() else []
    return [(name, text.strip("\n")) for name, text in zip(found[::2], found[1::2])]


# -- the loop --------------------------------------------------------------------------------------


GROUP_PROGRAMS = 250  # programs that run in one process


@dataclass
class Report:
    """How many programs ran, how many answered on both sides, and the divergences by kind and class."""

    programs: int = 0
    answered: int = 0
    kinds: Counter = field(default_factory=Counter)
    classes: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def add(self, kind: str, answered: bool, small: str) -> None:
        """Count one program. `small` is its minimised text where the divergence is to be shown."""
        self.answered += answered
        self.kinds[kind] += 1
        if small:
            self.classes.setdefault((kind, ops_in(small)), []).append(small)

    def line(self) -> str:
        kinds = ("wrong", "refused", "accepted", "rounding", *(kind for kind in self.kinds if "crashed" in kind))
        counts = ", ".join(f"{self.kinds[kind]} {kind}" for kind in kinds)
        return f"{self.programs} programs, {self.answered} answered by both, {counts}, {len(self.classes)} classes"


def allowed(text: str) -> str | None:
    """Why a divergence of this program is on purpose (docs/differences.md), or None: see differences.py."""
    import differences

    return differences.reason(text)


def difference(text: str, sides: tuple[Side, Side]) -> tuple[str, bool]:
    """How the two sides differ on this program, and whether both answer. Besides the kinds of `compared`: 'rounding'.
    'same' where they differ on purpose."""
    first, second = run(text, sides[0]), run(text, sides[1])
    kind = compared(first, second)
    if kind == "wrong" and is_rounding(text, sides, first, second):
        kind = "rounding"
    return "same" if kind != "same" and allowed(text) else kind, not (first.error or second.error)


def is_rounding(text: str, sides: tuple[Side, Side], first: Outcome, second: Outcome) -> bool:
    """Whether the same program agrees in float64, and the second side lies not much further from that than the
    first."""
    wide = re.sub(r"\b(float32|float16|bfloat16)\b", "float64", text).replace("complex64", "complex128")
    wide = re.sub(r"\bautocast\([^()]*\)", "autocast('cpu', enabled=False)", wide)
    wide = "t.set_default_dtype(t.float64)\n" + re.sub(r"\.(float|half|bfloat16)\(\)", ".double()", wide)
    wide = wide.replace(".to(t.float64)", ".to(t.float64, copy=True)")  # of half precision: never the tensor itself
    truth, again = run(wide, sides[0]), run(wide, sides[1])
    if (
        truth.error
        or compared(truth, again) != "same"
        or not len(truth.leaves) == len(first.leaves) == len(second.leaves)
    ):
        return False
    least = TOLERANCE[2] if re.search(r"float16|autocast|half", text) else 0.0
    return all(
        farthest(b, c) <= max(10 * farthest(a, c), least * float(np.abs(c).max(initial=1.0)))
        for a, b, c in zip(first.leaves, second.leaves, truth.leaves)
        if isinstance(c, np.ndarray) and c.dtype.kind in "fc" and not same(a, b, 4)
    )


def farthest(a: Any, truth: np.ndarray) -> float:
    """The largest distance of two arrays; infinite where they cannot be compared."""
    if not isinstance(a, np.ndarray) or a.shape != truth.shape:
        return math.inf
    far = np.abs(a - truth)
    return float(far.max(initial=0.0)) if np.isfinite(far).all() else math.inf


def fuzz(
    make: Callable[[random.Random], str],
    seconds: float,
    seed: int,
    programs: int | None = None,
    kinds: tuple[str, ...] = ("wrong",),
    progress: Callable[[Report], None] | None = None,
    sides: tuple[Side, Side] | None = None,
) -> Report:
    """Run programs for so many seconds, or so many programs; minimise the divergences of these kinds. Each group of
    programs runs in a process of its own, since torch itself writes out of bounds in some programs."""
    sides = sides or torch_and_ours()
    report, end, shown = Report(), time.monotonic() + seconds, time.monotonic()
    while (report.programs < programs) if programs else (time.monotonic() < end):
        numbers = range(report.programs, min(report.programs + GROUP_PROGRAMS, programs or sys.maxsize))
        texts: list[str] = []
        work = partial(run_group, make, numbers, float("inf") if programs else end, seed, kinds, sides)
        for what, *parts in process.records(work):
            if what == "text":
                texts += parts
                report.programs += 1
            elif what == "done":
                report.add(*parts)
            else:
                report.add(*crash(parts[0], texts, sides))
            if progress is not None and time.monotonic() - shown > 10:
                shown = time.monotonic()
                progress(report)
    return report


def run_group(make, numbers, end, seed, kinds, sides, tell) -> None:
    """The programs of these numbers, in the child: each is sent before it runs, and its divergence after it."""
    for number in numbers:
        if time.monotonic() > end:
            return
        text = make(random.Random(f"{seed}:{number}"))
        tell("text", text)
        kind, answered = difference(text, sides)
        tell("done", kind, answered, smallest(text, kind, sides) if kind in kinds else "")


def smallest(text: str, kind: str, sides: tuple[Side, Side]) -> str:
    """The program made small, with a divergence of the same kind."""
    return minimised(text, lambda shorter: difference(shorter, sides)[0] == kind)


def crash(signal: str, texts: list[str], sides: tuple[Side, Side]) -> tuple[str, bool, str]:
    """Which side ended the process of these programs: the second side, if torch is not the first one, or if the same
    programs end a process again without torch."""
    ours = sides[1]
    again = process.records(lambda tell: [run(text, ours) for text in texts] and None)
    is_ours = sides[0].name != "torch" or any(True for _ in again)
    return f"{ours.name if is_ours else 'torch'} crashed", False, f"# {signal} in one of {len(texts)} programs"
