import torch
from torch import nn
from vit_pytorch import SimpleViT, ViT
from vit_pytorch.cait import CaiT
from vit_pytorch.cct import CCT
from vit_pytorch.max_vit import MaxViT

common = {"image_size": 32, "patch_size": 8, "num_classes": 4, "dim": 16, "heads": 2, "mlp_dim": 32}
x, label = torch.randn(4, 3, 32, 32), torch.randint(0, 4, (4,))
models = [
    ViT(depth=2, dropout=0.1, emb_dropout=0.1, **common),
    SimpleViT(depth=2, **common),
    CaiT(depth=2, cls_depth=1, layer_dropout=0.05, **common),
    CCT(img_size=32, embedding_dim=16, n_conv_layers=1, num_layers=2, num_heads=2, mlp_ratio=2, num_classes=4),
    MaxViT(num_classes=4, dim_conv_stem=8, dim=8, dim_head=4, depth=(1, 1), window_size=4, mbconv_expansion_rate=2),
]
for model in models:
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    for _ in range(2):
        loss = nn.functional.cross_entropy(model(x), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(type(model).__name__, loss.item())
    if not isinstance(model, MaxViT):  # BatchNorm after a bias: AdamW turns rounding into steps of the bias
        print(model.eval()(x).sum().item())
