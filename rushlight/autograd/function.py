"""torch.autograd.function: `Function`, an op of the user's with a forward and a backward."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from sys import _getframe as frame
from typing import Any
from weakref import ref

import numpy as np

from rushlight.autograd.graph_errors import overwritten, second_time
from rushlight.base.errors import not_implemented_error, runtime_error, type_error, warn
from rushlight.base.higher import Higher
from rushlight.core.mode import mode
from rushlight.core.node import Node, Output, Parts, tick
from rushlight.core.tensor import Tensor, from_array, writes_of
from rushlight.core.views import detached, expands, rebase, register_opaque, wrote
from rushlight.core.worlds import sparse_graph
from rushlight.ops.grad_mode import no_grad

vmap_function = Higher("rushlight.autograd.vmap_function")


class Context:
    """The `ctx` of a user's op: users may set any attribute. rushlight's own attributes begin with an underscore."""

    def __init__(self, node: FunctionNode, needs_input_grad: tuple):
        self._node = ref(node)  # a weak reference, because the node refers to the ctx: no reference cycle
        self._to_save: tuple = ()  # from save_for_backward
        self._to_save_forward: tuple | None = None  # from save_for_forward
        self._dirty: tuple = ()  # from mark_dirty
        self._constant: tuple = ()  # from mark_non_differentiable
        self._forward: tuple | None = None  # the saved tensors, while `jvp` runs
        # {level of forward mode: tangents of the inputs}, while `forward` runs
        self._tangents: dict = {}
        self._materialize = True
        self._forward_cls = node.function
        self.needs_input_grad = needs_input_grad

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for backward, as `ctx.saved_tensors`. Backward raises if a saved tensor was written to."""
        check_saved("save_for_backward", tensors)
        self._to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `jvp`, as `ctx.saved_tensors`. Without this call `jvp` gets the tensors saved for
        backward."""
        check_saved("save_for_forward", tensors)
        self._to_save_forward = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Declare the inputs that forward has written to."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Declare the outputs that have no gradient."""
        self._constant = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Set whether backward gets zeros (True) or None for outputs without a gradient."""
        self._materialize = value

    @property
    def saved_variables(self) -> tuple[Tensor, ...]:
        """The old name of `saved_tensors`."""
        warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning)
        return self.saved_tensors

    @property
    def saved_tensors(self) -> tuple[Tensor, ...]:
        """The tensors that forward saved. RuntimeError once the graph was freed."""
        if self._forward is not None:
            return self._forward
        node = self._node()
        if node is None:
            raise runtime_error(
                "Trying to directly access saved tensors after the graph that they belong to is gone.",
                "keep the results of backward, not its ctx",
            )
        return node.saved_tensors


def check_saved(name: str, tensors: tuple) -> None:
    """TypeError unless all values are tensors or None."""
    for t in tensors:
        if t is not None and not isinstance(t, Tensor):
            raise type_error(
                f"{name} can only save variables, but got {type(t).__name__}",
                "keep other things as attributes: ctx.n = n",
            )


FunctionCtx = Context  # torch's name


def sparse_gradient(h: Tensor, edge: Node) -> Any:
    """A sparse gradient in the form that the input's node accepts: dense unless the node is a leaf's."""
    graph = sparse_graph()
    return graph.SparseGradient(h) if graph.takes_sparse(edge) else h.to_dense()._array


class FunctionNode(Node):
    """The node of a user's op."""

    __slots__ = ("ctx", "places", "outputs", "__weakref__")
    ctx: Context
    places: list[int]  # the indices of the tensors among the arguments of forward
    outputs: (
        list | None
    )  # None for one output; for several, (shape, dtype) of each, None for an output that is not a tensor
    function: type[Function]

    def __getattr__(self, name: str) -> Any:
        if name == "ctx":
            raise AttributeError(name)
        # in torch the node is the ctx: attributes of the ctx are attributes of the node
        return getattr(self.ctx, name)

    @property
    def saved_tensors(self) -> tuple:
        """The tensors that forward saved. RuntimeError once the graph was freed."""
        if self.saved is None:
            raise second_time(self)
        return tuple(self.output(item) if isinstance(item, SavedOutput) else item for item in self.saved)

    def output(self, saved: SavedOutput) -> Tensor:
        """The tensor of a saved output. The node keeps its array only: the tensor would refer back to the node."""
        if saved._writes.stamp > self.seq:
            raise overwritten(self, saved._writes, f"output {saved.number}", saved._array.shape)
        t = from_array(saved._array)
        t._node = self if self.outputs is None else Output(self, saved.number, tick(), saved._array.shape)
        return t if self.hooks is None or self.hooks.dual is None else self.hooks.dual(t, saved.number)

    def arrays(self, g: Any) -> tuple:
        wrapped = Parts({i: from_array(part) for i, part in g.items()}) if isinstance(g, dict) else from_array(g)
        found = zip(self.tensors(wrapped), self.edges)
        return tuple(
            [None if h is None else h._array.copy() if h._dense else sparse_gradient(h, edge) for h, edge in found]
        )

    def tensors(self, g: Any) -> tuple:
        grads = (g,) if self.outputs is None else [self.incoming(g, i) for i in range(len(self.outputs))]
        answer = self.function.backward(self.ctx, *grads)
        answer = answer if isinstance(answer, tuple) else (answer,)
        n = len(self.ctx.needs_input_grad)
        if len(answer) > n and all(a is None for a in answer[n:]):
            answer = answer[:n]
        if len(answer) != n:
            raise runtime_error(
                f"function {self.name()} returned an incorrect number of gradients (expected {n}, got {len(answer)})",
                "return one gradient, or None, for each input of forward",
            )
        if len(self.places) < n:
            self.check_others(answer)
        return tuple(self.checked(answer[i], i, edge) for i, edge in zip(self.places, self.edges))

    def check_others(self, answer: tuple) -> None:
        """RuntimeError for a gradient of an argument of forward that is not a tensor."""
        for i, g in enumerate(answer):
            if g is not None and i not in self.places:
                raise runtime_error(
                    f"function {self.name()} returned a gradient different than None at position {i + 1}, but the "
                    "corresponding forward input was not a Variable",
                    "return None for an argument that is not a tensor",
                )

    def incoming(self, g: dict, i: int) -> Tensor | None:
        outputs: Any = self.outputs
        made = outputs[i]
        if i in g or not self.ctx._materialize or made is None:
            return g.get(i)
        shape, dtype = made
        return from_array(np.zeros(shape, dtype))

    def checked(self, g: Any, i: int, edge: Node | None) -> Tensor | None:
        if g is not None and not isinstance(g, Tensor):
            raise runtime_error(f"{self.name()}: expected a Tensor or None as gradient {i}, but got {type(g).__name__}")
        if edge is None or g is None:
            return None
        if edge.shape is not None and not expands(edge.shape, g.shape):
            raise runtime_error(
                f"Function {self.name()} returned an invalid gradient at index {i} - got {list(g.shape)} but "
                f"expected shape compatible with {list(edge.shape)}",
                "return a gradient of the input's shape",
            )
        return g


class SavedOutput:
    """A saved output: its index, the array and the write log of the memory."""

    __slots__ = ("number", "_array", "_writes")

    def __init__(self, number: int, out: Tensor):
        self.number, self._array, self._writes = number, out._array, writes_of(out)


class Function:
    """A user's op: `forward(ctx, *args)` computes the outputs, `backward(ctx, *grads)` the gradient of each input.

    Call the op with `apply`. `forward` takes no `ctx` if the class has `setup_context(ctx, inputs, output)`.

    >>> class Square(rushlight.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         x, = ctx.saved_tensors
    ...         return 2 * x * g
    >>> x = rushlight.tensor(3., requires_grad=True)
    >>> Square.apply(x).backward()
    >>> x.grad
    tensor(6.)
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        warn(
            f"{cls} should not be instantiated. Methods on autograd functions are all static, so you should invoke "
            "them on the class itself. Instantiating an autograd function will raise an error in a future version of "
            "PyTorch.",
            DeprecationWarning,
        )
        return super().__new__(cls)

    setup_context: Callable | None = None
    generate_vmap_rule = False  # True: vmap maps forward and backward over the samples

    @staticmethod
    def vmap(info: Any, in_dims: tuple, *args: Any) -> Any:
        """(outputs, out_dims) for all samples at once. Override it for vmap. `info` has `batch_size` and
        `randomness`."""
        raise not_implemented_error(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or set "
            "generate_vmap_rule=True."
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """The outputs of the op. Override it."""
        raise not_implemented_error("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def backward(*args: Any, **kwargs: Any) -> Any:
        """backward(ctx, *grads): the gradient of each input of forward, or None. Override it
        (or `vjp`)."""
        raise not_implemented_error(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it "
            "with backward mode AD."
        )

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """The tangent of each output of forward, from the tangents of the inputs. Override it for forward mode."""
        raise not_implemented_error(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward and record it."""
        if kwargs or cls.setup_context is not None and getattr(cls.forward, "__defaults__", None):
            args, kwargs = by_place(cls, args, kwargs)
        node = object.__new__(node_class(cls))
        places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        node.places = places
        node.edges = tuple(args[i]._node for i in places)
        node.ctx = Context(node, tuple(isinstance(a, Tensor) and a._node is not None for a in args))
        node.saved, node.seq, node.outputs, node.shape, node.where = (), tick(), None, None, None
        recorded = mode().grad and any(edge is not None for edge in node.edges)
        m, mapped = mode(), None
        if m.batch is not None:  # inside vmap
            mapped = vmap_function().forward_of(m.batch, cls, args)
        if m.watch is not None:
            m.watch.on_function_start(node, args)
        made = None if mapped is None else mapped(*args, **kwargs)
        with no_grad():
            if mapped is not None:
                cls.setup_context(node.ctx, args, made)
            elif cls.setup_context is None:
                made = cls.forward(node.ctx, *args, **kwargs)
            else:
                made = cls.forward(*args, **kwargs)
                cls.setup_context(node.ctx, args, made)
        saved = node.ctx._to_save if node.ctx._to_save_forward is None else node.ctx._to_save_forward
        result = finish(node, args, made, recorded)
        if m.watch is not None:
            m.watch.on_function(node, args, result, saved)
        return result


def by_place(cls: type[Function], args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
    """(args, kwargs) with the arguments given by name moved to their positions: `apply` records positional tensors.

    For a class with `setup_context`, missing arguments get their defaults.
    """
    from inspect import signature

    before = (None,) if cls.setup_context is None else ()
    bound = signature(cls.forward).bind(*before, *args, **kwargs)
    if cls.setup_context is not None:
        bound.apply_defaults()
    return bound.args[len(before) :], bound.kwargs


def node_class(cls: type[Function]) -> type[FunctionNode]:
    """The class of the function's nodes, `NameBackward`, made once per Function."""
    found = cls.__dict__.get("_node")
    if found is None:
        if "vjp" in cls.__dict__ and "backward" not in cls.__dict__:
            cls.backward = cls.vjp  # type: ignore[attr-defined,method-assign]
        found = type(
            cls.__name__ + "Backward", (FunctionNode,), {"__slots__": (), "function": cls, "__module__": cls.__module__}
        )
        cls._node = found  # type: ignore[attr-defined]
    return found


def finish(node: FunctionNode, args: tuple, made: Any, recorded: bool) -> Any:
    """The outputs of forward, connected to the node if the call is recorded."""
    several = isinstance(made, (tuple, list))
    originals = list(made) if several else [made]
    if not all(any(d is t for t in originals) for d in node.ctx._dirty):
        raise runtime_error(
            f"{node.name()}: Some elements marked as dirty during the forward method were not returned as output. "
            "The inputs that are modified inplace must all be outputs of the Function.",
            "return the tensors passed to mark_dirty()",
        )
    outs = [settled(t, args, node, recorded) for t in originals]
    for t in node.ctx._dirty:
        wrote(t)
    if recorded:
        f = frame(2)
        node.where = (f.f_code, f.f_lasti)
        node.seq = tick()
        link(node, outs, originals, several)
        node.saved = tuple(
            SavedOutput(i, outs[i]) if (i := position(t, outs)) is not None else t for t in node.ctx._to_save
        )
    node.ctx._to_save = node.ctx._dirty = node.ctx._constant = ()
    node.ctx._to_save_forward = None
    return (type(made)(outs) if type(made) in (tuple, list) else tuple(outs)) if several else outs[0]


def position(t: Any, outs: list) -> int | None:
    """The index of the output that is the saved tensor `t`, or None.

    An input that forward returned unchanged is not an output: its alias is, which has another gradient.
    """
    for i, out in enumerate(outs):
        if t is not None and t is out and out._node is not None:
            return i
    return None


def settled(t: Any, args: tuple, node: FunctionNode, recorded: bool) -> Any:
    """An output as a new tensor: an input returned unchanged becomes an alias; a dirty input stays itself.

    If the call is not recorded, all outputs are outside the graph.
    """
    if not isinstance(t, Tensor):
        return t
    if not recorded and t._node is not None:
        return detached(t)
    if any(t is d for d in node.ctx._dirty):
        if recorded and any(x._node is not None and x._node.leaf for x in (t, t._root)):
            raise runtime_error(
                "a leaf Variable that requires grad has been used in an in-place operation.",
                "give it a clone()",
                op=type(node).function.__name__,
            )
        return t
    if any(t is a for a in args):
        return register_opaque(from_array(t._array), t)
    return t


def link(node: FunctionNode, outs: list, originals: list, several: bool) -> None:
    """Connect the differentiable outputs to the node. `originals`: the objects that forward returned and marked."""
    for t in node.ctx._constant:
        if any(t is d for d in node.ctx._dirty):
            t._node = None
    smooth = [
        i
        for i, t in enumerate(outs)
        if isinstance(t, Tensor)
        and (t.is_floating_point() or t.is_complex())
        and not any(originals[i] is c for c in node.ctx._constant)
    ]
    if not several:
        if smooth:
            node.shape = outs[0]._array.shape
            place(outs[0], node, node)
        return
    node.outputs = [(t._array.shape, t._array.dtype) if isinstance(t, Tensor) else None for t in outs]
    for i in smooth:
        place(outs[i], Output(node, i, tick(), outs[i]._array.shape), node)


def place(out: Tensor, end: Node, node: FunctionNode) -> None:
    """Make `end` (the node, or its `Output`) the node of an output.

    An output that forward wrote to gets the node of an in-place write, and so do its base and the base's views. A view
    returned by forward cannot be written to in the graph (`register_opaque`).
    """
    if any(out is t for t in node.ctx._dirty):
        alias = from_array(out._array)
        alias._node = end
        rebase(out, alias)
        return
    out._node = end
    if out._viewing is not None:
        register_opaque(out, out._viewing[1])


def once_differentiable(function: Callable) -> Callable:
    """A decorator for `backward`: backward is not recorded, and differentiating its result is an error."""

    @wraps(function)
    def backward(ctx: Any, *grads: Any) -> Any:
        with no_grad():
            answer = function(ctx, *grads)
        if not mode().grad or not any(isinstance(g, Tensor) and g._node is not None for g in grads):
            return answer
        answers = answer if isinstance(answer, tuple) else (answer,)
        return tuple(Once.apply(a, *grads) if isinstance(a, Tensor) else a for a in answers)

    return backward


class InplaceFunction(Function):
    """A Function with the attribute `inplace`; torch has this class for older programs."""

    def __init__(self, inplace: bool = False):
        super().__init__()
        self.inplace = inplace


class Once(Function):
    """The identity, which cannot be differentiated."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, *grads: Any) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise runtime_error("trying to differentiate twice a function that was marked with @once_differentiable")
