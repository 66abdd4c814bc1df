"""torch.autograd.functional: Jacobians, Hessians and their products with vectors."""

from typing import Any

import numpy as np

from rushlight.base.errors import type_error
from rushlight.core.tensor import Tensor, from_array
from rushlight.func.jacobian_api import hessian, hvp, jacobian, jvp, vhp, vjp


def _construct_standard_basis_for(tensors: tuple[Tensor, ...], tensor_numels: tuple[int, ...]) -> tuple[Tensor, ...]:
    """The columns of the identity matrix that belong to each tensor: (all elements, its elements)."""
    whole, ends = np.eye(sum(tensor_numels)), np.cumsum(tensor_numels)
    parts = zip(tensors, ends.tolist(), tensor_numels)
    return tuple([from_array(whole[:, end - n : end].astype(t.dtype.numpy)) for t, end, n in parts])


def _as_tuple(inp: Any, arg_name: str | None = None, fn_name: str | None = None) -> tuple:
    """(whether the argument is a tuple, the argument as a tuple). TypeError if a part is not a tensor. Without
    `arg_name` and `fn_name`: only the tuple, and its parts are not checked."""
    is_tuple = isinstance(inp, tuple)
    if arg_name is None and fn_name is None:
        return tuple(inp) if isinstance(inp, (tuple, list)) else (inp,)
    found = inp if is_tuple else (inp,)
    for i, part in enumerate(found):
        if not isinstance(part, Tensor):
            what = f"value at index {i}" if is_tuple else f"given {arg_name}"
            raise type_error(
                f"The {arg_name} given to {fn_name} must be either a Tensor or a tuple of Tensors but the {what} "
                f"has type {type(part)}."
            )
    return is_tuple, found


def _tuple_postprocess(res: Any, to_unpack: bool | tuple[bool, bool]) -> Any:
    """The result without the tuples that `_as_tuple` added. `to_unpack`: its flags for one or two levels of nesting."""
    outer, *inner = to_unpack if isinstance(to_unpack, tuple) else (to_unpack,)
    if inner and not inner[0]:
        res = tuple([part[0] for part in res])
    return res if outer else res[0]


def _grad_preprocess(inputs: tuple[Tensor, ...], create_graph: bool, need_graph: bool) -> tuple[Tensor, ...]:
    """New tensors on the memory of the inputs: in the graph of the inputs if `create_graph`, otherwise leaves, which
    require grad if `need_graph`."""
    return tuple(
        [t.view_as(t) if create_graph and t.requires_grad else t.detach().requires_grad_(need_graph) for t in inputs]
    )


def _grad_postprocess(inputs: tuple, create_graph: bool) -> tuple:
    """The tensors, detached unless `create_graph`; tuples of tuples keep their form."""
    if create_graph:
        return inputs
    return tuple([t.detach() if isinstance(t, Tensor) else _grad_postprocess(t, False) for t in inputs])


__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
