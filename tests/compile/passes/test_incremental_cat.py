"""Sequences that grow: compiled, what was made of their first rows is not made again (passes/extend.py)."""

from __future__ import annotations

import functools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
            q, k = [
                torch.cat(
                    (
                        z[..., ::2] * angle.cos() - z[..., 1::2] * angle.sin(),
                        z[..., ::2] * angle.sin() + z[..., 1::2] * angle.cos(),
                    ),
                    -1,
                )
                for z in (q, k)
            ]
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
        assert rows(text)[4:] == [1] * 8  # `contiguous` of one row is no step: that of two has no first part


def test_a_window_that_moves_is_read_anew():
    torch.manual_seed(0)
    eager, made, text = both(functools.partial(written, Writer().eval(), most=3), torch.tensor([[3]]))
    assert made.tolist() == eager.tolist()
    assert rows(text) == [1, 1, 1, 1, 1, 1, *[3] * 6]


def test_queries_that_look_both_ways_see_what_is_new():
    torch.manual_seed(0)
    eager, made, text = both(functools.partial(written, Writer("both ways").eval()), torch.tensor([[3, 1]]))
    assert made.tolist() == eager.tolist()
    assert rows(text) == [2, 2, 1, 3, 1, 4, 1, 5, 1, 6, 1, 7]  # the first layer's rows stay, the second's do not


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
    made[1].zero_()  # results that show the same memory still do
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


def attention(x, **how):
    q = x.view(*x.shape[:2], HEADS, -1).transpose(1, 2)
    return F.scaled_dot_product_attention(q, q, q, **how).transpose(1, 2).reshape(x.shape)


# x: (batch, length, WIDTH); `table` (1, 12, WIDTH) and `weight` (WIDTH, WIDTH) are there
STEPS = {
    "layer": lambda x, table, weight: F.linear(x, weight),
    "product": lambda x, table, weight: x @ weight,
    "norm": lambda x, table, weight: F.layer_norm(x, (WIDTH,)),
    "gelu": lambda x, table, weight: F.gelu(x),
    "places": lambda x, table, weight: x + table[:, : x.shape[1]],
    "first place": lambda x, table, weight: x * table[:, :1],
    "looked up": lambda x, table, weight: x + F.embedding(torch.arange(x.shape[1]), table[0]),
    "back": lambda x, table, weight: attention(x, is_causal=True),
    "around": lambda x, table, weight: attention(x),
    "shares": lambda x, table, weight: x.softmax(-1),
    "shares of all": lambda x, table, weight: x.softmax(1),
    "sums": lambda x, table, weight: x.cumsum(1),
    "turned round": lambda x, table, weight: x.flip(1),
    "parts": lambda x, table, weight: torch.cat((x[..., 4:], -x[..., :4]), -1),
    "apart": lambda x, table, weight: torch.stack(x.unbind(1), 1),
    "copies": lambda x, table, weight: x.mT.contiguous().mT.clone(),
    "rows": lambda x, table, weight: F.linear(x.reshape(-1, WIDTH), weight).reshape(x.shape),
    "moved": lambda x, table, weight: F.pad(x, (0, 0, 1, 0))[:, :-1],
    "double": lambda x, table, weight: x.double().float(),
    "some": lambda x, table, weight: x.masked_fill(torch.arange(x.shape[1])[:, None] > 2, 0.5),
}
NEW = {"last": lambda y: y[:, -1:], "mean": lambda y: y.mean(1, keepdim=True), "half": lambda y: y[:, -1][:, None] / 2}
JOINED = {
    "behind": lambda x, new: torch.cat((x, new), 1),
    "twice": lambda x, new: torch.cat((x, new, new), 1),
    "before": lambda x, new: torch.cat((new, x), 1),
}


@settings(max_examples=40)
@given(
    st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=4),
    st.sampled_from(sorted(NEW)),
    st.sampled_from(sorted(JOINED)),
    st.integers(1, 3),
    st.integers(1, 3),
)
def test_whatever_is_made_of_what_grows(steps, new, joined, length, calls):
    torch.manual_seed(0)
    table, weight = torch.randn(1, 12, WIDTH), torch.randn(WIDTH, WIDTH) / 4

    @torch.no_grad()
    def f(x):
        seen = []
        for _ in range(calls + 1):
            y = x
            for step in steps:
                y = STEPS[step](y, table, weight)
            seen.append(y.square().mean())
            x = JOINED[joined](x, NEW[new](y))
        return x, y, *seen

    eager, made, _ = both(f, torch.randn(2, length, WIDTH))
    for a, b in zip(eager, made):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
