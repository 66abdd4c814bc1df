"""Storages as torch's older programs make and read them, copies that share memory, and writes into repeated memory."""

from __future__ import annotations

import copy
import io
import pickle
import warnings

import numpy as np
import pytest

import rushlight
from tests.support.programs import Programs, leaf, outcome

run = Programs()
warned = pytest.mark.filterwarnings("ignore")


# -- storages --------------------------------------------------------------------------------------


@run
def storages_are_made_of_sizes_lists_bytes_and_other_storages(torch):
    bits = np.array([1.0, -2.5], np.float32).tobytes()
    s = torch.FloatStorage([1.0, 2.0, 3.0, 4.0])
    made = [
        torch.UntypedStorage([1, 2, 255]),
        torch.TypedStorage([1, 2], dtype=torch.float64),
        torch.BoolStorage([True, False]),
        torch.TypedStorage(wrap_storage=s.untyped(), dtype=torch.int32),
        torch.BFloat16Storage([1.5]),
        torch.FloatStorage.from_buffer(bits, "little"),
        torch.IntStorage.from_buffer(bytes([0, 0, 1, 5]), "big"),
        torch.ByteStorage.from_buffer(bytes(range(9)), offset=2, count=3),
        s.clone(),
        s.int(),
        s.double(),
        torch.FloatStorage(4).copy_(s),
        torch.FloatStorage(2).fill_(3.0),
        torch.UntypedStorage(3).fill_(7),
        s.untyped().clone(),
    ]
    s[1:3] = 9
    return (
        [m.tolist() for m in made]
        + [str(m.dtype) for m in made[1:6]]
        + [
            s.tolist(),
            s[-1],
            s.type(),
            len(torch.UntypedStorage(5)),
            torch.UntypedStorage().size(),
            len(torch.FloatStorage(3)),
            isinstance(s, torch.FloatStorage),
            isinstance(s, torch.DoubleStorage),
            issubclass(torch.FloatStorage, torch.TypedStorage),
        ]
    )


@run
def what_is_no_storage_is_refused(torch):
    s = torch.FloatStorage(2)
    return [
        outcome(torch.UntypedStorage, [1.5]),
        outcome(torch.FloatStorage, 1, 2),
        outcome(torch.FloatStorage, "ab"),
        outcome(torch.FloatStorage.from_buffer, b"abcd"),
        outcome(torch.TypedStorage, wrap_storage=s),
        outcome(s.__getitem__, 5),
        outcome(s.__getitem__, "a"),
        outcome(s.copy_, torch.FloatStorage(3)),
        outcome(torch.tensor, s, dtype=torch.int64),
        outcome(torch.zeros(0, dtype=torch.int64).set_, s),
        outcome(torch.UntypedStorage, -1),
    ]


@run
def tensors_are_made_of_storages(torch):
    s = torch.FloatStorage([1.0, 2.0])
    shared, again = torch.FloatTensor(s), torch.as_tensor(s)
    s[0] = 7.0
    return [
        shared,
        again,
        torch.tensor(s),
        torch.Tensor(s),
        torch.zeros(0).set_(s),
        torch.tensor(s.untyped(), dtype=torch.float32),
        torch.tensor(torch.UntypedStorage([0, 1, 2]), dtype=torch.uint8),
        torch.ByteTensor(torch.ByteStorage.from_buffer(b"ab")),
    ]


@run
def meta_tensors_have_storages_without_bytes(torch):
    s = torch.empty(3, 4, device="meta").untyped_storage()
    return [s.nbytes(), str(s.device), s.data_ptr(), torch.empty(3, device="meta").storage().size()]


def saved_and_loaded(torch, thing, **how):
    file = io.BytesIO()
    torch.save(thing, file, **how)
    return [torch.load(io.BytesIO(file.getvalue()), weights_only=safe) for safe in (True, False)]


@run
def files_hold_storages(torch):
    x = torch.arange(6.0)
    found = []
    for how in ({}, {"_use_new_zipfile_serialization": False}):
        for s, part in saved_and_loaded(torch, [x.storage(), x[2:]], **how):
            s[3] = 9.0
            found += [s.tolist(), part, str(s.dtype)]
    found += [s.tolist() for s in saved_and_loaded(torch, torch.ones(1).untyped_storage())]
    return [*found, outcome(torch.save, [x, x.untyped_storage()], io.BytesIO())]


@run
def files_hold_tensors_without_numbers(torch):
    meta = [torch.empty(2, 3, device="meta").t(), torch.nn.Parameter(torch.empty(2, device="meta"))]
    return [
        [str(t.device), list(t.shape), list(t.stride()), t.requires_grad, type(t).__name__]
        for found in saved_and_loaded(torch, meta)
        for t in found
    ]


def test_torch_reads_our_storages_and_we_torchs(torch):
    for one, other in ((torch, rushlight), (rushlight, torch)):
        x, file = one.arange(4.0), io.BytesIO()
        one.save([x.storage(), x[1:], one.empty(2, device="meta")], file)
        s, part, meta = other.load(io.BytesIO(file.getvalue()))
        s[2] = 7.0
        assert (s.tolist(), part.tolist(), meta.is_meta) == ([0.0, 1.0, 7.0, 3.0], [1.0, 7.0, 3.0], True)


# -- copies ----------------------------------------------------------------------------------------


@run
def copies_share_memory_as_what_they_were_copied_from(torch):
    x = torch.arange(6.0)
    twins = copy.deepcopy(
        [x, x[2:], x.view(2, 3).t(), x.detach(), x[::2].expand(2, 3), x.as_strided((2, 2), (1, 2), 1), x.storage()]
    )
    twins[0].add_(10)
    twins[6][1] = -1.0
    return [*twins[:6], *[list(t.stride()) for t in twins[:6]], twins[6].tolist(), x]


@run
def copied_models_keep_buffers_that_view_each_other(torch):
    model = torch.nn.Linear(2, 2)
    model.register_buffer("table", torch.zeros(4))
    model.register_buffer("row", model.table[1:3])
    twin = copy.deepcopy(model)
    twin.table.fill_(5.0)
    w = leaf(torch, 1.0, 2.0)
    v, shadow = copy.deepcopy([w, w.detach()])
    (v * v).sum().backward()
    shadow[0] = 9.0
    return [twin.row, model.row, v, v.grad, w]


def test_a_write_to_a_copied_alias_is_noticed_by_backward():
    w, shadow = copy.deepcopy([x := rushlight.ones(2, requires_grad=True), x.detach()])
    y = (w * w).sum()
    shadow.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_copies_of_a_part_of_a_mapped_file_are_of_that_part(tmp_path):
    np.zeros(1000, np.float32).tofile(tmp_path / "numbers")
    x = rushlight.from_file(str(tmp_path / "numbers"), size=1000)
    assert copy.deepcopy(x[3:5]).untyped_storage().nbytes() == 8


def test_typed_storages_of_files(tmp_path):
    path = tmp_path / "numbers"
    np.arange(3, dtype=np.int32).tofile(path)
    s = rushlight.IntStorage.from_file(str(path), shared=True, size=3)
    s[0] = 9
    assert (s.tolist(), np.fromfile(path, np.int32).tolist()) == ([9, 1, 2], [9, 1, 2])
    assert s.__sizeof__() - rushlight.IntStorage().__sizeof__() == 12
    with pytest.raises(RuntimeError, match="derived classes"):
        rushlight.TypedStorage.from_file(str(path), size=3)


def test_storages_survive_pickles():
    s = rushlight.arange(3.0).storage()
    assert pickle.loads(pickle.dumps(s)).tolist() == [0.0, 1.0, 2.0]
    assert pickle.loads(pickle.dumps(s.untyped())).tolist() == s.untyped().tolist()


# -- writes into repeated memory -------------------------------------------------------------------


@run
def expanded_tensors_are_written_where_no_place_would_hold_two_numbers(torch):
    def left(write, *shape):
        x = torch.zeros(1, *shape[1:]).expand(*shape)
        return [outcome(write, x), x]

    return [
        left(lambda x: x[0].add_(1), 3),
        left(lambda x: x[:2].fill_(2.0), 3),
        left(lambda x: x.zero_(), 3),
        left(lambda x: x.__setitem__(0, 5.0), 3, 2),
        left(lambda x: x[1].copy_(torch.tensor([1.0, 2.0])), 3, 2),
        left(lambda x: x.add_(1), 3),
        left(lambda x: x.copy_(torch.arange(3.0)), 3),
        left(lambda x: x.uniform_(), 3),
    ]


@run
def gradients_of_expanded_tensors_that_were_written(torch):
    def gradient(write, *shape):
        w = torch.ones(*shape, dtype=torch.float64, requires_grad=True)
        b = w * 1
        x = b.expand(*shape[:-1], 3)
        write(x)
        x.sum().backward()
        return [w.grad, b]

    return [gradient(lambda x: x.__setitem__(0, 5.0), 1), gradient(lambda x: x[0].mul_(2.0), 1)]


test_program = warned(run.test())


def test_read_only_memory_stays_so():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x = rushlight.from_numpy(np.frombuffer(b"abcd", np.uint8))
    with pytest.raises(RuntimeError, match="read-only"):
        x[0] = 1
    assert bytes(x.tolist()) == b"abcd"


@pytest.mark.origin("programs")
def test_storage():
    x = rushlight.arange(4.0).reshape(2, 2)
    memory = x[1].storage()
    memory[0] = 9
    assert x.tolist() == [[9, 1], [2, 3]]
    assert memory == x.storage()
    assert memory != x.clone().storage()
    assert x.untyped_storage().data_ptr() == x.data_ptr()
    assert rushlight.is_storage(memory.untyped())
    told = repr(rushlight.ones(1).storage())
    assert told == " 1.0\n[torch.storage.TypedStorage(dtype=torch.float32, device=cpu) of size 1]"
    with pytest.raises(RuntimeError, match="slices are only supported"):
        memory[1:]


@run.found_in("torch tests")
def tensors_are_set_on_other_memory(torch):
    source, x, y = torch.arange(6.0), torch.zeros(2), torch.tensor([])
    made = [
        x.set_(source.storage(), 1, (2, 2), (2, 1)).clone(),
        list(x.stride()),
        x.storage_offset(),
        y.set_(source.untyped_storage()).clone(),
        outcome(y.set_, torch.arange(3)),
        y.set_(source[2:4]).clone(),
    ]
    x[0] = 10.0
    return [
        *made,
        source,
        y,
        y.set_(source, 1, (2,)).clone(),
        y.set_(),
        outcome(torch.ones(1, requires_grad=True).set_, source),
    ]


@run.found_in("torch tests")
def storages_of_windows_are_those_of_the_whole(torch):
    x = torch.arange(12.0).view(4, 3)
    views = [x.as_strided((2, 2), (3, 1), 1), x.unfold(0, 2, 1), x.t(), x[1:].unfold(1, 2, 1)[:, 1]]
    return [
        [
            v.untyped_storage().data_ptr() == x.untyped_storage().data_ptr(),
            v.storage_offset(),
            v.untyped_storage().nbytes(),
        ]
        for v in views
    ]


@run.found_in("torch tests")
def sizes_that_no_memory_has_are_refused(torch):
    return [outcome(torch.empty(()).resize_, size) for size in ([8, 8, 2**29, 2**29], [0, 4, 2**61])]


@run.found_in("torch tests")
def tensors_in_their_own_size_stay_as_they_lie(torch):
    x, image = torch.arange(6.0).view(2, 3).t(), torch.rand(2, 3, 4, 4).contiguous(memory_format=torch.channels_last)
    flat, kept = torch.rand(image.numel()), list(x.resize_as_(x).stride())
    return [
        kept,
        list(flat.resize_as_(image, memory_format=torch.preserve_format).stride()),
        list(x.resize_(3, 2, memory_format=torch.contiguous_format).stride()),
        outcome(x.resize_, 2, memory_format=torch.preserve_format),
    ]


@pytest.mark.origin("torch tests")
def test_tensors_in_files(tmp_path, oracle):
    def ask(lib):
        path = str(tmp_path / lib.__name__)
        shared = lib.from_file(path, shared=True, size=4, dtype=lib.float64)
        shared[1] = 5.0
        own = lib.from_file(path, size=3, dtype=lib.float64)
        own += 1.0
        assert type(shared.numpy()) is np.ndarray
        with pytest.raises(RuntimeError):
            lib.from_file(path, size=200)
        return np.concatenate([np.fromfile(path), own.numpy()])

    np.testing.assert_array_equal(ask(rushlight), oracle(ask))


@pytest.mark.origin("torch tests")
def test_storages_say_whether_they_are_shared():
    x = rushlight.zeros(2)
    assert [x.storage().is_shared(), x.untyped_storage().is_shared()] == [False, False]
    x.share_memory_()
    assert [x.storage().is_shared(), x.untyped_storage().is_shared()] == [True, True]
