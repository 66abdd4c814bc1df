import kornia
import torch

x = torch.rand(1, 3, 16, 16)
print(kornia.filters.gaussian_blur2d(x, (3, 3), (1.5, 1.5)).std().item(), kornia.color.rgb_to_hsv(x).mean().item())
print(
    kornia.geometry.transform.rotate(x, torch.tensor([30.0])).sum().item(),
    kornia.losses.ssim_loss(x, x.flip(-1), 5).item(),
)
print(
    kornia.feature.harris_response(x[:, :1]).abs().sum().item(),
    kornia.augmentation.RandomHorizontalFlip(p=1.0)(x)[0, 0, 0].tolist(),
)
