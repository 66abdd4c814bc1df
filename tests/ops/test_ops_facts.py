"""Facts of an op stand in its entry, or are registered by the op: nothing outside ops/ recognises an op by its name."""

import importlib.util
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from rushlight.amp import autocast_policy
from rushlight.base.lazy import complete
from rushlight.core.table import TABLE
from rushlight.func import batching_families

ROOT = Path(__file__).parents[2]
# kernels know no ops: names there are those of kernels; ways are registered by op and derivative
ALLOWED = (
    *("ops/", "kernels/", "fast/", "autograd/aten.py"),
    "archives/aten/",  # ATen's names of operators in torch's files
    # texts for readers, and warnings: no result depends on them
    *("viz/", "teaching/", "compile/lower/page_text.py"),
    # torch's names of ops in profiles; the formula of an op's operations
    *("profiler/torch_names.py", "utils/flop_counter.py"),
    # masked and compressed tensors receive functions, and look up their own by the function's name
    *("masked/", "sparse/compressed.py", "sparse/functions.py"),
    "core/tensor.py",  # FUNCTIONS_ONLY: functions that torch has no method for
)
complete()


def house_names():
    spec = importlib.util.spec_from_file_location("house_names", ROOT / "tools/house_names.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_comparison_with_a_name():
    found = [f"{p.file}:{p.line}: {p.name}" for p in house_names().places(TABLE) if not p.file.startswith(ALLOWED)]
    assert not found, "\n".join(["compare entries, or let the entry say it:", *found])


@pytest.mark.parametrize(
    "line",
    [
        'x = step.op == "mul"',
        'x = op.name in ("div", "mul")',
        'x = op.name in {"mul"}',
        'x = name != "mul"',
        'x = op.name.startswith("mul")',
        'T = {"mul": 1}\nx = T[op.name]',
        'T = dict.fromkeys(("mul",), 1)\nx = T.get(step.op)',
        'T: set = {"div", "mul"}\nx = step.op in T',
        '@rule("mul")\ndef f(): ...',
    ],
)
def test_comparisons_are_found(tmp_path, line):
    (tmp_path / "a.py").write_text(f"\n{line}\n")
    assert [p.name for p in house_names().places({"mul"}, tmp_path)] == ["mul"]


@pytest.mark.parametrize(
    "line",
    [
        'x = mode == "mul"',
        "x = op is mul.op",
        'x = call("mul", x)',
        '# A world: what names mean.\nT = {"mul": 1}\nx = T[name]',
    ],
)
def test_other_texts_are_not_found(tmp_path, line):
    (tmp_path / "a.py").write_text(f"\n{line}\n")
    assert not house_names().places({"mul"}, tmp_path)


def test_a_table_in_another_file_is_found(tmp_path):
    (tmp_path / "a.py").write_text('\nT = {"mul": 1}\n')
    (tmp_path / "b.py").write_text("from rushlight.a import T\nx = T[op.name]\n")
    assert [(p.file, p.name) for p in house_names().places({"mul"}, tmp_path)] == [("a.py", "mul")]


# -- words of entries ------------------------------------------------------------------------------


def with_word(word):
    return [op for op in TABLE.values() if word in op.options]


def numbers_for(op):
    """Arrays for the inputs, and numbers for the settings that have no default."""
    rng = np.random.default_rng(0)
    arrays = [rng.normal(0, 2, (3, 4)).astype(np.float32) for _ in op.inputs]
    if op.inputs[0] == "condition":
        arrays[0] = arrays[0] > 0
    settings = [op.defaults.get(name, value) for name, value in zip(op.settings, (-0.5, 0.5))]
    return arrays, settings


@pytest.mark.parametrize("op", [op for op in with_word("exact") if op.elementwise], ids=lambda op: op.name)
def test_exact_ops_round_nothing(op):
    arrays, settings = numbers_for(op)
    given = {abs(float(number)) for number in (*np.concatenate(arrays, None), *settings)}
    made = op.kernel(*arrays, *settings)
    assert made.dtype == np.float32
    assert all(abs(number) in given or number == int(number) for number in made.ravel().tolist())


def test_the_others_are_a_few_known_ones():
    assert {op.name for op in with_word("exact") if not op.elementwise} == {"amax", "amin", "clone", "to"}


@pytest.mark.parametrize("op", with_word("in_order"), ids=lambda op: op.name)
def test_views_in_order(op):
    settings = {
        "reshape": [(3, 2)],
        "view_as_shape": [(3, 2)],
        "flatten": [],
        "squeeze": [],
        "unsqueeze": [1],
        "unflatten": [1, (3, 1)],
    }[op.name]
    x = np.arange(6.0).reshape(2, 3)
    made = op.kernel(x, *settings)
    assert op.is_view
    assert np.shares_memory(x, made)
    assert made.ravel().tolist() == x.ravel().tolist()


def test_what_words_may_say():
    assert all(op.options["sizes"] in ("all", "leading") or callable(op.options["sizes"]) for op in with_word("sizes"))
    assert {op.options["batched"] for op in with_word("batched")} <= batching_families.WORDS.keys()
    assert all(op.elementwise and op.options["fused"] is False for op in with_word("fused"))


# -- what is registered by the op ------------------------------------------------------------------


@pytest.mark.parametrize("home", batching_families.RULE_FILES)
def test_files_of_batching_rules_are_loaded_for_their_ops(home):
    import_module(batching_families.RULE_FILES[home])
    assert any(op.forward.__module__ == home for op in batching_families.SPECIAL)


def test_functions_of_autocast_exist():
    found = {name for space in autocast_policy.originals().values() for name in space}
    assert (
        found | {autocast_policy.convolution.__name__} == autocast_policy.POLICIES.keys()
    )  # nobody calls this one by name
