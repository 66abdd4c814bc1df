import torch
from nflows.distributions.normal import StandardNormal
from nflows.flows.base import Flow
from nflows.transforms.autoregressive import MaskedAffineAutoregressiveTransform
from nflows.transforms.base import CompositeTransform
from nflows.transforms.permutations import ReversePermutation

transform = CompositeTransform([ReversePermutation(2), MaskedAffineAutoregressiveTransform(2, 8)])
flow = Flow(transform, StandardNormal([2]))
x = torch.randn(16, 2)
loss = -flow.log_prob(x).mean()
loss.backward()
print(
    loss.item(), [p.grad.abs().sum().item() for p in flow.parameters() if p.grad is not None], flow.sample(3).tolist()
)
