"""Programs written one statement at a time, each run before it is kept: what a statement needs is read off live
tensors.

A `Writer` holds the lines so far and the names they made in one library. `attempt` runs a statement and keeps it if it
ran, so that nearly every program gives an answer in that library."""

from __future__ import annotations

import math
import random
import re
import warnings
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from harness import names_of, restore, torn

SHAPES = [(3,), (2, 3), (2, 3), (3, 3), (2, 2, 3), (2, 2, 2), (4,), (3, 1), (1, 3), (), (1,), (0,), (2, 0), (2, 1, 3)]
DTYPES = ["float64"] * 6 + ["float32"] * 4 + ["complex128", "complex64", "bfloat16", "float16"]
NUMBERS = ["2", "0.5", "-1.5", "3", "0.25", "-1", "1.5"]


class Writer:
    """The lines of a program, and the tensors they have made so far in `lib`."""

    def __init__(self, rng: random.Random, lib: ModuleType, names: dict[str, Any] | None = None):
        restore(lib)
        self.rng, self.lib = rng, lib
        self.scope = {**names_of(lib), "t": lib, **(names or {})}
        self.lines: list[str] = []
        self.made: list[str] = []  # names of the tensors, oldest first
        self.leaves: list[str] = []  # of those, the ones written out
        self.count = 0
        self.inner = False  # whether the lines stand in a function

    def attempt(self, text: str, name: str | None = None) -> bool:
        """Run a statement (with `name = ` before it, if a name is given); keep it if it ran and made a small tensor."""
        line = text if name is None else f"{name} = {text}"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(line, self.scope)
                if name is not None and not self.is_small(self.scope[name]):
                    return False
        except Exception:
            return False
        self.lines += line.split("\n")
        if name is not None:
            self.made.append(name)
        return True

    def is_small(self, x: Any) -> bool:
        return isinstance(x, self.lib.Tensor) and x.numel() < 200

    def fresh(self) -> str:
        """A name that no statement has made: a to z, then a1."""
        self.count += 1
        n = self.count - 1
        return "abcdeghijklmnopqrsuvwxyz"[n % 24] + (str(n // 24) if n >= 24 else "")

    def tensors(self, where: Callable[[Any], bool] = lambda x: True) -> list[str]:
        made = [name for name in self.made if isinstance(self.scope[name], self.lib.Tensor)]
        return [name for name in made if holds(lambda x: where(x) and not torn(x), self.scope[name])]

    def pick(self, where: Callable[[Any], bool] = lambda x: True) -> str | None:
        """The name of a tensor, newer ones more often; None if there is none."""
        names = self.tensors(where)
        return self.rng.choices(names, weights=range(1, len(names) + 1))[0] if names else None

    # -- parts of statements -----------------------------------------------------------------------

    def values(self, shape: tuple[int, ...], dtype: str) -> str:
        """A tensor written out: `t.tensor([[0.3, -1.2]], dtype=t.float64)`."""

        def nested(sizes: tuple[int, ...]) -> Any:
            if not sizes:
                return self.number(dtype)
            return [nested(sizes[1:]) for _ in range(sizes[0])]

        if 0 in shape:
            return f"t.zeros({shape}, dtype=t.{dtype})"
        return f"t.tensor({nested(shape)}, dtype=t.{dtype})".replace("'", "")

    def number(self, dtype: str) -> Any:
        if dtype == "bool":
            return self.rng.random() < 0.5
        if dtype.startswith(("int", "uint")):
            return self.rng.randint(0, 3)
        real = round(self.rng.uniform(-2, 2), 1)
        return f"{real}{round(self.rng.uniform(-2, 2), 1):+}j" if dtype.startswith("complex") else real

    def other(self, x: str) -> str:
        """An operand beside x: most often a tensor of its dtype."""
        one, dtype = self.scope[x], self.scope[x].dtype
        if self.rng.random() < 0.25:
            return self.rng.choice(NUMBERS)
        alike = list(self.tensors(lambda y: y.dtype == dtype and y.shape == one.shape))
        if alike and self.rng.random() < 0.7:
            return self.rng.choice(alike)
        near = self.tensors(lambda y: broadcasts(y.shape, one.shape))
        return self.rng.choice(near or [x])

    def filled(self, template: str, x: str) -> str:
        """The template with its places filled for the tensor called x: see PLACES."""
        return re.sub(r"\{(\w+)\}", lambda found: PLACES[found[1]](self, x), template)

    def key(self, x: str) -> str:
        """What stands between the brackets of x[...]."""
        shape, parts, rng = self.scope[x].shape, [], self.rng
        if rng.random() < 0.15:
            return rng.choice(
                [f"{x} > 0", f"{x}.detach() < 0.5", "...", "None", "True", "False", "t.tensor(True)", "()"]
            )
        for size in shape[: rng.randint(1, max(len(shape), 1))]:
            parts.append(self.one_key(size))
        if rng.random() < 0.15:
            parts.insert(rng.randint(0, len(parts)), rng.choice(["...", "None"]))
        return ", ".join(parts) or "..."

    def one_key(self, size: int) -> str:
        rng, n = self.rng, max(size, 1)
        i, j = rng.randrange(n), rng.randrange(n)
        listed = [rng.randrange(-n, n) for _ in range(rng.randint(1, 3))]
        return rng.choice(
            [
                str(i),
                str(-1),
                f"{min(i, j)}:{max(i, j) + 1}",
                ":",
                f"{i}:",
                f":{j + 1}",
                "::2",
                "1:",
                str(listed),
                f"t.tensor({listed})",
                f"t.tensor({i})",
                f"t.tensor({[rng.random() < 0.6 for _ in range(size)]})",
                f"t.tensor([{listed}])",
            ]
        )


def holds(where: Callable[[Any], bool], x: Any) -> bool:
    """Whether this holds of a tensor; torch refuses even to look at a view of `split` whose base was written to."""
    try:
        return where(x)
    except RuntimeError:
        return False


def broadcasts(small: Iterable[int], large: Iterable[int]) -> bool:
    """Whether the first shape can be expanded to the second."""
    small, large = list(small), list(large)
    return len(small) <= len(large) and all(a in (1, b) for a, b in zip(small[::-1], large[::-1]))


def dim(writer: Writer, x: str) -> str:
    n = max(writer.scope[x].dim(), 1)
    return str(writer.rng.randrange(-n, n))


def index(writer: Writer, x: str) -> str:
    n = max(max(writer.scope[x].shape, default=1), 1)
    return str(writer.rng.randrange(n) if writer.rng.random() < 0.5 else 0)


def shape(writer: Writer, x: str) -> str:
    """Sizes with as many elements as x has."""
    left, sizes = writer.scope[x].numel(), []
    for factor in (2, 3, 2, 5):
        if left and left % factor == 0 and writer.rng.random() < 0.7:
            sizes.append(factor)
            left //= factor
    sizes.append(left if writer.rng.random() < 0.5 or not left else -1)
    writer.rng.shuffle(sizes)
    return ", ".join(map(str, sizes))


def permutation(writer: Writer, x: str) -> str:
    order = list(range(writer.scope[x].dim()))
    writer.rng.shuffle(order)
    return str(tuple(order))


def indices(writer: Writer, x: str, count: int | None = None) -> str:
    n = max(min(writer.scope[x].shape, default=1), 1)
    return f"t.tensor({[writer.rng.randrange(n) for _ in range(count or writer.rng.randint(1, 3))]})"


def alike(where: Callable[[Any, Any], bool]) -> Callable[[Writer, str], str]:
    """Another tensor for which this holds beside x, or x."""

    def find(writer: Writer, x: str) -> str:
        one = writer.scope[x]
        return writer.rng.choice(writer.tensors(lambda y: where(one, y)) or [x])

    return find


PLACES: dict[str, Callable[[Writer, str], str]] = {
    "x": lambda writer, x: x,
    "y": Writer.other,  # an operand: a tensor or a number
    "z": alike(lambda x, y: y.dtype == x.dtype and broadcasts(y.shape, x.shape)),  # a tensor that broadcasts to x
    "same": alike(lambda x, y: y.dtype == x.dtype and y.shape == x.shape),
    "mat": alike(lambda x, y: y.dtype == x.dtype and y.dim() > 0 and x.dim() > 0 and y.shape[0] == x.shape[-1]),
    "any": lambda writer, x: writer.pick() or x,
    "leaf": lambda writer, x: writer.pick(lambda y: y.requires_grad and y.is_leaf) or x,
    "s": lambda writer, x: writer.rng.choice(NUMBERS),
    "d": dim,
    "e": dim,
    "i": index,
    "n": lambda writer, x: writer.rng.choice("1123"),
    "shape": shape,
    "sizes": lambda writer, x: str(tuple(writer.scope[x].shape)),
    "order": permutation,
    "key": Writer.key,
    "idx": indices,
    "idx2": lambda writer, x: indices(writer, x, 2),
    "last": lambda writer, x: str(writer.scope[x].shape[-1] if writer.scope[x].dim() else 1),
    "len": lambda writer, x: str(writer.scope[x].shape[0] if writer.scope[x].dim() else 1),
    "mask": lambda writer, x: writer.rng.choice([f"{x} > 0", f"{x}.detach() < 0.5", f"{x}.detach()[..., :1] > 0"]),
    "dtype": lambda writer, x: str(writer.scope[x].dtype).split(".")[-1],
    "other_dtype": lambda writer, x: writer.rng.choice(DTYPES),
    "flag": lambda writer, x: writer.rng.choice(["True", "False"]),
    "pi": lambda writer, x: f"{math.pi:.3f}",
}
