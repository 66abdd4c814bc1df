import torch
from x_transformers import Decoder, TransformerWrapper

model = TransformerWrapper(
    num_tokens=20, max_seq_len=16, attn_layers=Decoder(dim=16, depth=2, heads=2, rotary_pos_emb=True)
)
tokens = torch.randint(20, (2, 8))
y = model(tokens)
loss = torch.nn.functional.cross_entropy(y.transpose(1, 2), tokens)
loss.backward()
print(loss.item(), y.std().item(), sum(p.grad.abs().sum().item() for p in model.parameters() if p.grad is not None))
