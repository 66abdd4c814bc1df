# %% [markdown]
# # 10. Inventing names
#
# **At the end of this lesson you know** how a program can learn to write: it learns which letter comes
# next. We do it in five steps: counting pairs, a network with a memory of
# three letters, a look inside with batch normalization, backward by hand, and a deeper network that
# joins letters two by two. These are the five steps of Andrej Karpathy's course *makemore*, with our own
# data and in our own words.
#
# **Time:** 40 minutes for steps 1 to 3, and 30 for steps 4 and 5. **You need:** lessons 3, 7 and 8.

# %% [markdown]
# ## The data
#
# The file `places.txt` has 1,319 names of English towns and villages, one in each line. (The list was
# written for this course. If you downloaded the notebook alone, put `places.txt` beside it; it is in
# `lessons.zip`.)

# %%
from pathlib import Path

import rushlight as torch
from rushlight.nn import functional as F

names = Path("places.txt").read_text().split()
print(len(names), "names:", names[:4], "...", names[-3:])

# the point stands for "begin" and "end"
letters = "." + "".join(sorted(set("".join(names))))
number = {letter: i for i, letter in enumerate(letters)}
print(len(letters), "letters:", letters)

# %% [markdown]
# A name is an exercise for a network: after *begin* comes `y`, after `y` comes `o`, after `o` comes `r`,
# after `r` comes `k`, after `k` comes *end*. One name, five small questions: **which letter is next?**
#
# We put a tenth of the names aside, to test with names that the network has not seen.

# %%
torch.manual_seed(1)
order = torch.randperm(len(names)).tolist()
test_names = [names[i] for i in order[:130]]
train_names = [names[i] for i in order[130:]]
print(len(train_names), "to train,", len(test_names), "to test")

# %% [markdown]
# ## Step 1: count pairs
#
# The simplest model looks only at the letter before. We count how often each letter follows each other
# letter: a table of 27 x 27.

# %%
counts = torch.zeros(27, 27)
for name in train_names:
    for first, second in zip("." + name, name + "."):
        counts[number[first], number[second]] += 1

for first in ".qo":
    best = counts[number[first]].topk(4)
    after = ", ".join(
        f"{letters[i]} {int(n)} times"
        for n, i in zip(best.values, best.indices.tolist())
        if n
    )
    print(f"after {first}: {after}")

# %% alt="Table of 27 by 27: how often each letter follows each other; o to n and begin to b are among the dark ones"
import matplotlib.pyplot as plt

plt.figure(figsize=(5.6, 5.2))
plt.imshow(counts.sqrt(), cmap="Blues")
plt.xticks(range(27), letters)
plt.yticks(range(27), letters)
plt.xlabel("next letter")
plt.ylabel("letter before")
plt.show()

# %% [markdown]
# Divided by the sum of its row, each count becomes a **probability**. Then we can write: begin with the
# point, draw the next letter by its probability, and go on until the point comes again.
#
# (We add 1 to each count, so that no pair is impossible.)

# %%
# lesson 3: (27, 27) / (27, 1)
probabilities = (counts + 1) / (counts + 1).sum(dim=1, keepdim=True)
assert torch.allclose(probabilities.sum(dim=1), torch.ones(27))


def invent(next_probabilities, count=8):
    """New names. `next_probabilities`: from the letters so far to (27,)."""
    made = []
    for _ in range(count):
        word = [0]
        while len(word) < 20:
            word.append(torch.multinomial(next_probabilities(word), 1).item())
            if word[-1] == 0:
                break
        made.append("".join(letters[i] for i in word[1:]).rstrip("."))
    return made


torch.manual_seed(2)
print(*invent(lambda word: probabilities[word[-1]]))

# %% [markdown]
# Some could almost be places. But this model forgets everything except one letter.
#
# **How good is it?** As in lesson 9: the cost is the mean of `-log(probability of the right letter)`. A
# model that knows nothing gives each letter 1/27, and its cost is `log(27) = 3.30`.


# %%
def bigram_cost(names):
    total, count = 0.0, 0
    for name in names:
        for first, second in zip("." + name, name + "."):
            total -= probabilities[number[first], number[second]].log().item()
            count += 1
    return total / count


results = {"count pairs": bigram_cost(test_names)}
print(f"cost on names that it has not seen: {results['count pairs']:.3f}")

# %% [markdown]
# **The same by training.** Counting works only for small tables. So let us find the table with backward
# instead. The weights are a 27 x 27 matrix of scores; row `i` holds the scores of all letters after
# letter `i`. At the beginning all are 0.

# %%
befores = torch.tensor([number[c] for name in train_names for c in "." + name])
afters = torch.tensor([number[c] for name in train_names for c in name + "."])

scores = torch.zeros(27, 27, requires_grad=True)
for _ in range(200):
    cost = F.cross_entropy(scores[befores], afters)
    scores.grad = None
    cost.backward()
    with torch.no_grad():
        scores -= 50 * scores.grad

counted = -(counts / counts.sum(1, keepdim=True))[befores, afters].log().mean()
print("cost on its own names")
print(f"counted: {counted.item():.4f}")
print(f"trained: {cost.item():.4f}")
assert abs(counted.item() - cost.item()) < 0.02

# %% [markdown]
# Training finds what counting finds. But training also works where counting is impossible.

# %% [markdown]
# ## Step 2: a network with a memory of three letters
#
# With three letters before, a table would need 27 · 27 · 27 · 27 = 531,441 counts. Most would be 0. A
# network needs far fewer numbers, because it can learn that some letters behave alike.
#
# 1. Each letter becomes a list of 10 numbers, its **embedding**. The network learns it. Letters that
#    behave alike get similar numbers.
# 2. Three embeddings in a row: 30 inputs. A layer with 100 neurons and `tanh`.
# 3. A layer with 27 outputs: the scores of the next letter.


# %%
def questions(names, context):
    """The letters before (n, context) and the right next letter (n,)."""
    before, after = [], []
    for name in names:
        window = [0] * context
        for letter in name + ".":
            before.append(window)
            after.append(number[letter])
            window = window[1:] + [number[letter]]
    return torch.tensor(before), torch.tensor(after)


x, y = questions(["york"], 3)
for window, answer in zip(x.tolist(), y.tolist()):
    print("".join(letters[i] for i in window), "->", letters[answer])

train_x, train_y = questions(train_names, 3)
test_x, test_y = questions(test_names, 3)
print(train_x.shape, train_y.shape)

# %% [markdown]
# We write the parameters by hand, to have them all before us.


# %%
def make_parameters(weight_scale=1.0, output_scale=1.0):
    torch.manual_seed(4)
    parameters = {
        "C": torch.randn(27, 10),  # embeddings
        "W1": torch.randn(30, 100) * weight_scale,
        "b1": torch.randn(100) * 0.1,
        "W2": torch.randn(100, 27) * output_scale,
        "b2": torch.randn(27) * output_scale,
    }
    for parameter in parameters.values():
        parameter.requires_grad_()
    return parameters


def mlp(p, x):
    """Scores (n, 27), and what the neurons say (n, 100)."""
    embedded = p["C"][x].flatten(1)  # (n, 3, 10) -> (n, 30)
    hidden = torch.tanh(embedded @ p["W1"] + p["b1"])
    return hidden @ p["W2"] + p["b2"], hidden


def train(p, forward, steps=3000, x=train_x, y=train_y, rate=0.1):
    torch.manual_seed(5)
    costs = []
    for step in range(steps):
        step_size = rate if step < 0.7 * steps else rate / 10
        batch = torch.randint(len(x), (64,))
        cost = F.cross_entropy(forward(p, x[batch])[0], y[batch])
        for parameter in p.values():
            parameter.grad = None
        cost.backward()
        with torch.no_grad():
            for parameter in p.values():
                parameter -= step_size * parameter.grad
        costs.append(cost.item())
    return costs


@torch.no_grad()
def test_cost(p, forward):
    return F.cross_entropy(forward(p, test_x)[0], test_y).item()


first = make_parameters()
first_costs = train(first, mlp)
print(f"first step:   {first_costs[0]:.2f}")
print(f"at the end:   {sum(first_costs[-100:]) / 100:.2f}")
print(f"on new names: {test_cost(first, mlp):.2f}")

# %% [markdown]
# It runs. But look at the cost of the first step: it is far above `log(27) = 3.30`! As lesson 9
# explained, the initial weights must be wrong. This brings us to step 3.

# %% [markdown]
# ## Step 3: a look inside
#
# **Too sure.** The scores of the first step are random numbers with a large spread. So the network is
# very sure of random answers, and is punished for it. The first hundreds of steps only make the scores
# smaller. The remedy: small weights in the last layer.
#
# **Saturated.** Let us look at the outputs of the 100 neurons before any training.

# %% alt="Left: with large weights most outputs of tanh are at -1 and 1. Right: with scaled weights they are spread over the range"
bad = make_parameters()
good = make_parameters(weight_scale=(5 / 3) / 30**0.5, output_scale=0.01)
fig, axes = plt.subplots(1, 2, figsize=(6.4, 2.6), sharey=True)
for ax, p, title in [
    (axes[0], bad, "weights of size 1"),
    (axes[1], good, "scaled weights"),
]:
    scores, hidden = mlp(p, train_x[:500])
    saturated = (hidden.abs() > 0.97).float().mean().item()
    cost = F.cross_entropy(scores, train_y[:500]).item()
    ax.hist(hidden.detach().flatten(), bins=40)
    ax.set_title(
        f"{title}\n{saturated:.0%} near -1 or 1, cost {cost:.2f}", fontsize=9
    )
    ax.set_xlabel("output of tanh")
fig.tight_layout()
plt.show()

# %% [markdown]
# On the left, most outputs of `tanh` are near -1 or 1. There the curve is flat: its slope `1 - tanh²` is
# nearly 0. Lesson 1: backward *multiplies* with this slope. So nearly nothing comes through, and these
# neurons learn very slowly.
#
# The reason: each neuron adds 30 random products, so the sum has a size of about √30 = 5.5. **Divide the
# weights by the square root of the number of inputs**, and the sum has a size of about 1. (The factor
# 5/3 is for `tanh`, which makes everything a little smaller.)

# %%
good_costs = train(good, mlp)
results["three letters"] = test_cost(good, mlp)
print(f"first step: {good_costs[0]:.2f} (log 27 is 3.30)")
print(f"on new names: {results['three letters']:.3f}")
assert abs(good_costs[0] - 3.3) < 0.1
assert results["three letters"] < results["count pairs"]


# %% alt="The cost by step: with unscaled weights it begins near 20, with scaled weights at 3.3; both fall"
def smooth(values, width=100):
    return torch.tensor(values).view(-1, width).mean(dim=1)


plt.plot(torch.arange(30) * 100, smooth(first_costs), label="weights of size 1")
plt.plot(torch.arange(30) * 100, smooth(good_costs), label="scaled weights")
plt.yscale("log")
plt.xlabel("step")
plt.ylabel("cost (mean of 100 steps)")
plt.legend()
plt.show()

# %% [markdown]
# **Batch normalization.** In a deep network it is difficult to choose all sizes well. So people let the
# network do it: at each layer, subtract the mean of the batch and divide by its spread. Then the sums
# have the mean 0 and the size 1, whatever the weights are. Two more parameters (`gain` and
# `shift`) let the network learn another size.
#
# Here are six layers in a row, with weights that are too large. The histograms show the outputs
# of each layer, and the **gradients** that arrive there.


# %%
def batch_norm(x, gain=1.0, shift=0.0):
    mean = x.mean(dim=0)  # one for each neuron
    spread = x.var(dim=0, unbiased=False)
    return gain * (x - mean) / (spread + 1e-5).sqrt() + shift


def deep(normalize, scale):
    """What six layers say, and the gradients that arrive at each."""
    torch.manual_seed(6)
    layer = torch.randn(200, 100)
    outputs = []
    for _ in range(6):
        layer = layer @ (torch.randn(100, 100) * scale)
        layer = torch.tanh(batch_norm(layer) if normalize else layer)
        if not outputs:
            layer.requires_grad_()
        layer.retain_grad()
        outputs.append(layer)
    (layer * torch.randn(200, 100)).sum().backward()
    return outputs


# %% alt="Histograms of outputs and gradients of layers 1, 3 and 6. Without normalization, outputs shrink or saturate; with it, all layers look alike"
cases = [
    ("too small weights", False, 0.05),
    ("too large weights", False, 0.5),
    ("batch norm", True, 0.5),
]


def draw(ax, values, low, high, label):
    heights = torch.histc(values, 41, low, high)
    ax.plot(torch.linspace(low, high, 41), heights / heights.sum(), label=label)


fig, axes = plt.subplots(2, 3, figsize=(6.6, 4.0))
for column, (title, normalize, scale) in enumerate(cases):
    print(f"{title}: size of the gradients")
    outputs = deep(normalize, scale)
    for index in (5, 2, 0):
        label = f"layer {index + 1}"
        draw(axes[0, column], outputs[index].detach(), -1, 1, label)
        draw(axes[1, column], outputs[index].grad, -3, 3, label)
        print(f"    {label}: {outputs[index].grad.std().item():.3f}")
    axes[0, column].set_title(title, fontsize=9)
    axes[0, column].set_ylim(0, 0.25)
    axes[1, column].set_ylim(0, 0.5)
    axes[0, column].set_xlabel("outputs", fontsize=8)
    axes[1, column].set_xlabel("gradients", fontsize=8)
axes[0, 0].legend(fontsize=7)
fig.tight_layout()
plt.show()

# %% [markdown]
# Read the printed sizes, too. Backward goes from layer 6 to layer 1. With small weights, the outputs die out
# on their way forward, and the gradients on their way back (1.0, 0.1, 0.03). With large weights, nearly
# every output is at -1 or 1, and the gradients grow (1, 5, 14). In a network of 50 layers they would
# become zero or infinite. With batch normalization, all layers look alike, although it has the large
# weights, too.
#
# How fast do weights change? A useful number is the **update ratio**: size of a step, divided by
# the size of the weights. About 1/1000 is good (-3 on a logarithmic axis). Much larger: the network
# jumps. Much smaller: it sleeps. We train a network with batch normalization and watch.


# %%
def norm_parameters():
    p = make_parameters(weight_scale=(5 / 3) / 30**0.5, output_scale=0.01)
    p["gain"] = torch.ones(100, requires_grad=True)
    p["shift"] = torch.zeros(100, requires_grad=True)
    return p


def norm_mlp(p, x):
    embedded = p["C"][x].flatten(1)
    hidden = torch.tanh(batch_norm(embedded @ p["W1"], p["gain"], p["shift"]))
    return hidden @ p["W2"] + p["b2"], hidden


normed = norm_parameters()
del normed["b1"]  # subtracting the mean removes a bias: `shift` does its work
normed_costs = train(normed, norm_mlp)
results["with batch norm"] = test_cost(normed, norm_mlp)
print(f"first step:   {normed_costs[0]:.2f}")
print(f"on new names: {results['with batch norm']:.2f}")

batch = torch.randint(len(train_x), (64,))
F.cross_entropy(norm_mlp(normed, train_x[batch])[0], train_y[batch]).backward()
for name, parameter in normed.items():
    ratio = 0.01 * parameter.grad.std() / parameter.detach().std()
    print(f"{name:6} update ratio 10^{ratio.log10().item():.1f}")

# %% [markdown]
# It is not better than the network before. Our network has only one hidden layer, and we had already
# chosen good weights for it: nothing was left to repair. Batch norm shows its worth in deep networks,
# such as the one in step 5.
#
# (In `test_cost` our batch norm uses the mean of all test names at once. A real layer, `nn.BatchNorm1d`,
# keeps running means while it trains and uses them in `model.eval()`. So it can also work with a single
# example.)

# %%
torch.manual_seed(8)


@torch.no_grad()
def next_by_mlp(word):
    window = ([0, 0] + word)[-3:]
    return F.softmax(mlp(good, torch.tensor([window]))[0][0], dim=0)


print(*invent(next_by_mlp, 10))

# %% [markdown]
# ## Step 4: backward by hand
#
# Once in your life, write the whole backward pass of a network yourself. You know everything that
# this needs: the slope of each step, the chain rule, sums where a value is used often, and the
# undoing of broadcasting.
#
# Here is the forward pass in small steps. `retain_grad` keeps the gradient of each step, so that we can
# compare.

# %%
n = 32
xb, yb = train_x[:n], train_y[:n]
p = {
    name: value.detach().clone().requires_grad_()
    for name, value in norm_parameters().items()
}

embedded = p["C"][xb]  # (32, 3, 10)
flat = embedded.flatten(1)  # (32, 30)
summed = flat @ p["W1"]  # (32, 100)
mean = summed.mean(0)  # (100,)
centered = summed - mean
variance = (centered**2).mean(0)  # (100,)
factor = (variance + 1e-5) ** -0.5  # (100,)
scaled = centered * factor
normal = p["gain"] * scaled + p["shift"]
hidden = torch.tanh(normal)
scores = hidden @ p["W2"] + p["b2"]  # (32, 27)
cost = F.cross_entropy(scores, yb)

steps = dict(
    embedded=embedded,
    flat=flat,
    summed=summed,
    mean=mean,
    centered=centered,
    variance=variance,
    factor=factor,
    scaled=scaled,
    normal=normal,
    hidden=hidden,
    scores=scores,
)
for tensor in steps.values():
    tensor.retain_grad()
cost.backward()

# %% [markdown]
# And now backward, from the last line to the first. The name `d_x` means the slope of the cost with respect to `x`.
# Read each line together with its forward line.

# %%
with torch.no_grad():
    # cross entropy: the probabilities, minus 1 at the right letter, divided by n
    d_scores = F.softmax(scores, dim=1)
    d_scores[torch.arange(n), yb] -= 1
    d_scores /= n
    # scores = hidden @ W2 + b2
    d_hidden = d_scores @ p["W2"].T
    d_W2 = hidden.T @ d_scores
    d_b2 = d_scores.sum(0)  # broadcast over the batch: summed
    # hidden = tanh(normal)
    d_normal = (1 - hidden**2) * d_hidden
    # normal = gain * scaled + shift
    d_gain = (scaled * d_normal).sum(0)
    d_shift = d_normal.sum(0)
    d_scaled = p["gain"] * d_normal
    # scaled = centered * factor
    d_factor = (centered * d_scaled).sum(0)
    d_centered = factor * d_scaled  # the first part; a second comes from the variance
    # factor = (variance + 1e-5) ** -0.5
    d_variance = -0.5 * (variance + 1e-5) ** -1.5 * d_factor
    # variance = (centered ** 2).mean(0): a mean repeats in backward
    d_centered = d_centered + 2 * centered * d_variance / n
    # centered = summed - mean
    d_mean = -d_centered.sum(0)
    # summed is used twice: directly and in the mean
    d_summed = d_centered + d_mean / n
    # summed = flat @ W1
    d_flat = d_summed @ p["W1"].T
    d_W1 = flat.T @ d_summed
    # flat = embedded.flatten(1): only the shape
    d_embedded = d_flat.view(n, 3, 10)
    # embedded = C[xb]: rows that were taken several times get several slopes
    d_C = torch.zeros(27, 10)
    d_C.index_add_(0, xb.flatten(), d_embedded.reshape(-1, 10))

by_hand = dict(
    scores=d_scores,
    hidden=d_hidden,
    normal=d_normal,
    scaled=d_scaled,
    factor=d_factor,
    variance=d_variance,
    centered=d_centered,
    mean=d_mean,
    summed=d_summed,
    flat=d_flat,
    embedded=d_embedded,
    W2=d_W2,
    b2=d_b2,
    gain=d_gain,
    shift=d_shift,
    W1=d_W1,
    C=d_C,
)
for name, ours in by_hand.items():
    theirs = (steps | p)[name].grad
    difference = (ours - theirs).abs().max().item()
    print(f"{name:9} {tuple(ours.shape)!s:12} largest difference {difference:.0e}")
    assert torch.allclose(ours, theirs, atol=1e-6), name

# %% [markdown]
# Seventeen gradients, all right. This is what `cost.backward()` does for you.

# %% [markdown]
# ## Step 5: two by two
#
# Three letters are a short memory. With eight letters, one layer would have to press 80 numbers together
# at once. It is better to join them slowly: first neighbors in pairs (8 → 4), then pairs of pairs (4 →
# 2), then all (2 → 1). A tree of this form became known with the network *WaveNet*, which makes sound.


# %%
class JoinPairs(torch.nn.Module):
    """(n, letters, channels) -> (n, letters / 2, 2 * channels)."""

    def forward(self, x):
        n, letters, channels = x.shape
        return x.reshape(n, letters // 2, 2 * channels)


class Norm(torch.nn.BatchNorm1d):
    """Batch normalization over all positions: (n, letters, channels)."""

    def forward(self, x):
        return super().forward(x.flatten(0, 1)).view_as(x)


def tree(width=64):
    def level(inputs):
        linear = torch.nn.Linear(2 * inputs, width, bias=False)
        return [JoinPairs(), linear, Norm(width), torch.nn.Tanh()]

    return torch.nn.Sequential(
        torch.nn.Embedding(27, 10),  # (n, 8, 10)
        *level(10),  # (n, 4, 64)
        *level(width),  # (n, 2, 64)
        *level(width),  # (n, 1, 64)
        torch.nn.Flatten(),  # (n, 64)
        torch.nn.Linear(width, 27),
    )


long_x, long_y = questions(train_names, 8)
long_test_x, long_test_y = questions(test_names, 8)
torch.manual_seed(9)
model = tree()
shown = long_x[:5]
for layer in model:
    shown = layer(shown)
    print(f"{type(layer).__name__:10} {tuple(shown.shape)}")
optimizer = torch.optim.AdamW(model.parameters(), lr=0.004, weight_decay=0.3)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.004, total_steps=1200)
for _ in range(1200):
    batch = torch.randint(len(long_x), (64,))
    cost = F.cross_entropy(model(long_x[batch]), long_y[batch])
    optimizer.zero_grad()
    cost.backward()
    optimizer.step()
    schedule.step()

model.eval()
with torch.no_grad():
    results["tree of eight letters"] = F.cross_entropy(
        model(long_test_x), long_test_y
    ).item()
for name, value in results.items():
    print(f"{name:22} {value:.3f}")
assert results["tree of eight letters"] < results["count pairs"] - 0.2

# %% alt="Bar chart of the cost on new names: highest for counting pairs, lowest for the tree"
plt.figure(figsize=(6.4, 2.2))
plt.barh(list(results), list(results.values()))
plt.axvline(3.30, color="gray", linewidth=0.8, linestyle="--")
plt.text(3.28, 0.3, "knows nothing", ha="right", fontsize=8)
plt.gca().invert_yaxis()
plt.xlim(1.5, 3.4)
plt.xlabel("cost on new names")
plt.tight_layout()
plt.show()

# %%
torch.manual_seed(10)


@torch.no_grad()
def next_by_tree(word):
    window = ([0] * 7 + word)[-8:]
    return F.softmax(model(torch.tensor([window]))[0], dim=0)


made = invent(next_by_tree, 24)
print(*[f"{name} (exists)" if name in names else name for name in made], sep=", ")

# %% [markdown]
# These places do not exist (most of them), but you would look for them on a map.
#
# With only 1,189 names to train, a larger network learns the names by heart before it gets better. For
# the next big step, one needs more text. And another kind of network: see lesson 11.

# %% [markdown]
# ## Exercises
#
# **Exercise 1.** In step 1, leave out the `+ 1`. Which cost does the model have on a name with a pair
# that it has never seen, such as `qx`? Store this cost as `unseen_cost`. Why is the `+ 1` a good idea?

# %% tags=["solution"]
plain = counts / counts.sum(1, keepdim=True)
print("probability of x after q:", plain[number["q"], number["x"]].item())
unseen_cost = -plain[number["q"], number["x"]].log().item()
print("cost:", unseen_cost)
print("with + 1:", -probabilities[number["q"], number["x"]].log().item())
# Without it the cost is infinite: the model was sure that this cannot happen. One should never be
# completely sure. A pair that was not seen is rare, not impossible.

# %% tags=["check"] define=["unseen_cost"]
assert float(unseen_cost) > 0, f"A cost is not negative, unseen_cost is {float(unseen_cost)}: -log(probability)."
assert float(unseen_cost) == float("inf"), f"unseen_cost is {float(unseen_cost):.2f}: is the + 1 still there?"

# %% [markdown]
# **Exercise 2.** Begin with zeros. Set `W1` of the network in step 2 to zeros. What is `W1.grad` after
# one call of backward? Then set `W2` to zeros as well (call these parameters
# `zero`). Can the network still learn?

# %% tags=["solution"]
zero = make_parameters(weight_scale=0.0, output_scale=0.01)
F.cross_entropy(mlp(zero, train_x[:64])[0], train_y[:64]).backward()
print("W1 is 0:          size of its gradient", zero["W1"].grad.abs().mean().item())
zero = make_parameters(weight_scale=0.0, output_scale=0.0)
F.cross_entropy(mlp(zero, train_x[:64])[0], train_y[:64]).backward()
print("W1 and W2 are 0:  size of its gradient", zero["W1"].grad.abs().mean().item())
assert (zero["W1"].grad == 0).all()
# With W1 = 0 it still learns: the random biases make the neurons different. With W2 = 0, too, no slope
# comes through to W1 in the first step. But W2 and b2 get slopes, so they change, and from the second
# step on W1 learns as well.

# %% tags=["check"] define=["zero"]
assert isinstance(zero, dict) and {"W1", "W2"} <= set(zero), "`zero` should be what make_parameters(...) returns."
assert not zero["W1"].any() and not zero["W2"].any(), "W1 and W2 should be zeros: weight_scale=0.0, output_scale=0.0."
assert zero["W1"].grad is not None, "W1 has no gradient yet: call backward on the cost of mlp(zero, ...)."
assert not zero["W1"].grad.any(), "The gradient of W1 is not 0: is it from a run in which W2 was not 0?"

# %% [markdown]
# **Exercise 3.** In step 4, the gradient of `scores` is "the probabilities, minus 1 at the right
# letter". Derive it for three classes on paper, from `cost = -log(exp(s_right) / sum(exp(s)))`. Then check the
# sum of each row of `d_scores`, and store these sums as `row_sums`. What do they mean?

# %% tags=["solution"]
# cost = log(sum(exp(s))) - s_right. The derivative with respect to s_i is exp(s_i) / sum(exp(s)),
# the probability of i, minus 1 for the right letter.
row_sums = d_scores.sum(dim=1)
print(row_sums.abs().max().item())
assert torch.allclose(row_sums, torch.zeros(n), atol=1e-6)
# Each row adds up to 0: the right letter is pulled up as much as all other letters together are pushed down.

# %% tags=["check"] define=["row_sums"]
assert row_sums.shape == (n,), f"row_sums has the shape {tuple(row_sums.shape)}, it should be ({n},): one sum for each row."
assert torch.allclose(row_sums, torch.zeros(n), atol=1e-6), "The sums of the rows are 0. Did you sum along dim=1?"

# %% [markdown]
# ## What you have seen
#
# - A program writes by asking again and again: **which letter is next?**
# - The cost of the first step shows whether the initial weights are right: `log(27)`.
# - **Look inside**: histograms of outputs and gradients, the update ratio. Scale the weights by
#   `1 / √inputs`; batch normalization keeps the sizes.
# - Backward by hand is the chain rule, line by line, in reverse.
# - More memory of the letters before, joined step by step, gives better names.
#
# Before: [9. Reading digits](09_digits.md).
# Next: [11. Attention and a GPT](11_gpt.md)
