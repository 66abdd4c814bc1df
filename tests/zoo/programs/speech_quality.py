"""How good speech sounds: Microsoft's DNSMOS, an ONNX file. Marks are between 1 and 5."""

import numpy as np
from data import folder_of, speech

import rushlight

HOME = folder_of("speechmos") / "dnsmos_models"
model = rushlight.onnx.load(HOME / "sig_bak_ovr.onnx")


@rushlight.inference_mode()
def main():
    said = speech("The birch canoe slid on the smooth planks. Glue the sheet to the dark blue background.")
    sound = np.resize(said, 144160)
    noise = np.random.default_rng(0).normal(0, 0.05, sound.shape)
    marks = np.asarray(model(np.stack([sound, sound + noise]).astype(np.float32)))
    for name, (signal, background, overall) in zip(("clean", "noisy"), marks):
        print(f"{name}: voice {signal:.2f}, background {background:.2f}, overall {overall:.2f}")
    return marks


if __name__ == "__main__":
    main()
