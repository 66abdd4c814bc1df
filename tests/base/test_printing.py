"""Printed tensors equal torch's to the letter: hundreds of cases always, any array where torch is there."""

from __future__ import annotations

import math
import threading
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rushlight.base import dtypes
from rushlight.base.printing import format_parameter, format_tensor, get_printoptions, printoptions, set_printoptions

FLOATING = ["float16", "bfloat16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
INTEGERS = ["uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"]


def cast(values, name):
    """An array of the dtype with this name; what does not fit becomes infinite or wraps around."""
    with np.errstate(all="ignore"):
        return np.asarray(np.asarray(values).astype(dtypes.NAMES[name].numpy))


def as_torch(torch, array):
    name = dtypes.of(array.dtype).name
    plain = array.astype(np.float32) if name == "bfloat16" else np.array(array, order="C")
    return torch.from_numpy(plain).to(getattr(torch, name))


def ours(array, **options):
    with printoptions(**options):
        return format_tensor(array, dtypes.of(array.dtype))


@contextmanager
def torch_options(torch, **options):
    torch.set_printoptions(**{"profile": "default", **options})
    try:
        yield
    finally:
        torch.set_printoptions(profile="default")


def theirs(torch, array, **options):
    with torch_options(torch, **options):
        return repr(as_torch(torch, array))


# -- cases kept in the golden file -----------------------------------------------------------------

inf, nan = math.inf, math.nan
FLOATS = {
    "plain": [1.5, 2.25, 3.125],
    "one": [0.1],
    "signs": [-1.5, 2.25, -0.5],
    "whole": [1, 2, 3],
    "whole of several widths": [-1, 20, 300],
    "whole, ratio above 1000": [1, 5000],
    "whole, ratio of 1000": [1, 1000],
    "whole above 1e8": [2e8, 3e8],
    "whole at 1e8": [1e8, 1e8],
    "large": [123456.789, 99999.5],
    "larger": [1.5e10, 2.5e20],
    "small": [1e-5, 2.5e-5],
    "at 1e-4": [1e-4, 2e-4],
    "below 1e-4": [9.9e-5, 2e-3],
    "ratio just below 1000": [0.001, 0.999],
    "ratio just above 1000": [0.001, 1.001],
    "mixed": [1e-3, 1.0, 1e3, -1e6],
    "rounds up": [9.99996, 0.99999],
    "halves": [0.00005, 0.00015, 0.12345, 2.5],
    "zeros": [0.0, 0.0],
    "negative zero": [-0.0, 0.0],
    "negative zero among": [-0.0, 1.5],
    "negative zero among whole": [-0.0, 1.0],
    "zero among": [0.0, 1.5, 100.25],
    "nan": [nan],
    "nan among": [nan, 1.5],
    "nan among whole": [nan, 1.0, 20.0],
    "inf": [inf, -inf],
    "inf among": [inf, 1.5, -inf],
    "inf among whole": [1.0, -inf],
    "inf in scientific": [inf, 1e-7, nan, 1.0],
    "all kinds": [nan, inf, -inf, 0.0, -0.0, 1.0, -2.5],
    "largest": [3.4e38, -3.4e38],
    "largest double": [1.7e308, -1.7e308, 1e-300],
    "denormal": [1e-45, 5e-324, 6e-8],
    "digits": [math.pi * 10**k for k in range(-2, 3)],
}
WHOLES = {
    "few": [1, 2, 3],
    "several widths": [1, 20, 127],
    "zero": [0],
    "signs": [-1, 0, 100],
    "extremes": [-(2**63), 2**63 - 1, -1],
    "large": [10**12, 5],
}
SHAPES = [
    (),
    (1,),
    (0,),
    (0, 3),
    (3, 0),
    (2, 0, 3),
    (3, 4),
    (1, 1),
    (2, 3, 4),
    (1, 1, 1),
    (2, 2, 2, 2, 2),
    (11,),
    (40,),
    (1000,),
    (1001,),
    (2000, 1),
    (1, 2000),
    (7, 150),
    (6, 200),
    (50, 50),
    (8, 7, 30),
    (4, 1, 300),
    (2, 600, 2),
    (1,) * 10,
    (3, 1, 9, 1, 9, 9),
]
OPTIONS = [
    {"precision": 0},
    {"precision": 1},
    {"precision": 8},
    {"precision": 14},
    {"threshold": 0},
    {"threshold": 5},
    {"threshold": math.inf},
    {"threshold": 5, "edgeitems": 1},
    {"threshold": 5, "edgeitems": 2},
    {"threshold": 5, "edgeitems": 5},
    {"edgeitems": 0},
    {"edgeitems": 0, "threshold": 2},
    {"linewidth": 0},
    {"linewidth": 20},
    {"linewidth": 41},
    {"linewidth": 200},
    {"profile": "short"},
    {"profile": "full"},
    {"profile": "short", "precision": 5},
    {"sci_mode": True},
    {"sci_mode": False},
    {"sci_mode": True, "precision": 2, "linewidth": 40},
]


def of_shape(shape, name):
    """Deterministic elements, negative and positive, of few digits, no two neighbours alike."""
    n = math.prod(shape)
    ramp = (np.arange(n) * 7919 % 1013 - 400).astype(np.float64)  # (n,)
    values = {"complex": ramp / 8 + 1j * ramp[::-1], "float": ramp / 8, "bool": ramp > 0}
    kind = next((k for k in values if name.startswith(k)), None)
    return cast(ramp if kind is None else values[kind], name).reshape(shape)


def compare(oracle, arrays, **options):
    expected = oracle(lambda torch: [theirs(torch, a, **options) for a in arrays])
    assert [ours(a, **options) for a in arrays] == expected


@pytest.mark.parametrize("values", FLOATS.values(), ids=FLOATS)
def test_floating(oracle, values):
    compare(oracle, [cast(values, name) for name in FLOATING])


@pytest.mark.parametrize("values", FLOATS.values(), ids=FLOATS)
def test_complex(oracle, values):
    other = [*values[1:], values[0]] if len(values) > 1 else [-2.5]
    arrays = [np.empty(len(values), name) for name in COMPLEX]
    for array in arrays:
        with np.errstate(all="ignore"):
            array.real, array.imag = values, other
    compare(oracle, arrays)


@pytest.mark.parametrize("values", WHOLES.values(), ids=WHOLES)
def test_integers(oracle, values):
    compare(oracle, [cast(values, name) for name in INTEGERS])


def test_bool(oracle):
    compare(oracle, [np.array(v) for v in (True, False, [True], [False, True], [[True, True]], [False] * 30)])


@pytest.mark.parametrize("name", ["float32", "float64", "bfloat16", "int64", "uint8", "bool", "complex64"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_shapes(oracle, shape, name):
    compare(oracle, [of_shape(shape, name)])


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_options(oracle, options):
    cases = [
        ((), "float32"),
        ((30,), "float32"),
        ((4, 7), "float64"),
        ((3, 9, 8), "int64"),
        ((12,), "complex64"),
        ((1, 1), "float32"),
        ((0, 2), "float32"),
    ]
    compare(oracle, [*(of_shape(*case) for case in cases), np.array([nan, inf, 1e-8, 2.0])], **options)


@pytest.mark.parametrize("default", FLOATING)
def test_dtype_is_named_unless_it_is_the_default(oracle, default):
    arrays = [of_shape(shape, d.name) for d in dtypes.DTYPES for shape in [(2,), (0,), (0, 2)]]

    def in_torch(torch):
        torch.set_default_dtype(getattr(torch, default))
        try:
            return [theirs(torch, a) for a in arrays]
        finally:
            torch.set_default_dtype(torch.float32)

    before = dtypes.get_default_dtype()
    dtypes.set_default_dtype(dtypes.NAMES[default])
    try:
        assert [ours(a) for a in arrays] == oracle(in_torch)
    finally:
        dtypes.set_default_dtype(before)


GRADS = [of_shape((n,), name) for name in ("float32", "float64", "complex128") for n in (0, 1, 5, 6, 7, 8, 9, 20)]


def test_requires_grad(oracle):
    def in_torch(torch):
        return [repr(as_torch(torch, a).requires_grad_()) for a in GRADS]

    assert [format_tensor(a, dtypes.of(a.dtype), True) for a in GRADS] == oracle(in_torch)


def test_grad_fn(oracle):
    def in_torch(torch):
        return [repr(as_torch(torch, a).requires_grad_() * 1) for a in GRADS]

    assert [format_tensor(a, dtypes.of(a.dtype), True, "MulBackward0") for a in GRADS] == oracle(in_torch)


def test_parameter(oracle):
    arrays = [a for a in GRADS if a.dtype.kind == "f"] + [of_shape((3, 4), "float32")]

    def in_torch(torch):
        return [
            [repr(torch.nn.Parameter(as_torch(torch, a), requires_grad=grad)) for grad in (True, False)] for a in arrays
        ]

    assert [[format_parameter(a, dtypes.of(a.dtype), grad) for grad in (True, False)] for a in arrays] == oracle(
        in_torch
    )


def test_subclass(oracle):
    arrays = [of_shape((3, 20), "float32"), of_shape((0,), "int64")]

    def in_torch(torch):
        kind = type("MyTensor", (torch.Tensor,), {})
        return [repr(as_torch(torch, a).as_subclass(kind)) for a in arrays]

    assert [format_tensor(a, dtypes.of(a.dtype), prefix="MyTensor") for a in arrays] == oracle(in_torch)


def test_contents(oracle):
    theirs = oracle(lambda torch: torch.zeros(2, 3, dtype=torch.int8).__repr__(tensor_contents="..."))
    assert format_tensor(np.zeros((2, 3), np.int8), dtypes.int8, contents="...") == theirs


def test_layout_in_memory_does_not_show(oracle):
    base = of_shape((6, 5, 4), "float32")
    views = [base.T, base[::2, ::-1], base[:, 1], np.broadcast_to(base[0], (3, 5, 4)), base[..., :0]]
    compare(oracle, views)
    assert [ours(v) for v in views] == [ours(v.copy()) for v in views]


# -- any array -------------------------------------------------------------------------------------

odd_floats = st.one_of(
    st.floats(),
    st.integers(-(10**9), 10**9).map(float),
    st.floats(-1000, 1000),
    st.sampled_from([0.0, -0.0, inf, -inf, nan]),
)
elements = {
    0: st.booleans(),
    1: st.integers(-(2**31), 2**31),
    2: odd_floats,
    3: st.builds(complex, odd_floats, odd_floats),
}


@st.composite
def arrays(draw):
    dtype = draw(st.sampled_from(dtypes.DTYPES))
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=9))
    few = draw(st.lists(elements[dtype.category], min_size=1, max_size=12))
    if dtype.category == dtypes.INTEGER:
        few = np.array(few, np.int64)
    return cast(np.resize(few, shape), dtype.name)


options = st.fixed_dictionaries(
    {},
    optional={
        "precision": st.integers(0, 12),
        "threshold": st.sampled_from([0, 10, 100, math.inf]),
        "edgeitems": st.integers(0, 4),
        "linewidth": st.integers(0, 130),
        "sci_mode": st.booleans(),
        "profile": st.sampled_from(["default", "short", "full"]),
    },
)


@settings(max_examples=150, deadline=None)
@given(array=arrays(), options=options)
def test_any_array(torch, array, options):
    assert ours(array, **options) == theirs(torch, array, **options)


# -- size, threads, errors -------------------------------------------------------------------------


def test_cost_follows_what_is_shown(oracle):
    huge = np.broadcast_to(np.float32(1.5), (10**6, 10**5, 10**6))
    text = ours(huge)  # of all numbers it would take years
    assert text == oracle(lambda torch: repr(torch.tensor(1.5).expand(huge.shape)))


def test_as_many_dimensions_as_numpy_has():
    text = ours(np.ones((1,) * 63 + (2,), np.float32))
    assert text == "tensor(" + "[" * 64 + "1., 1." + "]" * 64 + ")"


def test_the_array_is_left_alone():
    array = of_shape((50, 50), "complex64")
    array.flags.writeable = False
    assert ours(array) == ours(array.copy())


def ours_as_set():
    return format_tensor(np.float32([1.25]), dtypes.float32)


@pytest.fixture
def _default_options():
    yield
    set_printoptions(profile="default")


@pytest.mark.usefixtures("_default_options")
class TestOptions:
    def test_set_holds_in_other_threads_too(self):
        set_printoptions(precision=1)
        texts = []
        thread = threading.Thread(target=lambda: texts.append(ours_as_set()))
        thread.start()
        thread.join()
        assert texts == ["tensor([1.2])"]

    def test_a_context_holds_in_its_thread_only(self):
        entered, asked = threading.Event(), threading.Event()

        def hold():
            with printoptions(precision=1):
                entered.set()
                asked.wait(10)

        thread = threading.Thread(target=hold)
        thread.start()
        entered.wait(10)
        text = ours_as_set()
        asked.set()
        thread.join()
        assert text == "tensor([1.2500])"

    def test_a_context_ends_what_was_set_in_it(self):
        before = get_printoptions()
        with pytest.raises(KeyError), printoptions(precision=1):  # noqa: PT012
            set_printoptions(edgeitems=7, linewidth=math.inf)
            assert get_printoptions()["edgeitems"] == 7
            assert get_printoptions()["precision"] == 1
            raise KeyError
        assert get_printoptions() == before

    def test_options_come_back_as_they_went(self):
        set_printoptions(precision=2, threshold=math.inf, edgeitems=1, linewidth=50, sci_mode=True)
        kept = get_printoptions()
        set_printoptions(profile="default")
        assert get_printoptions() != kept
        set_printoptions(**kept)
        assert get_printoptions() == kept

    def test_an_endless_line(self):
        set_printoptions(linewidth=math.inf)
        assert "\n" not in format_tensor(np.arange(1000), dtypes.int64)

    def test_a_profile_is_what_it_is_in_torch(self, oracle):
        for profile in ("short", "full", "default"):
            set_printoptions(profile=profile)

            def in_torch(torch, profile=profile):
                with torch_options(torch, profile=profile):
                    return torch._tensor_str.get_printoptions()

            assert get_printoptions() == oracle(in_torch)

    @pytest.mark.parametrize("wrong", [{"precision": -1}, {"edgeitems": -1}, {"profile": "tiny"}])
    def test_a_wrong_option_changes_nothing(self, wrong):
        before = get_printoptions()
        with pytest.raises(ValueError, match=next(iter(wrong))):
            set_printoptions(linewidth=10, **wrong)
        with pytest.raises(TypeError):
            set_printoptions(linewidth=10, precision="4")
        assert get_printoptions() == before
