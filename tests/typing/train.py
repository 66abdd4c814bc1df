"""An ordinary training program, as the type checkers read it."""

from typing import assert_type

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import Tensor, nn, optim
from rushlight.utils.data import DataLoader, Dataset, TensorDataset, random_split


class Net(nn.Module):
    def __init__(self, hidden: int = 16) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, kernel_size=3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.drop = nn.Dropout(0.1)
        self.body = nn.Sequential(nn.Linear(4 * 64, hidden), nn.ReLU(), nn.Linear(hidden, 10))

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(self.norm(self.conv(x))), 1)
        assert_type(x, Tensor)
        return self.body(self.drop(x.flatten(1)))


class Squares(Dataset[tuple[Tensor, Tensor]]):
    def __len__(self) -> int:
        return 10

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        x = torch.tensor(float(index))
        return x, x * x


def train() -> float:
    torch.manual_seed(0)
    x = torch.randn(32, 1, 8, 8)
    assert_type(x, Tensor)
    y = torch.randint(0, 10, (32,))
    assert_type(y, Tensor)
    data = TensorDataset(x, y)
    training, held_out = random_split(data, [24, 8])
    loader = DataLoader(training, batch_size=8, shuffle=True)
    model = Net()
    optimizer = optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-2)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10)
    criterion = nn.CrossEntropyLoss()
    total = 0.0
    for _ in range(2):
        model.train()
        for images, labels in loader:
            optimizer.zero_grad()
            scores = model(images)
            loss = criterion(scores, labels)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item()
        scheduler.step()
    model.eval()
    with torch.no_grad():
        scores = model(x)
        loss = F.cross_entropy(scores, y)
        assert_type(loss, Tensor)
        correct = (scores.argmax(1) == y).float().mean()
        assert_type(correct, Tensor)
    torch.save(model.state_dict(), "weights.pt")
    model.load_state_dict(torch.load("weights.pt"))
    for name, parameter in model.named_parameters():
        assert_type(name, str)
        assert_type(parameter, nn.Parameter)
    return total


for first, second in DataLoader(Squares()):
    assert_type(first, Tensor)
    assert_type(second, Tensor)
