import torch
from captum.attr import DeepLift, IntegratedGradients, LayerGradCam, Saliency, ShapleyValueSampling

model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
x = torch.randn(3, 4, requires_grad=True)
for method in (IntegratedGradients, Saliency, DeepLift):
    print(method(model).attribute(x, target=1).tolist())
print(ShapleyValueSampling(model).attribute(x, target=0, n_samples=3).sum().item())
print(LayerGradCam(model, model[0]).attribute(x, target=0).tolist())
