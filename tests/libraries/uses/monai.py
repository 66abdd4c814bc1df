import torch
from monai.inferers import sliding_window_inference
from monai.losses import DiceLoss
from monai.metrics import DiceMetric
from monai.networks.nets import UNet
from monai.transforms import Compose, RandFlip, ScaleIntensity

x = torch.rand(1, 1, 16, 16)
net = UNet(2, 1, 2, channels=(4, 8), strides=(2,)).eval()
y = net(x)
loss = DiceLoss(softmax=True, to_onehot_y=True)(y, (x > 0.5).float())
loss.backward()
print(y.std().item(), loss.item(), sliding_window_inference(x, (8, 8), 2, net).mean().item())
print(
    DiceMetric()(y.argmax(1, keepdim=True), (x > 0.5).float()).tolist(),
    Compose([ScaleIntensity(), RandFlip(prob=1.0)])(x[0]).sum().item(),
)
