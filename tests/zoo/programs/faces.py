"""Faces in a photograph: MTCNN, of facenet-pytorch."""

import numpy as np
import torch
from data import astronaut
from facenet_pytorch import MTCNN
from PIL import Image

model = MTCNN(keep_all=True)


@torch.inference_mode()
def main():
    boxes, scores, points = model.detect(Image.fromarray(astronaut()), landmarks=True)
    for box, score, (left, right, *_) in zip(boxes, scores, points):
        print(f"face {np.int64(box).tolist()} ({score:.1%}), eyes {np.int64(left)} and {np.int64(right)}")
    return boxes.astype(float), scores.astype(float), points.astype(float)


if __name__ == "__main__":
    main()
