import segmentation_models_pytorch as smp
import torch

model = smp.Unet("resnet18", encoder_weights=None, classes=2).eval()
y = model(torch.randn(1, 3, 64, 64))
loss = smp.losses.DiceLoss("multiclass")(y, torch.randint(2, (1, 64, 64)))
loss.backward()
print(y.mean().item(), loss.item())
