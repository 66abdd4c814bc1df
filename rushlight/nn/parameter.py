"""Tensors of modules: parameters, which are trained, and buffers, which are not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, TypeGuard

import numpy as np

from rushlight.base import dtypes
from rushlight.base.device import CPU, present
from rushlight.base.errors import explain, runtime_error, value_error
from rushlight.base.printing import format_parameter
from rushlight.core.arguments import sizes
from rushlight.core.tensor import Tensor, from_array, new, noticed, writes_of
from rushlight.ops.tensor.tensor_copy_pickle import copied, disabled, rebuild, unfilled

if TYPE_CHECKING:
    from typing_extensions import Self

    TensorMeta = type
else:
    TensorMeta = type(Tensor)

ARRAY: Any = Tensor.__dict__["_array"]  # the slot, which Uninitialized hides


class _ParameterMeta(TensorMeta):
    """The class of Parameter. For isinstance, parameters made from tensors of users' classes are instances, too."""

    def __instancecheck__(cls, thing: Any) -> bool:
        return super().__instancecheck__(thing) or (
            cls is Parameter and isinstance(thing, Tensor) and getattr(thing, "_is_param", False)
        )


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor to be trained. An attribute of this class is among the module's `parameters()`.

    It shares the memory of `data`. By default it requires a gradient; RuntimeError if its dtype is neither
    floating-point nor complex. A user's subclass of Tensor and a sparse tensor keep their class.

    >>> rushlight.nn.Parameter(rushlight.zeros(2))
    Parameter containing:
    tensor([0., 0.], requires_grad=True)
    """

    __slots__ = ()
    __torch_function__ = staticmethod(disabled)

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Self:
        if (
            cls is Parameter
            and (getattr(data, "_overrides", False) or not getattr(data, "_dense", True))
            and not issubclass(type(data), Parameter)
        ):
            return in_its_class(data, requires_grad)
        self = new(cls)
        on_memory_of(self, data)
        self.requires_grad = requires_grad
        finish = getattr(type(data), "_finish_parameter", None)  # a method of DTensor
        return self if finish is None else finish(data, self)

    if not TYPE_CHECKING:  # type checkers use the arguments of __new__
        # with object's __init__, a subclass whose __new__ takes more arguments needs no __init__
        __init__ = object.__init__

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        noticed(self)
        name = None if self.grad_fn is None else self.grad_fn.name()
        return format_parameter(self._array, self.dtype, self.requires_grad, name)

    def __deepcopy__(self, memo: dict) -> Parameter:
        if id(self) not in memo:
            memo[id(self)] = rebuild(type(self), copied(self._array), self.requires_grad, None, dict(self.__dict__))
        return memo[id(self)]


class Buffer(Tensor):
    """A tensor of a module that is not trained. It is saved with the parameters if `persistent`.

    >>> m = rushlight.nn.Module()
    >>> m.mean = rushlight.nn.Buffer(rushlight.zeros(2))
    >>> list(m.state_dict())
    ['mean']
    """

    __slots__ = ()
    __torch_function__ = staticmethod(disabled)
    persistent: bool

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Self:
        self = new(cls)
        on_memory_of(self, data)
        self.persistent, self.requires_grad = persistent, data is not None and data.requires_grad
        return self

    if not TYPE_CHECKING:
        __init__ = object.__init__


def in_its_class(data: Tensor, requires_grad: bool) -> Any:
    """A parameter of the user's subclass of Tensor."""
    made = data.detach().requires_grad_(requires_grad)
    if type(made) is not type(data):
        raise runtime_error(
            f"Creating a Parameter from an instance of type {type(data).__name__} requires that detach() returns "
            f"an instance of the same type, but return type {type(made).__name__} was found instead. To use the "
            "type as a Parameter, please correct the detach() semantics defined by its __torch_dispatch__() "
            "implementation."
        )
    made._is_param = True  # type: ignore[attr-defined]
    return made


def on_memory_of(self: Tensor, data: Any) -> None:
    """Make `self` a leaf on the memory of `data`. Both share the record of writes."""
    if data is None:
        data = from_array(np.zeros(0, dtypes.get_default_dtype().numpy))
    if not isinstance(data, Tensor):
        raise AttributeError(
            explain(f"'{type(data).__name__}' object has no attribute 'detach'", "pass a tensor: torch.tensor(data)")
        )
    self._array, self._node, self._grad, self._viewing = data._array, None, None, None
    self._writes = writes_of(data)


# -- uninitialized ---------------------------------------------------------------------------------


class Uninitialized(Tensor):
    """A parameter or buffer without a shape yet; only its dtype is known.

    An uninitialized parameter may be in a module, an optimizer or a state dict, and be converted. ValueError for a read
    of elements, RuntimeError for a read of the shape.
    """

    __slots__ = ()
    __new__ = staticmethod(unfilled)
    _becomes: ClassVar[Any] = Tensor  # the class after `materialize`

    def _begin(self, requires_grad: bool, device: Any, dtype: Any) -> None:
        if device is not None:
            present(device)
        d = dtypes.or_default(dtype)
        self._array, self._node, self._grad, self._viewing, self._writes = (
            np.empty(0, d.numpy), None, None, None, None,
        )  # fmt: skip
        own = self.__class__
        self.__class__ = self._becomes  # requires_grad makes a node, which reads the shape
        self.requires_grad = requires_grad
        self.__class__ = own

    @property
    def _array(self) -> np.ndarray:
        raise value_error(
            "Attempted to use an uninitialized parameter in an operation. This error happens when you are using a "
            "`LazyModule` or explicitly manipulating `torch.nn.parameter.UninitializedParameter` objects. When "
            "using LazyModules Call `forward` with a dummy batch to initialize the parameters before calling "
            "torch functions"
        )

    @_array.setter
    def _array(self, value: np.ndarray) -> None:
        ARRAY.__set__(self, value)

    @property
    def shape(self) -> Any:
        raise runtime_error(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. Call "
            "`forward` to initialize the parameters before accessing their attributes."
        )

    device = property(lambda self: CPU, doc="Where it will be: the CPU.")

    @property
    def dtype(self) -> dtypes.dtype:
        """The type that the elements will have."""
        return dtypes.of(empty_array(self).dtype)

    @property
    def data(self) -> Tensor:
        """A tensor of no elements."""
        return from_array(empty_array(self))

    @data.setter
    def data(self, value: Tensor) -> None:
        self._array = empty_array(value)

    def is_complex(self) -> bool:
        """Whether the elements will be complex numbers."""
        return self.dtype.is_complex

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """An uninitialized tensor of another dtype: `module.to` calls this."""
        return waiting(self.__class__, self.data.to(*args, **kwargs)._array.dtype)

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """`to` by its old name; without a dtype, the name of the type."""
        return self.data.type() if dtype is None else self.to(dtypes.as_dtype(dtype))

    float, double, half, bfloat16 = (
        lambda self, memory_format=None, d=d: self.to(d)
        for d in (dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16)
    )

    def cpu(self, memory_format: Any = None) -> Any:
        """Itself."""
        return self

    def share_memory_(self) -> Any:
        raise runtime_error(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the "
            "parameters before calling `module.share_memory()`."
        )

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Become an ordinary parameter or buffer of this shape, with arbitrary contents."""
        if device is not None:
            present(device)
        d = self.dtype if dtype is None else dtypes.as_dtype(dtype)
        shape = sizes(shape)
        self.data = from_array(np.empty(shape, d.numpy))
        self.__class__ = self._becomes
        if self._node is not None:
            self._node.shape = shape

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return f"<{self.__class__.__name__}>"

    def __deepcopy__(self, memo: dict) -> Any:
        if id(self) not in memo:
            memo[id(self)] = waiting(self.__class__, empty_array(self).dtype, self.requires_grad)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> tuple:
        return waiting, (self.__class__, empty_array(self).dtype, self.requires_grad)


UninitializedTensorMixin = Uninitialized  # torch's name


class UninitializedParameter(Uninitialized, Parameter):  # type: ignore[misc]
    """A parameter whose shape is not known yet; `materialize(shape)` makes it a Parameter.

    >>> p = rushlight.nn.UninitializedParameter()
    >>> p
    <UninitializedParameter>
    >>> p.materialize((2, 3))
    >>> p.shape
    torch.Size([2, 3])
    """

    __slots__ = ()
    _becomes = Parameter

    def __init__(self, requires_grad: bool = True, device: Any = None, dtype: Any = None):
        self._begin(requires_grad, device, dtype)


class UninitializedBuffer(Uninitialized):
    """A buffer whose shape is not known yet; `materialize(shape)` makes it a Tensor.

    >>> b = rushlight.nn.UninitializedBuffer()
    >>> b.materialize((2, 3))
    >>> b.shape
    torch.Size([2, 3])
    """

    __slots__ = ()

    def __init__(self, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True):
        self._begin(requires_grad, device, dtype)
        self.persistent = persistent


def empty_array(t: Any) -> np.ndarray:
    """The empty array that keeps the dtype."""
    return ARRAY.__get__(t)


def waiting(kind: type, dtype: np.dtype, requires_grad: bool = False) -> Any:
    """An uninitialized parameter or buffer from its parts, for pickle and deepcopy."""
    return kind(requires_grad, None, dtypes.of(dtype))


def is_lazy(value: Any) -> TypeGuard[Uninitialized]:
    """Whether a tensor is a parameter or buffer whose shape is not known yet."""
    return isinstance(value, Uninitialized)
