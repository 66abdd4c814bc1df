import torch
from beartype import beartype
from jaxtyping import Float, Int, TypeCheckError, jaxtyped
from torch import Tensor


@jaxtyped(typechecker=beartype)
def pick(x: Float[Tensor, "n d"], i: Int[Tensor, " k"]) -> Float[Tensor, "k d"]:  # noqa: F722
    return x[i]


print(pick(torch.ones(3, 2), torch.tensor([0, 2])).sum().item())
try:
    pick(torch.ones(3), torch.tensor([0]))
except TypeCheckError:
    print(1)
