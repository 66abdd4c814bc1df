import torch
from einops import einsum, rearrange, reduce, repeat
from einops.layers.torch import EinMix, Rearrange

x = torch.randn(2, 3, 4, 4)
print(reduce(x, "b c (h 2) (w 2) -> b c h w", "max").sum().item())
print(rearrange(x, "b c h w -> b (h w) c").std().item(), repeat(x, "b c h w -> b c (h 2) w").shape[2])
print(einsum(x, x, "b c h w, b d h w -> b c d").tolist())
mix = EinMix("b c h w -> b h w d", weight_shape="c d", bias_shape="d", c=3, d=2)
print(torch.nn.Sequential(Rearrange("b c h w -> b c w h"), mix)(x).mean().item())
