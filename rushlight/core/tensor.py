"""class Tensor: a NumPy array and its place in the autograd graph.

The class has the methods that are not ops; the ops of the table are attached as methods when the table is built."""

from __future__ import annotations

from _thread import RLock
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import ref

from numpy import asarray, generic, ndarray

from rushlight.base import dtypes
from rushlight.base.array_memory import expose, memory_of
from rushlight.base.device import CPU, Layout, strided
from rushlight.base.device import device as Device
from rushlight.base.errors import check_assigned, not_populated, runtime_error, type_error
from rushlight.base.size import Size, steps_of
from rushlight.core.mode import mode
from rushlight.core.node import Handle, Node, Writes, clock, hooks_of, stamp, tick
from rushlight.kernels.summation import add_to, copy_like

if TYPE_CHECKING:
    from rushlight._methods import Methods  # what the ops attach, written down by `make stubs`
else:

    class Methods:
        """The base class whose attributes load methods on first use (base/lazy.py). Tensor's own methods come first."""

        __slots__ = ()


new = object.__new__
attribute: Any = property  # the annotation of an attribute gives its type
TANGENTS = "_tangents"  # key in a tensor's __dict__ for its forward-mode tangents (func/forward_ad.py)
ADDING = RLock()  # held while a gradient is added to `.grad`: two threads may share a leaf
F = TypeVar("F", bound=Callable)


class Tensor(Methods):
    """An n-dimensional array that can record the ops that are applied to it.

    `_array`: NumPy's array of the elements. `_node`: the graph node of the op that made the tensor, `AccumulateGrad`
    for a leaf that requires grad, None outside the graph. `_viewing`: for a view (base, parent, op, arguments, whether
    grad mode was on); else None. `_writes`: the log of in-place writes to the tensor's memory, None before the first
    write.

    >>> x = rushlight.tensor([1., 2.], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """

    __slots__ = ("_array", "_node", "_grad", "_viewing", "_writes", "_views", "__dict__", "__weakref__")
    __array_priority__ = 1000  # `array * tensor` calls Tensor.__rmul__ and not NumPy's operator
    _array: ndarray
    _node: Node | None
    _grad: Tensor | None
    _viewing: tuple | None
    _writes: Writes | None
    # weak references to the views of this tensor; the slot stays empty until the first view
    _views: list
    _dense = True  # whether it has an array: False for sparse and masked tensors
    _overrides: bool  # whether the class is a user's, which may have its own `__torch_function__`

    def __init__(self, *args: Any, **keywords: Any):
        if hasattr(self, "_node"):
            # the __new__ of a user's subclass has filled the slots already (ops/tensor/tensor_copy_pickle.py)
            return
        self._fill(*args, **keywords)  # type: ignore[attr-defined]

    # -- shape, dtype, device, memory --------------------------------------------------------------

    @property
    def shape(self) -> Size:
        """The size of each dimension."""
        return tuple.__new__(Size, self._array.shape)

    @property
    def dtype(self) -> dtypes.dtype:
        """The type of the elements."""
        return dtypes.of(self._array.dtype)

    device: Device = attribute(
        lambda self: CPU if isinstance(self._array, ndarray) else self._array.device,
        doc='The device of the elements: "cpu", or "meta" for a tensor without elements.',
    )
    layout: Layout = attribute(lambda self: strided, doc="The memory layout: always `torch.strided`.")
    ndim: int = attribute(lambda self: self._array.ndim, doc="The number of dimensions.")
    itemsize: int = attribute(lambda self: self._array.itemsize, doc="Bytes of one element.")
    nbytes: int = attribute(lambda self: self._array.nbytes, doc="Bytes of all elements.")
    is_cuda = is_mps = is_xpu = is_ipu = is_xla = is_mtia = is_maia = is_vulkan = is_mkldnn = is_sparse = (
        is_sparse_csr
    ) = is_quantized = is_nested = property(
        lambda self: False, doc="Always False: this is a dense, strided tensor in the CPU's memory."
    )
    is_cpu: bool = attribute(lambda self: self.device.type == "cpu", doc="Whether its device is the CPU.")
    is_meta: bool = attribute(
        lambda self: self.device.type == "meta", doc="Whether this is a meta tensor, without elements."
    )

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the size of one dimension."""
        return self.shape if dim is None else self._array.shape[dim]

    def dim(self) -> int:
        """The number of dimensions."""
        return self._array.ndim

    def numel(self) -> int:
        """The number of elements."""
        return self._array.size

    ndimension, nelement = dim, numel

    def element_size(self) -> int:
        """Bytes of one element."""
        return self._array.itemsize

    def stride(self, dim: int | None = None) -> Any:
        """Elements to step over from one index to the next, for every dimension or for `dim`."""
        steps = steps_of(self._array)
        return steps if dim is None else steps[dim]

    def storage_offset(self) -> int:
        """Elements between the start of the memory and this tensor's first element."""
        return (self.data_ptr() - memory_of(self).__array_interface__["data"][0]) // self._array.itemsize

    def data_ptr(self) -> int:
        """The address of the first element."""
        return 0 if self.is_meta else self._array.__array_interface__["data"][0]

    def is_floating_point(self) -> bool:
        """Whether the elements are floating-point numbers."""
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        """Whether the elements are complex numbers."""
        return self._array.dtype.kind == "c"

    # -- the tensor in the autograd graph ----------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        """Whether backward computes a gradient for this tensor, or passes a gradient through it."""
        return self._node is not None

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if bool(value) == (self._node is not None):
            return
        if not self.is_leaf:
            raise runtime_error(
                "you can only change requires_grad flags of leaf variables.",
                "use y = x.detach() for a tensor outside the graph",
                made_at=self._node.made_at if self._node else "",
            )
        if value:
            dtypes.check_differentiable(self.dtype)
        self._node = AccumulateGrad(self) if value else None

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Set whether backward computes this leaf's gradient; floating-point and complex tensors only."""
        self.requires_grad = requires_grad
        return self

    @property
    def is_leaf(self) -> bool:
        """True unless a recorded op made this tensor."""
        return self._node is None or self._node.leaf

    @property
    def grad_fn(self) -> Node | None:
        """The graph node of the op that made this tensor; None for a leaf."""
        return None if self.is_leaf or self._node is None else self._node.source()[0]

    @property
    def output_nr(self) -> int:
        """The number of this tensor among the outputs of `grad_fn`."""
        return 0 if self._node is None else self._node.source()[1]

    @property
    def grad(self) -> Tensor | None:
        """The gradient that backward has accumulated, or None."""
        g, node = self._grad, self._node
        if g is None and node is not None and not node.leaf and not self.retains_grad:
            leaves = [edge is not None and edge.leaf for edge in node.edges]
            not_populated(any(leaves) and node.name() in ("SubBackward0", "AddBackward0"))
        return g

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            if not isinstance(value, Tensor):
                raise type_error(f"assigned grad expected to be a Tensor or None but got grad of type {type(value)}")
            if value is self:
                raise runtime_error("can't assign Variable as its own grad")
            check_assigned(value.shape, self.shape, value.dtype, self.dtype)
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    @property
    def data(self) -> Tensor:
        """A tensor on the same memory, outside the graph. Backward does not notice writes to it: prefer `detach()`."""
        t = from_array(self._array)
        if self._viewing is not None:
            t._writes = Writes()
            t._writes.memory = memory_of(self)
        return t

    @data.setter
    def data(self, value: Tensor) -> None:
        if (watch := mode().watch) is not None:
            watch.on_set_data(self)
        self._array = value._array
        if self._node is not None and self._node.leaf:
            self._node.shape = value._array.shape

    @property
    def _version(self) -> int:
        """The number of in-place writes to the tensor's memory."""
        writes = self._root._writes
        return writes.count if writes is not None else 0

    @property
    def _root(self) -> Tensor:
        """The tensor that owns the memory: the base of a view, else the tensor itself."""
        return self if self._viewing is None else self._viewing[0]

    @property
    def _base(self) -> Tensor | None:
        """The base of a view; None for other tensors."""
        return None if self._viewing is None else self._viewing[0]

    def _is_view(self) -> bool:
        """Whether this tensor is a view of another tensor."""
        return self._viewing is not None

    # -- hooks -------------------------------------------------------------------------------------

    def register_hook(self, hook: Callable) -> Handle:
        """Call `hook(grad)` when backward has computed this gradient. A tensor that the hook returns replaces it."""
        if self._node is None:
            raise runtime_error(
                "cannot register a hook on a tensor that doesn't require gradient", "call requires_grad_() first"
            )
        return hooks_of(self._node, self._array.dtype).add("tensor", hook)

    def register_post_accumulate_grad_hook(self, hook: Callable) -> Handle:
        """Call `hook(tensor)` after backward has added to this leaf's `.grad`."""
        if self._node is None or not self._node.leaf:
            raise runtime_error(
                "post accumulate grad hooks cannot be registered on non-leaf tensors",
                "use register_hook, or register on a leaf that requires grad",
            )
        return hooks_of(self._node).add("done", hook)

    def retain_grad(self) -> None:
        """Keep the gradient of this non-leaf tensor in `.grad`."""
        if self._node is None:
            raise runtime_error(
                "can't retain_grad on Tensor that has requires_grad=False", "call requires_grad_() first"
            )
        if not self.is_leaf:
            hooks_of(self._node, self._array.dtype).retained = ref(self)

    @property
    def retains_grad(self) -> bool:
        """Whether `retain_grad` was called on this non-leaf tensor."""
        return (
            not self.is_leaf
            and self._node is not None
            and self._node.hooks is not None
            and self._node.hooks.retained is not None
        )

    # -- to Python; numbers and arrays: ops/tensor/conversions.py ----------------------------------

    def __len__(self) -> int:
        if self._array.ndim == 0:
            raise type_error("len() of a 0-d tensor", "x.numel() is 1; x.item() is the number")
        return self._array.shape[0]

    __hash__ = object.__hash__  # by identity, since == compares elements

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        noticed(self)
        if hasattr(self._array, "shown"):  # a batched tensor of vmap
            return self._array.shown()
        name = None if self.grad_fn is None else self.grad_fn.name()
        prefix = "tensor" if type(self) is Tensor else type(self).__name__
        from rushlight.base.printing import format_tensor  # loaded when the first tensor is printed

        shown = self._array, self.dtype, self.requires_grad, name
        return format_tensor(*shown, prefix=prefix, contents=tensor_contents)

    def __format__(self, spec: str) -> str:
        known = self._array.ndim == 0 and not self.is_meta
        return format(self.item(), spec) if known else object.__format__(self, spec)


Tensor.__module__ = "rushlight"  # where users find the class, as in torch


class AccumulateGrad(Node):
    """The node of a leaf that requires grad: adds the incoming gradient to the leaf's `.grad`.

    The node refers to the leaf weakly, since the leaf refers to the node: no reference cycle."""

    __slots__ = ("tensor",)
    leaf = True

    def __init__(self, tensor: Tensor):
        self.tensor = ref(tensor)
        self.edges, self.saved, self.seq = (), (), 0
        self.shape, self.where = tensor._array.shape, None

    @property
    def variable(self) -> Tensor | None:
        """The leaf; None once it has been freed."""
        return self.tensor()

    def arrays(self, g: ndarray) -> tuple:
        leaf = self.tensor()
        # None: requires_grad was set to False after the forward
        if leaf is not None and leaf._node is not None:
            if g.__class__ is not ndarray and isinstance(g, generic):  # a NumPy scalar
                g = asarray(g)
            if g.dtype is not leaf._array.dtype:  # NumPy promotes bfloat16 to float32
                g = g.astype(leaf._array.dtype)
            with ADDING:
                known = leaf._grad
                if known is None:
                    # a view of another array, whose memory may be written to, or another layout
                    if g.base.__class__ is ndarray or g.strides != leaf._array.strides:
                        g = copy_like(leaf._array, g)
                    leaf._grad = from_array(g)
                else:
                    add_to(known._array, g)
                    stamp(writes_of(known), None)
        return ()

    def tensors(self, g: Tensor) -> tuple:
        leaf = self.tensor()
        if leaf is not None and leaf._node is not None:
            g = (g if g._viewing is None else g.clone()).to(leaf.dtype)
            with ADDING:
                known, m = leaf._grad, mode()
                if known is not None and not m.grad and m.watch is not None and m.watch.predates(known):
                    known.add_(g)
                else:
                    leaf._grad = g if known is None else known + g
        return ()


def from_array(array: ndarray) -> Tensor:
    """A tensor that shares the memory of `array`, outside the graph."""
    t = new(Tensor)
    t._array, t._node, t._grad, t._viewing, t._writes = array, None, None, None, None
    return t


def noticed(tensor: Tensor) -> None:
    """Report to the watcher, if there is one, that Python reads the tensor's elements."""
    if (watch := mode().watch) is not None:
        watch.on_read(tensor)


def handed_out(tensor: Tensor) -> None:
    """Record that code outside of tensors gets the tensor's array, and may write to it without a record."""
    expose(tensor._array)
    if tensor._writes is not None or tensor._viewing is not None or tensor._node is not None:
        clock.last_write = tick()  # compiled programs look at their parameters again


def created(tensor: Tensor) -> Tensor:
    """Report to the watcher, if there is one, that the tensor's elements come from no op. Returns the tensor."""
    if (watch := mode().watch) is not None:
        watch.on_create(tensor)
    return tensor


def writes_of(tensor: Tensor) -> Writes:
    """The write log of the tensor's memory, made on demand.

    The tensor's node shares the log, so that backward sees that a saved output was overwritten."""
    # `tensor._root`, without the call of a property
    root = tensor if tensor._viewing is None else tensor._viewing[0]
    writes = root._writes
    if writes is None:
        writes = root._writes = Writes()
        if root._node is not None:
            root._node._writes = writes
    if root is not tensor and writes.memory is None:
        writes.memory = root._array
    return writes


def holder(tensor: Tensor) -> Tensor:
    """The tensor that holds the elements: for a batched tensor of vmap, the tensor of all samples."""
    while not isinstance(tensor._array, ndarray):
        tensor = tensor._array.value
    return tensor


def numbers(tensor: Tensor) -> ndarray:
    """The elements of a tensor (of all samples, inside vmap), for checks of argument values.

    Reports the read to the watcher: a compiled program would not repeat the check. For a check that the op's kernel
    repeats anyway, read `holder(tensor)._array` instead."""
    noticed(tensor)
    return holder(tensor)._array


# Functions of torch that Tensor has no method for. Subclasses of users may take these names.
FUNCTIONS_ONLY = frozenset(
    (
        "angle_", "cholesky_ex", "constant_pad_nd", "eigh", "eigvals", "eigvalsh", "fill", "fmax_", "fmin_",
        "householder_product", "inv", "inv_ex", "ldl_factor", "ldl_factor_ex", "ldl_solve", "linalg_cholesky",
        "linalg_diagonal", "linalg_lu", "linalg_lu_solve", "linalg_qr", "linalg_svd", "logaddexp2_",
        "logaddexp_", "lu_factor", "lu_factor_ex", "maximum_", "minimum_", "rsub", "svdvals", "unfold_dim",
        "vecdot", "view_as_complex", "view_as_real",
    )
)  # fmt: skip


def method(function: F, *names: str) -> F:
    """Make a function a method of Tensor, under `names` or else its own name."""
    for name in names or (function.__name__,):
        if name not in FUNCTIONS_ONLY:
            setattr(Tensor, name, function)
    return function


def assign_property(name: str, function: Callable, set_to: Callable | None = None) -> None:
    """Make `function(tensor)` a property of Tensor; `set_to(tensor, value)` is its setter."""
    setattr(Tensor, name, property(function, set_to))
