import torch
from vector_quantize_pytorch import FSQ, ResidualVQ, VectorQuantize

x = torch.randn(2, 10, 8)
quantized, index, loss = VectorQuantize(8, 16)(x)
print(quantized.sum().item(), index.tolist(), loss.sum().item())
print(ResidualVQ(dim=8, num_quantizers=2, codebook_size=16)(x)[1].tolist(), FSQ([8, 5])(x[..., :2])[1].tolist())
