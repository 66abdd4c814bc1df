"""A matrix of int8 with a scale for each row, as the weight of a linear layer or of an embedding."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray

from rushlight.ao.torchao.quantization.granularity import Granularity, MappingType, PerRow
from rushlight.base import dtypes
from rushlight.base.device import CPU
from rushlight.base.errors import not_implemented_error
from rushlight.base.size import Size
from rushlight.core.tensor import Tensor, from_array, new
from rushlight.kernels.int8 import EPS, ONE, Int8Weight
from rushlight.ops.tensor.quantized_tensor import floats

STEPS = np.float32(127.5)  # torchao maps the largest magnitude to 127.5, and cuts to -128 ... 127


class Int8Tensor(Tensor):
    """A tensor w = scale q of float32 that is stored in int8. `qdata`: q, `scale`: (rows, 1), or (1, 1) per tensor.

    Ops that do not know it compute with `dequantize()`. `act_mapping`: how an input is quantized that is multiplied
    with this weight; None for an input that stays in float32.

    >>> Int8Tensor = rushlight.ao.torchao.quantization.Int8Tensor
    >>> w = Int8Tensor.from_hp(rushlight.tensor([[1.0, -0.5], [0.02, 0.01]]))
    >>> w.qdata, w.scale.shape
    (tensor([[127, -64],
            [127,  64]], dtype=torch.int8), torch.Size([2, 1]))
    """

    packed: Int8Weight
    act_mapping: MappingType | None
    _is_param = True

    @classmethod
    def from_hp(
        cls, hp_tensor: Tensor, granularity: Granularity | None = None, act_mapping: MappingType | None = None
    ) -> Int8Tensor:
        """The nearest int8 tensor to a float32 matrix."""
        w = floats(hp_tensor.detach())
        most = np.abs(w).max(1, keepdims=True, initial=0) if isinstance(granularity or PerRow(), PerRow) else (
            np.abs(w).max(keepdims=True, initial=0)
        )  # fmt: skip
        scale = np.maximum(most / STEPS, EPS).astype(np.float32)
        q = np.clip(np.rint(w * (ONE / scale)), -128, 127).astype(np.int8)
        return cls._made(Int8Weight(q, scale), act_mapping)

    @classmethod
    def _made(cls, packed: Int8Weight, act_mapping: MappingType | None) -> Int8Tensor:
        self = new(cls)
        self._node, self._grad, self._viewing, self._writes = None, None, None, None
        self.packed, self.act_mapping = packed, act_mapping
        return self

    @property
    def _array(self) -> ndarray:
        """The elements in float32, for ops that do not know this class."""
        array = self.packed.values() * self.packed.scales.reshape(-1, 1)
        array.flags.writeable = False
        return array

    @_array.setter
    def _array(self, array: Any) -> None:
        if array.dtype == np.float32 and np.array_equal(array, self._array):  # model.float()
            return
        raise not_implemented_error(
            "an int8 tensor cannot be changed or converted", "w.dequantize() is a tensor of float32"
        )

    @property
    def qdata(self) -> Tensor:
        """The integers."""
        return from_array(self.packed.values().copy())

    @property
    def scale(self) -> Tensor:
        """The scale of each row."""
        return from_array(self.packed.scales.reshape(-1, 1))

    shape = property(lambda self: Size(self.packed.shape), doc="The size of each dimension.")
    dtype = property(lambda self: dtypes.float32, doc="The type of the elements that the integers stand for.")
    device = property(lambda self: CPU, doc="The CPU.")
    ndim = property(lambda self: 2, doc="The number of dimensions.")

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]

    def dim(self) -> int:
        return 2

    def dequantize(self) -> Tensor:
        """The float32 tensor that the integers stand for."""
        return from_array(np.array(self._array))

    def copy_(self, src: Tensor, non_blocking: bool = False) -> Int8Tensor:
        """Take the integers and scales of another int8 tensor, as `load_state_dict` does."""
        if not isinstance(src, Int8Tensor) or src.shape != self.shape:
            raise not_implemented_error(
                "an int8 tensor takes int8 tensors of its shape only", "load the state before quantize_"
            )
        self.packed, self.act_mapping = src.packed, src.act_mapping
        return self

    def detach(self) -> Int8Tensor:
        return type(self)._made(self.packed, self.act_mapping)

    def __deepcopy__(self, memo: dict) -> Int8Tensor:
        return memo.setdefault(id(self), self.detach())

    def _reduce_in_files(self) -> tuple:
        return _rebuilt, (self.packed, self.act_mapping)

    def __reduce_ex__(self, protocol: Any) -> tuple:
        return self._reduce_in_files()

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return f"Int8Tensor(act_mapping={self.act_mapping}, qdata={self.qdata}, scale={self.scale})"


def _rebuilt(packed: Int8Weight, act_mapping: MappingType | None) -> Int8Tensor:
    return Int8Tensor._made(packed, act_mapping)
