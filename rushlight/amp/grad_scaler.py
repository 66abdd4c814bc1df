"""`GradScaler`: scale a loss up so that gradients of low precision do not vanish, then scale the gradients down."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any

import numpy as np

from rushlight.base.dtypes import float16, float32, int32
from rushlight.base.errors import runtime_error, value_error
from rushlight.core.tensor import Tensor
from rushlight.creation.factories import tensor, zeros


class OptState(Enum):
    """The stage of an optimizer since the last `update`."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


READY, UNSCALED, STEPPED = OptState


class GradScaler:
    """Scale losses; skip a step and lower the scale if a gradient is inf or nan; raise the scale later.

        scaler.scale(loss).backward()
        scaler.step(optimizer)                    # unscales, unless scaler.unscale_(optimizer) has
        scaler.update()

    scale <- scale * backoff_factor after inf or nan; scale <- scale * growth_factor after growth_interval steps without
    inf or nan.

    RuntimeError for calls in another order. `device` is 'cpu'; for 'cuda' the scaler warns and is disabled, since there
    is no GPU.

    >>> scaler = rushlight.amp.GradScaler("cpu", init_scale=8.0)
    >>> scaler.scale(rushlight.tensor(2.0))
    tensor(16.)
    """

    def __init__(
        self, device: str = "cuda", init_scale: float = 2.0**16, growth_factor: float = 2.0,
        backoff_factor: float = 0.5, growth_interval: int = 2000, enabled: bool = True,
    ):  # fmt: skip
        self._device, self._enabled = device, enabled
        if enabled and str(device).partition(":")[0] != "cpu":
            warnings.warn(
                f"torch.{device}.amp.GradScaler is enabled, but {str(device).upper()} is not available.  Disabling.",
                stacklevel=2,
            )
            self._enabled = False
        if self._enabled:
            if growth_factor <= 1.0:
                raise AssertionError("The growth factor must be > 1.0.")
            if backoff_factor >= 1.0:
                raise AssertionError("The backoff factor must be < 1.0.")
            self._init_scale, self._growth_factor, self._backoff_factor = init_scale, growth_factor, backoff_factor
            self._growth_interval, self._growth_tracker = growth_interval, zeros((), dtype=int32)
            self._scale: Tensor | None = None  # made by the first scale()
            # id(optimizer) -> (stage, whether inf or nan was found)
            self._optimizers: dict[int, tuple[OptState, bool]] = {}

    def scale(self, outputs: Any) -> Any:
        """The tensor, or the tensors of an iterable, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._made().to(outputs.dtype)
        if isinstance(outputs, Iterable):
            scaled = map(self.scale, outputs)
            return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else scaled
        raise value_error("outputs must be a Tensor or an iterable of Tensors")

    def _made(self) -> Tensor:
        if self._scale is None:
            self._scale = tensor(self._init_scale, dtype=float32)
        return self._scale

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of the optimizer's parameters by the scale, for clipping between backward and step."""
        if not self._enabled:
            return
        self._check_scale("unscale_")
        stage, _ = self._optimizers.get(id(optimizer), (READY, False))
        if stage == UNSCALED:
            raise runtime_error(
                "unscale_() has already been called on this optimizer since the last update().",
                "call scaler.update() once for each step",
            )
        if stage == STEPPED:
            raise runtime_error("unscale_() is being called after step().", "call it before scaler.step()")
        self._optimizers[id(optimizer)] = UNSCALED, self._unscale(optimizer)

    def _unscale(self, optimizer: Any, allow_half: bool = False) -> bool:
        """Unscale the gradients; returns whether one was inf or nan."""
        gradients = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        if any(g.dtype is float16 for g in gradients) and not allow_half:
            raise value_error("Attempting to unscale FP16 gradients.", "keep the parameters in float32")
        if not gradients:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        inverse = np.float32(1.0 / float(self._made()))
        bad = False
        for g in gradients:
            bad = bad or not np.isfinite(g._array).all()
            np.multiply(g._array, g._array.dtype.type(inverse), out=g._array)
        return bad

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """`optimizer.step(...)` and its result, unless a gradient is inf or nan."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise runtime_error("Closure use is not currently supported if GradScaler is enabled.")
        self._check_scale("step")
        stage, bad = self._optimizers.get(id(optimizer), (READY, False))
        if stage == STEPPED:
            raise runtime_error(
                "step() has already been called since the last update().", "call scaler.update() once for each step"
            )
        if stage == READY:
            bad = self._unscale(optimizer)
        result = None if bad else optimizer.step(*args, **kwargs)
        self._optimizers[id(optimizer)] = STEPPED, bad
        return result

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Set the scale for the next step: smaller after inf or nan, larger after `growth_interval` good steps, or
        `new_scale`."""
        if not self._enabled:
            return
        self._check_scale("update")
        if new_scale is not None:
            self._made().fill_(float(new_scale))  # in place, since compiled steps hold this tensor
        elif not self._optimizers:
            raise AssertionError("No inf checks were recorded prior to update.")
        else:
            self._adapt(any(bad for _, bad in self._optimizers.values()))
        self._optimizers.clear()

    def _adapt(self, bad: bool) -> None:
        scale, steps = np.float32(float(self._made())), self._growth_tracker._array
        if bad:
            scale, steps[...] = np.float32(scale * self._backoff_factor), 0
        else:
            steps += 1
            if steps == self._growth_interval:
                steps[...] = 0
                grown = np.float32(scale * self._growth_factor)
                scale = grown if np.isfinite(grown) else scale
        self._made().fill_(float(scale))

    def _check_scale(self, name: str) -> None:
        if self._scale is None:
            raise AssertionError(
                f"Attempted {name} but _scale is None.  This may indicate your script did not use scaler.scale(loss "
                "or outputs) earlier in the iteration."
            )

    # -- settings and state ------------------------------------------------------------------------

    def get_scale(self) -> float:
        """The scale as a Python number; 1 if disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else float(self._scale)

    def get_growth_factor(self) -> float:
        """The factor by which the scale grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set the factor by which the scale grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """The factor by which the scale falls."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set the factor by which the scale falls."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """The number of good steps after which the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set the number of good steps after which the scale grows."""
        self._growth_interval = new_interval

    def is_enabled(self) -> bool:
        """Whether the scaler is enabled."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """Torch's names: scale, factors, interval and the number of good steps so far; {} if disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": int(self._growth_tracker._array),
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore a state. RuntimeError for the state of a disabled scaler."""
        if not self._enabled:
            return
        if not state_dict:
            raise runtime_error(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale = float(state_dict["scale"])
        self._scale = None if self._scale is None else tensor(self._init_scale, dtype=float32)
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._growth_tracker._array[...] = state_dict["_growth_tracker"]
