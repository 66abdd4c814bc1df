import torch
from transformers import BertConfig, BertModel, GPT2Config, GPT2LMHeadModel

tokens = torch.randint(50, (2, 8))
config = GPT2Config(vocab_size=50, n_embd=16, n_layer=2, n_head=2, n_positions=32)
model = GPT2LMHeadModel(config).eval()
result = model(tokens, labels=tokens)
result.loss.backward()
print(result.loss.item(), model.transformer.wte.weight.grad.abs().sum().item())
print(model.generate(tokens[:1], max_new_tokens=5, do_sample=False, pad_token_id=0).tolist())
bert = BertModel(
    BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
).eval()
print(bert(tokens).last_hidden_state.abs().mean().item())
