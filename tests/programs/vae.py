"""A variational autoencoder of digits: reparametrisation, BCE and KL, samples printed as text."""

import gzip
from pathlib import Path

import torch
import torch.utils.data
from torch import nn, optim
from torch.nn import functional as F

torch.manual_seed(1)
path = Path(__file__).resolve().parents[2] / "rushlight" / "data" / "digits.csv.gz"
with gzip.open(path, "rt") as f:
    pixels = torch.tensor([[int(v) for v in row.split(",")[:64]] for row in f], dtype=torch.float32).div_(16)
train_loader = torch.utils.data.DataLoader(pixels[:1200], batch_size=100, shuffle=True)
test_loader = torch.utils.data.DataLoader(pixels[1200:], batch_size=200, shuffle=False)


class VAE(nn.Module):
    def __init__(self, latent=6):
        super().__init__()
        self.fc1 = nn.Linear(64, 48)
        self.fc21 = nn.Linear(48, latent)
        self.fc22 = nn.Linear(48, latent)
        self.fc3 = nn.Linear(latent, 48)
        self.fc4 = nn.Linear(48, 64)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def decode(self, z):
        h3 = F.elu(self.fc3(z))
        return torch.sigmoid(self.fc4(h3))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 64))
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy(recon_x, x.view(-1, 64), reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + KLD


model = VAE()
optimizer = optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(1, 5):
    model.train()
    train_loss = 0
    for batch_idx, data in enumerate(train_loader):
        optimizer.zero_grad()
        recon, mu, logvar = model(data)
        loss = loss_function(recon, data, mu, logvar)
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
        if batch_idx % 6 == 0:
            print(
                "Train Epoch: {} [{}/{} ({:.0f}%)]\tLoss: {:.6f}".format(
                    epoch,
                    batch_idx * len(data),
                    len(train_loader.dataset),
                    100.0 * batch_idx / len(train_loader),
                    loss.item() / len(data),
                )
            )
    print(f"====> Epoch: {epoch} Average loss: {train_loss / len(train_loader.dataset):.4f}")
    model.eval()
    test_loss = 0
    with torch.no_grad():
        for data in test_loader:
            test_loss += loss_function(*[(r := model(data))[0], data], *r[1:]).item()
    print(f"====> Test set loss: {test_loss / len(test_loader.dataset):.4f}")
with torch.inference_mode():
    sample = model.decode(torch.randn(2, 6)).view(2, 8, 8)
print(sample.shape, sample.mean(dim=(1, 2)))
q = torch.distributions.Normal(mu, (0.5 * logvar).exp())
p = torch.distributions.Normal(0.0, 1.0)
kl = torch.distributions.kl_divergence(q, p).sum(1)
print(kl[:5], torch.allclose(kl.sum(), -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp()), rtol=1e-4))
