"""Random tensors, on torch's CPU stream: the same numbers for the same seed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.base import dtypes
from rushlight.base.device import CPU, on_meta
from rushlight.base.dtypes import dtype as Dtype
from rushlight.base.errors import runtime_error, suggesting, type_error
from rushlight.base.memory_format import preserve_format
from rushlight.base.public_function import MORE
from rushlight.core.arguments import all_true, integer
from rushlight.core.build import unrecorded
from rushlight.core.mode import mode
from rushlight.core.tensor import Tensor, from_array, holder, noticed
from rushlight.core.views import write
from rushlight.creation.factories import empty_like, made, shape_of
from rushlight.ops.composites import checked_method
from rushlight.ops.grad_mode import no_grad
from rushlight.ops.op_errors import mismatch
from rushlight.ops.shape.views import overwrite
from rushlight.ops.tensor.casts import copy_

if TYPE_CHECKING:
    from rushlight.random import Generator


def source(generator: Generator | None, device: Any = CPU) -> Any:
    """The generator to draw from, for a tensor on the device. Loads `rushlight.random` at the first draw."""
    if on_meta(device):
        from rushlight.ops.meta.meta_tensors import Undrawn

        return Undrawn
    m = mode()
    found, batch = generators().default_generator if generator is None else generator, m.batch
    if m.watch is not None and found is generators().default_generator:
        found = m.watch.generator_for(found)
    return found if batch is None else batch.draws(found, batch)


@cache
def generators() -> Any:
    from rushlight import random

    return random


def drawn(
    array: np.ndarray, dtype: Any, requires_grad: bool = False, device: Any = None, out: Tensor | None = None
) -> Tensor:
    """A tensor of fresh random numbers; reports the draw to the watcher, because the next run draws other numbers."""
    t = made(array, dtype, requires_grad, device, out)
    if (watch := mode().watch) is not None:
        watch.on_draw(t)
    return t


def float_dtype(dtype: Dtype | None, out: Tensor | None = None) -> np.dtype:
    """The dtype to draw in: `dtype`, else the dtype of `out`, else the default."""
    if dtype is None and out is not None:
        return out._array.dtype
    return dtypes.or_default(dtype).numpy


def given(shape: tuple, size: Any) -> tuple[int, ...]:
    """The shape from the arguments of rand(2, 3), rand((2, 3)) or rand(size=(2, 3))."""
    return shape_of(shape if size is None else (size,))


# -- fresh tensors ---------------------------------------------------------------------------------


def rand(
    *shape: Any, size: Any = None, generator: Generator | None = None, out: Tensor | None = None,
    dtype: Dtype | None = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Uniform numbers in [0, 1), of the given size, in the default dtype unless `dtype` is given.

    >>> _ = rushlight.manual_seed(42)
    >>> rushlight.rand(3)
    tensor([0.8823, 0.9150, 0.3829])
    """
    return drawn(
        source(generator, device).uniform(given(shape, size), float_dtype(dtype, out)), None, requires_grad, device, out
    )


def randn(
    *shape: Any, size: Any = None, generator: Generator | None = None, out: Tensor | None = None,
    dtype: Dtype | None = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Normal numbers of mean 0 and standard deviation 1, of the given size, in the default dtype unless `dtype` is
    given.

    >>> _ = rushlight.manual_seed(0)
    >>> rushlight.randn(3)
    tensor([ 1.5410, -0.2934, -2.1788])
    """
    return drawn(
        source(generator, device).normal(given(shape, size), float_dtype(dtype, out)), None, requires_grad, device, out
    )


def randint(
    low: int = 0, high: Any = None, size: Any = None, *, generator: Generator | None = None, out: Tensor | None = None,
    dtype: Dtype | None = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Uniform integers in [low, high): `randint(high, size)` or `randint(low, high, size)`; int64.

    >>> _ = rushlight.manual_seed(0)
    >>> rushlight.randint(10, (5,))
    tensor([4, 9, 3, 0, 3])
    """
    if size is None:
        low, high, size = 0, low, high
    elif high is None:  # randint(10, size=(5,))
        low, high = 0, low
    low, high = integer(low, "low"), integer(high, "high")
    kind = np.dtype(np.int64) if dtype is None else dtypes.as_dtype(dtype).numpy
    return drawn(
        source(generator, device).randint(low, high, shape_of((size,)), kind), None, requires_grad, device, out
    )


def randperm(
    n: int, *, generator: Generator | None = None, out: Tensor | None = None, dtype: Dtype = dtypes.int64,
    layout: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """out = 0, ..., n - 1 in random order.

    >>> _ = rushlight.manual_seed(0)
    >>> rushlight.randperm(4)
    tensor([0, 1, 3, 2])
    """
    return drawn(source(generator, device).randperm(n, dtype.numpy), None, requires_grad, device, out)


def like(name: str, create: Callable, fill: Callable, given: str = "") -> Callable:
    """A function that draws like `create`, with the shape of its input. `given`: more arguments for the docstring."""

    def draw(
        input: Tensor, *args: Any, dtype: Dtype | None = None, memory_format: Any = preserve_format, **options: Any
    ) -> Tensor:
        if not isinstance(input, Tensor):
            raise type_error(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
        level = mode().batch
        if level is not None and memory_format is preserve_format:
            made = level.drawn(input, lambda values: draw(values, *args, dtype=dtype, **options))
            if made is not None:
                return made
        in_order = level is not None or input._array.flags.c_contiguous
        if memory_format is preserve_format and not in_order:  # drawn in memory order
            drawn = {name: options.pop(name) for name in ("generator",) if name in options}
            t = empty_like(input.detach(), dtype=dtype, **options)
            with no_grad():
                return fill(t, *args, **drawn)
        options.setdefault("device", input.device)
        return create(*args, tuple(input._array.shape), dtype=input.dtype if dtype is None else dtype, **options)

    draw.__name__ = draw.__qualname__ = name
    draw.__doc__ = f"""out = {create.__name__}(input.shape), in the input's dtype.

    >>> rushlight.{name}(rushlight.zeros(2, 3, dtype=rushlight.float64){given}).dtype
    torch.float64
    """
    return draw


rand_like: Callable = like("rand_like", rand, lambda t, **how: t.uniform_(**how))
randn_like: Callable = like("randn_like", randn, lambda t, **how: t.normal_(**how))
integers_like: Callable = like("randint_like", randint, lambda t, low, high, **how: t.random_(low, high, **how), ", 9")


def randint_like(
    input: Tensor, low: int, high: int | None = None, *, dtype: Dtype | None = None, **options: Any
) -> Tensor:
    """out = uniform integers in [low, high): `randint` in the input's shape and dtype.

    >>> _ = rushlight.manual_seed(0)
    >>> rushlight.randint_like(rushlight.zeros(4), 10)
    tensor([4., 9., 3., 0.])
    """
    low, high = (0, low) if high is None else (low, high)
    return integers_like(input, low, high, dtype=dtype, **options)


def normal(
    mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, generator: Generator | None = None, out: Tensor | None = None,
    dtype: Dtype | None = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """mean + std z, z standard normal. `mean` and `std`: numbers together with a size, or tensors that broadcast.

    RuntimeError for a negative deviation and for shapes that do not broadcast, TypeError for numbers without a size.

    >>> rushlight.normal(rushlight.tensor([1., 2.]), 0.)
    tensor([1., 2.])
    """
    if isinstance(mean, Tensor) or isinstance(std, Tensor):
        if mode().batch is not None:  # in vmap: use ops, which have batching rules
            like = (mean + std).detach()
            return like * 0 + randn(*like.shape, dtype=like.dtype, generator=generator) * std + mean
        t = made(spread(mean, std, generator)._array, None, requires_grad, device, out)
        return unmoved(t, mean, std)
    if size is None:
        raise type_error(
            f"normal() received an invalid combination of arguments - got ({type(mean).__name__}, "
            f"{type(std).__name__})",
            "give a size: normal(0., 1., (2, 3))",
        )
    array = source(generator, device).normal(shape_of((size,)), float_dtype(dtype), float(mean), float(std))
    return drawn(array, None, requires_grad, device, out)


def spread(mean: Any, std: Any, generator: Generator | None) -> Tensor:
    """Normal numbers around each mean."""
    if not (all_true(std >= 0) if isinstance(std, Tensor) else std >= 0):
        every = "all elements of std >= 0.0" if isinstance(std, Tensor) else f"std >= 0.0, but found std {std:g}"
        raise runtime_error(f"normal expects {every}")
    tensors = [t for t in (mean, std) if isinstance(t, Tensor)]
    try:
        shape = np.broadcast_shapes(*[t._array.shape for t in tensors])
    except ValueError:
        raise runtime_error(mismatch(tensors), "one mean and deviation for each element") from None
    kind, g = tensors[0].dtype, source(generator)
    with no_grad():
        # for a number, torch draws with this deviation, which saves one rounding
        if not isinstance(std, Tensor):
            return (drawn(g.normal(shape, kind.numpy, 0.0, float(std)), None) + mean).to(kind)
        return (drawn(g.normal(shape, kind.numpy), None) * std + mean).to(kind)


def unmoved(t: Tensor, *parameters: Any) -> Tensor:
    """t as a function of the distribution's parameters, with gradient 0: the samples do not depend on them smoothly."""
    for p in parameters:
        if isinstance(p, Tensor) and p._node is not None:
            t = overwrite(p.expand(t._array.shape), t)
    return t


def bernoulli(
    input: Tensor, p: float | None = None, *, generator: Generator | None = None, out: Tensor | None = None
) -> Tensor:
    """out = 1 with the probability given by the input's element, else 0, in the input's dtype. `p`: one probability for
    all elements.

    >>> _ = rushlight.manual_seed(0)
    >>> rushlight.bernoulli(rushlight.tensor([0., 0.5, 0.5, 1.]))
    tensor([0., 0., 1., 1.])
    """
    if input.is_meta:
        return unmoved(input.new_zeros(input.shape), input)
    g = source(generator)
    array = g.bernoulli(input._array) if p is None else g.bernoulli_scalar(p, input._array.shape, input._array.dtype)
    return unmoved(drawn(array if out is None else array.astype(out._array.dtype), None, False, None, out), input)


def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """`num_samples` indices drawn in proportion to the weights in each row. RuntimeError for weights or counts that do
    not allow it.

    >>> rushlight.multinomial(rushlight.tensor([0., 1., 0.]), 3, replacement=True)
    tensor([1, 1, 1])
    """
    if out is not None and out.dtype is not dtypes.int64:
        raise runtime_error(f"multinomial expects Long tensor out, got: {out.dtype.scalar_type}")
    if input.is_meta:
        return input.new_zeros((*input.shape[:-1], num_samples), dtype=dtypes.int64)
    return drawn(source(generator).multinomial(input._array, num_samples, replacement), None, False, None, out)


def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """P(out = k) = exp(-rate) rate^k / k!, where the rate is the input's element; in the input's dtype.

    >>> _ = rushlight.manual_seed(0)
    >>> rushlight.poisson(rushlight.tensor([0., 2., 100.]))
    tensor([ 0.,  6., 96.])
    """
    return drawn(source(generator).poisson(input.contiguous()._array), None)


def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """out = the number of successes in `count` trials of probability `prob`, element by element.

    >>> rushlight.binomial(rushlight.tensor([10., 10.]), rushlight.tensor([0., 1.]))
    tensor([ 0., 10.])
    """
    return drawn(source(generator).binomial(count.contiguous()._array, prob.contiguous()._array), None)


# -- tensors filled in place -----------------------------------------------------------------------


def refilled(self: Tensor, generator: Generator | None, draw: Callable) -> Tensor:
    """Write fresh numbers, draw(generator, shape, dtype), into the tensor in memory order. Returns the tensor."""
    if self.is_meta:
        return self
    if mode().batch is not None:
        return copy_(self, numbers_for(self, generator, draw))
    # write directly, without the in-place op
    if self._array.flags.c_contiguous and unrecorded(self, ()):
        write(self, from_array(draw(source(generator), self._array.shape, self._array.dtype)))
        return self
    fresh = np.empty_like(self._array, subok=False)
    target = generators().in_memory_order(fresh)
    numbers = draw(source(generator), target.shape, fresh.dtype)
    if fresh.flags.c_contiguous:
        return copy_(self, drawn(numbers, None, device=CPU))
    target[...] = numbers
    t = from_array(fresh)
    noticed(t)
    return copy_(self, t)


def numbers_for(x: Tensor, generator: Generator | None, draw: Callable) -> Tensor:
    """New random numbers for x inside vmap, where samples have no memory order of their own."""
    level = mode().batch
    if level is None:
        return refilled(empty_like(x.detach()), generator, draw)
    made = level.drawn(x, lambda values: numbers_for(values, generator, draw))
    return drawn(draw(source(generator), x._array.shape, x._array.dtype), None) if made is None else made


@checked_method
def uniform_(self: Tensor, a: float = 0.0, b: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """input = uniform numbers in [a, b). Returns the tensor.

    >>> _ = rushlight.manual_seed(0)
    >>> rushlight.empty(3).uniform_()
    tensor([0.4963, 0.7682, 0.0885])
    """
    return refilled(self, generator, lambda g, shape, dtype: g.uniform(shape, dtype, float(a), float(b)))


@checked_method
def normal_(self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """input = normal numbers of mean `mean` and deviation `std`. Returns the tensor.

    >>> _ = rushlight.manual_seed(0)
    >>> rushlight.empty(3).normal_()
    tensor([ 1.5410, -0.2934, -2.1788])
    """
    whole = (self if self.is_meta else holder(self))._array.flags.c_contiguous
    return refilled(self, generator, lambda g, shape, dtype: g.normal(shape, dtype, float(mean), float(std), whole))


@checked_method
def exponential_(self: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill the tensor with samples of density p(x) = lambd exp(-lambd x). Returns the tensor.

    >>> bool((rushlight.empty(100).exponential_() >= 0).all())
    True
    """
    return refilled(self, generator, lambda g, shape, dtype: g.exponential(shape, dtype, lambd))


@checked_method
def cauchy_(self: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill the tensor with samples of density p(x) = sigma / (pi ((x - median)^2 + sigma^2)). Returns the tensor.

    >>> rushlight.empty(3).cauchy_().shape
    torch.Size([3])
    """
    return refilled(self, generator, lambda g, shape, dtype: g.cauchy(shape, dtype, median, sigma))


@checked_method
def geometric_(self: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Fill the tensor with the number of trials up to the first success, P(k) = (1 - p)^(k - 1) p. Returns the tensor.

    >>> bool((rushlight.empty(100).geometric_(0.5) >= 1).all())
    True
    """
    return refilled(self, generator, lambda g, shape, dtype: g.geometric(shape, p, dtype))


@checked_method
def log_normal_(self: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None) -> Tensor:
    """Fill the tensor with exp(z), z normal of mean `mean` and deviation `std`. Returns the tensor.

    >>> bool((rushlight.empty(100).log_normal_() > 0).all())
    True
    """
    return refilled(self, generator, lambda g, shape, dtype: g.log_normal(shape, dtype, mean, std))


@checked_method
def random_(
    self: Tensor, low: int | None = None, to: int | None = None, *, generator: Generator | None = None
) -> Tensor:
    """input = uniform integers in [low, to), in [0, low), or up to the dtype's largest number. Returns the tensor.

    >>> rushlight.empty(3).random_(1)
    tensor([0., 0., 0.])
    """
    if low is None:
        return refilled(self, generator, lambda g, shape, dtype: g.random_(shape, dtype))
    low, high = (0, low) if to is None else (low, to)
    return refilled(self, generator, lambda g, shape, dtype: g.randint(low, high, shape, dtype))


@checked_method
def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """input = 1 with probability p (a number or a tensor), else 0. Returns the tensor.

    >>> rushlight.empty(2).bernoulli_(1.0)
    tensor([1., 1.])
    """
    if not isinstance(p, Tensor):
        return refilled(self, generator, lambda g, shape, dtype: g.bernoulli_scalar(p, shape, dtype))
    spread = p.expand(self._array.shape)
    if mode().batch is not None:
        return copy_(self, drawn(source(generator).bernoulli(spread.contiguous()._array, self._array.dtype), None))
    if not self.is_meta:  # each element has its own p; drawn in the order of the elements
        spread = spread.permute(generators().memory_axes(self._array))
    return refilled(self, generator, lambda g, shape, dtype: g.bernoulli(spread.contiguous()._array, dtype))


checked_method(multinomial)
checked_method(bernoulli)


# -- the state -------------------------------------------------------------------------------------


def get_rng_state() -> Tensor:
    """The state of the default generator: 5056 bytes, in torch's format.

    >>> state = rushlight.get_rng_state()
    >>> x = rushlight.rand(2)
    >>> rushlight.set_rng_state(state)
    >>> rushlight.rand(2).equal(x)
    True
    """
    return generators().get_rng_state()


def set_rng_state(new_state: Tensor) -> None:
    """Set the state of the default generator to a result of `get_rng_state`, of rushlight or torch.

    >>> state = rushlight.get_rng_state()
    >>> x = rushlight.rand(2)
    >>> rushlight.set_rng_state(state)
    >>> rushlight.rand(2).equal(x)
    True
    """
    generators().set_rng_state(new_state)


MORE.update(
    {
        f.__name__: suggesting(f, home="rushlight", always=True)
        for f in (
            rand, randn, randint, randperm, rand_like, randn_like, randint_like, normal, bernoulli, multinomial,
            poisson, binomial, get_rng_state, set_rng_state,
        )
    }
)  # fmt: skip
