import torch
from diffusers import DDPMScheduler, UNet2DModel

net = UNet2DModel(
    sample_size=8,
    in_channels=1,
    out_channels=1,
    block_out_channels=(8, 8),
    norm_num_groups=4,
    layers_per_block=1,
    down_block_types=("DownBlock2D", "AttnDownBlock2D"),
    up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    attention_head_dim=4,
).eval()
scheduler = DDPMScheduler(num_train_timesteps=10)
x = torch.randn(1, 1, 8, 8)
noisy = scheduler.add_noise(x, torch.randn_like(x), torch.tensor([3]))
with torch.no_grad():
    for t in scheduler.timesteps[-3:]:
        noisy = scheduler.step(net(noisy, t).sample, t, noisy).prev_sample
        print(noisy.mean().item(), noisy.std().item())
