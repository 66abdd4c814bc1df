"""Hooks of every kind: features by forward hooks, Grad-CAM by backward hooks, tensor hooks, hooks after
accumulation."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils import parametrizations

torch.manual_seed(3)
model = nn.Sequential(
    nn.Conv2d(1, 4, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(4, 6, 3, padding=1),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(6, 3),
)
activations, gradients = {}, {}


def save_activation(name):
    def hook(module, args, output):
        activations[name] = output.detach()

    return hook


def save_gradient(name):
    def hook(module, grad_input, grad_output):
        gradients[name] = grad_output[0]

    return hook


handles = []
for name, layer in model.named_modules():
    if isinstance(layer, (nn.Conv2d, nn.Linear)):
        handles.append(layer.register_forward_hook(save_activation(name)))
        handles.append(layer.register_full_backward_hook(save_gradient(name)))
x = torch.randn(2, 1, 8, 8)
logits = model(x)
logits[:, 1].sum().backward()
for name in activations:
    print(
        f"{name}: {tuple(activations[name].shape)} mean {activations[name].mean():.6f} grad "
        f"{tuple(gradients[name].shape)} norm {gradients[name].norm():.6f}"
    )
weights = gradients["3"].mean(dim=(2, 3), keepdim=True)
cam = F.relu((weights * activations["3"]).sum(1))
cam = cam / cam.amax(dim=(1, 2), keepdim=True).clamp(min=1e-8)
print(cam[0])
for h in handles:
    h.remove()
print(len(model[0]._forward_hooks), len(model[0]._backward_hooks))


# pre-hooks, with keywords, that change what goes in; a hook that changes what comes out
class Scale(nn.Module):
    def forward(self, x, factor=1.0):
        return x * factor


scale = Scale()
pre = scale.register_forward_pre_hook(
    lambda m, args, kwargs: (args, {"factor": kwargs["factor"] + 1}), with_kwargs=True
)
post = scale.register_forward_hook(lambda m, args, out: out - 0.5)
print(scale(torch.arange(3.0), factor=2.0))
pre.remove(), post.remove()
print(scale(torch.arange(3.0), factor=2.0))

# tensors
w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
h1 = w.register_hook(lambda g: g * 2)
h2 = w.register_hook(lambda g: print("leaf sees", g))
mid = w * w
mid.retain_grad()
mid.register_hook(lambda g: g.clamp(max=2.0))
(mid * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
print(w.grad, mid.grad)
h1.remove(), h2.remove()

# an optimizer inside backward
net = nn.Linear(4, 2)
optimizers = {p: torch.optim.SGD([p], lr=0.1, momentum=0.9) for p in net.parameters()}


def step_now(p):
    optimizers[p].step()
    optimizers[p].zero_grad()


for p in net.parameters():
    p.register_post_accumulate_grad_hook(step_now)
for i in range(4):
    loss = net(torch.ones(3, 4)).pow(2).mean()
    loss.backward()
    print(i, loss.item(), net.weight.grad)

# the graph itself
a = torch.randn(3, requires_grad=True)
out = (a.exp() * a).sum()
print(out.grad_fn.name(), [f[0].name() for f in out.grad_fn.next_functions])
mul = out.grad_fn.next_functions[0][0]
mul.register_prehook(lambda grads: print("into mul", grads))
mul.register_hook(lambda grad_inputs, grad_outputs: print("out of mul", [g.shape for g in grad_inputs]))
out.backward()

# what is saved for backward, packed
packed = []


def pack(t):
    packed.append(tuple(t.shape))
    return t.half()


with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t.float()):
    b = torch.full((2, 2), 0.5, requires_grad=True)
    c = (b.sigmoid() * b).sum()
c.backward()
print(packed, b.grad)

# hooks that remain in the state: weight norm and a module's own buffers
wn = parametrizations.weight_norm(nn.Linear(3, 2))
print(wn, sorted(wn.state_dict()))
print(wn.weight.norm(dim=1) / wn.parametrizations.weight.original0.squeeze())
try:
    model(torch.randn(2, 3, 8, 8))
except RuntimeError as e:
    print(type(e).__name__, str(e).split(",")[0].split("(")[0][:40])
