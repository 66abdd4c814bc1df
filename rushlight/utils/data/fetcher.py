"""From numbers of samples to a batch, in the program itself or in a worker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from rushlight.utils.data.collate import default_collate
from rushlight.utils.data.dataset import is_tensors, samples, whole_batch

END_OF_DATA = object()  # returned by a fetcher at the end of an iterable data set


class _DatasetKind:
    """torch's numbers of the two kinds of data sets."""

    Map, Iterable = 0, 1


@dataclass(frozen=True)
class Recipe:
    """The recipe of a batch: the part of a loader that a worker needs."""

    dataset: Any
    collate_fn: Callable[[Any], Any]
    batched: bool  # whether a task is a batch of samples, not a single sample
    drop_last: bool
    kind: int  # the kind of data set: _DatasetKind

    @classmethod
    def of(cls, loader: Any) -> Recipe:
        """The recipe of a loader, from the attributes that torch reads when an iteration begins: a subclass may
        override them, and another object may have them."""
        return cls(loader.dataset, loader.collate_fn, loader._auto_collation, loader.drop_last, loader._dataset_kind)

    def at_once(self) -> bool:
        """Whether batches can be taken from tensors at once."""
        return self.batched and self.collate_fn is default_collate and is_tensors(self.dataset)

    def fetcher(self) -> Callable[[Any], Any]:
        """A function from indices to a batch. It returns END_OF_DATA at the end of an iterable data set."""
        dataset, collate = self.dataset, self.collate_fn
        if self.kind == _DatasetKind.Iterable:
            return self.stream(iter(dataset))
        if not self.batched:
            return lambda number: collate(dataset[number])
        if self.at_once():
            return lambda numbers: whole_batch(dataset, numbers)
        return lambda numbers: collate(samples(dataset, numbers))

    def stream(self, source: Iterator[Any]) -> Callable[[Any], Any]:
        """The fetcher for an iterable data set."""

        def fetch(numbers: Any) -> Any:
            if not self.batched:
                sample = next(source, END_OF_DATA)
                return END_OF_DATA if sample is END_OF_DATA else self.collate_fn(sample)
            found = [sample for _, sample in zip(numbers, source)]
            short = not found or (self.drop_last and len(found) < len(numbers))
            return END_OF_DATA if short else self.collate_fn(found)

        return fetch
