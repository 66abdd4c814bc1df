"""Text in a picture: PP-OCRv4, two ONNX files. The first finds lines of text, the second reads a line."""

import numpy as np
from data import folder_of, page
from PIL import Image
from scipy.ndimage import find_objects, label

import rushlight

HOME = folder_of("rapidocr_onnxruntime") / "models"
finder = rushlight.onnx.load(HOME / "ch_PP-OCRv4_det_infer.onnx")
reader = rushlight.onnx.load(HOME / "ch_PP-OCRv4_rec_infer.onnx")
LETTERS = ["", *reader.metadata["character"].splitlines(), " "]


def run(model, picture):
    x = (picture.astype(np.float32) / 127.5 - 1).transpose(2, 0, 1)[None]
    return np.asarray(model(x))


@rushlight.inference_mode()
def main():
    picture = page(["The quick brown fox jumps", "over 12 lazy dogs.", "Total: $48.90"])
    found = run(finder, picture)
    results = [found]
    for rows, columns in find_objects(label(found[0, 0] > 0.3)[0]):
        line = picture[rows.start - 8 : rows.stop + 8, columns.start - 12 : columns.stop + 12]
        image = Image.fromarray(line).resize((48 * line.shape[1] // line.shape[0], 48), Image.Resampling.BILINEAR)
        scores = run(reader, np.asarray(image))
        best = scores[0].argmax(1)
        print("".join(LETTERS[k] for k, before in zip(best, [0, *best[:-1]]) if k != before))
        results.append(scores)
    return results


if __name__ == "__main__":
    main()
