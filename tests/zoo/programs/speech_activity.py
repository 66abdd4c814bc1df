"""When someone speaks: Silero's detector, a TorchScript archive."""

import torch
from data import silence, speech
from silero_vad import get_speech_timestamps, load_silero_vad

model = load_silero_vad()


@torch.inference_mode()
def main():
    said = speech("Good morning, everybody."), speech("See you tomorrow at nine.")
    sound = torch.cat([torch.from_numpy(part) for part in (silence(1), said[0], silence(1.5), said[1], silence(1))])
    for found in get_speech_timestamps(sound, model, return_seconds=True):
        print(f"speech from {found['start']} s to {found['end']} s")
    return model.audio_forward(sound[None], 16000)


if __name__ == "__main__":
    main()
