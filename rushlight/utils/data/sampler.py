"""Samplers: the order of a data set's samples. The same orders as torch's for the same seeds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import islice
from math import ceil
from typing import Any, Generic, TypeVar

import numpy as np

from rushlight.base.dtypes import float64
from rushlight.base.errors import type_error, value_error
from rushlight.comm.groups import get_rank, get_world_size
from rushlight.creation.factories import as_tensor
from rushlight.random import Generator, default_generator

T = TypeVar("T", covariant=True)


def drawn_seed(generator: Generator | None = None) -> int:
    """A seed: an int64 from the generator, or from the default one."""
    return (generator or default_generator).seed_number()


def check_positive(**numbers: Any) -> None:
    """ValueError unless each is an integer > 0."""
    for name, n in numbers.items():
        if not isinstance(n, int) or isinstance(n, bool) or n <= 0:
            raise value_error(f"{name} should be a positive integer value, but got {name}={n}")


class Sampler(Generic[T]):
    """iter(sampler) gives numbers of samples, or lists of them: the base of all samplers; a subclass has `__iter__`.

    >>> class Even(rushlight.utils.data.Sampler):
    ...     def __iter__(self):
    ...         return iter(range(0, 6, 2))
    >>> list(rushlight.utils.data.DataLoader(range(10, 16), sampler=Even(), batch_size=None))
    [10, 12, 14]
    """

    def __init__(self, data_source: Any = None):
        pass

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """0, 1, 2, ..., len(data_source) - 1.

    >>> list(rushlight.utils.data.SequentialSampler("abc"))
    [0, 1, 2]
    """

    def __init__(self, data_source: Sized):
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """All samples in random order, or with `replacement` any at random; `num_samples` of them, default all.

    Without a `generator` each epoch draws a seed from the default generator and uses a new generator with this seed.
    ValueError unless num_samples is an integer > 0, TypeError unless replacement is a bool.

    >>> _ = rushlight.random.manual_seed(0)
    >>> list(rushlight.utils.data.RandomSampler(range(5)))
    [1, 3, 4, 2, 0]
    """

    def __init__(
        self, data_source: Sized, replacement: bool = False, num_samples: int | None = None,
        generator: Generator | None = None,
    ):  # fmt: skip
        if not isinstance(replacement, bool):
            raise type_error(f"replacement should be a boolean value, but got replacement={replacement}")
        self.data_source, self.replacement = data_source, replacement
        self._num_samples, self.generator = num_samples, generator
        check_positive(num_samples=self.num_samples)

    @property
    def num_samples(self) -> int:
        """The number of samples drawn: default the length of the data."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        for part in self._parts():
            yield from part.tolist()

    def _parts(self) -> Iterator[np.ndarray]:
        """The order in arrays, drawn on demand. As in torch, it ends with a permutation of which 0 elements are
        taken.
        """
        generator = self.generator or Generator().manual_seed(drawn_seed())
        n, total = len(self.data_source), self.num_samples
        if self.replacement:
            for start in range(0, total, 32):
                yield generator.randint(0, n, (min(32, total - start),))
            return
        for _ in range(total // n):
            yield generator.randperm(n)
        yield generator.randperm(n)[: total % n]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The given numbers in random order, each once per round; drawn from `generator` or the default one.

    >>> _ = rushlight.manual_seed(0)
    >>> list(rushlight.utils.data.SubsetRandomSampler([10, 20, 30]))
    [30, 10, 20]
    """

    def __init__(self, indices: Sequence[int], generator: Generator | None = None):
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        for i in (self.generator or default_generator).randperm(len(self.indices)).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """P(i) = weights[i] / sum of weights: `num_samples` numbers, with `replacement` or each at most once.

    ValueError unless the weights are a vector.

    >>> _ = rushlight.manual_seed(0)
    >>> list(rushlight.utils.data.WeightedRandomSampler([1.0, 0.0, 3.0], num_samples=8))
    [2, 2, 2, 2, 2, 2, 0, 2]
    """

    def __init__(self, weights: Any, num_samples: int, replacement: bool = True, generator: Generator | None = None):
        check_positive(num_samples=num_samples)
        if not isinstance(replacement, bool):
            raise value_error(f"replacement should be a boolean value, but got replacement={replacement}")
        self.weights = as_tensor(weights, dtype=float64)
        if self.weights.dim() != 1:
            raise value_error(
                f"weights should be a 1d sequence but given weights have shape {tuple(self.weights.shape)}"
            )
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator

    def __iter__(self) -> Iterator[int]:
        generator = self.generator or default_generator
        yield from generator.multinomial(self.weights._array, self.num_samples, self.replacement).tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list]):
    """Lists of `batch_size` numbers from another sampler; the last one may be shorter unless `drop_last`.

    >>> list(rushlight.utils.data.BatchSampler(range(5), batch_size=2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool):
        check_positive(batch_size=batch_size)
        if not isinstance(drop_last, bool):
            raise value_error(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        numbers = iter(self.sampler)
        while batch := list(islice(numbers, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        n = len(self.sampler)  # type: ignore[arg-type]
        return n // self.batch_size if self.drop_last else ceil(n / self.batch_size)


class DistributedSampler(Sampler[int]):
    """order[rank], order[rank + num_replicas], ...: the share of one of several processes, in an order that all
    processes agree on.

    The order is random with seed + epoch (`set_epoch`), unless shuffle=False. To make the shares equal, samples from
    the beginning are repeated, or with `drop_last` the last ones left out. The number of replicas and the rank default
    to `torch.distributed`'s. ValueError for a rank out of range, or if there is no process group.

    >>> list(rushlight.utils.data.DistributedSampler(range(5), num_replicas=2, rank=1, shuffle=False))
    [1, 3, 0]
    """

    def __init__(
        self, dataset: Sized, num_replicas: int | None = None, rank: int | None = None, shuffle: bool = True,
        seed: int = 0, drop_last: bool = False,
    ):  # fmt: skip
        num_replicas = get_world_size() if num_replicas is None else num_replicas
        rank = get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise value_error(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset, self.num_replicas, self.rank = dataset, num_replicas, rank
        self.shuffle, self.seed, self.drop_last, self.epoch = shuffle, seed, drop_last, 0
        n = len(dataset)
        self.num_samples = n // num_replicas if drop_last and n % num_replicas else ceil(n / num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        n = len(self.dataset)
        order = Generator().manual_seed(self.seed + self.epoch).randperm(n).tolist() if self.shuffle else list(range(n))
        order = (order * ceil(self.total_size / n))[: self.total_size]
        return iter(order[self.rank :: self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Give each epoch its own order."""
        self.epoch = epoch
