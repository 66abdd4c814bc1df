"""The backend tests that ship in the `onnx` wheel, as numbers and reasons.

    python -m tests.onnx.backend                     # how many pass, and why the others do not
    python -m tests.onnx.backend onnxruntime         # the same for onnxruntime, or for onnx.reference
    python -m tests.onnx.backend --write             # and write floor.json, below which the test fails

A test is a model, inputs and outputs. It passes if all outputs have the dtype and shape of the test and its numbers, with
the test's own tolerances.
"""

from __future__ import annotations

import argparse
import json
import pickle
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

FLOOR = Path(__file__).with_name("floor.json")
KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")
RANDOM = {"Bernoulli", "RandomUniformLike", "RandomNormalLike", "RandomUniform", "RandomNormal", "Dropout"}
HALVES = ("float16", "bfloat16")
# How a model runs: its bytes -> a function of the inputs
Runner = Callable[[bytes], Callable[..., Any]]


def rushlight_runner(model: bytes) -> Callable[..., Any]:
    from rushlight.onnx import load

    return load(model)


def onnxruntime_runner(model: bytes) -> Callable[..., Any]:
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    return lambda *inputs: tuple(session.run(None, dict(zip(names, inputs))))


def reference_runner(model: bytes) -> Callable[..., Any]:
    from onnx.reference import ReferenceEvaluator

    evaluator = ReferenceEvaluator(model)
    return lambda *inputs: tuple(evaluator.run(None, dict(zip(evaluator.input_names, inputs))))


RUNNERS: dict[str, Runner] = {
    "rushlight": rushlight_runner,
    "onnxruntime": onnxruntime_runner,
    "onnx.reference": reference_runner,
}


def cases() -> Iterator[tuple[str, Any]]:
    """(kind, case) of all tests; those that download models are left out."""
    from onnx.backend.test import loader

    for kind in KINDS:
        for case in loader.load_model_tests(kind=kind):
            yield kind, case


def message_value(file: Path, info: Any) -> Any:
    """The value of a file of a test: a tensor, a sequence or an optional value."""
    import onnx
    from onnx import numpy_helper

    kinds = {
        "tensor_type": (onnx.TensorProto, numpy_helper.to_array),
        "sequence_type": (onnx.SequenceProto, numpy_helper.to_list),
        "optional_type": (onnx.OptionalProto, numpy_helper.to_optional),
    }
    message_type, read = kinds[info.type.WhichOneof("value")]
    message = message_type()
    message.ParseFromString(file.read_bytes())
    return read(message)


def in_folder(folder: Path, name: str, infos: Any) -> list[Any]:
    files = sorted(folder.glob(f"{name}_*.pb"), key=lambda file: int(file.stem.rpartition("_")[2]))
    return [message_value(file, info) for file, info in zip(files, infos)]


def contents(case: Any) -> tuple[Any, list[tuple[list[Any], list[Any]]]]:
    """(the model, pairs of inputs and outputs) of a test."""
    import onnx
    from onnx import numpy_helper

    if case.model_dir is None:
        sets = [
            tuple([numpy_helper.to_array(v) if isinstance(v, onnx.TensorProto) else v for v in part] for part in pair)
            for pair in case.data_sets
        ]
        return case.model, sets
    folder = Path(case.model_dir)
    model = onnx.load(folder / "model.onnx")
    data = sorted(folder.glob("test_data_set*"))
    graph = model.graph
    return model, [(in_folder(d, "input", graph.input), in_folder(d, "output", graph.output)) for d in data]


def difference(got: Any, want: Any, rtol: float, atol: float) -> str:
    """How a value differs from the expected one; "" if it does not."""
    if want is None or isinstance(want, list):
        if type(got) is not type(want) or (want is not None and len(got) != len(want)):
            return "kind of value"
        pairs = zip(got, want) if want is not None else ()
        return next((d for g, w in pairs if (d := difference(g, w, rtol, atol))), "")
    got = np.asarray(got.detach().numpy() if hasattr(got, "detach") else got)
    got, want = (a.astype(object) if a.dtype.kind in "UOST" else a for a in (got, np.asarray(want)))
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"dtype or shape: {got.dtype}{list(got.shape)} instead of {want.dtype}{list(want.shape)}"
    if want.dtype == object:
        texts = [text.decode() if isinstance(text, bytes) else text for text in want.reshape(-1)]
        return "" if got.reshape(-1).tolist() == texts else "strings"
    if want.dtype.kind not in "biufc" or want.dtype.name.startswith("float8"):
        got, want = got.astype(np.float32), want.astype(np.float32)
    return "" if np.allclose(got, want, rtol=rtol, atol=atol, equal_nan=True) else "numbers"


class Packed(NamedTuple):
    """A test without the onnx package: the file, the names of its operators, pairs of inputs and outputs."""

    name: str
    kind: str
    file: bytes
    operators: frozenset[str]
    sets: list[tuple[list[Any], list[Any]]]
    rtol: float
    atol: float


def packed(kind: str, case: Any) -> Packed:
    """A test of the onnx package, packed."""
    model, sets = contents(case)
    operators = frozenset([node.op_type for node in model.graph.node])
    return Packed(case.name, kind, model.SerializeToString(), operators, sets, case.rtol, case.atol)


def write_packed(add: Callable[[str, bytes], Any], limit: int) -> None:
    """add(name, content) for each test of at most `limit` bytes."""
    for number, (kind, case) in enumerate(cases()):
        content = pickle.dumps(tuple(packed(kind, case)))
        if len(content) <= limit:
            add(f"{number:04}.pickle", content)


def results_of_packed(folder: Path, runner: Runner) -> tuple[Counter, dict[str, str]]:
    """As `results`, of tests in a folder. A test whose arrays need a package that is missing fails as such."""
    passed: Counter = Counter()
    failed = {}
    for file in sorted(folder.glob("*.pickle")):
        try:
            case = Packed(*pickle.loads(file.read_bytes()))
        except ImportError as error:
            failed[file.name] = f"needs {error.name}"
            continue
        try:
            why = failure(case, runner)
        except Exception as error:
            why = f"{type(error).__name__}: {error}".partition("\n")[0]
        if why:
            failed[case.name] = why
        else:
            passed[case.kind] += 1
    return passed, failed


def failure(case: Packed, runner: Runner) -> str:
    """Why a test fails: a category; "" if it passes."""
    sets = case.sets
    try:
        run = runner(case.file)
    except NotImplementedError as error:
        return "refused: " + str(error).partition("not supported: ")[2].partition(" (node")[0].partition("\n")[0]
    for inputs, expected in sets:
        found = run(*(np.asarray(v) if isinstance(v, np.generic) else v for v in inputs))
        found = found if isinstance(found, tuple) else (found,)
        for got, want in zip(found, expected):
            what = difference(got, want, case.rtol, case.atol)
            if what:
                return category(what, case.operators, want)
    return ""


def category(what: str, operators: frozenset[str], want: Any) -> str:
    if what == "numbers" and operators & RANDOM:
        return "random numbers of another generator"
    if what == "numbers" and getattr(want, "dtype", None) is not None and want.dtype.name in HALVES:
        return "rounding in float16 or bfloat16"
    return what


def results(runner: Runner, every: int = 1) -> tuple[Counter, dict[str, str]]:
    """({kind: tests that pass}, {name of a failing test: why})."""
    passed: Counter = Counter()
    failed = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i, (kind, case) in enumerate(cases()):
            if i % every:
                continue
            try:
                why = failure(packed(kind, case), runner)
            except Exception as error:
                why = f"{type(error).__name__}: {error}".partition("\n")[0]
            if why:
                failed[case.name] = why
            else:
                passed[kind] += 1
    return passed, failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runner", nargs="?", default="rushlight", choices=RUNNERS)
    parser.add_argument("--write", action="store_true", help="write floor.json")
    parser.add_argument("--names", action="store_true", help="print each failing test")
    args = parser.parse_args()
    passed, failed = results(RUNNERS[args.runner])
    print(f"{args.runner}: {sum(passed.values())} of {sum(passed.values()) + len(failed)} pass, {dict(passed)}")
    for why, count in Counter(why[:100] for why in failed.values()).most_common(40):
        print(f"{count:5d}  {why}")
    if args.names:
        print("\n".join(f"{name}: {why[:200]}" for name, why in failed.items()))
    if args.write:
        FLOOR.write_text(json.dumps(dict(passed), indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
