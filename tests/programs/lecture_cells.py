"""A lecture, cell by cell: a bigram model of names, by counting, by gradient, then backward by hand."""

# %%
import torch
import torch.nn.functional as F

words = (
    "emma olivia ava isabella sophia charlotte mia amelia harper evelyn abigail emily elizabeth mila ella avery sofia "
    "camila aria scarlett victoria madison luna grace chloe penelope layla riley zoey nora lily eleanor"
).split()
print(len(words), min(len(w) for w in words), max(len(w) for w in words))

# %%
chars = sorted(set("".join(words)))
stoi = {s: i + 1 for i, s in enumerate(chars)}
stoi["."] = 0
itos = {i: s for s, i in stoi.items()}
V = len(stoi)
N = torch.zeros((V, V), dtype=torch.int32)
for w in words:
    chs = ["."] + list(w) + ["."]
    for ch1, ch2 in zip(chs, chs[1:]):
        N[stoi[ch1], stoi[ch2]] += 1
print(N.dtype, N.shape, N.sum())
print(N[0])
print(N[:5, :5])

# %%
P = (N + 1).float()
P /= P.sum(1, keepdim=True)
print(P.shape, P[0].sum(), P.sum(1, keepdim=True).shape)
g = torch.Generator().manual_seed(2147483647)
for _ in range(5):
    out, ix = [], 0
    while True:
        ix = torch.multinomial(P[ix], num_samples=1, replacement=True, generator=g).item()
        out.append(itos[ix])
        if ix == 0:
            break
    print("".join(out))

# %%
log_likelihood, n = 0.0, 0
for w in words[:3]:
    chs = ["."] + list(w) + ["."]
    for ch1, ch2 in zip(chs, chs[1:]):
        prob = P[stoi[ch1], stoi[ch2]]
        log_likelihood += torch.log(prob)
        n += 1
        print(f"{ch1}{ch2}: {prob:.4f} {torch.log(prob):.4f}")
print(f"{log_likelihood=}")
print(f"{-log_likelihood / n}")

# %%
xs, ys = [], []
for w in words:
    chs = ["."] + list(w) + ["."]
    for ch1, ch2 in zip(chs, chs[1:]):
        xs.append(stoi[ch1])
        ys.append(stoi[ch2])
xs, ys = torch.tensor(xs), torch.tensor(ys)
num = xs.nelement()
print("number of examples:", num)
g = torch.Generator().manual_seed(2147483647)
W = torch.randn((V, V), generator=g, requires_grad=True)
for k in range(20):
    xenc = F.one_hot(xs, num_classes=V).float()
    logits = xenc @ W
    counts = logits.exp()
    probs = counts / counts.sum(1, keepdims=True)
    loss = -probs[torch.arange(num), ys].log().mean() + 0.01 * (W**2).mean()
    print(loss.item())
    W.grad = None
    loss.backward()
    W.data += -50 * W.grad

# %%
block = 3
X, Y = [], []
for w in words:
    context = [0] * block
    for ch in w + ".":
        ix = stoi[ch]
        X.append(context)
        Y.append(ix)
        context = context[1:] + [ix]
X, Y = torch.tensor(X), torch.tensor(Y)
print(X.shape, X.dtype, Y.shape, Y.dtype)
print(X[:6])

# %%
g = torch.Generator().manual_seed(2147483647)
C = torch.randn((V, 10), generator=g)
W1 = torch.randn((10 * block, 64), generator=g) * (5 / 3) / (10 * block) ** 0.5
b1 = torch.randn(64, generator=g) * 0.1
W2 = torch.randn((64, V), generator=g) * 0.1
b2 = torch.randn(V, generator=g) * 0.1
gain, shift = torch.randn((1, 64)) * 0.0 + 1.1, torch.zeros((1, 64)) + 0.01
parameters = [C, W1, b1, W2, b2, gain, shift]
print(sum(p.nelement() for p in parameters))
for p in parameters:
    p.requires_grad = True

ix = torch.randint(0, X.shape[0], (32,), generator=g)
Xb, Yb, n = X[ix], Y[ix], 32
emb = C[Xb]
embcat = emb.view(emb.shape[0], -1)
hprebn = embcat @ W1 + b1
bnmeani = 1 / n * hprebn.sum(0, keepdim=True)
bndiff = hprebn - bnmeani
bndiff2 = bndiff**2
bnvar = 1 / (n - 1) * bndiff2.sum(0, keepdim=True)
bnvar_inv = (bnvar + 1e-5) ** -0.5
bnraw = bndiff * bnvar_inv
hpreact = gain * bnraw + shift
h = torch.tanh(hpreact)
logits = h @ W2 + b2
logit_maxes = logits.max(1, keepdim=True).values
norm_logits = logits - logit_maxes
counts = norm_logits.exp()
counts_sum_inv = counts.sum(1, keepdims=True) ** -1
probs = counts * counts_sum_inv
logprobs = probs.log()
loss = -logprobs[range(n), Yb].mean()
for t in [logprobs, probs, logits, h, hpreact, bnraw, bnvar, hprebn, embcat, emb]:
    t.retain_grad()
loss.backward()
print(loss)


# %%
def cmp(s, dt, t):
    ex = torch.all(dt == t.grad).item()
    app = torch.allclose(dt, t.grad, rtol=1e-4, atol=1e-7)
    print(f"{s:15s} | same numbers: {ex or app} | shape {tuple(dt.shape)}")


dlogprobs = torch.zeros_like(logprobs)
dlogprobs[range(n), Yb] = -1.0 / n
dlogits = F.softmax(logits, 1)
dlogits[range(n), Yb] -= 1
dlogits /= n
dh = dlogits @ W2.T
dW2 = h.T @ dlogits
dhpreact = (1.0 - h**2) * dh
dgain = (bnraw * dhpreact).sum(0, keepdim=True)
dhprebn = gain * bnvar_inv / n * (n * dhpreact - dhpreact.sum(0) - n / (n - 1) * bnraw * (dhpreact * bnraw).sum(0))
dembcat = dhprebn @ W1.T
dW1 = embcat.T @ dhprebn
demb = dembcat.view(emb.shape)
dC = torch.zeros_like(C)
for k in range(Xb.shape[0]):
    for j in range(Xb.shape[1]):
        dC[Xb[k, j]] += demb[k, j]
for name, dt, t in [
    ("logprobs", dlogprobs, logprobs),
    ("logits", dlogits, logits),
    ("h", dh, h),
    ("W2", dW2, W2),
    ("hpreact", dhpreact, hpreact),
    ("gain", dgain, gain),
    ("hprebn", dhprebn, hprebn),
    ("W1", dW1, W1),
    ("b2", dlogits.sum(0), b2),
    ("C", dC, C),
]:
    cmp(name, dt, t)
print(C.grad[0])
print(logits.grad[0].sum().abs() < 1e-6, (h.abs() > 0.97).float().mean().item())
print(torch.histc(hpreact.detach(), bins=8, min=-4, max=4))
