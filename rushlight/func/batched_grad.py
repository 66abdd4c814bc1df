"""`autograd.grad(..., is_grads_batched=True)`: gradients from a batch of gradients of outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.base.errors import runtime_error
from rushlight.core.backward import finished, first_gradient, grad
from rushlight.core.tensor import Tensor
from rushlight.core.worlds import AS_TENSORS
from rushlight.func.vmap_transform import vmap


def batched(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Any,
    retain_graph: bool | None,
    create_graph: bool,
    allow_unused: bool | None,
    materialize: bool,
) -> tuple[Any, ...]:
    """`grad` for a batch of gradients of each output: `vmap` of `grad`."""
    outs = (outputs,) if isinstance(outputs, Tensor) else tuple(outputs)
    ins = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    rows = (grad_outputs,) if isinstance(grad_outputs, Tensor) else tuple(grad_outputs or (None,) * len(outs))
    for i, (t, r) in enumerate(zip(outs, rows)):
        if r is not None and r._array.shape[1:] != t._array.shape:
            raise runtime_error(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch "
                "dimension. The sizes of the remaining dimensions are expected to match the shape of "
                f"corresponding output, but a mismatch was detected: grad_output[{i}] has a shape of {r.shape} "
                f"and output[{i}] has a shape of {t.shape}.",
                "give gradients of shape (rows, *output.shape); func.vmap batches some of them only",
            )
    used: list[int] = []

    def vjp(*given: Tensor) -> tuple[Tensor, ...]:
        found = grad(outs, ins, given, retain_graph, create_graph, True, allow_unused or materialize)
        used[:] = [i for i, g in enumerate(found) if g is not None]
        return tuple([found[i] for i in used])

    found = vmap(vjp)(*[first_gradient(t, r, i) if r is None else r for i, (t, r) in enumerate(zip(outs, rows))])
    results = dict(zip(used, found))
    return tuple(
        [results[i] if i in results else finished(None, t, AS_TENSORS, materialize) for i, t in enumerate(ins)]
    )
