"""A character-level LSTM: truncated backpropagation through time, detached states, sampling with a temperature."""

import torch
import torch.nn as nn

TEXT = """It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness,
it was the epoch of belief, it was the epoch of incredulity, it was the season of Light, it was the season of Darkness,
it was the spring of hope, it was the winter of despair, we had everything before us, we had nothing before us."""
torch.manual_seed(1111)
vocab = sorted(set(TEXT))
index = {c: i for i, c in enumerate(vocab)}
data = torch.tensor([index[c] for c in TEXT], dtype=torch.long)
print(f"{len(TEXT)} characters, {len(vocab)} unique: {''.join(vocab)!r}")


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    data = data.narrow(0, 0, nbatch * bsz)
    return data.view(bsz, -1).t().contiguous()


class CharRNN(nn.Module):
    def __init__(self, ntoken, ninp=16, nhid=48, nlayers=2):
        super().__init__()
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = nn.LSTM(ninp, nhid, nlayers)
        self.decoder = nn.Linear(nhid, ntoken)
        self.init_weights()
        self.nhid, self.nlayers = nhid, nlayers

    def init_weights(self):
        initrange = 0.1
        nn.init.uniform_(self.encoder.weight, -initrange, initrange)
        nn.init.zeros_(self.decoder.bias)
        nn.init.xavier_uniform_(self.decoder.weight)

    def forward(self, input, hidden):
        output, hidden = self.rnn(self.encoder(input), hidden)
        return self.decoder(output), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        return weight.new_zeros(self.nlayers, bsz, self.nhid), weight.new_zeros(self.nlayers, bsz, self.nhid)


def repackage_hidden(h):
    return h.detach() if isinstance(h, torch.Tensor) else tuple(repackage_hidden(v) for v in h)


source, bptt = batchify(data, 8), 14
model = CharRNN(len(vocab))
print(model, source.shape, [tuple(p.shape) for p in model.rnn.parameters()], sep="\n")
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-2)
for epoch in range(6):
    hidden, total = model.init_hidden(8), 0.0
    for i in range(0, source.size(0) - 1, bptt):
        seq_len = min(bptt, len(source) - 1 - i)
        x, y = source[i : i + seq_len], source[i + 1 : i + 1 + seq_len]
        hidden = repackage_hidden(hidden)
        model.zero_grad()
        output, hidden = model(x, hidden)
        loss = criterion(output.view(-1, len(vocab)), y.reshape(-1))
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
        total += loss.item() * seq_len
    mean = total / (source.size(0) - 1)
    print(f"| epoch {epoch} | loss {mean:.5f} | ppl {torch.exp(torch.tensor(mean)):8.3f} | norm {norm.item():.4f}")

model.eval()
with torch.no_grad():
    hidden, x, text = model.init_hidden(1), torch.tensor([[index["t"]]]), "t"
    for _ in range(40):
        output, hidden = model(x, hidden)
        word_weights = output.squeeze().div(0.5).exp()
        x.fill_(torch.multinomial(word_weights, 1)[0])
        text += vocab[x.item()]
print(repr(text))

gru = nn.GRU(5, 7, num_layers=2, batch_first=True, bidirectional=True)
lengths = torch.tensor([4, 2, 3])
packed = nn.utils.rnn.pack_padded_sequence(torch.randn(3, 4, 5), lengths, batch_first=True, enforce_sorted=False)
out, h = gru(packed)
padded, n = nn.utils.rnn.pad_packed_sequence(out, batch_first=True)
print(packed.batch_sizes, padded.shape, h.shape, n)
print(padded[1, :, :4])
