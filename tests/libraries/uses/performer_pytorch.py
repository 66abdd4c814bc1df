import torch
from performer_pytorch import PerformerLM, SelfAttention
from torch import nn

model = PerformerLM(
    num_tokens=30,
    max_seq_len=24,
    dim=16,
    depth=2,
    heads=2,
    dim_head=8,
    nb_features=12,
    feature_redraw_interval=2,
    reversible=True,
    local_attn_heads=1,
    local_window_size=6,
    ff_glu=True,
    causal=False,
)
tokens = torch.randint(0, 30, (2, 24))
mask = torch.ones_like(tokens).bool()
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
for _ in range(4):
    loss = nn.functional.cross_entropy(model(tokens, mask=mask).transpose(1, 2), tokens)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
model.fix_projection_matrices_()
print(model.eval()(tokens).abs().sum().item())
attention = SelfAttention(dim=16, heads=2, dim_head=8, causal=False, generalized_attention=True)
x = torch.randn(1, 20, 16, requires_grad=True)
out = attention(x)
out.pow(2).sum().backward()
print(out.norm().item(), x.grad.norm().item())
