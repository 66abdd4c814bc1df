import numpy as np
import torch


class Compose:
    def __init__(self, transforms):
        self.transforms = list(transforms)

    def __call__(self, x):
        for t in self.transforms:
            x = t(x)
        return x


class ToTensor:
    def __call__(self, x):
        x = np.asarray(x)
        if x.ndim == 2:
            x = x[:, :, None]
        x = np.ascontiguousarray(x.transpose(2, 0, 1))
        if x.dtype == np.uint8:
            return torch.from_numpy(x.astype(np.float32) / np.float32(255))
        return torch.from_numpy(x)


class PILToTensor(ToTensor):
    def __call__(self, x):
        x = np.asarray(x)
        x = x[:, :, None] if x.ndim == 2 else x
        return torch.from_numpy(np.ascontiguousarray(x.transpose(2, 0, 1)))


class ToPILImage:
    def __init__(self, mode=None):
        pass

    def __call__(self, x):
        a = x.detach().numpy().transpose(1, 2, 0)
        a = (np.clip(a, 0, 1) * 255).astype(np.uint8)
        return a[..., 0] if a.shape[2] == 1 else a


class Normalize:
    def __init__(self, mean, std, inplace=False):
        self.mean = [float(m) for m in np.atleast_1d(mean)]
        self.std = [float(s) for s in np.atleast_1d(std)]

    def __call__(self, x):
        mean = torch.tensor(self.mean).view(-1, 1, 1)
        std = torch.tensor(self.std).view(-1, 1, 1)
        return (x - mean) / std


def _bilinear(a, h, w):
    squeeze = a.ndim == 2
    if squeeze:
        a = a[:, :, None]
    H, W = a.shape[:2]
    f = a.astype(np.float64)
    ys = np.clip((np.arange(h) + 0.5) * H / h - 0.5, 0, H - 1)
    xs = np.clip((np.arange(w) + 0.5) * W / w - 0.5, 0, W - 1)
    y0, x0 = np.floor(ys).astype(int), np.floor(xs).astype(int)
    y1, x1 = np.minimum(y0 + 1, H - 1), np.minimum(x0 + 1, W - 1)
    fy, fx = (ys - y0)[:, None, None], (xs - x0)[None, :, None]
    out = (f[y0][:, x0] * (1 - fx) + f[y0][:, x1] * fx) * (1 - fy) + (f[y1][:, x0] * (1 - fx) + f[y1][:, x1] * fx) * fy
    out = np.rint(out).astype(a.dtype)
    return out[:, :, 0] if squeeze else out


class Resize:
    def __init__(self, size, interpolation=None, antialias=None):
        self.size = size

    def __call__(self, x):
        a = np.asarray(x)
        h, w = a.shape[:2]
        if isinstance(self.size, int):
            s = self.size / min(h, w)
            nh, nw = int(round(h * s)), int(round(w * s))
        else:
            nh, nw = self.size
        return a if (nh, nw) == (h, w) else _bilinear(a, nh, nw)


Scale = Resize


class CenterCrop:
    def __init__(self, size):
        self.size = (size, size) if isinstance(size, int) else tuple(size)

    def __call__(self, x):
        a = np.asarray(x)
        h, w = self.size
        top, left = (a.shape[0] - h) // 2, (a.shape[1] - w) // 2
        return a[top : top + h, left : left + w]


class Pad:
    def __init__(self, padding, fill=0):
        self.p, self.fill = padding, fill

    def __call__(self, x):
        a = np.asarray(x)
        pads = [(self.p, self.p), (self.p, self.p)] + [(0, 0)] * (a.ndim - 2)
        return np.pad(a, pads, constant_values=self.fill)


class RandomCrop:
    def __init__(self, size, padding=0):
        self.size = (size, size) if isinstance(size, int) else tuple(size)
        self.padding = padding

    def __call__(self, x):
        a = Pad(self.padding)(x) if self.padding else np.asarray(x)
        h, w = self.size
        top = int(torch.randint(0, a.shape[0] - h + 1, (1,)).item())
        left = int(torch.randint(0, a.shape[1] - w + 1, (1,)).item())
        return a[top : top + h, left : left + w]


class RandomHorizontalFlip:
    def __init__(self, p=0.5):
        self.p = p

    def __call__(self, x):
        if torch.rand(1).item() < self.p:
            return np.ascontiguousarray(np.asarray(x)[:, ::-1])
        return x


class Grayscale:
    def __init__(self, num_output_channels=1):
        pass

    def __call__(self, x):
        a = np.asarray(x)
        if a.ndim == 2:
            return a
        return np.rint(a[..., :3] @ np.array([0.299, 0.587, 0.114])).astype(np.uint8)


class Lambda:
    def __init__(self, fn):
        self.fn = fn

    def __call__(self, x):
        return self.fn(x)
