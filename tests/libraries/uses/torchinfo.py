import torch
import torchinfo

model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Flatten(), torch.nn.Linear(4 * 36, 5)
)
result = torchinfo.summary(model, (2, 3, 8, 8), verbose=0)
print(result.total_params, result.total_mult_adds, result.total_output_bytes)
print(str(result))
