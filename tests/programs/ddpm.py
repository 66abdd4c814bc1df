"""Denoising diffusion of points on two moons: a beta schedule, sinusoidal times, an EMA of the weights, sampling."""

import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
T = 40


def make_moons(n):
    t = torch.rand(n) * math.pi
    upper = torch.stack([torch.cos(t), torch.sin(t)], -1)
    lower = torch.stack([1 - torch.cos(t), 0.5 - torch.sin(t)], -1)
    pick = torch.bernoulli(torch.full((n, 1), 0.5))
    return torch.where(pick > 0, upper, lower) + 0.05 * torch.randn(n, 2)


def extract(a, t, shape):
    return a.gather(-1, t).reshape(t.shape[0], *((1,) * (len(shape) - 1)))


betas = torch.linspace(1e-4**0.5, 0.2**0.5, T, dtype=torch.float64) ** 2
alphas = 1.0 - betas
alphas_bar = torch.cumprod(alphas, dim=0)
alphas_bar_prev = F.pad(alphas_bar[:-1], (1, 0), value=1.0)
posterior_variance = betas * (1.0 - alphas_bar_prev) / (1.0 - alphas_bar)
print(betas[:4], alphas_bar[-1], posterior_variance.clamp(min=1e-20).log()[:3])


class SinusoidalEmbedding(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, t):
        half = self.dim // 2
        freq = torch.exp(-math.log(10000) * torch.arange(half) / (half - 1))
        emb = t[:, None] * freq[None, :]
        return torch.cat((emb.sin(), emb.cos()), dim=-1)


class Denoiser(nn.Module):
    def __init__(self, dim=16, width=64):
        super().__init__()
        self.time = nn.Sequential(
            SinusoidalEmbedding(dim), nn.Linear(dim, width), nn.SiLU(), nn.Linear(width, 2 * width)
        )
        self.inp, self.mid, self.out = nn.Linear(2, width), nn.Linear(width, width), nn.Linear(width, 2)
        self.norm = nn.GroupNorm(4, width)
        nn.init.zeros_(self.out.weight)

    def forward(self, x, t):
        scale, shift = self.time(t).chunk(2, dim=-1)
        h = F.silu(self.norm(self.inp(x)) * (scale + 1) + shift)
        h = h + F.mish(self.mid(h))
        return self.out(h)


def q_sample(x0, t, noise):
    a = extract(alphas_bar.sqrt().float(), t, x0.shape)
    s = extract((1 - alphas_bar).sqrt().float(), t, x0.shape)
    return a * x0 + s * noise


@torch.no_grad()
def p_sample_loop(model, n):
    x = torch.randn(n, 2)
    for i in reversed(range(T)):
        t = torch.full((n,), i, dtype=torch.long)
        eps = model(x, t)
        mean = (x - betas[i].float() / (1 - alphas_bar[i]).sqrt().float() * eps) / alphas[i].sqrt().float()
        x = mean + posterior_variance[i].sqrt().float() * torch.randn_like(x) if i > 0 else mean
        if i % 10 == 0:
            print(f"  t={i:2d} mean {x.mean():+.5f} std {x.std():.5f}")
    return x


model = Denoiser()
ema = copy.deepcopy(model).requires_grad_(False)
print(model)
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
data = make_moons(512)
for step in range(100):
    x0 = data[torch.randperm(len(data))[:128]]
    t = torch.randint(0, T, (x0.shape[0],))
    noise = torch.randn_like(x0)
    loss = F.mse_loss(model(q_sample(x0, t, noise), t), noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for p, q in zip(ema.parameters(), model.parameters()):
            p.lerp_(q, 0.1)
    if step % 20 == 0 or step == 99:
        print(f"step {step:3d} loss {loss.item():.6f}")
samples = p_sample_loop(ema, 64)
print(samples[:4], torch.cdist(samples, data).min(dim=1).values.median(), sep="\n")
