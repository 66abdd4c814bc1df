"""A GAN that learns a ring of points: two optimizers, detach, BCE with logits, and a gradient penalty."""

import math

import torch
from torch import nn

manual_seed = 999
print("Random Seed: ", manual_seed)
torch.manual_seed(manual_seed)
nz, batch = 8, 128


def weights_init(m):
    classname = m.__class__.__name__
    if classname.find("Linear") != -1:
        nn.init.normal_(m.weight.data, 0.0, 0.2)
        if m.bias is not None:
            nn.init.zeros_(m.bias.data)
    elif classname.find("BatchNorm") != -1:
        nn.init.normal_(m.weight.data, 1.0, 0.02)
        nn.init.constant_(m.bias.data, 0)


def real_batch(n):
    angle = 2 * math.pi * torch.randint(0, 8, (n,)) / 8
    centres = torch.stack([angle.cos(), angle.sin()], dim=1)
    return centres + 0.05 * torch.randn(n, 2)


generator = nn.Sequential(
    nn.Linear(nz, 32, bias=False), nn.BatchNorm1d(32), nn.ReLU(True), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 2)
)
discriminator = nn.Sequential(
    nn.Linear(2, 32),
    nn.LeakyReLU(0.2, inplace=True),
    nn.Linear(32, 32),
    nn.LeakyReLU(0.2, inplace=True),
    nn.Linear(32, 1),
)
generator.apply(weights_init)
discriminator.apply(weights_init)
print(generator)
print(discriminator)
criterion = nn.BCEWithLogitsLoss()
fixed_noise = torch.randn(4, nz)
real_label = torch.full((batch,), 1.0, dtype=torch.float)
fake_label = torch.zeros_like(real_label)
optD = torch.optim.Adam(discriminator.parameters(), lr=2e-3, betas=(0.5, 0.999))
optG = torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.5, 0.999))


def gradient_penalty(real, fake):
    eps = torch.rand(real.size(0), 1)
    x = (eps * real + (1 - eps) * fake).requires_grad_(True)
    score = discriminator(x)
    (grad,) = torch.autograd.grad(score, x, grad_outputs=torch.ones_like(score), create_graph=True, retain_graph=True)
    return ((grad.norm(2, dim=1) - 1) ** 2).mean()


for it in range(60):
    discriminator.zero_grad()
    real = real_batch(batch)
    output = discriminator(real).view(-1)
    errD_real = criterion(output, real_label)
    D_x = output.sigmoid().mean().item()
    fake = generator(torch.randn(batch, nz))
    output = discriminator(fake.detach()).view(-1)
    errD_fake = criterion(output, fake_label)
    penalty = gradient_penalty(real, fake.detach())
    errD = errD_real + errD_fake + 0.5 * penalty
    errD.backward()
    optD.step()

    generator.zero_grad()
    output = discriminator(fake).view(-1)
    errG = criterion(output, real_label)
    errG.backward()
    optG.step()
    if it % 10 == 0 or it == 59:
        print(
            f"[{it}/60]\tLoss_D: {errD.item():.4f}\tLoss_G: {errG.item():.4f}\tGP: {penalty.item():.4f}\tD(x): "
            f"{D_x:.4f}\tD(G(z)): {output.sigmoid().mean().item():.4f}"
        )
generator.eval()
with torch.no_grad():
    print(generator(fixed_noise))
print(generator[1].running_var[:6])
