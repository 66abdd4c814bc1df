import torch
from lion_pytorch import Lion

w = torch.tensor([1.0, -2.0], requires_grad=True)
optimizer = Lion([w], lr=0.1, weight_decay=0.01)
for _ in range(5):
    optimizer.zero_grad()
    (w**4).sum().backward()
    optimizer.step()
print(w.tolist())
