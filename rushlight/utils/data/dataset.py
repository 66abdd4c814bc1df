"""Data sets: samples by number (`Dataset`) or one after the other (`IterableDataset`)."""

from __future__ import annotations

import warnings
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain
from math import floor, isclose
from typing import Any, Generic, TypeVar

import numpy as np

from rushlight.base.errors import assertion_error, not_implemented_error, value_error
from rushlight.core.mode import mode
from rushlight.core.tensor import Tensor, from_array
from rushlight.random import default_generator

T = TypeVar("T", covariant=True)


class Dataset(Generic[T]):
    """data[i] is sample i: a subclass has `__getitem__`, and `__len__` for samplers. `a + b` is their concatenation.

    A data set may define `__getitems__(numbers)`, which returns a list of samples, if that is faster.

    >>> class Squares(rushlight.utils.data.Dataset):
    ...     def __len__(self):
    ...         return 4
    ...     def __getitem__(self, i):
    ...         return i * i
    >>> list(rushlight.utils.data.DataLoader(Squares(), batch_size=2))
    [tensor([0, 1]), tensor([4, 9])]
    """

    def __getitem__(self, index: Any) -> T:
        raise not_implemented_error("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T]):
    """iter(data) gives samples one after the other: for streams, and if access by number is slow.

    >>> class Count(rushlight.utils.data.IterableDataset):
    ...     def __iter__(self):
    ...         return iter(range(3))
    >>> list(rushlight.utils.data.DataLoader(Count(), batch_size=2))
    [tensor([0, 1]), tensor([2])]
    """

    def __iter__(self) -> Iterator[T]:
        raise not_implemented_error("Subclasses of IterableDataset should implement __iter__.")

    def __add__(self, other: Dataset) -> ChainDataset:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Sample i is (x[i], y[i], ...), for tensors of one length. AssertionError if their lengths differ.

    A `DataLoader` with the default `collate_fn` takes a batch of it with one index operation for each tensor.

    >>> data = rushlight.utils.data.TensorDataset(rushlight.arange(3), rushlight.arange(3) * 2)
    >>> data[1]
    (tensor(1), tensor(2))
    """

    def __init__(self, *tensors: Tensor):
        if any(len(t) != len(tensors[0]) for t in tensors):
            raise assertion_error(
                "Size mismatch between tensors",
                "all tensors need the same first size",
                shapes=[tuple(t.shape) for t in tensors],
            )
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple:
        return tuple([t[index] for t in self.tensors])

    def __len__(self) -> int:
        return len(self.tensors[0])

    def _batch(self, numbers: Any) -> list:
        """The collated batch of the samples with these indices, computed at once."""
        if mode().watch is None and all(t._node is None for t in self.tensors):
            places = np.asarray(numbers, np.intp)
            return [from_array(t._array.take(places, 0)) for t in self.tensors]
        return [t[list(numbers)] for t in self.tensors]


class StackDataset(Dataset[T]):
    """Sample i is (a[i], b[i], ...), or {"a": a[i], ...} for data sets given by name. ValueError if lengths differ.

    >>> data = rushlight.utils.data.StackDataset(x=range(3), y=range(10, 13))
    >>> data[1]
    {'x': 1, 'y': 11}
    """

    def __init__(self, *args: Dataset, **kwargs: Dataset):
        if args and kwargs:
            raise value_error(
                "Supported either ``tuple``- (via ``args``) or``dict``- (via ``kwargs``) like input/output, but "
                "both types are given."
            )
        self.datasets: Any = args or kwargs
        parts = self._parts()
        if not parts:
            raise value_error("At least one dataset should be passed")
        if any(len(d) != len(parts[0]) for d in parts):
            raise value_error("Size mismatch between datasets", lengths=[len(d) for d in parts])

    def _parts(self) -> list[Any]:
        return list(self.datasets.values() if isinstance(self.datasets, dict) else self.datasets)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: d[index] for name, d in self.datasets.items()}
        return tuple([d[index] for d in self.datasets])

    def __getitems__(self, indices: Sequence[int]) -> list:
        columns = [nested_samples(d, indices) for d in self._parts()]
        if isinstance(self.datasets, dict):
            return [dict(zip(self.datasets, row)) for row in zip(*columns)]
        return list(zip(*columns))

    def __len__(self) -> int:
        return len(self._parts()[0])


class ConcatDataset(Dataset[T]):
    """data[i] = sample i of the concatenated data sets. AssertionError for no data sets, or one without a length.

    >>> data = rushlight.utils.data.ConcatDataset([range(3), range(10, 12)])
    >>> len(data), data[3], data[-1]
    (5, 10, 11)
    """

    def __init__(self, datasets: Iterable[Any]):
        self.datasets = list(datasets)
        if not self.datasets:
            raise assertion_error("datasets should not be an empty iterable")
        if any(isinstance(d, IterableDataset) for d in self.datasets):
            raise assertion_error("ConcatDataset does not support IterableDataset", "use ChainDataset")
        self.cumulative_sizes = list(accumulate(map(len, self.datasets)))

    @staticmethod
    def cumsum(sequence: Iterable[Any]) -> list[int]:
        """The lengths, summed up."""
        return list(accumulate(map(len, sequence)))

    @property
    def cummulative_sizes(self) -> list[int]:
        """`cumulative_sizes` by torch's older spelling."""
        return self.cumulative_sizes

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> Any:
        if index < 0:
            if -index > len(self):
                raise value_error(
                    "absolute value of index should not exceed dataset length", index=index, length=len(self)
                )
            index += len(self)
        i = bisect_right(self.cumulative_sizes, index)
        return self.datasets[i][index - (self.cumulative_sizes[i - 1] if i else 0)]


class ChainDataset(IterableDataset[T]):
    """The samples of several iterable data sets in order: all of the first, then all of the second, ...

    >>> class Count(rushlight.utils.data.IterableDataset):
    ...     def __iter__(self):
    ...         return iter(range(3))
    >>> list(rushlight.utils.data.ChainDataset([Count(), Count()]))
    [0, 1, 2, 0, 1, 2]
    """

    def __init__(self, datasets: Iterable[Any]):
        self.datasets = datasets

    def _checked(self) -> Iterator[Any]:
        for d in self.datasets:
            if not isinstance(d, IterableDataset):
                raise assertion_error("ChainDataset only supports IterableDataset", "use ConcatDataset")
            yield d

    def __iter__(self) -> Iterator[Any]:
        return chain.from_iterable(self._checked())

    def __len__(self) -> int:
        return sum(map(len, self._checked()))


class Subset(Dataset[T]):
    """subset[i] = dataset[indices[i]]: the samples of a data set with the numbers `indices`, in their order.

    >>> list(rushlight.utils.data.Subset(range(10, 20), [7, 2]))
    [17, 12]
    """

    def __init__(self, dataset: Dataset[T] | Sequence[T], indices: Sequence[int]):
        self.dataset: Any = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: Sequence[int]) -> Any:
        return samples(self.dataset, [self.indices[i] for i in indices])

    def __len__(self) -> int:
        return len(self.indices)


def samples(dataset: Any, numbers: Sequence[int]) -> Any:
    """The samples with these indices: the result of `__getitems__` if the data set has this method, which may be a
    finished batch. `collate_fn` receives the result unchanged.
    """
    several = getattr(dataset, "__getitems__", None)
    return several(numbers) if several else [dataset[i] for i in numbers]


def nested_samples(dataset: Any, numbers: Sequence[int]) -> Any:
    """The samples of one data set of a StackDataset. ValueError unless there is one for each number."""
    found = samples(dataset, numbers)
    if len(found) != len(numbers):
        raise value_error(
            f"Nested dataset's output size mismatch. Expected {len(numbers)}, got {len(found)}",
            f"{type(dataset).__name__}.__getitems__ must return a sample for each number",
        )
    return found


def is_tensors(dataset: Any) -> bool:
    """Whether `whole_batch` supports the data set: a `TensorDataset`, or a subset of one."""
    while type(dataset) is Subset:
        dataset = dataset.dataset
    return type(dataset) is TensorDataset


def whole_batch(dataset: Any, numbers: Any) -> list:
    """The default collation of the samples with these indices, computed at once."""
    while type(dataset) is Subset:
        numbers, dataset = [dataset.indices[i] for i in numbers], dataset.dataset
    return dataset._batch(numbers)


def random_split(
    dataset: Dataset[T] | Sequence[T], lengths: Sequence[int | float], generator: Any = default_generator
) -> list[Subset[T]]:
    """Parts of the given lengths, or fractions of the whole, by one random permutation: torch's for the same seed.

    Left-over samples go to the first parts, one each. ValueError unless the lengths add up to the whole.

    >>> _ = rushlight.random.manual_seed(0)
    >>> [part.indices for part in rushlight.utils.data.random_split(range(5), [3, 2])]
    [[4, 0, 1], [3, 2]]
    """
    whole: Any = dataset  # a data set to split has a length
    total = len(whole)
    if isclose(sum(lengths), 1) and sum(lengths) <= 1:
        lengths = counts(lengths, total)
    if sum(lengths) != total:
        raise value_error(
            "Sum of input lengths does not equal the length of the input dataset!", lengths=list(lengths), dataset=total
        )
    order = generator.randperm(int(sum(lengths))).tolist()
    ends = list(accumulate(int(n) for n in lengths))
    return [Subset(dataset, order[end - int(n) : end]) for n, end in zip(lengths, ends)]


def counts(fractions: Sequence[float], total: int) -> list[int]:
    """Integers in proportion to the fractions."""
    for i, fraction in enumerate(fractions):
        if fraction < 0 or fraction > 1:
            raise value_error(f"Fraction at index {i} is not between 0 and 1", fraction=fraction)
    parts = [floor(total * fraction) for fraction in fractions]
    for i in range(total - sum(parts)):
        parts[i % len(parts)] += 1
    for i, n in enumerate(parts):
        if n == 0:
            warnings.warn(f"Length of split at index {i} is 0. This might result in an empty dataset.", stacklevel=3)
    return parts


class functional_datapipe:
    """A class decorator that gives a data pipe the name of a method. It returns the class unchanged.

    Libraries decorate their classes at import. Data pipes raise NotImplementedError when they are constructed.

    >>> @rushlight.utils.data.functional_datapipe("doubled")
    ... class Doubled: ...
    """

    def __init__(self, name: str, enable_df_api_tracing: bool = False):
        self.name, self.enable_df_api_tracing = name, enable_df_api_tracing

    def __call__(self, cls: type) -> type:
        return cls
