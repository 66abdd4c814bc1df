"""Pruning: parameters with elements set to 0 by a mask, weight = weight_orig * weight_mask.

The parameter becomes `weight_orig`, which is trained; the mask is the buffer `weight_mask`; a hook computes the weight
before each forward. Pruning again removes more of the remaining elements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from rushlight.base.errors import index_error, not_implemented_error, type_error, value_error
from rushlight.core.tensor import Tensor, from_array
from rushlight.creation.factories import ones_like
from rushlight.nn.module import Module
from rushlight.ops.math import elementwise as e
from rushlight.ops.reduce.reduce_api import norm
from rushlight.ops.shape.views import cat, reshape, to
from rushlight.ops.tensor.random_tensors import rand_like

__all__ = [
    "BasePruningMethod", "CustomFromMask", "Identity", "L1Unstructured", "LnStructured", "PruningContainer",
    "RandomStructured", "RandomUnstructured", "custom_from_mask", "global_unstructured", "identity", "is_pruned",
    "l1_unstructured", "ln_structured", "random_structured", "random_unstructured", "remove",
]  # fmt: skip


class BasePruningMethod:
    """weight = weight_orig * compute_mask(weight_orig, previous mask): a pruning method, and the hook that applies it.

    A subclass defines `compute_mask(t, default_mask)`: 1 for elements to keep. `PRUNING_TYPE`: 'unstructured' removes
    elements, 'structured' slices, 'global' elements of several tensors at once.

    >>> class Least(rushlight.nn.utils.prune.BasePruningMethod):
    ...     def compute_mask(self, t, default_mask):
    ...         return default_mask * (t > t.min())
    >>> Least().prune(rushlight.tensor([1., 3., 2.]))
    tensor([0., 3., 2.])
    """

    PRUNING_TYPE = "unstructured"
    _tensor_name: str

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask (1: keep) for a tensor with the previous mask `default_mask`."""
        raise not_implemented_error("a pruning method defines compute_mask(t, default_mask)")

    def apply_mask(self, module: Module) -> Tensor:
        """The original times the mask."""
        name = self._tensor_name
        mask = getattr(module, name + "_mask")
        return e.mul(mask.to(getattr(module, name + "_orig").dtype), getattr(module, name + "_orig"))

    @classmethod
    def apply(
        cls, module: Module, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any
    ) -> BasePruningMethod:
        """Prune a parameter of the module. If it was pruned before, more of the remaining elements are removed."""
        method = cls(*args, **kwargs)
        method._tensor_name = name
        before = hook_of(module, name)
        fresh = before is None
        original = getattr(module, name) if fresh else getattr(module, name + "_orig")
        if importance_scores is not None and importance_scores.shape != original.shape:
            raise AssertionError(f"importance_scores should have the same shape as parameter {name} of {module}")
        scores = importance_scores if importance_scores is not None else original if fresh else getattr(module, name)
        old = ones_like(scores) if fresh else getattr(module, name + "_mask").to(scores.dtype)
        chain: BasePruningMethod = method
        if before is not None:
            key, hook = before
            chain = PruningContainer()
            chain._tensor_name = name
            for one in (*(hook if isinstance(hook, PruningContainer) else (hook,)), method):
                chain.add_pruning_method(one)
        mask = chain.compute_mask(scores, old)  # may raise: nothing may be changed before
        if before is not None:
            del module._forward_pre_hooks[key]
        else:
            module.register_parameter(name + "_orig", original)
            del module._parameters[name]
        module.register_buffer(name + "_mask", mask.detach())
        setattr(module, name, chain.apply_mask(module))
        module.register_forward_pre_hook(chain)
        return chain

    def prune(self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None) -> Tensor:
        """The tensor with elements set to 0, without a module."""
        scores = t if importance_scores is None else importance_scores
        if scores.shape != t.shape:
            raise AssertionError("importance_scores should have the same shape as tensor t")
        return e.mul(t, self.compute_mask(scores, ones_like(t) if default_mask is None else default_mask))

    def remove(self, module: Module) -> None:
        """Make the pruned value an ordinary parameter; removed elements stay 0."""
        name = self._tensor_name
        value = self.apply_mask(module)
        original: Any = module._parameters.pop(name + "_orig")
        del module._buffers[name + "_mask"]
        delattr(module, name)
        original.data = value.detach()
        setattr(module, name, original)


def hook_of(module: Module, name: str) -> tuple[int, BasePruningMethod] | None:
    """(key, hook) of the pruning of this parameter."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            return key, hook
    return None


class PruningContainer(BasePruningMethod):
    """mask = mask_1 * mask_2 * ...: several methods in order. Each removes some of the elements that the methods before
    it kept.

    >>> prune = rushlight.nn.utils.prune
    >>> m = prune.l1_unstructured(rushlight.nn.Linear(4, 1), "weight", amount=2)
    >>> m = prune.l1_unstructured(m, "weight", amount=1)
    >>> m.weight_mask.sum().item()  # 4 - 2 - 1
    1.0
    """

    def __init__(self, *args: BasePruningMethod):
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        for method in args:
            if not self._pruning_methods:
                self._tensor_name = method._tensor_name
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod) -> None:
        """Add a method for the same parameter. TypeError for another type, ValueError for a method of another
        parameter."""
        if not isinstance(method, BasePruningMethod):
            raise type_error(f"{type(method)} is not a BasePruningMethod subclass")
        if method._tensor_name != self._tensor_name:
            raise value_error(
                f"Can only add pruning methods acting on the parameter named '{self._tensor_name}' to "
                f"PruningContainer. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, i: Any) -> Any:
        return self._pruning_methods[i]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The old mask without the elements that the last method removes: elements, or whole slices."""
        method = self._pruning_methods[-1]
        if method.PRUNING_TYPE == "global":
            return method.compute_mask(t, default_mask)
        kept = default_mask._array != 0
        mask = to(default_mask.clone(), t.dtype)
        if method.PRUNING_TYPE != "structured":
            part = method.compute_mask(from_array(t._array[kept]), from_array(default_mask._array[kept]))
            mask._array[kept] = part._array
            return mask
        dim = method.dim % t._array.ndim  # type: ignore[attr-defined]
        slices = np.flatnonzero(kept.any(tuple(d for d in range(kept.ndim) if d != dim)))
        at = (slice(None),) * dim + (slices,)
        part = method.compute_mask(from_array(t._array[at]), from_array(default_mask._array[at]))
        mask._array[at] = part._array
        return mask


class Identity(BasePruningMethod):
    """mask = 1: removes nothing.

    >>> rushlight.nn.utils.prune.Identity().prune(rushlight.tensor([1., 2.]))
    tensor([1., 2.])
    """

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask


class ByAmount(BasePruningMethod):
    """A method that removes `amount` elements or slices: their number, or a fraction of them."""

    def __init__(self, amount: float):
        check_amount(amount)
        self.amount = amount


class RandomUnstructured(ByAmount):
    """mask = 0 at `amount` elements chosen at random: a number of them, or a fraction.

    >>> rushlight.nn.utils.prune.RandomUnstructured(amount=2).prune(rushlight.ones(5)).sum()
    tensor(3.)
    """

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return without(default_mask, rand_like(t), count(self.amount, t.numel()), largest=True)


class L1Unstructured(ByAmount):
    """mask = 0 at the `amount` elements of least |t|: a number of them, or a fraction.

    >>> rushlight.nn.utils.prune.L1Unstructured(amount=2).prune(rushlight.tensor([3., 1., 2., -4.]))
    tensor([ 3.,  0.,  0., -4.])
    """

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return without(default_mask, e.abs(t), count(self.amount, t.numel()))


class Structured(ByAmount):
    """A method that removes the slices along `dim` with the least scores."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1):
        super().__init__(amount)
        self.dim = dim

    def _scores(self, t: Tensor) -> Tensor:
        """A number for each slice."""
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        n = slices_of(t, self.dim)
        return without_slices(default_mask, self._scores(t), count(self.amount, n), self.dim)


class RandomStructured(Structured):
    """mask = 0 in `amount` slices along `dim`, chosen at random: a number of them, or a fraction.

    >>> rushlight.nn.utils.prune.RandomStructured(amount=1, dim=0).prune(rushlight.ones(3, 2)).sum()
    tensor(4.)
    """

    def _scores(self, t: Tensor) -> Tensor:
        return rand_like(from_array(np.empty(t._array.shape[self.dim], np.float32)))


class LnStructured(Structured):
    """mask = 0 in the `amount` slices along `dim` of the least n-norm: a number of them, or a fraction.

    >>> rushlight.nn.utils.prune.LnStructured(amount=1, n=2, dim=0).prune(rushlight.tensor([[3., 4.], [1., 2.]]))
    tensor([[3., 4.],
            [0., 0.]])
    """

    def __init__(self, amount: float, n: Any, dim: int = -1):
        super().__init__(amount, dim)
        self.n = n

    def _scores(self, t: Tensor) -> Tensor:
        others = tuple(d for d in range(t._array.ndim) if d != self.dim % t._array.ndim)
        return norm(t.detach(), self.n, others)


class CustomFromMask(BasePruningMethod):
    """mask = the given mask. ValueError for another shape.

    >>> rushlight.nn.utils.prune.CustomFromMask(rushlight.tensor([1., 0.])).prune(rushlight.tensor([3., 4.]))
    tensor([3., 0.])
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor):
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if self.mask.shape != default_mask.shape:
            raise value_error(f"the mask has shape {tuple(self.mask.shape)}, the tensor {tuple(default_mask.shape)}")
        return e.mul(default_mask, self.mask.to(default_mask.dtype))


# -- how many, and which ---------------------------------------------------------------------------


def check_amount(amount: Any) -> None:
    """TypeError unless the amount is a number, ValueError for a negative number or a fraction above 1."""
    if isinstance(amount, bool) or not isinstance(amount, (int, float)):
        raise type_error(f"Invalid type for amount: {amount}. Must be int or float.")
    if amount < 0 or (isinstance(amount, float) and amount > 1.0):
        raise value_error(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def count(amount: float, size: int) -> int:
    """The number of elements or slices to remove out of `size`. ValueError for more than `size`."""
    if isinstance(amount, int):
        if amount > size:
            raise value_error(f"amount={amount} should be smaller than the number of parameters to prune={size}")
        return amount
    return round(amount * size)


def slices_of(t: Tensor, dim: int) -> int:
    """The number of slices along `dim`. ValueError for a vector, IndexError for an invalid dimension."""
    if t._array.ndim < 2:
        raise value_error(
            f"Structured pruning can only be applied to multidimensional tensors. Found tensor of shape {t.shape} "
            f"with {t._array.ndim} dims"
        )
    if not -t._array.ndim <= dim < t._array.ndim:
        raise index_error(f"Invalid index {dim} for tensor of size {t.shape}")
    return t._array.shape[dim]


def without(mask: Tensor, scores: Tensor, n: int, largest: bool = False) -> Tensor:
    """The mask with n more elements set to 0: those with the smallest scores, or the largest."""
    made = mask.clone()
    if n:
        order = np.argsort(scores._array.ravel(), kind="stable")
        made._array.reshape(-1)[order[-n:] if largest else order[:n]] = 0
    return made


def without_slices(mask: Tensor, scores: Tensor, n: int, dim: int) -> Tensor:
    """The mask with the n slices of the least scores set to 0."""
    made = mask.clone()
    if n:
        lost = np.argsort(scores._array, kind="stable")[:n]
        made._array[(slice(None),) * (dim % made._array.ndim) + (lost,)] = 0
    return made


# -- public functions ------------------------------------------------------------------------------


def identity(module: Module, name: str) -> Module:
    """weight = weight_orig * 1: a mask of ones. Returns the module.

    >>> m = rushlight.nn.utils.prune.identity(rushlight.nn.Linear(2, 1), "weight")
    >>> m.weight_mask
    tensor([[1., 1.]])
    """
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: float) -> Module:
    """weight = weight_orig * mask; the mask is 0 at `amount` (a number or a fraction) random elements. Returns the
    module.

    >>> m = rushlight.nn.utils.prune.random_unstructured(rushlight.nn.Linear(4, 1), "weight", amount=0.5)
    >>> m.weight_mask.sum()
    tensor(2.)
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Module, name: str, amount: float, importance_scores: Tensor | None = None) -> Module:
    """weight = weight_orig * mask; the mask is 0 at the `amount` (a number or a fraction) elements of least size or
    score. Returns the module.

    >>> m = rushlight.nn.utils.prune.l1_unstructured(rushlight.nn.Linear(4, 1), "weight", amount=0.5)
    >>> int((m.weight == 0).sum()), list(m.state_dict())
    (2, ['bias', 'weight_orig', 'weight_mask'])
    """
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: float, dim: int) -> Module:
    """weight = weight_orig * mask; the mask is 0 in `amount` (a number or a fraction) random slices along `dim`.
    Returns the module.

    >>> m = rushlight.nn.utils.prune.random_structured(rushlight.nn.Linear(4, 3), "weight", amount=1, dim=0)
    >>> m.weight_mask.sum()  # 2 of 3 rows
    tensor(8.)
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Module, name: str, amount: float, n: Any, dim: int, importance_scores: Tensor | None = None
) -> Module:
    """weight = weight_orig * mask; the mask is 0 in the `amount` (a number or a fraction) slices along `dim` of least
    n-norm. Returns the module.

    >>> m = rushlight.nn.Linear(2, 2)
    >>> m.weight.data = rushlight.tensor([[3., 4.], [1., 2.]])
    >>> rushlight.nn.utils.prune.ln_structured(m, "weight", amount=1, n=2, dim=0).weight_mask
    tensor([[1., 1.],
            [0., 0.]])
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """weight = weight_orig * mask. Returns the module.

    >>> m = rushlight.nn.utils.prune.custom_from_mask(rushlight.nn.Linear(2, 1), "weight", rushlight.tensor([[1., 0.]]))
    >>> m.weight == 0
    tensor([[False,  True]])
    """
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: dict | None = None,
    **kwargs: Any,
) -> None:
    """weight_i = weight_i_orig * mask_i: elements of several parameters are removed as if they were one tensor.

    `parameters`: (module, name) pairs. `importance_scores`: {(module, name): tensor}, for any of the parameters.
    TypeError for other arguments, or a structured method.

    >>> prune, a, b = rushlight.nn.utils.prune, rushlight.nn.Linear(2, 1), rushlight.nn.Linear(2, 1)
    >>> a.weight.data, b.weight.data = rushlight.tensor([[1., 4.]]), rushlight.tensor([[2., 3.]])
    >>> prune.global_unstructured([(a, "weight"), (b, "weight")], prune.L1Unstructured, amount=2)
    >>> a.weight_mask, b.weight_mask
    (tensor([[0., 1.]]), tensor([[0., 1.]]))
    """
    if not isinstance(parameters, Iterable):
        raise type_error("global_unstructured(): parameters is not an Iterable")
    pairs = list(parameters)
    scores = {} if importance_scores is None else importance_scores
    if not isinstance(scores, dict):
        raise type_error("global_unstructured(): importance_scores must be of type dict")
    if pruning_method.PRUNING_TYPE != "unstructured":
        raise type_error(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method '
            f"{pruning_method} of type {pruning_method.PRUNING_TYPE}"
        )
    values = [scores.get((m, name), getattr(m, name)).detach() for m, name in pairs]
    masks = [getattr(m, name + "_mask", ones_like(getattr(m, name))) for m, name in pairs]
    method = pruning_method(**kwargs)
    method._tensor_name = ""
    container = PruningContainer(method)
    final = container.compute_mask(cat([reshape(v, (-1,)) for v in values]), cat([reshape(k, (-1,)) for k in masks]))
    start = 0
    for (module, name), value in zip(pairs, values):
        size = value.numel()
        custom_from_mask(module, name, reshape(final[start : start + size], value.shape))
        start += size


def remove(module: Module, name: str) -> Module:
    """weight = weight_orig * weight_mask as an ordinary parameter, without the mask. Returns the module.

    ValueError for a parameter that is not pruned.

    >>> prune, m = rushlight.nn.utils.prune, rushlight.nn.Linear(4, 1)
    >>> m = prune.remove(prune.l1_unstructured(m, "weight", amount=2), "weight")
    >>> int((m.weight == 0).sum()), list(m.state_dict())
    (2, ['bias', 'weight'])
    """
    found = hook_of(module, name)
    if found is None:
        raise value_error(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")
    key, hook = found
    hook.remove(module)
    del module._forward_pre_hooks[key]
    return module


def is_pruned(module: Module) -> bool:
    """True if a parameter of the module, or of one below it, is pruned.

    >>> prune, m = rushlight.nn.utils.prune, rushlight.nn.Linear(2, 1)
    >>> prune.is_pruned(m), prune.is_pruned(prune.identity(m, "bias"))
    (False, True)
    """
    return any(isinstance(hook, BasePruningMethod) for m in module.modules() for hook in m._forward_pre_hooks.values())
