"""Tensors as Python and NumPy see them, against torch: numbers, arrays, DLPack, copies, pickles, conversions."""

from __future__ import annotations

import copy
import io
import pickle

import numpy as np
import pytest

import rushlight
from tests.support.programs import Programs, outcome

program = Programs()
test_program = program.test()
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")


def whole(torch, *shape):
    return torch.arange(int(np.prod(shape))).reshape(shape)


@program
def attributes(torch):
    found = []
    tensors = [
        torch.zeros(2, 3),
        torch.tensor(1),
        torch.zeros(0, 4, dtype=torch.complex64),
        whole(torch, 2, 3)[:, 1:],
        torch.ones(2, 3, 4).transpose(0, 2),
        torch.ones(2, dtype=torch.bool),
        torch.zeros(3, 1).expand(3, 4),
    ]
    for x in tensors:
        found.append(
            [
                list(x.shape),
                list(x.size()),
                x.dim(),
                x.ndim,
                x.numel(),
                x.nelement(),
                list(x.stride()),
                x.is_contiguous(),
                x.element_size(),
                x.itemsize,
                x.nbytes,
                str(x.dtype),
                str(x.device),
                x.is_floating_point(),
                x.is_complex(),
                x.is_signed(),
                str(x.layout),
                x.is_cuda,
                x.get_device(),
                x.storage_offset(),
                x.ndimension(),
                x.is_cpu,
                x.requires_grad,
                x.is_leaf,
                x.output_nr,
                x._version,
                x.size(0) if x.ndim else None,
                x.type(),
            ]
        )
    return found


@program
def numbers(torch):
    values = [torch.tensor(v) for v in (1, 2.5, True, 1j, [3], [[4.5]])]
    return [
        [v.item() for v in values],
        [v.tolist() for v in values],
        whole(torch, 2, 2).tolist(),
        torch.zeros(0, 2).tolist(),
        torch.zeros(2, 0).tolist(),
        int(torch.tensor(2.9)),
        float(torch.tensor(3)),
        bool(torch.tensor([0.0])),
        complex(torch.tensor(2)),
        [10, 20, 30][torch.tensor(1)],
        list(range(5))[torch.tensor(1) : torch.tensor(3)],
        len(torch.zeros(3, 2)),
        f"{torch.tensor(1.23456):.2f}",
        round(torch.tensor(2.6).item()),
        hex(torch.tensor(255)),
        torch.tensor(1.1, dtype=torch.bfloat16).item(),
        torch.tensor([1.5, 2], dtype=torch.bfloat16).tolist(),
        torch.tensor(1.1, dtype=torch.float16).item(),
        torch.tensor(0.1).item(),
        torch.tensor(2**62).item(),
    ]


@program
def what_is_no_number(torch):
    several = torch.ones(2)
    return [
        outcome(f)
        for f in (
            several.item,
            torch.zeros(0).item,
            lambda: float(several),
            lambda: int(torch.zeros(0)),
            lambda: bool(several),
            lambda: bool(torch.zeros(0)),
            lambda: len(torch.tensor(1)),
            lambda: [1][torch.tensor(0.0)],
            lambda: range(several),
            lambda: [*torch.tensor(1)],
            lambda: several.numpy(1),
            lambda: hash(several) == hash(several),
            lambda: several in {several: 1},
            lambda: if_true(several),
            lambda: several.size(5),
            lambda: several.stride(5),
        )
    ]


def if_true(x):
    return 1 if x else 2


@program
def comparing_and_containing(torch):
    x = whole(torch, 3)
    return [
        x == x,
        x != 1,
        x > 1,
        2 in x,
        5 in x,
        torch.tensor(2) in x,
        torch.equal(x, x.clone()),
        x.tolist()[1:] == [1, 2],
        x.eq(1).any().item(),
        x == torch.tensor([0, 0, 2]),
    ]


@program
def iterating(torch):
    x = whole(torch, 2, 3)
    a, b = x
    return [
        a,
        b,
        [r.sum() for r in x],
        list(map(int, x[0])),
        [t.item() for r in x for t in r],
        dict(zip("ab", x)),
        max(x[1]),
        sum(x[0]),
        list(reversed(x)),
        sorted(torch.tensor([3, 1, 2])),
        torch.stack([*x]),
    ]


@program
def conversions(torch):
    x = torch.tensor([1.7, -2.7, 0.0])
    named = [
        x.double(),
        x.float(),
        x.half(),
        x.long(),
        x.int(),
        x.short(),
        x.char(),
        x.abs().byte(),
        x.bool(),
        x.bfloat16().float(),
        x.cfloat(),
        x.cdouble(),
        x.to(torch.float64),
        x.to("cpu"),
        x.to(x.double()),
        x.to("cpu", torch.int64),
        x.to(dtype=torch.int32, device="cpu"),
        x.type_as(x.double()),
        x.type(torch.int64),
        x.cpu(),
        x.to(torch.int64, copy=True),
    ]
    same = [
        x.float() is x,
        x.to(torch.float32) is x,
        x.cpu() is x,
        x.contiguous() is x,
        x.to("cpu") is x,
        x.to(torch.float32, copy=True) is x,
        x.type(torch.float32) is x,
        x.real is x,
        x.conj() is x,
        x.detach() is x,
    ]
    return [
        named,
        same,
        outcome(x.to, "nowhere"),
        torch.tensor([1 + 2j]).to(torch.complex128),
        torch.tensor([0j, 1j]).bool(),
    ]


@program
def with_numpy(torch):
    x, a = torch.tensor([1.0, 4.0]), np.array([2.0, 3.0])
    made = [
        np.sqrt(x),
        np.asarray(x),
        np.array(x),
        np.stack([x, x]),
        np.asarray(x, dtype=np.int64),
        np.float64(2) * x,
        x * np.float64(2),
        x * np.float32(2),
        x + np.int64(1),
        np.sum(np.asarray(x)),
        np.concatenate([a, x]),
        x * a,
        x @ a.astype(np.float32),
        x == a,
    ]
    return [[type(m).__name__ for m in made], [torch.as_tensor(m) for m in made], isinstance(x.numpy(), np.ndarray)]


@program
def gradients_and_numpy(torch):
    x = torch.ones(2, requires_grad=True)
    return [
        outcome(x.numpy),
        outcome(np.asarray, x),
        x.detach().numpy().tolist(),
        x.numpy(force=True).tolist(),
        outcome(lambda: (x * 2).tolist()),
        outcome(lambda: x.sum().item()),
        outcome(lambda: float(x[0])),
    ]


@program
def copies(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (x * 3).sum().backward()
    deep, shallow = copy.deepcopy(x), copy.copy(x)
    both = copy.deepcopy([x, x])
    deep.data[0] = 7
    return [
        deep,
        deep.grad,
        deep.grad is x.grad,
        deep.requires_grad,
        deep.is_leaf,
        x,
        both[0] is both[1],
        shallow,
        shallow.grad,
        outcome(copy.deepcopy, x * 2),
        copy.deepcopy(x.detach().T),
        x.clone().requires_grad,
    ]


@program
def pickles(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    given = [
        x,
        x.detach(),
        torch.zeros(0, 3),
        torch.tensor(True),
        torch.ones(2, dtype=torch.bfloat16),
        whole(torch, 2, 3).T,
        torch.tensor([1j]),
        torch.float32,
        torch.Size([1, 2]),
        torch.device("cpu"),
    ]
    back = [pickle.loads(pickle.dumps(g)) for g in given]
    return [
        [b if isinstance(b, torch.Tensor) and b.dtype != torch.bfloat16 else str(b) for b in back],
        back[0].requires_grad,
        back[7] is torch.float32,
    ]


@program
def deleting_and_setting(torch):
    x = torch.ones(2, requires_grad=True)
    x.sum().backward()
    del x.grad
    x.note = "kept"
    y = x.detach()
    y.data = torch.zeros(3)
    return [x.grad, x.note, y, outcome(setattr, x, "shape", (2,)), outcome(setattr, x, "is_leaf", True)]


# -- by themselves ---------------------------------------------------------------------------------


def test_numpy_is_the_memory_itself():
    x = rushlight.zeros(2, 3)
    a = x.numpy()
    a[0, 0] = 5
    assert x[0, 0] == 5
    x[1, 1] = 7
    assert a[1, 1] == 7
    assert x.T.numpy().base is not None
    assert np.shares_memory(x.T.numpy(), a)
    assert np.shares_memory(np.asarray(x), a)
    assert not np.shares_memory(np.array(x), a)
    assert np.shares_memory(x.detach().numpy(), a)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8", "bool", "complex64"])
def test_dlpack_shares_memory_both_ways(dtype):
    a = np.ones((2, 3), dtype)
    x = rushlight.from_dlpack(a)
    assert np.shares_memory(x.numpy(), a)
    back = np.from_dlpack(x)
    assert np.shares_memory(back, a)
    assert back.dtype == a.dtype
    assert np.shares_memory(np.from_dlpack(x.T), a)


def test_dlpack_with_torch(torch):
    theirs = torch.arange(6.0).reshape(2, 3)
    ours = rushlight.from_dlpack(theirs)
    ours[0, 0] = 9
    assert theirs[0, 0] == 9
    back = torch.from_dlpack(ours)
    back[1, 1] = 7
    assert ours[1, 1] == 7
    assert torch.from_dlpack(ours.T).tolist() == theirs.T.tolist()
    with pytest.raises(BufferError, match="detach"):
        torch.from_dlpack(rushlight.ones(2, requires_grad=True))


def test_numpy_says_how_to_get_at_a_recorded_tensor():
    with pytest.raises(RuntimeError, match=r"detach\(\)\.numpy\(\)"):
        rushlight.ones(2, requires_grad=True).numpy()


def test_pickles_are_small_and_views_do_not_drag_their_base_along():
    big = rushlight.zeros(1000, 100)
    assert len(pickle.dumps(big[0])) < 2000
    assert pickle.loads(pickle.dumps(big[0])).shape == (100,)


def test_deepcopy_keeps_what_is_shared_shared():
    x = rushlight.ones(2, requires_grad=True)
    model = {"a": x, "b": [x], "c": x.detach()}
    other = copy.deepcopy(model)
    assert other["a"] is other["b"][0]
    assert other["a"] is not x
    assert not np.shares_memory(other["c"].numpy(), x.detach().numpy())


def test_attributes_survive_copies():
    x = rushlight.ones(2)
    x.note = ["kept"]
    for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert y.note == ["kept"]


def test_saved_tensors_are_read_as_they_were_written():
    buffer = io.BytesIO()
    rushlight.save({"w": rushlight.ones(2, 3).T, "n": 3}, buffer)
    buffer.seek(0)
    back = rushlight.load(buffer)
    assert back["w"].shape == (3, 2)
    assert back["n"] == 3


def test_operators_leave_strangers_their_turn():
    """`tensor == stranger` and `tensor + stranger` ask the other operand, as Python's numbers do."""

    class Stranger:
        def __eq__(self, other):
            return "mine"

        __hash__ = None

        def __radd__(self, other):
            return "added"

    assert (rushlight.ones(2) == Stranger()) == "mine"
    assert rushlight.ones(2) + Stranger() == "added"
    assert (rushlight.ones(2) == None) is False  # noqa: E711
    with pytest.raises(TypeError):
        rushlight.ones(2) + "text"
    with pytest.raises(TypeError, match="not supported between"):
        sorted([rushlight.ones(2), None])


@pytest.mark.origin("newcomers")
def test_torchs_own_functions_tell_whose_tensor_it_is():
    """It ended in a RecursionError: torch asks the tensor, which asks torch again."""
    torch = pytest.importorskip("torch")
    for function in (torch.sin, torch.randn_like, torch.nn.functional.relu):
        with pytest.raises(TypeError, match="given a tensor of rushlight"):
            function(rushlight.ones(2))
    assert rushlight.sin(rushlight.zeros(2)).sum() == 0


@program.found_in("libraries")
def each_tensor_has_a_number_of_its_own(torch):
    p = torch.nn.Parameter(torch.ones(1))
    held = {"p": p}
    return [p._cdata == held["p"]._cdata, p._cdata == torch.ones(1)._cdata, isinstance(p._cdata, int)]


@program.found_in("torch tests")
def one_function_of_three_tensors_elements(torch):
    a, b = torch.tensor([1.0, 5.0]), torch.tensor([3.0])
    return [a.clone().map2_(a, b, lambda x, y, z: x + y * z)]


@program.found_in("torch tests")
def what_is_in_a_tensor_is_a_number_or_a_tensor(torch):
    x = torch.tensor([1.0, 2.0])
    return [
        1 in x,
        1.5 in x,
        torch.ones(1) in x,
        np.float64(2) in x,
        outcome(lambda: "a" in x),
        outcome(lambda: None in x),
        outcome(lambda: [1] in x),
    ]


@program.found_in("torch tests")
def python_functions_of_elements(torch):
    x, w = torch.zeros(2), torch.zeros(2, requires_grad=True)
    half = torch.tensor([1.0, 2.0], dtype=torch.bfloat16)
    return [
        half.apply_(lambda v: v * 2.5).float(),
        outcome(x.apply_, lambda v: "a"),
        torch.zeros(2, 2).map_(torch.arange(2.0), max),
        outcome(x.map_, torch.zeros(2, 2), max),
        outcome(x.map_, w, max),
        outcome(x.map2_, x, w, max),
        outcome(x.map_, torch.zeros(2, dtype=torch.int64), max),
    ]


@pytest.mark.origin("tutorials")
def test_arrays_of_parameters_under_no_grad():
    weight = rushlight.nn.Parameter(rushlight.ones(2))
    with rushlight.no_grad():
        assert weight.numpy() is weight._array
        assert np.asarray(weight * 2).tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="Can't call numpy\\(\\) on Tensor that requires grad"):
        weight.numpy()
    with rushlight.autograd.graph.saved_tensors_hooks(lambda t: t.numpy().copy(), rushlight.from_numpy):
        y = weight.exp() ** 2
    y.sum().backward()
    assert weight.grad.tolist() == pytest.approx([2 * np.exp(2)] * 2)
