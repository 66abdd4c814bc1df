"""MAML on sine waves: gradients through gradient steps, by create_graph, and Hessians."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(7)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l1, self.l2, self.l3 = nn.Linear(1, 20), nn.Linear(20, 20), nn.Linear(20, 1)

    def forward(self, x):
        return self.l3(F.relu(self.l2(F.relu(self.l1(x)))))


def forward(x, params):
    x = F.linear(x, params[0], params[1]).relu()
    x = F.linear(x, params[2], params[3]).relu()
    return F.linear(x, params[4], params[5])


def sample_task(k=10):
    amplitude, phase = torch.empty(1).uniform_(0.1, 5.0), torch.empty(1).uniform_(0, math.pi)
    x = torch.empty(2, k, 1).uniform_(-5, 5)
    y = amplitude * torch.sin(x + phase)
    return x[0], y[0], x[1], y[1]


net = Net()
meta = torch.optim.Adam(net.parameters(), lr=1e-2)
for it in range(15):
    meta.zero_grad()
    losses, first = [], []
    for _ in range(4):
        xs, ys, xq, yq = sample_task()
        params = list(net.parameters())
        for inner in range(2):
            loss = F.mse_loss(forward(xs, params), ys)
            grads = torch.autograd.grad(loss, params, create_graph=True)
            params = [p - 0.02 * g for p, g in zip(params, grads)]
            if inner == 0:
                first.append(loss.detach())
        losses.append(F.mse_loss(forward(xq, params), yq))
    meta_loss = torch.stack(losses).mean()
    meta_loss.backward()
    meta.step()
    if it % 2 == 0:
        norm = torch.cat([p.grad.flatten() for p in net.parameters()]).norm()
        print(f"Iteration {it:3d} before {torch.stack(first).mean():.5f} after {meta_loss.item():.5f} grad {norm:.5f}")

print("second order or not:")
xs, ys, xq, yq = sample_task()
for create_graph in (True, False):
    net.zero_grad()
    params = tuple(net.parameters())
    grads = torch.autograd.grad(F.mse_loss(net(xs), ys), params, create_graph=create_graph)
    fast = [p - 0.02 * g for p, g in zip(params, grads)]
    F.mse_loss(forward(xq, fast), yq).backward()
    print(create_graph, net.l3.weight.grad[0, :5], net.l3.bias.grad)

print("by the whole Jacobian:")
names, values = zip(*net.l3.named_parameters())


def loss_of(*values):
    return F.mse_loss(F.linear(net.l2(net.l1(xs).relu()).relu(), *values), ys)


hessian = torch.autograd.functional.hessian(loss_of, values)
print({(a, b): tuple(hessian[i][j].shape) for i, a in enumerate(names) for j, b in enumerate(names)})
print(hessian[1][1], hessian[1][0][0, 0, :6], sep="\n")
direction = tuple(torch.ones_like(v) for v in values)
value, product = torch.autograd.functional.hvp(loss_of, values, direction)
print(value, product[0][0, :6], product[1])
