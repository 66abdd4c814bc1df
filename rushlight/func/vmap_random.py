"""Random numbers inside vmap: a generator that draws different numbers per sample, the same for all, or raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.base.errors import runtime_error
from rushlight.core.tensor import Tensor, from_array
from rushlight.func.batching import Batch, Level, wrap

ERROR = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
    "randomness flags on vmap or perform the randomness operation out of vmap"
)
SAME = (
    "Vmap does not currently support same randomness with a batched tensor input. Please file an issue with functorch"
)
# Method of a generator -> indices of its arguments that get a batch dimension: the shape, or arrays. Default: (0,).
PLACES = {"randint": (2,), "bernoulli_scalar": (1,), "binomial": (0, 1)}


class Draws:
    """A generator inside a vmap: its methods return a Batch if samples differ, else an array."""

    def __init__(self, generator: Any, level: Level):
        self.level = level
        self.generator = generator if level.outer is None else Draws(generator, level.outer)

    def __getattr__(self, name: str) -> Callable:
        def draw(*args: Any, **kwargs: Any) -> Any:
            if self.level.randomness == "error":
                raise runtime_error(ERROR)
            method = getattr(self.generator, name)
            return (self.same if self.level.randomness == "same" else self.different)(name, method, args, kwargs)

        return draw

    def same(self, name: str, method: Callable, args: tuple, kwargs: dict) -> Any:
        if any(self.mapped(a) for a in args):
            raise runtime_error(SAME, "draw outside of vmap, or pass randomness='different'")
        return method(*args, **kwargs)

    def different(self, name: str, method: Callable, args: tuple, kwargs: dict) -> Any:
        """One draw for all samples: torch's numbers, in torch's order."""
        size = self.level.size
        if name == "randperm":
            made = np.stack([method(*args, **kwargs) for _ in range(size)])
        elif name == "multinomial" and args[0].ndim == 2:  # weights (B, n, c): draw for (B n, c)
            weights = from_array(self.spread(args[0]))
            rows = method(weights.flatten(0, 1)._array, *args[1:], **kwargs)
            made = from_array(rows).reshape(*weights.shape[:2], -1)._array
        else:
            places = PLACES.get(name, (0,))
            made = method(*[self.spread(a) if i in places else a for i, a in enumerate(args)], **kwargs)
        return Batch(from_array(made), self.level)

    def mapped(self, a: Any) -> bool:
        return isinstance(a, Batch) and a.level is self.level

    def spread(self, a: Any) -> Any:
        """A shape or an array of one sample, with the batch dimension added."""
        if self.mapped(a):
            return a.value._array
        if isinstance(a, Batch):
            return from_array(a).expand((self.level.size, *a.shape))._array  # type: ignore[arg-type]
        if isinstance(a, np.ndarray):
            return np.broadcast_to(a, (self.level.size, *a.shape)).copy()
        return (self.level.size, *((a,) if isinstance(a, int) else a))


def drawn(level: Level, x: Tensor, draw: Callable) -> Tensor | None:
    """`draw(values of x)`, which draws for all samples at once in memory order, as torch does.

    None if x is not batched at this level, or the level does not draw different numbers per sample."""
    array: Any = x._array
    if level.randomness != "different" or not isinstance(array, Batch) or array.level is not level:
        return None
    return wrap(level.call_outside(draw, array.value), level)


Level.draws, Level.drawn = Draws, drawn  # type: ignore[attr-defined]
