import timm
import torch

x = torch.randn(1, 3, 64, 64)
for name in ("resnet10t", "vit_tiny_patch16_224", "efficientnet_lite0", "convnext_atto"):
    size = {"img_size": 64} if name.startswith("vit") else {}
    model = timm.create_model(name, num_classes=3, **size).eval()
    y = model(x)
    y.sum().backward()
    print(y.tolist(), sum(p.numel() for p in model.parameters()))
