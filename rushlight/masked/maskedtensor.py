"""torch.masked.MaskedTensor: a tensor with a mask of its valid elements.

Functions compute on the data, and the result has its own mask. Like a sparse tensor, a masked tensor has a node in the
graph (sparse/graph.py); its gradient is a masked tensor."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from rushlight import masked
from rushlight.base import dtypes
from rushlight.base.errors import NoArray, explain, runtime_error, shown_as, type_error, value_error
from rushlight.base.pytree import tree_flatten, tree_unflatten
from rushlight.core.backward import grad
from rushlight.core.mode import mode
from rushlight.core.node import hooks_of
from rushlight.core.tensor import Tensor, new
from rushlight.ops.grad_mode import enable_grad, no_grad
from rushlight.ops.tensor.torch_function import DisableTorchFunctionSubclass, insert_gated_class
from rushlight.sparse.graph import AccumulateSparse, linked

DTYPES = (
    dtypes.float16, dtypes.float32, dtypes.float64, dtypes.bool_, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64,
)  # fmt: skip
WORDS = {
    "unary": """abs absolute acos arccos acosh arccosh angle asin arcsin asinh arcsinh atan arctan
        atanh arctanh bitwise_not ceil clamp clip conj_physical cos cosh deg2rad digamma erf erfc
        erfinv exp exp2 expm1 fix floor frac lgamma log log10 log1p log2 logit i0 isnan nan_to_num
        neg negative positive pow rad2deg reciprocal round rsqrt sigmoid sign sgn signbit sin sinc
        sinh sqrt square tan tanh trunc""",
    "binary": """add atan2 arctan2 bitwise_and bitwise_or bitwise_xor bitwise_left_shift
        bitwise_right_shift div divide floor_divide fmod logaddexp logaddexp2 mul multiply nextafter
        remainder sub subtract true_divide eq ne le ge greater greater_equal gt less_equal lt less
        maximum minimum fmax fmin not_equal""",
    "reductions": "sum mean amin amax argmin argmax prod all norm var std",
    # applied to data and mask
    "moves": """select transpose t split chunk expand view reshape flatten cat stack unsqueeze
        squeeze unfold unfold_dim narrow permute movedim swapaxes unbind expand_as broadcast_to
        __getitem__ contiguous clone T mT""",
    "casts": "to type double float half bool int long short char cpu",
}
UNARY, BINARY, REDUCTIONS, MOVES, CASTS = (frozenset(words.split()) for words in WORDS.values())
OPERATORS = {
    "__add__": "add", "__sub__": "sub", "__mul__": "mul", "__truediv__": "div", "__floordiv__": "floor_divide",
    "__mod__": "remainder", "__pow__": "pow", "__and__": "bitwise_and", "__or__": "bitwise_or",
    "__xor__": "bitwise_xor", "__eq__": "eq", "__ne__": "ne", "__lt__": "lt", "__le__": "le", "__gt__": "gt",
    "__ge__": "ge", "__radd__": "add", "__rsub__": "sub", "__rmul__": "mul", "__rtruediv__": "div",
}  # fmt: skip
PROTOTYPE = (
    "The PyTorch API of MaskedTensors is in prototype stage and will change in the near future. Please open a "
    "Github issue for features requests and see our documentation on the torch.masked module for further information "
    "about the project."
)


class NotForMasked(NoArray):
    """Raised when an op reads `._array` of a masked tensor."""

    def instead(self, name: str, *args: Any, **kwargs: Any) -> Any:
        raise refused(name) from None


shown_as(NotForMasked, "builtins", "NotImplementedError")


def refused(name: str) -> TypeError:
    return type_error(
        f"no implementation found for '{name}' on types that implement __torch_function__: [MaskedTensor]",
        "x.to_tensor(value) fills the masked elements; torch.masked's functions take mask=",
    )


class MaskedTensor(Tensor):
    """The elements of `data` where `mask` is True; the others are masked, shown as --.

    Elementwise functions of one tensor keep the mask. Elementwise functions of two tensors need equal masks, or one
    tensor without a mask. Reductions leave masked elements out; a result without valid elements is masked. Data and
    mask are copied. TypeError for data or a mask that is not a tensor, ValueError for different sizes.

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     x = rushlight.masked.masked_tensor(rushlight.tensor([1., 2.]),
    ...         rushlight.tensor([True, False]))
    >>> x * 2
    MaskedTensor(
      [  2.0000,       --]
    )
    >>> x.sum()
    MaskedTensor(  1.0000, True)
    """

    _masked_data: Tensor
    _masked_mask: Tensor
    _dense = False

    @staticmethod
    def __new__(cls, data: Any, mask: Any, requires_grad: bool = False) -> MaskedTensor:
        check(data, mask)
        warnings.warn(PROTOTYPE, UserWarning, stacklevel=2)
        if data.requires_grad:
            warnings.warn(
                "It is not recommended to create a MaskedTensor with a tensor that requires_grad. To avoid this, you "
                "can use data.detach().clone()",
                UserWarning,
                stacklevel=2,
            )
        made = held(data.detach().clone(), mask.clone())
        made.requires_grad = requires_grad
        return made

    def __init__(self, data: Any, mask: Any, requires_grad: bool = False):
        pass

    @classmethod
    def __torch_function__(cls, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        return call(func.__name__, func, args, kwargs or {})

    @property
    def _array(self) -> Any:  # type: ignore[override]
        raise NotForMasked(
            explain("a masked tensor has no array of all elements", "x.to_tensor(value) fills the masked elements")
        )

    shape = property(lambda self: self._masked_data.shape, doc="The size of each dimension.")
    dtype = property(lambda self: self._masked_data.dtype, doc="The type of the elements.")
    device = property(lambda self: self._masked_data.device, doc="The device of the data.")
    layout = property(lambda self: self._masked_data.layout, doc="The layout of the data.")
    ndim = property(lambda self: self._masked_data.ndim, doc="The number of dimensions.")
    is_sparse = property(lambda self: not self._masked_data._dense, doc="Whether data and mask are sparse.")
    T = property(lambda self: call("T", transposed, (self,), {}), doc="The transpose.")
    mT = property(lambda self: call("mT", transposed, (self,), {}), doc="The transpose.")
    data = property(lambda self: self.detach(), doc="The same outside the graph.")

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]

    def stride(self, dim: int | None = None) -> Any:
        return self._masked_data.stride(dim)

    def dim(self) -> int:
        return self.ndim

    def numel(self) -> int:
        return self._masked_data.numel()

    ndimension, nelement = dim, numel

    def __len__(self) -> int:
        return len(self._masked_data)

    def is_complex(self) -> bool:
        return False

    def is_floating_point(self) -> bool:
        return self.dtype.is_floating_point

    def is_contiguous(self, *args: Any, **kwargs: Any) -> bool:
        return self._masked_data.is_contiguous(*args, **kwargs)

    def is_sparse_coo(self) -> bool:
        """Whether data and mask are COO tensors."""
        return bool(self._masked_data.is_sparse)

    def is_sparse_csr(self) -> bool:
        """Whether data and mask are CSR matrices."""
        return bool(self._masked_data.is_sparse_csr)

    # -- data and mask -----------------------------------------------------------------------------

    def get_data(self) -> Tensor:
        """All elements, including masked elements, in the graph."""
        mask = self._masked_mask
        return linked(self._masked_data.detach(), "GetDataBackward", [(self, lambda g: held(g, mask))])

    def get_mask(self) -> Tensor:
        """True for the valid elements."""
        return self._masked_mask

    def to_tensor(self, value: Any) -> Tensor:
        """A plain tensor with `value` in place of the masked elements."""
        return self.get_data().masked_fill(~self._masked_mask, value)

    def item(self) -> Any:
        if self.numel() == 1 and not bool(self._masked_mask):
            raise value_error("aten._local_scalar_dense: expected a mask tensor", "the element is masked")
        return self._masked_data.item()

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __bool__(self) -> bool:
        return bool(self.item())

    def tolist(self) -> Any:
        raise runtime_error(
            ".tolist() is not supported for tensor subclasses, got MaskedTensor", "x.to_tensor(value).tolist()"
        )

    def numpy(self, *, force: bool = False) -> Any:
        raise runtime_error(".numpy() is not supported for tensor subclasses.", "x.to_tensor(value).numpy()")

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        data, mask = (strided(t.detach()) for t in (self._masked_data, self._masked_mask))
        if not data.ndim:
            shown = element(data.item()) if mask.item() else "--"
            return f"MaskedTensor({shown}, {mask.item()})"
        inside = text(data.tolist(), mask.tolist(), data.ndim)
        return "MaskedTensor(\n" + indented(inside) + "\n)"

    def __iter__(self) -> Any:
        return iter(self.unbind(0))

    def __setitem__(self, index: Any, value: Any) -> None:
        raise refused("__setitem__")

    def __reduce_ex__(self, protocol: Any) -> tuple:
        return rebuilt, (self._masked_data, self._masked_mask, self.requires_grad)

    def __deepcopy__(self, memo: dict) -> MaskedTensor:
        if id(self) not in memo:
            data, mask = self._masked_data.clone(), self._masked_mask.clone()
            memo[id(self)] = rebuilt(data, mask, self.requires_grad)
        return memo[id(self)]

    __hash__ = object.__hash__

    # -- autograd ----------------------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        return self._node is not None

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if bool(value) == (self._node is not None):
            return
        if value:
            dtypes.check_differentiable(self.dtype)
        self._node = AccumulateSparse(self) if value else None

    def requires_grad_(self, requires_grad: bool = True) -> MaskedTensor:
        self.requires_grad = requires_grad
        return self

    def register_hook(self, hook: Callable) -> Any:
        if self._node is None:
            return super().register_hook(hook)
        return hooks_of(self._node).add("tensor", hook)

    def detach(self) -> MaskedTensor:
        """The same elements and mask, outside the graph."""
        return held(self._masked_data, self._masked_mask)

    def alias(self) -> MaskedTensor:
        """A tensor with the same parts and the same node."""
        made = self.detach()
        made._node = self._node
        return made

    def _first_gradient(self, g: Any) -> MaskedTensor:
        """The gradient with which backward starts, with the mask of the tensor."""
        if isinstance(g, MaskedTensor):
            return g
        data = self._masked_data.new_ones(self.shape) if g is None else g
        return held(data, self._masked_mask)

    def _plus(self, other: Any) -> Any:
        """The sum of two gradients; the valid elements of either are valid."""
        if not isinstance(other, MaskedTensor):
            return self._filled() + other
        mask = self._masked_mask | other._masked_mask
        return held(self._filled() + other._filled(), mask)

    def _filled(self) -> Tensor:
        """A plain tensor with 0 in place of the masked elements."""
        data, mask = strided(self._masked_data), strided(self._masked_mask)
        return data.masked_fill(~mask, 0)


def strided(x: Tensor) -> Tensor:
    return x if x._dense else x.to_dense()


def transposed(x: Tensor) -> Tensor:
    return x.transpose(-2, -1)


def held(data: Tensor, mask: Tensor) -> MaskedTensor:
    """A masked tensor of these parts, outside the graph."""
    if not MaskedTensor._overrides:  # from the first masked tensor on, functions check their arguments
        insert_gated_class(MaskedTensor)
    made = new(MaskedTensor)
    made._node, made._grad, made._viewing, made._writes = None, None, None, None
    made._masked_data, made._masked_mask = data.detach(), mask
    return made


def rebuilt(data: Tensor, mask: Tensor, requires_grad: bool) -> MaskedTensor:
    """The masked tensor of pickled parts."""
    return held(data, mask).requires_grad_(requires_grad)


def check(data: Any, mask: Any) -> None:
    """An error unless these are the parts of a masked tensor."""
    for name, part in (("data", data), ("mask", mask)):
        if not isinstance(part, Tensor) or isinstance(part, MaskedTensor):
            raise type_error(f"{name} must be a Tensor")
    if data.layout != mask.layout:
        raise type_error("data and mask must have the same layout.")
    if mask.dtype is not dtypes.bool_:
        raise type_error("mask must have dtype bool.", "mask.bool()")
    if data.dtype not in DTYPES:
        raise type_error(f"{data.dtype} is not supported in MaskedTensor.")
    for what in ("dim", "size"):
        if getattr(data, what)() != getattr(mask, what)():
            raise value_error(f"data.{what}() must equal mask.{what}()")


# -- text ------------------------------------------------------------------------------------------


def element(value: Any) -> str:
    return f"{value:8.4f}" if isinstance(value, float) else str(value)


def text(data: list, mask: list, ndim: int) -> str:
    """The elements in brackets, -- for masked ones."""
    if ndim > 1:
        parts = [indented(text(d, m, ndim - 1)) for d, m in zip(data, mask)]
        return "[\n" + ",\n".join(parts) + "\n]"
    shown = [element(value) for value in data]
    width = max((8 if not there else len(s) for s, there in zip(shown, mask)), default=8)
    return "[" + ", ".join(s if m else "--".rjust(width) for s, m in zip(shown, mask)) + "]"


def indented(lines: str) -> str:
    return "\n".join(f"  {line}" for line in lines.split("\n"))


# -- functions -------------------------------------------------------------------------------------


def call(name: str, func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    """The function of this name with masked tensors among its arguments."""
    with DisableTorchFunctionSubclass():
        if name in UNARY and not (name == "pow" and any(map(is_masked_tensor, args[1:]))):
            return elementwise(func, args, kwargs)
        if name in BINARY:
            check_masks(args)
            return elementwise(func, args, kwargs)
        if name in REDUCTIONS:
            return reduction(name, *args, **kwargs)
        if name in MOVES:
            return moved(func, args, kwargs)
        if name in CASTS:
            return cast(func, args, kwargs)
        if name in OWN:
            return OWN[name](*args, **kwargs)
        if name.endswith("_") and name[:-1] in UNARY | BINARY:
            return in_place(name[:-1], args, kwargs)
        if name == "backward" or getattr(func, "__self__", None) is Tensor.grad:
            return func(*args, **kwargs)
    raise refused(name)


def check_masks(args: tuple) -> None:
    """ValueError for operands with different masks."""
    masks = [a._masked_mask for a in args[:2] if isinstance(a, MaskedTensor)]
    if len(masks) == 2 and not same(*masks):
        raise value_error(
            "Input masks must match. If you need support for this, please open an issue on Github.",
            "torch.where takes different masks; x.to_tensor(value) has none",
        )


def same(a: Tensor, b: Tensor) -> bool:
    a, b = strided(a), strided(b)
    return a.shape == b.shape and bool((a == b).all())


def data_of(a: Any) -> Any:
    return a._masked_data if isinstance(a, MaskedTensor) else a


def mask_of(a: Any) -> Any:
    return a._masked_mask if isinstance(a, MaskedTensor) else a


class Computed:
    """A function, applied to the data in a separate graph and differentiated later. `sources`: the arguments that are
    in the graph; `fresh`: their data, leaves of the separate graph; `out`: the result."""

    def __init__(self, func: Callable, args: tuple, kwargs: dict[str, Any]):
        leaves, form = tree_flatten((args, kwargs))
        self.sources: list[Tensor] = []
        self.fresh: list[Tensor] = []
        given = []
        for leaf in leaves:
            plain = data_of(leaf)
            if isinstance(leaf, Tensor) and leaf._node is not None and mode().grad:
                plain = plain.detach().requires_grad_()
                self.sources.append(leaf)
                self.fresh.append(plain)
            given.append(plain)
        values, named = tree_unflatten(given, form)
        with enable_grad() if self.sources else no_grad():
            self.out = func(*values, **named)

    def gradient(self, i: int, out: Tensor, g: MaskedTensor) -> Tensor:
        """The gradient of source i, from the gradient of one output; masked elements count as 0."""
        found = grad([out], [self.fresh[i]], [g._filled()], retain_graph=True, allow_unused=True)[0]
        return self.fresh[i].detach().new_zeros(self.fresh[i].shape) if found is None else found

    def linked(self, out: Tensor, mask: Tensor, name: str, to_mask: Callable) -> MaskedTensor:
        """An output as a masked tensor in the graph. `to_mask(source, g)`: the mask of a source's gradient."""
        rules: list[tuple[Tensor, Callable[..., Tensor]]] = [
            (source, lambda g, i=i, source=source: held(self.gradient(i, out, g), to_mask(source, g)))
            for i, source in enumerate(self.sources)
        ]
        made = held(out, mask)
        return linked(made, name, rules) if out.requires_grad else made


def elementwise(func: Callable, args: tuple, kwargs: dict[str, Any]) -> MaskedTensor:
    """A function of each element: of one tensor, or of two with equal masks."""
    first = next(a for a in args if isinstance(a, MaskedTensor))
    if first.is_sparse:
        return of_stored(func, args, kwargs, first)
    made = Computed(func, args, kwargs)
    mask = first._masked_mask.expand(made.out.shape)

    def to_mask(source: Tensor, g: MaskedTensor) -> Tensor:
        """The mask of the source's gradient: the mask of g, reduced over the broadcast dimensions."""
        reached = g._masked_mask
        if reached.shape != source.shape:
            extra = reached.ndim - source.ndim
            reached = reached.sum_to_size((1,) * extra + tuple(source.shape)) > 0
            reached = reached.reshape(source.shape)
        return reached & source._masked_mask if isinstance(source, MaskedTensor) else reached

    return made.linked(made.out, mask, "MaskedElementwiseBackward", to_mask)


def of_stored(func: Callable, args: tuple, kwargs: dict[str, Any], first: MaskedTensor) -> MaskedTensor:
    """The function on the stored elements of sparse data with equal indices."""
    given = [stored(a) for a in args]
    data = first._masked_data
    values = func(*given, **kwargs)
    if data.is_sparse:
        return held(data.holding(values), first._masked_mask)  # type: ignore[attr-defined]
    coo = data._coo.holding(values)  # type: ignore[attr-defined]
    return held(data.holding_places_of(coo), first._masked_mask)  # type: ignore[attr-defined]


def stored(a: Any) -> Any:
    a = data_of(a)
    if not isinstance(a, Tensor) or a._dense:
        return a
    return a.coalesce().values() if a.is_sparse else a.values()


def in_place(name: str, args: tuple, kwargs: dict[str, Any]) -> MaskedTensor:
    """x.add_(y) and so on: the tensor takes over the result."""
    target = args[0]
    if target._node is not None and target._node.leaf and mode().grad:
        raise runtime_error(
            "a leaf Variable that requires grad is being used in an in-place operation.", "give it a clone()"
        )
    result = call(name, getattr(Tensor, name), args, kwargs)
    target._masked_data, target._node = result._masked_data, result._node
    return target


def moved(func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    """A function that moves elements, applied to data and mask."""
    made = Computed(func, args, kwargs)
    leaves, form = tree_flatten((args, kwargs))
    values, named = tree_unflatten([mask_of(leaf) for leaf in leaves], form)
    with no_grad():
        masks = func(*values, **named)
    if isinstance(made.out, Tensor):
        return made.linked(made.out, masks, "MaskedMoveBackward", made_mask(made, made.out))
    return type(made.out)(
        [made.linked(out, mask, "MaskedMoveBackward", made_mask(made, out)) for out, mask in zip(made.out, masks)]
    )


def made_mask(made: Computed, out: Tensor) -> Callable:
    """The mask of a moved tensor's gradient: the mask of g, moved back."""

    def to_mask(source: Tensor, g: MaskedTensor) -> Tensor:
        i = next(i for i, one in enumerate(made.sources) if one is source)
        there = held(g._masked_mask.to(out.dtype), g._masked_mask)
        return made.gradient(i, out, there) > 0

    return to_mask


def cast(func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    x = args[0]
    data = func(x._masked_data, *args[1:], **kwargs)
    if not isinstance(data, Tensor):  # x.type() is a name
        return data
    if data is x._masked_data:
        return x
    dtype = x.dtype
    return linked(held(data, x._masked_mask), "ToCopyBackward", [(x, lambda g: g.to(dtype))])


def reduction(
    name: str, input: MaskedTensor, dim: Any = None, keepdim: bool = False, dtype: Any = None, **p: Any
) -> MaskedTensor:
    """A reduction that leaves masked elements out."""
    if input.is_sparse:
        if dim is not None:
            raise refused(f"{name} of sparse data over some dimensions")
        values, mask = stored(input), stored(held(input._masked_mask, input._masked_mask))
        return reduction(name, held(values, mask), **p)
    mask = input._masked_mask
    settings = {"keepdim": keepdim, "dtype": dtype} if dim is not None else {"dtype": dtype}

    def reduce(data: Tensor) -> Tensor:
        if name == "all":
            filled = data.masked_fill(~mask, True)
            return filled.all() if dim is None else filled.all(dim, keepdim)
        order = (p.get("p", 2),) if name == "norm" else ()
        order = (2,) if order == ("fro",) else order
        return getattr(masked, name)(data, *order, dim, mask=mask, **settings)

    made = Computed(reduce, (input,), {})
    left = mask.any() if dim is None else mask.any(dim, keepdim)
    title = f"Masked{name.title()}Backward"
    return made.linked(made.out, left, title, lambda source, g: source._masked_mask)


def where(condition: Tensor, input: Any, other: Any) -> MaskedTensor:
    """input where the condition holds, else other: for the data and for the masks."""
    x, y = unmasked(input), unmasked(other)
    data = chosen(condition, x._masked_data, y._masked_data)
    mask = chosen(condition, x._masked_mask, y._masked_mask)
    from_x = condition.expand(mask.shape)

    def rule(part: Tensor) -> Callable:
        return lambda g: held(g._masked_data, g._masked_mask & part)

    return linked(held(data, mask), "MaskedWhereBackward", [(x, rule(from_x)), (y, rule(~from_x))])


def unmasked(a: Tensor) -> MaskedTensor:
    """A masked tensor of all elements of a plain one."""
    if isinstance(a, MaskedTensor):
        return a
    return as_masked_tensor(a, a.new_ones(a.shape, dtype=dtypes.bool_))


def chosen(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    with no_grad():
        return Tensor.where(x, condition, y)


def softmax(input: MaskedTensor, dim: int, dtype: Any = None, **ignored: Any) -> MaskedTensor:
    """softmax over the valid elements."""
    mask = input._masked_mask

    def normalized(data: Tensor) -> Tensor:
        return masked.softmax(data, dim, dtype=dtype, mask=mask)

    made = Computed(normalized, (input,), {})
    return made.linked(made.out, mask, "MaskedSoftmaxBackward", lambda _, g: g._masked_mask & mask)


def in_layout(to_data: Callable, to_mask: Callable) -> Callable:
    def convert(input: MaskedTensor, *ignored: Any, **settings: Any) -> MaskedTensor:
        mask = to_mask(input._masked_mask)
        made = held(to_data(input._masked_data, mask), mask)
        return linked(made, "MaskedLayoutBackward", [(input, lambda g: g)])

    return convert


OWN: dict[str, Callable] = {
    "where": where,
    "softmax": softmax,
    "detach": MaskedTensor.detach,
    "ones_like": lambda x, **settings: held(x._masked_data.new_ones(x.shape, **settings), x._masked_mask),
    "is_same_size": lambda x, y: x.shape == y.shape,
    "to_dense": in_layout(lambda data, mask: strided(data), strided),
    "to_sparse": in_layout(
        lambda data, mask: data if data.is_sparse else data.sparse_mask(mask),
        lambda mask: mask if mask.is_sparse else mask.to_sparse(),
    ),
    "to_sparse_csr": in_layout(
        lambda data, mask: data if data.is_sparse_csr else data.sparse_mask(mask),
        lambda mask: mask if mask.is_sparse_csr else mask.to_sparse_csr(),
    ),
}
OWN["to_sparse_coo"] = OWN["to_sparse"]


def operator(method: str, name: str) -> Callable:
    """x + y and so on; `method`: Python's name of the operator."""
    func = getattr(Tensor, method)

    def run(self: MaskedTensor, other: Any) -> Any:
        return call(name, func, (self, other), {})

    return run


for _method, _name in OPERATORS.items():
    setattr(MaskedTensor, _method, operator(_method, _name))


# -- constructors ----------------------------------------------------------------------------------


def masked_tensor(data: Any, mask: Any, requires_grad: bool = False) -> MaskedTensor:
    """A leaf: a copy of the data with a copy of the mask, as `MaskedTensor`."""
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data: Any, mask: Any) -> MaskedTensor:
    """The data with a mask, in the graph of the data, which gets a masked gradient."""
    check(data, mask)
    return linked(held(data.detach().clone(), mask.clone()), "AsMaskedTensorBackward", [(data, lambda g: g)])


def is_masked_tensor(obj: Any, /) -> bool:
    """Whether it is a masked tensor.

    >>> rushlight.masked.is_masked_tensor(rushlight.ones(2))
    False
    """
    return isinstance(obj, MaskedTensor)


__all__ = ["MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor"]
