import torch
from tensordict import TensorDict
from tensordict.nn import TensorDictModule, TensorDictSequential

data = TensorDict({"x": torch.randn(3, 4), "nested": {"y": torch.ones(3, 2)}}, batch_size=[3])
net = TensorDictSequential(
    TensorDictModule(torch.nn.Linear(4, 2), ["x"], ["h"]), TensorDictModule(torch.tanh, ["h"], ["out"])
)
print(net(data)["out"].tolist(), (data + 1)["nested", "y"].sum().item())
stacked = torch.stack([data, data.clone()], 0)
print(stacked.batch_size[0], stacked[1]["x"].mean().item(), data.split(2)[1].shape[0])
