import torch
from peft import LoraConfig, get_peft_model

model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
lora = get_peft_model(model, LoraConfig(r=2, target_modules=["0", "2"], init_lora_weights=False))
y = lora(torch.randn(3, 4))
y.sum().backward()
print(y.tolist(), [p.grad.abs().sum().item() for p in lora.parameters() if p.requires_grad])
print(lora.merge_and_unload()(torch.ones(1, 4)).tolist())
