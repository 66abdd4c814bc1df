"""Modules, functions of one's own, and tools around the model, as the type checkers read them."""

from typing import Any, assert_type

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import Tensor, nn, optim
from rushlight.autograd import Function
from rushlight.autograd.function import FunctionCtx
from rushlight.utils.data import DataLoader, TensorDataset

linear = nn.Linear(4, 2)
assert_type(linear(torch.zeros(1, 4)), Tensor)
assert_type(linear.weight, nn.Parameter)
assert_type(linear.in_features, int)
assert_type(nn.ReLU()(torch.zeros(1)), Tensor)
assert_type(nn.Sequential(linear, nn.Tanh())(torch.zeros(1, 4)), Tensor)
assert_type(nn.Embedding(10, 3)(torch.arange(3)), Tensor)
assert_type(nn.CrossEntropyLoss()(torch.zeros(1, 2), torch.tensor([1])), Tensor)
assert_type(nn.ELU(alpha=2.0, inplace=True)(torch.zeros(1)), Tensor)
assert_type(nn.AvgPool2d(2, stride=1)(torch.zeros(1, 4, 4)), Tensor)
assert_type(nn.CTCLoss(blank=1, reduction="sum")(torch.zeros(2, 1, 3), torch.ones(1), (2,), (1,)), Tensor)
assert_type(nn.Dropout().p, Any)
assert_type(F.max_pool2d(torch.zeros(1, 1, 4, 4), 2), Tensor)
assert_type(F.max_pool2d(torch.zeros(1, 1, 4, 4), 2, return_indices=True), tuple[Tensor, Tensor])
assert_type(F.relu(torch.zeros(1)), Tensor)
assert_type(F.one_hot(torch.arange(3)), Tensor)
assert_type(F.log_softmax(torch.zeros(2, 3), dim=1), Tensor)


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        self.scale = nn.Parameter(torch.ones(width))
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        for layer in self.layers:
            x = x + torch.tanh(layer(x))
        return x * self.scale if mask is None else x.masked_fill(mask, 0.0)


class Scaled(nn.LeakyReLU):
    scale: Tensor

    def __init__(self, scale: float) -> None:
        super().__init__(0.1, inplace=True)
        self.register_buffer("scale", torch.tensor(scale))

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input) * self.scale


assert_type(Scaled(2.0)(torch.zeros(1)), Tensor)
block = Block(4)
assert_type(block(torch.zeros(2, 4)), Tensor)
assert_type(block.scale, nn.Parameter)
assert_type(block.train(), Block)
assert_type(block.to("cpu"), Block)
assert_type(next(block.parameters()), nn.Parameter)
assert_type(list(block.modules()), list[nn.Module])


class Cube(Function):
    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return 3 * x**2 * grad


cubed = Cube.apply(torch.ones(2, requires_grad=True))
optimizer = optim.SGD(block.parameters(), lr=0.1, momentum=0.9)
optimizer.param_groups[0]["lr"] = 0.01
schedule = optim.lr_scheduler.StepLR(optimizer, step_size=10, gamma=0.1)
schedule.step()
for images, labels in DataLoader(TensorDataset(torch.zeros(4, 2), torch.arange(4)), batch_size=2):
    assert_type(images, Tensor)
    assert_type(labels, Tensor)
torch.nn.init.xavier_uniform_(linear.weight)
torch.set_default_dtype(torch.float64)
step = torch.compile(block)
with torch.autocast("cpu", dtype=torch.bfloat16), torch.set_grad_enabled(False):
    pass
torch.viz.print_graph(block(torch.zeros(1, 4)).sum())
