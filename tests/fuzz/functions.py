"""Random custom Functions, as the lines of a class."""

from __future__ import annotations

import random

# (forward of x, its derivative by x), where both may name x and out
UNARY = [
    ("x.sin()", "x.cos()"),
    ("x * x", "2 * x"),
    ("x.exp()", "out"),
    ("x * 3", "3"),
    ("x.tanh()", "(1 - out * out)"),
]
# (forward of x and y, the derivative by x, by y)
BINARY = [("x * y", "y", "x"), ("x * y.sin()", "y.sin()", "x * y.cos()"), ("x + 2 * y", "1", "2")]


def function_class(rng: random.Random, name: str) -> list[str]:
    """The lines of a class of one or two inputs, in the old style or the new, with some of vmap, jvp and the rule."""
    return binary(rng, name) if rng.random() < 0.4 else in_place(name) if rng.random() < 0.15 else unary(rng, name)


def indented(*lines: str) -> list[str]:
    return [f"    {line}" for line in lines]


def head(rng: random.Random, name: str) -> tuple[list[str], str]:
    """The first lines, and how the class is mapped."""
    how = rng.choice(["none", "rule", "rule", "own"])
    return [
        f"class {name}(t.autograd.Function):",
        *(indented("generate_vmap_rule = True") if how == "rule" else []),
    ], how


def unary(rng: random.Random, name: str) -> list[str]:
    forward, slope = rng.choice(UNARY)
    lines, how = head(rng, name)
    saved = "output" if "out" in slope else "inputs[0]"
    local = "out" if "out" in slope else "x"
    if rng.random() < 0.3:
        lines += indented(
            "@staticmethod",
            "def forward(ctx, x):",
            f"    out = {forward}",
            f"    ctx.save_for_backward({local})",
            f"    ctx.save_for_forward({local})",
            "    return out",
        )
    else:
        lines += indented(
            "@staticmethod",
            f"def forward(x): return {forward}",
            "@staticmethod",
            "def setup_context(ctx, inputs, output):",
            f"    ctx.save_for_backward({saved})",
            f"    ctx.save_for_forward({saved})",
        )
    lines += indented(
        "@staticmethod", "def backward(ctx, g):", f"    {local}, = ctx.saved_tensors", f"    return g * {slope}"
    )
    if rng.random() < 0.6:
        lines += indented(
            "@staticmethod", "def jvp(ctx, v):", f"    {local}, = ctx.saved_tensors", f"    return v * {slope}"
        )
    if how == "own":
        lines += indented("@staticmethod", f"def vmap(info, in_dims, x): return {name}.apply(x), in_dims[0]")
    return lines


def binary(rng: random.Random, name: str) -> list[str]:
    forward, by_x, by_y = rng.choice(BINARY)
    lines, how = head(rng, name)
    if rng.random() < 0.3:
        lines += indented(
            "@staticmethod",
            "def forward(ctx, x, y):",
            "    ctx.save_for_backward(x, y)",
            "    ctx.save_for_forward(x, y)",
            f"    return {forward}",
        )
    else:
        lines += indented(
            "@staticmethod",
            f"def forward(x, y): return {forward}",
            "@staticmethod",
            "def setup_context(ctx, inputs, output):",
            "    ctx.save_for_backward(*inputs)",
            "    ctx.save_for_forward(*inputs)",
        )
    lines += indented(
        "@staticmethod",
        "def backward(ctx, g):",
        "    x, y = ctx.saved_tensors",
        f"    return (g * {by_x}).sum_to_size(x.shape), (g * {by_y}).sum_to_size(y.shape)",
    )
    if rng.random() < 0.6:
        lines += indented(
            "@staticmethod",
            "def jvp(ctx, v, w):",
            "    x, y = ctx.saved_tensors",
            f"    return v * {by_x} + w * {by_y}",
        )
    if how == "own":
        lines += indented(
            "@staticmethod",
            "def vmap(info, in_dims, x, y):",
            "    x = x.movedim(in_dims[0], 0) if in_dims[0] is not None else x[None]",
            "    y = y.movedim(in_dims[1], 0) if in_dims[1] is not None else y[None]",
            "    x = x.reshape(x.shape[:1] + (1,) * (y.dim() - x.dim()) + x.shape[1:])",
            "    y = y.reshape(y.shape[:1] + (1,) * (x.dim() - y.dim()) + y.shape[1:])",
            f"    return {name}.apply(x, y), 0",
        )
    return lines


def in_place(name: str) -> list[str]:
    """A Function that writes to its input."""
    return [
        f"class {name}(t.autograd.Function):",
        *indented(
            "@staticmethod",
            "def forward(ctx, x):",
            "    ctx.mark_dirty(x)",
            "    return x.mul_(2)",
            "@staticmethod",
            "def backward(ctx, g): return g * 2",
            "@staticmethod",
            "def jvp(ctx, v): return v.mul_(2)",
        ),
    ]
