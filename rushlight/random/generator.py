"""`Generator`: torch's CPU generator, whose draws are NumPy arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from threading import get_ident
from typing import Any, TypeVar

import numpy as np

from rushlight.base.device import device as Device
from rushlight.base.device import present
from rushlight.base.errors import runtime_error, type_error, value_error
from rushlight.core.mode import mode
from rushlight.core.tensor import Tensor, from_array

from .bernoulli import STREAMS, bernoulli, bernoulli_scalar
from .continuous import cauchy, exponential, geometric, log_normal
from .integers import randint, random_, randperm
from .multinomial import multinomial
from .normal import normal
from .samplers import binomial, dirichlet, poisson, standard_gamma
from .stream import STATE_BYTES, Stream
from .uniform import uniform

F = TypeVar("F", bound=Callable[..., Any])


def locked(method: F) -> F:
    """A decorator: the method runs under the generator's lock."""

    @functools.wraps(method)
    def run(self: Stream, *args: Any, **kwargs: Any) -> Any:
        with self.lock:
            return method(self, *args, **kwargs)

    return run  # type: ignore[return-value]


def drawing(method: F) -> F:
    """A decorator for methods that draw: runs under the lock, and adds the thread to the generator's `witnesses`."""

    @functools.wraps(method)
    def run(self: Stream, *args: Any, **kwargs: Any) -> Any:
        with self.lock:
            for threads in self.witnesses:
                threads.add(get_ident())
            return method(self, *args, **kwargs)

    return run  # type: ignore[return-value]


def told() -> None:
    """Report to the watcher that the state of a generator is about to be set."""
    watch = mode().watch
    if watch is not None:
        watch.on_seed()


class Generator(Stream):
    """The random numbers of torch 2.13 on a CPU, bit for bit: a seed gives torch's numbers.

    A method that draws returns a new NumPy array and may be called from several threads. States can be exchanged
    between rushlight and torch: `get_state()` gives the bytes of `torch.Generator.get_state()`. Until it is seeded, a
    generator has the state of a new torch.Generator.

    `stream` chooses the numbers of `bernoulli_scalar`, and so of every dropout. 'portable', the default: the numbers of
    torch 2.7 and later, and of older versions on CPUs that are not Intel's. 'intel': the numbers of torch up to 2.6 on
    Intel CPUs, from a generator of the MKL library that is seeded by a single word (torch switched it off because its
    numbers repeat: pytorch/pytorch#132395).

    RuntimeError for a device that is not 'cpu'.

    >>> rushlight.Generator().manual_seed(0).uniform(2)
    array([0.4962566, 0.7682218], dtype=float32)
    """

    def __init__(self, device: str | Device = "cpu") -> None:
        super().__init__()
        self._device = present(device)

    @property
    def device(self) -> Device:
        """The device of the generator: the CPU."""
        return self._device

    @property
    def stream(self) -> str:
        """'portable' or 'intel'; see the class."""
        return self.variant

    @stream.setter
    def stream(self, name: str) -> None:
        if name not in STREAMS:
            raise value_error(f"Generator.stream is one of {', '.join(map(repr, STREAMS))}, not {name!r}")
        self.variant = name

    # -- seed and state ----------------------------------------------------------------------------

    @locked
    def manual_seed(self, seed: int) -> Generator:
        """Seed the generator with an integer in [-2^63, 2^64), taken modulo 2^64. Returns the generator."""
        if isinstance(seed, bool) or not hasattr(seed, "__index__"):
            raise runtime_error(f"manual_seed expected a long, but got {type(seed).__name__}: pass an integer")
        if not -(2**63) <= int(seed) < 2**64:
            raise value_error(f"Overflow when unpacking long long: the seed {seed} is outside of [-2^63, 2^64)")
        told()
        self.restart(int(seed))
        return self

    @locked
    def seed(self) -> int:
        """Seed the generator from the operating system. Returns the seed."""
        told()
        self.restart(None)
        return self.started_from

    @drawing
    def seed_number(self) -> int:
        """A seed for another generator: the number `int(random_((), np.int64))`, by a fifth of the calls."""
        high, low = self.words(2).tolist()
        return (high << 32 | low) % (2**63)

    @locked
    def initial_seed(self) -> int:
        """The last seed, in [0, 2^64)."""
        return self.started_from

    @locked
    def get_state(self) -> Tensor:
        """The state, (5056,) uint8, in torch's format."""
        return from_array(self.state())

    @locked
    def set_state(self, state: Any) -> Generator:
        """Set the state to one from `get_state`, of rushlight or torch. TypeError or RuntimeError for an invalid
        state."""
        array = state._array if isinstance(state, Tensor) else np.asarray(state)
        if array.dtype != np.uint8:
            raise type_error(f"RNG state must be a torch.ByteTensor: got {array.dtype}, pass what get_state() returned")
        if array.size != STATE_BYTES:
            raise runtime_error(
                f"Expected a CPUGeneratorImplState of size {STATE_BYTES} but found the input RNG state size to be "
                f"{array.size}: pass what get_state() returned"
            )
        told()
        self.restore(array)
        return self

    def clone_state(self) -> Generator:
        """A new generator with the same state."""
        twin = Generator(self.device)
        twin.__setstate__(self.__getstate__())
        return twin

    def __getstate__(self) -> dict[str, Any]:
        return {"state": self.get_state()._array, "stream": self.stream}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        self.set_state(saved["state"])
        self.stream = saved["stream"]

    def __reduce__(self) -> tuple[Any, ...]:
        return Generator, (str(self.device),), self.__getstate__()

    def __repr__(self) -> str:
        return f"Generator(device='{self.device}', initial_seed={self.initial_seed()})"

    # -- draws: each is described in its own file --------------------------------------------------

    uniform = drawing(uniform)
    normal = drawing(normal)
    randint = drawing(randint)
    random_ = drawing(random_)
    randperm = drawing(randperm)
    bernoulli = drawing(bernoulli)
    bernoulli_scalar = drawing(bernoulli_scalar)
    exponential = drawing(exponential)
    cauchy = drawing(cauchy)
    geometric = drawing(geometric)
    log_normal = drawing(log_normal)
    multinomial = drawing(multinomial)
    poisson = drawing(poisson)
    binomial = drawing(binomial)
    standard_gamma = drawing(standard_gamma)
    dirichlet = drawing(dirichlet)
