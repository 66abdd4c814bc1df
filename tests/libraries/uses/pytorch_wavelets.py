import torch
from pytorch_wavelets import DTCWTForward, DTCWTInverse, DWT1DForward, DWT1DInverse, DWTForward, DWTInverse, ScatLayer

x = torch.randn(2, 3, 32, 32, requires_grad=True)
low, high = DWTForward(J=2, wave="db3", mode="symmetric")(x)
print(low.abs().sum().item(), [h.abs().sum().item() for h in high])
back = DWTInverse(wave="db3", mode="symmetric")((low, high))
print((back - x).abs().max().item() < 1e-4)
(back**2).sum().backward()
print(x.grad.norm().item())

low, high = DTCWTForward(J=3, biort="near_sym_b", qshift="qshift_b")(x)
print(low.sum().item(), [h.norm().item() for h in high], high[0].shape)
back = DTCWTInverse(biort="near_sym_b", qshift="qshift_b")((low, high))
x.grad = None
(back**3).mean().backward()
print(back.sum().item(), x.grad.norm().item())

x.grad = None
scattered = ScatLayer()(x)
scattered.sum().backward()
print(scattered.shape, scattered.sum().item(), x.grad.norm().item())
low, high = DWT1DForward(J=2, wave="haar", mode="zero")(torch.randn(1, 1, 16))
print(low.tolist(), DWT1DInverse(wave="haar", mode="zero")((low, high)).norm().item())
