import torch
from nnAudio.features import MFCC, STFT, CQT1992v2, MelSpectrogram

sound = (torch.linspace(0, 1, 4000) * 2 * 3.14159 * 440).sin() + torch.randn(2, 4000) * 0.1
mel = MelSpectrogram(
    sr=4000, n_fft=256, hop_length=128, n_mels=16, trainable_mel=True, trainable_STFT=True, verbose=False
)
target = torch.rand(2, 16, 32)
optimizer = torch.optim.Adam(mel.parameters(), 1e-3)
for _ in range(3):
    loss = (mel(sound).log1p() - target).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
stft = STFT(n_fft=256, hop_length=64, sr=4000, output_format="Complex", iSTFT=True, verbose=False)
spectrum = stft(sound)
print(spectrum.shape, spectrum.pow(2).sum().item(), stft.inverse(spectrum, length=4000).norm().item())
print(CQT1992v2(sr=4000, hop_length=128, fmin=110, n_bins=24, verbose=False)(sound).sum().item())
print(MFCC(sr=4000, n_mfcc=5, n_fft=256, hop_length=256, n_mels=16, verbose=False)(sound).flatten()[:8].tolist())
