"""Small programs with one silent mistake each: {name of the program: (name of the check, text)}."""

START = """\
import rushlight as torch
from rushlight import nn, optim
from rushlight.nn import functional as F
from rushlight.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
x = torch.randn(256, 8)
true = torch.randn(8, 3)
y = (x @ true).argmax(1)
t = x @ true[:, 0]                              # (256,)
b = (t > 0).float()
def classifier(*layers):
    return nn.Sequential(nn.Linear(8, 32), *layers, nn.ReLU(), nn.Linear(32, 3))
def train(model, loss, steps=60, lr=0.05, optimizer=None):
    optimizer = optimizer or optim.SGD(model.parameters(), lr=lr)
    for i in range(steps):
        part = slice(i % 8 * 32, i % 8 * 32 + 32)
        optimizer.zero_grad()
        loss(model, part).backward()
        optimizer.step()
"""
CE = "lambda m, p: F.cross_entropy(m(x[p]), y[p])"

PLANTED = {
    "no zero_grad": (
        "gradients-not-cleared",
        """
model = classifier()
optimizer = optim.SGD(model.parameters(), lr=0.001)
for i in range(40):
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
""",
    ),
    "no zero_grad, Adam, loss module, loader": (
        "gradients-not-cleared",
        """
model, loss = classifier(), nn.CrossEntropyLoss()
optimizer = optim.Adam(model.parameters(), lr=0.001)
for xb, yb in DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True):
    loss(model(xb), yb).backward()
    optimizer.step()
""",
    ),
    "zero_grad between backward and step": (
        "gradients-cleared-before-step",
        """
model = classifier()
optimizer = optim.SGD(model.parameters(), lr=0.1)
for i in range(40):
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.zero_grad()
    optimizer.step()
""",
    ),
    "mse_loss of (N, 1) and (N,)": (
        "loss-that-broadcasts",
        "train(nn.Linear(8, 1), lambda m, p: F.mse_loss(m(x[p]), t[p]))",
    ),
    "own loss of (N, 1) and (N,)": (
        "loss-that-broadcasts",
        "train(nn.Linear(8, 1), lambda m, p: ((m(x[p]) - t[p]) ** 2).mean())",
    ),
    "softmax in the model": (
        "softmax-before-cross-entropy",
        "train(nn.Sequential(classifier(), nn.Softmax(dim=1)), " + CE + ")",
    ),
    "softmax, then a view": (
        "softmax-before-cross-entropy",
        "train(classifier(), lambda m, p: nn.CrossEntropyLoss()(m(x[p]).softmax(1).view(-1, 3), y[p]))",
    ),
    "log_softmax twice": (
        "log-softmax-twice",
        "train(classifier(), lambda m, p: F.cross_entropy(F.log_softmax(m(x[p]), 1), y[p]))",
    ),
    "softmax before nll_loss": (
        "no-log-before-nll-loss",
        "train(classifier(), lambda m, p: F.nll_loss(F.softmax(m(x[p]), 1), y[p]))",
    ),
    "log_softmax over the batch": (
        "softmax-over-the-batch",
        "train(classifier(), lambda m, p: F.nll_loss(m(x[p]).log_softmax(dim=0), y[p]))",
    ),
    "log of softmax over the batch, module": (
        "softmax-over-the-batch",
        "train(classifier(), lambda m, p: nn.NLLLoss()(nn.Softmax(0)(m(x[p])).log(), y[p]))",
    ),
    "StepLR for epochs, stepped per batch": (
        "scheduler-steps-once-per-batch",
        """
model, loader = classifier(), DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
optimizer = optim.SGD(model.parameters(), lr=0.05)
scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=5, gamma=0.1)
for epoch in range(10):
    for xb, yb in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(xb), yb).backward()
        optimizer.step()
        scheduler.step()
""",
    ),
    "CosineAnnealingLR for epochs, stepped per batch, in a function": (
        "scheduler-steps-once-per-batch",
        """
def main(epochs=10):
    model, loader = classifier(), DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
    optimizer = optim.SGD(model.parameters(), lr=0.05)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)
    for epoch in range(epochs):
        for xb, yb in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(xb), yb).backward()
            optimizer.step()
            scheduler.step()
main()
""",
    ),
    "sigmoid before BCEWithLogitsLoss": (
        "sigmoid-before-bce-with-logits",
        "loss = nn.BCEWithLogitsLoss()\n"
        "train(nn.Linear(8, 1), lambda m, p: loss(torch.sigmoid(m(x[p])).squeeze(1), b[p]))",
    ),
    "nan of p log p": (
        "loss-is-nan",
        """
p = torch.tensor([0.5, 0.5, 0.0], requires_grad=True)
loss = (p * p.log()).sum()
loss.backward()
""",
    ),
    "nan of a feature, and ReLUs": (
        "loss-is-nan",
        """
x[:, 0] = float("nan")
train(classifier(), """
        + CE
        + ")",
    ),
    "step without brackets": (
        "no-step",
        """
model = classifier()
optimizer = optim.SGD(model.parameters(), lr=0.1)
for i in range(40):
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step
""",
    ),
    "F.dropout without self.training": (
        "dropout-in-evaluation",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 3)
    def forward(self, x):
        return self.fc(F.dropout(x, 0.5))
model = Net()
train(model, """
        + CE
        + """)
model.eval()
with torch.no_grad():
    (model(x).argmax(1) == y).sum()
""",
    ),
    "detach in the middle": (
        "no-gradient",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.head = nn.Linear(8, 8), nn.Linear(8, 3)
    def forward(self, x):
        return self.head(self.encoder(x).relu().detach())
train(Net(), """
        + CE
        + ")",
    ),
    "optimizer with one layer": (
        "no-optimizer",
        "model = classifier()\n"
        "train(model, " + CE + ", optimizer=optim.SGD(model[2].parameters(), lr=0.1))",
    ),
    "layers in a list": (
        "modules-in-a-plain-list",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(8, 8) for _ in range(2)]
        self.head = nn.Linear(8, 3)
    def forward(self, x):
        for layer in self.layers:
            x = layer(x).relu()
        return self.head(x)
train(Net(), """
        + CE
        + ")",
    ),
    "heads in a dict": (
        "modules-in-a-plain-list",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.heads = nn.Linear(8, 8), {"a": nn.Linear(8, 3)}
    def forward(self, x):
        return self.heads["a"](self.body(x).relu())
train(Net(), """
        + CE
        + ")",
    ),
    "no eval(), dropout": (
        "training-mode-in-evaluation",
        """
model = classifier(nn.Dropout(0.5))
train(model, """
        + CE
        + """)
with torch.no_grad():
    for part in (x[:128], x[128:]):
        model(part).argmax(1)
""",
    ),
    "no eval(), batch norm, test loss, one batch": (
        "training-mode-in-evaluation",
        """
model = classifier(nn.BatchNorm1d(32))
train(model, """
        + CE
        + """)
with torch.inference_mode():
    F.cross_entropy(model(x), y)
""",
    ),
    "no eval(), full batches": (
        "training-mode-in-evaluation",
        """
model = classifier(nn.Dropout(0.5))
for epoch in range(12):
    train(model, lambda m, p: F.cross_entropy(m(x[:192]), y[:192]), steps=1)
    with torch.no_grad():
        (model(x[192:]).argmax(1) == y[192:]).float().mean()
""",
    ),
    "no train() after eval()": (
        "evaluation-mode-in-training",
        """
model = classifier(nn.Dropout(0.5))
for epoch in range(3):
    train(model, """
        + CE
        + """, steps=8)
    model.eval()
    with torch.no_grad():
        (model(x).argmax(1) == y).sum()
""",
    ),
    "dead ReLUs": (
        "dead-relus",
        """
model = classifier()
nn.init.constant_(model[0].bias, -100.0)
train(model, """
        + CE
        + ")",
    ),
    "twelve sigmoids": (
        "vanishing-gradients",
        """
layers = [layer for _ in range(12) for layer in (nn.Linear(8, 8), nn.Sigmoid())]
train(nn.Sequential(*layers, nn.Linear(8, 3)), """
        + CE
        + ")",
    ),
    "weights of N(0, 1)": (
        "exploding-gradients",
        """
layers = [layer for _ in range(8) for layer in (nn.ReLU(), nn.Linear(64, 64, bias=False))]
for layer in layers[1::2]:
    nn.init.normal_(layer.weight)
model = nn.Sequential(nn.Linear(8, 64), *layers, nn.ReLU(), nn.Linear(64, 1))
train(model, lambda m, p: F.mse_loss(m(x[p]).squeeze(1), t[p]), lr=1e-30, steps=10)
""",
    ),
    "a learning rate of 10": (
        "update-ratio",
        "model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 3))\n"
        "train(model, " + CE + ", steps=120, optimizer=optim.Adam(model.parameters(), lr=10.0))",
    ),
    "a learning rate of 1e-7": (
        "update-ratio",
        "model = classifier()\n"
        "train(model, lambda m, p: F.cross_entropy(m(x), y), steps=120,\n"
        "      optimizer=optim.Adam(model.parameters(), lr=1e-7))",
    ),
    "sorted by class": (
        "data-not-shuffled",
        """
order = y.argsort()
model = classifier()
optimizer = optim.SGD(model.parameters(), lr=0.05)
for xb, yb in DataLoader(TensorDataset(x[order], y[order]), batch_size=16):
    optimizer.zero_grad()
    F.cross_entropy(model(xb), yb).backward()
    optimizer.step()
""",
    ),
    "labels of one class": (
        "labels-do-not-vary",
        """
model, loader = classifier(), DataLoader(TensorDataset(x, y * 0), batch_size=32, shuffle=True)
optimizer = optim.SGD(model.parameters(), lr=0.05)
for epoch in range(4):
    for xb, yb in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(xb), yb).backward()
        optimizer.step()
""",
    ),
    "a hidden state that is not detached": (
        "growing-graph",
        """
cell, head, h = nn.RNNCell(8, 8), nn.Linear(8, 3), torch.zeros(4, 8)
optimizer = optim.SGD([*cell.parameters(), *head.parameters()], lr=0.0)
for i in range(19):
    h = cell(x[4 * i : 4 * i + 4], h)
    optimizer.zero_grad()
    F.cross_entropy(head(h), y[4 * i : 4 * i + 4]).backward(retain_graph=True)
""",
    ),
    "a sum of losses": (
        "metric-keeps-graph",
        """
model, total = classifier(), 0
optimizer = optim.SGD(model.parameters(), lr=0.05)
for i in range(60):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    total += loss
""",
    ),
    "a list of losses": (
        "metric-keeps-graph",
        """
model, losses = nn.Linear(8, 1), []
optimizer = optim.SGD(model.parameters(), lr=0.01)
for i in range(60):
    optimizer.zero_grad()
    loss = ((model(x).squeeze(1) - t) ** 2).mean()
    losses.append(loss)
    loss.backward()
    optimizer.step()
""",
    ),
    "another model that no optimizer has": (
        "no-optimizer",
        """
encoder, head = nn.Linear(8, 16), nn.Linear(16, 3)
optimizer = optim.SGD(head.parameters(), lr=0.05)
for i in range(30):
    optimizer.zero_grad()
    F.cross_entropy(head(encoder(x).relu()), y).backward()
    optimizer.step()
""",
    ),
    "half of the parameters": (
        "no-optimizer",
        """
model = classifier()
half = [p for p in model.parameters() if p.ndim > 1]
train(model, """
        + CE
        + """, optimizer=optim.SGD(half, lr=0.05))
""",
    ),
    "everything frozen": (
        "all-parameters-frozen",
        """
model = classifier()
model.requires_grad_(False)
optimizer = optim.SGD(model.parameters(), lr=0.05)
image = x[:32].clone().requires_grad_()
for i in range(10):
    optimizer.zero_grad()
    F.cross_entropy(model(image), y[:32]).backward()
    optimizer.step()
""",
    ),
    "all ReLUs dead from the start": (
        "dead-relus",
        """
model = classifier()
nn.init.constant_(model[0].bias, -30.0)
train(model, """
        + CE
        + """, steps=20)
""",
    ),
    "one class, no loader": (
        "labels-do-not-vary",
        "train(classifier(), lambda m, p: F.cross_entropy(m(x[p]), torch.ones_like(y[p])))",
    ),
    "a rate of 1e-9 in a short program": (
        "update-ratio",
        "model = classifier()\n"
        "train(model, " + CE + ", steps=48, optimizer=optim.Adam(model.parameters(), lr=1e-9))",
    ),
    "weights of zero": (
        "equal-units",
        """
model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 3))
for p in model.parameters():
    nn.init.zeros_(p)
train(model, """
        + CE
        + ")",
    ),
    "equal weights of a convolution": (
        "equal-units",
        """
model = nn.Sequential(nn.Conv1d(1, 6, 3), nn.Tanh(), nn.Flatten(), nn.Linear(36, 3))
nn.init.constant_(model[0].weight, 0.1), nn.init.zeros_(model[0].bias)
nn.init.constant_(model[3].weight, 0.1)
train(model, lambda m, p: F.cross_entropy(m(x[p].unsqueeze(1)), y[p]))
""",
    ),
    "a sum of losses with a rate for means": (
        "summed-loss-diverges",
        """
net = nn.Linear(8, 1)
loss = nn.MSELoss(reduction="sum")
train(net, lambda m, p: loss(m(x[p]).squeeze(1), t[p]), steps=20)
""",
    ),
    "an own sum of squares": (
        "summed-loss-diverges",
        "train(nn.Linear(8, 1), lambda m, p: ((m(x[p]).squeeze(1) - t[p]) ** 2).sum(), steps=20)",
    ),
    "argmax over dimension 0": (
        "argmax-over-the-batch",
        """
model = classifier()
train(model, """
        + CE
        + """)
with torch.no_grad():
    predicted = model(x).argmax(dim=0)
""",
    ),
    "max over dimension 0, argmax of all": (
        "argmax-over-the-batch",
        """
model = classifier()
train(model, """
        + CE
        + """)
with torch.no_grad():
    torch.max(model(x), 0)[1], model(x).argmax()
""",
    ),
    "the encoder under no_grad": (
        "forward-under-no-grad",
        """
encoder, head = nn.Linear(8, 16), nn.Linear(16, 3)
optimizer = optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.05)
for i in range(30):
    with torch.no_grad():
        h = encoder(x).relu()
    optimizer.zero_grad()
    F.cross_entropy(head(h), y).backward()
    optimizer.step()
""",
    ),
    "a list of one layer": (
        "one-layer-in-several-places",
        """
layers = [nn.Linear(8, 8), nn.ReLU()] * 3
train(nn.Sequential(*layers, nn.Linear(8, 3)), """
        + CE
        + ")",
    ),
    "fc2 in the place of fc3": (
        "one-layer-called-for-another",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(8, 16), nn.Linear(16, 16), nn.Linear(16, 16)
        self.head = nn.Linear(16, 3)
    def forward(self, x):
        return self.head(self.fc2(self.fc2(self.fc1(x).relu()).relu()).relu())
train(Net(), """
        + CE
        + ")",
    ),
    "minus the loss": (
        "the-loss-is-maximized",
        "train(classifier(), lambda m, p: -F.cross_entropy(m(x), y), steps=40, lr=0.01)",
    ),
    "maximize=True": (
        "the-loss-is-maximized",
        "model = classifier()\n"
        "train(model, lambda m, p: F.cross_entropy(m(x), y), steps=40,\n"
        "      optimizer=optim.SGD(model.parameters(), lr=0.01, maximize=True))",
    ),
    "no activation": (
        "no-activation-between-layers",
        "model = nn.Sequential(nn.Linear(8, 32), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 3))\n"
        "train(model, " + CE + ")",
    ),
    "Adam made in the loop": (
        "new-optimizer-in-each-step",
        """
model = classifier()
for i in range(40):
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
    optimizer.zero_grad()
""",
    ),
    "a loss made of its number": (
        "no-path-to-the-optimizer",
        """
model = classifier()
optimizer = optim.SGD(model.parameters(), lr=0.05)
for i in range(20):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    torch.tensor(loss.item(), requires_grad=True).backward()
    optimizer.step()
""",
    ),
    "a ReLU at the end": (
        "relu-before-cross-entropy",
        "train(nn.Sequential(classifier(), nn.ReLU()), " + CE + ")",
    ),
    "softmax of one score": (
        "softmax-of-one-score",
        "model = nn.Sequential(nn.Linear(8, 1), nn.Softmax(dim=1))\n"
        "train(model, lambda m, p: F.binary_cross_entropy(m(x[p]).squeeze(1), b[p]))",
    ),
    "the first batch again and again": (
        "same-batch-in-each-step",
        """
model, loader = classifier(), DataLoader(TensorDataset(x, y), batch_size=32)
optimizer = optim.SGD(model.parameters(), lr=0.05)
for i in range(30):
    xb, yb = next(iter(loader))
    optimizer.zero_grad()
    F.cross_entropy(model(xb), yb).backward()
    optimizer.step()
""",
    ),
    "a weight decay of 5": (
        "weight-decay-too-large",
        "model = classifier()\n"
        "train(model, " + CE + ", optimizer=optim.SGD(model.parameters(), lr=0.05, weight_decay=5))",
    ),
    "relu before mse_loss, targets of both signs": ("targets-out-of-reach", """train(nn.Sequential(classifier(), nn.Linear(3, 1), nn.ReLU()), lambda m, p: F.mse_loss(m(x[p])[:, 0], t[p]), lr=0.001)"""),
    "tanh before l1_loss, large targets": ("targets-out-of-reach", """train(nn.Sequential(classifier(), nn.Linear(3, 1), nn.Tanh()), lambda m, p: nn.L1Loss()(m(x[p]).squeeze(1), 5 * t[p]))"""),
    "kl_div of probabilities": ("no-log-before-kl-div", """soft = F.one_hot(y, 3) * 0.7 + 0.1
train(classifier(), lambda m, p: nn.KLDivLoss(reduction="batchmean")(m(x[p]).softmax(1), soft[p]))"""),
    "own loss, softmax over the batch": ("own-loss-over-the-batch", """
def own(m, p):
    probabilities = torch.softmax(m(x[p]), dim=0)
    return -torch.log(probabilities[torch.arange(32), y[p]] + 1e-9).mean()
train(classifier(), own)
"""),
    "own loss, log_softmax over the batch, gather": ("own-loss-over-the-batch", """train(classifier(), lambda m, p: -F.log_softmax(m(x[p]), 0).gather(1, y[p][:, None]).squeeze(1).mean())"""),
    "an LSTM without batch_first": ("batch-taken-for-time", """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.last = nn.LSTM(2, 16), nn.Linear(16, 3)
    def forward(self, x):
        return self.last(self.lstm(x)[0][:, -1])
train(Net(), lambda m, p: F.cross_entropy(m(x.view(256, 4, 2)[p]), y[p]))
"""),
    "attention without batch_first, a regression": ("batch-taken-for-time", """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.last = nn.MultiheadAttention(2, 1), nn.Linear(2, 1)
    def forward(self, x):
        return self.last(self.attention(x, x, x)[0].mean(1)).squeeze(1)
train(Net(), lambda m, p: F.mse_loss(m(x.view(256, 4, 2)[p]), t[p]))
"""),
    "pictures viewed as channels first": ("view-for-permute", """
pictures = torch.rand(256, 6, 6, 3)
model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3))
train(model, lambda m, p: F.cross_entropy(m(pictures[p].view(-1, 3, 6, 6)), y[p]))
"""),
    "a sequence of features reshaped for a Conv1d": ("view-for-permute", """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.conv, self.last = nn.Linear(2, 5), nn.Conv1d(5, 6, 3), nn.Linear(6, 3)
    def forward(self, x):
        h = self.first(x.view(-1, 4, 2)).relu()
        return self.last(self.conv(h.reshape(-1, 5, 4)).relu().mean(2))
train(Net(), lambda m, p: F.cross_entropy(m(x[p]), y[p]))
"""),
    "gradients are clipped after the step": ("gradients-clipped-too-late", """
model = classifier()
optimizer = optim.Adam(model.parameters())
for i in range(40):
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
"""),
    "gradients are clipped before backward": ("gradients-clipped-too-late", """
model = classifier()
optimizer = optim.Adam(model.parameters())
for i in range(40):
    optimizer.zero_grad()
    nn.utils.clip_grad_value_(model.parameters(), 0.1)
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
"""),
    "step is outside of the loop over the batches": ("gradients-cleared-without-a-step", """
model, loader = classifier(), DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
optimizer = optim.Adam(model.parameters(), lr=0.01)
for epoch in range(8):
    for xb, yb in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(xb), yb).backward()
    optimizer.step()
"""),
    "no activation in forward": ("no-activation-between-layers", """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(8, 32), nn.Linear(32, 32), nn.Linear(32, 3)
    def forward(self, x):
        return self.fc3(self.fc2(self.fc1(x)).relu())
train(Net(), lambda m, p: F.cross_entropy(m(x[p]), y[p]))
"""),
    "ExponentialLR decays in each batch": ("scheduler-steps-once-per-batch", """
model, loader = classifier(), DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
optimizer = optim.SGD(model.parameters(), lr=0.05)
scheduler = optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)
for epoch in range(12):
    for xb, yb in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(xb), yb).backward()
        optimizer.step()
        scheduler.step()
"""),
    "SGD with a tiny rate, noisy losses": ("update-ratio", """train(classifier(nn.Dropout(0.5)), lambda m, p: F.cross_entropy(m(x[p]), y[p]), steps=75, lr=1e-6)"""),
    "targets that are not shifted": ("target-equals-input", """
tokens = torch.randint(0, 9, (400,))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.last = nn.Embedding(9, 12), nn.Linear(12, 9)
        self.gru = nn.GRU(12, 12, batch_first=True)
    def forward(self, x):
        return self.last(self.gru(self.embed(x))[0])
model = Net()
optimizer = optim.Adam(model.parameters(), lr=0.01)
for i in range(40):
    at = torch.randint(0, 380, (8,)).tolist()
    xb = torch.stack([tokens[i : i + 10] for i in at])
    yb = torch.stack([tokens[i + 0 : i + 10 + 0] for i in at])
    optimizer.zero_grad()
    F.cross_entropy(model(xb).view(-1, 9), yb.view(-1)).backward()
    optimizer.step()
"""),
    "accuracy of (N, 1) and (N,)": ("comparison-that-broadcasts", """
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
train(model, lambda m, p: F.binary_cross_entropy_with_logits(m(x[p]).squeeze(1), b[p]))
with torch.no_grad():
    for xb, yb in DataLoader(TensorDataset(x, b), batch_size=64):
        predicted = (model(xb) > 0).float()
        accuracy = (predicted == yb).float().mean()
"""),
    "attention over the queries": ("attention-over-queries", """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(2, 4), nn.Linear(2, 4), nn.Linear(2, 4)
        self.last = nn.Linear(4, 3)
    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        h = F.dropout((q @ k.transpose(1, 2)).softmax(1), 0.1) @ v
        return self.last(h.mean(1))
train(Net(), lambda m, p: F.cross_entropy(m(x.view(256, 4, 2)[p]), y[p]))
"""),
    "inputs that a cast made equal": ("inputs-do-not-vary", """pictures = torch.rand(256, 8)
train(classifier(), lambda m, p: F.cross_entropy(m(pictures[p].long().float()), y[p]))"""),
}  # fmt: skip

RIGHT = {
    "plain": "train(classifier(nn.Dropout(0.2)), " + CE + ", steps=150)",
    "gan": """
G, D = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 8)), nn.Linear(8, 1)
g, d = optim.Adam(G.parameters(), lr=1e-3), optim.Adam(D.parameters(), lr=1e-3)
loss, one, zero = nn.BCEWithLogitsLoss(), torch.ones(32, 1), torch.zeros(32, 1)
for i in range(60):
    fake = G(torch.randn(32, 4))
    d.zero_grad()
    (loss(D(x[:32]), one) + loss(D(fake.detach()), zero)).backward()
    d.step()
    g.zero_grad()
    loss(D(fake), one).backward()
    g.step()
    with torch.no_grad():
        G(torch.randn(32, 4))
""",
    "a step inside the model": """
inner = torch.func.grad(lambda w, part: F.mse_loss(part @ w, t[:32]))
w = nn.Parameter(torch.zeros(8))
optimizer = optim.SGD([w], lr=0.05)
for i in range(30):
    optimizer.zero_grad()
    faster = w - 0.1 * inner(w, x[:32])
    F.mse_loss(x[32:64] @ faster, t[32:64]).backward()
    optimizer.step()
""",
    "gradient accumulation": """
model = classifier()
optimizer = optim.SGD(model.parameters(), lr=0.05)
for i in range(80):
    (F.cross_entropy(model(x), y) / 4).backward()
    if i % 4 == 3:
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
""",
    "policy gradient": """
policy = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer, logs, rewards = optim.Adam(policy.parameters(), lr=1e-2), [], []
for episode in range(60):
    for i in range(10):
        choice = torch.distributions.Categorical(logits=policy(x[i]))
        action = choice.sample()
        logs.append(choice.log_prob(action)), rewards.append(action.item())
    optimizer.zero_grad()
    loss = -(torch.stack(logs) * torch.tensor(rewards).float()).sum()
    loss.backward()
    optimizer.step()
    del logs[:], rewards[:]
""",
    "actor and critic on one retained graph": """
body, actor, critic = nn.Linear(8, 8), nn.Linear(8, 3), nn.Linear(8, 1)
optimizer = optim.Adam([*body.parameters(), *actor.parameters(), *critic.parameters()], lr=1e-3)
for i in range(60):
    h = body(x).tanh()
    optimizer.zero_grad()
    F.cross_entropy(actor(h), y).backward(retain_graph=True)
    F.mse_loss(critic(h).squeeze(1), t).backward()
    optimizer.step()
""",
    "frozen backbone": """
model = classifier(nn.BatchNorm1d(32))
for p in model[0].parameters():
    p.requires_grad_(False)
train(model, """ + CE + ", optimizer=optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1))",
    "pretrained backbone, optimizer of the head": """
model = classifier()
model.load_state_dict(model.state_dict())
train(model, """ + CE + ", optimizer=optim.SGD(model[2].parameters(), lr=0.1))",
    "frozen batch norm": """
model = classifier(nn.BatchNorm1d(32))
train(model, """ + CE + """)
model.train(); model[1].eval()
train(model, """ + CE + ")",
    "truncated backpropagation": """
cell, head, h = nn.RNNCell(8, 8), nn.Linear(8, 3), torch.zeros(4, 8)
optimizer = optim.SGD([*cell.parameters(), *head.parameters()], lr=0.01)
for i in range(60):
    h = cell(x[4 * i : 4 * i + 4], h.detach())
    optimizer.zero_grad()
    F.cross_entropy(head(h), y[4 * i : 4 * i + 4]).backward()
    optimizer.step()
""",
    "embedding": """
table = nn.Embedding(50, 8)
optimizer = optim.Adam(table.parameters(), lr=1e-2)
for i in range(60):
    optimizer.zero_grad()
    a, c = table(torch.randint(0, 50, (64,))), table(torch.randint(0, 50, (64,)))
    F.binary_cross_entropy_with_logits((a * c).sum(1), b[:64]).backward()
    optimizer.step()
""",
    "sparse embedding": """
table = nn.Embedding(50, 3, sparse=True)
optimizer = optim.SparseAdam(table.parameters(), lr=1e-2)
for i in range(60):
    optimizer.zero_grad()
    F.cross_entropy(table(torch.randint(0, 50, (64,))), y[:64]).backward()
    optimizer.step()
""",
    "moving average teacher": """
import copy
model = classifier(nn.Dropout(0.1))
teacher = copy.deepcopy(model)
optimizer = optim.SGD(model.parameters(), lr=0.05)
for i in range(60):
    with torch.no_grad():
        aim = teacher(x).softmax(1)
    optimizer.zero_grad()
    (F.cross_entropy(model(x), y) + F.mse_loss(model(x).softmax(1), aim)).backward()
    optimizer.step()
    with torch.no_grad():
        for p, q in zip(teacher.parameters(), model.parameters()):
            p.mul_(0.99).add_(q, alpha=0.01)
""",
    "two tasks in turn": """
body, heads = nn.Linear(8, 8), nn.ModuleList([nn.Linear(8, 3), nn.Linear(8, 1)])
optimizer = optim.Adam([*body.parameters(), *heads.parameters()], lr=1e-3)
for i in range(60):
    optimizer.zero_grad()
    h = body(x).relu()
    (F.cross_entropy(heads[0](h), y) if i % 20 < 19 else F.mse_loss(heads[1](h)[:, 0], t)).backward()
    optimizer.step()
""",
    "LBFGS": """
model = nn.Linear(8, 3)
optimizer = optim.LBFGS(model.parameters(), lr=0.1)
def closure():
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    return loss
for i in range(12):
    optimizer.step(closure)
""",
    "checkpointing": """
from rushlight.utils.checkpoint import checkpoint
model = classifier()
train(model, lambda m, p: F.cross_entropy(m[2](checkpoint(m[:2], x[p], use_reentrant=False)), y[p]))
""",
    "evaluation in the middle": """
model = classifier(nn.Dropout(0.5), nn.BatchNorm1d(32))
for epoch in range(6):
    model.train()
    train(model, """ + CE + """, steps=20)
    model.eval()
    with torch.no_grad():
        (model(x).argmax(1) == y).sum(), F.cross_entropy(model(x), y)
""",
    "training accuracy": """
model = classifier(nn.Dropout(0.5))
optimizer, right = optim.SGD(model.parameters(), lr=0.05), 0
for i in range(60):
    optimizer.zero_grad()
    scores = model(x)
    F.cross_entropy(scores, y).backward()
    optimizer.step()
    with torch.no_grad():
        right += (scores.argmax(1) == y).sum().item()
""",
    "a series without shuffling": """
wave = torch.arange(400).float().mul(0.05).sin()
windows = wave.unfold(0, 9, 1)
net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(3):
    for xb, yb in DataLoader(TensorDataset(windows[:, :8], windows[:, 8]), batch_size=16):
        optimizer.zero_grad()
        F.mse_loss(net(xb).squeeze(1), yb).backward()
        optimizer.step()
""",
    "a whole sorted data set in each step": """
order = y.argsort()
train(classifier(), lambda m, p: F.cross_entropy(m(x[order]), y[order]))
""",
    "log_softmax over the samples of a square of similarities": """
net = nn.Linear(8, 16)
optimizer = optim.SGD(net.parameters(), lr=0.01)
for i in range(20):
    optimizer.zero_grad()
    scores = net(x[:32]) @ net(x[:32] + 0.1 * torch.randn(32, 8)).T
    F.nll_loss(scores.log_softmax(0), torch.arange(32)).backward()
    optimizer.step()
""",
    "log_softmax over classes: last dimension, one sample, images": """
net = nn.Linear(8, 3)
F.nll_loss(net(x).log_softmax(-1), y).backward()
F.nll_loss(net(x[0]).log_softmax(0), y[0]).backward()
F.nll_loss(net(x).T.log_softmax(0).T, y).backward()
F.nll_loss(net(x[:24].view(2, 3, 4, 8)).permute(0, 3, 1, 2).log_softmax(1), y[:24].view(2, 3, 4)).backward()
""",
    "schedules in epochs and in batches": """
S = optim.lr_scheduler
EPOCHS, BATCHES = 8, 16
per_batch = [
    lambda o: S.OneCycleLR(o, max_lr=0.05, total_steps=EPOCHS * BATCHES),
    lambda o: S.CosineAnnealingLR(o, T_max=EPOCHS * BATCHES),
    lambda o: S.LambdaLR(o, lambda i: min(1.0, (i + 1) / 20)),
    lambda o: S.PolynomialLR(o, total_iters=EPOCHS * BATCHES),
    lambda o: S.StepLR(o, step_size=2 * BATCHES),
    lambda o: S.ExponentialLR(o, gamma=0.98),
    lambda o: S.MultiStepLR(o, [2 * BATCHES, 6 * BATCHES]),
    lambda o: S.CosineAnnealingLR(o, T_max=BATCHES),
    lambda o: S.SequentialLR(o, [S.LinearLR(o, 0.1, total_iters=8), S.CosineAnnealingLR(o, 120)], [8]),
    lambda o: S.LinearLR(o, start_factor=0.1, total_iters=EPOCHS),
]
per_epoch = [
    lambda o: S.StepLR(o, step_size=2),
    lambda o: S.CosineAnnealingLR(o, T_max=EPOCHS),
    lambda o: S.ExponentialLR(o, gamma=0.1),
]
for make in [*per_batch, *per_epoch]:
    model, loader = nn.Linear(8, 3), DataLoader(TensorDataset(x, y), batch_size=256 // BATCHES, shuffle=True)
    optimizer = optim.SGD(model.parameters(), lr=0.05)
    scheduler = make(optimizer)
    for epoch in range(EPOCHS):
        for xb, yb in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(xb), yb).backward()
            optimizer.step()
            if make in per_batch:
                scheduler.step()
        if make in per_epoch:
            scheduler.step()
""",
    "one full batch for each epoch, stepped in each": """
model, loader = nn.Linear(8, 3), DataLoader(TensorDataset(x, y), batch_size=256)
optimizer = optim.SGD(model.parameters(), lr=0.05)
scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=5)
for epoch in range(100):
    for xb, yb in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(xb), yb).backward()
        optimizer.step()
        scheduler.step()
""",
    "pseudo-labels, hard examples or targets of the model itself": """
def pseudo(model):
    new = torch.randn(64, 8)
    with torch.no_grad():
        labels = model(new).argmax(1)
    return F.cross_entropy(model(new), labels)
def hard(model):
    with torch.no_grad():
        some = F.cross_entropy(model(x), y, reduction="none").topk(64).indices
    return F.cross_entropy(model(x[some]), y[some])
def bootstrapped(model):
    with torch.no_grad():
        value = model(x[128:]).max(1).values
    return F.mse_loss(model(x[:128]).max(1).values, t[:128] + 0.9 * value)
for loss in (pseudo, hard, bootstrapped):
    train(classifier(nn.Dropout(0.5)), lambda m, p: loss(m), lr=0.01)
""",
    "gradients of images, by an optimizer that steps later": """
model = classifier()
optimizer = optim.SGD(model.parameters(), lr=0.05)
norms = []
for i in range(30):
    optimizer.zero_grad()
    F.cross_entropy(model(x[i : i + 1]), y[i : i + 1]).backward()
    norms.append(model[0].weight.grad.norm().item())
train(model, """ + CE + """, optimizer=optimizer)
""",
    "own update without step, zero_grad of an optimizer": """
model = classifier()
optimizer = optim.SGD(model.parameters(), lr=0.05)
for i in range(30):
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.05 * p.grad
""",
    "MC dropout with F.dropout, and F.dropout in training": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 3)
    def forward(self, x, drop=None):
        return self.fc(F.dropout(x, 0.5) if drop else F.dropout(x, 0.5, self.training))
model = Net()
train(model, """ + CE + """)
model.eval()
with torch.no_grad():
    model(x).argmax(1), F.cross_entropy(model(x), y)
    torch.stack([model(x, True).softmax(1) for _ in range(20)]).mean(0).argmax(1)
""",
    "MC dropout": """
model = classifier(nn.Dropout(0.5))
train(model, """ + CE + """)
with torch.no_grad():
    torch.stack([model(x).softmax(1) for _ in range(20)]).mean(0).argmax(1)
""",
    "contrastive loss, labels 0": """
net = nn.Linear(8, 16)
optimizer = optim.SGD(net.parameters(), lr=0.05)
for i in range(60):
    optimizer.zero_grad()
    q, keys = net(x[:64]), net(x[64:128]).detach()
    scores = torch.cat([(q * keys).sum(1, keepdim=True), q @ net(x[128:]).detach().T], 1)
    F.cross_entropy(scores, torch.zeros(64, dtype=torch.long)).backward()
    optimizer.step()
""",
    "pairwise distances": """
net = nn.Linear(8, 1)
optimizer = optim.SGD(net.parameters(), lr=0.01)
for i in range(60):
    optimizer.zero_grad()
    z = net(x[:32])
    ((z - z.T).abs() - (t[:32, None] - t[None, :32]).abs()).square().mean().backward()
    optimizer.step()
""",
    "an unused branch": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.spare = nn.Linear(8, 3), nn.Linear(8, 3)
    def forward(self, x):
        return self.used(x)
train(Net(), """ + CE + ")",
    "a shared list of layers": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.c = nn.Linear(8, 8), nn.Linear(8, 3)
        self.all = [self.a, self.c]
    def forward(self, x):
        return self.all[1](self.all[0](x).relu())
train(Net(), """ + CE + ")",
    "MAML": """
model = nn.Linear(8, 1)
optimizer = optim.SGD(model.parameters(), lr=0.01)
for i in range(30):
    optimizer.zero_grad()
    w, c = model.weight, model.bias
    inner = F.mse_loss(F.linear(x, w, c).squeeze(1), t)
    gw, gc = torch.autograd.grad(inner, (w, c), create_graph=True)
    F.mse_loss(F.linear(x, w - 0.1 * gw, c - 0.1 * gc).squeeze(1), t).backward()
    optimizer.step()
""",
    "adversarial example in evaluation mode": """
model = classifier(nn.Dropout(0.5))
train(model, """ + CE + """)
model.eval()
for i in range(10):
    image = x[:8].clone().requires_grad_()
    F.cross_entropy(model(image), y[:8]).backward()
""",
    "gradients of a frozen critic": """
actor, critic = nn.Linear(8, 8), nn.Linear(8, 1)
a, c = optim.Adam(actor.parameters(), lr=1e-3), optim.Adam(critic.parameters(), lr=1e-3)
for i in range(60):
    c.zero_grad()
    F.mse_loss(critic(actor(x).detach()).squeeze(1), t).backward()
    c.step()
    a.zero_grad()
    (-critic(actor(x)).mean()).backward()
    a.step()
""",
    "tied weights": """
class LM(nn.Module):
    def __init__(self):
        super().__init__(); self.e=nn.Embedding(20,16); self.l=nn.LSTM(16,16,batch_first=True); self.o=nn.Linear(16,20,bias=False); self.o.weight=self.e.weight
    def forward(self,s): return self.o(self.l(self.e(s))[0])
m=LM(); s=torch.randint(0,20,(8,12)); opt=optim.Adam(m.parameters(),lr=1e-2)
for i in range(40):
    opt.zero_grad(); F.cross_entropy(m(s).flatten(0,1),s.roll(-1,1).flatten()).backward(); opt.step()
""",
    "recurrent reuse": """
class R(nn.Module):
    def __init__(self):
        super().__init__(); self.i=nn.Linear(8,8); self.h=nn.Linear(8,8); self.o=nn.Linear(8,3)
    def forward(self,x):
        h=torch.zeros_like(x)
        for _ in range(4): h=(self.i(x)+self.h(h)).tanh()
        return self.o(h)
train(R(),lambda m,p: F.cross_entropy(m(x[p]),y[p]))
""",
    "siamese": """
net=nn.Sequential(nn.Linear(8,16),nn.ReLU(),nn.Linear(16,8)); opt=optim.Adam(net.parameters(),lr=1e-3)
for i in range(60):
    opt.zero_grad(); F.cosine_embedding_loss(net(x[:64]),net(x[64:128]),torch.ones(64)).backward(); opt.step()
""",
    "zero init last": """
model=classifier(); nn.init.zeros_(model[2].weight); nn.init.zeros_(model[2].bias)
train(model,lambda m,p: F.cross_entropy(m(x[p]),y[p]))
""",
    "lora": """
base=nn.Linear(8,3); base.requires_grad_(False); A=nn.Linear(8,4,bias=False); B=nn.Linear(4,3,bias=False); nn.init.zeros_(B.weight)
opt=optim.SGD([*A.parameters(),*B.parameters()],lr=0.5)
for i in range(40):
    opt.zero_grad(); F.cross_entropy(base(x)+B(A(x)),y).backward(); opt.step()
""",
    "lora module": """
class L(nn.Module):
    def __init__(self):
        super().__init__(); self.b=nn.Linear(8,3).requires_grad_(False); self.A=nn.Linear(8,4,bias=False); self.B=nn.Linear(4,3,bias=False); nn.init.zeros_(self.B.weight); self.head=nn.Linear(3,3)
    def forward(self,x): return self.head(self.b(x)+self.B(self.A(x)))
m=L(); train(m,lambda m,p: F.cross_entropy(m(x[p]),y[p]))
""",
    "residual zero init conv": """
class Res(nn.Module):
    def __init__(self):
        super().__init__(); self.a=nn.Conv2d(1,8,3,padding=1); self.b=nn.Conv2d(8,8,3,padding=1); self.c=nn.Conv2d(8,8,3,padding=1); nn.init.zeros_(self.c.weight); nn.init.zeros_(self.c.bias); self.o=nn.Linear(8,3)
    def forward(self,x):
        h=self.a(x).relu(); h=h+self.c(self.b(h).relu()); return self.o(h.mean((2,3)))
m=Res(); img=x.view(256,1,2,4)
opt=optim.SGD(m.parameters(),lr=0.1)
for i in range(30):
    opt.zero_grad(); F.cross_entropy(m(img),y).backward(); opt.step()
""",
    "bce gan": """
G,D=nn.Sequential(nn.Linear(4,16),nn.ReLU(),nn.Linear(16,8)),nn.Sequential(nn.Linear(8,16),nn.LeakyReLU(0.2),nn.Linear(16,1))
g,d=optim.Adam(G.parameters(),2e-4,betas=(.5,.9)),optim.Adam(D.parameters(),2e-4,betas=(.5,.9)); bce=nn.BCEWithLogitsLoss()
for i in range(60):
    z=torch.randn(32,4); fake=G(z); d.zero_grad(); (bce(D(x[:32]),torch.ones(32,1))+bce(D(fake.detach()),torch.zeros(32,1))).backward(); d.step()
    g.zero_grad(); bce(D(fake),torch.ones(32,1)).backward(); g.step()
""",
    "dqn": """
q=nn.Sequential(nn.Linear(8,32),nn.ReLU(),nn.Linear(32,3)); import copy
tgt=copy.deepcopy(q); opt=optim.Adam(q.parameters(),1e-3)
for i in range(60):
    a=q(x).argmax(1)
    with torch.no_grad(): best=tgt(x).max(1)[0]
    loss=F.smooth_l1_loss(q(x).gather(1,a[:,None])[:,0],t+0.9*best); opt.zero_grad(); loss.backward(); opt.step()
    if i%10==0: tgt.load_state_dict(q.state_dict())
""",
    "vae sum": """
enc,dec=nn.Linear(8,4),nn.Linear(2,8); opt=optim.Adam([*enc.parameters(),*dec.parameters()],1e-3)
for i in range(60):
    mu,lv=enc(x).chunk(2,1); zz=mu+torch.randn_like(mu)*(lv/2).exp(); l=F.mse_loss(dec(zz),x,reduction="sum")-0.5*(1+lv-mu**2-lv.exp()).sum(); opt.zero_grad(); l.backward(); opt.step()
""",
    "deep dream": """
model=classifier(); model.requires_grad_(False); img=torch.randn(1,8,requires_grad=True); opt=optim.Adam([img],0.05)
for i in range(40):
    opt.zero_grad(); (-model(img)[0,1]).backward(); opt.step()
""",
    "style network grads": """
feat=nn.Sequential(nn.Linear(8,16),nn.ReLU()); feat.load_state_dict(feat.state_dict()); img=torch.randn(4,8,requires_grad=True); opt=optim.Adam([img],0.05)
for i in range(40):
    opt.zero_grad(); F.mse_loss(feat(img),feat(x[:4]).detach()).backward(); opt.step()
""",
    "pretrained under no grad": """
body=nn.Linear(8,16); body.load_state_dict(body.state_dict()); head=nn.Linear(16,3); opt=optim.SGD([*body.parameters(),*head.parameters()],0.1)
for i in range(40):
    with torch.no_grad(): h=body(x)
    opt.zero_grad(); F.cross_entropy(head(h),y).backward(); opt.step()
""",
    "frozen in optimizer": """
model=classifier()
for p in model[0].parameters(): p.requires_grad_(False)
train(model,lambda m,p: F.cross_entropy(m(x[p]),y[p]))
""",
    "gradual unfreezing": """
model=classifier(); model.requires_grad_(False); model[2].requires_grad_(True); opt=optim.SGD(model.parameters(),0.05)
for i in range(60):
    if i==20: model.requires_grad_(True)
    opt.zero_grad(); F.cross_entropy(model(x),y).backward(); opt.step()
""",
    "two optimizers": """
a,b2=nn.Linear(8,16),nn.Linear(16,3); oa,ob=optim.SGD(a.parameters(),0.1),optim.Adam(b2.parameters(),1e-3)
for i in range(60):
    oa.zero_grad(); ob.zero_grad(); F.cross_entropy(b2(a(x).relu()),y).backward(); oa.step(); ob.step()
""",
    "alternating optimizers": """
a,b2=nn.Linear(8,16),nn.Linear(16,3); oa=optim.SGD(a.parameters(),0.1)
for i in range(10):
    oa.zero_grad(); F.cross_entropy(b2(a(x).relu()),y).backward(); oa.step(); a.zero_grad(); b2.zero_grad()
ob=optim.Adam(b2.parameters(),1e-3)
for i in range(60):
    ob.zero_grad(); F.cross_entropy(b2(a(x).relu()),y).backward(); ob.step(); a.zero_grad()
""",
    "argmax over time": """
m=nn.Linear(8,3); train(m,lambda m,p: F.cross_entropy(m(x[p]),y[p]))
with torch.no_grad():
    seq=m(x[:40]).view(10,4,3); seq.argmax(-1); m(x[0]).argmax(); m(x[:1]).argmax(); m(x)[0].argmax()
""",
    "one class batch": """
model=classifier(); o=optim.SGD(model.parameters(),0.01)
for i in range(30):
    k=int(torch.randint(0,3,(1,))); sel=(y==k); o.zero_grad(); F.cross_entropy(model(x[sel]),y[sel]).backward(); o.step()
""",
    "imbalanced": """
model=classifier(); z=(torch.arange(256)%64==0).long(); train(model,lambda m,p: F.cross_entropy(m(x[p]),z[p]))
""",
    "albert": """
class A(nn.Module):
    def __init__(self):
        super().__init__(); self.e=nn.Linear(8,8); self.block=nn.TransformerEncoderLayer(8,2,16,batch_first=True); self.o=nn.Linear(8,3)
    def forward(self,x):
        h=self.e(x)[:,None]
        for _ in range(3): h=self.block(h)
        return self.o(h[:,0])
train(A(),lambda m,p: F.cross_entropy(m(x[p]),y[p]),lr=0.01)
""",
    "shared relu": """
act=nn.ReLU(); model=nn.Sequential(nn.Linear(8,16),act,nn.Linear(16,16),act,nn.Linear(16,3)); train(model,lambda m,p: F.cross_entropy(m(x[p]),y[p]))
""",
    "multi exit": """
class ME(nn.Module):
    def __init__(self):
        super().__init__(); self.b=nn.ModuleList([nn.Linear(8,8) for _ in range(3)]); self.h=nn.ModuleList([nn.Linear(8,3) for _ in range(3)])
    def forward(self,x,k=1):
        for i in range(k): x=self.b[i](x).relu()
        return self.h[k-1](x)
m=ME(); opt=optim.SGD(m.parameters(),0.05)
for i in range(60):
    opt.zero_grad(); F.cross_entropy(m(x,1+i%3),y).backward(); opt.step()
""",
    "warmup tiny": """
model=classifier(); opt=optim.SGD(model.parameters(),lr=1.); s=optim.lr_scheduler.LambdaLR(opt,lambda i: 1e-7*(i+1))
for i in range(40):
    opt.zero_grad(); F.cross_entropy(model(x),y).backward(); opt.step(); s.step()
""",
    "finetune small lr": """
model=classifier(); train(model,lambda m,p: F.cross_entropy(m(x[p]),y[p]),steps=150,lr=0.1)
opt=optim.Adam(model.parameters(),lr=1e-5)
for i in range(50):
    opt.zero_grad(); F.cross_entropy(model(x),y).backward(); opt.step()
""",
    "random batches, next(iter) of a shuffled loader, one batch for all": """
model = classifier()
optimizer = optim.SGD(model.parameters(), lr=0.05)
for i in range(30):
    xb, yb = next(iter(DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)))
    optimizer.zero_grad()
    F.cross_entropy(model(xb), yb).backward()
    optimizer.step()
whole = DataLoader(TensorDataset(x, y), batch_size=256)
for i in range(30):
    for xb, yb in whole:
        optimizer.zero_grad()
        F.cross_entropy(model(xb), yb).backward()
        optimizer.step()
""",
    "bottleneck, two Linear layers of an autoencoder": """
net = nn.Sequential(nn.Linear(8, 2), nn.Linear(2, 8))
optimizer = optim.Adam(net.parameters(), lr=1e-2)
for i in range(40):
    optimizer.zero_grad()
    F.mse_loss(net(x), x).backward()
    optimizer.step()
""",
    "an attack that maximizes the loss of an input": """
model = classifier()
train(model, """ + CE + """)
model.requires_grad_(False)
noise = torch.zeros_like(x).requires_grad_()
attack = optim.SGD([noise], lr=0.1)
for i in range(40):
    attack.zero_grad()
    (-F.cross_entropy(model(x + noise), y)).backward()
    attack.step()
""",
    "an optimizer for each epoch": """
model = classifier()
for epoch in range(20):
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    for i in range(4):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
""",
    "relu before mse_loss, targets above 0": """train(nn.Sequential(classifier(), nn.Linear(3, 1), nn.ReLU()), lambda m, p: F.mse_loss(m(x[p])[:, 0], t[p] ** 2), lr=0.001)""",
    "sigmoid before mse_loss, targets of 0 and 1": """train(nn.Sequential(classifier(), nn.Linear(3, 1), nn.Sigmoid()), lambda m, p: F.mse_loss(m(x[p]).squeeze(1), b[p]))""",
    "kl_div of log_softmax": """soft = F.one_hot(y, 3) * 0.7 + 0.1
train(classifier(), lambda m, p: F.kl_div(m(x[p]).log_softmax(1), soft[p], reduction="batchmean"))""",
    "own loss over the classes": """train(classifier(), lambda m, p: -F.log_softmax(m(x[p]), 1)[torch.arange(32), y[p]].mean())""",
    "own contrastive loss over both dimensions": """
one, two = nn.Linear(8, 16), nn.Linear(8, 16)
n = torch.arange(32)
def clip(m, p):
    scores = one(x[p]) @ two(x[p] + 0.1).T
    return -(scores.log_softmax(0)[n, n].mean() + scores.log_softmax(1)[n, n].mean()) / 2
train(nn.ModuleList([one, two]), clip)
""",
    "an LSTM with time first": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.last = nn.LSTM(2, 16), nn.Linear(16, 3)
    def forward(self, x):
        return self.last(self.lstm(x.transpose(0, 1))[0][-1])
train(Net(), lambda m, p: F.cross_entropy(m(x.view(256, 4, 2)[p]), y[p]))
""",
    "an LSTM of one sequence, a target for each step": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.last = nn.LSTM(8, 16), nn.Linear(16, 3)
    def forward(self, x):
        return self.last(self.lstm(x[:, None])[0][:, 0])
train(Net(), lambda m, p: F.cross_entropy(m(x[p]), y[p]))
""",
    "an LSTM with time first, a target for each step and sample": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.last = nn.LSTM(8, 16), nn.Linear(16, 3)
    def forward(self, x):
        return self.last(self.lstm(x.view(8, 4, 8))[0]).view(-1, 3)
train(Net(), lambda m, p: F.cross_entropy(m(x[p]), y[p]))
""",
    "pictures permuted, and flat features viewed as pictures": """
pictures = torch.rand(256, 6, 6, 3)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.back = nn.Conv2d(3, 6, 3), nn.ConvTranspose2d(6, 3, 3)
    def forward(self, x):
        h = self.conv(x.permute(0, 3, 1, 2)).relu().flatten(1)
        return self.back(h.view(-1, 6, 4, 4)).permute(0, 2, 3, 1)
train(Net(), lambda m, p: F.mse_loss(m(pictures[p]), pictures[p]))
""",
    "gradients are clipped, and measured after the step": """
model = classifier()
optimizer = optim.Adam(model.parameters())
for i in range(40):
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    size = nn.utils.clip_grad_norm_(model.parameters(), float("inf"))
""",
    "clipping by keywords, two optimizers": """
one, two = classifier(), classifier()
optimizers = [optim.Adam(one.parameters()), optim.Adam(two.parameters())]
for i in range(40):
    for model, optimizer in zip((one, two), optimizers):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        nn.utils.clip_grad_norm_(parameters=model.parameters(), max_norm=1.0)
        nn.utils.clip_grad_value_(model.parameters(), clip_value=1.0)
        optimizer.step()
""",
    "an attack of several passes before each step": """
model = classifier()
optimizer = optim.SGD(model.parameters(), lr=0.05)
for i in range(10):
    attacked = x.clone().requires_grad_()
    for j in range(6):
        loss = F.cross_entropy(model(attacked), y)
        optimizer.zero_grad()
        loss.backward()
        if j < 5:
            attacked = (attacked + 0.01 * attacked.grad.sign()).detach().requires_grad_()
    optimizer.step()
""",
    "LBFGS, whose closure clears gradients": """
model = classifier()
optimizer = optim.LBFGS(model.parameters(), max_iter=6)
def closure():
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    return loss
for i in range(8):
    optimizer.step(closure)
""",
    "gradients are accumulated over 8 batches": """
model = classifier()
optimizer = optim.SGD(model.parameters(), lr=0.05)
for i in range(64):
    part = slice(i % 8 * 32, i % 8 * 32 + 32)
    (F.cross_entropy(model(x[part]), y[part]) / 8).backward()
    if i % 8 == 7:
        optimizer.step()
        optimizer.zero_grad()
""",
    "linear layers in a row: a bottleneck, and a result with two readers": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.query, self.key = nn.Linear(8, 32), nn.Linear(32, 32), nn.Linear(32, 32)
        self.down, self.up = nn.Linear(32, 4), nn.Linear(4, 32)
        self.last = nn.Linear(32, 3)
    def forward(self, x):
        h = self.first(x)
        return self.last((self.up(self.down(self.query(h) * self.key(h)))).relu())
train(Net(), lambda m, p: F.cross_entropy(m(x[p]), y[p]))
""",
    "a cosine schedule in batches, which ends near 0": """
model, loader = classifier(), DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
optimizer = optim.SGD(model.parameters(), lr=0.05)
scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=12 * len(loader))
for epoch in range(12):
    for xb, yb in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(xb), yb).backward()
        optimizer.step()
        scheduler.step()
""",
    "targets that are shifted": """
tokens = torch.randint(0, 9, (400,))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.last = nn.Embedding(9, 12), nn.Linear(12, 9)
        self.gru = nn.GRU(12, 12, batch_first=True)
    def forward(self, x):
        return self.last(self.gru(self.embed(x))[0])
model = Net()
optimizer = optim.Adam(model.parameters(), lr=0.01)
for i in range(40):
    at = torch.randint(0, 380, (8,)).tolist()
    xb = torch.stack([tokens[i : i + 10] for i in at])
    yb = torch.stack([tokens[i + 1 : i + 10 + 1] for i in at])
    optimizer.zero_grad()
    F.cross_entropy(model(xb).view(-1, 9), yb.view(-1)).backward()
    optimizer.step()
""",
    "an autoencoder of tokens": """
tokens = torch.randint(0, 9, (64, 6))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.last = nn.Embedding(9, 12), nn.Linear(24, 9)
        self.encode = nn.GRU(12, 24, batch_first=True)
        self.decode = nn.GRU(24, 24, batch_first=True)
    def forward(self, x):
        code = self.encode(self.embed(x))[1]
        return self.last(self.decode(code[0][:, None].repeat(1, 6, 1))[0])
model = Net()
optimizer = optim.Adam(model.parameters(), lr=0.01)
for i in range(40):
    optimizer.zero_grad()
    F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()).backward()
    optimizer.step()
""",
    "an autoencoder of tokens, which reads the token before": """
tokens = torch.randint(0, 9, (64, 6))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.last = nn.Embedding(9, 12), nn.Linear(24, 9)
        self.encode = nn.GRU(12, 24, batch_first=True)
        self.decode = nn.GRU(12, 24, batch_first=True)
    def forward(self, x):
        code = self.encode(self.embed(x))[1]
        first = torch.zeros(64, 1, dtype=torch.long)
        before = self.embed(torch.cat([first, x[:, :-1]], 1))
        return self.last(self.decode(before, code)[0])
model = Net()
optimizer = optim.Adam(model.parameters(), lr=0.01)
for i in range(40):
    optimizer.zero_grad()
    F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()).backward()
    optimizer.step()
""",
    "accuracy of equal shapes, and a mask of equal classes": """
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
train(model, lambda m, p: F.binary_cross_entropy_with_logits(m(x[p]).squeeze(1), b[p]))
with torch.no_grad():
    for xb, yb in DataLoader(TensorDataset(x, b), batch_size=64):
        predicted = (model(xb).squeeze(1) > 0).float()
        accuracy = (predicted == yb).float().mean()
        model(xb)
        pairs = yb[:, None] == yb
        pairs = yb[:, None].clone() == yb
""",
    "attention over the keys, keys first": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(2, 4), nn.Linear(2, 4), nn.Linear(2, 4)
        self.last = nn.Linear(4, 3)
    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        h = (k @ q.transpose(1, 2)).softmax(1).transpose(1, 2) @ v
        h = h + torch.einsum("bkq,bkd->bqd", (k @ q.transpose(1, 2)).softmax(1), v)
        return self.last(h.mean(1))
train(Net(), lambda m, p: F.cross_entropy(m(x.view(256, 4, 2)[p]), y[p]))
""",
    "a model of two arguments, of which one is constant": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = nn.Linear(9, 3)
    def forward(self, time, x):
        return self.last(torch.cat([time, x], 1))
train(Net(), lambda m, p: F.cross_entropy(m(torch.ones(32, 1), x[p]), y[p]))
""",
}  # fmt: skip
