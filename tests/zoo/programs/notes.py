"""The notes of a chord: Spotify's Basic Pitch, an ONNX file."""

import numpy as np
from data import folder_of, note, silence

import rushlight

HOME = folder_of("basic_pitch") / "saved_models" / "icassp_2022"
NAMES = "C C# D D# E F F# G G# A A# B".split()
model = rushlight.onnx.load(HOME / "nmp.onnx")


@rushlight.inference_mode()
def main():
    chords = [(261.63, 329.63, 392.0), (220.0, 261.63, 329.63)]  # C major, A minor
    sound = np.concatenate([sum(note(hertz, 1, 22050) for hertz in chord) for chord in chords])
    sound = (sound + silence(2, 22050))[:43844].reshape(1, -1, 1)
    results = [np.asarray(result) for result in model(sound)]
    starts, sounding, pitches = results  # (1, frames, keys of a piano), and thirds of keys
    for first in (10, 96):
        keys = np.flatnonzero(sounding[0, first : first + 40].mean(0) > 0.4) + 21
        print(" ".join(f"{NAMES[key % 12]}{key // 12 - 1}" for key in keys))
    return results


if __name__ == "__main__":
    main()
