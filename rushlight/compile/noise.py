"""How much rounding may change a result: the same ops again, with numbers that differ in their last places."""
from __future__ import annotations

import numpy as np

SHAKEN = 4                                        # units in the last place
EXACT = {"amax", "amin", "where", "maximum", "minimum", "relu", "neg", "abs", "clone", "expand", "to", "sign", "floor",
         "ceil", "round", "trunc"}                # ops that round nothing


class Noise:
    """Random signs, and what has been computed with them."""

    def __init__(self, seed: int):
        self.numbers, self.made = np.random.default_rng(seed), {}  # type: ignore[var-annotated]

    def on(self, a: np.ndarray) -> np.ndarray:
        """The same numbers but for their last places."""
        if a.dtype.kind not in "fc":
            return a
        return a * (1 + SHAKEN * np.finfo(a.dtype).eps * self.numbers.choice([-1, 1], a.shape)).astype(a.dtype)
