"""A multilayer perceptron on handwritten digits: Dataset, DataLoader, random_split, dropout, a confusion matrix."""

import argparse
import gzip
from pathlib import Path

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset, random_split

DATA = Path(__file__).resolve().parents[2] / "rushlight" / "data" / "digits.csv.gz"


class Digits(Dataset):
    def __init__(self, path, transform=None):
        with gzip.open(path, "rt") as file:
            rows = [[int(x) for x in line.split(",")] for line in file]
        table = torch.tensor(rows)
        self.images = table[:, :-1].float() / 16
        self.labels = table[:, -1]
        self.transform = transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, idx):
        x = self.images[idx]
        return (self.transform(x) if self.transform else x), self.labels[idx]


class Net(nn.Module):
    def __init__(self, hidden=64, p=0.2):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(64, hidden),
            nn.ReLU(),
            nn.Dropout(p),
            nn.Linear(hidden, hidden // 2),
            nn.LeakyReLU(0.1),
            nn.LayerNorm(hidden // 2),
        )
        self.head = nn.Linear(hidden // 2, 10)

    def forward(self, x):
        return self.head(self.layers(x))


def train_one_epoch(model, loader, criterion, optimizer, device):
    model.train()
    running, correct, total = 0.0, 0, 0
    for inputs, targets in loader:
        inputs, targets = inputs.to(device), targets.to(device)
        optimizer.zero_grad()
        outputs = model(inputs)
        loss = criterion(outputs, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optimizer.step()
        running += loss.item() * inputs.size(0)
        _, predicted = outputs.max(1)
        total += targets.size(0)
        correct += predicted.eq(targets).sum().item()
    return running / total, 100.0 * correct / total


@torch.no_grad()
def evaluate(model, loader, criterion, device):
    model.eval()
    loss, hits = 0.0, 0
    confusion = torch.zeros(10, 10, dtype=torch.long)
    for x, y in loader:
        out = model(x.to(device))
        loss += criterion(out, y.to(device)).item() * len(x)
        pred = out.argmax(dim=1)
        hits += (pred == y).sum().item()
        for t, p in zip(y, pred):
            confusion[t, p] += 1
    return loss / len(loader.dataset), hits / len(loader.dataset), confusion


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=3e-3)
    args = parser.parse_args()

    torch.manual_seed(42)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    print(f"Using {device} device")
    data = Digits(DATA, transform=lambda x: (x - 0.3) / 0.35)
    train_set, test_set = random_split(data, [0.8, 0.2])
    print(len(train_set), len(test_set), test_set.indices[:5])
    train_loader = DataLoader(train_set, batch_size=args.batch_size, shuffle=True)
    test_loader = DataLoader(test_set, batch_size=256)
    x, y = next(iter(train_loader))
    print(f"Feature batch shape: {x.size()}\nLabels batch shape: {y.size()}\n{y[:12]}")

    model = Net().to(device)
    print(model)
    for name, param in model.named_parameters():
        print(f"{name:20} {str(param.size()):24} {param.numel()}")
    print("trainable:", sum(p.numel() for p in model.parameters() if p.requires_grad))
    criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
    optimizer = optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-2)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.epochs)
    for epoch in range(1, args.epochs + 1):
        loss, acc = train_one_epoch(model, train_loader, criterion, optimizer, device)
        test_loss, test_acc, confusion = evaluate(model, test_loader, criterion, device)
        scheduler.step()
        print(
            f"Epoch {epoch:02d} | train loss {loss:.5f} acc {acc:.2f}% | test loss {test_loss:.5f} acc {test_acc:.4f} "
            f"| lr {scheduler.get_last_lr()[0]:.6f}"
        )
    print(confusion)
    print(confusion.diag().sum() / confusion.sum())


if __name__ == "__main__":
    main()
