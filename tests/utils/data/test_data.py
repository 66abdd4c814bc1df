"""Data sets, samplers and the loader: torch's orders and random streams for the same seeds, collation, refusals."""

from __future__ import annotations

import random
import warnings
from collections import OrderedDict, defaultdict, namedtuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rushlight
from rushlight.random import Generator, default_generator, manual_seed
from rushlight.utils import data

Pair = namedtuple("Pair", "x y")


def plain(value):
    """Batches as nested lists, whatever library they come from."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(plain, value))
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return value.tolist() if hasattr(value, "tolist") else value


def seeded(torch):
    """Seeds everything; gives the library's data module, its uniform numbers and a maker of generators."""
    random.seed(3)
    np.random.seed(4)
    if torch is rushlight:
        manual_seed(7)
        return (data, lambda: float(default_generator.uniform(1)[0]), lambda seed: Generator().manual_seed(seed))
    torch.manual_seed(7)
    return (torch.utils.data, lambda: torch.rand(1).item(), lambda seed: torch.Generator().manual_seed(seed))


def same(oracle, ask):
    """Both libraries give the same, and their random numbers then go on alike."""

    def asked(torch):
        d, uniform, generator = seeded(torch)
        return plain([ask(torch, d, uniform, generator), uniform(), random.random(), np.random.rand()])

    assert asked(rushlight) == oracle(asked)


# -- orders ----------------------------------------------------------------------------------------


def test_shuffled_epochs(oracle):
    def ask(torch, d, uniform, generator):
        tensors = d.TensorDataset(torch.arange(50), torch.arange(50.0) / 2)
        loaders = [
            d.DataLoader(tensors, batch_size=7, shuffle=True),
            d.DataLoader(tensors, batch_size=7, shuffle=True, drop_last=True),
            d.DataLoader(tensors, batch_size=5, shuffle=True, generator=generator(5)),
            d.DataLoader(range(20), batch_size=6, shuffle=True),
            d.DataLoader(range(20), batch_size=6, shuffle=True, collate_fn=list),
        ]
        return [list(loader) for loader in loaders for _ in range(2)]

    same(oracle, ask)


def test_the_seed_of_the_acceptance_test():
    manual_seed(0)
    tensors = data.TensorDataset(rushlight.arange(10), rushlight.arange(10) * 2)
    order = [v for x, _ in data.DataLoader(tensors, batch_size=4, shuffle=True) for v in x.tolist()]
    assert order == [6, 7, 1, 4, 2, 0, 9, 8, 3, 5]


def test_samplers(oracle):
    def ask(torch, d, uniform, generator):
        n = range(20)
        return [
            list(sampler)
            for sampler in (
                d.SequentialSampler(n),
                d.RandomSampler(n),
                d.RandomSampler(n, True),
                d.RandomSampler(n, True, 70),
                d.RandomSampler(n, False, 50),
                d.RandomSampler(n, num_samples=5),
                d.RandomSampler(n, generator=generator(3)),
                d.SubsetRandomSampler([5, 6, 7, 1]),
                d.SubsetRandomSampler([5, 6, 7], generator=generator(3)),
                d.WeightedRandomSampler([0.1, 0.5, 2.0, 0.0], 10),
                d.WeightedRandomSampler([0.1, 0.5, 2.0, 3.0], 4, False),
                d.BatchSampler(d.RandomSampler(n), 3, True),
                d.BatchSampler(d.RandomSampler(n), 3, False),
            )
        ]

    same(oracle, ask)


def test_shares_of_several_processes(oracle):
    def ask(torch, d, uniform, generator):
        found = []
        for rank in range(3):
            samplers = [
                d.DistributedSampler(range(20), 3, rank),
                d.DistributedSampler(range(2), 5, rank),
                d.DistributedSampler(range(20), 3, rank, drop_last=True, seed=3),
                d.DistributedSampler(range(20), 3, rank, shuffle=False),
            ]
            samplers[0].set_epoch(2)
            found.append([[list(s), len(s)] for s in samplers])
        return found

    same(oracle, ask)


def test_random_split(oracle):
    def ask(torch, d, uniform, generator):
        parts = [
            d.random_split(range(10), [7, 3]),
            d.random_split(range(10), [0.33, 0.33, 0.34]),
            d.random_split(range(10), [0.5, 0.5], generator=generator(9)),
        ]
        part = d.random_split(d.TensorDataset(torch.arange(10)), [6, 4])[0]
        batches = list(d.DataLoader(part, batch_size=4, shuffle=True))
        return [[list(p.indices) for p in part] for part in parts], batches

    same(oracle, ask)


@given(st.integers(1, 60), st.integers(1, 20), st.booleans(), st.booleans(), st.booleans(), st.integers(1, 130))
def test_slices_of_an_order_are_its_batches(n, size, drop_last, replacement, seeded_by_hand, total):
    """The quick way, slices of arrays, draws and gives what a BatchSampler over Python's integers does."""
    found = []
    for sampler_class in (data.RandomSampler, type("Own", (data.RandomSampler,), {})):  # not of a subclass
        manual_seed(n)
        generator = default_generator if seeded_by_hand else None
        tensors = data.TensorDataset(rushlight.arange(n))
        sampler = sampler_class(tensors, replacement, total, generator)
        batches = plain(list(data.DataLoader(tensors, batch_size=size, sampler=sampler, drop_last=drop_last)))
        found.append((batches, default_generator.uniform(1)[0]))
    assert found[0] == found[1]
    assert sum(len(b) for (b,) in found[0][0]) == (total // size * size if drop_last else total)


# -- workers ---------------------------------------------------------------------------------------


class Augmented:
    """Samples with random numbers of three libraries, and who made them."""

    def __init__(self, d, uniform):
        self.d, self.uniform = d, uniform

    def __getitem__(self, i):
        info = self.d.get_worker_info()
        return (i, self.uniform(), random.random(), np.random.rand(), *((info.id, info.seed % 1000) if info else ()))

    def __len__(self):
        return 11


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
@pytest.mark.parametrize(
    "settings", [{}, {"num_workers": 1}, {"num_workers": 3}, {"num_workers": 2, "persistent_workers": True}]
)
def test_workers_draw_torchs_numbers(oracle, settings):
    def ask(torch, d, uniform, generator):
        loader = d.DataLoader(Augmented(d, uniform), batch_size=2, shuffle=True, **settings)
        return [list(loader) for _ in range(2)]

    same(oracle, ask)


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
@pytest.mark.parametrize("workers", [0, 1, 4])
def test_streams_shared_out_by_workers(oracle, workers):
    def ask(torch, d, uniform, generator):
        class Stream(d.IterableDataset):
            def __iter__(self):
                info = d.get_worker_info()
                part = (0, 11) if info is None else (info.id * 100, info.id * 100 + [3, 8, 1, 5][info.id])
                return iter(range(*part))

        options = [{"batch_size": None}, {"batch_size": 2}, {"batch_size": 3, "drop_last": True}]
        return [list(d.DataLoader(Stream(), num_workers=workers, **o)) for o in options]

    same(oracle, ask)


def test_worker_init_fn_seeds_only_its_worker():
    class Drawn(data.Dataset):
        def __getitem__(self, i):
            return float(default_generator.uniform(1)[0])

        def __len__(self):
            return 4

    manual_seed(0)
    first, second = default_generator.uniform(2)
    manual_seed(7)
    drawn = [batch.item() for batch in data.DataLoader(Drawn(), num_workers=2, worker_init_fn=lambda i: manual_seed(i))]
    assert [drawn[0], drawn[2]] == [first, second]
    assert drawn[1] not in drawn[::2]
    outside = default_generator.uniform(1)
    manual_seed(7)
    default_generator.random_((), np.int64)
    assert outside == default_generator.uniform(1)


def test_errors_in_a_data_set_come_through():
    class Broken(data.Dataset):
        def __getitem__(self, i):
            random.seed(5)
            raise KeyError(f"sample {i}")

        def __len__(self):
            return 2

    for workers in (0, 2):
        state = random.getstate()
        with pytest.raises(KeyError, match="sample 0"):
            list(data.DataLoader(Broken(), num_workers=workers))
        assert (random.getstate() == state) == (workers > 0)
        assert data.get_worker_info() is None


# -- batches ---------------------------------------------------------------------------------------


class Sometimes(data.Dataset):
    """Ten numbers, of which two cannot be had."""

    def __len__(self):
        return 10

    def __getitem__(self, index):
        if index in (2, 7):
            raise KeyError(index)
        return index


@pytest.mark.parametrize("workers", [0, 2])
def test_the_next_batch_comes_behind_one_that_raised_an_error(workers):
    it, found = iter(data.DataLoader(Sometimes(), 2, num_workers=workers)), []
    for _ in range(6):
        try:
            found.append(plain(next(it, "end")))
        except KeyError:
            found.append("error")
    assert found == [[0, 1], "error", [4, 5], "error", [8, 9], "end"]


@pytest.mark.parametrize("workers", [0, 2])
def test_samplers_that_draw_when_they_are_asked_draw_before_the_seed(torch, workers):
    def epochs(torch):
        class Drawing(torch.utils.data.Sampler):
            def __len__(self):
                return 8

            def __iter__(self):
                return iter(torch.randperm(8).tolist())

        torch.manual_seed(0)
        loaders = [
            torch.utils.data.DataLoader(range(8), num_workers=workers, **how)
            for how in (
                {"batch_size": None, "sampler": Drawing()},
                {"batch_size": 3, "sampler": Drawing()},
                {"batch_size": None, "sampler": Drawing(), "persistent_workers": workers > 0},
            )
        ]
        return [plain(list(loader)) for loader in loaders for _ in range(2)]

    assert epochs(rushlight) == epochs(torch)


def test_loader(oracle):
    def ask(torch, d, uniform, generator):
        t = d.TensorDataset(torch.arange(10))
        loaders = [
            d.DataLoader(t),
            d.DataLoader(t, batch_size=4),
            d.DataLoader(t, batch_size=4, drop_last=True),
            d.DataLoader(t, batch_size=None),
            d.DataLoader(t, batch_size=3, sampler=[3, 1, 4, 1, 5]),
            d.DataLoader(t, batch_size=3, sampler=torch.arange(4)),
            d.DataLoader(t, batch_sampler=[[1, 2], [3]]),
            d.DataLoader(d.StackDataset(a=t, b=t), batch_size=4),
            d.DataLoader(d.StackDataset(t, t), batch_size=4),
            d.DataLoader(d.ConcatDataset([t, t]), batch_size=4, shuffle=True),
            d.DataLoader(d.Subset(t, [-1, 2, 3]), batch_size=2),
            d.DataLoader({"a": 1, "b": 2}, sampler=["a", "b"]),
            d.DataLoader(d.Subset(t, torch.tensor([1, 2, 3])), batch_size=2),
            d.DataLoader(d.Subset(d.Subset(t, [9, 8, 7]), [2, 0]), batch_size=2),
            d.DataLoader([{"x": np.ones(2), "y": (1, 2.5)}] * 3, batch_size=2),
            d.DataLoader(range(5), batch_size=2, collate_fn=lambda batch: sum(batch)),
        ]
        return [[list(loader), len(loader)] for loader in loaders]

    same(oracle, ask)


def test_a_batch_of_tensors_is_the_stack_of_its_samples():
    """By one index operation or sample by sample: the same values, dtypes and gradients; memory is the batch's own."""

    class Apart(data.TensorDataset):
        pass

    w = rushlight.ones(6, 2, requires_grad=True)
    columns = [
        rushlight.arange(12.0).reshape(6, 2),
        rushlight.arange(6),
        rushlight.ones(6, 1, 3, dtype=rushlight.bool),
        rushlight.zeros(6, 0),
        rushlight.ones(6, dtype=rushlight.bfloat16),
        w,
    ]
    whole = list(data.DataLoader(data.TensorDataset(*columns), batch_size=4))
    apart = list(data.DataLoader(Apart(*columns), batch_size=4))
    for a, b in zip(whole, apart, strict=True):
        assert type(a) is type(b) is list
        for x, y in zip(a, b, strict=True):
            assert x.dtype is y.dtype
            assert x.shape == y.shape
            assert x.tolist() == y.tolist()
            assert x.requires_grad == y.requires_grad
    whole[0][0].zero_()
    assert columns[0].sum().item() == 66
    whole[1][-1].sum().backward()
    assert w.grad.tolist() == [[0, 0]] * 4 + [[1, 1]] * 2


COLLATED = [
    [1, 2],
    [1.0, 2.0],
    [True, False],
    [1, 2.5],
    ["a", "b"],
    [np.float32(1), np.float32(2)],
    [np.bool_(True)],
    [np.ones(2), np.zeros(2)],
    [np.array(1.5), np.array(2.5)],
    [(1, 2.0), (3, 4.0)],
    [[1, 2], [3, 4]],
    [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}],
    [Pair(1, 2), Pair(3, 4)],
    [("a", 1), ("b", 2)],
    [range(3), range(3)],
    [{"a": [1, (2, 3)]}, {"a": [4, (5, 6)]}],
]


@pytest.mark.parametrize("batch", COLLATED, ids=range(len(COLLATED)))
def test_default_collate(oracle, batch):
    def asked(torch):
        d = data if torch is rushlight else torch.utils.data
        found = d.default_collate(batch)
        dtype = str(getattr(found, "dtype", type(found).__name__))
        return plain([list(found) if isinstance(found, Pair) else found, dtype])

    assert asked(rushlight) == oracle(asked)


def test_containers_keep_their_kind():
    assert type(data.default_collate([Pair(1, 2)])) is Pair
    assert data.default_collate([b"a", b"b"]) == [b"a", b"b"]
    assert type(data.default_collate([OrderedDict(a=1)])) is OrderedDict
    assert data.default_collate([defaultdict(int, a=1)]).default_factory is int
    assert type(data.default_convert(Pair(np.ones(1), 2))) is Pair


@pytest.mark.parametrize(
    ("error", "words", "batch"),
    [
        (TypeError, "found <class 'NoneType'>", [None]),
        (TypeError, "found <U1", [np.array("x")]),
        (TypeError, "found <class 'set'>", [{1, 2}]),
        (RuntimeError, "should be of equal size", [[1], [1, 2]]),
        (RuntimeError, "stack", [np.ones(2), np.ones(3)]),
    ],
)
def test_what_cannot_be_collated(error, words, batch):
    with pytest.raises(error, match=words):
        data.default_collate(batch)


def test_collation_of_ones_own():
    from rushlight.utils.data.collate import collate

    table = {int: lambda b, collate_fn_map: sum(b), str: lambda b, collate_fn_map: "".join(b)}
    assert collate([(1, "a"), (2, "b")], collate_fn_map=table) == [3, "ab"]


def test_default_convert():
    a = np.ones(2)
    converted = data.default_convert([a, "x", {"k": (a, 2)}, np.float32(2), None])
    assert plain(converted) == [[1, 1], "x", {"k": [[1, 1], 2]}, 2.0, None]
    assert converted[0].numpy() is a


# -- data sets -------------------------------------------------------------------------------------


def test_data_sets():
    t = data.TensorDataset(rushlight.arange(4), rushlight.arange(4) * 10)
    assert len(t) == 4
    assert plain(t[2]) == [2, 20]
    assert plain(t[-1]) == [3, 30]
    both = t + data.TensorDataset(rushlight.arange(2), rushlight.arange(2))
    assert len(both) == 6
    assert plain(both[4]) == [0, 0]
    assert plain(both[-1]) == [1, 1]
    assert both.cumulative_sizes == [4, 6]
    stacked = data.StackDataset(a=t, b=range(4))
    assert plain(stacked[1]) == {"a": [1, 10], "b": 1}
    assert plain(stacked.__getitems__([1, 3])) == [{"a": [1, 10], "b": 1}, {"a": [3, 30], "b": 3}]
    assert plain(data.Subset(t, [3, 0]).__getitems__([1])) == [[0, 0]]
    assert data.Dataset[int] is not None


def test_iterable_data_sets():
    class Letters(data.IterableDataset):
        def __iter__(self):
            return iter("abc")

        def __len__(self):
            return 2

    assert list(Letters() + Letters()) == list("abcabc")
    assert len(Letters() + Letters()) == 4
    loader = data.DataLoader(Letters())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [b for (b,) in iter(loader)] == list("abc")
    assert len(loader) == 2
    with pytest.warns(UserWarning, match="reported to be 2"):
        list(iter(loader))


def test_items_by_the_data_sets_own_way():
    class Several(data.Dataset):
        asked = []

        def __getitems__(self, numbers):
            self.asked.append(list(numbers))
            return [n * 10 for n in numbers]

        def __len__(self):
            return 5

    assert plain(list(data.DataLoader(Several(), batch_size=3))) == [[0, 10, 20], [30, 40]]
    assert Several.asked == [[0, 1, 2], [3, 4]]


T = data.TensorDataset(rushlight.arange(10))


class Endless(data.IterableDataset):
    def __iter__(self):
        return iter(int, 1)


@pytest.mark.parametrize(
    ("error", "words", "make"),
    [
        (ValueError, "num_workers option should be non-negative", lambda: data.DataLoader(T, num_workers=-1)),
        (ValueError, "timeout option should be non-negative", lambda: data.DataLoader(T, timeout=-1)),
        (ValueError, "prefetch_factor option could only", lambda: data.DataLoader(T, prefetch_factor=2)),
        (ValueError, "needs num_workers > 0", lambda: data.DataLoader(T, persistent_workers=True)),
        (ValueError, "mutually exclusive with shuffle", lambda: data.DataLoader(T, sampler=[1], shuffle=True)),
        (ValueError, "exclusive with batch_size", lambda: data.DataLoader(T, batch_sampler=[[1]], batch_size=3)),
        (ValueError, "disables auto-batching", lambda: data.DataLoader(T, batch_size=None, drop_last=True)),
        (ValueError, "got batch_size=0", lambda: data.DataLoader(T, batch_size=0)),
        (ValueError, "unspecified shuffle option", lambda: data.DataLoader(Endless(), shuffle=True)),
        (ValueError, "unspecified sampler option", lambda: data.DataLoader(Endless(), sampler=[1])),
        (TypeError, "has no len", lambda: len(data.DataLoader(Endless()))),
        (ValueError, "should not be set after DataLoader", lambda: setattr(data.DataLoader(T), "batch_size", 3)),
        (AssertionError, "Size mismatch", lambda: data.TensorDataset(rushlight.ones(2), rushlight.ones(3))),
        (ValueError, "At least one dataset", lambda: data.StackDataset()),
        (ValueError, "Size mismatch", lambda: data.StackDataset(range(2), range(3))),
        (AssertionError, "empty iterable", lambda: data.ConcatDataset([])),
        (AssertionError, "does not support IterableDataset", lambda: data.ConcatDataset([Endless()])),
        (ValueError, "should not exceed dataset length", lambda: data.ConcatDataset([T])[-11]),
        (ValueError, "Sum of input lengths", lambda: data.random_split(T, [3, 3])),
        (ValueError, "Fraction at index 0", lambda: data.random_split(T, [-0.5, 1.5])),
        (ValueError, "got num_samples=0", lambda: data.RandomSampler([])),
        (TypeError, "replacement should be a boolean", lambda: data.RandomSampler(T, replacement=1)),
        (ValueError, "weights should be a 1d sequence", lambda: data.WeightedRandomSampler([[0.1]], 2)),
        (ValueError, "drop_last should be a boolean", lambda: data.BatchSampler(T, 2, 1)),
        (ValueError, "Invalid rank 5", lambda: data.DistributedSampler(T, 3, 5)),
        (NotImplementedError, "__getitem__", lambda: data.Dataset()[0]),
    ],
)
def test_refusals(error, words, make):
    with pytest.raises(error, match=words):
        make()


def test_an_empty_part_is_warned_of():
    with pytest.warns(UserWarning, match="split at index 1 is 0"):
        assert [len(p) for p in data.random_split(range(2), [0.1, 0.1, 0.8])] == [1, 0, 1]


def test_what_getitems_returns_goes_to_collate_fn_as_it_is():
    """keras' adapter of arrays returns a finished batch."""

    class Batches(data.Dataset):
        def __len__(self):
            return 5

        def __getitems__(self, indices):
            return {"x": rushlight.tensor(indices)}

    whole = data.DataLoader(Batches(), batch_size=2, collate_fn=lambda batch: batch)
    assert [b["x"].tolist() for b in whole] == [[0, 1], [2, 3], [4]]
    part = data.DataLoader(data.Subset(Batches(), [3, 1]), batch_size=2, collate_fn=lambda batch: batch)
    assert [b["x"].tolist() for b in part] == [[3, 1]]


def test_getitems_of_none_is_no_method():
    class Single(data.Dataset):
        __getitems__ = None

        def __len__(self):
            return 2

        def __getitem__(self, index):
            return index

    assert next(iter(data.DataLoader(Single(), batch_size=2))).tolist() == [0, 1]
