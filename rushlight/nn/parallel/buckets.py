"""The gradients of a module in buckets, each summed over all ranks as soon as its last gradient is
there, while backward goes on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any
from weakref import ref

import numpy as np

from rushlight.base.errors import explain
from rushlight.comm.collectives import all_reduce
from rushlight.comm.process_group import ProcessGroup
from rushlight.core.engine import reachable
from rushlight.core.tensor import Tensor, from_array
from rushlight.nn.parallel.sparse_gradients import sparse_mean

FIRST_BUCKET_BYTES = 1 << 20  # small, so that its sum begins early


class Bucket:
    """Gradients that are summed at once. `flat`: all of them; `views`: their places in `flat`, in
    their shapes. `sparse`: of one sparse gradient, which is not in `flat`."""

    def __init__(self, index: int, parameters: Sequence[Tensor], sparse: bool = False):
        self.index, self.parameters, self.sparse = index, list(parameters), sparse
        first, count = parameters[0]._array, sum(p.numel() for p in parameters)
        self.flat = np.zeros(0 if sparse else count, first.dtype)
        self.views, at = [self.flat] if sparse else [], 0
        for p in () if sparse else parameters:
            self.views.append(self.flat[at : at + p.numel()].reshape(p._array.shape))
            at += p.numel()
        self.missing = len(parameters)
        self.work: Any = None  # the Work of the sum, or the Future of a hook


class GradBucket:
    """A bucket as communication hooks see it."""

    def __init__(self, bucket: Bucket, is_last: bool):
        self.bucket, self.last = bucket, is_last
        self.tensor = from_array(bucket.flat)

    def index(self) -> int:
        """Its number; bucket 0 is summed first."""
        return self.bucket.index

    def buffer(self) -> Tensor:
        """All gradients of the bucket, one after the other, in one dimension."""
        return self.tensor

    def set_buffer(self, buffer: Tensor) -> None:
        """Take another tensor for its gradients."""
        self.tensor = buffer

    def gradients(self) -> list[Tensor]:
        """Its gradients, which share the memory of `buffer`."""
        flat, found, at = self.tensor._array, [], 0
        for p in self.bucket.parameters:
            found.append(from_array(flat[at : at + p.numel()].reshape(p._array.shape)))
            at += p.numel()
        return found

    def parameters(self) -> list[Tensor]:
        """The parameters of its gradients."""
        return list(self.bucket.parameters)

    def is_last(self) -> bool:
        """Whether it is the last of this backward."""
        return self.last


def in_buckets(parameters: Sequence[Tensor], cap_bytes: int) -> list[list[Tensor]]:
    """The parameters in reverse order, as backward comes to them, in lists of one dtype and at most
    `cap_bytes`."""
    made: list[list[Tensor]] = []
    open_lists: dict[Any, tuple[list[Tensor], int]] = {}
    for p in reversed(parameters):
        here, size = open_lists.get(p._array.dtype, ([], 0))
        limit = cap_bytes if made else min(cap_bytes, FIRST_BUCKET_BYTES)
        if here and size + p._array.nbytes > limit:
            made.append(here)
            here, size = [], 0
        here.append(p)
        open_lists[p._array.dtype] = here, size + p._array.nbytes
    return made + [here for here, _ in open_lists.values()]


class Reducer:
    """The buckets of a module, and how far the sums of one backward are."""

    def __init__(
        self,
        parameters: Sequence[tuple[str, Tensor]],
        group: ProcessGroup,
        cap_bytes: int,
        as_views: bool,
        sparse: Collection[int] = (),
    ):
        self.names = {id(p): name for name, p in parameters}
        self.group, self.as_views = group, as_views
        tensors = [p for _, p in parameters]
        dense = in_buckets([p for p in tensors if id(p) not in sparse], cap_bytes)
        self.buckets = [Bucket(i, ps) for i, ps in enumerate(dense)]
        for p in tensors:
            if id(p) in sparse:
                self.buckets.append(Bucket(len(self.buckets), [p], sparse=True))
        self.places = {
            id(p): (bucket, view)
            for bucket in self.buckets
            for p, view in zip(bucket.parameters, bucket.views)
        }
        self.hook: Callable[[Any, GradBucket], Any] | None = None
        self.hook_state: Any = None
        self.divisor = group.size()
        self.expecting = False  # from a forward that records gradients to the end of backward
        self.seen: set[int] = set()  # ids of the parameters whose gradient is there
        self.unused: set[int] = set()  # of this rank, where they are looked for
        self.looks_for_unused = False
        self.next_bucket = 0  # buckets are summed in the same order on all ranks
        weak = ref(self)

        def on_gradient(parameter: Tensor) -> None:
            if (reducer := weak()) is not None and reducer.expecting:
                reducer.ready(parameter)

        self.handles = [p.register_post_accumulate_grad_hook(on_gradient) for p in tensors]

    def __del__(self) -> None:
        for handle in getattr(self, "handles", ()):
            handle.remove()

    def prepare(self, outputs: Sequence[Tensor] | None) -> None:
        """A forward has run whose backward is to sum gradients. `outputs`: its results, where
        parameters that they do not depend on are to be found; else None."""
        self.expecting, self.next_bucket, self.seen = True, 0, set()
        self.looks_for_unused = outputs is not None
        for bucket in self.buckets:
            bucket.missing, bucket.work = len(bucket.parameters), None
        self.unused = set()
        if outputs is None:
            return
        nodes = {t._node for t in outputs if t._node is not None}
        used = {id(node) for node in reachable(nodes)}
        for bucket in self.buckets:
            for p, view in zip(bucket.parameters, bucket.views):
                if id(p._node) not in used:
                    self.unused.add(id(p))
                    if not bucket.sparse:
                        view[...] = 0 if p._grad is None else p._grad._array / self.predivisor()
                    bucket.missing -= 1
        self.launch()

    def check_finished(self) -> None:
        """Raise torch's error if the backward before has not had all gradients."""
        if not self.expecting or not self.seen:
            return
        missing = [self.names[i] for i in self.places if i not in self.seen | self.unused]
        raise RuntimeError(
            explain(
                "Expected to have finished reduction in the prior iteration before starting a new "
                "one. This error indicates that your module has parameters that were not used in "
                "producing loss.",
                "find_unused_parameters=True, or use all outputs of forward in the loss",
                without_gradient=", ".join(missing),
            )
        )

    def predivisor(self) -> float:
        """What gradients are divided by before they are summed; a hook divides itself."""
        return 1.0 if self.hook is not None else float(self.divisor)

    def ready(self, parameter: Any) -> None:
        """The gradient of a parameter is there."""
        key = id(parameter)
        bucket, view = self.places[key]
        if key in self.unused:
            raise RuntimeError(
                explain(
                    f"parameter {self.names[key]} has a gradient, and the outputs of forward do "
                    "not depend on it",
                    "compute the loss from the outputs of forward alone",
                )
            )
        if key in self.seen:
            raise RuntimeError(
                explain(
                    "Expected to mark a variable ready only once. Parameter "
                    f"{self.names[key]} has been marked as ready twice.",
                    "one backward for each forward",
                )
            )
        self.seen.add(key)
        if not bucket.sparse:
            grad = parameter._grad._array
            if grad is not view or self.predivisor() != 1.0:
                np.multiply(grad, view.dtype.type(1.0 / self.predivisor()), out=view)
        bucket.missing -= 1
        if not bucket.missing:
            self.launch()
        elif self.next_bucket:
            self.progress()

    def progress(self) -> None:
        """Let MPI go on with a sum that has begun."""
        for bucket in self.buckets[: self.next_bucket]:
            if hasattr(bucket.work, "poll") and not bucket.work.poll():
                return

    def launch(self) -> None:
        """Begin the sums of buckets that are complete, in order; after the last, finish."""
        while self.next_bucket < len(self.buckets):
            bucket = self.buckets[self.next_bucket]
            if bucket.missing:
                return
            self.next_bucket += 1
            self.begin(bucket)
        if self.expecting:
            self.finish()

    def begin(self, bucket: Bucket) -> None:
        if bucket.sparse:  # summed in finish: how many rows each rank has is not known
            return
        if self.hook is None:
            bucket.work = all_reduce(from_array(bucket.flat), group=self.group, async_op=True)
        else:
            last = bucket.index == len(self.buckets) - 1
            bucket.work = self.hook(self.hook_state, GradBucket(bucket, last))

    def finish(self) -> None:
        """Wait for all sums; the gradients become what they are."""
        self.expecting = False
        nowhere = self.used_nowhere() if self.looks_for_unused else set()
        for bucket in self.buckets:
            if bucket.sparse:
                p = bucket.parameters[0]
                mean = sparse_mean(p, self.divisor, self.group)
                if id(p) not in nowhere:
                    p._grad = mean
                continue
            result = bucket.work.wait()
            if self.hook is not None:
                value = result[0] if isinstance(result, (list, tuple)) else result
                if value._array is not bucket.flat:
                    bucket.flat[...] = value._array.reshape(-1)
            for p, view in zip(bucket.parameters, bucket.views):
                if id(p) not in nowhere:
                    self.give(p, view)

    def give(self, p: Tensor, view: np.ndarray) -> None:
        """Make a summed gradient the gradient of its parameter."""
        if self.as_views:
            if p._grad is None or p._grad._array is not view:
                p._grad = from_array(view)
        elif p._grad is None:
            p._grad = from_array(view.copy())
        else:
            p._grad._array[...] = view

    def used_nowhere(self) -> set[int]:
        """The parameters that no rank has used: their gradients stay as they are."""
        used = np.array([key not in self.unused for key in self.places], np.int32)
        all_reduce(from_array(used), group=self.group)
        return {key for key, count in zip(self.places, used.tolist()) if not count}

    def shadow(self) -> None:
        """Take part in the sums of one backward with gradients of zero: this rank has no more
        inputs, others have. The gradients become the others' means, for an optimizer whose state
        is divided."""
        for bucket in self.buckets:
            bucket.flat[...] = 0
            self.begin(bucket)
        if self.looks_for_unused:
            self.unused = set(self.places)
            self.used_nowhere()
        for bucket in self.buckets:
            if bucket.sparse:
                bucket.parameters[0]._grad = None
                mean = sparse_mean(bucket.parameters[0], self.divisor, self.group)
                bucket.parameters[0]._grad = mean
                continue
            bucket.work.wait()
            for p, view in zip(bucket.parameters, bucket.views):
                self.give(p, view)
