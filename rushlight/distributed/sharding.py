"""Parameters divided over the ranks of a group. A `Unit` is a module whose parameters are gathered
together when its forward begins, and again in backward, and are freed in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from rushlight.autograd.function import Function
from rushlight.autograd.graph import saved_tensors_hooks
from rushlight.comm.collectives import all_gather_into_tensor, reduce_scatter_tensor
from rushlight.comm.process_group import ProcessGroup
from rushlight.core.mode import mode, no_grad
from rushlight.core.tensor import Tensor, from_array, noticed
from rushlight.nn import Module, Parameter


class Piece:
    """A parameter and its part on this rank: rows of dimension 0, as torch.chunk divides them.

    `rows`: of each rank's part, the last ones may have fewer; `size`: elements of `rows` rows."""

    def __init__(self, parameter: Tensor, group: ProcessGroup, places: list[tuple[Module, str]]):
        self.shape, self.dtype = tuple(parameter.shape), parameter._array.dtype
        self.places, self.group = places, group
        length = self.shape[0] if self.shape else 1
        self.rows = -(-length // group.size())
        self.size = self.rows * (parameter.numel() // length if length else 0)
        self.parameter = Parameter(self.part(parameter), parameter.requires_grad)
        for module, name in places:
            module._parameters[name] = self.parameter

    def part(self, whole: Tensor) -> Tensor:
        """A copy of the rows of this rank."""
        array = whole._array.reshape(self.shape if self.shape else (1,))
        first = self.group.rank() * self.rows
        return from_array(array[first : first + self.rows].copy())

    def padded(self, part: np.ndarray, into: np.ndarray) -> None:
        """Write a part into `size` elements."""
        into[: part.size] = part.reshape(-1)
        into[part.size :] = 0

    def whole(self, parts: np.ndarray) -> np.ndarray:
        """The parameter, from the parts of all ranks, (ranks, size)."""
        count = int(np.prod(self.shape))
        return np.ascontiguousarray(parts).reshape(-1)[:count].reshape(self.shape)


class Gathered(Function):
    """The whole parameters of a unit, from the parts; gradients are averaged over the ranks, and
    each rank gets those of its parts."""

    @staticmethod
    def forward(ctx: Any, unit: Unit, *parts: Tensor) -> tuple[Tensor, ...]:
        ctx.unit = unit
        ctx.set_materialize_grads(False)
        return tuple(from_array(array) for array in unit.gather())

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        return (None, *ctx.unit.reduce(grads))


class Unit:
    """A module whose parameters are divided, without those that are divided already."""

    def __init__(self, module: Module, group: ProcessGroup, reshard: bool, ignored: set[int]):
        self.group, self.reshard = group, reshard
        places: dict[int, tuple[Tensor, list[tuple[Module, str]]]] = {}
        for owner in module.modules():
            if getattr(owner, "_sharded_by", None) is not None and owner is not module:
                continue
            for name, p in owner._parameters.items():
                if p is not None and id(p) not in ignored and not hasattr(p, "_piece"):
                    places.setdefault(id(p), (p, []))[1].append((owner, name))
        self.pieces = [Piece(p, group, found) for p, found in places.values()]
        for piece in self.pieces:
            piece.parameter._piece = piece  # type: ignore[attr-defined]
        for owner in {id(m): m for piece in self.pieces for m, _ in piece.places}.values():
            owner.register_state_dict_post_hook(whole_state)
            owner.register_load_state_dict_pre_hook(part_of_state)
        self.wholes: list[np.ndarray] | None = None  # while they are gathered

    # -- messages ----------------------------------------------------------------------------------

    def by_dtype(self) -> list[list[int]]:
        """The numbers of the pieces of each dtype."""
        found: dict[Any, list[int]] = {}
        for i, piece in enumerate(self.pieces):
            found.setdefault(piece.dtype, []).append(i)
        return list(found.values())

    def gather(self) -> list[np.ndarray]:
        """The whole parameters."""
        if self.wholes is not None:
            return self.wholes
        made: dict[int, np.ndarray] = {}
        for numbers in self.by_dtype():
            pieces = [self.pieces[i] for i in numbers]
            mine = np.empty(sum(piece.size for piece in pieces), pieces[0].dtype)
            at = 0
            for piece in pieces:
                piece.padded(piece.parameter._array, mine[at : at + piece.size])
                at += piece.size
            every = np.empty((self.group.size(), mine.size), mine.dtype)
            all_gather_into_tensor(from_array(every), from_array(mine), self.group)
            at = 0
            for i, piece in zip(numbers, pieces):
                made[i] = piece.whole(every[:, at : at + piece.size])
                at += piece.size
        self.wholes = [made[i] for i in range(len(self.pieces))]
        return self.wholes

    def reduce(self, grads: Sequence[Tensor | None]) -> list[Tensor | None]:
        """The means of the gradients over the ranks: of each, the part of this rank."""
        self.wholes = None
        found: list[Tensor | None] = [None] * len(grads)
        ranks = self.group.size()
        for numbers in self.by_dtype():
            pieces = [self.pieces[i] for i in numbers]
            every = np.zeros((ranks, sum(piece.size for piece in pieces)), pieces[0].dtype)
            at = 0
            for i, piece in zip(numbers, pieces):
                if (grad := grads[i]) is not None:
                    flat = np.zeros(ranks * piece.size, every.dtype)
                    flat[: grad.numel()] = grad._array.reshape(-1)
                    every[:, at : at + piece.size] = flat.reshape(ranks, -1)
                at += piece.size
            mine = np.empty(every.shape[1], every.dtype)
            reduce_scatter_tensor(from_array(mine), from_array(every), group=self.group)
            mine /= ranks
            at = 0
            for i, piece in zip(numbers, pieces):
                part = piece.parameter._array
                if part.size or grads[i] is not None:
                    found[i] = from_array(mine[at : at + part.size].reshape(part.shape).copy())
                at += piece.size
        return found

    # -- forward -----------------------------------------------------------------------------------

    def run(self, forward: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        """forward(*args, **kwargs) with the whole parameters in their places."""
        if not self.pieces:
            return forward(*args, **kwargs)
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
        """Put whole parameters in the place of the parts."""
        for piece, t in zip(self.pieces, tensors):
            for module, name in piece.places:
                module._parameters[name] = t  # type: ignore[assignment]

    def take_away(self) -> None:
        """Put the parts back."""
        for piece in self.pieces:
            for module, name in piece.places:
                module._parameters[name] = piece.parameter

    @staticmethod
    def pack(tensor: Tensor, arrays: Sequence[np.ndarray]) -> Any:
        """What backward needs: of a view of a whole parameter its place, so that the memory goes;
        another tensor itself."""
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
        return from_array(np.ndarray(shape, whole.dtype, whole.reshape(-1).data, offset, strides))


# -- states ----------------------------------------------------------------------------------------


def whole_state(module: Module, state: dict, prefix: str, metadata: Any) -> None:
    """In a state_dict whole parameters stand; in a sharded one, parts that know their place."""
    for name, p in module._parameters.items():
        piece = getattr(p, "_piece", None)
        if piece is None or prefix + name not in state:
            continue
        if not state_has_parts():
            state[prefix + name] = gathered_like(piece, piece.parameter._array)
        else:
            state[prefix + name]._piece = piece


def part_of_state(module: Module, state: dict, prefix: str, *rest: Any) -> None:
    """Loading takes of a whole parameter the part of this rank."""
    for name, p in module._parameters.items():
        piece, key = getattr(p, "_piece", None), prefix + name
        if piece is None or key not in state:
            continue
        if tuple(state[key].shape) == piece.shape and not hasattr(state[key], "_piece"):
            state[key] = piece.part(state[key].detach())


_parts: ContextVar[bool] = ContextVar("rushlight.state_of_parts", default=False)


def state_has_parts() -> bool:
    """Whether state_dict() returns the parts of this rank in place of whole parameters."""
    return _parts.get()


@contextmanager
def state_of_parts(parts: bool = True) -> Iterator[None]:
    """Inside, state_dict() returns the parts of this rank; with `parts` False, no change."""
    token = _parts.set(parts or _parts.get())
    try:
        yield
    finally:
        _parts.reset(token)


def gathered_like(piece: Piece, part: np.ndarray) -> Tensor:
    """The whole of what is divided like a parameter: the parameter, or the optimizer's state of
    it."""
    mine = np.empty(piece.size, part.dtype)
    piece.padded(part, mine)
    every = np.empty((piece.group.size(), piece.size), part.dtype)
    with no_grad():
        all_gather_into_tensor(from_array(every), from_array(mine), piece.group)
    return from_array(piece.whole(every))
