import torch
from pytorch_msssim import MS_SSIM, SSIM, ms_ssim, ssim
from torch import nn

clean = torch.rand(2, 3, 176, 176)
noisy = (clean + torch.randn_like(clean) * 0.1).clamp(0, 1)
print(ssim(noisy, clean, data_range=1, size_average=False).tolist(), ms_ssim(noisy, clean, data_range=1).item())
model = nn.Conv2d(3, 3, 3, padding=1)
optimizer = torch.optim.Adam(model.parameters(), 5e-3)
criterion, scales = SSIM(data_range=1, channel=3, nonnegative_ssim=True), MS_SSIM(data_range=1, channel=3)
for _ in range(3):
    out = model(noisy)
    loss = 2 - criterion(out, clean) - scales(out, clean)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item(), model.weight.grad.norm().item())
volume = torch.rand(1, 1, 16, 16, 16, requires_grad=True)
value = ssim(volume, volume.detach().flip(2), data_range=1, win_size=5)
print(value.item(), torch.autograd.grad(value, volume)[0].norm().item())
