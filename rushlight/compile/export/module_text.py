"""A program as one Python module without imports of rushlight: it runs with only NumPy, faster with Numba.

The module has the program's statements unchanged. Before them come the definitions that they use, copied as text
(compile/export/collect_source.py): scalar functions, kernels of the op table, planned memory.
"""

from __future__ import annotations

import ast
import re
import sys
from base64 import b85encode
from collections.abc import Iterable
from typing import Any

import numpy as np

from rushlight import fast
from rushlight.compile.export.collect_source import Bundle, CannotBundle, free, source
from rushlight.compile.report import Parts, sequence_text
from rushlight.core.table import SHARED, TABLE
from rushlight.core.worlds import ARRAYS
from rushlight.fast.index import SITES
from rushlight.fast.row_text import loop_text
from rushlight.fast.softmax_norm import FUNCTIONS as ROWS
from rushlight.loops import scalar_math, simd

LOOPS = "rushlight.loops."
OURS = "rushlight.compile.export.runtime"
# (module, name) of a definition of rushlight -> the definition that replaces it in the text
INSTEAD = {
    (LOOPS + "cache", "loop"): (OURS, "machine_code"),
    (LOOPS + "cache", "compiled"): (OURS, "compiled"),
    (LOOPS + "cache", "calling"): (OURS, "calling"),
    (LOOPS + "intrinsics", "backend"): (OURS, "backend"),
    ("rushlight.base.dependencies", "has_llvmlite"): (OURS, "has_llvmlite"),
    ("rushlight.fast.policy", "large_arrays"): (OURS, "much"),
    ("rushlight.base.dependencies", "llvmlite_loads"): (OURS, "has_llvmlite"),
    (LOOPS + "tiering", "Loop"): (OURS, "Loop"),
    (LOOPS + "background", "may_fall_back"): (OURS, "may_fall_back"),
    ("rushlight.random.choose_loop", "Loop"): (OURS, "Loop"),
    ("rushlight.base.text", "define"): (OURS, "define"),
    ("rushlight.base.errors", "explain"): (OURS, "explain"),
    ("rushlight.base.dtypes", "of"): (OURS, "of"),
    ("rushlight.core.mode", "mode"): (OURS, "mode"),
    ("rushlight.base.placeholder", "Touched"): (OURS, "Touched"),
    ("rushlight.core.tensor", "from_array"): (OURS, "from_array"),
    ("rushlight.core.tensor", "Tensor"): (OURS, "Tensor"),
    ("rushlight.base.device", "present"): (OURS, "from_array"),
    ("rushlight.fast", "row_loops"): (OURS, "LOOPS"),
    ("rushlight.fast.row_text", "loop_of"): (OURS, "loop_of"),
}
# modules of faster ways whose loops are generated from the op table's rules; exported texts do not contain these rules
NOT_EXPORTED = {"rushlight.fast.recurrent_loops"}
IN_FOLDERS = {("rushlight.loops.budget", "Budget"): (OURS, "Spent")}
NUMPY = ("asarray", "copyto", "inf", "matmul", "nan")  # names that a program imports from NumPy
TYPES = {"f32": "np.float32", "f64": "np.float64", "i64": "np.int64", "b1": "np.bool_", "empty": "np.empty"}
INSTRUCTIONS = ("restrict", "wide", "plus", "times", "largest", "smallest")
REGISTERS = ("get", "put", "copy", "load", "load_first", "store", "store_first", "spread", "none", "fma", "dots")
RUNTIME = ("check_index", "check_classes", "check_true", "in_parts", "laid", "memory", "f32", "f64", "i64")
MAX_LITERAL_ELEMENTS = 64  # constants up to this size are written as numbers, larger ones as encoded bytes
WIDE = "kind(np.float64)"
GROUPS = {  # dtype -> expressions that make groups of scalar functions (loops/scalar_math.py)
    "": ("plain({})", "exponentials({})", "logarithms({})"),
    "float32": (
        f"circular({{}}, {WIDE})",
        f"bells({{}}, exponentials({{}}), {{**exponentials({WIDE}), **logarithms({WIDE})}})",
    ),
}


class Module(Bundle):
    """The module's text under construction.

    `body`: the program's own statements; their names are reserved. `folder`: whether the text is part of an exported
    folder, whose __init__.py decides when to use Numba."""

    def __init__(self, body: str, folder: bool = False):
        code = re.sub(r'(?m)^ *#.*|(?s:""".*?""")', "", body)  # without comments and docstrings
        # `kernels.tanh` is not the tanh of loops
        used = set(re.findall(r"(?<![\w.])[A-Za-z_]\w*", code))
        self.wanted = used & ({*RUNTIME} | loop_names())
        super().__init__({**INSTEAD, **IN_FOLDERS} if folder else INSTEAD, used - self.wanted - {"loop"})
        self.along: list[tuple[str, str, str]] = []  # loops that kernels look up by op and layout
        self.owner |= {"np": "import numpy as np", **{name: f"from numpy import {name}" for name in NUMPY}}
        self.owner |= {
            name: ("rushlight.compile.lower.runtime" if name in RUNTIME and name not in TYPES else "element", name)
            for name in self.wanted
        }
        if folder:
            self.names[OURS, "numba"] = self.claim("numba", (OURS, "numba"))

    def element(self, module: str, name: str) -> str | None:
        """Write the definition of a name that loops use as a global; returns its name in the text if that differs."""
        if name in NUMPY:
            return None
        key = "element", name
        if key not in self.names:
            self.names[key] = self.claim(name, key)
            self.texts.append(f"{self.names[key]} = {self.definition(name)}")
        return None if self.names[key] == name else self.names[key]

    def meaning(self, module: str, node: Any) -> str | None:
        """Also writes a kernel's faster way (base/faster.py:site) with the kernel, unless rushlight.fast is off."""
        if not isinstance(node, ast.Name) or node.id != "site":
            return super().meaning(module, node)
        kernel: Any = self.tree
        way = SITES[f"{module.rpartition('.')[2]}.{kernel.name}"]
        exported = fast.is_on() and way.module not in NOT_EXPORTED
        function = self.need(way.module, kernel.name) if exported else None
        return f"{self.need(OURS, 'site')}({function}, {way.elements})"

    def definition(self, name: str) -> str:
        if name in TYPES:
            self.imports["import numpy as np"] = None
            return TYPES[name]
        if name in INSTRUCTIONS:
            return f"{self.need(OURS, 'backend')}().{name}"
        if name not in elements():
            return self.instruction(name)
        own, real = (name[:-2], "float64") if name.endswith("64") else (name, "float32")
        text = self.group(own, real)
        for part in re.findall(r"\b[a-z]\w+(?=\()", text):
            given = self.need(scalar_math.__name__, part)
            text = re.sub(rf"\b{part}\(", f"{given}(", text)
        return f"{text}[{own!r}]"

    def instruction(self, name: str) -> str:
        """The expression for an instruction on vector registers."""
        kinds, machine = (self.need(LOOPS + "simd", made) for made in ("kinds", "machine"))
        if name == "dots":
            made, which = self.need(LOOPS + "matmul_tiles", name), ""
        else:
            group = next(g for g in simd.GROUPS if name in g(simd.kinds(simd.machine()[0])))
            made, which = self.need(LOOPS + "simd", group.__name__), f"[{name!r}]"
        return f"{self.need(OURS, 'numba')} and {made}({kinds}({machine}()[0])){which}"

    def group(self, name: str, real: str) -> str:
        """The expression for the group of scalar functions to which `name` belongs."""
        kind = f"kind(np.{real})"
        for form in (*GROUPS[""], *GROUPS.get(real, ())):
            text = form.replace("{}", kind).replace("{{", "{").replace("}}", "}")
            if name in eval(text, vars(scalar_math)):
                return text
        return f"calls({kind}, {name!r})"

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
        if "op" in inner and "kernel" in inner:
            if (name, "") not in ROWS:
                return self.function(name, in_full(inner["kernel"]))
            return f"{self.need(OURS, 'by_rows')}({self.rows(name)}, {self.function(name, in_full(inner['kernel']))})"
        return self.function(name, kernel)

    def rows(self, name: str) -> str:
        """The function that runs an op on large arrays (fast/softmax_norm.py)."""
        function = ROWS[name, ""]
        if function.__name__ == "along_a_dimension":
            self.along += (name, "", "rows"), (name, "", "across")
            return f"{self.need('rushlight.fast.softmax_norm', 'along_rows')}({name!r}, '')"
        return self.need("rushlight.fast.softmax_norm", function.__name__)

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

    def loops(self) -> None:
        """Put the loops that the text names into LOOPS, where the kernels look them up."""
        text = "\n".join(self.texts)
        for name in dict.fromkeys(re.findall(r"\bloops\(\)\.(\w+)", text)):
            loop = self.need("rushlight.fast.row_loops", name)
            self.texts.append(f"{self.need(OURS, 'LOOPS')}.{name} = {loop}")
        found = re.findall(r'\bloop_of\(\s*"(\w+)", "(.*?)", "(\w+)"(?: if .*? else "(\w+)")?', text)
        found = [(*key[:2], layout) for key in found for layout in key[2:] if layout]
        for key in dict.fromkeys([*found, *self.along]):
            self.generated(key)

    def generated(self, key: tuple[str, str, str]) -> None:
        """Write a loop of fast/row_text.py."""
        written, compiler = self.need(OURS, "WRITTEN"), self.need(OURS, "machine_code")
        text = loop_text(*key)
        for name in sorted({*re.findall(r"\b[a-z]\w*(?=[(),])", text)} & loop_names()):
            text = re.sub(rf"\b{name}\b", self.element("", name) or name, text)
        self.imports["from numpy import inf"] = None
        name = self.claim("_".join(filter(None, key)).replace(" ", "_"), ("loop", *key))
        self.texts.append(f"@{compiler}\n{text.replace('kernel', name, 1)}")
        self.texts.append(f"{written}[{key!r}] = {name}")

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
    loops = [looped(p) for p in programs]
    own = [text for p, texts in zip(programs, loops) for text in (*texts, p.memory, p.functions)]
    text = Module("\n".join([*own, *map(news, programs), ending, "SHAPES kernels WEIGHTS"]), stored is not None)
    for name in sorted(text.wanted & set(RUNTIME) - {*TYPES}):
        text.need("rushlight.compile.lower.runtime", name)
    for name in sorted(text.wanted - {*RUNTIME} | text.wanted & {*TYPES}):
        text.element("", name)
    if any(loops):
        text.need(OURS, "loop")
    names = dict.fromkeys(re.findall(r"\bkernels\.(\w+)", "\n".join(own)))
    kernels = [f"{name}={text.kernel(name)}" for name in names]
    text.loops()
    if stored is not None:
        text.need(OURS, "kept")
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
    for p, texts in zip(programs, loops):
        parts += [*texts, p.memory, p.functions, calling(p) if stored is None else news(p)]
    return "\n".join([*parts, ending])


def heading(title: str, text: Module, constants: list[str], kernels: bool, folder: bool) -> str:
    """The module's docstring and imports."""
    imports = {"import numpy as np": None, **text.imports}
    if any("b85decode(" in line for line in constants):
        imports["from base64 import b85decode"] = None
    if kernels:
        imports["from types import SimpleNamespace"] = None
    lines = sorted(imports, key=lambda s: (s.startswith("from"), s))
    if folder:
        lines.append("from . import WEIGHTS" + ", numba" * any("numba" in t for t in text.texts))
    return "\n".join(
        [
            f'"""{title}\n\nRuns with NumPy alone, its loops as machine code where there is Numba.\n"""',
            "from __future__ import annotations\n",
            *lines,
            f"from numpy import {', '.join(NUMPY)}",
        ]
    )


def looped(p: Parts) -> list[str]:
    """The texts of the loops, each after the NumPy function that replaces it without Numba."""
    return [
        f"\n{p.wholes.get(name, '')}"
        + "\n\n" * bool(p.wholes.get(name))
        + f"@loop({f'{name}_whole' if p.wholes.get(name) else 'None'})\n{text}"
        for name, text in p.loops.items()
    ]


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


def elements() -> set[str]:
    """The names of scalar functions."""
    return {*scalar_math.NAMES, *(f"{name}64" for name in scalar_math.NAMES)} - {"abs"}


def loop_names() -> set[str]:
    """The names that loops find as globals."""
    return {*INSTRUCTIONS, *TYPES, *REGISTERS} | elements()


def in_full(kernel: Any) -> Any:
    """The kernel without its conversion of 16-bit floats (kernels/float16.py)."""
    return getattr(kernel, "in_full", kernel)


def closure(function: Any) -> dict[str, Any]:
    cells = getattr(function, "__closure__", None) or ()
    return dict(zip(function.__code__.co_freevars, (c.cell_contents for c in cells))) if cells else {}


def kernel_modules() -> list[Any]:
    return [
        m
        for name, m in list(sys.modules.items())
        if name.startswith(("rushlight.kernels.", "rushlight.fast.")) and m is not None
    ]


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
