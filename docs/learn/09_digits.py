# %% [markdown]
# # 9. Reading digits
#
# **At the end of this lesson you know** how a network sees a picture: what a convolution and a pooling
# layer do, how data is split and fed in batches, how a classifier is trained, and how to look at its
# mistakes.
#
# **Time:** 40 minutes. **You need:** lessons 3, 7 and 8.

# %% [markdown]
# ## The data
#
# rushlight comes with 1,797 small pictures of handwritten digits (from the UCI Machine Learning
# Repository; E. Alpaydin and C. Kaynak). Each has 8 x 8 points. A fifth of them is kept apart for
# the test.

# %%
import rushlight as torch
from rushlight import nn, optim
from rushlight.nn import functional as F
from rushlight.vision.datasets import Digits

torch.manual_seed(0)


def load(train):
    """Pictures (n, 1, 8, 8) with points from 0 to 1, and their digits (n,)."""
    data = Digits(train=train)
    return data.data.float().unsqueeze(1) / 255, data.targets


images, labels = load(train=True)
test_images, test_labels = load(train=False)
print("to train:", tuple(images.shape), " to test:", tuple(test_images.shape))
print("how many of each digit:", torch.bincount(labels).tolist())

# %% alt="Twenty handwritten digits, each 8 by 8 points, with their labels"
import matplotlib.pyplot as plt


def show_images(images, titles, rows=2):
    columns = (len(images) + rows - 1) // rows
    fig, axes = plt.subplots(rows, columns, figsize=(6.4, 0.9 * rows), squeeze=False)
    for ax in axes.flat:
        ax.axis("off")
    for ax, image, title in zip(axes.flat, images, titles):
        ax.imshow(image.squeeze(), cmap="gray_r")
        ax.set_title(title, fontsize=8)
    fig.tight_layout(pad=0.3)
    plt.show()


show_images(images[:20], [str(label.item()) for label in labels[:20]])

# %% [markdown]
# The shape of the pictures is `(n, 1, 8, 8)`: number of pictures, number of **channels**, height,
# width. A gray picture has one channel, a color picture has three.

# %% [markdown]
# ## A first network: without seeing
#
# We could give the 64 points to a network as in lesson 7, as 64 inputs. The output is ten scores, one
# for each digit. The largest score wins.
#
# **The cost of ten classes.** In lesson 7 a sigmoid turned one score into a probability. For ten scores
# there is `softmax`: take `exp` of each score, and divide by the sum. The results are positive and
# their sum is 1. The cost is again `-log(probability of the right class)`. It is called **cross
# entropy**, and `F.cross_entropy` computes both steps at once.

# %%
scores = torch.tensor([[2.0, 0.5, -1.0]])  # one example, three classes
probabilities = scores.exp() / scores.exp().sum(dim=1, keepdim=True)
print("probabilities:", probabilities)
print("cost by hand: ", -probabilities[0, 0].log())
print("cross_entropy:", F.cross_entropy(scores, torch.tensor([0])))
assert torch.allclose(
    F.cross_entropy(scores, torch.tensor([0])), -probabilities[0, 0].log()
)

# %% [markdown]
# Equal scores give each digit the probability 0.1. The cost is then `-log(0.1) = 2.30`.
# Remember this number: it must be the cost of the first step. If it is much higher, something is wrong
# with the weights at the beginning.

# %% [markdown]
# ## Batches
#
# With 1,437 pictures we could compute each step with all of them. With a million pictures we could not.
# So each step uses a small random part, a **batch**. Its slope is not exactly the slope of all data,
# but it is good enough, and we can take many more steps. A run through all data is an **epoch**.
#
# `DataLoader` shuffles the data and returns the batches.

# %%
from rushlight.utils.data import DataLoader, TensorDataset

batches = DataLoader(TensorDataset(images, labels), batch_size=64, shuffle=True)
print("batches in an epoch:", len(batches))
batch_images, batch_labels = next(iter(batches))
print("one batch:", tuple(batch_images.shape), tuple(batch_labels.shape))


@torch.no_grad()
def accuracy(model, images, labels):
    model.eval()
    right = (model(images).argmax(dim=1) == labels).float().mean().item()
    model.train()
    return right


def train(model, epochs, rate=0.005):
    optimizer = optim.AdamW(model.parameters(), lr=rate)
    costs = []
    for _ in range(epochs):
        for batch_images, batch_labels in batches:
            cost = F.cross_entropy(model(batch_images), batch_labels)
            optimizer.zero_grad()
            cost.backward()
            optimizer.step()
            costs.append(cost.item())
    return costs


torch.manual_seed(0)
flat = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
flat_costs = train(flat, 10)
print(f"first cost {flat_costs[0]:.2f}, last cost {flat_costs[-1]:.2f}")
flat_accuracy = accuracy(flat, test_images, test_labels)
print(f"right on the test pictures: {flat_accuracy:.1%}")
assert abs(flat_costs[0] - 2.3) < 0.3

# %% [markdown]
# About 95 of 100: not bad. But this network does not use the fact that its input is a *picture*. If we mixed the 64
# points in any order, always the same, it would learn just as well:

# %% alt="A digit, and the same points in a mixed order, which look like noise"
mixed = torch.randperm(64)
show_images(
    [images[0], images[0].flatten()[mixed].reshape(8, 8)],
    ["a digit", "the same, mixed"],
    rows=1,
)

# %% [markdown]
# ## A window that looks for a pattern
#
# In a picture, neighbors belong together: lines, corners, arcs. And a line is a line, no matter where
# it is. So we use a small window of 3 x 3 weights, the **filter**. We lay it on each place of the
# picture, multiply point by point, and add. At places that look like the filter, the result is
# large. This is a **convolution**.
#
# Here is a filter that answers to edges: dark below, light above.

# %%
edge = torch.tensor([[-1.0, -1.0, -1.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])


def convolve(image, window):
    """`image` (8, 8) and `window` (3, 3) -> (6, 6): the window at each place."""
    result = torch.zeros(6, 6)
    for i in range(6):
        for j in range(6):
            result[i, j] = (image[i : i + 3, j : j + 3] * window).sum()
    return result


image = images[2, 0]
by_hand = convolve(image, edge)
by_library = F.conv2d(image.reshape(1, 1, 8, 8), edge.reshape(1, 1, 3, 3))
print("same as F.conv2d:", torch.allclose(by_hand, by_library[0, 0], atol=1e-6))
assert torch.allclose(by_hand, by_library[0, 0], atol=1e-6)

# %% alt="A digit three, and the answers of the filters for edges below and for edges at the right"
fig, axes = plt.subplots(1, 3, figsize=(6.4, 2.3))
for ax, values, title in zip(
    axes,
    [image, by_hand, convolve(image, edge.T)],
    ["picture", "edges below", "edges at the right"],
):
    ax.imshow(values, cmap="gray_r" if title == "picture" else "PuOr_r")
    ax.set_title(title)
    ax.axis("off")
fig.tight_layout()
plt.show()

# %% [markdown]
# We do not choose the filters. **They are weights, and the network learns them.** A convolution layer has
# many filters; each gives one new picture, a channel of the result.
#
# Count the weights: a filter has 9, wherever it is used. Eight filters on 8 x 8 points are 72 weights
# (and 8 biases). A `Linear` layer from 64 points to 8 pictures of 64 points would have 32,768. In
# backward, the slopes of all places are added for each weight. You know this from lesson 2.

# %% [markdown]
# ## Smaller pictures
#
# After a convolution we often keep only the largest of each 2 x 2 points: **max pooling**. The picture
# gets smaller, and it does not matter whether a line is one point further to the left.

# %%
small = torch.tensor(
    [
        [1.0, 2.0, 0.0, 0.0],
        [3.0, 4.0, 0.0, 5.0],
        [0.0, 0.0, 1.0, 1.0],
        [0.0, 7.0, 1.0, 1.0],
    ]
)
print(F.max_pool2d(small.reshape(1, 1, 4, 4), 2)[0, 0])

# %% [markdown]
# ## The network
#
# Two convolutions, each with a bend (`ReLU`) and pooling, then one linear layer. The comments show the
# shapes. Write them into your own programs, too.


# %%
def network():
    return nn.Sequential(  # the pictures: (n, 1, 8, 8)
        nn.Conv2d(1, 16, kernel_size=3, padding=1),  # (n, 16, 8, 8)
        nn.ReLU(),
        nn.MaxPool2d(2),  # (n, 16, 4, 4)
        nn.Conv2d(16, 32, kernel_size=3, padding=1),  # (n, 32, 4, 4)
        nn.ReLU(),
        nn.MaxPool2d(2),  # (n, 32, 2, 2)
        nn.Flatten(),  # (n, 128)
        nn.Dropout(0.2),
        nn.Linear(128, 10),  # (n, 10)
    )


torch.manual_seed(0)
model = network()
print("weights:", sum(p.numel() for p in model.parameters()))
costs = train(model, 10)
test_accuracy = accuracy(model, test_images, test_labels)
print(f"first cost {costs[0]:.2f}, last cost {costs[-1]:.2f}")
print(f"right on the test pictures: {test_accuracy:.1%}")
print(f"without convolution:        {flat_accuracy:.1%}")
assert test_accuracy > 0.97

# %% [markdown]
# (`padding=1` puts a frame of zeros around the picture, so that the result is as large as the picture.
# `Dropout` sets a fifth of the numbers to 0 at random while we train, so that the network does not
# depend on single ones. `model.eval()` in `accuracy` switches it off, `model.train()` on again.)

# %% alt="The cost by step of both networks: both fall from 2.3; the one with convolutions ends lower"
plt.plot(flat_costs, label="without convolution", linewidth=0.8)
plt.plot(costs, label="with convolution", linewidth=0.8)
plt.yscale("log")
plt.xlabel("step")
plt.ylabel("cost")
plt.legend()
plt.show()

# %% [markdown]
# ## Look at the mistakes
#
# One number (97 %) is not enough. Look at the pictures that were misread:

# %% alt="The test pictures that the network reads wrongly, each with its answer and the true digit"
model.eval()
with torch.no_grad():
    scores = model(test_images)
answers = scores.argmax(dim=1)
wrong = (answers != test_labels).nonzero().flatten()
print(len(wrong), "of", len(test_labels), "are wrong")
titles = [f"{answers[i].item()}, true {test_labels[i].item()}" for i in wrong[:8]]
show_images(test_images[wrong[:8]], titles, rows=1)

# %% [markdown]
# Some of them you could not read either. Which digits does it mix up? The **confusion matrix** counts
# them: one row for each true digit, one column for each answer.

# %% alt="Confusion matrix: nearly all counts are on the diagonal"
confusion = torch.zeros(10, 10)
for true, answer in zip(test_labels, answers):
    confusion[true, answer] += 1

plt.figure(figsize=(4.2, 4.0))
plt.imshow(confusion.sqrt(), cmap="Blues")
for i in range(10):
    for j in range(10):
        if confusion[i, j]:
            color = "white" if confusion[i, j] > 12 else "black"
            count = int(confusion[i, j])
            plt.text(j, i, count, ha="center", va="center", fontsize=8, color=color)
plt.xticks(range(10))
plt.yticks(range(10))
plt.xlabel("answer")
plt.ylabel("true digit")
plt.show()
assert confusion.trace() == len(test_labels) - len(wrong)

# %% [markdown]
# ## What did the filters learn?
#
# The sixteen filters of the first layer are small pictures. Orange weights look for ink, purple ones for
# white paper. You can see edges in several directions.

# %% alt="The sixteen learned filters of 3 by 3 weights"
filters = model[0].weight.detach()  # (16, 1, 3, 3)
fig, axes = plt.subplots(2, 8, figsize=(6.4, 1.8))
for ax, weights in zip(axes.flat, filters):
    largest = filters.abs().max().item()
    ax.imshow(weights[0], cmap="PuOr_r", vmin=-largest, vmax=largest)
    ax.axis("off")
fig.tight_layout()
plt.show()

# %% [markdown]
# ## To which points does it react?
#
# Exercise 3 of lesson 1 asked for a use of the gradient of an *input*. Here is one: the slope of
# the winning score with respect to each point of the picture. It shows which points matter for
# the answer.

# %% alt="The digits 2, 4, 7 and 8, and below each digit the slope of its score with respect to each point"
chosen = [(test_labels == digit).nonzero()[0].item() for digit in (2, 4, 7, 8)]
examples = test_images[chosen].clone().requires_grad_()
model(examples).amax(dim=1).sum().backward()
fig, axes = plt.subplots(2, 4, figsize=(6.4, 3.2))
for column in range(4):
    axes[0, column].imshow(examples[column, 0].detach(), cmap="gray_r")
    slopes = examples.grad[column, 0]
    largest = slopes.abs().max().item()
    axes[1, column].imshow(slopes, cmap="PuOr_r", vmin=-largest, vmax=largest)
for ax in axes.flat:
    ax.axis("off")
fig.tight_layout()
plt.show()

# %% [markdown]
# Orange: more ink here makes the answer surer. Purple: ink here would speak against it.

# %% [markdown]
# ## Exercises
#
# **Exercise 1.** Which layers have weights, and how many has each? Compute it by hand, then check with
# `named_parameters()`. Write the numbers into a list `layer_sizes`, one for each of the three layers, with its biases.

# %% tags=["solution"]
layer_sizes = [16 * 1 * 3 * 3 + 16, 32 * 16 * 3 * 3 + 32, 128 * 10 + 10]
for name, parameter in model.named_parameters():
    print(f"{name:9} {tuple(parameter.shape)!s:15} {parameter.numel()}")
assert sum(layer_sizes) == sum(p.numel() for p in model.parameters())
# 0: 16 filters of 1*3*3 and 16 biases; 3: 32 filters of 16*3*3 and 32 biases; 8: 128*10 and 10.

# %% tags=["check"] define=["layer_sizes"]
right = [sum(p.numel() for p in layer.parameters()) for layer in model if list(layer.parameters())]
assert len(layer_sizes) == 3, f"Three layers have weights, `layer_sizes` has {len(layer_sizes)} numbers."
for number, (size, true) in enumerate(zip(layer_sizes, right), 1):
    assert size == true, f"Layer {number} with weights does not have {size}: outputs times inputs times window, and the biases."

# %% [markdown]
# **Exercise 2.** Move all test pictures one point to the right (`torch.roll(test_images, 1, dims=3)`).
# What happens to the accuracy of both networks (`flat_moved`, `model_moved`)? Which one suffers
# more?

# %% tags=["solution"]
moved = torch.roll(test_images, 1, dims=3)
for name, m in [("without convolution", flat), ("with convolution", model)]:
    before = accuracy(m, test_images, test_labels)
    print(f"{name}: {before:.1%} -> {accuracy(m, moved, test_labels):.1%}")
flat_moved, model_moved = (accuracy(m, moved, test_labels) for m in (flat, model))
assert model_moved > flat_moved

# %% tags=["check"] define=["flat_moved", "model_moved"]
pictures = torch.roll(test_images, 1, dims=3)
for name, network_, answer in (("flat_moved", flat, flat_moved), ("model_moved", model, model_moved)):
    right = accuracy(network_, pictures, test_labels)
    assert abs(float(answer) - right) < 1e-3, (
        f"{name} is {float(answer):.3f}, it should be {right:.3f}: accuracy(..., moved pictures, test_labels)."
    )

# %% [markdown]
# **Exercise 3.** Train a `network()` with only the first 100 pictures, for 60 epochs, and call it `poor`. What is its accuracy on these
# 100 and on the test pictures? What do you conclude?

# %% tags=["solution"]
batches = DataLoader(
    TensorDataset(images[:100], labels[:100]), batch_size=50, shuffle=True
)
torch.manual_seed(0)
poor = network()
train(poor, 60)
print(f"on its 100 pictures: {accuracy(poor, images[:100], labels[:100]):.1%}")
print(f"on the test pictures: {accuracy(poor, test_images, test_labels):.1%}")
# It knows its pictures by heart (overfitting). More data helps most.

# %% tags=["check"] define=["poor"]
own, new = accuracy(poor, images[:100], labels[:100]), accuracy(poor, test_images, test_labels)
assert own > 0.95, f"poor reads {own:.0%} of its 100 pictures. Train it for 60 epochs; `train` takes its data from `batches`."
assert new < accuracy(model, test_images, test_labels) - 0.03, (
    f"poor reads {new:.0%} of the test pictures, nearly as many as model: were there more than 100 pictures in `batches`?"
)

# %% [markdown]
# ## What you have seen
#
# - **Cross entropy** is the cost of a classifier. Without knowledge it is `log(number of classes)`.
# - A **batch** is a random part of the data; an **epoch** is one run through all the data.
# - A **convolution** lays the same small window on every place. Its weights are learned. **Pooling**
#   makes pictures smaller.
# - Look at the mistakes, not only at the percentage. Test on data that was kept apart.
#
# Before: [8. Optimizers by hand](08_optimizers.md).
# Next: [10. Inventing names](10_names.md)
