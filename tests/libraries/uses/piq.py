import piq
import torch

torch.set_default_dtype(torch.float64)  # next to singular places float32 has 3 digits of the gradient
x, y = torch.rand(2, 3, 96, 96, requires_grad=True), torch.rand(2, 3, 96, 96)
blur = torch.nn.functional.avg_pool2d(y, 3, 1, 1)
measures = {
    "ssim": piq.SSIMLoss(kernel_size=7),
    "msssim": lambda a, b: piq.multi_scale_ssim(a, b, kernel_size=5, scale_weights=torch.tensor([0.3, 0.4, 0.3])),
    "fsim": piq.FSIMLoss(),
    "vif": piq.VIFLoss(),
    "gmsd": piq.GMSDLoss(),
    "msgmsd": piq.MultiScaleGMSDLoss(chromatic=True),
    "haarpsi": piq.HaarPSILoss(),
    "vsi": piq.VSILoss(),
    "mdsi": piq.MDSILoss(),
    "dss": piq.DSSLoss(),
    "srsim": piq.srsim,
    "psnr": piq.psnr,
}
for name, measure in measures.items():
    x.grad = None
    value = measure(x, y).mean()
    value.backward()
    with torch.no_grad():
        print(name, value.item(), x.grad.norm().item(), measure(blur, y).mean().item())
print(
    piq.TVLoss()(x).item(),
    piq.KID()(torch.randn(60, 8), torch.randn(60, 8)).item(),
    piq.FID()(torch.randn(50, 6), torch.randn(50, 6)).item(),
)
