# %% [markdown]
# # 11. Attention and a GPT
#
# **At the end of this lesson you know** what *attention* is, how a GPT is built, and you have trained a
# small one that writes in the style of a book. A GPT is the kind of network behind the well-known chat
# programs. Yours is about a million times smaller, but it has the same parts.
#
# **Time:** 40 minutes. **You need:** lessons 3, 7, 8 and 10.

# %% [markdown]
# ## The text
#
# We use the first six chapters of *Alice's Adventures in Wonderland* by Lewis Carroll (1865, in the
# public domain). The file `alice.txt` is beside this lesson and in `lessons.zip`.
#
# As in lesson 10, the network learns to answer one question: **which letter comes next?** Large models
# use pieces of words instead of letters. Everything else is the same.

# %%
from pathlib import Path

import rushlight as torch
from rushlight import nn, optim
from rushlight.nn import functional as F

text = Path("alice.txt").read_text()
letters = "".join(sorted(set(text)))
number = {letter: i for i, letter in enumerate(letters)}
print(f"{len(text):,} letters, {len(letters)} different ones")
print(text[:140], "...")


def encode(text):
    return torch.tensor([number[letter] for letter in text])


def decode(numbers):
    return "".join(letters[i] for i in numbers.tolist())


data = encode(text)
train_data, test_data = data[:-7000], data[-7000:]
print(encode("Alice").tolist(), "->", decode(encode("Alice")))

# %% [markdown]
# A **batch** is a set of random passages. `x` holds the passages, `y` the same moved by one letter. So
# each position is an exercise of its own: from a passage of 32 letters the network gets 32 questions,
# the first with one letter of memory, the last with 32.

# %%
T = 32  # letters in a passage


def passages(data, count):
    starts = torch.randint(len(data) - T - 1, (count, 1))
    places = starts + torch.arange(T)  # (count, 1) + (T,) -> (count, T)
    return data[places], data[places + 1]


torch.manual_seed(1)
x, y = passages(train_data, 2)
print("x:", repr(decode(x[0])))
print("y:", repr(decode(y[0])))

# %% [markdown]
# ## The idea: a mean of the past
#
# A network that predicts the letter at position 20 should use positions 1 to 19 (and not position 21:
# that is the answer). Lesson 10 used a fixed window of eight letters. How can we use *all* letters
# before, however many there are?
#
# The simplest way: take the **mean** of all vectors up to this position. It can be written as a product
# with a lower triangular matrix. Each row holds the weights of the earlier positions.

# %%
# 4 positions, 2 numbers each
vectors = torch.tensor([[1.0, 0.0], [3.0, 2.0], [5.0, 4.0], [7.0, 2.0]])
past = torch.tril(torch.ones(4, 4))
weights = past / past.sum(dim=1, keepdim=True)
print(weights)
print(weights @ vectors)
assert torch.allclose((weights @ vectors)[2], vectors[:3].mean(dim=0))

# %% [markdown]
# The zeros above the diagonal are important: no position may look into the future.
#
# The same weights in another way, which we need in a moment: begin with scores of 0, set the forbidden
# ones to minus infinity, and take the softmax of each row. (`exp` of minus infinity is 0.)

# %%
scores = torch.zeros(4, 4).masked_fill(past == 0, float("-inf"))
print(scores)
print(F.softmax(scores, dim=1))
assert torch.allclose(F.softmax(scores, dim=1), weights)

# %% [markdown]
# ## Attention
#
# A mean treats all positions alike. But not all letters are equally important. After a `q` one should look
# at this `q`. Inside of a quotation one should remember the quotation mark.
#
# So each position should choose **which** earlier positions it takes more of. For this, each position
# computes three vectors from its own, with three layers of weights:
#
# - a **query**: what am I looking for?
# - a **key**: what do I have?
# - a **value**: what do I give to those who choose me?
#
# Where a query fits a key, their product (the sum over their numbers) is large. These products are the
# scores. The softmax turns them into weights, and the weights take a mean of the values. That is
# **attention**.
#
# ```text
# scores[i, j] = query[i] · key[j] / √size          how much position i wants from position j
# weights      = softmax(scores, nothing from the future)
# result[i]    = sum over j of weights[i, j] * value[j]
# ```
#
# (Division by `√size` keeps the scores at a size of about 1: the same reason as `1 / √inputs` in lesson
# 10.)


# %%
def attention(query, key, value):
    """All (..., T, size). Returns results of this shape, and the weights (..., T, T)."""
    T, size = query.shape[-2:]
    scores = query @ key.transpose(-2, -1) / size**0.5
    past = torch.tril(torch.ones(T, T))
    weights = F.softmax(scores.masked_fill(past == 0, float("-inf")), dim=-1)
    return weights @ value, weights


torch.manual_seed(0)
query, key, value = torch.randn(3, 6, 8).unbind()  # each: 6 positions, 8 numbers
result, weights = attention(query, key, value)
print(weights.round(decimals=2))

ready = F.scaled_dot_product_attention(query, key, value, is_causal=True)
print("same as the library's function:", torch.allclose(result, ready, atol=1e-6))
assert torch.allclose(result, ready, atol=1e-6)

# %% [markdown]
# Each row adds up to 1. The first position can only take from itself.

# %% [markdown]
# ## Several heads
#
# One position may look for several things at the same time: the letter before, the beginning of the
# word, the last quotation mark. So we run several attentions side by side, each with a part of the
# numbers. They are called **heads**. At the end, one linear layer mixes their results.


# %%
class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query_key_value = nn.Linear(width, 3 * width, bias=False)
        self.mix = nn.Linear(width, width)

    def forward(self, x):  # (B, T, width)
        B, T, width = x.shape
        qkv = self.query_key_value(x).view(B, T, 3, self.heads, width // self.heads)
        # query, key, value: each (B, heads, T, width / heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind()
        result, self.weights = attention(query, key, value)
        return self.mix(result.transpose(1, 2).reshape(B, T, width))


# %% [markdown]
# ## A block
#
# Attention collects: each position gets information from others. Then each position has to *think* about
# it, alone: a small network of two layers (lesson 7). The two together are a **block**. A GPT is a row of
# equal blocks.
#
# Two tricks make it possible to train many blocks:
#
# - **Addition**: `x = x + attention(x)`, not `x = attention(x)`. Lesson 1: an addition sends the slope on
#   unchanged. So from the cost to the first block there is a direct way, along which no slope gets
#   smaller. The blocks only add something to what passes.
# - **Layer norm**: each vector is brought to the mean 0 and the size 1, as batch norm does in lesson 10,
#   but over the numbers of one position instead of over the batch.


# %%
class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.attend = nn.LayerNorm(width), Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.think = nn.Sequential(
            nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.think(self.norm2(x))


# %% [markdown]
# ## The GPT
#
# At the beginning, each letter becomes a vector (an embedding, lesson 10). Attention itself does not know
# *where* a letter stands: a mean has no order. So we add a second embedding, for the position. At the end,
# a linear layer makes a score for each letter.


# %%
class GPT(nn.Module):
    def __init__(self, width=64, heads=4, blocks=2):
        super().__init__()
        self.letter = nn.Embedding(len(letters), width)
        self.position = nn.Embedding(T, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(blocks)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, len(letters))
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.05)

    def forward(self, x):  # (B, T) numbers of letters -> (B, T, letters) scores
        x = self.letter(x) + self.position(torch.arange(x.shape[1]))
        return self.head(self.norm(self.blocks(x)))


torch.manual_seed(2)
model = GPT()
print(f"{sum(p.numel() for p in model.parameters()):,} parameters")


def cost_of(model, x, y):
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten())


import math

first_cost = cost_of(model, *passages(train_data, 32)).item()
print(f"cost before training: {first_cost:.2f}")
print(f"log({len(letters)}):              {math.log(len(letters)):.2f}")
assert abs(first_cost - math.log(len(letters))) < 0.3

# %% [markdown]
# The first cost is right. Before the training, it writes this:


# %%
@torch.no_grad()
def write(model, start, count, temperature=0.8):
    """Letter by letter: each is drawn by its probability. `start` is not empty."""
    numbers = encode(start).tolist()
    for _ in range(count):
        scores = model(torch.tensor([numbers[-T:]]))[0, -1]
        probabilities = F.softmax(scores / temperature, dim=0)
        numbers.append(torch.multinomial(probabilities, 1).item())
    return "".join(letters[i] for i in numbers)


print(write(model, "Alice ", 80))

# %% [markdown]
# ## Training
#
# The same loop as always. It takes about ten seconds on a laptop. In the browser each step is slower, so
# we take fewer of them there.

# %%
import sys

IN_BROWSER = sys.platform == "emscripten"
STEPS = 200 if IN_BROWSER else 1000


def train(model, steps):
    optimizer = optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.1)
    schedule = optim.lr_scheduler.OneCycleLR(
        optimizer, 4e-3, total_steps=steps, pct_start=0.1
    )
    costs = []
    for step in range(steps):
        cost = cost_of(model, *passages(train_data, 16))
        optimizer.zero_grad()
        cost.backward()
        optimizer.step()
        schedule.step()
        costs.append(cost.item())
        if step % 100 == 99:
            print(f"step {step + 1}: cost {sum(costs[-50:]) / 50:.3f}")
    return costs


torch.manual_seed(3)
costs = train(model, STEPS)


@torch.no_grad()
def test_cost(model):
    torch.manual_seed(4)
    return cost_of(model, *passages(test_data, 200)).item()


final = test_cost(model)
print(f"on text that it has not seen: {final:.3f}")
assert final < (2.7 if IN_BROWSER else 2.3)

# %% alt="The cost of the GPT by step: from 4.2 it falls quickly to 2.5 and then slowly to below 2"
import matplotlib.pyplot as plt

plt.plot(costs, linewidth=0.6)
plt.axhline(math.log(len(letters)), color="gray", linewidth=0.8, linestyle="--")
plt.xlabel("step")
plt.ylabel("cost")
plt.show()

# %%
torch.manual_seed(5)
print(write(model, "Alice ", 400))

# %% [markdown]
# It has learned spaces, commas, quotation marks, many short words, and the beginnings of longer ones. It
# has not learned sense: for this it is too small, and has read too little. It was never given a
# list of words. It learned them from one question: which letter comes next?

# %% [markdown]
# ## Where does it look?
#
# The weights of the attention can be seen. Each row is a position, and the dark fields are the letters
# from which it takes.

# %% alt="Attention weights of the four heads of the first block on the words 'the White Rabbit said'; most of the weight is on the letter itself and on those shortly before it; two heads spread it further back"
phrase = "the White Rabbit said"
with torch.no_grad():
    model(encode(phrase).unsqueeze(0))
fig, axes = plt.subplots(2, 2, figsize=(6.6, 6.6))
for head, ax in enumerate(axes.flat):
    ax.imshow(model.blocks[0].attend.weights[0, head], cmap="Blues", vmin=0, vmax=0.8)
    ax.set_xticks(range(len(phrase)), phrase, fontsize=7)
    ax.set_yticks(range(len(phrase)), phrase, fontsize=7)
    ax.set_title(f"head {head + 1}", fontsize=9)
fig.tight_layout()
plt.show()

# %% [markdown]
# The program does not tell the heads what to look for. Different heads have found different things: near letters, the
# own letter, or letters further back.

# %% [markdown]
# ## From here to the large ones
#
# What separates this network from a large language model?
#
# - **Size.** 100,000 parameters here; hundreds of billions there. More blocks, wider vectors, longer
#   passages.
# - **Pieces of words** instead of letters, so that a passage of the same length says more.
# - **Data.** One small book here; a large part of the written web there.
# - **A second training**, with examples of questions and good answers, so that it answers instead of just
#   continuing.
#
# You have built the same parts in eleven lessons: numbers that remember their history, slopes
# that are multiplied along paths and added where paths meet, layers with a bend, an optimizer, attention.

# %% [markdown]
# ## Exercises
#
# **Exercise 1.** The *temperature* divides the scores before the softmax. What happens with 0.1, with 1,
# with 3? Let it write 100 letters with each, into a dictionary `written` from temperature to text. Explain it with
# the softmax.

# %% tags=["solution"]
written = {}
for temperature in (0.1, 1.0, 3.0):
    torch.manual_seed(6)
    written[temperature] = write(model, "Alice ", 100, temperature)
    print(f"{temperature}: {written[temperature]!r}")
# Low: differences between scores grow, and the best letter nearly always wins. The text repeats itself.
# High: all letters become nearly equally likely. The text is noise.

# %% tags=["check"] define=["written"]
assert sorted(written) == [0.1, 1, 3], f"written has the temperatures {sorted(written)}, not 0.1, 1 and 3."
assert all(len(text) >= 100 for text in written.values()), "Each text should have 100 letters or more."
different = {temperature: len(set(text)) for temperature, text in written.items()}
assert different[0.1] < different[3], f"At 3 more different letters appear than at 0.1. Yours: {different}."

# %% [markdown]
# **Exercise 2.** Let a network cheat: remove the mask, so that each position sees the future. Train it for
# 400 steps (or `STEPS * 2 // 5`). Call the network `cheater` and its costs `cheater_costs`. What happens to the cost?
# Can it write?


# %% tags=["solution"]
def attention_without_mask(query, key, value):
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    weights = F.softmax(scores, dim=-1)
    return weights @ value, weights


with_mask = attention
attention = attention_without_mask  # the class `Attention` looks this name up
torch.manual_seed(7)
cheater = GPT()
cheater_costs = train(cheater, STEPS * 2 // 5)
print("cost:", cheater_costs[-1])
print(write(cheater, "Alice ", 60))
attention = with_mask
# The answer to position i is the letter at position i + 1, and it can see it. The cost falls far
# below the honest network's cost. When it writes, there is no future to look at, and it writes
# nonsense.
assert cheater_costs[-1] < final - 0.5

# %% tags=["check"] define=["cheater", "cheater_costs"]
assert isinstance(cheater, nn.Module), "`cheater` should be a network, GPT()."
assert len(cheater_costs) > 1, "`cheater_costs` should be the list that train(cheater, ...) returns."
assert cheater_costs[-1] < final - 0.5, (
    f"The last cost is {cheater_costs[-1]:.2f}, as without cheating. The class Attention calls the function `attention`: "
    "give this name to a function without the mask, before the training."
)

# %% [markdown]
# **Exercise 3.** Train a GPT without the position embedding (a class `NoPositions`) for `STEPS * 3 // 10` steps, and
# one with it. Compare the test costs. Why does it still learn something without the position?


# %% tags=["solution"]
class NoPositions(GPT):
    def forward(self, x):
        return self.head(self.norm(self.blocks(self.letter(x))))


for kind in (GPT, NoPositions):
    torch.manual_seed(8)
    small = kind()
    train(small, STEPS * 3 // 10)
    print(f"{kind.__name__:12} on new text: {test_cost(small):.3f}")
# It knows the letter itself, and which letters came before it, but hardly in which order. (A little
# of the order can be learned: the mask lets a position see only the letters before it.)

# %% tags=["check"] define=["NoPositions"]
with torch.no_grad():
    scores = NoPositions()(torch.zeros(1, 6, dtype=torch.long))
assert scores.shape == (1, 6, len(letters)), f"The scores have the shape {tuple(scores.shape)}, not {(1, 6, len(letters))}."
assert scores.std() > 0, "All scores are equal: the network does not see its input."
assert torch.allclose(scores[0, 0], scores[0, 5], atol=1e-4), (
    "For six equal letters the first and the last place get other scores: the network still knows the position."
)

# %% [markdown]
# ## What you have seen
#
# - **Attention** is a mean of values, with weights that each position chooses: its query fits some keys
#   better than others. The mask hides the future.
# - A **block**: attention collects, a small network thinks; both *add* to what passes through. Layer norm
#   keeps the sizes.
# - A **GPT**: embeddings of letters and positions, a row of blocks, scores for the next letter.
# - It writes by drawing one letter after the other.
#
# Where to go from here:
#
# - `examples/gpt.py` in the repository is this network in the form of a program, with more options. With
#   `import torch` in its first lines it runs on PyTorch.
# - [Compiled programs](../compile.md) makes the training faster.
# - [How it works](../architecture.md) describes rushlight itself: the engine, the ops, the tensors.
#
# Before: [10. Inventing names](10_names.md).
# Next: [12. Your own op](12_own_op.md). All lessons: [Learn](index.md)
