"""Functions with derivatives of one's own: straight-through, saved tensors, several outputs, twice differentiable."""

import torch
from torch import nn
from torch.autograd import Function, gradcheck, gradgradcheck
from torch.autograd.function import once_differentiable

torch.manual_seed(0)


class LegendrePolynomial3(Function):
    """P3(x) = (5x^3 - 3x) / 2"""

    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return 0.5 * (5 * input**3 - 3 * input)

    @staticmethod
    def backward(ctx, grad_output):
        (input,) = ctx.saved_tensors
        return grad_output * 1.5 * (5 * input**2 - 1)


class Sign(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sign()

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (x.abs() <= 1)


class Polar(Function):
    """(x, y) -> (r, theta); theta's number of turns is no tensor to differentiate."""

    @staticmethod
    def forward(x, y, degrees=False):
        r, theta = torch.hypot(x, y), torch.atan2(y, x)
        return r, torch.rad2deg(theta) if degrees else theta, (theta >= 0)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, y, ctx.degrees = inputs
        r, _, positive = output
        ctx.mark_non_differentiable(positive)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x, y, r)

    @staticmethod
    def backward(ctx, gr, gt, _):
        x, y, r = ctx.saved_tensors
        gx, gy = torch.zeros_like(x), torch.zeros_like(y)
        if gr is not None:
            gx, gy = gx + gr * x / r, gy + gr * y / r
        if gt is not None:
            k = 57.29577951308232 if ctx.degrees else 1.0
            gx, gy = gx - gt * y / r**2 * k, gy + gt * x / r**2 * k
        return gx, gy, None


class GradReverse(Function):
    @staticmethod
    def forward(ctx, x, lam):
        ctx.lam = lam
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        print("needs", ctx.needs_input_grad)
        return g.neg() * ctx.lam, None


# sin(x) by a polynomial of degree 3
x = torch.linspace(-3.14159, 3.14159, 200)
y = torch.sin(x)
a, b, c, d = (torch.full((), v, requires_grad=True) for v in (0.0, -1.0, 0.0, 0.3))
for t in range(200):
    y_pred = a + b * LegendrePolynomial3.apply(c + d * x)
    loss = (y_pred - y).pow(2).sum()
    if t % 40 == 39:
        print(t, loss.item())
    loss.backward()
    with torch.no_grad():
        for p in (a, b, c, d):
            p -= 5e-6 * p.grad
            p.grad = None
print(f"Result: y = {a.item():.6f} + {b.item():.6f} * P3({c.item():.6f} + {d.item():.6f} x)")
print(y_pred.grad_fn.next_functions[1][0].next_functions[1][0].name())

p3 = LegendrePolynomial3.apply
z = torch.randn(5, dtype=torch.double, requires_grad=True)
print(gradcheck(p3, (z,)), gradgradcheck(p3, (z,)))
(first,) = torch.autograd.grad(p3(z).sum(), z, create_graph=True)
(second,) = torch.autograd.grad(first.sum(), z)
print(second - 15 * z.detach())

# a network of signs, trained straight through
layer = nn.Linear(6, 4)
opt = torch.optim.SGD(layer.parameters(), lr=0.1)
inputs, targets = torch.randn(16, 6), torch.randint(0, 4, (16,))
for i in range(5):
    loss = nn.functional.cross_entropy(Sign.apply(layer(inputs)), targets)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"{loss.item():.6f} {layer.weight.grad.abs().sum().item():.6f}")

u, v = torch.tensor([3.0, -1.0], requires_grad=True), torch.tensor([4.0, 1.0], requires_grad=True)
r, theta, positive = Polar.apply(u, v, True)
print(r, theta, positive, positive.requires_grad, theta.grad_fn is r.grad_fn)
r.sum().backward(retain_graph=True)
print(u.grad, v.grad)
(r * theta).sum().backward()
print(u.grad, v.grad)

f = torch.ones(3, requires_grad=True)
GradReverse.apply(f, 0.5).mul(torch.arange(3.0)).sum().backward()
print(f.grad)
s = torch.tensor([0.5], requires_grad=True)
(g,) = torch.autograd.grad(Sign.apply(s * 2), s, create_graph=True)
try:
    g.backward()
except RuntimeError as e:
    print("RuntimeError:", str(e).splitlines()[0])
