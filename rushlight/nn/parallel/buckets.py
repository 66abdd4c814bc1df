"""The gradients of a module in buckets. A bucket is summed over all ranks as soon as its last gradient is computed,
while backward continues."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any
from weakref import ref

import numpy as np

from rushlight.base.errors import runtime_error
from rushlight.comm.collectives import all_reduce
from rushlight.comm.process_group import ProcessGroup
from rushlight.core.backward import queue_callback
from rushlight.core.mode import mode
from rushlight.core.tensor import Tensor, from_array
from rushlight.nn.parallel.sparse_gradients import sparse_mean
from rushlight.nn.parallel.usage import Usage, tensors_in

FIRST_BUCKET_BYTES = 1 << 20  # small, so that the first sum begins early


class Bucket:
    """Gradients that are summed at once. `flat`: all of them; `views`: their places in `flat`, in their shapes.
    `sparse`: a bucket of one sparse gradient, which is not in `flat`."""

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
    """A bucket, as the argument of communication hooks."""

    def __init__(self, bucket: Bucket, is_last: bool):
        self.bucket, self.last = bucket, is_last
        self.tensor = from_array(bucket.flat)

    def index(self) -> int:
        """The bucket's number; bucket 0 is summed first."""
        return self.bucket.index

    def buffer(self) -> Tensor:
        """All gradients of the bucket, one after the other, in one dimension."""
        return self.tensor

    def set_buffer(self, buffer: Tensor) -> None:
        """Replace the tensor that holds the bucket's gradients."""
        self.tensor = buffer

    def gradients(self) -> list[Tensor]:
        """The bucket's gradients, which share the memory of `buffer`."""
        flat, found, at = self.tensor._array, [], 0
        for p in self.bucket.parameters:
            found.append(from_array(flat[at : at + p.numel()].reshape(p._array.shape)))
            at += p.numel()
        return found

    def parameters(self) -> list[Tensor]:
        """The parameters whose gradients are in the bucket."""
        return list(self.bucket.parameters)

    def is_last(self) -> bool:
        """Whether the bucket is the last one of this backward."""
        return self.last


def in_buckets(parameters: Sequence[Tensor], cap_bytes: int) -> list[list[Tensor]]:
    """The parameters in reverse order, which is the order of backward, in lists of one dtype and at most
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
    """The buckets of a module, and the progress of the sums of one backward."""

    def __init__(
        self,
        parameters: Sequence[tuple[str, Tensor]],
        group: ProcessGroup,
        cap_bytes: int,
        as_views: bool,
        sparse: Collection[int] = (),
        looks: bool = False,
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
            id(p): (bucket, view) for bucket in self.buckets for p, view in zip(bucket.parameters, bucket.views)
        }
        self.hook: Callable[[Any, GradBucket], Any] | None = None
        self.hook_state: Any = None
        self.divisor = group.size()
        self.usage = Usage(tensors, looks)
        self.error = ""  # the last error
        self.expecting = False  # true from a forward that records gradients until backward ends
        self.began = False  # whether backward has reached an output of that forward
        self.seen: set[int] = set()  # ids of the parameters that are ready
        self.next_bucket = 0  # buckets are summed in the same order on all ranks
        weak = ref(self)

        def on_gradient(parameter: Tensor) -> None:
            if (reducer := weak()) is not None:
                reducer.arrived(parameter)

        def on_output(gradient: Tensor) -> None:
            if (reducer := weak()) is not None:
                reducer.begins()

        self.on_output = on_output
        self.handles = [p.register_post_accumulate_grad_hook(on_gradient) for p in tensors]

    def __del__(self) -> None:
        for handle in getattr(self, "handles", ()):
            handle.remove()

    def prepare(self, output: Any) -> None:
        """Called after a forward whose backward will sum gradients. `output`: the result of forward."""
        self.expecting, self.began, self.next_bucket, self.seen = True, False, 0, set()
        for bucket in self.buckets:
            bucket.missing, bucket.work = len(bucket.parameters), None
        outputs = [t for t in tensors_in(output) if t.grad_fn is not None]
        self.usage.start(outputs)
        if self.usage.asks:
            for t in outputs:
                t.register_hook(self.on_output)

    def begins(self) -> None:
        """Called when backward reaches an output of forward. At the end of backward all parameters are ready, also
        parameters without a gradient."""
        if self.expecting and not self.began and not mode().targeted:
            self.began = True
            queue_callback(self.ends)

    def ends(self) -> None:
        """Called at the end of backward. As in torch, a parameter that backward did not reach counts as used if it has
        an earlier gradient.
        """
        for p in self.usage.parameters:
            if self.expecting and id(p) not in self.seen:
                if p._grad is not None and id(p) not in self.usage.unused:
                    self.usage.used.add(id(p))
                self.ready(p)

    def check_finished(self) -> None:
        """Raise torch's error if the previous backward did not compute all gradients."""
        if not self.expecting or not self.seen:
            return
        missing = [self.names[i] for i in self.places if i not in self.seen]
        self.error = (
            "Expected to have finished reduction in the prior iteration before starting a new one. This "
            "error indicates that your module has parameters that were not used in producing loss."
        )
        raise runtime_error(
            self.error,
            "find_unused_parameters=True, or use all outputs of forward in the loss",
            without_gradient=", ".join(missing),
        )

    def make_static(self) -> None:
        """Declare that each backward is like the first one. RuntimeError after a backward."""
        if self.usage.backwards:
            self.error = (
                "set_static_graph() should be called before training loop starts and after "
                "DistributedDataParallel is constructed."
            )
            raise runtime_error(self.error)
        self.usage.static = True

    def predivisor(self) -> float:
        """The divisor of gradients before the sum; 1 with a hook, because the hook divides them."""
        return 1.0 if self.hook is not None else float(self.divisor)

    def arrived(self, parameter: Tensor) -> None:
        """Called when the gradient of a parameter is computed."""
        if not self.usage.count(id(parameter), self.expecting):
            return
        if not self.seen:
            for p in self.usage.parameters:
                if id(p) in self.usage.unused:
                    self.ready(p)
        self.ready(parameter)

    def ready(self, parameter: Any) -> None:
        """Write the gradient of a parameter, or zeros if there is none, into its bucket."""
        key = id(parameter)
        bucket, view = self.places[key]
        if key in self.seen:
            raise runtime_error(
                f"Expected to mark a variable ready only once. Parameter {self.names[key]} has been marked as "
                "ready twice.",
                "one backward for each forward, and a loss of the outputs of forward alone",
            )
        self.seen.add(key)
        if not bucket.sparse and parameter._grad is None:
            view[...] = 0
        elif not bucket.sparse:
            grad = parameter._grad._array
            if grad is not view or self.predivisor() != 1.0:
                np.multiply(grad, view.dtype.type(1.0 / self.predivisor()), out=view)
        bucket.missing -= 1
        if not bucket.missing:
            self.launch()
        elif self.next_bucket:
            self.progress()

    def progress(self) -> None:
        """Let MPI continue a sum that has begun."""
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
        if bucket.sparse:  # summed in `finish`, because the ranks' numbers of rows are unknown
            return
        if self.hook is None:
            bucket.work = all_reduce(from_array(bucket.flat), group=self.group, async_op=True)
        else:
            last = bucket.index == len(self.buckets) - 1
            bucket.work = self.hook(self.hook_state, GradBucket(bucket, last))

    def finish(self) -> None:
        """Wait for all sums, and set the gradients to them."""
        self.expecting = False
        self.usage.agree(self.group)
        nowhere = self.usage.nowhere
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

    def shadow(self) -> None:
        """Take part in the sums of one backward with gradients of 0, on a rank that has no more inputs while other
        ranks have some. The gradients become the means of the other ranks, for an optimizer whose state is divided over
        ranks.
        """
        for bucket in self.buckets:
            bucket.flat[...] = 0
            self.begin(bucket)
        self.usage.backwards += 1
        self.usage.agree(self.group)
        for bucket in self.buckets:
            if bucket.sparse:
                bucket.parameters[0]._grad = None
                mean = sparse_mean(bucket.parameters[0], self.divisor, self.group)
                bucket.parameters[0]._grad = mean
                continue
            bucket.work.wait()
            for p, view in zip(bucket.parameters, bucket.views):
                self.give(p, view)
