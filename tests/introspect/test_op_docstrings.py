"""Docstrings and signatures derived from the table: there, true, read like torch's, and free until they are read."""

from __future__ import annotations

import ast
import copy
import doctest
import inspect
import io
import pickle
import pydoc
import re
import subprocess
import sys
import types
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import rushlight
import rushlight.nn.functional
from rushlight import Tensor
from rushlight.base.docstring import Docstring
from rushlight.core import build
from rushlight.core.mode import Watcher, current, mode
from rushlight.core.table import TABLE
from rushlight.introspect import op_docstrings
from rushlight.kernels.elementwise import scipy_function
from tests.support.paths import ROOT


def users():
    """{path: function or method made from an entry} that users can call."""
    dir(rushlight)  # loads all that is loaded later
    found = {
        f"rushlight.{name}": f
        for name, f in [*vars(rushlight).items()]
        if not isinstance(f, types.ModuleType) and hasattr(f, "op")
    }  # torch.classes has all names
    return found | {f"Tensor.{name}": f for name, f in vars(Tensor).items() if hasattr(f, "op")}


USERS = users()
PUBLIC_OPS = {f.op.name: f.op for f in USERS.values()}


# -- all that is public has a docstring


def public_names():
    found = {}
    for name in dir(rushlight):
        try:
            value = getattr(rushlight, name)
        except ImportError:
            continue  # a package that is not there yet
        if isinstance(value, types.ModuleType) and not value.__name__.startswith("rushlight"):
            continue  # Python's own, such as warnings, which has no docstring in Python 3.14
        if not name.startswith("_") and (callable(value) or isinstance(value, types.ModuleType)):
            found[f"rushlight.{name}"] = value
    for name, value in vars(Tensor).items():
        if not name.startswith("_") and not isinstance(value, types.MemberDescriptorType):  # the class tells of slots
            found[f"Tensor.{name}"] = value
    return found


def test_every_public_name_has_a_docstring():
    assert [name for name, value in public_names().items() if not inspect.getdoc(value)] == []


@pytest.mark.parametrize("name", TABLE)
def test_an_entry_is_documented(name):
    op = TABLE[name]
    text = op_docstrings.text(op)
    assert "\n\n" in text
    assert "  d " not in text.partition("Gradient")[0]
    for x, rule in op.rules.items():
        assert (f"\n    d {op_docstrings.public(op, x)}: " in text) == (rule is not None)
    assert "None" not in text.partition("Gradient")[0].partition("\n")[0]
    assert max(map(len, text.split("\n"))) < 160


@pytest.mark.parametrize("name", PUBLIC_OPS)
def test_what_users_see_shows_a_formula_and_an_example(name):
    text = op_docstrings.text(PUBLIC_OPS[name])
    assert " = " in text.partition("\n")[0]
    assert "\n>>> " in text, f"no example fits all ops of the family: give {name} one in docs.py of its subject"
    says = op_docstrings.sentence(PUBLIC_OPS[name])
    assert not says or says.endswith(".")


@pytest.mark.parametrize("path", USERS)
def test_the_examples_are_true(path):
    test = doctest.DocTestParser().get_doctest(USERS[path].__doc__, {"rushlight": rushlight}, path, None, 0)
    out = io.StringIO()
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(test, out=out.write)
    assert runner.failures == 0, out.getvalue()


def test_a_docstring_reads_well():
    assert (
        inspect.getdoc(rushlight.mul)
        == """\
out = input * other

The product.

Shapes: `input` and `other` broadcast to out's. Dtype: promoted as in torch. Also called
multiply. In place: mul_.

TypeError if `input` or `other` is neither tensor nor number; RuntimeError where shapes
do not broadcast.

Gradient, g being that of out:
    d input: g * other
    d other: g * input

>>> rushlight.mul(rushlight.tensor([1., 2., 3.]), rushlight.tensor([3., 2., 1.]))
tensor([3., 4., 3.])"""
    )


def test_the_form_that_writes_says_so():
    text = inspect.getdoc(Tensor.mul_)
    assert text.startswith("input = mul(input, other)\n\n`mul`, written back into the tensor, which is returned.")
    assert "leaf that requires grad" in text
    assert ">>> x.mul_(" in text


def test_help_shows_signature_and_formula():
    shown = pydoc.plain(pydoc.render_doc(rushlight.amax))
    assert "\namax(input, dim=None, keepdim=False, *, dtype=None, out=None)\n    out = largest over `dim`" in shown
    assert "evenly(mask, dims, g): 1 / count where the mask is true" in shown


# -- what the docstrings claim


def given(op, first):
    """Arguments for a call of a public op, with `first` in the place of the first tensor."""
    known = {
        "tensors": [first],
        "dim": 0,
        "new_dim": 0,
        "dim0": 0,
        "dim1": 0,
        "dims": (0,),
        "shape": (2,),
        "start": 0,
        "length": 1,
        "index": rushlight.tensor([0]),
        "k": 1,
        "n": 1,
    }
    rest = {name: known.get(name, rushlight.ones(2)) for name in op_docstrings.in_order(op) if name not in op.defaults}
    rest["x" if "x" in rest else "tensors"] = [first] if "tensors" in rest else first
    return [rest[name] for name in op_docstrings.in_order(op) if name in rest]


@pytest.mark.parametrize("name", PUBLIC_OPS)
def test_what_is_no_tensor_is_a_type_error(name):
    with pytest.raises(TypeError):
        PUBLIC_OPS[name].call(*given(PUBLIC_OPS[name], "seven"))


@pytest.mark.parametrize("name", [n for n in PUBLIC_OPS if "IndexError for a dim" in op_docstrings.text(PUBLIC_OPS[n])])
def test_a_dimension_that_is_not_there_is_an_index_error(name):
    op = PUBLIC_OPS[name]
    dims = [op_docstrings.public(op, n) for n in op.settings if n in op_docstrings.ROLES and "dim" in n][:1]
    names = [op_docstrings.public(op, n) for n in op_docstrings.in_order(op)]
    arguments = dict(zip(names, given(op, rushlight.ones(2)))) | {dims[0]: (7,) if dims[0] == "dims" else 7}
    with pytest.raises(IndexError):
        op.call(**arguments)


@pytest.mark.parametrize("name", [n for n in PUBLIC_OPS if "no elements" in op_docstrings.text(PUBLIC_OPS[n])])
def test_nothing_to_reduce_is_an_error(name):
    text = op_docstrings.text(PUBLIC_OPS[name])
    with pytest.raises(IndexError if "IndexError if there are no elements" in text else RuntimeError):
        PUBLIC_OPS[name].call(rushlight.ones(0))


# -- signatures


def test_signatures_have_torchs_names():
    shown = {path: str(inspect.signature(USERS[path])) for path in USERS}
    assert shown["rushlight.sum"] == "(input, dim=None, keepdim=False, *, dtype=None, out=None)"
    assert shown["rushlight.sin"] == "(input, *, out=None)"
    assert shown["rushlight.cummax"] == "(input, dim, *, out=None)"
    assert shown["rushlight.unsqueeze"] == "(input, dim)"
    assert shown["rushlight.permute"] == "(input, *dims)"
    assert shown["Tensor.lerp_"] == "(input, end, weight)"
    assert str(inspect.signature(rushlight.ones(2).amax)) == "(dim=None, keepdim=False, *, dtype=None, out=None)"


def test_parameters_are_called_as_in_torch(torch):
    """torch's own stubs list its overloads; ours must begin like one of them."""
    stubs = ast.parse((Path(torch.__file__).parent / "_C" / "_VariableFunctions.pyi").read_text())
    known = {}
    for node in stubs.body:
        if isinstance(node, ast.FunctionDef):
            names = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
            known.setdefault(node.name, []).append(names + ([node.args.vararg.arg] if node.args.vararg else []))
    other = {}
    for path, function in USERS.items():
        name = path.removeprefix("rushlight.")
        names = [p.name for p in inspect.signature(function).parameters.values() if p.kind is not p.KEYWORD_ONLY]
        if name in known and not any(names[: len(theirs)] == theirs for theirs in known[name]):
            other[name] = names
    assert other == {}


@pytest.mark.parametrize("path", USERS)
def test_a_signature_is_what_can_be_called(path):
    op, writes = USERS[path].op, USERS[path].__name__.endswith("_")
    taken = inspect.signature(USERS[path])
    assert ("out" in taken.parameters) == (not writes and op_docstrings.family(op) != "view")
    assert [p.name for p in taken.parameters.values() if p.kind is not p.KEYWORD_ONLY] == [
        op_docstrings.public(op, name) for name in op_docstrings.in_order(op)
    ]


def test_the_source_of_a_function_is_its_entry():
    source = " ".join(inspect.getsource(rushlight.sin).split())
    assert source == "sin = floating(lambda x, /: sin(x), x=lambda g, x: g * cos(x))"


# -- documentation costs nothing until it is read, and reading leaves no trace


def test_import_loads_no_documentation():
    code = "import sys, rushlight; rushlight.ones(2).sin().sum(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "rushlight.base.docstring" in loaded
    assert not loaded & {f"rushlight.introspect.{name}" for name in ("op_docstrings", "formulas")}
    assert not [name for name in loaded if name.startswith("rushlight.ops.") and ".doc" in name]


def test_texts_stand_in_the_folder_of_the_entry():
    for path in Path(rushlight.ops.__path__[0]).glob("*/docs.py"):
        folder = f"rushlight.ops.{path.parent.name}"
        for name in import_module(f"{folder}.docs").TEXTS:
            assert TABLE[name].forward.__module__.startswith(f"{folder}."), name


def test_reading_is_not_recorded():
    class Seen(Watcher):
        def on_op(self, op, args, out):
            raise AssertionError(op)

    with rushlight.no_grad():
        token = current.set(mode().but(watch=Seen()))
        try:
            assert "tensor([" in rushlight.exp.__doc__
        finally:
            current.reset(token)


def test_reading_leaves_the_random_stream_alone():
    before = np.asarray(rushlight.random.get_rng_state()).tobytes()
    for op in PUBLIC_OPS.values():
        op_docstrings.text(op)
    assert np.asarray(rushlight.random.get_rng_state()).tobytes() == before


def test_an_example_without_scipy_is_left_out(monkeypatch):
    scipy_function.cache_clear()
    monkeypatch.setitem(sys.modules, "scipy", None)
    # erf may have a compiled loop, which needs no SciPy, from another test
    ndtr = rushlight.special.ndtr.__doc__
    assert "Gradient" in ndtr
    assert ">>>" not in ndtr


# -- a docstring that is written when it is read is a str to those who read it


def test_a_docstring_is_like_its_text():
    doc = rushlight.tanh.__doc__
    text = op_docstrings.text(TABLE["tanh"])
    assert isinstance(doc, str)
    assert type(doc) is Docstring
    assert doc == text
    assert text == doc
    assert hash(doc) == hash(text)
    assert (str(doc), repr(doc), f"{doc}", len(doc)) == (text, repr(text), text, len(text))
    assert "%s" % doc == text  # noqa: UP031
    assert "a" + doc + "b" == "a" + text + "b"
    assert doc[:9] == text[:9]
    assert list(doc) == list(text)
    assert "1 - out * out" in doc
    assert doc.splitlines() == text.splitlines()
    assert inspect.cleandoc(doc) == inspect.cleandoc(text)


def test_a_copy_of_a_docstring_is_plain_text():
    for other in (copy.copy, copy.deepcopy, lambda doc: pickle.loads(pickle.dumps(doc))):
        assert type(other(rushlight.tanh.__doc__)) is str


def test_what_c_reads_tells_where_to_look():
    assert "".join([rushlight.tanh.__doc__]) == "tanh: written when it is read, as by help(rushlight.tanh)"


def test_formulas_name_what_users_know():
    gather = op_docstrings.text(TABLE["gather"])
    assert "d input: scatter_add(zeros(input.shape, g), dim, index, g)" in gather  # in the users' order
    assert "g.values" in op_docstrings.text(TABLE["sort"])
    assert "n: how many elements make one of out's" in op_docstrings.text(TABLE["mean"])


# -- the pages about the code

PAGES = {path.name: path.read_text() for path in [ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]}
PLACES = [
    (page, name, file)
    for page, text in PAGES.items()
    for name, file in re.findall(r"`(\w+)`[^`.;:]* in\s+`([\w/]+\.py)`", text)
]


@pytest.mark.parametrize(("page", "name", "file"), PLACES)
def test_the_places_that_pages_name_are_there(page, name, file):
    path = next(p for p in (ROOT / "rushlight" / file, ROOT / file) if p.exists())
    top = ast.parse(path.read_text()).body
    names = {getattr(node, "name", None) for node in top} | {
        target.id
        for node in top
        if isinstance(node, (ast.Assign, ast.AnnAssign))
        for target in getattr(node, "targets", None) or [node.target]
        if isinstance(target, ast.Name)
    }
    assert name in names


@pytest.mark.parametrize("page", PAGES)
def test_the_files_that_pages_name_are_there(page):
    for file in re.findall(r"`([\w/]+/[\w/]*\.?(?:py|md)?)`", PAGES[page]):
        assert any((place / file).exists() for place in (ROOT / "rushlight", ROOT, ROOT / "docs")), file


def test_the_page_explains_every_word_of_the_table():
    words = {name for name, value in vars(build).items() if getattr(value, "__qualname__", "") == "entry.<locals>.make"}
    explained = {
        word
        for row in re.findall(r"^\| (`.*?) \|", PAGES["add-an-op.md"], re.MULTILINE)
        for word in re.findall(r"`(\w+)`", row)
    }
    assert explained == words


ADDED = """
import re, sys, textwrap
from pathlib import Path
import numpy as np
import rushlight
from rushlight.core.build import build, floating, general, op, predicate, product, real_valued, reduction, view
from rushlight.kernels.elementwise import ndarray
from rushlight.core.worlds import ARRAYS

page = Path(sys.argv[1]).read_text().partition("## In rushlight")[2]
line, kernel = re.findall("```python\\n(.*?)```", page, re.DOTALL)
if sys.argv[2] == "kernel":
    exec(textwrap.dedent(kernel))
    ARRAYS["log_cosh"] = log_cosh
exec(line)
build(globals())
x = rushlight.tensor([0.5, -1.0, 1000.0], dtype=rushlight.float64, requires_grad=True)
assert rushlight.autograd.gradcheck(log_cosh, x[:2].detach().requires_grad_())
assert rushlight.autograd.gradgradcheck(log_cosh, x[:2].detach().requires_grad_())
assert np.isinf(log_cosh(x)[2].item()) == (sys.argv[2] != "kernel")
x = x.detach()
assert x.clone().log_cosh_().equal(log_cosh(x, out=rushlight.empty(3, dtype=rushlight.float64)))
assert log_cosh(rushlight.arange(3)).dtype is rushlight.float32
rushlight.log_cosh = log_cosh                     # as the package does, were the line in its file
assert "out = log(cosh(input))" in log_cosh.__doc__ and "d input: g * tanh(input)" in log_cosh.__doc__
assert ">>> " in log_cosh.__doc__
"""


@pytest.mark.parametrize("computed", ["formula", "kernel"])
def test_an_op_is_added_as_the_page_says(computed):
    page = ROOT / "docs" / "add-an-op.md"
    done = subprocess.run([sys.executable, "-c", ADDED, page, computed], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
