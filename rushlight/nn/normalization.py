"""Normalization layers: by batch, by instance, by layer, by group."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.base import dtypes
from rushlight.base.errors import value_error, warn
from rushlight.comm.groups import get_world_size, is_initialized
from rushlight.core.tensor import Tensor, from_array
from rushlight.creation.factories import full, zeros
from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn.layer_settings import Layer, uninitialized
from rushlight.nn.module import Module
from rushlight.nn.parameter import Parameter
from rushlight.ops.shape.views import cat


class _Affine(Module):
    """Weight and bias, initially 1 and 0; each may be None."""

    weight: Parameter | None
    bias: Parameter | None

    def _own(self, shape: tuple[int, ...], affine: bool, bias: bool, device: Any, dtype: Any) -> None:
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            self.register_parameter(name, uninitialized(*shape, dtype=dtype, device=device) if wanted else None)

    def reset_parameters(self) -> None:
        """Weight 1, bias 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


class _NormBase(_Affine):
    """Weight and bias (C,), and running statistics; each may be None."""

    _version = 2
    running_mean: Any  # a Tensor, or None without running statistics
    running_var: Any
    num_batches_tracked: Any

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, device: Any = None, dtype: Any = None, *, bias: bool = True,
    ):  # fmt: skip
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self._own((num_features,), affine, bias, device, dtype)
        for name in ("running_mean", "running_var"):
            fresh = uninitialized(num_features, dtype=dtype, device=device).data if track_running_stats else None
            self.register_buffer(name, fresh)
        count = zeros((), dtype=dtypes.int64, device=device) if track_running_stats else None
        self.register_buffer("num_batches_tracked", count)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forget the statistics: mean 0, variance 1."""
        if self.track_running_stats:
            init.zeros_(self.running_mean)
            init.ones_(self.running_var)
            init.zeros_(self.num_batches_tracked)

    def reset_parameters(self) -> None:
        """Weight 1, bias 0, statistics forgotten."""
        self.reset_running_stats()
        super().reset_parameters()

    def _check_input_dim(self, input: Tensor) -> None:
        raise NotImplementedError

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self, state_dict: dict, prefix: str, local_metadata: dict, strict: bool, missing_keys: list[str],
        unexpected_keys: list[str], error_msgs: list[str],
    ) -> None:  # fmt: skip
        # states before version 2 do not count batches
        if (local_metadata.get("version") or 1) < 2 and self.track_running_stats:
            count = self.num_batches_tracked
            state_dict.setdefault(
                prefix + "num_batches_tracked",
                from_array(np.zeros((), np.int64)) if count is None or count.is_meta else count,
            )
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )

    _load_from_state_dict.waits = True  # type: ignore[attr-defined]


class _BatchNorm(_NormBase):
    """(x - mean) / sqrt(var + eps) * weight + bias for each channel, over the batch and all else.

    Training uses the batch's mean and variance, and updates the running ones: running = (1 - momentum) running +
    momentum new, or their plain average if `momentum` is None. Evaluation uses the running statistics, if they are
    tracked.
    """

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        mean, var, factor = self.running_mean, self.running_var, self.momentum
        count = self.num_batches_tracked if self.training and self.track_running_stats else None
        if count is not None and factor is None:
            factor = 1.0 / (float(count) + 1)
        by_batch = self.training or (mean is None and var is None)
        if self.training and not self.track_running_stats:
            mean = var = None
        if count is not None:  # before F.batch_norm, because the second run of a checkpoint may end there
            count.add_(1)
        try:
            return F.batch_norm(input, mean, var, self.weight, self.bias, by_batch, factor or 0.0, self.eps)
        except (RuntimeError, TypeError, ValueError):
            if count is not None:  # a batch that raised an error does not count
                count.sub_(1)
            raise


def dimensions(*allowed: int) -> Any:
    """A check of the input's number of dimensions. ValueError for another."""
    words = " or ".join(f"{n}D" for n in allowed)

    def check(self: Any, input: Tensor) -> None:
        if input._array.ndim not in allowed:
            n, name = input._array.ndim, type(self).__name__
            fits = {2: "1d", 3: "1d", 4: "2d", 5: "3d"}.get(n)
            other = f", or take {name[:-2]}{fits}" if fits and name[-2:] in ("1d", "2d", "3d") else ""
            hint = (
                "add the dimension of the batch: x.unsqueeze(0)"
                if n + 1 in allowed and n + 1 == min(allowed)
                else f"bring the input to {words}{other}"
            )
            raise value_error(f"expected {words} input (got {n}D input)", hint)

    return check


class BatchNorm1d(_BatchNorm):
    """(x - mean) / sqrt(var + eps) * weight + bias, mean and var of each channel of (N, C) or (N, C, L).

    Training uses the batch's statistics, and updates the running ones: running = (1 - momentum) running + momentum new,
    or their plain average if `momentum` is None. Evaluation uses the running ones, if they are tracked. ValueError for
    another number of dimensions. S. Ioffe, C. Szegedy, *Batch normalization*, 2015.

    >>> m = rushlight.nn.BatchNorm1d(1)
    >>> m(rushlight.tensor([[1.], [3.]])).detach()
    tensor([[-1.0000],
            [ 1.0000]])
    >>> m.running_mean
    tensor([0.2000])
    """

    _check_input_dim = dimensions(2, 3)


class BatchNorm2d(_BatchNorm):
    """(x - mean) / sqrt(var + eps) * weight + bias, mean and var of each channel of (N, C, H, W); see `BatchNorm1d`.

    >>> m = rushlight.nn.BatchNorm2d(3)
    >>> m(rushlight.ones(2, 3, 4, 4)).shape, m.weight.shape
    (torch.Size([2, 3, 4, 4]), torch.Size([3]))
    """

    _check_input_dim = dimensions(4)


class BatchNorm3d(_BatchNorm):
    """(x - mean) / sqrt(var + eps) * weight + bias, mean and var of each channel of (N, C, D, H, W); see `BatchNorm1d`.

    >>> rushlight.nn.BatchNorm3d(3)(rushlight.ones(2, 3, 4, 4, 4)).shape
    torch.Size([2, 3, 4, 4, 4])
    """

    _check_input_dim = dimensions(5)


class SyncBatchNorm(_BatchNorm):
    """(x - mean) / sqrt(var + eps) * weight + bias, mean and var over the batches of all ranks of the process group;
    for one process, as `BatchNorm1d`.

    Input (N, C, ...); `convert_sync_batchnorm` replaces the batch norms of a module.

    >>> model = rushlight.nn.Sequential(rushlight.nn.BatchNorm1d(2))
    >>> type(rushlight.nn.SyncBatchNorm.convert_sync_batchnorm(model)[0]).__name__
    'SyncBatchNorm'
    """

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, process_group: Any = None, device: Any = None, dtype: Any = None, *,
        bias: bool = True,
    ):  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input._array.ndim < 2:
            raise value_error(f"expected at least 2D input (got {input._array.ndim}D input)")

    def forward(self, input: Tensor) -> Tensor:
        by_batch = self.training or self.running_mean is None
        if not by_batch or not is_initialized() or get_world_size(self.process_group) == 1:
            return super().forward(input)
        from rushlight.comm.differentiable import all_reduce  # loaded when a process group exists

        self._check_input_dim(input)
        x = input.float() if input.dtype.itemsize < 4 else input
        shape = [1, -1] + [1] * (x._array.ndim - 2)
        dims = [dim for dim in range(x._array.ndim) if dim != 1]
        count = full((1,), float(x.numel() // x._array.shape[1]), dtype=x.dtype)
        total = all_reduce(cat([x.sum(dims), count]), group=self.process_group)
        n = total[-1].detach()
        mean = total[:-1] / n
        centered = x - mean.reshape(shape)
        var = all_reduce((centered * centered).sum(dims), group=self.process_group) / n
        if self.training and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
        self._follow(mean.detach(), var.detach() * (n / (n - 1)))
        out = centered * (var + self.eps).rsqrt().reshape(shape)
        if self.weight is not None:
            out = out * self.weight.reshape(shape)
        if self.bias is not None:
            out = out + self.bias.reshape(shape)
        return out.to(input.dtype)

    def _follow(self, mean: Tensor, var: Tensor) -> None:
        """Update the running statistics by the statistics of the batch."""
        if not self.training or self.running_mean is None or self.running_var is None:
            return
        factor = self.momentum
        if factor is None:
            factor = 1.0 / float(self.num_batches_tracked)
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), factor)
        self.running_var.lerp_(var.to(self.running_var.dtype), factor)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """The module, with each BatchNorm replaced by a SyncBatchNorm that has the same parameters and statistics."""
        made = module
        if isinstance(module, _BatchNorm):
            made = cls(module.num_features, module.eps, module.momentum, False, False, process_group)
            made.__dict__.update({**module.__dict__, "process_group": process_group})
        for name, child in module.named_children():
            made.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return made


class _InstanceNorm(_NormBase):
    """(x - mean) / sqrt(var + eps) * weight + bias for each sample and channel, over the spatial dimensions.

    By default without weight, bias and running statistics.
    """

    _n = 1  # spatial dimensions

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False,
        track_running_stats: bool = False, device: Any = None, dtype: Any = None, *, bias: bool = True,
    ):  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        alone = input._array.ndim == self._n + 1
        x = input.unsqueeze(0) if alone else input
        if x._array.shape[1] != self.num_features:
            c, at = x._array.shape[1], 0 if alone else 1
            if self.affine:
                raise value_error(
                    f"expected input's size at dim={at} to match num_features ({self.num_features}), but got: {c}.",
                    f"use num_features={c}",
                )
            warn(
                f"input's size at dim={at} does not match num_features. You can silence this warning by not passing "
                "in num_features, which is not used because affine=False"
            )
        out = F.instance_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias,
            self.training or not self.track_running_stats, self.momentum or 0.0, self.eps,
        )  # fmt: skip
        return out.squeeze(0) if alone else out


class InstanceNorm1d(_InstanceNorm):
    """(x - mean) / sqrt(var + eps), mean and var of each sample's channels, over L of (N, C, L) or (C, L).

    Times weight plus bias if `affine`. D. Ulyanov, A. Vedaldi, V. Lempitsky, *Instance normalization*, 2016.

    >>> rushlight.nn.InstanceNorm1d(2)(rushlight.tensor([[1., 3.], [10., 30.]]))
    tensor([[-1.0000,  1.0000],
            [-1.0000,  1.0000]])
    """

    _n = 1
    _check_input_dim = dimensions(2, 3)


class InstanceNorm2d(_InstanceNorm):
    """(x - mean) / sqrt(var + eps), mean and var of each sample's channels, over H and W of (N, C, H, W) or (C, H, W).

    >>> rushlight.nn.InstanceNorm2d(1)(rushlight.tensor([[[1., 3.], [1., 3.]]]))
    tensor([[[-1.0000,  1.0000],
             [-1.0000,  1.0000]]])
    """

    _n = 2
    _check_input_dim = dimensions(3, 4)


class InstanceNorm3d(_InstanceNorm):
    """(x - mean) / sqrt(var + eps), mean and var of each sample's channels, over D, H and W of (N, C, D, H, W).

    >>> rushlight.nn.InstanceNorm3d(2)(rushlight.ones(1, 2, 3, 3, 3)).abs().max()
    tensor(0.)
    """

    _n = 3
    _check_input_dim = dimensions(4, 5)


class LayerNorm(_Affine):
    """(x - mean) / sqrt(var + eps) * weight + bias over the last dimensions, of `normalized_shape`.

    J. L. Ba, J. R. Kiros, G. Hinton, *Layer normalization*, 2016.

    >>> rushlight.nn.LayerNorm(3)(rushlight.tensor([[1., 2., 3.]])).detach()
    tensor([[-1.2247,  0.0000,  1.2247]])
    """

    def __init__(
        self, normalized_shape: Any, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True,
        device: Any = None, dtype: Any = None,
    ):  # fmt: skip
        super().__init__()
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.normalized_shape, self.eps, self.elementwise_affine = shape, eps, elementwise_affine
        self._own(shape, elementwise_affine, bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        try:  # as in Linear: `self.weight` calls __getattr__
            own = self._parameters
            weight, bias = own["weight"], own["bias"]
        except (KeyError, AttributeError):
            weight, bias = self.weight, self.bias
        return F.layer_norm(input, self.normalized_shape, weight, bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """x / sqrt(mean(x^2) + eps) * weight over the last dimensions, of `normalized_shape`.

    Default eps: the dtype's machine epsilon. B. Zhang, R. Sennrich, *Root mean square layer normalization*, 2019.

    >>> rushlight.nn.RMSNorm(2)(rushlight.tensor([3., 4.])).detach()  # over sqrt(12.5)
    tensor([0.8485, 1.1314])
    """

    weight: Parameter | None

    def __init__(
        self, normalized_shape: Any, eps: float | None = None, elementwise_affine: bool = True, device: Any = None,
        dtype: Any = None,
    ):  # fmt: skip
        super().__init__()
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.normalized_shape, self.eps, self.elementwise_affine = shape, eps, elementwise_affine
        fresh = uninitialized(*shape, dtype=dtype, device=device) if elementwise_affine else None
        self.register_parameter("weight", fresh)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weight 1."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(_Affine):
    """(x - mean) / sqrt(var + eps) * weight + bias, mean and var of each sample's groups of channels.

    Input (N, C, *). ValueError unless C is a multiple of `num_groups`. Y. Wu, K. He, *Group normalization*, 2018.

    >>> rushlight.nn.GroupNorm(2, 4)(rushlight.tensor([[1., 3., 10., 30.]])).detach()
    tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    """

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, device: Any = None,
        dtype: Any = None, *, bias: bool = True,
    ):  # fmt: skip
        super().__init__()
        if num_channels % num_groups:
            raise value_error(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self._own((num_channels,), affine, bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class LocalResponseNorm(Layer, function=F.local_response_norm):
    """x / (k + alpha mean of x^2 over `size` neighbouring channels)^beta. A. Krizhevsky et al., 2012.

    >>> rushlight.nn.LocalResponseNorm(3, alpha=3.0, beta=1.0)(rushlight.ones(1, 3, 1)).squeeze()
    tensor([0.3333, 0.2500, 0.3333])
    """

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(LocalResponseNorm, function=F.local_response_norm, k=1):
    """x / (k + alpha mean of x^2 over `size` channels)^beta: LocalResponseNorm by its old name.

    >>> rushlight.nn.CrossMapLRN2d(3, alpha=3.0, beta=1.0)(rushlight.ones(1, 3, 1, 1)).squeeze()
    tensor([0.3333, 0.2500, 0.3333])
    """
