"""Sequences that grow: compiled, what was made of their first rows is not made again (passes/extend.py)."""
from __future__ import annotations

import functools
import re

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.compile import compile, programs
from rushlight.nn import functional as F

WIDTH, HEADS, LONGEST, WORDS = 16, 2, 12, 11


class Attention(nn.Module):
    """`how`: the ways in which people write it."""

    def __init__(self, how):
        super().__init__()
        self.how, self.qkv, self.out = how, nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        b, t, c = x.shape
        if self.how == "permute":
            q, k, v = self.qkv(x).reshape(b, t, 3, HEADS, c // HEADS).permute(2, 0, 3, 1, 4)
            q = q.contiguous()
        else:
            q, k, v = [z.view(b, t, HEADS, c // HEADS).transpose(1, 2) for z in self.qkv(x).chunk(3, -1)]
        if self.how == "rotary":
            angle = torch.arange(t)[:, None] * 0.5 ** torch.arange(c // HEADS // 2)
            q, k = [torch.cat((z[..., ::2] * angle.cos() - z[..., 1::2] * angle.sin(),
                               z[..., ::2] * angle.sin() + z[..., 1::2] * angle.cos()), -1) for z in (q, k)]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.how != "both ways")
        return self.out(y.transpose(1, 2).reshape(b, t, c))


class Writer(nn.Module):
    def __init__(self, how="chunk", places="table"):
        super().__init__()
        self.words, self.table = nn.Embedding(WORDS, WIDTH), nn.Embedding(LONGEST, WIDTH)
        self.places = nn.Parameter(torch.randn(1, LONGEST, WIDTH)) if places == "parameter" else None
        self.attention = nn.ModuleList([Attention(how) for _ in range(2)])
        self.wide, self.back = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS)

    def forward(self, index):
        t = index.shape[1]
        x = self.words(index) + (self.table(torch.arange(t)) if self.places is None else self.places[:, :t])
        for attention in self.attention:
            x = x + attention(self.norm(x))
            x = x + self.back(F.gelu(self.wide(self.norm(x))))
        return self.head(self.norm(x))


@torch.no_grad()
def written(model, index, tokens=6, most=LONGEST):
    for _ in range(tokens):
        index = torch.cat((index, model(index[:, -most:])[:, -1].argmax(-1, keepdim=True)), 1)
    return index


def both(f, *args, **options):
    """What f gives, eager and compiled, and the program's text after the pass."""
    shown = []
    program = compile(f, backend="numpy", options={"show": shown.append, **options})
    for _ in range(3):
        made = program(*args)
    assert programs(program), program.given_up
    return f(*args), made, next(text for text in shown if text.startswith("-- after extend"))


def rows(text):
    """Of the first linear layer of the attention, how many rows each call makes."""
    return [int(n) for n in re.findall(rf"float32\[\d+, (\d+), {3 * WIDTH}\] = linear", text)]


@pytest.mark.parametrize("how", ["chunk", "permute", "rotary"])
@pytest.mark.parametrize("places", ["table", "parameter"])
def test_a_text_that_grows_is_read_once(how, places):
    torch.manual_seed(0)
    model = Writer(how, places).eval()
    for start in (torch.tensor([[3]]), torch.tensor([[1, 2, 3], [4, 5, 6]])):
        eager, made, text = both(functools.partial(written, model), start)
        assert made.tolist() == eager.tolist()
        assert rows(text)[:3] == [start.shape[1]] * 2 + [1]
        assert rows(text)[4:] == [1] * 8          # `contiguous` of one row is no step: that of two has no first part


def test_a_window_that_moves_is_read_anew():
    torch.manual_seed(0)
    eager, made, text = both(functools.partial(written, Writer().eval(), most=3), torch.tensor([[3]]))
    assert made.tolist() == eager.tolist()
    assert rows(text) == [1, 1, 1, 1, 1, 1, *[3] * 6]


def test_queries_that_look_both_ways_see_what_is_new():
    torch.manual_seed(0)
    eager, made, text = both(functools.partial(written, Writer("both ways").eval()), torch.tensor([[3, 1]]))
    assert made.tolist() == eager.tolist()
    assert rows(text) == [2, 2, 1, 3, 1, 4, 1, 5, 1, 6, 1, 7]         # the first layer's rows stay, the second's do not


def test_outputs_of_a_growing_list():
    """torch.cat of all outputs so far, as recurrent decoders keep them."""
    torch.manual_seed(0)
    layer, step = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    @torch.no_grad()
    def f(x):
        seen, total = [x], 0.0
        for _ in range(5):
            memory = layer(torch.cat(seen, 1))
            total = total + memory.square().mean()
            seen.append(torch.tanh(step(memory.mean(1, keepdim=True))))
        return total, torch.cat(seen, 1)
    eager, made, text = both(f, torch.randn(2, 1, WIDTH))
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(eager, made))
    assert re.findall(r"\[2, (\d+), 16\] = linear", text).count("1") == 10


def test_all_positions_are_there_for_who_reads_them():
    torch.manual_seed(0)
    model = Writer().eval()

    @torch.no_grad()
    def f(index):
        all_of = []
        for _ in range(4):
            logits = model(index)
            all_of.append(logits.softmax(-1).flip(1))
            index = torch.cat((index, logits[:, -2:].argmax(-1)[:, -1:]), 1)
        return index, logits, logits.transpose(1, 2), logits[:, -1], *all_of
    eager, made, text = both(f, torch.tensor([[3, 4]]))
    for a, b in zip(eager, made):
        torch.testing.assert_close(a, b)
    assert set(rows(text)) == {1, 2}
    made[1].zero_()                               # results that show the same memory still do
    assert not made[2].any()
    assert not made[3].any()


def test_what_is_written_to_is_read_again():
    torch.manual_seed(0)
    model, scale = nn.Linear(WIDTH, WIDTH), torch.ones(WIDTH)

    @torch.no_grad()
    def f(x):
        first = model(x * scale)
        scale.mul_(2)
        second = model(torch.cat((x, first), 0) * scale)
        scale.div_(2)
        return second
    eager, made, text = both(f, torch.randn(4, WIDTH))
    assert torch.allclose(eager, made, atol=1e-6)
    assert "float32[8, 16] = linear" in text


def test_a_step_that_learns_keeps_its_rows():
    torch.manual_seed(0)
    model = Writer()

    def f(index):
        model.zero_grad()
        for _ in range(3):
            index = torch.cat((index, model(index)[:, -1:].argmax(-1)), 1)
        loss = F.cross_entropy(model(index[:, :-1]).flatten(0, 1), index[:, 1:].flatten())
        loss.backward()
        return loss
    eager, made, text = both(f, torch.tensor([[3, 4]]))
    assert float(eager) == pytest.approx(float(made), rel=1e-5)
    assert max(rows(text)) == 4
