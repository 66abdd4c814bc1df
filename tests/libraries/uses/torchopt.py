import torch
import torchopt
from torch import nn

x = torch.randn(32, 4)
y = x.sum(1, keepdim=True).sin()
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))

# functional
model = torch.func.functional_call
params = dict(net.named_parameters())
optimizer = torchopt.chain(
    torchopt.clip.clip_grad_norm(1.0), torchopt.adamw(torchopt.schedule.linear_schedule(1e-1, 1e-2, 5, 1))
)
state = optimizer.init(params)
for _ in range(4):
    loss = nn.functional.mse_loss(model(net, params, (x,)), y)
    grads = dict(zip(params, torch.autograd.grad(loss, tuple(params.values()))))
    updates, state = optimizer.update(grads, state, params=params, inplace=False)
    params = torchopt.apply_updates(params, updates, inplace=False)
    print(loss.item())

# differentiable
meta = nn.Parameter(torch.tensor(1.0))
inner = torchopt.MetaAdam(net, lr=0.05)
start = torchopt.extract_state_dict(net)
for _ in range(3):
    inner.step(nn.functional.mse_loss(net(x) * meta, y))
outer = nn.functional.mse_loss(net(x), y)
print(outer.item(), torch.autograd.grad(outer, meta)[0].item())
torchopt.recover_state_dict(net, start)
print(nn.functional.mse_loss(net(x), y).item())
