"""A module's parameters and buffers in another dtype."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

from rushlight.base import dtypes
from rushlight.base.device import placed
from rushlight.base.errors import not_implemented_error, runtime_error, type_error, warn
from rushlight.core.tensor import Tensor
from rushlight.creation.factories import empty_like
from rushlight.nn.parameter import Parameter
from rushlight.ops.grad_mode import no_grad

ORDER = re.compile("([td]|[pn][dn])b?b?|[pn]?")  # of the arguments of `to`, by `kind_of`

C = TypeVar("C", bound="Convertible")


class Convertible:
    """The part of Module that converts the parameters and buffers of the module and its submodules."""

    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    children: Callable

    def _apply(self: C, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> C:
        """Replace each parameter, gradient and buffer by the result of `fn`; parameters remain the same objects."""
        for module in self.children() if recurse else ():
            module._apply(fn)
        with no_grad():
            for parameter in self._parameters.values():
                if parameter is not None:
                    parameter.data = fn(parameter)
                    if parameter._grad is not None:
                        parameter._grad = fn(parameter._grad)
            for name, buffer in self._buffers.items():
                if buffer is not None:
                    self._buffers[name] = fn(buffer)
        return self

    def to(self: C, *args: Any, **kwargs: Any) -> C:
        """Convert floating-point and complex parameters and buffers; returns the module itself.

        `m.to(torch.float64)`, `m.to('cpu')`, `m.to(tensor)`, or with keywords. `memory_format` applies to tensors of
        four or five dimensions. TypeError for an integer dtype, NotImplementedError for meta tensors, which have no
        elements to move.
        """
        dtype, device = target(*args, **kwargs)
        if device is not None:
            put(self, device)
        if (lies := kwargs.get("memory_format")) is not None:
            self._apply(lambda t: t.to(memory_format=lies) if t.ndim in (4, 5) else t)
        if dtype is None:
            return self
        if not (dtype.is_floating_point or dtype.is_complex):
            raise type_error(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
            )
        if dtype.is_complex:
            warn(
                "Complex modules are a new feature under active development whose design may change, and some modules "
                "might not work as expected when using complex tensors as parameters or buffers."
            )
        return self._apply(lambda t: t.to(dtype) if t.dtype.category >= dtypes.FLOATING else t)

    def type(self: C, dst_type: Any) -> C:
        """Convert all parameters and buffers to a dtype."""
        return self._apply(lambda t: t.type(dst_type))

    def float(self: C) -> C:
        """Convert floating-point parameters and buffers to float32."""
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self: C) -> C:
        """Convert floating-point parameters and buffers to float64."""
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self: C) -> C:
        """Convert floating-point parameters and buffers to float16."""
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def bfloat16(self: C) -> C:
        """Convert floating-point parameters and buffers to bfloat16."""
        return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)

    def cpu(self: C) -> C:
        """The module itself, which is on the CPU."""
        put(self, "cpu")  # not self.to: an override may call this method
        return self

    def cuda(self: C, device: Any = None) -> C:
        """RuntimeError: the only device is the CPU."""
        return self._apply(lambda t: t.cuda(device))

    def to_empty(self: C, *, device: Any, recurse: bool = True) -> C:
        """Replace the memory of parameters and buffers by new memory with arbitrary contents."""
        return self._apply(lambda t: empty_like(t, device=device), recurse)

    def share_memory(self: C) -> C:
        """Move parameters and buffers to memory that this process shares with its later forks."""
        for t in [*self.parameters(), *self.buffers()]:  # type: ignore[attr-defined]
            t.share_memory_()
        return self


def put(module: Any, device: Any) -> None:
    """Move the module's tensors to a device, unless they are on it."""
    place = placed(device)
    tensors = [t for t in (*module.parameters(), *module.buffers()) if t.device.type != place.type]
    if tensors and place.type != "meta":
        raise not_implemented_error(
            "Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty() instead of "
            "torch.nn.Module.to() when moving module from meta to a different device.",
            "then load_state_dict() or reset_parameters() fills it",
        )
    if tensors:
        module._apply(lambda t: t.to(place))


def kind_of(arg: Any) -> str:
    """The letter of an argument in `ORDER`: t tensor, d dtype, b bool, n None, p any other, a place."""
    return (
        "t"
        if isinstance(arg, Tensor)
        else "d"
        if isinstance(arg, dtypes.dtype) or arg in (float, complex, int)
        else "b"
        if isinstance(arg, bool)
        else "n"
        if arg is None
        else "p"
    )


def target(
    *args: Any, dtype: Any = None, device: Any = None, tensor: Tensor | None = None, non_blocking: bool = False,
    copy: bool | None = None, memory_format: Any = None,
) -> tuple[dtypes.dtype | None, Any]:  # fmt: skip
    """The dtype and device that the arguments of `to` name. TypeError for another order than torch's, RuntimeError for
    `copy`: a module is converted in place."""
    order = "".join([kind_of(arg) for arg in args])
    if not ORDER.fullmatch(order):
        raise type_error(
            f"to() received an invalid combination of arguments - got ({', '.join(type(a).__name__ for a in args)})",
            "to(device, dtype), to(dtype) or to(tensor), and after these non_blocking",
        )
    if copy is not None or order.endswith("bb"):
        raise runtime_error(".to() does not accept copy argument", "copy.deepcopy(module).to(...)")
    for arg in args:
        if isinstance(arg, Tensor):
            tensor = arg
        elif isinstance(arg, dtypes.dtype) or arg in (float, complex, int):
            dtype = arg
        elif arg is not None and not isinstance(arg, bool):
            device = arg
    if tensor is not None:
        dtype, device = tensor.dtype, tensor.device
    return None if dtype is None else dtypes.as_dtype(dtype), device
