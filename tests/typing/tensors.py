"""Creation, operators, methods, decompositions, transforms, as the type checkers read them."""

from typing import assert_type

import rushlight as torch
from rushlight import Tensor
from rushlight.func import grad, jacrev, vmap

x = torch.rand(3, 4, requires_grad=True)
assert_type(x, Tensor)
assert_type(torch.zeros(3), Tensor)
assert_type(torch.ones(2, 3, dtype=torch.float64), Tensor)
assert_type(torch.arange(10), Tensor)
assert_type(torch.linspace(0, 1, 5), Tensor)
assert_type(torch.eye(3), Tensor)
assert_type(torch.full((2, 2), 1.5), Tensor)
assert_type(torch.zeros_like(x), Tensor)
assert_type(torch.randn_like(x), Tensor)
assert_type(torch.randperm(5), Tensor)
assert_type(torch.tensor([1.0, 2.0]), Tensor)
assert_type(torch.from_numpy(torch.ones(2).numpy()), Tensor)
assert_type(torch.cat([x, x]), Tensor)
assert_type(torch.stack([x, x], dim=1), Tensor)
assert_type(torch.where(x > 0, x, 0.0), Tensor)
assert_type(torch.einsum("ij,kj->ik", x, x), Tensor)
assert_type(x + 1, Tensor)
assert_type(2 * x, Tensor)
assert_type(x @ x.T, Tensor)
assert_type(-x, Tensor)
assert_type(x > 0, Tensor)
assert_type(x[0, 1:], Tensor)
assert_type(x.sum(), Tensor)
assert_type(x.mean(dim=0, keepdim=True), Tensor)
assert_type(x.max(dim=1).values, Tensor)
assert_type(x.reshape(2, 6), Tensor)
assert_type(x.view(-1), Tensor)
assert_type(x.permute(1, 0), Tensor)
assert_type(x.detach().clone(), Tensor)
assert_type(x.to("cpu"), Tensor)
assert_type(x.float(), Tensor)
assert_type(x.requires_grad, bool)
assert_type(x.grad, Tensor | None)
assert_type(x.shape, torch.Size)
assert_type(x.dtype, torch.dtype)
assert_type(x.ndim, int)
assert_type(x.numel(), int)
assert_type(len(x), int)
assert_type(x.tanh().pow(2).exp(), Tensor)
u, s, vh = torch.linalg.svd(x)
assert_type(u, Tensor)
assert_type(s, Tensor)
assert_type(torch.linalg.solve(x @ x.T, x), Tensor)
assert_type(torch.linalg.norm(x), Tensor)
assert_type(torch.fft.rfft(x), Tensor)
assert_type(torch.softmax(x, dim=-1), Tensor)
values, indices = torch.topk(x, 2)
assert_type(values, Tensor)
assert_type(indices, Tensor)
(gradient,) = torch.autograd.grad(x.sum(), [x])
assert_type(gradient, Tensor)


@torch.no_grad()
def predict(x: Tensor) -> Tensor:
    return x * 2


assert_type(predict(x), Tensor)


def loss(w: Tensor) -> Tensor:
    return (w * w).sum()


assert_type(grad(loss)(x), Tensor)
jacobian = jacrev(loss)(x)
batched = vmap(loss)(x)
assert_type(batched, Tensor)
with torch.enable_grad(), torch.inference_mode(False):
    pass
generator = torch.Generator().manual_seed(1)
assert_type(torch.multinomial(x.softmax(1), 1, generator=generator), Tensor)
print(torch.is_tensor(x), torch.allclose(x, x), torch.get_default_dtype())
