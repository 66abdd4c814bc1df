"""The type of a file: Google's Magika, an ONNX file."""

import json
import zlib
from pathlib import Path

import numpy as np
from data import folder_of

import rushlight

HOME = folder_of("magika") / "models" / "standard_v3_3"
CONFIG = json.loads((HOME / "config.min.json").read_text())
PROGRAM = Path(__file__).read_bytes()
FILES = {
    "a program": PROGRAM,
    "a page": b"# Zoo\n\nTwelve **models** of other packages:\n\n- [one](one.md)\n- `two`, with a list\n" * 4,
    "a table": "\n".join(f"{n},{n * n},{n**3}" for n in range(100)).encode(),
    "a web page": b"<!doctype html><html><head><title>t</title></head><body><p>Hello</p></body></html>" * 5,
    "compressed": b"\x1f\x8b\x08\0\0\0\0\0\0\x03" + zlib.compress(PROGRAM)[2:],
}
model = rushlight.onnx.load(HOME / "model.onnx")


def features(content):
    """The first and the last 1,024 bytes; 256 fills what is missing."""
    content = content.strip()
    start, end = (np.full(1024, 256, np.int32) for _ in range(2))
    start[: len(content[:1024])] = list(content[:1024])
    end[1024 - len(content[-1024:]) :] = list(content[-1024:])
    return np.concatenate([start, end])


@rushlight.inference_mode()
def main():
    scores = np.asarray(model(np.stack([features(file) for file in FILES.values()])))
    for name, row in zip(FILES, scores):
        print(f"{name}: {CONFIG['target_labels_space'][row.argmax()]} ({row.max():.0%})")
    return scores


if __name__ == "__main__":
    main()
