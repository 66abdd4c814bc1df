"""dtypes, device and Size against torch: its tables as a whole, then what each promises by itself."""

from __future__ import annotations

import copy
import doctest
import importlib
import pickle
import subprocess
import sys

import numpy as np
import pytest

import rushlight
from rushlight.base import dtypes
from rushlight.base.device import device
from rushlight.base.size import Size
from tests.support.programs import Programs

ALL = dtypes.DTYPES
NUMBERS = {"bool": True, "int": 3, "float": 2.5, "complex": 1j}


def answer(function, *args):
    """The result's text, or "error": messages are ours, when there is one is torch's."""
    try:
        return str(function(*args))
    except (RuntimeError, TypeError):
        return "error"


def pairs(ask):
    """{"int8 float32": ask("int8", "float32"), ...} for all pairs of dtypes."""
    return {f"{a.name} {b.name}": ask(a.name, b.name) for a in ALL for b in ALL}


@pytest.fixture
def default_dtype():
    """Sets the default dtype for one test."""
    before = dtypes.get_default_dtype()
    yield dtypes.set_default_dtype
    dtypes.set_default_dtype(before)


# -- torch's tables --------------------------------------------------------------------------------


@pytest.mark.parametrize("function", ["promote_types", "can_cast"])
def test_tables_of_pairs(oracle, function):
    theirs = oracle(
        lambda torch: pairs(lambda a, b: answer(getattr(torch, function), getattr(torch, a), getattr(torch, b)))
    )
    assert theirs == pairs(lambda a, b: answer(getattr(dtypes, function), dtypes.NAMES[a], dtypes.NAMES[b]))


@pytest.mark.parametrize("kinds", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_result_dtype_of_tensors(oracle, kinds):
    def theirs(torch):
        def operand(name, kind):
            return torch.ones(() if kind else (2,), dtype=getattr(torch, name))

        return pairs(lambda a, b: answer(torch.result_type, operand(a, kinds[0]), operand(b, kinds[1])))

    def ours(a, b):
        return answer(dtypes.result_dtype, [(dtypes.NAMES[a], kinds[0]), (dtypes.NAMES[b], kinds[1])])

    assert pairs(ours) == without_complex32(oracle(theirs))


def without_complex32(table):
    """torch's complex of float16, which NumPy has not, is an error here."""
    return {key: "error" if value == "torch.complex32" else value for key, value in table.items()}


@pytest.mark.parametrize("default", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("kind", [0, 1])
def test_result_dtype_with_numbers(oracle, default_dtype, default, kind):
    def theirs(torch):
        torch.set_default_dtype(getattr(torch, default))
        try:
            ones = {d.name: torch.ones(() if kind else (2,), dtype=getattr(torch, d.name)) for d in ALL}
            return {
                f"{a} {b}": answer(torch.result_type, one, number)
                for a, one in ones.items()
                for b, number in NUMBERS.items()
            }
        finally:
            torch.set_default_dtype(torch.float32)

    default_dtype(dtypes.NAMES[default])
    ours = {
        f"{d.name} {b}": answer(dtypes.result_dtype, [(d, kind), (dtypes.of_scalar(number), 2)])
        for d in ALL
        for b, number in NUMBERS.items()
    }
    assert ours == without_complex32(oracle(theirs))


def test_attributes(oracle):
    def facts(namespace):
        kinds = {d.name: getattr(namespace, d.name) for d in ALL if d.name != "bool"}
        return {
            name: [
                str(d),
                d.itemsize,
                d.is_floating_point,
                d.is_complex,
                d.is_signed,
                str(d.to_real()),
                answer(d.to_complex),
            ]
            for name, d in kinds.items()
        }

    theirs = oracle(facts)
    theirs["float16"][-1] = "error"  # complex32
    assert facts(dtypes) == theirs


@pytest.mark.parametrize(
    ("function", "attributes"),
    [("finfo", "bits eps max min tiny smallest_normal resolution dtype"), ("iinfo", "bits max min dtype")],
)
def test_limits(oracle, function, attributes):
    def facts(limits, d):
        if answer(limits, d) == "error":
            return "error"
        return [str(limits(d)), *(str(getattr(limits(d), name)) for name in attributes.split())]

    theirs = oracle(lambda torch: {d.name: facts(getattr(torch, function), getattr(torch, d.name)) for d in ALL})
    assert theirs == {d.name: facts(getattr(dtypes, function), d) for d in ALL}


def test_names(oracle):
    theirs = oracle(lambda torch: {name: str(getattr(torch, name)) for name in dtypes.NAMES})
    assert theirs == {name: str(d) for name, d in dtypes.NAMES.items()}


# -- dtype -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", ALL, ids=str)
def test_one_object_per_dtype(d):
    copies = [pickle.loads(pickle.dumps(d, protocol)) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]
    assert all(c is d for c in [*copies, copy.copy(d), copy.deepcopy(d), dtypes.of(d.numpy)])


@pytest.mark.parametrize("d", ALL, ids=str)
def test_numpy_agrees(d):
    assert (d.numpy.name, d.numpy.itemsize) == (d.name, d.itemsize)


def test_ml_dtypes_is_loaded_by_bfloat16_only():
    program = (
        "import sys; from rushlight.base import dtypes; assert 'ml_dtypes' not in sys.modules; "
        "dtypes.promote_types(dtypes.bfloat16, dtypes.int8); assert 'ml_dtypes' not in sys.modules; "
        "dtypes.bfloat16.numpy; assert 'ml_dtypes' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_without_ml_dtypes_the_error_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    fresh = dtypes.dtype("bfloat16", "BFloat16", dtypes.FLOATING, 2)
    with pytest.raises(ImportError, match="pip install ml_dtypes"):
        fresh.numpy


@pytest.mark.parametrize(
    ("numpy_dtype", "message"),
    [(">f4", "byte order.*astype.'float32'"), ("U3", "astype"), ("O", "astype"), ("M8[s]", "astype")],
)
def test_of_names_the_hint(numpy_dtype, message):
    with pytest.raises(TypeError, match=message):
        dtypes.of(np.dtype(numpy_dtype))


def test_of_takes_what_names_a_numpy_dtype():
    assert dtypes.of(np.float32) is dtypes.of("float32") is dtypes.float32
    assert dtypes.of(np.dtype("longlong")) is dtypes.of(np.dtype("intp")) is dtypes.int64


def test_as_dtype(oracle):
    theirs = oracle(lambda torch: [str(torch.zeros(1, dtype=t).dtype) for t in (bool, int, float, complex)])
    assert theirs == [str(dtypes.as_dtype(t)) for t in (bool, int, float, complex)]
    assert dtypes.as_dtype(dtypes.int8) is dtypes.int8
    with pytest.raises(TypeError, match=r"torch\.float32"):
        dtypes.as_dtype("float32")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, "bool"),
        (np.True_, "bool"),
        (3, "int64"),
        (np.int8(3), "int64"),
        (2.5, "float64"),
        (np.float16(1), "float64"),
        (1j, "complex128"),
        (np.complex64(1), "complex128"),
    ],
)
def test_of_scalar(default_dtype, value, expected):
    default_dtype(dtypes.float64)
    assert dtypes.of_scalar(value) is dtypes.NAMES[expected]


@pytest.mark.parametrize("value", ["3", None, [1]])
def test_of_scalar_needs_a_number(value):
    with pytest.raises(TypeError, match="a number is needed"):
        dtypes.of_scalar(value)


@pytest.mark.parametrize("value", [dtypes.int64, dtypes.complex64, "float32", float, None])
def test_default_dtype_is_floating(value):
    with pytest.raises(TypeError, match="only floating-point types"):
        dtypes.set_default_dtype(value)
    assert dtypes.get_default_dtype() is dtypes.float32


def test_finfo_of_the_default(default_dtype):
    default_dtype(dtypes.float64)
    assert dtypes.finfo() == dtypes.finfo(dtypes.float64) != dtypes.finfo(dtypes.float32)


@pytest.mark.parametrize(
    "call",
    [lambda: dtypes.promote_types(1, dtypes.int8), lambda: dtypes.finfo("float32"), lambda: dtypes.iinfo(np.int8)],
)
def test_what_is_no_dtype(call):
    with pytest.raises(TypeError, match="dtype"):
        call()


@pytest.mark.parametrize("module", ["dtypes", "device", "size"])
def test_examples(module):
    found = doctest.testmod(
        importlib.import_module(f"rushlight.base.{module}"),  # rushlight.device is the class
        extraglobs={"rushlight": rushlight},
    )
    assert found.attempted > 0
    assert found.failed == 0


# -- device ----------------------------------------------------------------------------------------

DEVICES = [("cpu",), ("cpu:0",), ("cpu", 0), ("cpu", 1), ("cpu:12",), ("cpu", None)]


def test_devices(oracle):
    def facts(make):
        return [
            [repr(d), str(d), d.type, d.index, d == make("cpu"), make(d) == d, hash(d) == hash(make(d))]
            for d in (make(*args) for args in DEVICES)
        ]

    assert facts(device) == oracle(lambda torch: facts(torch.device))


@pytest.mark.parametrize(
    "args", [("cpu:x",), ("cpu:-1",), ("cpu:",), ("",), ("CPU",), ("cpu:01",), ("cpu", -1), ("cpu:0", 1), ("nonsense",)]
)
def test_malformed_devices(oracle, args):
    assert answer(device, *args) == oracle(lambda torch: answer(torch.device, *args)) == "error"


@pytest.mark.parametrize("name", ["cuda", "cuda:1", "mps"])
def test_missing_devices_have_names_but_no_tensors(name):
    assert str(device(name)) == name
    x = rushlight.ones(2)
    for put in (
        x.to,
        rushlight.Generator,
        lambda d: rushlight.ones(2, device=d),
        lambda d: rushlight.zeros_like(x, device=d),
        lambda d: rushlight.nn.Linear(2, 2, device=d),
        lambda d: rushlight.nn.Linear(2, 2).to(d),
    ):
        for place in (name, device(name)):
            with pytest.raises(RuntimeError, match=f"'{name}' does not exist here.*'cpu'"):
                put(place)


@pytest.mark.parametrize("number", [0, -1])
def test_a_device_by_number_is_none_of_the_cpu(number):
    with pytest.raises(RuntimeError, match="use 'cpu'"):
        device(number)


@pytest.mark.parametrize("args", [(None,), (3.5,), ("cpu", True), ("cpu", 0.0), (device("cpu"), 0)])
def test_device_needs_a_string(args):
    with pytest.raises(TypeError):
        device(*args)


def test_device_is_a_value():
    place = device("cpu:1")
    assert pickle.loads(pickle.dumps(place)) == copy.deepcopy(place) == place
    assert {place: 1}[device("cpu", 1)] == 1
    assert place != "cpu:1"
    with pytest.raises(AttributeError, match="read-only"):
        place.index = 2
    with device("cpu") as entered:
        assert entered == device("cpu")


# -- Size ------------------------------------------------------------------------------------------


def test_sizes(oracle):
    def facts(make):
        s = make([2, 3, 4])
        made = [
            make([]),
            make((2, 0)),
            s[1:],
            s[::-1],
            s[:0],
            s + (5,),
            (5,) + s,
            s + make([1]),
            s * 2,
            2 * s,
            copy.deepcopy(s),
            pickle.loads(pickle.dumps(s)),
            make(iter([1])),
        ]
        return [
            repr(made),
            str(s),
            [type(m) is make for m in made],
            s.numel(),
            make([]).numel(),
            s[1],
            s == (2, 3, 4),
            hash(s) == hash((2, 3, 4)),
            s.index(3),
            list(s),
        ]

    assert facts(Size) == oracle(lambda torch: facts(torch.Size))


def test_size_takes_whatever_is_an_integer():
    size = Size([np.int64(3), np.array(4), True])
    assert size == (3, 4, 1)
    assert {type(n) for n in size} == {int}


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ([2, "a"], "item 1 is 'str'"),
        ([2.5], "item 0 is 'float'"),
        ([np.arange(2)], "item 0 is 'ndarray'"),
        (5, "not iterable"),
    ],
)
def test_size_needs_integers(sizes, message):
    with pytest.raises(TypeError, match=message):
        Size(sizes)


def test_size_adds_tuples_only():
    with pytest.raises(TypeError, match="can only concatenate tuple"):
        Size([2]) + [3]
    with pytest.raises(TypeError):
        [3] + Size([2])
    with pytest.raises(TypeError):
        Size([2]) * 1.5


def test_types_of_tensors_are_those_that_torch_has(torch):
    """There were QInt8Tensor and Float8_e5m2Tensor, of dtypes that are only names."""
    ours = {name for name in dir(rushlight) if name.endswith("Tensor")}
    assert ours == {name for name in dir(torch) if name.endswith("Tensor") and not name.startswith("_")}


program = Programs()


@program.found_in("torch tests")
def halves_of_complex_numbers_have_names(torch):
    return [str(torch.chalf), str(torch.complex32.to_real()), torch.chalf is torch.complex32]


test_program = program.test()
