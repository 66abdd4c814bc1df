"""Tables of vectors, looked up by integers."""

from __future__ import annotations

from typing import Any, TypeVar

from rushlight.core.tensor import Tensor
from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn.layer_settings import uninitialized
from rushlight.nn.module import Module
from rushlight.nn.parameter import Parameter
from rushlight.ops.grad_mode import no_grad

T = TypeVar("T", bound="_Table")


class _Table(Module):
    """A table (num_embeddings, embedding_dim): initially normal numbers, with 0 in the padding row."""

    weight: Parameter

    def _begin(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None, max_norm: float | None,
        norm_type: float, scale_grad_by_freq: bool, sparse: bool,
    ) -> None:  # fmt: skip
        super().__init__()
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise AssertionError("Padding_idx must be within num_embeddings")
            padding_idx %= num_embeddings
        self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, padding_idx
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
        self.sparse = sparse

    def _fill(self, weight: Tensor | None, freeze: bool, device: Any, dtype: Any) -> None:
        if weight is None:
            self.weight = uninitialized(self.num_embeddings, self.embedding_dim, dtype=dtype, device=device)
            self.weight.requires_grad_(not freeze)
            self.reset_parameters()
            return
        if tuple(weight.shape) != (self.num_embeddings, self.embedding_dim):
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
        self.weight = Parameter(
            weight, requires_grad=not freeze and (weight.is_floating_point() or weight.is_complex())
        )

    def reset_parameters(self) -> None:
        """Draw the table; the padding row becomes 0."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)

    @classmethod
    def from_pretrained(cls: type[T], embeddings: Tensor, freeze: bool = True, **settings: Any) -> T:
        """A module that shares the memory of an existing table. `freeze`: the table is not trained."""
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, columns = embeddings.shape
        made = cls(rows, columns, _weight=embeddings, **settings)
        made.weight.requires_grad = not freeze
        return made

    def _line(self, extras: tuple[str, ...]) -> str:
        usual = {"padding_idx": None, "max_norm": None, "norm_type": 2.0, "scale_grad_by_freq": False, "sparse": False}
        shown = [f"{name}={getattr(self, name)}" for name in extras if getattr(self, name) != usual[name]]
        return ", ".join([f"{self.num_embeddings}, {self.embedding_dim}", *shown])


class Embedding(_Table):
    """out[...] = weight[input[...]]: (*) of integers -> (*, embedding_dim); settings as `nn.functional.embedding`.

    >>> rushlight.nn.Embedding(10, 3)(rushlight.tensor([1, 2])).shape
    torch.Size([2, 3])
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False, _weight: Tensor | None = None,
        _freeze: bool = False, device: Any = None, dtype: Any = None,
    ):  # fmt: skip
        self._begin(num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
        self._fill(_weight, _freeze, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse
        )

    def extra_repr(self) -> str:
        return self._line(("padding_idx", "max_norm", "norm_type", "scale_grad_by_freq")) + (
            ", sparse=True" if self.sparse else ""
        )


class EmbeddingBag(_Table):
    """out[b] = sum, mean or max of the weight's rows that bag b names; settings as `nn.functional.embedding_bag`.

    >>> bag = rushlight.nn.EmbeddingBag(10, 3)
    >>> bag(rushlight.tensor([1, 2, 4]), rushlight.tensor([0, 2])).shape
    torch.Size([2, 3])
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, _weight: Tensor | None = None,
        include_last_offset: bool = False, padding_idx: int | None = None, device: Any = None, dtype: Any = None,
    ):  # fmt: skip
        self._begin(num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
        self.mode, self.include_last_offset = mode, include_last_offset
        self._fill(_weight, False, device, dtype)

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        return F.embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse,
            per_sample_weights, self.include_last_offset, self.padding_idx,
        )  # fmt: skip

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return self._line(("max_norm", "norm_type", "scale_grad_by_freq")) + f", mode={self.mode!r}" + padding
