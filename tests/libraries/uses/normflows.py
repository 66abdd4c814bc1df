import normflows as nf
import torch

base = nf.distributions.DiagGaussian(2)
flows = [nf.flows.AffineCouplingBlock(nf.nets.MLP([1, 8, 2], init_zeros=False)), nf.flows.Permute(2, "swap")]
model = nf.NormalizingFlow(base, flows)
x = torch.randn(16, 2)
loss = model.forward_kld(x)
loss.backward()
print(loss.item(), model.sample(3)[0].tolist())
