"""Random functions of 2 to 8 ops under transforms, nested up to depth 3.

A program defines custom Functions and modules, a function (bodies.py), wraps it in transforms, makes inputs and calls
the result: plainly, on the tape, in forward mode or by autograd.functional. torch runs each part as soon as it is made;
what torch refuses is left out, but for one in ten. So are programs whose answer jumps where the inputs move a little:
at a kink, a tie or a singular matrix several answers are right."""

from __future__ import annotations

import random
import re
import warnings
from typing import Any

import numpy as np
import torch
from bodies import MODULES, Body
from functions import function_class
from harness import leaves, library

library("torch")
DTYPES = ["float64"] * 5 + ["float32"]
SHAPES = [(), (2,), (2,), (3,), (2, 2), (2, 3), (3, 2), (2, 2, 2)]


def program(rng: random.Random) -> str:
    """The text of a program."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return written(rng)


def written(rng: random.Random) -> str:
    while True:
        made = Program(rng)
        made.definitions()
        if made.function():
            for _ in range(rng.choice([0, 1, 1, 1, 2, 2, 3])):
                made.wrap()
            if made.call():
                return "\n".join(used(made.lines))


def used(lines: list[str]) -> list[str]:
    """The lines without classes and modules that nothing uses."""
    text = "\n".join(lines)
    for name in ("S0", "S1", "m0", "m1"):
        if len(re.findall(rf"\b{name}[.(,]", text)) < 1 + text.count(f"return {name}.apply(x"):
            start = next((i for i, line in enumerate(lines) if line.startswith((f"class {name}(", f"{name} ="))), None)
            if start is not None:
                end = next(i for i in range(start + 1, len(lines)) if not lines[i].startswith(" "))
                lines = lines[:start] + lines[end:]
    return lines


class Argument:
    """What a function takes: a name, the shape and the kind: float, int (indices) or bool (masks)."""

    def __init__(self, name: str, shape: tuple, kind: str, salt: int):
        self.name, self.shape, self.kind, self.salt = name, tuple(shape), kind, salt

    def text(self, dtype: str, moved: float = 0.0) -> str:
        """An expression for a tensor of the shape; `moved`: about how far its numbers lie from those of the program."""
        n = torch.Size(self.shape).numel()
        shape = ", ".join(map(str, self.shape)) or "()"
        if self.kind == "int":
            return f"(t.arange({n}) * {2 * self.salt + 3} // 2 % 2).reshape({shape})"
        if self.kind == "bool":
            return f"(t.arange({n}) * {self.salt + 1} % 3 > 0).reshape({shape})"
        start = f"0.{self.salt}" if not moved else repr(0.1 * self.salt + (1 + 0.7 * self.salt) * moved)
        return f"(t.arange({n}, dtype=t.{dtype}) * {1.3 + moved} + {start}).sin().reshape({shape})"

    def value(self, dtype: str) -> torch.Tensor:
        return eval(self.text(dtype), {"t": torch})

    def batched(self, size: int, dim: int) -> Argument:
        return Argument(self.name, (*self.shape[:dim], size, *self.shape[dim:]), self.kind, self.salt)


def near(a: Any, b: Any, far: float) -> bool:
    """Whether two leaves of an answer are finite, and lie at most so far apart."""
    if not isinstance(a, np.ndarray) or a.dtype.kind not in "fc":
        return True
    if a.shape != b.shape or not np.isfinite(a).all():
        return False
    return bool((np.abs(a - b) <= far * max(1.0, float(np.abs(a).max(initial=0.0)))).all())


class Program:
    """A program in the making."""

    def __init__(self, rng: random.Random):
        self.rng, self.dtype = rng, rng.choice(DTYPES)
        self.scope: dict[str, Any] = {"t": torch, "F": torch.nn.functional, "func": torch.func}
        self.lines: list[str] = []
        self.count = 0
        self.size = rng.choice([2, 2, 2, 3, 3, 1])

    # -- parts -------------------------------------------------------------------------------------

    def add(self, *lines: str) -> None:
        exec("\n".join(lines), self.scope)
        self.lines += lines

    def definitions(self) -> None:
        """Custom Functions and modules, sometimes."""
        for i in range(self.rng.choice([0, 0, 1, 1, 2])):
            if self.rng.random() < 0.5:
                self.add(*function_class(self.rng, f"S{i}"))
            else:
                text = self.rng.choice(MODULES).replace("{n}", str(self.rng.choice([2, 2, 3])))
                self.add(f"m{i} = t.nn.{text}" + (".double()" if self.dtype == "float64" else ""))

    def function(self) -> bool:
        """The innermost function, of 2 to 8 ops; False if few of the lines could be run."""
        rng = self.rng
        kinds = rng.choice(
            [
                ["float"],
                ["float"],
                ["float", "float"],
                ["float", "float"],
                ["float", "float", "float"],
                ["float", "int"],
                ["float", "float", "int"],
                ["float", "bool"],
            ]
        )
        first = rng.choice(SHAPES)
        shapes = [first if rng.random() < 0.5 else rng.choice(SHAPES) for _ in kinds]
        salts = rng.sample(range(1, 10), len(kinds))  # equal arguments would be ties of all their numbers
        self.arguments = [
            Argument(name, (2,) if kind == "int" and rng.random() < 0.6 else shape, kind, salt)
            for name, shape, kind, salt in zip("xyz", shapes, kinds, salts)
        ]
        body = Body(rng, self.scope, {a.name: a.value(self.dtype) for a in self.arguments})
        count = rng.randint(2, 8)
        for _ in range(4 * count):
            if len(body.lines) >= count:
                break
            body.line()
        return len(body.lines) > 1 and self.defined("f", [*body.lines, f"    return {body.result()}"])

    def defined(self, name: str, lines: list[str], refused: bool = False) -> bool:
        """Whether torch runs the function on its arguments; then it is the program's function."""
        names = ", ".join(a.name for a in self.arguments)
        text = [f"def {name}({names}):", *lines]
        return self.taken(name, text, self.arguments, refused)

    def taken(self, name: str, text: list[str], arguments: list[Argument], refused: bool = False) -> bool:
        """The same for lines that make `name`, of these arguments."""
        try:
            exec("\n".join(text), self.scope)
            out = self.scope[name](*[a.value(self.dtype) for a in arguments])
            outs = out if isinstance(out, tuple) else (out,)
            outs = [o for part in outs for o in (part if isinstance(part, tuple) else (part,))]
            if sum(o.numel() for o in outs) > 300 or not any(o.is_floating_point() for o in outs):
                return False
            if not all(bool(o.isfinite().all()) and float(o.detach().abs().max()) < 1e5 for o in outs):
                return False
            self.out = out
        except Exception:
            if not refused:
                return False
        self.lines += text
        self.name, self.arguments = name, arguments
        return True

    # -- pieces of text ----------------------------------------------------------------------------

    def names(self) -> str:
        return ", ".join(a.name for a in self.arguments)

    def floats(self) -> list[Argument]:
        return [a for a in self.arguments if a.kind == "float"]

    def total(self, call: str) -> list[str]:
        """Lines that return one number from what a call returns."""
        lines = [f"    r = {call}"]
        if not isinstance(self.out, tuple):
            weight = self.rng.choice(["r.sum()", "(r * r).sum()", "r.cos().sum()", "r.mean()"])
            return [*lines, f"    return {weight if self.out.dim() or self.rng.random() < 0.3 else 'r'}"]
        parts = [
            f"(r[{i}] * r[{i}]).sum()"
            for i, o in enumerate(self.out)
            if isinstance(o, torch.Tensor) and o.is_floating_point()
        ]
        parts += [f"r[{i}][{j}].sum()" for i, o in enumerate(self.out) if isinstance(o, tuple) for j in range(len(o))]
        return [*lines, f"    return {' + '.join(parts)}"]

    def tangent(self, name: str) -> str:
        return self.rng.choice([f"{name}.cos()", f"t.ones_like({name})", f"{name} * 0 + 1", f"{name} * {name}"])

    def part(self) -> tuple[str, str, str]:
        """(names of some arguments, as a lambda's, the call of the function): the others are closed over."""
        floats = self.floats()
        some = self.rng.sample(floats, self.rng.randint(1, len(floats))) if self.rng.random() < 0.3 else floats[:1]
        names = ", ".join(a.name for a in some)
        return names, f"lambda {names}: {self.name}({self.names()})", f"{self.name}({self.names()})"

    # -- transforms --------------------------------------------------------------------------------

    WRAPPERS = {
        "vmap": 12,
        "grad": 7,
        "vjp": 4,
        "jvp": 6,
        "jacobian": 4,
        "hessian": 2,
        "linearize": 2,
        "checkpoint": 3,
        "hooks": 1,
        "modes": 3,
        "body": 4,
        "autocast": 1,
        "dual": 2,
        "tape": 2,
        "functional": 1,
    }

    def wrap(self) -> None:
        """Wrap the function in a transform that torch accepts."""
        refused = self.rng.random() < 0.06
        for _ in range(4):
            which = self.rng.choices(list(self.WRAPPERS), list(self.WRAPPERS.values()))[0]
            self.count += 1
            if getattr(self, f"by_{which}")(f"g{self.count}", refused):
                return

    def by_vmap(self, name: str, refused: bool) -> bool:
        rng, size = self.rng, self.size
        dims: list[int | None] = [
            None if rng.random() < 0.3 else rng.randint(0, len(a.shape)) if rng.random() < 0.4 else 0
            for a in self.arguments
        ]
        if all(d is None for d in dims):
            dims[0] = 0
        settings = []
        if any(d != 0 for d in dims) or rng.random() < 0.1:
            shown = [
                d - len(a.shape) - 1 if d is not None and rng.random() < 0.1 else d
                for d, a in zip(dims, self.arguments)
            ]
            settings.append(f"in_dims={tuple(shown)}")
        if rng.random() < 0.2 and all(d is not None for d in dims):  # torch misplaces the batch of what it does not map
            settings.append(f"out_dims={rng.choice([0, 1, -1])}")
        if rng.random() < 0.12:
            settings.append(f"chunk_size={rng.choice([1, 2, 4])}")
        if rng.random() < 0.3:
            settings.append(f"randomness={rng.choice(['same', 'different'])!r}")
        made = [a if d is None else a.batched(size, d) for a, d in zip(self.arguments, dims)]
        f = self.name
        if len(self.arguments) > 1 and dims[-1] is None and rng.random() < 0.2:  # by keyword: not mapped
            last = self.arguments[-1].name
            settings = [f"in_dims={tuple(dims[:-1])}", *[s for s in settings if not s.startswith("in_dims")]]
            names = ", ".join(a.name for a in self.arguments[:-1])
            mapped = ", ".join([f"func.vmap({f}", *settings])
            return self.defined_of(name, made, f"    return {mapped})({names}, {last}={last})", refused)
        return self.taken(name, [f"{name} = {', '.join([f'func.vmap({f}', *settings])})"], made, refused)

    def defined_of(self, name: str, arguments: list[Argument], line: str, refused: bool) -> bool:
        return self.taken(name, [f"def {name}({', '.join(a.name for a in arguments)}):", line], arguments, refused)

    def scalar(self, name: str) -> str | None:
        """The name of a function that gives one number."""
        if not isinstance(self.out, tuple) and self.out.dim() == 0 and self.rng.random() < 0.7:
            return self.name
        lines = self.total(f"{self.name}({self.names()})")
        return f"{name}s" if self.defined(f"{name}s", lines) else None

    def by_grad(self, name: str, refused: bool) -> bool:
        rng, f = self.rng, self.scalar(name)
        if f is None:
            return False
        floats = [i for i, a in enumerate(self.arguments) if a.kind == "float"]
        chosen: Any = rng.choice([floats[0], floats[0], rng.choice(floats), tuple(floats)])
        settings = f", argnums={chosen}" if chosen != 0 else ""
        if rng.random() < 0.15:
            return self.defined(
                name,
                [
                    f"    def s(*args): return ({f}(*args), args[0] * 2)",
                    f"    return func.grad(s{settings}, has_aux=True)({self.names()})",
                ],
                refused,
            )
        which = rng.choice(["grad", "grad", "grad", "grad_and_value"])
        return self.taken(name, [f"{name} = func.{which}({f}{settings})"], self.arguments, refused)

    def by_vjp(self, name: str, refused: bool) -> bool:
        names, f, _ = self.part()
        pulled = "tuple(t.ones_like(o) for o in out)" if isinstance(self.out, tuple) else self.tangent("out")
        what = self.rng.choice(["pull(v)", "pull(v)[0]", "out, pull(v)", "out, pull(v)[0]"])
        lines = [f"    out, pull = func.vjp({f}, {names})", f"    v = {pulled}", f"    return {what}"]
        return self.defined(name, lines, refused)

    def by_jvp(self, name: str, refused: bool) -> bool:
        names, f, _ = self.part()
        tangents = ", ".join(self.tangent(n) for n in names.split(", "))
        what = self.rng.choice(["out, tan", "tan", "tan"])
        lines = [f"    out, tan = func.jvp({f}, ({names},), ({tangents},))", f"    return {what}"]
        return self.defined(name, lines, refused)

    def by_jacobian(self, name: str, refused: bool) -> bool:
        names, f, _ = self.part()
        which = self.rng.choice(["jacrev", "jacfwd", "jacfwd"])
        settings = f", argnums={tuple(range(names.count(',') + 1))}" if "," in names else ""
        settings += self.rng.choice(["", "", "", ", chunk_size=1", ", chunk_size=2"]) if which == "jacrev" else ""
        return self.defined(name, [f"    return func.{which}({f}{settings})({names})"], refused)

    def by_hessian(self, name: str, refused: bool) -> bool:
        s = self.scalar(name)
        if s is None:
            return False
        a = self.rng.choice(self.floats()).name
        return self.defined(name, [f"    return func.hessian(lambda {a}: {s}({self.names()}))({a})"], refused)

    def by_linearize(self, name: str, refused: bool) -> bool:
        """torch traces the function, which is slow and crashes for some: jvp is the reference."""
        if re.search(r"no_grad|set_grad", "".join(self.lines)):  # the derivative of jvp's tangent stops there
            return False
        repeats = re.search(r"put|scatter|index_copy|tensor\(\[0, 0\]\)", "".join(self.lines))
        if repeats or len(self.floats()) < len(self.arguments):
            return False  # one place twice: backward adds what both would get
        names, f, _ = self.part()
        tangents = ", ".join(self.tangent(n) for n in names.split(", "))
        what = self.rng.choice(["made", "made[1]"])
        return self.defined(
            name,
            [
                f"    v = ({tangents},)",
                f"    if t.__name__ == 'torch': made = func.jvp({f}, ({names},), v)",
                f"    else: made = (lambda out, push: (out, push(*v)))(*func.linearize({f}, {names}))",
                f"    return {what}",
            ],
            refused,
        )

    def by_checkpoint(self, name: str, refused: bool) -> bool:
        kind = self.rng.choice([False, False, True]) and "make_dual" not in "".join(self.lines)
        line = f"    return t.utils.checkpoint.checkpoint({self.name}, {self.names()}, use_reentrant={kind})"
        return self.defined(name, [line], refused)

    def by_hooks(self, name: str, refused: bool) -> bool:
        hooks = self.rng.choice(["lambda q: q, lambda q: q", "lambda q: q.clone(), lambda q: q"])
        return self.defined(
            name,
            [f"    with t.autograd.graph.saved_tensors_hooks({hooks}):", f"        return {self.name}({self.names()})"],
            refused,
        )

    def by_modes(self, name: str, refused: bool) -> bool:
        mode = self.rng.choice(["no_grad()", "inference_mode()", "enable_grad()", "set_grad_enabled(False)"])
        return self.defined(name, [f"    with t.{mode}:", f"        return {self.name}({self.names()})"], refused)

    def by_autocast(self, name: str, refused: bool) -> bool:
        return self.defined(
            name,
            ["    with t.autocast('cpu', dtype=t.bfloat16):", f"        return {self.name}({self.names()})"],
            refused,
        )

    def by_dual(self, name: str, refused: bool) -> bool:
        a = self.rng.choice(self.floats()).name
        if isinstance(self.out, tuple):
            return False
        what = self.rng.choice(["p, d", "d"])
        return self.defined(
            name,
            [
                "    with t.autograd.forward_ad.dual_level():",
                f"        {a} = t.autograd.forward_ad.make_dual({a}, {self.tangent(a)})",
                f"        p, d = t.autograd.forward_ad.unpack_dual({self.name}({self.names()}))",
                "        d = t.zeros_like(p) if d is None else d.clone()",
                f"    return {what}",
            ],
            refused,
        )

    def by_tape(self, name: str, refused: bool) -> bool:
        """Gradients by the tape inside the function."""
        a = self.rng.choice(self.floats()).name
        lines = self.total(f"{self.name}({self.names()})")
        create = self.rng.choice(["", "", ", create_graph=True"])
        head = [f"    {a} = {a}.detach().requires_grad_()"] if self.rng.random() < 0.4 else []
        return self.defined(
            name,
            [
                *head,
                lines[0],
                lines[1].replace("return", "s =") + f" + (0 * {a}).sum()",
                f"    return t.autograd.grad(s, {a}{create})[0]",
            ],
            refused,
        )

    def by_functional(self, name: str, refused: bool) -> bool:
        """autograd.functional inside the function."""
        line = self.functional_call()
        return line is not None and self.defined(name, [f"    return {line}"], refused)

    def by_body(self, name: str, refused: bool) -> bool:
        """A function of a few ops before and after the call of the function."""
        rng = self.rng
        body = Body(rng, self.scope, {a.name: a.value(self.dtype) for a in self.arguments})
        for _ in range(rng.randint(0, 2)):
            body.line()
        shapes = {a.name: body.scope[a.name].shape for a in self.arguments}
        given: list[str] = []  # each once: two equal arguments are ties of all their numbers
        for a in self.arguments:
            fits = [n for n in body.floats if body.scope[n].shape == a.shape and n not in given]
            given.append(rng.choice(fits or [a.name]) if a.kind == "float" else a.name)
        if shapes != {a.name: a.shape for a in self.arguments}:
            return False
        call = f"{self.name}({', '.join(given)})"
        if isinstance(self.out, tuple):
            call += "[0]"
        if body.assigned(call) is None:
            return False
        for _ in range(rng.randint(1, 4)):
            body.line()
        return self.defined(name, [*body.lines, f"    return {body.result()}"], refused)

    # -- the call ----------------------------------------------------------------------------------

    CALLS = {"plain": 8, "backward": 7, "grads": 4, "twice": 2, "dual": 4, "functional": 4, "modes": 3, "batched": 1}

    def call(self) -> bool:
        """Inputs, and what is asked of the function; whether torch answered, if it had to, and steadily."""
        refused = self.rng.random() < 0.06
        for _ in range(5):
            which = self.rng.choices(list(self.CALLS), list(self.CALLS.values()))[0]
            lines = getattr(self, f"called_{which}")()
            if lines is None:
                continue
            try:
                kept = self.steady(lines)
            except Exception:
                kept = refused
            if kept:
                self.lines += [*self.inputs(), *lines]
                return True
        return False

    def inputs(self, moved: float = 0.0) -> list[str]:
        return [f"{a.name} = {a.text(self.dtype, moved)}" for a in self.arguments]

    def steady(self, lines: list[str]) -> bool:
        """Whether the answer is finite, and moves with the inputs without a jump."""
        step = 1e-8 if self.dtype == "float64" else 1e-5
        here, there = self.answer(lines, 0.0), self.answer(lines, step)
        return len(here) == len(there) and all(near(a, b, 1e4 * step) for a, b in zip(here, there))

    def answer(self, lines: list[str], moved: float) -> list:
        """What torch answers, for inputs moved so far."""
        torch.manual_seed(0)
        torch.set_grad_enabled(True)
        exec("\n".join(self.inputs(moved) + lines[:-1]), self.scope)
        return list(leaves(eval(lines[-1].removeprefix("return "), self.scope)))

    def called_plain(self) -> list[str]:
        return [f"r = {self.name}({self.names()})", f"return [r, {self.names()}]"]

    def called_modes(self) -> list[str]:
        mode = self.rng.choice(["no_grad", "inference_mode", "enable_grad"])
        grad = [f"{self.floats()[0].name}.requires_grad_()"] if self.rng.random() < 0.5 else []
        return [*grad, f"with t.{mode}(): r = {self.name}({self.names()})", f"return [r, {self.names()}]"]

    def tape(self) -> tuple[list[str], list[str]]:
        """(lines that compute a number s from variables, the names of the variables). s depends on each variable, so
        that no answer depends on whether a constant requires grad."""
        chosen = [a.name for a in self.floats() if self.rng.random() < 0.8] or [self.floats()[0].name]
        lines = self.total(f"{self.name}({self.names()})")
        total = " + ".join([lines[1].replace("    return", "s ="), *(f"(0 * {n}).sum()" for n in chosen)])
        return [*[f"{n}.requires_grad_()" for n in chosen], lines[0].strip(), total], chosen

    def called_backward(self) -> list[str]:
        lines, chosen = self.tape()
        hook = []
        if self.rng.random() < 0.15:
            hooks = "with t.autograd.graph.saved_tensors_hooks(lambda q: q.clone(), lambda q: q): "
            hook = [hooks + lines.pop(-2), lines.pop()]
        grads = ", ".join(f"{n} * 0 if {n}.grad is None else {n}.grad" for n in chosen)
        return [*lines, *hook, "s.backward()", f"return [r, {grads}]"]

    def called_grads(self) -> list[str]:
        lines, chosen = self.tape()
        return [*lines, f"return [r, t.autograd.grad(s, [{', '.join(chosen)}], materialize_grads=True)]"]

    def called_twice(self) -> list[str]:
        lines, chosen = self.tape()
        return [
            *lines,
            f"g, = t.autograd.grad(s, {chosen[0]}, create_graph=True)",
            f"s = (g * g).sum() + (0 * {chosen[0]}).sum()",
            f"return [g, t.autograd.grad(s, [{', '.join(chosen)}], materialize_grads=True)]",
        ]

    def called_batched(self) -> list[str] | None:
        if isinstance(self.out, tuple) or self.out.dim() == 0:
            return None
        x = self.floats()[0].name
        return [
            f"{x}.requires_grad_()",
            f"r = {self.name}({self.names()}) + (0 * {x}).sum()",
            "v = t.stack([t.ones_like(r), r.detach().cos()])",
            f"return t.autograd.grad(r, {x}, v, is_grads_batched=True)",
        ]

    def called_dual(self) -> list[str]:
        floats = self.floats()
        chosen = [a.name for a in floats if self.rng.random() < 0.8] or [floats[0].name]
        lines = [
            "with t.autograd.forward_ad.dual_level():",
            *[f"    {n} = t.autograd.forward_ad.make_dual({n}, {self.tangent(n)})" for n in chosen],
            f"    r = {self.name}({self.names()})",
        ]
        if self.rng.random() < 0.2:
            lines.insert(1, f"    {chosen[0]}.requires_grad_()")
        part = "r[0]" if isinstance(self.out, tuple) else "r"
        return [
            *lines,
            f"    p, d = t.autograd.forward_ad.unpack_dual({part})",
            "    d = t.zeros_like(p) if d is None else d + 0",
            "return [p, d]",
        ]

    def called_functional(self) -> list[str] | None:
        line = self.functional_call()
        return None if line is None else [f"return {line}"]

    def functional_call(self) -> str | None:
        """A call of one of autograd.functional's."""
        rng = self.rng
        if isinstance(self.out, tuple):
            return None
        names, f, _ = self.part()
        parts = names.split(", ")
        inputs = names if len(parts) == 1 else f"({names})"
        vectors = ", ".join(f"{n}.cos()" for n in parts)
        vectors = vectors if len(parts) == 1 else f"({vectors})"
        total = f"lambda {names}: ({self.name}({self.names()}) ** 2).sum()"
        at = "t.autograd.functional"
        extra = rng.choice(["", "", ", create_graph=True"])
        return rng.choice(
            [
                f"{at}.jacobian({f}, {inputs}{extra})",
                f"{at}.jacobian({f}, {inputs}, vectorize=True)",
                f"{at}.jacobian({f}, {inputs}, vectorize=True, strategy='forward-mode')",
                f"{at}.hessian({total}, {inputs}{extra})",
                f"{at}.hessian({total}, {inputs}, vectorize=True)",
                f"{at}.hessian({total}, {inputs}, vectorize=True, outer_jacobian_strategy='forward-mode')",
                f"{at}.jvp({f}, {inputs}, {vectors}{extra})",
                f"{at}.vjp({total}, {inputs}, t.tensor(1.5, dtype=t.{self.dtype}){extra})",
                f"{at}.vhp({total}, {inputs}, {vectors})",
                f"{at}.hvp({total}, {inputs}, {vectors})",
            ]
        )
