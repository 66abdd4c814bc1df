"""Who speaks: Resemblyzer's vectors of voices."""

import numpy as np
from data import speech
from resemblyzer import VoiceEncoder

TEXTS = "The north wind and the sun were disputing.", "A traveler came along in a warm cloak."
VOICES = ("en-us", 30), ("en-gb-scotland", 80)  # and pitch
model = VoiceEncoder("cpu", verbose=False)


def main():
    vectors = np.stack([model.embed_utterance(speech(text, *voice)) for voice in VOICES for text in TEXTS])
    print((vectors @ vectors.T).round(2))
    return vectors


if __name__ == "__main__":
    main()
