import torch
from asteroid_filterbanks import STFTFB, Decoder, Encoder, FreeFB, ParamSincFB, make_enc_dec, transforms
from asteroid_filterbanks.griffin_lim import griffin_lim

wave = torch.randn(2, 1, 800)
encoder, decoder = make_enc_dec("free", n_filters=16, kernel_size=16, stride=8)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], 1e-2)
for _ in range(4):
    loss = (decoder(encoder(wave).relu(), length=800) - wave).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
stft = Encoder(STFTFB(n_filters=64, kernel_size=64, stride=16))
spectrum = stft(wave)
print(
    spectrum.shape,
    transforms.mag(spectrum).sum().item(),
    transforms.from_torch_complex(transforms.to_torch_complex(spectrum)).norm().item(),
)
print(Decoder.pinv_of(FreeFB(8, 8, 4))(torch.randn(1, 8, 10)).norm().item())
sinc = Encoder(ParamSincFB(n_filters=16, kernel_size=31, stride=8))
out = sinc(wave)
out.pow(2).sum().backward()
print(out.norm().item(), [p.grad.norm().item() for p in sinc.parameters()])
istft = Decoder(STFTFB(n_filters=64, kernel_size=64, stride=16))
print(griffin_lim(transforms.mag(spectrum), stft, n_iter=3, momentum=0.9).norm().item())
