"""Activation checkpointing trades time for memory: backward recomputes a part of the forward pass instead of storing
its values.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from enum import Enum
from functools import wraps
from typing import Any

from rushlight.amp import autocast_mode as precision
from rushlight.autograd.function import Function
from rushlight.autograd.graph import saved_tensors_hooks
from rushlight.base.errors import explain, runtime_error, type_error, value_error
from rushlight.core.backward import backward
from rushlight.core.mode import mode
from rushlight.core.tensor import Tensor
from rushlight.ops.grad_mode import enable_grad, no_grad
from rushlight.random import default_generator

__all__ = [
    "CheckpointError", "checkpoint", "checkpoint_sequential", "detach_variable", "get_device_states", "noop_context_fn",
    "set_checkpoint_early_stop", "set_device_states",
]  # fmt: skip

Contexts = Callable[[], tuple[AbstractContextManager, AbstractContextManager]]
stops_early: ContextVar[bool | None] = ContextVar("checkpoint_early_stop", default=None)


class CheckpointError(RuntimeError):
    """The second run computed other values than the first.

    >>> issubclass(rushlight.utils.checkpoint.CheckpointError, RuntimeError)
    True
    """


def noop_context_fn() -> tuple[AbstractContextManager, AbstractContextManager]:
    """Contexts without effect for the two runs.

    >>> forward, again = rushlight.utils.checkpoint.noop_context_fn()
    >>> with forward, again:
    ...     print("as without")
    as without
    """
    return nullcontext(), nullcontext()


def checkpoint(
    function: Callable | None = None, *args: Any, use_reentrant: bool | None = None,
    context_fn: Contexts = noop_context_fn, determinism_check: str = "default", debug: bool = False,
    early_stop: bool = True, **kwargs: Any,
) -> Any:  # fmt: skip
    """function(*args, **kwargs) without storing intermediate results for backward; backward computes them again.

    The second run uses the same random numbers (`preserve_rng_state=False`: new ones) and the same autocast. With
    use_reentrant=False any arguments and results can have gradients, and `context_fn()` returns a context for each of
    the two runs. With use_reentrant=True only tensors that are arguments themselves have gradients, and only by
    `backward()`. `early_stop`: the second run ends once all needed values are computed. Without a function, the result
    is a decorator with these settings, as in torch 2.15.

    ValueError for unknown arguments, CheckpointError (a RuntimeError) if the second run saves other values.

    >>> x = rushlight.ones(2, requires_grad=True)
    >>> rushlight.utils.checkpoint.checkpoint(lambda x: x.exp().sin(), x, use_reentrant=False).sum().backward()
    >>> x.grad
    tensor([-2.4784, -2.4784])
    """
    if function is None:
        if args:
            raise type_error("'NoneType' object is not callable", "pass a function before its arguments")
        given = {"use_reentrant": use_reentrant, "context_fn": context_fn, "determinism_check": determinism_check}
        return decorator({**given, "debug": debug, "early_stop": early_stop, **kwargs})
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. use_reentrant=False is "
            "recommended.",
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if use_reentrant:
        if kwargs:
            raise value_error(
                "Unexpected keyword arguments: " + ",".join(kwargs), "pass them by position, or use_reentrant=False"
            )
        if context_fn is not noop_context_fn or debug:
            raise value_error("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return Rerun.apply(function, Surroundings(preserve), *args)
    if determinism_check not in ("default", "none"):
        raise value_error(f"determinism_check should be one of ['default', 'none'], but got {determinism_check}")
    first, second = context_fn()
    early_stop = early_stop if stops_early.get() is None else bool(stops_early.get())
    part = Part(function, args, kwargs, second, Surroundings(preserve), determinism_check == "default", early_stop)
    with saved_tensors_hooks(part.pack, part.unpack), first:
        result = function(*args, **kwargs)
    part.done = True
    return result


def decorator(settings: dict[str, Any]) -> Callable:
    """A decorator: each call of the decorated function is a `checkpoint` with these settings."""
    unknown = {*settings} - {"preserve_rng_state", *(checkpoint.__kwdefaults__ or ())}
    if unknown:
        raise value_error("Unexpected keyword arguments: " + ",".join(sorted(unknown)))

    def decorate(function: Callable) -> Callable:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            return checkpoint(function, *args, **settings, **kwargs)

        return call

    return decorate


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """UserWarning if none of the tensors requires a gradient.

    >>> check = rushlight.utils.checkpoint.check_backward_validity
    >>> check([rushlight.ones(2, requires_grad=True)])
    """
    if not any(t.requires_grad for t in inputs if isinstance(t, Tensor)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """The functions in order, divided into `segments` parts; each part but the last is a `checkpoint`.

    >>> model = rushlight.nn.Sequential(rushlight.nn.Linear(2, 2), rushlight.nn.ReLU(), rushlight.nn.Linear(2, 1))
    >>> x = rushlight.ones(1, 2)
    >>> rushlight.utils.checkpoint.checkpoint_sequential(model, 2, x, use_reentrant=False).shape
    torch.Size([1, 1])
    """
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise value_error("Unexpected keyword arguments: " + ",".join(kwargs))
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be passed explicitly. "
            "use_reentrant=False is recommended.",
            stacklevel=2,
        )
        use_reentrant = True
    steps = list(functions.children()) if hasattr(functions, "children") else list(functions)
    size = len(steps) // segments
    last = size * (segments - 1)
    for start in range(0, last, size or 1):
        input = checkpoint(
            in_turn(steps[start : start + size]), input, use_reentrant=use_reentrant, preserve_rng_state=preserve
        )
    return in_turn(steps[last:])(input)


def in_turn(functions: Sequence[Callable]) -> Callable[[Any], Any]:
    def run(x: Any) -> Any:
        for function in functions:
            x = function(x)
        return x

    return run


@contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """A context that overrides `early_stop` of all checkpoints inside it.

    >>> C = rushlight.utils.checkpoint
    >>> x = rushlight.ones(2, requires_grad=True)
    >>> with C.set_checkpoint_early_stop(False):
    ...     C.checkpoint(rushlight.exp, x, use_reentrant=False).sum().backward()
    >>> x.grad
    tensor([2.7183, 2.7183])
    """
    token = stops_early.set(enable)
    try:
        yield
    finally:
        stops_early.reset(token)


class CheckpointPolicy(Enum):
    """A policy's decision for an op's results: keep them, or recompute them."""

    MUST_SAVE, PREFER_SAVE, MUST_RECOMPUTE, PREFER_RECOMPUTE, MUST_CPU_OFFLOAD = range(5)


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False
) -> tuple[AbstractContextManager, AbstractContextManager]:
    """The two contexts for a checkpoint's `context_fn`. All values are recomputed, even those that the policy would
    keep: numbers and gradients are the same, and the memory use equals a checkpoint without a policy.

    TypeError for a policy that is neither a function nor a list of ops.
    """
    if not (callable(policy_fn_or_list) or isinstance(policy_fn_or_list, list)):
        raise type_error("policy_fn_or_list must be either a function or a list of ops.")
    return noop_context_fn()


@contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Accepted without effect: errors always describe the difference."""
    yield


class Surroundings:
    """The state that a run depends on besides its arguments: random number generator and autocast."""

    def __init__(self, preserve_rng_state: bool):
        self.random = default_generator.get_state() if preserve_rng_state else None
        self.precision = precision.state.get()

    @contextmanager
    def again(self) -> Iterator[None]:
        """A context that restores this state and turns recording on; at its end it undoes both."""
        on, lowest, cache = self.precision
        now = default_generator.get_state()
        if self.random is not None:
            default_generator.set_state(self.random)
        try:
            with enable_grad(), precision.autocast("cpu", lowest, on, cache):
                yield
        finally:
            if self.random is not None:
                default_generator.set_state(now)


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The GPUs of the arguments and the states of their generators: none.

    >>> rushlight.utils.checkpoint.get_device_states(rushlight.ones(2))
    ([], [])
    """
    return [], []


def set_device_states(devices: Sequence[int], states: Sequence[Tensor], *, device_type: str | None = None) -> None:
    """Does nothing: there are no GPUs.

    >>> rushlight.utils.checkpoint.set_device_states([], [])
    """


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Detached copies of the tensors in a tuple, with the same requires_grad; other values unchanged. RuntimeError
    unless a tuple is given.

    >>> x = rushlight.ones(1, requires_grad=True) * 2
    >>> detached, = rushlight.utils.checkpoint.detach_variable((x,))
    >>> detached.is_leaf, detached.requires_grad
    (True, True)
    """
    if not isinstance(inputs, tuple):
        raise runtime_error(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    return tuple([x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs])


# -- use_reentrant=False: no backward inside the backward ------------------------------------------


class Enough(Exception):
    """Raised to end the second run when all needed values are computed."""


class Part:
    """A run whose nodes save numbers in place of tensors: number i stands for the i-th tensor that the second run
    saves.
    """

    def __init__(
        self, function: Callable, args: tuple, kwargs: dict, context: AbstractContextManager,
        surroundings: Surroundings, checks: bool, early_stop: bool,
    ):  # fmt: skip
        self.function, self.args, self.kwargs, self.context = function, args, kwargs, context
        self.surroundings, self.checks, self.early_stop = surroundings, checks, early_stop
        self.kinds: list[tuple] = []  # shape and dtype of each tensor saved
        # saved tensor of the second run and its version, until it is read
        self.found: dict[int, tuple[Tensor, int]] = {}
        self.done = False  # whether the first run has ended: it may compute gradients itself

    def pack(self, tensor: Tensor) -> int:
        self.kinds.append((tensor.shape, tensor.dtype))
        return len(self.kinds) - 1

    def unpack(self, number: int) -> Tensor:
        if number not in self.found:
            self.run()
        tensor, version = self.found.pop(number)
        if tensor._version != version:
            raise runtime_error(
                "one of the variables needed for gradient computation has been modified by an inplace operation: "
                f"a tensor of shape {tuple(tensor.shape)}, saved by a checkpointed function that writes to it "
                "later",
                "clone() the tensor inside the function before it is written to",
            )
        return tensor

    def run(self) -> None:
        """The second run. CheckpointError if it saves other tensors."""
        saved: list[tuple[Tensor, int]] = []

        def keep(tensor: Tensor) -> Tensor:
            saved.append((tensor.detach(), tensor._version))
            if self.early_stop and len(saved) == len(self.kinds):
                raise Enough
            return saved[-1][0]  # the function itself computes a derivative

        with self.surroundings.again(), saved_tensors_hooks(keep, lambda kept: kept), self.context, suppress(Enough):
            self.function(*self.args, **self.kwargs)
        if len(saved) < len(self.kinds) or self.done and len(saved) > len(self.kinds):
            raise CheckpointError(
                explain(
                    "torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
                    f"recomputation.\nNumber of tensors saved during forward: {len(self.kinds)}\nNumber of tensors "
                    f"saved during recomputation: {len(saved)}.",
                    "the function must do the same each time: no counters, no other random numbers",
                )
            )
        self.check(saved)
        self.found = dict(enumerate(saved))

    def check(self, saved: list[tuple[Tensor, int]]) -> None:
        for i, ((tensor, _), (shape, dtype)) in enumerate(zip(saved, self.kinds)):
            if self.checks and (tensor.shape != shape or tensor.dtype is not dtype):
                raise CheckpointError(
                    explain(
                        "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata "
                        f"than during the forward pass.\ntensor at position {i}:\nsaved metadata: {{'shape': {shape}, "
                        f"'dtype': {dtype}}}\nrecomputed metadata: {{'shape': {tensor.shape}, 'dtype': "
                        f"{tensor.dtype}}}"
                    )
                )


# -- use_reentrant=True: a backward inside the backward --------------------------------------------


class Rerun(Function):
    """Runs without recording; its backward runs the function again and goes backward through the new graph."""

    @staticmethod
    def forward(ctx: Any, function: Callable, surroundings: Surroundings, *args: Any) -> Any:
        if not any(isinstance(a, Tensor) and a.requires_grad for a in args):
            warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=4)
        positions = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        ctx.rerun = (function, surroundings, [None if isinstance(a, Tensor) else a for a in args], positions)
        ctx.save_for_backward(*(args[i] for i in positions))
        with no_grad():
            return function(*args)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple:
        if mode().targeted:
            raise runtime_error(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an "
                "`inputs` parameter to .backward(). To resolve this error, you can either set "
                "use_reentrant=False, or call .backward() without passing the `inputs` argument."
            )
        function, surroundings, others, positions = ctx.rerun
        args = list(others)
        for i, tensor in zip(positions, ctx.saved_tensors):
            args[i] = tensor.detach().requires_grad_(tensor.requires_grad)
        with surroundings.again():
            outputs = function(*args)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        pairs = [(out, g) for out, g in zip(outputs, gradients) if isinstance(out, Tensor) and out.requires_grad]
        if not pairs:
            raise runtime_error("none of output has requires_grad=True, this checkpoint() is not necessary")
        backward([out for out, _ in pairs], [g for _, g in pairs])
        return None, None, *(a.grad if isinstance(a, Tensor) else None for a in args)
