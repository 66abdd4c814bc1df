import torch
from rotary_embedding_torch import RotaryEmbedding

rotary = RotaryEmbedding(8, use_xpos=True)
q, k = rotary.rotate_queries_and_keys(torch.randn(1, 2, 6, 16), torch.randn(1, 2, 6, 16))
print(q.tolist(), k.sum().item())
