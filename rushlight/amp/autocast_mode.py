"""`autocast`: inside it, each op computes in a suitable precision."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextvars import ContextVar, Token
from functools import wraps
from typing import Any

from rushlight.amp.autocast_policy import converted, current, install
from rushlight.base.dtypes import bfloat16, dtype, float16
from rushlight.base.errors import runtime_error, value_error

# (enabled, lower precision, whether converted weights may be cached)
Setting = tuple[bool, dtype, bool]
state: ContextVar[Setting] = ContextVar("autocast_setting", default=(False, bfloat16, True))
# torch's other devices
OTHER_DEVICES = ("cuda", "mtia", "maia", "xpu", "hpu", "mps", "ipu", "xla", "privateuseone")


def put(setting: Setting) -> tuple[Token, Token]:
    """Set `setting` as the current setting."""
    on, lowest, _ = setting
    if on:
        install()
    return state.set(setting), current.set(lowest if on else None)


class autocast:
    """Inside the context, products and convolutions run in bfloat16, losses and similar functions in float32, other
    functions in the dtype of their inputs.

    Context manager and decorator. `device_type` is 'cpu'; other devices of torch are accepted and change nothing,
    'cuda' with a warning. `dtype` is bfloat16, or float16. Weights stay float32, and get float32 gradients; call
    `backward()` outside. Products inside are rounded to bfloat16; on a CPU they do not become faster. Recurrent layers
    stay in the dtype of their input.

    ValueError unless device_type is text, RuntimeError for an unknown device.

    >>> layer = rushlight.nn.Linear(2, 3)
    >>> with rushlight.autocast("cpu"):
    ...     layer(rushlight.ones(1, 2)).dtype
    torch.bfloat16
    """

    def __init__(
        self, device_type: str, dtype: dtype | None = None, enabled: bool = True, cache_enabled: bool | None = None
    ):
        if not isinstance(device_type, str):
            raise value_error(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        check_device(device_type)
        self.device, self.fast_dtype = device_type, bfloat16 if dtype is None else dtype
        self._enabled, self._cache_enabled = bool(enabled), cache_enabled
        if device_type != "cpu":
            if enabled and device_type == "cuda":
                warnings.warn("CUDA is not available or torch_xla is imported. Disabling autocast.", stacklevel=2)
            self._enabled = False
        elif enabled and self.fast_dtype not in (bfloat16, float16):
            warnings.warn(
                "In CPU autocast, but the target dtype is not supported. Disabling autocast.\nCPU Autocast only "
                "supports dtype of torch.bfloat16, torch.float16 currently.",
                stacklevel=2,
            )
            self._enabled = False
        self._tokens: list[tuple[Token, Token] | None] = []

    def __enter__(self) -> autocast:
        here = self.device == "cpu"
        cache = state.get()[2] if self._cache_enabled is None else self._cache_enabled
        self._tokens.append(put((self._enabled, self.fast_dtype, cache)) if here else None)
        return self

    def __exit__(self, *exc: object) -> None:
        tokens = self._tokens.pop()
        if tokens is not None:
            state.reset(tokens[0])
            current.reset(tokens[1])

    def again(self) -> autocast:
        """A copy of this context: a decorated function may run in several threads at once."""
        fresh = object.__new__(autocast)
        fresh.__dict__.update(self.__dict__, _tokens=[])
        return fresh

    def __call__(self, func: Callable) -> Callable:
        @wraps(func)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with self.again():
                return func(*args, **kwargs)

        return inside


def check_device(name: str) -> None:
    if name != "cpu" and name not in OTHER_DEVICES:
        raise runtime_error(
            f"Expected one of cpu, {', '.join(OTHER_DEVICES)} device type at start of device string: {name}",
            "use 'cpu', the only device of rushlight",
        )


def is_autocast_available(device_type: str) -> bool:
    """True on the CPU: where `autocast` has an effect.

    >>> rushlight.amp.is_autocast_available("cpu")
    True
    """
    check_device(device_type)
    return device_type == "cpu"


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """True inside `autocast` of this device; torch's default is 'cuda', which is not available here.

    >>> with rushlight.autocast("cpu"):
    ...     rushlight.is_autocast_enabled("cpu")
    True
    """
    check_device(device_type)
    return device_type == "cpu" and state.get()[0]


def is_autocast_cpu_enabled() -> bool:
    """True inside `autocast("cpu")`.

    >>> rushlight.is_autocast_cpu_enabled()
    False
    """
    return state.get()[0]


def get_autocast_dtype(device_type: str) -> dtype:
    """dtype = the lower precision of autocast: default bfloat16.

    >>> rushlight.get_autocast_dtype("cpu")
    torch.bfloat16
    """
    check_device(device_type)
    return state.get()[1] if device_type == "cpu" else float16


def set_autocast_enabled(device_type: str | bool, enabled: bool | None = None) -> None:
    """Switch autocast on or off; prefer `with autocast(...)`.

    >>> rushlight.set_autocast_enabled("cpu", True)
    >>> (rushlight.ones(2, 2) @ rushlight.ones(2, 2)).dtype
    torch.bfloat16
    >>> rushlight.set_autocast_enabled("cpu", False)
    """
    if device_type == "cpu":
        put((bool(enabled), *state.get()[1:]))


def set_autocast_dtype(device_type: str, dtype: dtype) -> None:
    """Set the lower precision of autocast.

    >>> rushlight.set_autocast_dtype("cpu", rushlight.float16)
    >>> rushlight.get_autocast_dtype("cpu")
    torch.float16
    >>> rushlight.set_autocast_dtype("cpu", rushlight.bfloat16)
    """
    if device_type == "cpu":
        put((state.get()[0], dtype, state.get()[2]))


def is_autocast_cache_enabled() -> bool:
    """torch's setting for a cache of converted weights; here weights are converted in each call.

    >>> rushlight.is_autocast_cache_enabled()
    True
    """
    return state.get()[2]


def set_autocast_cache_enabled(enabled: bool) -> None:
    """No effect: weights are converted in each call.

    >>> rushlight.set_autocast_cache_enabled(False)
    >>> rushlight.is_autocast_cache_enabled()
    False
    >>> rushlight.set_autocast_cache_enabled(True)
    """
    put((*state.get()[:2], bool(enabled)))


def custom_fwd(fwd: Callable | None = None, *, device_type: str, cast_inputs: dtype | None = None) -> Callable:
    """A decorator of an autograd.Function's forward: it runs under the current autocast, or with `cast_inputs` outside
    of autocast, with converted inputs.

    >>> class Double(rushlight.autograd.Function):
    ...     @staticmethod
    ...     @rushlight.amp.custom_fwd(device_type="cpu", cast_inputs=rushlight.float32)
    ...     def forward(ctx, x):
    ...         return 2 * x
    ...     @staticmethod
    ...     @rushlight.amp.custom_bwd(device_type="cpu")
    ...     def backward(ctx, g):
    ...         return 2 * g
    >>> with rushlight.autocast("cpu"):
    ...     Double.apply(rushlight.ones(1, dtype=rushlight.bfloat16)).dtype
    torch.float32
    """
    if fwd is None:
        return lambda fwd: custom_fwd(fwd, device_type=device_type, cast_inputs=cast_inputs)
    check_device(device_type)

    @wraps(fwd)
    def inside(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        ctx._dtype = get_autocast_dtype(device_type)
        on = is_autocast_enabled(device_type)
        if cast_inputs is None or not on:
            ctx._fwd_used_autocast = on
            return fwd(ctx, *args, **kwargs)
        ctx._fwd_used_autocast = False
        with autocast(device_type, enabled=False):
            return fwd(ctx, *converted(args, cast_inputs), **{k: converted(v, cast_inputs) for k, v in kwargs.items()})

    return inside


def custom_bwd(bwd: Callable | None = None, *, device_type: str) -> Callable:
    """A decorator for the backward of an autograd.Function, which then runs under the autocast state of the forward
    (decorated with `custom_fwd`).

    >>> class Double(rushlight.autograd.Function):
    ...     forward = staticmethod(rushlight.amp.custom_fwd(lambda ctx, x: 2 * x, device_type="cpu"))
    ...     backward = staticmethod(rushlight.amp.custom_bwd(lambda ctx, g: 2 * g, device_type="cpu"))
    >>> x = rushlight.ones(1, requires_grad=True)
    >>> Double.apply(x).backward()
    >>> x.grad
    tensor([2.])
    """
    if bwd is None:
        return lambda bwd: custom_bwd(bwd, device_type=device_type)
    check_device(device_type)

    @wraps(bwd)
    def inside(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        with autocast(device_type, enabled=ctx._fwd_used_autocast and device_type == "cpu", dtype=ctx._dtype):
            return bwd(ctx, *args, **kwargs)

    return inside
