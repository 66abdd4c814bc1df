"""Hostile .pt2 archives: each is refused with a clear error, in 5 s and 500 MB, and nothing of it is executed."""

from __future__ import annotations

import copy
import io
import json
import sys
import zipfile
from pathlib import Path

import pytest

import rushlight
from rushlight.archives.pt2 import program
from rushlight.serialization.archive import Damaged

sys.path.insert(0, str(Path(__file__).parents[2] / "fuzz"))
import files as fuzz_files

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are those of Linux")
MODEL, WEIGHTS = "models/model.json", "data/weights/model_weights_config.json"
BIG = (2**31, 2**40, 2**60, 2**63, 2**70, -1)


def good():
    """The records of a good archive by their names."""
    rushlight.manual_seed(0)
    model = rushlight.nn.Sequential(rushlight.nn.Linear(3, 2), rushlight.nn.BatchNorm1d(2), rushlight.nn.ReLU()).eval()
    file = io.BytesIO()
    rushlight.export.save(rushlight.export.export(model, (rushlight.ones(2, 3),)), file)
    with zipfile.ZipFile(file) as archive:
        return {name.partition("/")[2]: archive.read(name) for name in archive.namelist()}


RECORDS = good()


def archive(folder="a/", **changed):
    """The bytes of an archive with other records; None leaves a record out."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        for name, content in {**RECORDS, **changed}.items():
            if content is not None:
                made.writestr(folder + name, content)
    return file.getvalue()


def changed(record, value, *path):
    """An archive whose JSON has another value at a place; a function changes the old value."""
    root = json.loads(RECORDS[record])
    at = root
    for part in path[:-1]:
        at = at[part]
    at[path[-1]] = value(copy.deepcopy(at[path[-1]])) if callable(value) else value
    return archive(**{record: json.dumps(root)})


GRAPH = ("graph_module", "graph")
NODE = (*GRAPH, "nodes", 0)
SIGNATURE = ("graph_module", "module_call_graph", 0, "signature")
META = ("config", "0.weight", "tensor_meta")
WRONG = {"a text": "x", "a number": 7, "a list": [], "nothing": None, "an object": {}, "a deep list": [[[[[]]]]]}
PLACES = {
    "the graph": GRAPH, "the nodes": (*GRAPH, "nodes"), "a node": NODE, "a target": (*NODE, "target"),
    "the inputs of a node": (*NODE, "inputs"), "an argument": (*NODE, "inputs", 0, "arg"),
    "the name of a tensor": (*NODE, "inputs", 0, "arg", "as_tensor"), "the results": (*NODE, "outputs"),
    "the inputs": (*GRAPH, "inputs"), "the outputs": (*GRAPH, "outputs"), "the types": (*GRAPH, "tensor_values"),
    "the signature": ("graph_module", "signature"), "a specification": ("graph_module", "signature", "input_specs", 0),
    "the module": ("graph_module",), "the version": ("schema_version",), "the structure": (*SIGNATURE, "in_spec"),
    "the result's structure": (*SIGNATURE, "out_spec"), "the calls": ("graph_module", "module_call_graph"),
}  # fmt: skip
HARMLESS = {("the inputs of a node", "a list")}  # known when the operator runs


def hostile():
    """(name, bytes) of the files."""
    whole = archive()
    yield from ((f"cut at {i}", whole[: len(whole) * i // 12]) for i in range(12))
    for place, path in PLACES.items():
        for name, value in WRONG.items():
            if (place, name) not in HARMLESS:
                yield f"{name} as {place}", changed(MODEL, value, *path)
    yield from targets()
    yield from graphs()
    yield from weights()
    yield from texts()


def targets():
    """Functions that a program may not call."""
    for target in (
        "os.system", "builtins.eval", "builtins.exec", "torch.load", "torch.ops.aten.load.default", "torch.ops.aten.from_file.default",
        "torch.ops.aten.__class__.default", "torch.ops.aten.add", "torch.ops.aten", "torch.ops.os.system.default",
        "torch.ops.aten.add.Tensor.__globals__", "_operator.attrgetter", "_operator.methodcaller", "rushlight.load",
        "torch.ops.higher_order.wrap", "torch.hub.load", "torch.ops.aten.numpy.default", "subprocess.run", "../x", "",
    ):  # fmt: skip
        yield f"the target {target!r}", changed(MODEL, target, *NODE, "target")


def graphs():
    """Graphs that cannot run, or without end."""
    own = {"as_tensor": {"name": "linear"}}
    yield "a step that reads its own result", changed(MODEL, own, *NODE, "inputs", 0, "arg")
    later = {"as_tensor": {"name": "relu"}}
    yield "steps in a circle", changed(MODEL, later, *NODE, "inputs", 0, "arg")
    yield "a value that is made twice", changed(MODEL, lambda nodes: nodes + nodes, *GRAPH, "nodes")
    yield "a million nodes", changed(MODEL, lambda nodes: nodes * 10**5, *GRAPH, "nodes")
    yield "no nodes", changed(MODEL, [], *GRAPH, "nodes")
    yield "an output that is missing", changed(MODEL, {"as_tensor": {"name": "z"}}, *GRAPH, "outputs", 0)
    yield "an input twice", changed(MODEL, lambda inputs: inputs + inputs[:1], *GRAPH, "inputs")
    for n in BIG[3:5]:
        yield f"the integer {n}", changed(MODEL, {"as_int": n}, *NODE, "inputs", 2, "arg")
    for kind in ("as_custom_obj", "as_operator", "as_nested_tensors", "as_pickle", "__class__"):
        yield f"an argument {kind}", changed(MODEL, {kind: "os.system"}, *NODE, "inputs", 0, "arg")
    yield "two kinds of an argument", changed(MODEL, {"as_int": 1, "as_none": True}, *NODE, "inputs", 0, "arg")
    yield "a dtype that is missing", changed(MODEL, {"as_scalar_type": 999}, *NODE, "inputs", 0, "arg")
    inner: dict = {"as_graph": {"name": "g", "graph": json.loads(RECORDS[MODEL])["graph_module"]["graph"]}}
    for _ in range(20):
        graph = copy.deepcopy(inner["as_graph"]["graph"])
        graph["nodes"][0]["inputs"][0]["arg"] = inner
        inner = {"as_graph": {"name": "g", "graph": graph}}
    yield "graphs in graphs", changed(MODEL, inner, *NODE, "inputs", 0, "arg")
    for name in ("__class__", "", "forward", "a..b", "_plan", "__dict__.x", "0", "0.training", "0._parameters"):
        yield f"the parameter {name!r}", renamed(name)
    spec = ("graph_module", "signature", "output_specs", 0)
    yield (
        "a write to a buffer that is missing",
        changed(MODEL, {"buffer_mutation": {"arg": {"name": "relu"}, "buffer_name": "z"}}, *spec),
    )
    yield "a result of another kind", changed(MODEL, {"loss_output": {"arg": {"name": "relu"}}}, *spec)
    for kind in ("builtins.object", "os.environ", "torch.Size", "builtins.set"):
        text = json.dumps([1, {"type": kind, "context": "null", "children_spec": []}])
        yield f"a structure of {kind}", changed(MODEL, text, *SIGNATURE, "out_spec")
    deep = '{"type": "builtins.list", "context": "null", "children_spec": [' * 200 + "]}" * 200
    yield "deep structures", changed(MODEL, f"[1, {deep}]", *SIGNATURE, "in_spec")
    for major in (7, 9, 2**70, -1, "8", None):
        yield f"schema {major}", changed(MODEL, major, "schema_version", "major")


def renamed(name):
    """An archive in which a parameter has another name."""
    config = json.loads(RECORDS[WEIGHTS])
    config["config"][name] = config["config"].pop("0.weight")
    model = json.loads(RECORDS[MODEL])
    model["graph_module"]["signature"]["input_specs"][0]["parameter"]["parameter_name"] = name
    return archive(**{WEIGHTS: json.dumps(config), MODEL: json.dumps(model)})


def weights():
    """Weights of other sizes, from elsewhere, or as pickles."""
    for n in BIG:
        yield f"a size of {n}", changed(WEIGHTS, [{"as_int": n}], *META, "sizes")
        yield f"sizes of {n} and 0", changed(WEIGHTS, [{"as_int": n}, {"as_int": 0}, {"as_int": n}], *META, "sizes")
        yield f"a stride of {n}", changed(WEIGHTS, [{"as_int": n}, {"as_int": 1}], *META, "strides")
        yield f"an offset of {n}", changed(WEIGHTS, {"as_int": n}, *META, "storage_offset")
    for path in ("../weight_0", "/etc/passwd", "weight_0/../../x", "weight_999", "", 7, None):
        yield f"memory at {path!r}", changed(WEIGHTS, path, "config", "0.weight", "path_name")
    yield "a weight as a pickle", changed(WEIGHTS, True, "config", "0.weight", "use_pickle")
    yield "a weight without a type", changed(WEIGHTS, None, *META)
    yield "a weight of another dtype", changed(WEIGHTS, 999, *META, "dtype")
    yield "a weight of doubles", changed(WEIGHTS, 8, *META, "dtype")
    yield (
        "a size that is an expression",
        changed(WEIGHTS, [{"as_expr": {"expr_str": "__import__('os').system('true')"}}, {"as_int": 3}], *META, "sizes"),
    )
    yield "no weights", changed(WEIGHTS, {}, "config")


def texts():
    """Records of other content, in other places, or missing."""
    for record in (MODEL, WEIGHTS, "data/weights/weight_0"):
        yield f"without {record}", archive(**{record: None})
        yield f"{record} empty", archive(**{record: b""})
    yield "JSON that is no JSON", archive(**{MODEL: b"import os"})
    yield "JSON that is not UTF-8", archive(**{MODEL: b"\xff\xfe{}"})
    yield "deep JSON", archive(**{MODEL: b"[" * 10**6})
    yield "wide JSON", archive(**{MODEL: b"[" + b"[]," * 10**7 + b"[]]"})
    yield "a number of a million digits", archive(**{MODEL: b"9" * 10**6})
    yield "a pickle as JSON", archive(**{MODEL: b"\x80\4cos\nsystem\nX\4\0\0\0true\x85R."})
    yield "names that climb", archive(**{"../../evil": b"x"})
    yield "names from the root", archive(folder="/a/")
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as bomb:
        for name, content in {**RECORDS, MODEL: b" " * 10**9}.items():
            bomb.writestr("a/" + name, content)
    yield "JSON of a gigabyte", file.getvalue()
    yield "text", b"hello, this is no archive"
    yield "nothing", b""


FILES = dict(hostile())


def test_there_are_a_hundred():
    assert len(FILES) >= 100


def test_the_archive_itself_is_good():
    assert rushlight.export.load(io.BytesIO(archive())).module()(rushlight.ones(2, 3)).shape == (2, 2)


def refused(name):
    with fuzz_files.limited(), pytest.raises((Damaged, NotImplementedError, EOFError)):
        rushlight.export.load(io.BytesIO(FILES[name]))


@LINUX
@pytest.mark.parametrize("name", FILES)
def test_a_hostile_file_is_refused(name, monkeypatch):
    refused(name)  # imports modules, which runs code

    def ran(*_):
        pytest.fail("code ran")

    for place in ("builtins.exec", "builtins.eval", "os.system"):
        monkeypatch.setattr(place, ran)
    monkeypatch.setattr(program.Steps, "run", ran)
    refused(name)


def test_a_hostile_example_is_not_executed():
    """The example inputs of an archive are a pickle: only tensors and containers are read."""
    content = archive(**{"data/sample_inputs/model.pt": b"\x80\2cos\nsystem\nX\4\0\0\0true\x85R."})
    assert rushlight.export.load(io.BytesIO(content)).example_inputs is None


@LINUX
def test_a_program_that_makes_huge_tensors_is_stopped():
    model = json.loads(RECORDS[MODEL])
    node = model["graph_module"]["graph"]["nodes"][0]
    node["target"] = "torch.ops.aten.zeros.default"
    node["inputs"] = [{"name": "size", "arg": {"as_ints": [2**20, 2**20]}, "kind": 1}]
    loaded = rushlight.export.load(io.BytesIO(archive(**{MODEL: json.dumps(model)}))).module()
    with fuzz_files.limited(), pytest.raises(rushlight.archives.LimitExceeded):
        loaded(rushlight.ones(2, 3))
