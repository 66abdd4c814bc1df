"""In a notebook, an error names the cell and the line in it."""

import linecache
import sys
from types import SimpleNamespace

import pytest

import rushlight


def run(file, program):
    """The message of the error of a cell's program."""
    linecache.cache[file] = (len(program), None, program.splitlines(True), file)
    with pytest.raises(RuntimeError) as caught:
        exec(compile(program, file, "exec"), {"torch": rushlight})
    return str(caught.value)


PROGRAM = "x = torch.ones(2, 3)\nx @ x\n"


@pytest.fixture
def notebook(monkeypatch):
    """A stand-in for IPython's shell in which the file /tmp/cell.py is the cell In [2]."""
    labels = {"/tmp/cell.py": ("Cell", "In[2]")}
    shell = SimpleNamespace(compile=SimpleNamespace(format_code_name=labels.get))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))


def test_the_cell_is_named(notebook):
    assert "\n  at: cell 2, line 2: x @ x" in run("/tmp/cell.py", PROGRAM)


def test_files_keep_their_names(notebook):
    assert "\n  at: /tmp/other.py:2: x @ x" in run("/tmp/other.py", PROGRAM)


def test_cells_of_older_versions(notebook):
    assert "\n  at: cell 7, line 2: x @ x" in run("<ipython-input-7-0123456789ab>", PROGRAM)


def test_without_a_shell(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    assert "\n  at: /tmp/cell.py:2: x @ x" in run("/tmp/cell.py", PROGRAM)


def test_where_a_tensor_was_made(notebook):
    program = "x = torch.ones(2, requires_grad=True)\ny = (x * 2).exp()\ny.backward()"
    assert "\n  at: cell 2, line 3: y.backward()" in run("/tmp/cell.py", program)


@pytest.mark.exhaustive
def test_a_real_notebook():
    """The message that a kernel sends (nbclient and ipykernel, where they are installed)."""
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    cells = ["import rushlight as torch", "x = torch.ones(2, 3)\nx @ x"]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(book, allow_errors=True, timeout=120).execute()
    (output,) = book.cells[1].outputs
    assert "\n  at: cell 2, line 2: x @ x" in output.evalue
    assert len(output.traceback) < 6
