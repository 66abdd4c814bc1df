"""W5: character GPT (4 layers, 4 heads, width 128, context 64, batch 12, no dropout), AdamW, clip 1.0."""

from common import Work, chars, fill, tensors

VOCAB, CONTEXT, LAYERS, HEADS, WIDTH, BATCH = 65, 64, 4, 4, 128, 12


def gpt(torch):
    nn, F = torch.nn, torch.nn.functional

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
            self.proj = nn.Linear(WIDTH, WIDTH, bias=False)

        def forward(self, x):
            b, t, c = x.shape
            q, k, v = self.qkv(x).split(WIDTH, dim=2)
            q, k, v = (z.view(b, t, HEADS, c // HEADS).transpose(1, 2) for z in (q, k, v))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.proj(y.transpose(1, 2).contiguous().view(b, t, c))

    class MLP(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(WIDTH, 4 * WIDTH, bias=False)
            self.proj = nn.Linear(4 * WIDTH, WIDTH, bias=False)

        def forward(self, x):
            return self.proj(F.gelu(self.fc(x)))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln1, self.attn = nn.LayerNorm(WIDTH, bias=False), Attention()
            self.ln2, self.mlp = nn.LayerNorm(WIDTH, bias=False), MLP()

        def forward(self, x):
            x = x + self.attn(self.ln1(x))
            return x + self.mlp(self.ln2(x))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte, self.wpe = nn.Embedding(VOCAB, WIDTH), nn.Embedding(CONTEXT, WIDTH)
            self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
            self.ln_f = nn.LayerNorm(WIDTH, bias=False)
            self.head = nn.Linear(WIDTH, VOCAB, bias=False)
            self.wte.weight = self.head.weight  # tied, as in GPT-2

        def forward(self, idx):
            x = self.wte(idx) + self.wpe(torch.arange(idx.shape[1]))
            for block in self.blocks:
                x = block(x)
            return self.head(self.ln_f(x))

    return GPT()


def build(torch):
    nn, F = torch.nn, torch.nn.functional
    model = fill(torch, gpt(torch))
    params = list(model.parameters())
    opt = torch.optim.AdamW(
        [
            {"params": [p for p in params if p.dim() >= 2], "weight_decay": 0.1},
            {"params": [p for p in params if p.dim() < 2], "weight_decay": 0.0},
        ],
        lr=1e-3,
        betas=(0.9, 0.99),
    )

    def forward(x, y):
        logits = model(x)
        return F.cross_entropy(logits.view(-1, VOCAB), y.view(-1))

    def step(forward, x, y):
        opt.zero_grad()
        loss = forward(x, y)
        loss.backward()
        nn.utils.clip_grad_norm_(params, 1.0)
        opt.step()
        return loss

    return Work(forward, step, tensors(torch, chars(BATCH, CONTEXT)))
