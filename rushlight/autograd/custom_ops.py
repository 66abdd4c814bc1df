"""torch.library: users' functions as ops, with gradients, and as torch.ops.name.op.

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

import re
from ast import literal_eval
from collections import OrderedDict
from collections.abc import Callable, Iterable
from enum import Enum
from inspect import BoundArguments, Parameter, Signature, signature
from types import SimpleNamespace
from typing import Any

from rushlight import ops
from rushlight.autograd.function import Function
from rushlight.base.errors import not_implemented_error, runtime_error, value_error
from rushlight.base.pytree import tree_leaves
from rushlight.core.mode import mode
from rushlight.core.tensor import Tensor
from rushlight.ops.grad_mode import no_grad

DEFINED: dict[str, CustomOp] = {}  # "name::op" -> the op
# keys of torch's dispatcher -> names in `kernels`; keys of other devices are missing
KEYS = {
    "cpu": "cpu",
    "compositeexplicitautograd": "cpu",
    "default": "cpu",
    "meta": "meta",
    "compositeimplicitautograd": "composite",
    "": "composite",
}


class CustomOp:
    """A function that runs outside the graph; `register_autograd` defines its gradients. `kernels`: the function for
    the CPU ("cpu"), for meta tensors ("meta"), or composed of ops with their own gradients ("composite").
    """

    def __init__(self, name: str, given: Signature, mutates_args: Iterable[str] = ()):
        self._qualname, self._signature, self._mutates = name, given, tuple(mutates_args)
        self.kernels: dict[str, Callable] = {}
        self._overloads: list[str] = []
        space, _, self.__name__ = name.partition("::")

        class Op(Function):
            setup_context = staticmethod(lambda ctx, inputs, output: None)

            @staticmethod
            def forward(*args: Any) -> Any:
                return self._run([a.detach() if isinstance(a, Tensor) else a for a in args])

            @staticmethod
            def backward(ctx: Any, *grads: Any) -> Any:
                raise runtime_error(
                    f"Trying to backward through {space}.{self.__name__}.default but no autograd formula was "
                    "registered. Please use register_autograd to add one.",
                    "call register_autograd(backward, setup_context=...)",
                )

        Op.__name__ = f"GeneratedBackwardFor_{space}_{self.__name__}_default"
        self._function = Op

    default = property(lambda self: self, doc="The op itself, which is its only overload.")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            given = self._signature.bind(*args, **kwargs)
        except TypeError:
            fitting = self._overload_for(args, kwargs)
            if fitting is None:
                raise
            return fitting(*args, **kwargs)
        given.apply_defaults()
        if "composite" in self.kernels:
            return self.kernels["composite"](*given.args, **given.kwargs)
        if mode().batch is not None and self._function.vmap is Function.vmap:
            for t in tree_leaves((args, kwargs)):
                # inside vmap, without a registered rule: call the op for each sample
                if hasattr(getattr(t, "_array", None), "level"):
                    return t._array.one_by_one(self, args, kwargs)
        if self._mutates:
            with no_grad():
                return self._run(list(given.arguments.values()))
        return self._function.apply(*given.arguments.values())

    def _overload_for(self, args: tuple, kwargs: dict) -> CustomOp | None:
        """The overload that takes these arguments."""
        for name in self.overloads()[1:]:
            overload = getattr(self, name)
            try:
                overload._signature.bind(*args, **kwargs)
            except TypeError:
                continue
            return overload
        return None

    def overloads(self) -> list[str]:
        """The names of the op's overloads: "default", and those defined as "name::op.overload"."""
        return ["default", *self._overloads]

    def _run(self, values: list) -> Any:
        """The result of the kernel for these arguments."""
        key = "meta" if any(t.is_meta for t in tree_leaves(values) if isinstance(t, Tensor)) else "cpu"
        if key not in self.kernels:
            raise not_implemented_error(
                f"Could not run '{self._qualname}' with arguments from the '{key.upper()}' backend",
                "define a function with register_kernel for the CPU, with register_fake for 'meta'",
            )
        given = BoundArguments(self._signature, OrderedDict(zip(self._signature.parameters, values)))
        return self.kernels[key](*given.args, **given.kwargs)

    def register_autograd(self, backward: Callable, /, *, setup_context: Callable | None = None) -> None:
        """`backward(ctx, *grads)` returns the gradient of each input; `setup_context(ctx, inputs, output)` saves the
        values for it.
        """
        self._function.backward = staticmethod(backward)  # type: ignore[method-assign]
        if setup_context is not None:
            self._function.setup_context = staticmethod(
                lambda ctx, inputs, output: setup_context(ctx=ctx, inputs=inputs, output=output)
            )

    def register_kernel(self, device_types: Any, fn: Callable | None = None, /) -> Any:
        """Register the function for the CPU; other devices are not available."""
        if fn is None:
            return lambda f: self.register_kernel(device_types, f)
        for kind in (device_types,) if isinstance(device_types, str) or device_types is None else device_types:
            key = KEYS.get("cpu" if kind is None else kind.lower())
            if key is not None:
                self.kernels[key] = fn
        return fn

    def register_fake(self, fn: Callable, /) -> Callable:
        """Register the function for meta tensors."""
        return self.register_kernel("meta", fn)

    def register_vmap(self, func: Callable | None = None, /) -> Any:
        """`func(info, in_dims, *args)` gives outputs and their mapped dimensions for all samples."""
        if func is None:
            return self.register_vmap
        self._function.vmap = staticmethod(func)  # type: ignore[method-assign]
        return func


def custom_op(
    name: str, fn: Callable | None = None, /, *, mutates_args: Any, device_types: Any = None, schema: str | None = None,
    **options: Any,
) -> Any:  # fmt: skip
    """The function as an op "name::op", also at torch.ops.name.op; function and decorator.

    `mutates_args`: the names of arguments that the op writes to; such an op is not recorded. ValueError for a name
    without a namespace.

    >>> import numpy as np
    >>> @rushlight.library.custom_op("mylib::flipped", mutates_args=())
    ... def flipped(x: rushlight.Tensor) -> rushlight.Tensor:
    ...     return rushlight.from_numpy(np.flip(x.numpy()).copy())
    >>> flipped(rushlight.tensor([1., 2.]))
    tensor([2., 1.])
    """
    if fn is None:
        return lambda f: custom_op(name, f, mutates_args=mutates_args, device_types=device_types, schema=schema)
    space, _, own = name.partition("::")
    if not own:
        raise value_error(f"Expected `name` to be of the form `namespace::name`, got {name}")
    op = known(CustomOp(name, signature(fn), () if isinstance(mutates_args, str) else mutates_args))
    op.__doc__, op.kernels["cpu"] = fn.__doc__, fn
    return op


def triton_op(name: str, fn: Callable | None = None, /, *, mutates_args: Any, schema: str | None = None) -> Any:
    """`custom_op` for a function that calls Triton kernels; without a GPU, the function computes with tensors.

    >>> @rushlight.library.triton_op("mylib::tripled", mutates_args=())
    ... def tripled(x: rushlight.Tensor) -> rushlight.Tensor:
    ...     return 3 * x
    >>> tripled(rushlight.ones(2))
    tensor([3., 3.])
    """
    return custom_op(name, fn, mutates_args=mutates_args, schema=schema)


def known(op: CustomOp) -> CustomOp:
    """Add the op to torch.ops, and return it."""
    name, _, overload = op._qualname.partition(".")
    DEFINED[op._qualname] = op
    if overload:
        if name not in DEFINED:
            known(CustomOp(name, Signature()))
        add_overload(DEFINED[name], overload, op)
        return op
    space, _, own = name.partition("::")
    for known_before in [key for key in DEFINED if key.startswith(f"{name}.")]:
        add_overload(op, known_before.partition(".")[2], DEFINED[known_before])
    setattr(vars(ops).setdefault(space, SimpleNamespace()), own, op)
    return op


def add_overload(op: CustomOp, name: str, overload: CustomOp) -> None:
    setattr(op, name, overload)
    op._overloads = [*dict.fromkeys([*op._overloads, name])]


Tag = Enum(
    "Tag",
    "core cudagraph_unsafe data_dependent_output dynamic_output_shape flexible_layout generated inplace inplace_view "
    "maybe_aliasing_or_mutating needs_contiguous_strides needs_exact_strides needs_fixed_stride_order "
    "nondeterministic_bitwise nondeterministic_seeded out out_variant pointwise pt2_compliant_tag reduction view_copy",
)
Tag.__doc__ = """torch's words for what a compiler may do with an op, for `tags=`: they are taken, and change nothing.

>>> rushlight.Tag.pointwise.name
'pointwise'
"""


def define(qualname: str, schema: str, *, lib: Any = None, tags: Any = ()) -> None:
    """Define the op "name::op" by its schema, "(Tensor x, int n=1) -> Tensor"; `impl` defines the function.

    >>> rushlight.library.define("mylib::plus", "(Tensor x, int n=1) -> Tensor")
    >>> _ = rushlight.library.impl("mylib::plus", "cpu")(lambda x, n: x + n)
    >>> rushlight.ops.mylib.plus(rushlight.ones(2))
    tensor([2., 2.])
    """
    inside = schema[schema.index("(") + 1 : schema.rindex("->")].rstrip(" )")
    parameters, written = [], []
    kind: Any = Parameter.POSITIONAL_OR_KEYWORD
    for part in re.split(r",\s*(?![^(\[]*[)\]])", inside) if inside else ():
        if part.strip() == "*":
            kind = Parameter.KEYWORD_ONLY
            continue
        left, has_default, default = part.partition("=")
        type_, _, name = left.strip().rpartition(" ")
        parameters.append(Parameter(name, kind, default=literal_eval(default) if has_default else Parameter.empty))
        written += [name] if "!" in type_ else []
    known(CustomOp(qualname.removesuffix(".default"), Signature(parameters), written))


def impl(qualname: Any, types: Any, func: Any = None, *, lib: Any = None) -> Any:
    """Define the function of an op on these device types: `impl("name::op", "cpu")`, or `impl(library, "op", "CPU")`; a
    decorator.

    >>> rushlight.library.define("mylib::twice", "(Tensor x) -> Tensor")
    >>> @rushlight.library.impl("mylib::twice", "cpu")
    ... def twice(x):
    ...     return 2 * x
    >>> rushlight.ops.mylib.twice(rushlight.ones(2))
    tensor([2., 2.])
    """
    if isinstance(qualname, Library):
        return lambda f: qualname.impl(types, f, func or "")
    op = defined(qualname)
    return op.register_kernel(types) if func is None else op.register_kernel(types, func)


class Library:
    """Ops in a namespace: `define` gives their schemas, `impl` their functions.

    >>> lib = rushlight.library.Library("mylib", "FRAGMENT")
    >>> lib.define("minus(Tensor x) -> Tensor")
    'minus'
    >>> lib.impl("minus", lambda x: -x, "CPU")
    >>> rushlight.ops.mylib.minus(rushlight.ones(2))
    tensor([-1., -1.])
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = ""):
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise value_error(f"Unsupported library kind: {kind}")
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Define an op by its schema, "op(Tensor x) -> Tensor"; returns its name."""
        name = schema.partition("(")[0]
        define(f"{self.ns}::{name}", schema)
        return name

    def impl(self, op_name: Any, fn: Callable, dispatch_key: str = "", **options: Any) -> None:
        """Define the function of an op in this namespace. NotImplementedError for an autograd key: use
        `register_autograd`.
        """
        key = dispatch_key or self.dispatch_key
        if key.lower().startswith("autograd"):
            raise not_implemented_error(f"kernels for {key} are not supported", "torch.library.register_autograd")
        op = op_name if isinstance(op_name, CustomOp) else f"{self.ns}::{op_name.rpartition('::')[2]}"
        defined(op).register_kernel(key or "CompositeImplicitAutograd", fn)


def defined(op: str | CustomOp) -> CustomOp:
    """An op by its name, or the op itself."""
    if isinstance(op, CustomOp):
        return op
    op = op.removesuffix(".default")
    if op not in DEFINED:
        raise runtime_error(f"operator {op} does not exist", "define the op with torch.library.custom_op")
    return DEFINED[op]


def register_autograd(
    op: str | CustomOp, backward: Callable, /, *, setup_context: Callable | None = None, lib: Any = None
) -> None:
    """gradients of the inputs = backward(ctx, *grads): `CustomOp.register_autograd` of the op, or of that name.

    >>> @rushlight.library.custom_op("mylib::square", mutates_args=())
    ... def square(x: rushlight.Tensor) -> rushlight.Tensor:
    ...     return x * x
    >>> def keep(ctx, inputs, output):
    ...     ctx.save_for_backward(*inputs)
    >>> def backward(ctx, g):
    ...     return 2 * ctx.saved_tensors[0] * g
    >>> rushlight.library.register_autograd("mylib::square", backward, setup_context=keep)
    >>> x = rushlight.tensor(3., requires_grad=True)
    >>> square(x).backward()
    >>> x.grad
    tensor(6.)
    """
    defined(op).register_autograd(backward, setup_context=setup_context)


def register_fake(op: str | CustomOp, func: Callable | None = None, /, *, lib: Any = None, **options: Any) -> Any:
    """out of tensors without elements = func(*args): `CustomOp.register_fake` of the op, or of that name.

    >>> @rushlight.library.custom_op("mylib::halved", mutates_args=())
    ... def halved(x: rushlight.Tensor) -> rushlight.Tensor:
    ...     return x / 2
    >>> @rushlight.library.register_fake("mylib::halved")
    ... def _(x):
    ...     return rushlight.empty_like(x)
    >>> halved(rushlight.empty(3, device="meta")).shape
    torch.Size([3])
    """
    return defined(op).register_fake if func is None else defined(op).register_fake(func)


impl_abstract = register_fake


def register_kernel(op: str | CustomOp, device_types: Any, func: Callable | None = None, /, *, lib: Any = None) -> Any:
    """out = func(*args) on devices of these types: `CustomOp.register_kernel` of the op, or of that name.

    >>> rushlight.library.define("mylib::third", "(Tensor x) -> Tensor")
    >>> @rushlight.library.register_kernel("mylib::third", "cpu")
    ... def third(x):
    ...     return x / 3
    >>> rushlight.ops.mylib.third(rushlight.tensor([6.]))
    tensor([2.])
    """
    return defined(op).register_kernel(device_types, func)


def register_vmap(op: str | CustomOp, func: Callable | None = None, /, *, lib: Any = None) -> Any:
    """`CustomOp.register_vmap` of the op, or of that name.

    >>> @rushlight.library.custom_op("mylib::doubled", mutates_args=())
    ... def doubled(x: rushlight.Tensor) -> rushlight.Tensor:
    ...     return 2 * x
    >>> @rushlight.library.register_vmap("mylib::doubled")
    ... def _(info, in_dims, x):
    ...     return doubled(x), in_dims[0]
    >>> rushlight.vmap(doubled)(rushlight.ones(3))
    tensor([2., 2., 2.])
    """
    return defined(op).register_vmap(func)


__all__ = [
    "Library", "Tag", "custom_op", "define", "impl", "impl_abstract", "register_autograd", "register_fake",
    "register_kernel", "register_vmap", "triton_op",
]  # fmt: skip
