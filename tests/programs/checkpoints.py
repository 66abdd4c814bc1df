"""Saving and going on: state dicts, checkpoints with the optimizer and the random state, partial loading."""

import io
import os
import tempfile
from collections import OrderedDict

import torch
import torch.nn as nn

torch.manual_seed(11)


class Encoder(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, 5, bias=False)  # the norm takes it away: its gradient is noise
        self.norm = nn.BatchNorm1d(5)
        self.register_buffer("seen", torch.zeros((), dtype=torch.long))
        self.register_buffer("scratch", torch.zeros(2), persistent=False)

    def forward(self, x):
        self.seen += len(x)
        return torch.relu(self.norm(self.lin(x)))


def build():
    return nn.Sequential(OrderedDict(encoder=Encoder(4), drop=nn.Dropout(0.25), head=nn.Linear(5, 2)))


def train(model, optimizer, scheduler, steps):
    model.train()
    for _ in range(steps):
        x = torch.randn(8, 4)
        target = (x.sum(1) > 0).long()
        loss = nn.functional.cross_entropy(model(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        print(f"  {loss.item():.6f}")


def setup():
    model = build()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    return model, optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 3, gamma=0.5)


model, optimizer, scheduler = setup()
train(model, optimizer, scheduler, 4)
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "checkpoint.pth")
    torch.save(
        {
            "epoch": 4,
            "model_state_dict": model.state_dict(),
            "optimizer_state_dict": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "rng": torch.get_rng_state(),
            "note": ("a", 1.5, None),
        },
        path,
    )
    print("went on:")
    train(model, optimizer, scheduler, 3)
    end = {k: v.clone() for k, v in model.state_dict().items()}

    checkpoint = torch.load(path, map_location="cpu", weights_only=True)
print(list(checkpoint), checkpoint["epoch"], checkpoint["note"], checkpoint["rng"].shape)
print(type(checkpoint["model_state_dict"]).__name__, checkpoint["scheduler"]["last_epoch"])
model, optimizer, scheduler = setup()
print(model.load_state_dict(checkpoint["model_state_dict"]))
optimizer.load_state_dict(checkpoint["optimizer_state_dict"])
scheduler.load_state_dict(checkpoint["scheduler"])
torch.set_rng_state(checkpoint["rng"])
print("resumed:")
train(model, optimizer, scheduler, 3)
print("the same end:", all(torch.equal(v, end[k]) for k, v in model.state_dict().items()))
for name, value in model.state_dict().items():
    print(f"{name:32s}{str(value.dtype):16s}{tuple(value.shape)}")
state = optimizer.state_dict()
print(state["param_groups"], sorted(state["state"][0]), state["state"][0]["step"])

# parts of it
partial = {k.replace("encoder.", ""): v for k, v in model.state_dict().items() if k.startswith("encoder.")}
encoder = Encoder(4)
print(encoder.load_state_dict(partial, strict=True))
print(build().load_state_dict({"head.weight": torch.zeros(2, 5), "tail.weight": torch.zeros(1)}, strict=False))
for wrong in ({"head.weight": torch.zeros(3, 5)}, {"nothing": torch.ones(1)}):
    try:
        nn.Sequential(OrderedDict(head=nn.Linear(5, 2, bias=False))).load_state_dict(wrong)
    except RuntimeError as e:
        print(*str(e).splitlines()[:2], sep="\n")
for p in model.encoder.parameters():
    p.requires_grad_(False)
print([n for n, p in model.named_parameters() if p.requires_grad])

# anything that holds tensors, and what shares memory
buffer = io.BytesIO()
base = torch.arange(6.0)
torch.save(
    [
        base,
        base[2:4],
        base.view(2, 3).t(),
        torch.tensor([1 + 2j]),
        torch.tensor([1.5]).bfloat16(),
        nn.Parameter(torch.ones(1)),
    ],
    buffer,
)
buffer.seek(0)
a, b, c, z, h, p = torch.load(buffer)
b.fill_(9)
print(a, c, c.stride(), z, h, p, sep="\n")
buffer = io.BytesIO()
torch.save(model, buffer)
buffer.seek(0)
whole = torch.load(buffer, weights_only=False).eval()
model.eval()
x = torch.randn(3, 4)
print(whole(x), torch.equal(whole(x), model(x)))
