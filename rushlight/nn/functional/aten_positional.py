"""torch's functions with the signatures of ATen, such as `torch.embedding`: another order of arguments, and a number as
`reduction`.

    import rushlight as torch
    torch.embedding(weight, indices)  # nn.functional.embedding(indices, weight)
    torch.kl_div(input, target, 2)    # nn.functional.kl_div(input, target, reduction="sum")
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.base.errors import type_error
from rushlight.core.tensor import Tensor
from rushlight.nn import functional as F

REDUCTIONS = ("none", "mean", "sum")


def embedding(
    weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Tensor:
    """weight[indices]; the row `padding_idx`, unless it is -1, gets no gradient.

    >>> rushlight.embedding(rushlight.tensor([[1., 2.], [3., 4.]]), rushlight.tensor([1]))
    tensor([[3., 4.]])
    """
    return F.embedding(
        indices, weight, None if padding_idx == -1 else padding_idx, scale_grad_by_freq=scale_grad_by_freq,
        sparse=sparse,
    )  # fmt: skip


def batch_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
    training: bool, momentum: float, eps: float, cudnn_enabled: bool,
) -> Tensor:  # fmt: skip
    """out = nn.functional.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps).

    >>> x = rushlight.tensor([[1.], [3.]])
    >>> rushlight.batch_norm(x, None, None, None, None, True, 0.1, 1e-5, False)
    tensor([[-1.0000],
            [ 1.0000]])
    """
    return F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def instance_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
    use_input_stats: bool, momentum: float, eps: float, cudnn_enabled: bool,
) -> Tensor:  # fmt: skip
    """out = nn.functional.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum,
    eps).

    >>> x = rushlight.tensor([[[1., 3.]]])
    >>> rushlight.instance_norm(x, None, None, None, None, True, 0.1, 1e-5, False)
    tensor([[[-1.0000,  1.0000]]])
    """
    return F.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


def numbered(loss: Callable[..., Tensor], names: str, example: str, shown: str = "2.") -> Callable[..., Tensor]:
    """`loss` with arguments of these names in this order; `reduction` is 0 for 'none', 1 for 'mean', 2 for 'sum'.

    `example`: arguments of the example; `shown`: its result."""
    order = names.split()

    def call(*args: Any, **kwargs: Any) -> Tensor:
        if len(args) > len(order):
            raise type_error(
                f"{loss.__name__}() takes {len(order)} positional arguments but {len(args)} were given",
                f"torch.{loss.__name__}({', '.join(order)})",
            )
        given = {**dict(zip(order, args, strict=False)), **kwargs}
        reduction = given.pop("reduction", 1)
        return loss(**given, reduction=reduction if isinstance(reduction, str) else REDUCTIONS[reduction])

    call.__name__ = call.__qualname__ = loss.__name__
    call.__doc__ = f"""out = nn.functional.{loss.__name__}(...), with arguments in the order {", ".join(order)}.

    `reduction` 0, 1, 2: none, mean, sum.

    >>> rushlight.{loss.__name__}({example})
    tensor({shown})
    """
    return call


ONES, ZEROS, COLUMN = "rushlight.ones(2)", "rushlight.zeros(2)", "rushlight.ones(2, 1)"

# fmt: off
binary_cross_entropy_with_logits = numbered(
    F.binary_cross_entropy_with_logits, "input target weight pos_weight reduction",
    f"{ZEROS}, {ONES}, None, None, 2", "1.3863")
cosine_embedding_loss = numbered(
    F.cosine_embedding_loss, "input1 input2 target margin reduction", f"{COLUMN}, {COLUMN}, -{ONES}, 0.0, 2")
ctc_loss = numbered(
    F.ctc_loss, "log_probs targets input_lengths target_lengths blank reduction zero_infinity",
    "rushlight.full((1, 1, 2), -2.), rushlight.tensor([[1]]), (1,), (1,), 0, 2")
hinge_embedding_loss = numbered(
    F.hinge_embedding_loss, "input target margin reduction", f"{ONES}, {ONES}, 1.0, 2")
kl_div = numbered(
    F.kl_div, "input target reduction", f"-{ONES}, {ONES}, 2")
margin_ranking_loss = numbered(
    F.margin_ranking_loss, "input1 input2 target margin reduction", f"{ZEROS}, {ONES}, {ONES}, 0.0, 2")
poisson_nll_loss = numbered(
    F.poisson_nll_loss, "input target log_input full eps reduction", f"{ZEROS}, {ZEROS}, True, False, 1e-8, 2")
triplet_margin_loss = numbered(
    F.triplet_margin_loss, "anchor positive negative margin p eps swap reduction",
    f"{COLUMN}, {COLUMN}, {COLUMN}, 1.0, 2, 1e-6, False, 2")
# fmt: on
