import snntorch as snn
import torch
from snntorch import functional as SF
from snntorch import spikegen, surrogate, utils
from torch import nn

x, label = torch.rand(8, 1, 8, 8), torch.randint(0, 4, (8,))
grad = surrogate.fast_sigmoid(slope=10)
net = nn.Sequential(
    nn.Conv2d(1, 4, 3),
    snn.Leaky(beta=0.9, spike_grad=grad, init_hidden=True, learn_beta=True),
    nn.Flatten(),
    nn.Linear(144, 12),
    snn.Synaptic(alpha=0.8, beta=0.7, spike_grad=surrogate.atan(), init_hidden=True),
    nn.Linear(12, 4),
    snn.Leaky(beta=0.8, spike_grad=grad, init_hidden=True, output=True, reset_mechanism="zero"),
)
optimizer = torch.optim.Adam(net.parameters(), 5e-3)
spikes = spikegen.rate(x, num_steps=6)
print(
    spikes.sum().item(),
    spikegen.latency(x, num_steps=5, normalize=True, linear=True).sum().item(),
    spikegen.delta(x.flatten(1), threshold=0.1).sum().item(),
)
for _ in range(4):
    utils.reset(net)
    out, membrane = zip(*(net(s) for s in spikes))
    out, membrane = torch.stack(out), torch.stack(membrane)
    loss = SF.ce_rate_loss()(out, label) + 0.1 * SF.ce_max_membrane_loss()(membrane, label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item(), out.sum().item(), SF.accuracy_rate(out, label))
cell = snn.RLeaky(beta=0.9, linear_features=5)
spk, mem = cell.init_rleaky()
for _ in range(3):
    spk, mem = cell(torch.rand(2, 5), spk, mem)
print(mem.tolist())
