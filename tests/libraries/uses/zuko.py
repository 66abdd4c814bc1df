import torch
import zuko

flow = zuko.flows.NSF(2, 1, transforms=2, hidden_features=(16,))
x, c = torch.randn(32, 2), torch.randn(32, 1)
optimizer = torch.optim.Adam(flow.parameters(), 1e-2)
for _ in range(3):
    loss = -flow(c).log_prob(x).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
print(flow(c[0]).sample((3,)).tolist())
