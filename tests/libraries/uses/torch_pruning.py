import torch
import torch_pruning as tp
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16)
        self.one, self.two = nn.Conv2d(16, 16, 3, padding=1), nn.Conv2d(16, 16, 3, padding=1)
        self.head = nn.Linear(32, 4)

    def forward(self, x):
        x = self.norm(self.stem(x)).relu()
        y = x + self.two(self.one(x).relu())
        return self.head(torch.cat([y, x], 1).mean((2, 3)))


x, label = torch.randn(4, 3, 12, 12), torch.randint(0, 4, (4,))
for importance in (tp.importance.GroupMagnitudeImportance(p=2), tp.importance.GroupTaylorImportance()):
    model = Net()
    pruner = tp.pruner.BasePruner(
        model, x, importance=importance, pruning_ratio=0.5, ignored_layers=[model.head], iterative_steps=2
    )
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    print(*tp.utils.count_ops_and_params(model, x))
    for _ in range(2):
        nn.functional.cross_entropy(model(x), label).backward()
        pruner.step()
        optimizer = torch.optim.SGD(model.parameters(), 0.05)
        loss = nn.functional.cross_entropy(model(x), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(*tp.utils.count_ops_and_params(model, x), [*model.one.weight.shape], loss.item())
graph = tp.DependencyGraph().build_dependency(model, x)
group = graph.get_pruning_group(model.stem, tp.prune_conv_out_channels, idxs=[0, 2])
print(len(group), graph.check_pruning_group(group) + 0)
group.prune()
print(model.head.in_features, model(x).sum().item())
