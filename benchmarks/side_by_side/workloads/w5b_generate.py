"""W5b: the W5 model generates 100 tokens one by one (greedy, context cropped to 64, no key-value cache)."""

from common import Work, fill

from workloads.w5_gpt import CONTEXT, gpt

TOKENS = 100


def build(torch):
    model = fill(torch, gpt(torch))
    model.eval()
    start = torch.tensor([[0]])

    def forward(idx):
        return model(idx)

    def step(forward, idx):
        with torch.no_grad():
            for _ in range(TOKENS):
                logits = forward(idx[:, -CONTEXT:])[:, -1, :] / 0.8
                probs = torch.softmax(logits, dim=-1)
                idx = torch.cat((idx, probs.argmax(dim=-1, keepdim=True)), dim=1)
        return idx.float().mean()

    return Work(forward, step, [(start,)])
