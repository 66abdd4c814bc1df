"""DataLoader: batches of a data set, in the order of a sampler."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from math import ceil
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import numpy as np
from numpy import ndarray

from rushlight.base.dependencies import importable
from rushlight.base.errors import Suggesting, value_error
from rushlight.base.threads import process_cores
from rushlight.random import Generator
from rushlight.utils.data.collate import default_collate, default_convert
from rushlight.utils.data.dataset import IterableDataset
from rushlight.utils.data.fetcher import END_OF_DATA, Recipe, _DatasetKind
from rushlight.utils.data.sampler import BatchSampler, RandomSampler, SequentialSampler, check_positive, drawn_seed
from rushlight.utils.data.worker import Job
from rushlight.utils.data.worker_pool import WorkerIterator, check_context

_collate_fn_t = Callable[[list], Any]  # torch's name of the type of collate functions
HAS_PROCESSES = sys.platform not in ("emscripten", "wasi") and importable("_multiprocessing")
FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")


B = TypeVar("B")

if TYPE_CHECKING:
    from typing_extensions import TypedDict, Unpack

    from rushlight.core.tensor import Tensor
    from rushlight.utils.data.dataset import Dataset

    class LoaderSettings(TypedDict, total=False):
        """Settings of a loader that do not affect the content of a batch."""

        sampler: Iterable | None
        batch_sampler: Iterable | None
        num_workers: int
        collate_fn: None
        pin_memory: bool
        drop_last: bool
        timeout: float
        worker_init_fn: Callable[[int], Any] | None
        multiprocessing_context: Any
        generator: Generator | None
        prefetch_factor: int | None
        persistent_workers: bool
        pin_memory_device: str
        in_order: bool


class DataLoader(Suggesting, Generic[B]):
    """Batches of a data set; iterate over it once for each epoch.

    `batch_size` samples each (None: single samples), in order, shuffled (`shuffle`), by a `sampler` of numbers or a
    `batch_sampler` of lists; made by `collate_fn(samples)`, default `default_collate`. `drop_last` drops a short last
    batch. An `IterableDataset` decides the order itself.

    `num_workers` > 0 processes make the batches, each `prefetch_factor` (default 2) ahead; the batches come in order
    unless `in_order=False`. Each worker has its own random numbers and `get_worker_info()`, and calls
    `worker_init_fn(id)` first. Workers end with the epoch, or with the loader if `persistent_workers`.
    `multiprocessing_context`: how workers start: 'fork' (default on Linux), 'spawn' or 'forkserver'; the last two need
    a picklable data set and picklable functions. Workers are worthwhile if making a batch takes longer than sending it,
    about 1 ms for each 2 MB.

    Random numbers are torch's: each epoch draws a seed for the workers and one for the order, from `generator` or the
    default one. `pin_memory` is accepted and changes nothing.

    ValueError for settings that are out of range or exclude each other. An error in a worker is raised here, with the
    worker's traceback in its message; RuntimeError if a worker dies or a batch takes longer than `timeout` seconds.

    >>> data = rushlight.utils.data.TensorDataset(rushlight.arange(5))
    >>> [x for x, in rushlight.utils.data.DataLoader(data, batch_size=2)]
    [tensor([0, 1]), tensor([2, 3]), tensor([4])]
    """

    _initialized = False

    # A loader of tuples of tensors gives lists of tensors; with other samples or a user's `collate_fn` the type of a
    # batch is unknown.
    @overload
    def __init__(
        self: DataLoader[list[Tensor]],
        dataset: Dataset[tuple[Tensor, ...]],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        **settings: Unpack[LoaderSettings],
    ) -> None: ...

    @overload
    def __init__(self: DataLoader[Any], dataset: Any, *args: Any, **settings: Any) -> None: ...

    def __init__(
        self, dataset: Any, batch_size: int | None = 1, shuffle: bool | None = None, sampler: Iterable | None = None,
        batch_sampler: Iterable | None = None, num_workers: int = 0, collate_fn: Callable | None = None,
        pin_memory: bool = False, drop_last: bool = False, timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None, multiprocessing_context: Any = None,
        generator: Generator | None = None, *, prefetch_factor: int | None = None, persistent_workers: bool = False,
        pin_memory_device: str = "", in_order: bool = True,
    ) -> None:  # fmt: skip
        check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        if num_workers and not HAS_PROCESSES:
            warn_of_no_processes(num_workers)
            num_workers, prefetch_factor, multiprocessing_context = 0, None, None
            persistent_workers = False
        warn_of_many(num_workers)
        iterable = isinstance(dataset, IterableDataset)
        if iterable:
            check_iterable(shuffle=shuffle or None, sampler=sampler, batch_sampler=batch_sampler)
        check_order(batch_size, shuffle, sampler, batch_sampler, drop_last)
        if batch_sampler is not None:
            batch_size = None
        if sampler is None:
            sampler = (
                repeat(None)
                if iterable
                else RandomSampler(dataset, generator=generator)
                if shuffle
                else SequentialSampler(dataset)
            )
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        if collate_fn is None:
            collate_fn = default_convert if batch_sampler is None else default_collate
        self.dataset, self.batch_size, self.drop_last = dataset, batch_size, drop_last
        self.sampler, self.batch_sampler, self.collate_fn = sampler, batch_sampler, collate_fn
        self.num_workers, self.worker_init_fn, self.generator = num_workers, worker_init_fn, generator
        self.pin_memory, self.pin_memory_device, self.in_order = pin_memory, pin_memory_device, in_order
        self.timeout, self.persistent_workers = timeout, persistent_workers
        self.multiprocessing_context = multiprocessing_context
        self.prefetch_factor = 2 if prefetch_factor is None and num_workers else prefetch_factor
        self._iterator: WorkerIterator | None = None  # the iterator with persistent workers
        # the length of an iterable data set, after the first call of len()
        self._IterableDataset_len_called: int | None = None
        self._initialized = True

    def __setattr__(self, name: str, value: Any) -> None:
        if self._initialized and name in FIXED:
            raise value_error(
                f"{name} attribute should not be set after {type(self).__name__} is initialized", "create a new loader"
            )
        if name == "multiprocessing_context":
            check_context(value, self.num_workers)
        super().__setattr__(name, value)

    def __iter__(self) -> Iterator[B]:
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        batches = self._team().begin(numbers(self, Recipe.of(self)))
        return Counted(self, batches) if isinstance(self.dataset, IterableDataset) else batches

    def __len__(self) -> int:
        if not isinstance(self.dataset, IterableDataset):
            return len(self._index_sampler)
        n = self._IterableDataset_len_called = len(self.dataset)  # type: ignore[arg-type]
        if self.batch_size is None:
            return n
        return n // self.batch_size if self.drop_last else ceil(n / self.batch_size)

    @property
    def _dataset_kind(self) -> int:
        kinds = _DatasetKind
        return kinds.Iterable if isinstance(self.dataset, IterableDataset) else kinds.Map

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    def _team(self) -> WorkerIterator:
        """The workers: new processes with new seeds, or the previous processes if they are persistent and alive."""
        if self._iterator is not None and self._iterator.close.alive:
            return self._iterator
        recipe = Recipe.of(self)
        # as in torch, the sampler is called twice: here, before the seed is drawn, and later for the order
        numbers(self, recipe)
        n, seed = self.num_workers, drawn_seed(self.generator)
        jobs = [Job(i, n, seed, recipe, self.worker_init_fn) for i in range(n)]
        team = WorkerIterator(
            jobs,
            self.multiprocessing_context,
            self.prefetch_factor or 2,
            self.timeout,
            self.in_order,
            self.persistent_workers,
        )
        if self.persistent_workers:
            self._iterator = team
        return team


class _SingleProcessDataLoaderIter:
    """The batches of a loader, made by the program itself. After an error the next batch follows, as with workers."""

    def __init__(self, loader: Any):
        """`loader`: a DataLoader, or another object with the attributes that `Recipe.of` and `numbers` read."""
        recipe = Recipe.of(loader)
        # as in torch, this comes before the seed: a sampler may draw random numbers here
        self._sampler_iter = numbers(loader, recipe)
        drawn_seed(loader.generator)  # torch draws a seed even without workers
        self._fetch, self._loader, self._num_yielded = recipe.fetcher(), loader, 0
        self._dataset_kind = recipe.kind

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        batch = self._next_data()
        self._num_yielded += 1
        if self._dataset_kind == _DatasetKind.Iterable:
            warn_of_length(self._loader, self._num_yielded, stacklevel=3)
        return batch

    def _next_index(self) -> Any:
        return next(self._sampler_iter)

    def _next_data(self) -> Any:
        batch = self._fetch(self._next_index())
        if batch is END_OF_DATA:
            self._sampler_iter = iter(())
            raise StopIteration
        return batch

    def __len__(self) -> int:
        return len(self._loader)


class Counted:
    """The batches of a loader with workers, with torch's warning if there are more than its length."""

    def __init__(self, loader: DataLoader, batches: Iterator[Any]):
        self.loader, self.batches, self.count = loader, batches, 0

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        batch = next(self.batches)
        self.count += 1
        warn_of_length(self.loader, self.count, stacklevel=3)
        return batch


def numbers(loader: Any, recipe: Recipe) -> Iterator[Any]:
    """The indices to fetch next. Batches of the built-in random order are slices of an array, without lists of Python
    integers."""
    order = loader._index_sampler
    if type(order) is BatchSampler and type(order.sampler) is RandomSampler and recipe.at_once():
        return slices(order.sampler._parts(), order.batch_size, order.drop_last)
    return iter(order)


def warn_of_length(loader: Any, count: int, stacklevel: int) -> None:
    """Warn if the data set gave more samples than its length."""
    reported = loader._IterableDataset_len_called
    if reported is None or count <= reported:
        return
    text = (
        f"Length of IterableDataset {loader.dataset} was reported to be {reported}(when accessing "
        f"len(dataloader)), but {count} samples have been fetched. "
    )
    if loader.num_workers:
        text += (
            "For multiprocessing data-loading, this could be caused by not properly configuring the "
            "IterableDataset replica at each worker: see get_worker_info()."
        )
    warnings.warn(text, stacklevel=stacklevel)


def slices(parts: Iterator[ndarray], size: int, drop_last: bool) -> Iterator[ndarray]:
    """The parts, joined and divided into batches of one size. As in `BatchSampler`, each part is read only when it is
    needed.
    """
    rest = np.empty(0, np.int64)
    for part in parts:
        rest = np.concatenate((rest, part)) if len(rest) else part
        while len(rest) >= size:
            yield rest[:size]
            rest = rest[size:]
    if len(rest) and not drop_last:
        yield rest


def check_workers(num_workers: int, timeout: float, prefetch_factor: int | None, persistent: bool) -> None:
    """ValueError for settings of workers that are out of range, or make no sense without workers."""
    for bad, what in (
        (num_workers < 0, "num_workers option should be non-negative; use num_workers=0 to disable multiprocessing."),
        (timeout < 0, "timeout option should be non-negative"),
        (
            num_workers == 0 and prefetch_factor is not None,
            "prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to enable "
            "multiprocessing, otherwise set prefetch_factor to None.",
        ),
        (prefetch_factor is not None and prefetch_factor < 0, "prefetch_factor option should be non-negative"),
        (persistent and num_workers == 0, "persistent_workers option needs num_workers > 0"),
    ):
        if bad:
            raise value_error(what)


def warn_of_no_processes(num_workers: int) -> None:
    """Warn that the program makes the batches itself."""
    warnings.warn(
        f"num_workers={num_workers}, and there are no processes in a browser: the batches are made without workers; "
        "num_workers=0 avoids this warning",
        stacklevel=3,
    )


def warn_of_many(num_workers: int) -> None:
    """A warning for more workers than cores."""
    cores = process_cores()
    if num_workers > cores:
        warnings.warn(
            f"This DataLoader will create {num_workers} worker processes in total. Our suggested max number of worker "
            f"in current system is {cores}, which is smaller than what this DataLoader is going to create: it may run "
            "slowly; lower num_workers to avoid that.",
            stacklevel=3,
        )


def check_iterable(**options: Any) -> None:
    """ValueError for an explicit order, since an iterable data set defines the order itself."""
    for name, value in options.items():
        if value is not None:
            raise value_error(
                f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}",
                "define the order in the data set's __iter__",
            )


def check_order(batch_size: Any, shuffle: Any, sampler: Any, batch_sampler: Any, drop_last: Any) -> None:
    """ValueError for incompatible options."""
    if sampler is not None and shuffle:
        raise value_error("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None:
        if batch_size != 1 or shuffle or sampler is not None or drop_last:
            raise value_error(
                "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
            )
    elif batch_size is None:
        if drop_last:
            raise value_error("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
    else:
        check_positive(batch_size=batch_size)


# torch's names of iterators, for isinstance
_MultiProcessingDataLoaderIter: Any = (WorkerIterator, Counted)
_BaseDataLoaderIter: Any = (_SingleProcessDataLoaderIter, WorkerIterator, Counted)
