"""A program as one Python module without imports of rushlight: it needs only NumPy.

The module has the program's statements; loops are functions of whole arrays (compile/lower/numpy_loops.py). Before them
come the definitions that they use, copied as text (compile/export/collect_source.py): kernels of the op table without
their faster ways, planned memory.
"""

from __future__ import annotations

import ast
import re
import sys
from base64 import b85encode
from collections.abc import Iterable
from typing import Any

import numpy as np

from rushlight.compile.export.collect_source import Bundle, CannotBundle, free, source
from rushlight.compile.report import Parts, sequence_text
from rushlight.core.table import SHARED, TABLE
from rushlight.core.worlds import ARRAYS
from rushlight.kernels import index as kernels_index

OURS, LOWER = "rushlight.compile.export.runtime", "rushlight.compile.lower.runtime"
# (module, name) of a definition of rushlight -> the definition that replaces it in the text
INSTEAD = {
    (LOWER, "in_parts"): (OURS, "in_parts"),
    ("rushlight.random.choose_loop", "Loop"): (OURS, "Loop"),
    ("rushlight.base.errors", "explain"): (OURS, "explain"),
    ("rushlight.base.dtypes", "of"): (OURS, "of"),
    ("rushlight.core.mode", "mode"): (OURS, "mode"),
    ("rushlight.base.placeholder", "Touched"): (OURS, "Touched"),
    ("rushlight.core.tensor", "from_array"): (OURS, "from_array"),
    ("rushlight.core.tensor", "Tensor"): (OURS, "Tensor"),
    ("rushlight.base.device", "present"): (OURS, "from_array"),
    ("rushlight.kernels.elementwise", "erf"): (OURS, "erf"),
    ("rushlight.kernels.elementwise", "erfc"): (OURS, "erfc"),
    ("rushlight.kernels.special", "_gammaln"): (OURS, "gammaln"),
    ("rushlight.kernels.special", "_erfinv"): (OURS, "inverse_of_erf"),
}
NUMPY = ("asarray", "copyto", "inf", "matmul", "nan")  # names that a program imports from NumPy
# names that a program imports from LOWER
RUNTIME = "b1", "check_classes", "check_index", "check_true", "f32", "f64", "i64", "in_parts", "laid", "memory"
MAX_LITERAL_ELEMENTS = 64  # constants up to this size are written as numbers, larger ones as encoded bytes


class Module(Bundle):
    """The module's text under construction. `body`: the program's own statements; their names are reserved.

    `ignored`: decorators that are left out, beside those with faster ways."""

    def __init__(self, body: str, ignored: tuple[str, ...] = ()):
        code = re.sub(r'(?m)^ *#.*|(?s:""".*?""")', "", body)  # without comments and docstrings
        used = set(re.findall(r"(?<![\w.])[A-Za-z_]\w*", code))
        super().__init__(INSTEAD, used - {*RUNTIME})
        self.ignored = "site", *ignored
        self.owner |= {"np": "import numpy as np", **{name: f"from numpy import {name}" for name in NUMPY}}
        self.wanted = [name for name in RUNTIME if name in used]
        self.owner |= {name: INSTEAD.get((LOWER, name), (LOWER, name)) for name in self.wanted}

    def meaning(self, module: str, node: Any) -> str | None:
        if isinstance(node, ast.Name) and node.id in self.ignored:
            return None
        return super().meaning(module, node)

    def write(self, module: str, statement: ast.stmt) -> None:
        before = len(self.texts)
        super().write(module, statement)
        for k in range(before, len(self.texts)):
            self.texts[k] = re.sub(rf"(?m)^@({'|'.join(self.ignored)})\b.*\n", "", self.texts[k])

    # -- kernels of the table ----------------------------------------------------------------------

    def kernel(self, name: str) -> str:
        """The expression for the kernel `kernels.name` of a program."""
        op = TABLE[name]
        if "own" in op.options:
            raise CannotBundle(f"{op.called} is an op of your file, and a module that runs alone cannot import it")
        kernel: Any = in_full(op.kernel)
        inner = closure(kernel) if re.search(r"<locals>\.(<lambda>|run)$", getattr(kernel, "__qualname__", "")) else {}
        if "stay" in inner:
            deep = closure(inner["stay"])
            kernel = getattr(deep["kernel"], "reference", deep["kernel"])  # without its faster way
            return f"{self.need(OURS, 'staying')}({self.function(name, in_full(kernel))}, {deep['last']})"
        if "op" in inner and "kernel" in inner:  # before the reference kernel is a faster way
            return self.function(name, in_full(inner["kernel"]))
        return self.function(name, kernel)

    def function(self, name: str, kernel: Any) -> str:
        """The expression for a function of arrays."""
        own_name = getattr(kernel, "__name__", "")
        if getattr(np, own_name, None) is kernel:
            self.imports["import numpy as np"] = None
            return f"np.{own_name}"
        if getattr(kernel, "__globals__", None) is ARRAYS:
            return self.rule(name, kernel)
        if kernel.__name__ == "<lambda>" and not kernel.__closure__:
            return self.loose(name, kernel)
        home = sys.modules.get(kernel.__module__)
        for module, known in ((home, kernel.__name__), *((m, name) for m in kernel_modules())):
            if (
                module is not None
                and getattr(module, known, None) is kernel
                and known in source(module.__name__).statements
            ):
                return self.need(module.__name__, known)
        raise CannotBundle(f"the kernel of {name} has no text of its own")

    def loose(self, name: str, kernel: Any) -> str:
        """The text of a kernel that is a lambda in a module."""
        module, node = kernel.__module__, written_rule(kernel)
        here = source(module)
        return self.replaced(module, node, *here.span(node)).join("()")

    def rule(self, name: str, kernel: Any) -> str:
        """The name of a kernel that is a rule of the table; writes the rule with ops replaced by kernels."""
        key = "rule", name
        if key in self.names:
            return self.names[key]
        self.names[key] = self.claim(name, key)
        tree = written_rule(kernel)
        for node in free(tree):
            node = node.value if isinstance(node, ast.Attribute) else node
            if isinstance(node, ast.Name) and node.id in ARRAYS and not node.id.startswith("__"):
                if node.id in SHARED:
                    node.id = self.rule(node.id, ARRAYS[node.id])
                elif node.id in TABLE:
                    node.id = self.kernel(node.id)
                else:
                    node.id = self.function(node.id, ARRAYS[node.id])
        if isinstance(tree, ast.Lambda):
            arguments = ast.unparse(tree.args)
            self.texts.append(f"def {self.names[key]}({arguments}):\n    return {ast.unparse(tree.body)}")
        else:
            tree.name, tree.decorator_list = self.names[key], []
            self.texts.append(ast.unparse(tree))
        return self.names[key]

    # -- constants ---------------------------------------------------------------------------------

    def constant(self, a: Any) -> str:
        """A value as text."""
        if isinstance(a, np.ndarray):
            return array_text(a)
        if isinstance(a, (tuple, list)):
            return sequence_text(list if isinstance(a, list) else tuple, map(self.constant, a))
        if type(a).__module__ == "rushlight.base.dtypes":
            return f"{self.need(OURS, 'of')}({np.dtype(a.numpy).name!r})"
        if a is kernels_index.HERE:
            return self.need(kernels_index.__name__, "HERE")
        if isinstance(a, np.generic):
            return f"np.{a.dtype.name}({a.item()!r})"
        if isinstance(a, (float, complex, str, bytes, bool, int, slice, type(None), type(...), range)):
            return repr(a) if a == a and a not in (np.inf, -np.inf) else f"float({str(a)!r})"
        raise CannotBundle(f"a {type(a).__name__} among the settings of a kernel has no text")


def module(programs: Iterable[Parts], ending: str = "", stored: Any = None) -> str:
    """The text of a module that holds the programs. `ending`: text after them.

    `stored(name, value)`: for a module in an exported folder, the expression for a constant stored among its
    WEIGHTS."""
    programs = list(programs)
    own = [part for p in programs for part in (*p.wholes.values(), p.memory, p.functions)]
    text = Module("\n".join([*own, *map(news, programs), ending, "SHAPES kernels WEIGHTS"]))
    for name in text.wanted:
        text.need(LOWER, name)
    names = dict.fromkeys(re.findall(r"\bkernels\.(\w+)", "\n".join(own)))
    kernels = [f"{name}={text.kernel(name)}" for name in names]
    constants = [
        f"{name} = {stored and stored(name, value) or text.constant(value)}"
        for p in programs
        for name, value in p.constants.items()
    ]
    parts = [heading(programs[0].title, text, constants, bool(kernels), stored is not None)]
    parts += [f"\n{t}\n" if t.startswith(("def ", "class ", "@", "#")) else t for t in text.texts]
    if kernels:
        parts.append("kernels = SimpleNamespace(\n    " + ",\n    ".join(kernels) + ")")
    if constants:
        parts.append("# constants of the traced run\n" + "\n".join(constants))
    for p in programs:
        loops = [f"\n{loop}" for loop in p.wholes.values()]
        parts += [*loops, p.memory, p.functions, calling(p) if stored is None else news(p)]
    return "\n".join([*parts, ending])


def heading(title: str, text: Module, constants: list[str], kernels: bool, folder: bool) -> str:
    """The module's docstring and imports."""
    imports = {"import numpy as np": None, **text.imports}
    if any("b85decode(" in line for line in constants):
        imports["from base64 import b85decode"] = None
    if kernels:
        imports["from types import SimpleNamespace"] = None
    lines = sorted(imports, key=lambda s: (s.startswith("from"), s))
    lines += ["from . import WEIGHTS"] * folder
    head = f'"""{title}\n\nNeeds only NumPy.\n"""', "from __future__ import annotations\n"
    return "\n".join([*head, *lines, f"from numpy import {', '.join(NUMPY)}"])


def news(p: Parts) -> str:
    """The statement that defines the allocators of the results."""
    new = ", ".join(f"lambda: np.empty({shape}, {np.dtype(dtype).name!r})" for shape, dtype in p.new)
    return f"\n{p.mark}new = [{new}]        # memory for what is handed out"


def calling(p: Parts) -> str:
    """The function `call`, which passes memory and views to `run`."""
    names = [name for name, _ in p.inputs]
    views = f", *{p.mark}bind({', '.join(p.bound)})" if f"def {p.mark}bind(" in p.functions else ""
    return f'''{news(p)}


def {p.mark}call({", ".join(names)}):
    """(results, gradients). The arrays that are written: see `copyto` and the loops' parameters p0, p1...

    {(chr(10) + "    ").join(f"{name}: {what}" for name, what in p.inputs)}
    """
    with np.errstate(all="ignore"):
        return {p.mark}run({", ".join([f"{p.mark}new", *names])}{views})
'''


def in_full(kernel: Any) -> Any:
    """The kernel without its conversion of 16-bit floats (kernels/float16.py)."""
    return getattr(kernel, "in_full", kernel)


def closure(function: Any) -> dict[str, Any]:
    cells = getattr(function, "__closure__", None) or ()
    return dict(zip(function.__code__.co_freevars, (c.cell_contents for c in cells))) if cells else {}


def kernel_modules() -> list[Any]:
    return [m for name, m in list(sys.modules.items()) if name.startswith("rushlight.kernels.") and m is not None]


def written_rule(kernel: Any) -> Any:
    """The syntax tree of a rule: the lambda or function with the same code."""
    code = kernel.__code__
    with open(code.co_filename) as file:
        tree = ast.parse(file.read())
    for node in ast.walk(tree):
        if isinstance(node, (ast.Lambda, ast.FunctionDef)) and node.lineno >= code.co_firstlineno:
            whole: Any = ast.Expression(node) if isinstance(node, ast.Lambda) else ast.Module([node], [])
            made = compile(whole, "rule", "eval" if isinstance(node, ast.Lambda) else "exec", dont_inherit=True)
            inner = next((c for c in made.co_consts if hasattr(c, "co_code")), None)
            if inner is not None and alike(inner, code):
                return node
    raise CannotBundle(f"the text of a rule is not found in {code.co_filename}")


def alike(a: Any, b: Any) -> bool:
    """Whether two code objects are compiled from the same text; instructions may differ with the surrounding scope."""
    return (a.co_names, a.co_varnames, a.co_firstlineno) == (b.co_names, b.co_varnames, b.co_firstlineno)


def array_text(a: np.ndarray) -> str:
    """An array as an expression: its numbers if there are few, otherwise its bytes."""
    name = a.dtype.name
    if a.dtype.kind not in "fiubc":
        raise CannotBundle(f"a constant of dtype {name} has no text")
    if not a.flags.c_contiguous and all(a.strides):  # keep the memory layout: some ops depend on it
        order = np.argsort([-abs(step) for step in a.strides], kind="stable")
        return f"{array_text(np.ascontiguousarray(a.transpose(order)))}.transpose({tuple(np.argsort(order).tolist())})"
    flat = a.ravel()
    if a.size > 1 and flat.tobytes() == flat[:1].tobytes() * a.size:
        return f"np.full({a.shape}, {number(flat[0])}, '{name}')"
    if a.ndim == 1 and a.dtype == np.int64 and np.array_equal(a, np.arange(a.size)):
        return f"np.arange({a.size})"
    if a.size <= MAX_LITERAL_ELEMENTS:
        text = repr([number(x) for x in flat]).replace("'", "")
        return f"np.array({text}, '{name}').reshape({a.shape})"
    coded = b85encode(np.ascontiguousarray(a).tobytes()).decode()
    return f"np.frombuffer(b85decode({coded!r}), '{name}').reshape({a.shape})"


def number(x: Any) -> str:
    return repr(x.item()) if x.dtype.kind in "biu" else str(x).replace("(", "").replace(")", "")
