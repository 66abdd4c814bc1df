"""Tensors from nothing, from numbers and from arrays, against torch."""

from __future__ import annotations

import array
import warnings

import numpy as np
import pytest

import rushlight
from tests.support.programs import Programs, outcome

program = Programs()
test_program = program.test()


@program
def from_numbers(torch):
    return [
        torch.tensor(v)
        for v in (
            1,
            1.5,
            True,
            1j,
            [1, 2],
            [1, 2.5],
            [True, 2],
            [[1, 2], [3, 4]],
            [],
            [[]],
            [[], []],
            (1, (2.5)),
            [1, 1j],
            [True, False],
            2**40,
            -(2**63),
            float("inf"),
            [float("nan"), -0.0],
            range(3),
            [(1, 2), [3, 4]],
            ((),),
        )
    ]


@program
def of_a_dtype(torch):
    names = [
        "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128",
    ]  # fmt: skip
    whole = [torch.tensor([0, 1, 2], dtype=getattr(torch, n)) for n in names]
    return [
        whole,
        torch.tensor([1.9, -1.9], dtype=torch.int64),
        torch.tensor(3, dtype=torch.bool),
        torch.tensor(2, dtype=torch.float64),
        torch.tensor([1.5], dtype=torch.float),
        torch.tensor([1], dtype=torch.double),
        torch.tensor([2.0], dtype=torch.half),
    ]


@program
def from_arrays(torch):
    given = [
        np.arange(3),
        np.arange(3.0),
        np.float32(1.5),
        np.array(2),
        np.array([True]),
        np.zeros((2, 0)),
        np.int8([1, 2]),
        np.arange(6).reshape(2, 3).T,
        np.arange(6)[::2],
        [np.float64(1), np.float64(2)],
        [np.arange(2), np.arange(2)],
        np.array([1 + 1j]),
        np.float16([1, 2]),
        np.uint8(7),
    ]
    return (
        [torch.tensor(a) for a in given]
        + [torch.as_tensor(a) for a in given]
        + [torch.from_numpy(a) for a in given if isinstance(a, np.ndarray)]
    )


@program
def from_tensors(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    copy = x.detach().clone()
    nested = torch.tensor([torch.tensor(1), torch.tensor(2)])
    return [
        nested,
        torch.as_tensor(x) is x,
        copy.requires_grad,
        torch.as_tensor(x, dtype=torch.float64),
        x.new_tensor([1, 2]),
        torch.asarray([1, 2]),
        torch.as_tensor([1.5, 2]),
        x.new_zeros(2),
        x.new_ones(2, 3),
        x.new_full((2,), 3),
        x.new_empty(0),
        x.double().new_zeros(1),
        torch.tensor([[torch.tensor(1.5), 2], [3, torch.tensor(4)]]),
    ]


@program
def what_is_no_tensor(torch):
    bad = ["a", None, [[1, 2], [3]], {"a": 1}, object(), [None]]
    calls = [
        (torch.from_numpy, [1, 2]),
        (torch.from_numpy, np.array(["a"])),
        (torch.zeros, -1),
        (torch.zeros, 2.5),
        (torch.arange, 0, 1, 0),
        (torch.arange, 1, 0),
        (torch.linspace, 0, 1, -1),
        (torch.full, (2,)),
        (torch.eye, -1),
    ]
    return [
        *[outcome(torch.tensor, value) for value in bad],
        *[outcome(*call) for call in calls],
        outcome(torch.zeros, 2, dtype="float32"),
        outcome(torch.tensor, [1], requires_grad=True),
        outcome(torch.zeros, 2, device="nowhere"),
    ]


@program
def filled(torch):
    like = torch.ones(2, 3, dtype=torch.int32)
    return [
        torch.zeros(2, 3),
        torch.zeros((2, 3)),
        torch.zeros([2]),
        torch.zeros(()),
        torch.zeros(0),
        torch.zeros(2, 0, 3),
        torch.ones(2, dtype=torch.int64),
        torch.ones(torch.Size([2])),
        torch.full((2,), 7),
        torch.full((2,), 1.5),
        torch.full((), True),
        torch.full((2,), 1, dtype=torch.float64),
        torch.full((1,), 1j),
        torch.zeros_like(like),
        torch.ones_like(like, dtype=torch.float64),
        torch.full_like(like, 7),
        torch.zeros(torch.tensor(2)),
        torch.empty(0, 2),
        torch.empty_like(like).shape == (2, 3),
        torch.zeros(2, requires_grad=True).requires_grad,
        torch.full_like(like, 2.9),
        torch.ones(size=(2,)),
        torch.zeros(2, out=torch.ones(2)),
        torch.eye(2, 3),
        torch.eye(0),
        torch.eye(2, dtype=torch.bool),
        torch.full((2,), torch.tensor(3.0)),
    ]


@program
def ranges(torch):
    arguments = [
        (3,),
        (3.0,),
        (1, 4),
        (1, 4, 2),
        (0, 1, 0.25),
        (5, 0, -2),
        (0,),
        (2.5,),
        (0, 1, 0.3),
        (-3, 3),
        (1, 1),
        (0.1, 0.5, 0.1),
        (torch.tensor(3),),
    ]
    return [
        *[torch.arange(*args) for args in arguments],
        torch.arange(3, dtype=torch.float64),
        torch.arange(3, dtype=torch.uint8),
        torch.arange(start=1, end=3),
        torch.arange(end=2),
        torch.arange(5, out=torch.zeros(5, dtype=torch.int64)),
    ]


@program
def spaced(torch):
    ends = [(0, 1, 5), (0, 1, 1), (0, 1, 0), (1, -1, 4), (-3, 10, 7), (0, 10, 3), (torch.tensor(0.0), 1, 3)]
    return [
        *[torch.linspace(*args) for args in ends],
        torch.linspace(0, 5, 4, dtype=torch.int64),
        torch.linspace(0, 1, 3, dtype=torch.float64),
        torch.linspace(-1, 1, 101),
        torch.linspace(0, 1, steps=2),
        torch.linspace(0, 1j, 3),
        torch.logspace(0, 2, 3),
        torch.logspace(-1, 1, 5, base=2),
        torch.logspace(0, 1, 2, dtype=torch.float64),
    ]


@program
def triangles_and_tests(torch):
    x, c = torch.ones(2, dtype=torch.int64), torch.ones(1, dtype=torch.complex64)
    return [
        torch.tril_indices(3, 3),
        torch.triu_indices(3, 4, 1),
        torch.tril_indices(2, 3, -1),
        torch.is_tensor(x),
        torch.is_tensor(1),
        torch.is_floating_point(x),
        torch.is_complex(c),
        torch.numel(torch.zeros(2, 3)),
        str(torch.result_type(x, 1.5)),
        str(torch.result_type(torch.ones(2), torch.tensor(1.0, dtype=torch.float64))),
        torch.complex(torch.ones(2), torch.zeros(2)),
        outcome(torch.complex, x, x),
    ]


@program
def types_of_tensors(torch):
    return [
        torch.Tensor(2, 3).shape == (2, 3),
        torch.Tensor([1, 2]),
        str(torch.Tensor([1]).dtype),
        torch.tensor([1]).type(),
        torch.ones(1).type(torch.int64),
        isinstance(torch.ones(1), torch.Tensor),
        torch.ones(1).double().type(),
    ]


# -- by themselves ---------------------------------------------------------------------------------


def test_tensor_copies_and_as_tensor_shares():
    a = np.zeros(2)
    copy, shared = rushlight.tensor(a), rushlight.as_tensor(a)
    a[0] = 1
    assert copy[0] == 0
    assert shared[0] == 1
    assert rushlight.as_tensor(a, dtype=rushlight.float32).numpy() is not a
    b = rushlight.zeros(2)
    assert rushlight.tensor(b.numpy()).data_ptr() != b.data_ptr()


def test_from_numpy_shares_both_ways():
    a = np.arange(6.0).reshape(2, 3)
    for view in (a, a.T, a[:, ::2], a[1:], a[0, 0:1]):
        t = rushlight.from_numpy(view)
        assert np.shares_memory(t.numpy(), a)
        assert t.tolist() == view.tolist()
    t = rushlight.from_numpy(a)
    t[0, 0] = 7
    assert a[0, 0] == 7
    a[1, 1] = 8
    assert t[1, 1] == 8


def test_buffers_are_shared():
    numbers = array.array("f", [1.0, 2.0, 3.0])
    t = rushlight.frombuffer(numbers, dtype=rushlight.float32)
    t[0] = 9
    assert numbers[0] == 9
    assert rushlight.frombuffer(numbers, dtype=rushlight.float32, count=1, offset=4).tolist() == [2.0]


def test_a_foreign_byte_order_says_what_to_do():
    with pytest.raises(TypeError, match="byte order"):
        rushlight.from_numpy(np.arange(3, dtype=">i4"))
    with pytest.raises(TypeError, match=r"astype\(\)"):
        rushlight.from_numpy(np.array(["a"]))


def test_an_array_that_cannot_be_written_is_not_written():
    a = np.zeros(2)
    a.flags.writeable = False
    t = rushlight.from_numpy(a)
    with pytest.raises(RuntimeError, match="clone"):
        t.add_(1)
    assert (t + 1).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("uint8", 256),
        ("uint8", -256),
        ("int8", -129),
        ("uint8", -1.5),
        ("int16", 1e5),
        ("int64", 1e30),
        ("int8", float("nan")),
        ("int32", 2**31),
    ],
)
def test_numbers_that_do_not_fit_are_refused(dtype, value):
    dtype = getattr(rushlight, dtype)
    for make in (
        lambda: rushlight.tensor([1, value], dtype=dtype),
        lambda: rushlight.tensor(value, dtype=dtype),
        lambda: rushlight.full((2,), value, dtype=dtype),
        lambda: rushlight.ones(2, dtype=dtype).fill_(value),
    ):
        with pytest.raises(RuntimeError, match=f"value cannot be converted to type {str(dtype)[6:]} without overflow"):
            make()
    assert rushlight.tensor([-1, -255], dtype=rushlight.uint8).tolist() == [255, 1]  # torch takes these
    assert rushlight.full((1,), -1, dtype=rushlight.uint8).tolist() == [255]


def test_tensors_of_old_programs(torch):
    for library in (rushlight, torch):
        shape = library.ones(2, 3).shape
        for make in (library.Tensor, library.FloatTensor, library.ones(1).new):
            assert [
                tuple(make(*given).shape) for given in ((np.int64(3),), (shape,), (np.int32(2), 3), (range(4),))
            ] == [(3,), (2, 3), (2, 3), (4,)]
            with pytest.raises(TypeError, match="data must be a sequence"):
                make(2.0)
            numbers = np.ones(2, np.float32)
            make(numbers)[0] = 5
            assert numbers[0] == 5  # the same memory, where the dtype is the same
        assert library.Tensor(library.tensor([1, 2])).dtype is library.int64
        other = library.ones(2)
        library.Tensor(other)[0] = 5
        assert other[0] == 5
        assert tuple(library.Tensor(size=(2, 3)).shape) == (2, 3)
        try:
            library.set_default_dtype(library.float64)
            assert library.Tensor([1]).dtype is library.Tensor(2, 3).dtype is library.float64
        finally:
            library.set_default_dtype(library.float32)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize(
    "bounds", [(-3, 3.1, 0.1), (-2, 2, 0.05), (0, 6.3, 0.1), (1, -2, -0.01), (-10, 10, 0.3), (5, 6, 0.7)]
)
def test_ranges_have_torchs_last_bits(torch, bounds, dtype):
    ours, theirs = (library.arange(*bounds, dtype=getattr(library, dtype)).double() for library in (rushlight, torch))
    assert ours.tolist() == theirs.tolist()


def test_ranges_that_are_remembered_are_copies():
    first = rushlight.arange(0, 1, 0.25)
    first += 1
    assert rushlight.arange(0, 1, 0.25).tolist() == [0, 0.25, 0.5, 0.75]
    assert rushlight.arange(0, 1, 0.25, dtype=rushlight.float64).dtype is rushlight.float64


@pytest.mark.origin("sizes in use")
def test_asarray_stays_in_the_graph(oracle):
    """As in torch 2.13, unless it is told `requires_grad`."""

    def found(t):
        made = [
            t.asarray(t.ones(2, requires_grad=True) * factor, copy=copy, **how)
            for factor in (1, 2)
            for copy in (None, True)
            for how in ({}, {"requires_grad": True}, {"requires_grad": False})
        ]
        return [[y.requires_grad, y.grad_fn is not None] for y in made]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch says that the default has changed
        assert found(rushlight) == oracle(found)


@pytest.mark.origin("scripts")
def test_empty_in_an_order_of_memory(oracle):
    def strides(t):
        return [
            list(t.empty(2, 3, 4, 5, memory_format=form).stride()) for form in (t.channels_last, t.contiguous_format)
        ]

    assert strides(rushlight) == oracle(strides)


@program.found_in("suites")
def random_numbers_like_a_list_are_refused(torch):
    return [outcome(f, [torch.ones(2)]) for f in (torch.rand_like, torch.randn_like)]


@program.found_in("torch tests")
def arrays_between_whole_steps_are_refused(torch):
    array = np.array([3.0, 5.0, 8.0])
    array.strides = (3,)
    return [outcome(torch.from_numpy, array)]


@program.found_in("torch tests")
def more_than_memory_can_have_is_refused(torch):
    return [
        outcome(make)
        for make in (
            lambda: torch.empty([8, 8, 2**29, 2**29]),
            lambda: torch.empty([0, 4, 2**61]),
            lambda: torch.zeros(2**62, 4),
            lambda: torch.full((2**62, 4), 1),
            lambda: torch.empty_strided([8, 8], [2**61, 1]),
        )
    ]
