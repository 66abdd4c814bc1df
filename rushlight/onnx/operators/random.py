"""Random tensors, from torch's generator; a file's seed makes its own."""

from __future__ import annotations

from typing import Any

import rushlight as torch
from rushlight import Tensor

from .casts import torch_type
from .table import Fixed, Ints, Value, operator


def generator(seed: float | None) -> Any:
    """A generator with the file's seed; None for torch's own."""
    return None if seed is None else torch.Generator().manual_seed(int(seed))


@operator("RandomNormal")
def random_normal(
    *, shape: Ints, mean: float = 0.0, scale: float = 1.0, seed: float | None = None, dtype: int = 1
) -> Tensor:
    """Normal numbers."""
    return (torch.randn(shape, generator=generator(seed)) * scale + mean).to(torch_type(dtype))


@operator("RandomNormalLike")
def random_normal_like(
    x: Value, *, mean: float = 0.0, scale: float = 1.0, seed: float | None = None, dtype: int | None = None
) -> Tensor:
    """Normal numbers in the shape of x."""
    made = random_normal(shape=list(x.shape), mean=mean, scale=scale, seed=seed)
    return made.to(x.dtype if dtype is None else torch_type(dtype))


@operator("RandomUniform")
def random_uniform(
    *, shape: Ints, low: float = 0.0, high: float = 1.0, seed: float | None = None, dtype: int = 1
) -> Tensor:
    """Uniform numbers in [low, high)."""
    return (torch.rand(shape, generator=generator(seed)) * (high - low) + low).to(torch_type(dtype))


@operator("RandomUniformLike")
def random_uniform_like(
    x: Value, *, low: float = 0.0, high: float = 1.0, seed: float | None = None, dtype: int | None = None
) -> Tensor:
    """Uniform numbers in the shape of x."""
    made = random_uniform(shape=list(x.shape), low=low, high=high, seed=seed)
    return made.to(x.dtype if dtype is None else torch_type(dtype))


@operator("Bernoulli")
def bernoulli(x: Fixed, *, seed: float | None = None, dtype: int | None = None) -> Tensor:
    """1 with the probability of each element, else 0."""
    drawn = torch.bernoulli(x, generator=generator(seed))
    return drawn if dtype is None else drawn.to(torch_type(dtype))


@operator("Multinomial")
def multinomial(x: Fixed, *, sample_size: int = 1, seed: float | None = None, dtype: int = 6) -> Tensor:
    """Classes drawn with the probabilities of softmax of each row."""
    shares = torch.softmax(x, -1)
    return torch.multinomial(shares, sample_size, True, generator=generator(seed)).to(torch_type(dtype))
