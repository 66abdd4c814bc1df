"""mkdocs hook: the pages of the reference, from the docstrings, and what the examples of viz.md
draw, when the documentation is built."""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Callable, Iterable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import dedent, indent
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))

from public_api import members

import rushlight
import rushlight.nn.functional
from rushlight.base.lazy import complete
from rushlight.core.table import Op
from rushlight.introspect import op_docstrings
from rushlight.introspect.formulas import Formula, formula

# Functions of `rushlight` itself: where they are defined -> page. The first match counts.
SUBJECTS = {
    "creation": "creation",
    "random": "random",
    "ops.tensor.random_tensors": "random",
    "ops.math.elementwise": "elementwise",
    "ops.math.arithmetic": "elementwise",
    "ops.math": "math",
    "ops.reduce": "reductions",
    "ops.shape": "shapes",
    "ops.index": "indexing",
    "ops.linalg": "matrices",
    "ops.nn": "layers",
    "nn": "layers",
    "ops.signal": "signal",
    "ops.tensor": "tensors",
    "ops.user_ops": "autograd",
    "ops.grad_mode": "autograd",
    "autograd": "autograd",
    "func": "func",
    "sparse": "sparse",
    "viz": "viz",
    "compile": "compile",
    "amp": "tools",
    "serialization": "tools",
    "jit": "programs",
    "futures": "programs",
    "cuda": "programs",
}
# Modules of nn: the file -> page.
LAYERS = {
    "nn.module": "nn.module",
    "nn.containers": "nn.module",
    "nn.parameter": "nn.module",
    "nn.linear": "nn.layers",
    "nn.conv": "nn.layers",
    "nn.pooling": "nn.layers",
    "nn.padding": "nn.layers",
    "nn.flatten_resize": "nn.layers",
    "nn.embedding": "nn.layers",
    "nn.dropout": "nn.layers",
    "nn.normalization": "nn.layers",
    "nn.activation": "nn.activation",
    "nn.loss": "nn.loss",
    "nn.adaptive": "nn.loss",
    "nn.recurrent": "nn.sequence",
    "nn.multihead": "nn.sequence",
    "nn.transformer": "nn.sequence",
}
WINDOWS = ("conv", "pooling", "fractional", "padding", "resize", "grid")  # files of nn.functional
# (page, title, what it is about, namespaces whose members the page has)
PAGES = [
    ("tensor", "Tensor", "The methods and attributes of a tensor.", []),
    ("creation", "Creating tensors", "Tensors of given values, shapes and ranges.", []),
    ("random", "Random numbers", "The same numbers as torch for the same seed.", ["random"]),
    ("elementwise", "Elementwise functions", "Each element is computed by itself.", []),
    ("math", "Trigonometry and more", "Trigonometric, special and complex functions.", []),
    ("reductions", "Reductions and sorting", "Sums, means, extremes, sorting, statistics.", []),
    ("shapes", "Shapes and views", "Reshaping, joining, splitting, moving dimensions.", []),
    ("indexing", "Indexing", "Reading and writing parts of a tensor.", []),
    ("matrices", "Matrices", "Products, einsum and decompositions.", []),
    ("layers", "Functions of layers", "Functions behind layers that torch has at its top.", []),
    ("signal", "Signals", "Fourier transforms and windows.", ["fft", "signal.windows"]),
    ("tensors", "Conversion and queries", "Types, copies, comparison, saving, settings.", []),
    ("linalg", "linalg", "Linear algebra.", ["linalg"]),
    ("special", "special", "Special functions.", ["special"]),
    ("masked", "masked", "Masked reductions, MaskedTensor.", ["masked"]),
    ("sparse", "sparse", "Sparse tensors.", ["sparse"]),
    ("autograd", "autograd", "Gradients, functions of your own, anomaly mode.", [
        "autograd", "autograd.forward_ad", "autograd.functional", "autograd.graph",
    ]),
    ("func", "func", "Functions that take a function: grad, vmap, jvp, jacrev.", ["func"]),
    ("nn.module", "nn: Module and containers", "What a network is made of.", []),
    ("nn.layers", "nn: layers", "Linear, convolution, pooling, normalization, dropout.", []),
    ("nn.activation", "nn: activations", "Activation functions as modules.", []),
    ("nn.loss", "nn: losses", "What training makes small.", []),
    ("nn.sequence", "nn: recurrent and transformer", "RNN, LSTM, GRU, attention.", []),
    ("nn.functional", "nn.functional", "Activations, losses, norms, attention.", []),
    ("nn.windows", "nn.functional: windows", "Convolution, pooling, padding, resizing.", []),
    ("nn.tools", "nn: initialization and tools", "init, utils, parametrizations, pruning.", [
        "nn.init", "nn.utils", "nn.utils.parametrizations", "nn.utils.parametrize",
        "nn.utils.prune", "nn.utils.rnn", "nn.utils.stateless", "nn.grad", "nn.attention",
        "nn.attention.flex_attention",
    ]),
    ("optim", "optim", "Optimizers, learning-rate schedules, averaged weights.", [
        "optim", "optim.lr_scheduler", "optim.swa_utils",
    ]),
    ("data", "utils.data", "Data sets, samplers, the DataLoader.", ["utils.data"]),
    ("distributions", "distributions", "Probability distributions.", [
        "distributions", "distributions.constraints", "distributions.transforms",
        "distributions.utils",
    ]),
    ("vision", "vision", "Transforms, operators, image files.", [
        "vision.io", "vision.ops", "vision.transforms", "vision.transforms.functional",
        "vision.utils",
    ]),
    ("viz", "viz", "Pictures of the graph and of backward.", ["viz"]),
    ("compile", "compile", "Whole programs as fused loops.", ["compile", "compiler"]),
    ("tools", "Tools", "Mixed precision, checkpoints, profiler, files, testing.", [
        "amp", "utils.checkpoint", "profiler", "serialization", "testing",
    ]),
    ("programs", "fx, library, hub", "Programs as data, operators of your own, storage.", [
        "fx", "hub", "jit", "library", "futures", "storage",
    ]),
]  # fmt: skip
ENVIRONMENT = """\
# Environment variables

| variable | effect |
|---|---|
| `RUSHLIGHT_FAST=0` | leaves all work to the NumPy reference kernels, as `rushlight.fast.off()` |
| `RUSHLIGHT_LOOPS=wait` | waits for loops that must be compiled, instead of working with NumPy meanwhile |
| `RUSHLIGHT_CACHE` | the folder of compiled loops; default: `rushlight` in the cache folder |
| `RUSHLIGHT_TRACEBACK=full` | tracebacks show the frames inside rushlight, too |
| `OPENBLAS_NUM_THREADS`, `MKL_NUM_THREADS` | threads of matrix products at the start |
| `OMP_NUM_THREADS` | the most threads of compiled loops |
"""
INTERNAL = {
    "forward",
    "extra_repr",
    "reset_parameters",
}  # methods without a section
DOCUMENTED: set[Any] = set()  # functions and classes with a section; filled by `pages`


def on_config(config: Any) -> Any:
    """Put the pages into the navigation, below Reference."""
    for section in config["nav"]:
        if "Reference" in section:
            section["Reference"] = [
                {"Overview": "reference/index.md"},
                *[{title: f"reference/{name}.md"} for name, title, _, _ in PAGES],
                *section["Reference"],
            ]
    return config


def on_files(files: Any, config: Any) -> Any:
    from mkdocs.structure.files import File

    for name, text in {**pages(), **dict(drawings())}.items():
        files.append(File.generated(config, name, content=text))
    return files


# -- pages -----------------------------------------------------------------------------------------


def pages() -> dict[str, str]:
    """{file: Markdown} of the reference."""
    complete()
    groups: dict[str, dict[str, Any]] = {name: {} for name, *_ in PAGES}
    for name, value in members(".").items():
        groups[subject(value)][name] = value
    for name, value in members("nn").items():
        groups[LAYERS.get(home(value), "nn.layers")][f"{name}"] = value
    for name, value in members("nn.functional").items():
        file = home(value).rpartition(".")[2]
        groups["nn.windows" if file in WINDOWS else "nn.functional"][name] = value
    for name, _, _, namespaces in PAGES:
        for namespace in namespaces:
            groups[name].update(members(namespace))
    DOCUMENTED.update(value for group in groups.values() for value in group.values())
    made = {
        f"reference/{name}.md": page(title, about, groups[name]) for name, title, about, _ in PAGES
    }
    made["reference/tensor.md"] = tensor_page()
    made["reference/index.md"] = overview(groups)
    made["reference/cli.md"] = command_line()
    made["reference/environment.md"] = ENVIRONMENT
    return made


def home(value: Any) -> str:
    """The module that defines a function or class, without the package: "ops.math.elementwise"."""
    op = getattr(value, "op", None)
    if isinstance(op, Op):
        module = op.forward.__module__
    elif inspect.isclass(value):
        module = value.__module__
    else:
        module = getattr(inspect.unwrap(value), "__globals__", {}).get("__name__", "")
    return module.removeprefix("rushlight.")


def subject(value: Any) -> str:
    """The page of a member of `rushlight` itself."""
    if isinstance(value, type) and issubclass(value, rushlight.Tensor):
        return "tensor"
    return next(
        (page for start, page in SUBJECTS.items() if f"{home(value)}.".startswith(f"{start}.")),
        "tensors",
    )


def page(title: str, about: str, group: dict[str, Any]) -> str:
    ordered = sorted(group.items(), key=lambda item: item[0].lower())
    links = ", ".join(f"[{short(name)}](#{anchor(name)})" for name, _ in ordered)
    listed_names = [f"{links}\n"] if title.startswith("nn") else []
    return "\n".join([f"# {title}\n\n{about}\n", *listed_names, *[section(*i) for i in ordered]])


def short(name: str) -> str:
    return name.rpartition(".")[2]


def anchor(name: str) -> str:
    """The anchor that Markdown's table of contents gives to a heading."""
    return name.lower().replace(".", "")


def tensor_page() -> str:
    """Methods with a story of their own; of the others, links to the functions."""
    methods = {
        name: value
        for name, value in sorted(vars(rushlight.Tensor).items())
        if not name.startswith("_") and inspect.getdoc(value)
    }
    also = [name for name in methods if hasattr(rushlight, name.removesuffix("_"))]
    text = page(
        "Tensor",
        inspect.getdoc(rushlight.Tensor).partition("\n")[0],
        {f"Tensor.{name}": value for name, value in methods.items() if name not in also},
    )
    listed = ", ".join(f"`{name}`" for name in also)
    return (
        f"{text}\n## Functions that are methods, too\n\n`x.exp()` is `rushlight.exp(x)`, and "
        f"`x.exp_()` writes the result into x: {listed}\n"
    )


def overview(groups: dict[str, dict[str, Any]]) -> str:
    rows = [
        f"| [{title}]({name}.md) | {about} | {len(groups[name]) or ''} |"
        for name, title, about, _ in PAGES
    ]
    return "\n".join(
        [
            "# Reference\n",
            "Every public function and class, from its docstring. The examples run as tests.\n",
            "| page | what | names |",
            "|---|---|--:|",
            *rows,
            "",
        ]
    )


# -- one function or class -------------------------------------------------------------------------


def section(name: str, value: Any) -> str:
    parts = [f"## {name}\n", f"```python\n{written(name, value)}\n```\n"]
    parts.append(markdown(inspect.getdoc(value) or ""))
    parts += [f"*Gradient of* `{of}`: `{rule}`\n" for of, rule in gradients(value)]
    if inspect.isclass(value):
        parts += [method(name, *item) for item in own_methods(value)]
    return "\n".join(parts)


def method(owner: str, name: str, function: Callable) -> str:
    return "\n".join(
        [
            f"### {owner.rpartition('.')[2]}.{name}\n",
            f"```python\n{written(name, function)}\n```\n",
            markdown(inspect.getdoc(function) or ""),
        ]
    )


def own_methods(value: type) -> list[tuple[str, Callable]]:
    """The public methods of a class with a docstring: its own, and those of bases that have no
    section. `forward` says no more than the class."""
    found: dict[str, Callable] = {}
    for base in value.__mro__:
        if not base.__module__.startswith("rushlight") or base is not value and base in DOCUMENTED:
            break
        for name, function in vars(base).items():
            plain = not name.startswith("_") and name not in INTERNAL
            if plain and inspect.isfunction(function) and function.__doc__:
                found.setdefault(name, function)
    return sorted(found.items())


def text_of(function: Callable) -> str | None:
    """The formula of a rule as text; None for a rule that is not a plain formula."""
    try:
        made = formula(function)
    except TypeError:
        return None
    return str(made) if isinstance(made, Formula) else None


def gradients(value: Any) -> Iterable[tuple[str, str]]:
    """(input, formula) for each input with a derivative."""
    op = getattr(value, "op", None)
    if not isinstance(op, Op):
        return ()
    texts = {name: text_of(rule) for name, rule in op.rules.items() if rule is not None}
    return [(op_docstrings.public(op, name), text) for name, text in texts.items() if text]


def written(name: str, value: Any) -> str:
    """The call, a parameter a line if it is long. Types stand in the stubs, not here."""
    if isinstance(value, property):
        return name
    try:
        parameters = list(inspect.signature(value).parameters.values())
    except (TypeError, ValueError):
        return f"{name}(...)"
    bare = [p.replace(annotation=p.empty) for p in parameters if p.name != "self"]
    line = f"{name}{inspect.Signature(bare)}"
    if len(line) <= 88:
        return line
    return f"{name}(\n" + indent(",\n".join(map(str, listed(bare))), "    ") + ",\n)"


def listed(parameters: list[inspect.Parameter]) -> list[str]:
    """The parameters one by one, with the `*` before those that go by name alone."""
    made: list[str] = []
    star = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    for p in parameters:
        if p.kind is p.KEYWORD_ONLY and not star:
            made.append("*")
            star = True
        made.append(str(p))
    return made


def markdown(doc: str) -> str:
    """A docstring as Markdown: paragraphs escaped outside of backticks, examples as blocks of
    code."""
    parts = []
    for block in re.split(r"\n\s*\n", dedent(doc).strip()):
        if block.lstrip().startswith(">>>"):
            parts.append(f"```pycon\n{block}\n```")
        elif block.startswith(("    ", "- ", "* ", "|")) or "\n    " in block:
            parts.append(f"```text\n{dedent(block)}\n```")
        else:
            parts.append(escaped(block))
    return "\n\n".join(parts) + "\n"


def escaped(text: str) -> str:
    """Text in which Markdown finds no emphasis, link or tag, except in `code`."""
    pieces = re.split(r"(`[^`]*`)", text)
    return "".join(
        piece
        if piece.startswith("`")
        else re.sub(r"([\\*_\[\]#|])", r"\\\1", piece).replace("<", "&lt;")
        for piece in pieces
    )


# -- the command line, and drawings ----------------------------------------------------------------


def command_line() -> str:
    """The help of the command and of each of its commands."""
    import argparse

    from rushlight.cli import parser

    os.environ["COLUMNS"] = "90"
    top = parser()
    commands = next(a for a in top._actions if isinstance(a, argparse._SubParsersAction)).choices
    parts = ["# Command line\n", f"```text\n{top.format_help()}```\n"]
    for name, command in commands.items():
        parts.append(f"## rushlight {name}\n\n```text\n{command.format_help()}```\n")
    return "\n".join(parts)


def drawings() -> list[tuple[str, str]]:
    """The picture and the pages that the first examples of viz.md leave, each with its name."""
    text = Path(__file__).with_name("viz.md").read_text()
    before = os.getcwd()
    with TemporaryDirectory() as folder, redirect_stdout(StringIO()):
        os.chdir(folder)
        try:
            rushlight.manual_seed(0)
            names: dict[str, object] = {}
            for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL)[:4]:
                exec(block, names)
            return [
                (name, Path(name).read_text())
                for name in ("graph.svg", "backward.html", "training.html")
            ]
        finally:
            os.chdir(before)
