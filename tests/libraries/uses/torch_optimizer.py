import torch
import torch_optimizer

for name in ("RAdam", "Lamb", "Yogi", "AdaBound", "DiffGrad", "Lookahead"):
    w = torch.tensor([1.0, -2.0], requires_grad=True)
    optimizer = (
        torch_optimizer.Lookahead(torch.optim.SGD([w], 0.1))
        if name == "Lookahead"
        else getattr(torch_optimizer, name)([w], lr=0.1)
    )
    for _ in range(7):
        optimizer.zero_grad()
        (w**4).sum().backward()
        optimizer.step()
    print(w.tolist())
