import torch
from torch import nn
from torchcrf import CRF

embed, lstm, head = nn.Embedding(20, 8), nn.LSTM(8, 8, batch_first=True, bidirectional=True), nn.Linear(16, 5)
crf = CRF(5, batch_first=True)
params = [p for m in (embed, lstm, head, crf) for p in m.parameters()]
optimizer = torch.optim.Adam(params, 0.05)
words = torch.randint(0, 20, (6, 9))
tags = words % 5
mask = torch.arange(9) < torch.tensor([9, 7, 5, 9, 3, 1])[:, None]
for _ in range(8):
    scores = head(lstm(embed(words))[0])
    loss = -crf(scores, tags, mask=mask, reduction="token_mean")
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(params, 1.0)
    optimizer.step()
    print(loss.item())
print(crf.decode(scores, mask=mask), crf.transitions.sum().item())
print(crf(scores, tags, reduction="none").tolist())
