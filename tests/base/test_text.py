"""Generated functions: one `define` for all of them, and their lines where debuggers look for lines."""

from __future__ import annotations

import ast
import gc
import inspect
import io
import linecache
import pdb
import traceback
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import rushlight
from rushlight.base.errors import ours
from rushlight.base.text import GENERATED, define
from rushlight.compile import programs
from rushlight.compile.capture import input_sources
from rushlight.core import backward_call, call
from rushlight.core.table import TABLE
from rushlight.fx.graph_module import compiled as compiled_graph
from rushlight.ops.tensor import torch_function
from rushlight.optim.program import program

PACKAGE = Path(rushlight.__file__).parent

# The only other files that call exec, eval or compile, and what for.
ELSEWHERE = {
    "base/text.py": "define",
    "base/specialise.py": "a syntax tree: the call and the backward of an op",
    "compat/run.py": "the cells of the user's notebook",
    "compile/export/module_text.py": "compiles a syntax tree to compare its code",
    "compile/capture/syntax.py": "the user's function, from its changed syntax tree",
    "demo/lessons/runner.py": "the cells of a student's notebook, in a process of their own",
    "fast/backward_chains.py": "an expression over a block of elements",
    "viz/graph_formulas.py": "the condition of a formula",
}


def callers(path):
    """The names among exec, eval and compile that a file calls and does not define itself."""
    tree = ast.parse(path.read_text())
    own = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    return (called & {"exec", "eval", "compile"}) - own


def test_only_define_compiles_text():
    found = {str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py") if callers(path)}
    assert found == set(ELSEWHERE)


# -- the lines of each kind of generated function --------------------------------------------------


def where_call():
    return call.function_of(TABLE["where"])


def backward(world):
    def made():
        x = rushlight.ones(3, requires_grad=True)
        rushlight.autograd.grad(x.tanh().sum(), x, create_graph=world == "tensors")
        return getattr(TABLE["tanh"].node_class, world)

    return made


def saved():
    return TABLE["cat"].save


def momentum(p, g, buf, /, lr, mu):
    buf = mu * buf + g
    return p - lr * buf, buf


def optimizer(part):
    return lambda: getattr(program(momentum, (True, True, True), (True, True)), part)


def compiled():
    """A compiled function's program and its guards, after enough calls for the fast entry."""
    scale = rushlight.ones(3)
    f = rushlight.compile(lambda x: (x * scale).sum(), backend="loops")
    for _ in range(6):
        f(rushlight.ones(3))
    return f


def of_program(get):
    def made():
        f = compiled()
        (program,) = programs(f)
        return {"program": program.forward.call, "guards": program.holds, "entry": f.enter}[get]

    return made


def traced():
    return compiled_graph("def forward(self, x):\n    return x + 1\n", {}, "Net")


KINDS = {
    "call": where_call,
    "backward on arrays": backward("arrays"),
    "backward on tensors": backward("tensors"),
    "what a node saves": saved,
    "optimizer, numbers": optimizer("numbers"),
    "optimizer, update": optimizer("update"),
    "program": of_program("program"),
    "guards": of_program("guards"),
    "entry": of_program("entry"),
    "inputs": lambda: input_sources.picker([("argument", 0)]),
    "fx": traced,
    "gate": lambda: torch_function.gate_of(("a", "b")),
}


@pytest.mark.parametrize("kind", KINDS)
def test_linecache_has_the_lines(kind):
    function = KINDS[kind]()
    code = function.__code__
    assert linecache.getline(code.co_filename, code.co_firstlineno).startswith("def ")
    linecache.checkcache(code.co_filename)
    assert inspect.getsource(function).startswith("def ")
    last = max(line for _, _, line in code.co_lines() if line is not None)
    assert linecache.getline(code.co_filename, last).strip()
    assert ours(code.co_filename) == (kind != "fx"), "whose frame it is: a traced module is the user's"


def lines_of(error):
    """{file name of the code: line shown} of a traceback."""
    return {frame.filename: frame.line for frame in traceback.extract_tb(error.__traceback__)}


def test_a_traceback_shows_the_line_of_a_call(monkeypatch):
    monkeypatch.setenv("RUSHLIGHT_TRACEBACK", "full")
    with pytest.raises(RuntimeError) as raised:
        rushlight.ones(2, 3).reshape(7)
    shown = lines_of(raised.value)
    assert shown[call.__file__] == "return fallback(op, values, error, out)"
    cause = lines_of(raised.value.__context__)
    assert cause[call.__file__].startswith("result = kernel(")


def test_a_traceback_shows_the_line_of_a_backward():
    x = rushlight.ones(3, requires_grad=True)
    node = x.tanh()._node
    node.saved = (None,)
    with pytest.raises(TypeError) as raised:
        node.arrays(np.ones(3))
    assert lines_of(raised.value)[backward_call.__file__].startswith("grad[name] = rule[name](g")


def test_a_traceback_shows_the_line_of_an_optimizer():
    with pytest.raises(ValueError, match="broadcast") as raised:
        optimizer("update")()(np.ones(2), np.ones(3), np.ones(2), np.ones(2), 0.1, 0.9)
    assert any("(" in line for file, line in lines_of(raised.value).items() if file.startswith(GENERATED))


def test_a_debugger_steps_into_a_call():
    out = io.StringIO()
    debugger = pdb.Pdb(stdin=io.StringIO("longlist\ncontinue\n"), stdout=out, nosigint=True, readrc=False)
    debugger.use_rawinput = False
    x = rushlight.ones(3)
    debugger.runcall(where_call(), TABLE["where"].kernel, (x > 0, x, x), {}, None)
    assert "result = kernel(*[array[name]" in out.getvalue()


# -- define ----------------------------------------------------------------------------------------


def generated():
    return {name for name in [*linecache.cache] if "of this test" in name}


def test_texts_go_with_their_functions():
    for i in range(10_000):
        made = define(f"def f():\n    return {i}\n", "f", {}, f"number {i % 7} of this test")
        assert made() == i
    assert len(generated()) == 1
    assert linecache.getline(made.__code__.co_filename, 2) == "    return 9999\n"
    del made
    gc.collect()
    assert not generated()


def test_a_traceback_keeps_its_lines():
    def failed():
        try:
            define("def f():\n    return 1 / 0\n", "f", {}, "failure of this test")()
        except ZeroDivisionError as error:
            return error

    error = failed()
    gc.collect()
    assert traceback.extract_tb(error.__traceback__)[-1].line == "return 1 / 0"


def test_a_title_in_use_gets_a_number(monkeypatch):
    monkeypatch.setattr(linecache, "cache", dict(linecache.cache))  # other tests read lines, too
    one, two = (define(f"def f():\n    return {i}\n", "f", {}, "twin of this test") for i in (1, 2))
    assert one.__code__.co_filename == "<rushlight twin of this test>"
    assert one.__code__.co_filename != two.__code__.co_filename
    assert [linecache.getline(f.__code__.co_filename, 2) for f in (one, two)] == ["    return 1\n", "    return 2\n"]
    linecache.clearcache()
    three = define("def f():\n    return 3\n", "f", {}, "twin of this test")
    del one
    assert linecache.getline(three.__code__.co_filename, 2) == "    return 3\n", "an older text does not take it away"


def test_threads_get_texts_of_their_own():
    def make(i):
        return define(f"def f():\n    return {i}\n", "f", {}, "thread of this test")

    with ThreadPoolExecutor(8) as pool:
        made = [*pool.map(make, range(200))]
    assert len({f.__code__.co_filename for f in made}) == 200
    for i, f in enumerate(made):
        assert linecache.getline(f.__code__.co_filename, 2) == f"    return {i}\n"


def test_define_keeps_nothing_of_the_function_alive():
    made = define("def f():\n    return 1\n", "f", {}, "life of this test")
    alive = weakref.ref(made)
    del made
    gc.collect()
    assert alive() is None
