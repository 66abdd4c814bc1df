"""Parameters divided over the ranks of a group. A `Unit` gathers a module's parameters
for the forward, frees the full parameters, and gathers again for backward."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from rushlight.autograd.function import Function
from rushlight.autograd.graph import saved_tensors_hooks
from rushlight.base.dtypes import dtype
from rushlight.base.errors import runtime_error
from rushlight.base.pytree import tree_flatten, tree_unflatten
from rushlight.comm.collectives import all_gather_into_tensor, all_reduce, reduce_scatter_tensor
from rushlight.comm.process_group import ProcessGroup
from rushlight.core.mode import mode
from rushlight.core.tensor import Tensor, from_array, noticed
from rushlight.distributed.pieces import Piece, piece_of
from rushlight.distributed.tensor import divided
from rushlight.nn import Module, Parameter
from rushlight.optim.optimizer import EVERYWHERE, register_optimizer_step_post_hook

HALF_BYTES = 2


class ParameterPiece(Piece):
    """The rows of a parameter. `places`: (module, name) for each use of the parameter. `unit`: the unit that divides
    it."""

    unit: Unit

    def __init__(
        self, parameter: Tensor, places: list[tuple[Module, str]], group: ProcessGroup, replicas: ProcessGroup | None
    ):
        super().__init__(parameter.shape, group, replicas)
        self.places = places
        self.parameter = Parameter(self.part(parameter), parameter.requires_grad)
        self.put(self.parameter)

    def put(self, tensor: Any) -> None:
        """Replace the parameter by a tensor in all its places."""
        for module, name in self.places:
            module._parameters[name] = tensor


@dataclass
class Dtypes:
    """The dtypes of a unit's computations. None: the dtype of its parameters, without a conversion.

    `parameters`: of the gathered parameters. `messages`: of the sums of gradients. `inputs`: whether floating-point
    inputs of forward are converted to `parameters`. `outputs`: of the results of forward."""

    parameters: dtype | None = None
    messages: dtype | None = None
    inputs: bool = False
    outputs: dtype | None = None


class Gathered(Function):
    """Gathers the whole parameters of a unit. Backward averages the gradients over the ranks, and returns this rank's
    parts.
    """

    @staticmethod
    def forward(ctx: Any, unit: Unit, *parts: Tensor) -> tuple[Tensor, ...]:
        ctx.unit = unit
        ctx.set_materialize_grads(False)
        return tuple(from_array(array) for array in unit.gather())

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        return (None, *ctx.unit.reduce(grads))


def spans(pieces: Sequence[Piece]) -> list[slice]:
    """The elements of each piece in the concatenation of all."""
    ends = [0, *accumulate(piece.size for piece in pieces)]
    return [slice(first, end) for first, end in pairwise(ends)]


class Unit:
    """A module whose parameters are divided, except parameters that are divided by another unit."""

    def __init__(
        self, module: Module, group: ProcessGroup, replicas: ProcessGroup | None = None, *, reshard: bool = True,
        dtypes: Dtypes | None = None, parts_in_state: bool = False, ignored: Collection[int] = (),
    ):  # fmt: skip
        register_divided_states()
        self.group, self.replicas, self.reshard = group, replicas, reshard
        self.dtypes, self.parts_in_state = dtypes or Dtypes(), parts_in_state
        places: dict[int, tuple[Tensor, list[tuple[Module, str]]]] = {}
        for owner in module.modules():
            if getattr(owner, "_sharded_by", None) is not None and owner is not module:
                continue
            for name, p in owner._parameters.items():
                if p is not None and id(p) not in ignored and piece_of(p) is None:
                    places.setdefault(id(p), (p, []))[1].append((owner, name))
        self.pieces = [ParameterPiece(p, found, group, replicas) for p, found in places.values()]
        for piece in self.pieces:
            piece.unit = self
            self.divide(piece)
        for owner in {id(m): m for piece in self.pieces for m, _ in piece.places}.values():
            owner.register_state_dict_post_hook(whole_state)
            owner.register_load_state_dict_pre_hook(part_of_state)
            owner.register_load_state_dict_post_hook(lambda *loaded: self.adopt())
        self.wholes: list[np.ndarray] | None = None  # the gathered parameters
        self.unsharded = False  # whether `unshard` has put whole parameters into the module

    def divide(self, piece: ParameterPiece) -> None:
        """Make the parameter of a piece, and its gradients, DTensors."""
        divided(piece.parameter, piece)
        if piece.parameter.requires_grad:
            piece.parameter.register_post_accumulate_grad_hook(divided_gradient)

    def adopt(self) -> None:
        """Adopt parameters that load_state_dict(assign=True) has put into the module."""
        for piece in self.pieces:
            module, name = piece.places[0]
            if (now := module._parameters[name]) is not piece.parameter and now is not None:
                piece.parameter = now
                self.divide(piece)
                piece.put(now)

    # -- messages ----------------------------------------------------------------------------------

    def by_dtype(self) -> list[list[int]]:
        """The numbers of the pieces of each dtype."""
        found: dict[Any, list[int]] = {}
        for i, piece in enumerate(self.pieces):
            found.setdefault(piece.parameter._array.dtype, []).append(i)
        return list(found.values())

    def computed(self, parameter: Tensor) -> np.dtype:
        """The dtype of a gathered parameter."""
        wanted, own = self.dtypes.parameters, parameter._array.dtype
        return own if wanted is None or not parameter.is_floating_point() else wanted.numpy

    def gather(self) -> list[np.ndarray]:
        """The whole parameters."""
        if self.wholes is not None:
            return self.wholes
        made: dict[int, np.ndarray] = {}
        for numbers in self.by_dtype():
            pieces = [self.pieces[i] for i in numbers]
            computed = self.computed(pieces[0].parameter)
            mine = np.empty(sum(piece.size for piece in pieces), computed)
            for piece, span in zip(pieces, spans(pieces)):
                piece.padded(piece.parameter._array, mine[span])
            every = np.empty((self.group.size(), mine.size), mine.dtype)
            all_gather_into_tensor(from_array(every), from_array(mine), self.group)
            for i, piece, span in zip(numbers, pieces, spans(pieces)):
                made[i] = piece.whole(every[:, span])
        self.wholes = [made[i] for i in range(len(self.pieces))]
        return self.wholes

    def reduce(self, grads: Sequence[Tensor | None]) -> list[Tensor | None]:
        """This rank's parts of the gradients' means over the ranks."""
        self.wholes = None
        found: list[Tensor | None] = [None] * len(grads)
        for numbers in self.by_dtype():
            pieces = [self.pieces[i] for i in numbers]
            own = pieces[0].parameter._array.dtype
            summed = self.computed(pieces[0].parameter)
            if self.dtypes.messages is not None:
                summed = self.dtypes.messages.numpy
            ranks = self.group.size()
            every = np.zeros((ranks, sum(piece.size for piece in pieces)), summed)
            for i, piece, span in zip(numbers, pieces, spans(pieces)):
                if (grad := grads[i]) is not None:
                    flat = np.zeros(ranks * piece.size, every.dtype)
                    flat[: grad.numel()] = grad._array.reshape(-1)
                    every[:, span] = flat.reshape(ranks, -1)
            mine = self.mean(every).astype(own, copy=False)
            for i, piece, span in zip(numbers, pieces, spans(pieces)):
                part = piece.parameter._array
                found[i] = from_array(mine[span][: part.size].reshape(part.shape).copy())
        return found

    def mean(self, every: np.ndarray) -> np.ndarray:
        """This rank's part of the mean over all ranks. `every`: this rank's gradients, (ranks, size)."""
        replicas = self.replicas
        count = every.shape[0] * (1 if replicas is None else replicas.size())
        if every.itemsize == HALF_BYTES:
            every /= count  # before the sum, so that float16 does not overflow
        mine = np.empty(every.shape[1], every.dtype)
        reduce_scatter_tensor(from_array(mine), from_array(every), group=self.group)
        if replicas is not None:
            all_reduce(from_array(mine), group=replicas)
        if every.itemsize != HALF_BYTES:
            mine /= count
        return mine

    # -- forward -----------------------------------------------------------------------------------

    def run(self, forward: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        """forward(*args, **kwargs) with whole parameters and the conversions of `dtypes`."""
        if self.dtypes.inputs:
            args, kwargs = converted((args, kwargs), self.dtypes.parameters)
        result = self.with_wholes(forward, args, kwargs)
        return result if self.dtypes.outputs is None else converted(result, self.dtypes.outputs)

    def with_wholes(self, forward: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        """forward(*args, **kwargs) with whole parameters."""
        if not self.pieces:
            return forward(*args, **kwargs)
        if self.unsharded:
            self.take_away()
        self.adopt()
        if any(piece.parameter.is_meta for piece in self.pieces):
            raise runtime_error(
                "parameters of a divided module are on the device meta",
                "model.to_empty(device='cpu'), then reset_parameters() or load_state_dict()",
            )
        if mode().watch is not None:
            noticed(self.pieces[0].parameter)
        wholes = Gathered.apply(self, *[piece.parameter for piece in self.pieces])
        self.put(wholes)
        arrays = [t._array for t in wholes]
        del wholes
        try:
            if not (self.reshard and mode().grad):
                return forward(*args, **kwargs)
            with saved_tensors_hooks(lambda t: self.pack(t, arrays), self.unpack):
                return forward(*args, **kwargs)
        finally:
            self.take_away()
            arrays.clear()  # the graph keeps the hook that refers to the list
            if self.reshard or not mode().grad:
                self.wholes = None

    def put(self, tensors: Sequence[Tensor]) -> None:
        """Replace the parts by whole parameters."""
        for piece, t in zip(self.pieces, tensors):
            piece.put(t)

    def unshard(self) -> None:
        """Put whole parameters into the module before forward, so that programs can read them."""
        self.put([Parameter(from_array(array), False) for array in self.gather()])
        self.unsharded = True

    def take_away(self) -> None:
        """Replace the whole parameters by the parts."""
        self.unsharded = False
        for piece in self.pieces:
            piece.put(piece.parameter)

    @staticmethod
    def pack(tensor: Tensor, arrays: Sequence[np.ndarray]) -> Any:
        """A saved tensor. A view of a whole parameter is saved as its position, so that the memory can be freed."""
        own = tensor._array
        for i, whole in enumerate(arrays):
            if own.dtype == whole.dtype and np.may_share_memory(own, whole):
                address = own.__array_interface__["data"][0]
                offset = address - whole.__array_interface__["data"][0]
                return i, offset, own.shape, own.strides
        return tensor

    def unpack(self, packed: Any) -> Tensor:
        if isinstance(packed, Tensor):
            return packed
        i, offset, shape, strides = packed
        whole = self.gather()[i]
        memory = whole.reshape(-1).view(np.uint8).data  # NumPy's buffers have no bfloat16
        return from_array(np.ndarray(shape, whole.dtype, memory, offset, strides))


def converted(tree: Any, to: dtype | None) -> Any:
    """Nested values with their floating-point tensors converted to the dtype `to`; None: not converted."""
    leaves, spec = tree_flatten(tree)
    if to is None:
        return tree
    cast = [leaf.to(to) if isinstance(leaf, Tensor) and leaf.is_floating_point() else leaf for leaf in leaves]
    return tree_unflatten(cast, spec)


@cache
def register_divided_states() -> None:
    """Let all optimizers divide their states like their parameters."""
    register_optimizer_step_post_hook(divided_states)
    EVERYWHERE.add("load_post", divided_states)


def divided_states(optimizer: Any, *rest: Any) -> None:
    """Hook after a step and after load_state_dict: state tensors with the shape of a divided parameter become
    DTensors."""
    for p, state in optimizer.state.items():
        if (piece := piece_of(p)) is None:
            continue
        for value in state.values():
            if type(value) is Tensor and value._array.shape == p._array.shape and value.ndim:
                divided(value, piece)


def divided_gradient(parameter: Tensor) -> None:
    """Hook after backward: the gradient of a divided parameter becomes a DTensor."""
    if type(grad := parameter._grad) is Tensor:
        divided(grad, piece_of(parameter))


# -- states ----------------------------------------------------------------------------------------


def whole_state(module: Module, state: dict, prefix: str, metadata: Any) -> None:
    """Hook after state_dict(): gathers whole parameters, or makes DTensors for a sharded state."""
    for name, p in module._parameters.items():
        piece, key = piece_of(p), prefix + name
        if piece is None or key not in state:
            continue
        parts = _parts.get()
        if parts is None:
            parts = piece.unit.parts_in_state
        own = state[key]
        state[key] = divided(own, piece) if parts else piece.gathered(own._array)


def part_of_state(module: Module, state: dict, prefix: str, *rest: Any) -> None:
    """Hook before loading: replaces whole parameters by this rank's part."""
    for name, p in module._parameters.items():
        piece, key = piece_of(p), prefix + name
        if piece is None or key not in state:
            continue
        if tuple(state[key].shape) == piece.shape and piece_of(state[key]) is None:
            state[key] = divided(piece.part(state[key].detach()), piece)


# None: by the setting of each module (`Unit.parts_in_state`)
_parts: ContextVar[bool | None] = ContextVar("rushlight.state_of_parts", default=None)


@contextmanager
def state_of_parts(parts: bool | None) -> Iterator[None]:
    """Inside, state_dict() returns DTensors with the rows of this rank (True), or whole parameters (False)."""
    token = _parts.set(parts)
    try:
        yield
    finally:
        _parts.reset(token)


def units_of(module: Module) -> list[Unit]:
    """The units of a module and its submodules."""
    return [m._sharded_by for m in module.modules() if getattr(m, "_sharded_by", None) is not None]
