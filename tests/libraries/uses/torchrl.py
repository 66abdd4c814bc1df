import os

os.environ["RL_LOGGING_LEVEL"] = "WARNING"  # else lines with the time on standard output
import torch
from tensordict import TensorDict
from torchrl.data import LazyTensorStorage, ReplayBuffer
from torchrl.objectives.value.functional import generalized_advantage_estimate

buffer = ReplayBuffer(storage=LazyTensorStorage(20), batch_size=4)
buffer.extend(TensorDict({"x": torch.arange(10.0)}, batch_size=[10]))
print(len(buffer), buffer.sample()["x"].shape[0])
reward, value = torch.randn(1, 6, 1), torch.randn(1, 6, 1)
done = torch.zeros(1, 6, 1, dtype=torch.bool)
print(generalized_advantage_estimate(0.9, 0.8, value, value.roll(-1, 1), reward, done, done)[0].tolist())
