import os

import numpy as np
import torch


def make_grid(tensor, nrow=8, padding=2, normalize=False, **kw):
    if isinstance(tensor, (list, tuple)):
        tensor = torch.stack(list(tensor))
    a = tensor.detach().float().numpy()
    if a.ndim == 3:
        a = a[None]
    if a.shape[1] == 1:
        a = np.repeat(a, 3, axis=1)
    if normalize:
        a = (a - a.min()) / max(a.max() - a.min(), 1e-5)
    n, c, h, w = a.shape
    cols = min(nrow, n)
    rows = (n + cols - 1) // cols
    grid = np.zeros((c, rows * (h + padding) + padding, cols * (w + padding) + padding), a.dtype)
    for k in range(n):
        y, x = (k // cols) * (h + padding) + padding, (k % cols) * (w + padding) + padding
        grid[:, y : y + h, x : x + w] = a[k]
    return torch.from_numpy(grid)


def save_image(tensor, fp, nrow=8, padding=2, normalize=False, **kw):
    """Writes an array and prints its mean: a number that can be compared."""
    a = make_grid(tensor, nrow=nrow, padding=padding, normalize=normalize).numpy()
    if isinstance(fp, (str, os.PathLike)):
        with open(fp, "wb") as f:
            np.save(f, a)
        print(f"save_image {os.path.basename(str(fp))}: shape {a.shape}, mean {float(a.mean()):.5f}")
