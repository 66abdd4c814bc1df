"""torch.library: functions of the user's own as ops, with gradients of their own, and as torch.ops.name.op.

>>> @custom_op("mylib::twice", mutates_args=())
... def twice(x: rushlight.Tensor) -> rushlight.Tensor:
...     return rushlight.from_numpy(2 * x.numpy())
>>> twice.register_autograd(lambda ctx, g: 2 * g)
>>> x = rushlight.ones(2, requires_grad=True)
>>> rushlight.ops.mylib.twice(x).sum().backward()
>>> x.grad
tensor([2., 2.])
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import signature
from types import SimpleNamespace
from typing import Any

from rushlight import ops
from rushlight.autograd.function import Function
from rushlight.autograd.grad_mode import no_grad
from rushlight.errors import explain
from rushlight.tensor import Tensor

DEFINED: dict[str, CustomOp] = {}                 # "name::op" -> the op


class CustomOp:
    """A function that is run as it is, outside the graph; `register_autograd` says its gradients."""

    def __init__(self, name: str, fn: Callable, mutates_args: Iterable[str]):
        self._qualname, self._fn, self._mutates = name, fn, tuple(mutates_args)
        self._signature = signature(fn)
        self.__name__, self.__doc__ = name.partition("::")[2], fn.__doc__

        class Op(Function):
            setup_context = staticmethod(lambda ctx, inputs, output: None)

            @staticmethod
            def forward(*args: Any) -> Any:
                return self._fn(*[a.detach() if isinstance(a, Tensor) else a for a in args])  # type: ignore[attr-defined]

            @staticmethod
            def backward(ctx: Any, *grads: Any) -> Any:
                raise RuntimeError(explain(f"Trying to backward through {name} but no autograd formula was registered.",
                                           "say it with register_autograd(backward, setup_context=...)"))
        self._function = Op

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given = self._signature.bind(*args, **kwargs)
        given.apply_defaults()
        if self._mutates:
            with no_grad():
                return self._fn(*given.args, **given.kwargs)
        return self._function.apply(*given.arguments.values())

    def register_autograd(self, backward: Callable, /, *, setup_context: Callable | None = None) -> None:
        """`backward(ctx, *grads)`: the gradient of each input; `setup_context(ctx, inputs, output)` keeps what it needs."""
        self._function.backward = staticmethod(backward)  # type: ignore[method-assign]
        if setup_context is not None:
            self._function.setup_context = staticmethod(
                lambda ctx, inputs, output: setup_context(ctx=ctx, inputs=inputs, output=output))

    def register_kernel(self, device_types: Any, fn: Callable | None = None, /) -> Any:
        """What computes it on the CPU; other devices are not there."""
        if fn is None:
            return lambda f: self.register_kernel(device_types, f)
        kinds = (device_types,) if isinstance(device_types, str) or device_types is None else device_types
        if None in kinds or "cpu" in kinds:
            self._fn = fn
        return fn

    def register_fake(self, fn: Callable, /) -> Callable:
        """The function: shapes are known from running the op."""
        return fn

    def register_vmap(self, func: Callable | None = None, /) -> Any:
        """`func(info, in_dims, *args)` gives outputs and their mapped dimensions for all samples."""
        if func is None:
            return self.register_vmap
        self._function.vmap = staticmethod(func)  # type: ignore[method-assign]
        return func


def custom_op(name: str, fn: Callable | None = None, /, *, mutates_args: Any, device_types: Any = None,
              schema: str | None = None, **options: Any) -> Any:
    """The function as an op "name::op", also at torch.ops.name.op; function and decorator.

    `mutates_args`: the names of arguments that it writes to; such an op is not recorded. ValueError for a name without a
    namespace.
    """
    if fn is None:
        return lambda f: custom_op(name, f, mutates_args=mutates_args, device_types=device_types, schema=schema)
    space, _, own = name.partition("::")
    if not own:
        raise ValueError(explain(f"Expected `name` to be of the form `namespace::name`, got {name}"))
    op = DEFINED[name] = CustomOp(name, fn, () if isinstance(mutates_args, str) else mutates_args)
    home = vars(ops).setdefault(space, SimpleNamespace())
    setattr(home, own, op)
    return op


def defined(op: str | CustomOp) -> CustomOp:
    """An op by its name, or itself."""
    if isinstance(op, CustomOp):
        return op
    if op not in DEFINED:
        raise RuntimeError(explain(f"operator {op} does not exist", "make it with torch.library.custom_op"))
    return DEFINED[op]


def register_autograd(op: str | CustomOp, backward: Callable, /, *, setup_context: Callable | None = None,
                      lib: Any = None) -> None:
    """`CustomOp.register_autograd` of the op, or of that name."""
    defined(op).register_autograd(backward, setup_context=setup_context)


def register_fake(op: str | CustomOp, func: Callable | None = None, /, *, lib: Any = None, **options: Any) -> Any:
    """The function: shapes are known from running the op."""
    return (lambda f: f) if func is None else func


def register_kernel(op: str | CustomOp, device_types: Any, func: Callable | None = None, /, *, lib: Any = None) -> Any:
    """`CustomOp.register_kernel` of the op, or of that name."""
    return defined(op).register_kernel(device_types, func)


def register_vmap(op: str | CustomOp, func: Callable | None = None, /, *, lib: Any = None) -> Any:
    """`CustomOp.register_vmap` of the op, or of that name."""
    return defined(op).register_vmap(func)


__all__ = ["custom_op", "register_autograd", "register_fake", "register_kernel", "register_vmap"]
