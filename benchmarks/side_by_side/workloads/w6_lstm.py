"""W6: character LSTM, hidden 128, sequence 50, batch 32, gradient clipping, Adam."""

from common import Work, chars, fill, tensors

VOCAB, HIDDEN, LENGTH, BATCH = 65, 128, 50, 32


def build(torch):
    nn, F = torch.nn, torch.nn.functional

    class CharRNN(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(VOCAB, HIDDEN)
            self.lstm = nn.LSTM(HIDDEN, HIDDEN, batch_first=True)
            self.head = nn.Linear(HIDDEN, VOCAB)

        def forward(self, x):
            h, _ = self.lstm(self.embed(x))
            return self.head(h)

    model = fill(torch, CharRNN())
    params = list(model.parameters())
    opt = torch.optim.Adam(params, lr=2e-3)

    def forward(x, y):
        return F.cross_entropy(model(x).reshape(-1, VOCAB), y.reshape(-1))

    def step(forward, x, y):
        opt.zero_grad()
        loss = forward(x, y)
        loss.backward()
        nn.utils.clip_grad_norm_(params, 0.25)
        opt.step()
        return loss

    return Work(forward, step, tensors(torch, chars(BATCH, LENGTH)))
