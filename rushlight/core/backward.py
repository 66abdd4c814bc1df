"""`backward` and `grad`: the functions that run the engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import local
from typing import Any
from weakref import WeakSet

import numpy as np

from rushlight.base import faster
from rushlight.base.errors import runtime_error, suggesting, value_error, warn_once
from rushlight.base.higher import Higher
from rushlight.core.engine import free_saved, reachable, run_hooks, run_prehooks, steps
from rushlight.core.mode import current, mode
from rushlight.core.node import Node, Output, stamp
from rushlight.core.tensor import ADDING, Tensor, created, from_array, method, writes_of
from rushlight.core.worlds import AS_ARRAYS, AS_TENSORS, GradientKind, sparse_graph
from rushlight.kernels.summation import add_to

Tensors = Tensor | Sequence[Tensor]
nan_check = Higher()  # the check of anomaly detection
batched_grad = Higher()  # `grad` with `is_grads_batched=True`
# Objects whose method `differentiated(seeds)` is called at the start of each backward with create_graph=True.
DOUBLE_BACKWARD_LISTENERS: WeakSet[Any] = WeakSet()


class Running(local):
    """The innermost backward that this thread runs. `callbacks`: called at its end; None outside."""

    callbacks: tuple[Callable[[], Any], ...] | None = None


running = Running()


def queue_callback(callback: Callable[[], Any]) -> None:
    """Call `callback()` when the backward that runs now ends. RuntimeError outside of a backward."""
    if running.callbacks is None:
        raise runtime_error(
            "Final callbacks can only be installed during backward pass.",
            "call it from a hook, or from the backward of a Function",
        )
    running.callbacks += (callback,)


CYCLE = (
    "Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient "
    "which can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid this. If you "
    "have to use this function, make sure to reset the .grad fields of your parameters to None after use to break the "
    "cycle and avoid the leak."
)


@suggesting
def backward(
    tensors: Tensors,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Add d(sum of tensors * grad_tensors)/d(leaf) to the `.grad` of every leaf.

    `grad_tensors`: the gradients to start from, of the tensors' shapes; may be left out for tensors of one element.
    `retain_graph`: keep the graph for another backward (default: as `create_graph`). `create_graph`: record backward
    itself, for higher derivatives. `inputs`: only these tensors accumulate; non-leaf inputs retain their gradients.

    Raises RuntimeError for a tensor outside any graph, for shapes that differ, for a graph that was freed, and if a
    tensor that backward needs has been overwritten.

    >>> x = rushlight.tensor(3., requires_grad=True)
    >>> rushlight.autograd.backward(x * x)
    >>> x.grad
    tensor(6.)
    """
    outputs = (tensors,) if isinstance(tensors, Tensor) else tuple(tensors)
    add_gradients(outputs, grad_tensors, retain_graph, create_graph, inputs)


def add_gradients(
    outputs: tuple[Tensor, ...], grad_tensors: Any, retain_graph: bool | None, create_graph: bool, inputs: Any
) -> None:
    """`backward` of a tuple of tensors."""
    leaves = None if inputs is None else as_inputs(inputs)
    if leaves == ():
        raise runtime_error("'inputs' argument to backward() cannot be empty.", "leave it out for all leaves")
    if create_graph:
        warn_once(CYCLE)
    seeds, kind = seed(outputs, grad_tensors, create_graph)
    ends = None if leaves is None else ends_of(leaves, seeds)
    for t in leaves or ():
        if isinstance(t, Tensor):
            # as torch: non-leaf inputs retain their gradients in later backwards, too
            t.retain_grad()
    targets = None if ends is None else set(ends)
    found = run(seeds, kind, targets, create_graph if retain_graph is None else retain_graph, create_graph)
    for end, t in zip(ends or (), leaves or ()):
        holder = t if isinstance(t, Tensor) else end.tensor() if end.leaf else None  # type: ignore[attr-defined]
        if holder is not None and (g := found.get(end)) is not None and not holder.retains_grad:
            accumulate(holder, end, g, kind)


def accumulate(t: Tensor, node: Node, g: Any, kind: GradientKind) -> None:
    """Add `g` to `t.grad` after the pre-hooks on the tensor's node; then call the hooks that run after the node."""
    hooks = node.hooks
    if hooks is not None and hooks.before:
        g = run_prehooks(hooks, node, g, kind)
    own = finished(g, t, kind, False)
    with ADDING:
        known = t._grad
        if known is None or kind.records or known.is_sparse or own.is_sparse:
            t._grad = own if known is None else own + known if known.is_sparse else known + own
        else:  # in place, as for leaves: the user may hold the tensor that is .grad
            add_to(known._array, own._array)
            stamp(writes_of(known), None)
    if hooks is not None:
        run_hooks(hooks, node, g, (), kind)


@suggesting
def grad(
    outputs: Tensors,
    inputs: Tensors,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor, ...]:
    """d(sum of outputs * grad_outputs)/d(input), for each input; `.grad` is left alone.

    `allow_unused`: return None for an input that the outputs do not depend on, instead of raising RuntimeError.
    `materialize_grads`: return zeros for such an input. `is_grads_batched`: `grad_outputs` has a leading batch
    dimension, and so do the results. Other arguments as in `backward`.

    >>> x = rushlight.tensor(3., requires_grad=True)
    >>> g, = rushlight.autograd.grad(x ** 3, x, create_graph=True)
    >>> rushlight.autograd.grad(g, x)
    (tensor(18.),)
    """
    if materialize_grads and allow_unused is False:
        raise value_error(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    if is_grads_batched:
        settings = retain_graph, create_graph, allow_unused, materialize_grads
        return batched_grad().batched(outputs, inputs, grad_outputs, *settings)
    outs = (outputs,) if isinstance(outputs, Tensor) else tuple(outputs)
    ins = as_inputs(inputs)
    if not ins:
        raise runtime_error("`inputs` argument to `grad()` cannot be empty.")
    seeds, kind = seed(outs, grad_outputs, create_graph)
    ends = ends_of(ins, seeds)
    found = run(seeds, kind, set(ends), create_graph if retain_graph is None else retain_graph, create_graph)
    results = [found.get(end) for end in ends]
    if allow_unused is None:
        allow_unused = materialize_grads
    if not allow_unused and any(g is None for g in results):
        raise runtime_error(
            "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True "
            "if this is the desired behavior.",
            "compute the outputs from these inputs, or leave them out",
            inputs=[i for i, g in enumerate(results) if g is None],
        )
    answer = tuple([finished(g, t, kind, materialize_grads) for g, t in zip(results, ins)])
    for g, made in zip(results, answer):
        if g is None and made is not None and create_graph:
            made.requires_grad_()  # zeros that can be differentiated again
    return answer


def finished(g: Any, t: Tensor | Any, kind: GradientKind, materialize: bool) -> Any:
    """The gradient `g` of input `t` as a Tensor of t's dtype; for g = None zeros if `materialize`, else None."""
    if not isinstance(t, Tensor):  # a GradientEdge, which has no dtype
        if g is None and materialize:
            raise runtime_error(
                "materialize_grads cannot be used when the given input is a GradientEdge", "give the tensor itself"
            )
        return g if g is None or kind.records else from_array(np.array(g))
    if g is None:
        return created(from_array(np.zeros_like(t._array))) if materialize else None
    if kind.records:
        g = g.to(t.dtype)
        return sparse_graph().in_layout(g, t) if g.is_sparse else g
    # The gradient of an embedding's table may be Rows, which become a sparse tensor.
    return g.tensor(t) if hasattr(g, "tensor") else from_array(np.array(g, t.dtype.numpy))


def seed(outputs: Sequence[Tensor], grads: Any, create_graph: bool) -> tuple[dict[Node, Any], GradientKind]:
    """({node of an output: gradient to start from}, the kind of gradients of this backward)."""
    watch = mode().watch
    recorded = create_graph or (watch is not None and watch.records)
    inside_vmap = mode().batch is not None  # the rules run as ops
    kind = AS_TENSORS if recorded or inside_vmap else AS_ARRAYS
    if grads is None or isinstance(grads, Tensor):
        grads = (grads,) * (1 if isinstance(grads, Tensor) else len(outputs))
    if len(grads) != len(outputs):
        raise runtime_error(f"got {len(outputs)} tensors and {len(grads)} gradients")
    seeds: dict[Node, Any] = {}
    for i, (t, g) in enumerate(zip(outputs, grads)):
        if t._node is None:
            raise runtime_error(
                f"element {i} of tensors does not require grad and does not have a grad_fn",
                "compute it from a tensor with requires_grad=True, outside of no_grad(); torch.tensor(loss), "
                "argmax(), comparisons, detach() and item() have no gradient",
            )
        g = kind.from_tensor(first_gradient(t, g, i), t._node.leaf)
        seeds[t._node] = g if t._node not in seeds else seeds[t._node] + g
    return seeds, kind


def first_gradient(t: Tensor, g: Tensor | None, i: int) -> Tensor:
    """The gradient that backward starts from: 1 for a tensor of one element, else `g`, whose shape is checked."""
    if not t._dense:
        return sparse_graph().first_gradient(t, g, i)
    if g is None:
        if t._array.size != 1:
            raise runtime_error(
                "grad can be implicitly created only for scalar outputs",
                "reduce it first (loss.sum(), loss.mean()), or give backward(gradient) a tensor of shape "
                f"{tuple(t.shape)}",
                shape=tuple(t.shape),
            )
        if t.is_complex():
            raise runtime_error(
                f"grad can be implicitly created only for real scalar outputs but got {t.dtype}",
                "take .abs() or .real first, or give backward(gradient)",
            )
        return created(from_array(np.array(1, t._array.dtype).reshape(t._array.shape)))
    if g._array.shape != t._array.shape:
        raise runtime_error(
            f"Mismatch in shape: grad_output[{i}] has a shape of {g.shape} and output[{i}] has a shape of {t.shape}.",
            "give a gradient of the output's shape",
        )
    return g if g._array.dtype == t._array.dtype else g.to(t.dtype)


def as_inputs(inputs: Any) -> tuple:
    """A tuple of inputs, from one tensor or `graph.GradientEdge`, or from a sequence of them."""
    return (inputs,) if isinstance(inputs, Tensor) or hasattr(inputs, "output_nr") else tuple(inputs)


def ends_of(inputs: Sequence[Any], seeds: dict[Node, Any]) -> list[Node]:
    """The nodes that receive the gradients of `inputs`, tensors or `GradientEdge`s."""
    ends = []
    for i, t in enumerate(inputs):
        if t._node is None:
            raise runtime_error(
                "One of the differentiated Tensors does not require grad",
                "call requires_grad_() on it before it is used",
                input=i,
                shape=tuple(t.shape),
            )
        ends.append(t._node if isinstance(t, Tensor) else end_of(t, seeds))
    return ends


def end_of(edge: Any, seeds: dict[Node, Any]) -> Node:
    """The node that receives the gradient of a `GradientEdge`: an `Output` if the edge's node has several outputs."""
    if edge.ownership_token is None:
        for node in reachable(seeds, edge.node.seq):
            if isinstance(node, Output) and node.source() == (edge.node, edge.output_nr):
                return node
    return edge.key


def run(
    seeds: dict[Node, Any], kind: GradientKind, targets: set[Node] | None, retain: bool, create_graph: bool
) -> dict[Node, Any]:
    """Run backward. Returns {target: gradient} for the targets that backward reached."""
    found = {}
    m = mode()
    checks = m.checks
    if m.watch is not None:
        m.watch.on_backward(seeds)
    if create_graph and DOUBLE_BACKWARD_LISTENERS:
        for listener in [*DOUBLE_BACKWARD_LISTENERS]:
            listener.differentiated(seeds)
    if kind is AS_ARRAYS and not checks and faster.deferred_kind is not None:
        kind = faster.deferred_kind(targets)
    token = current.set(m.but(grad=create_graph, targeted=m.targeted or targets is not None))
    outer, running.callbacks = running.callbacks, ()
    try:
        for node, g, outgoing in steps(seeds, kind, targets, retain or bool(checks)):
            if checks:
                nan_check().check(node, outgoing, checks)
                if not retain and node.saved:
                    free_saved(node, node.saved)
            if targets is not None and node in targets:
                found[node] = g
        while running.callbacks:
            callback, *rest = running.callbacks
            running.callbacks = tuple(rest)
            callback()
    finally:
        running.callbacks = outer
        current.reset(token)
    return found


def tensor_backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Add the gradient of this tensor (times `gradient`) to the `.grad` of every leaf that this tensor depends on.

    See `rushlight.autograd.backward`.
    """
    add_gradients((self,), None if gradient is None else (gradient,), retain_graph, create_graph, inputs)


method(suggesting(tensor_backward, name="backward"), "backward")
