# %% [markdown]
# # 7. A neuron, a layer, a network
#
# **At the end of this lesson you know** how a network is put together from neurons, why it needs a bend
# in between, how a training loop looks, and you have trained a network that separates two shapes that
# no straight line can separate.
#
# **Time:** 35 minutes. **You need:** lessons 1 to 4 (lesson 5 helps in one place).

# %% [markdown]
# ## The task
#
# We make 200 points. Half of them lie on one half circle (class 0), the others on a second one (class
# 1). The half circles reach into each other. Nothing is downloaded: a few lines make the points.

# %%
import math

import rushlight as torch

torch.manual_seed(3)


def two_moons(count, noise=0.12):
    """Points (count, 2) and classes (count,): an upper and a lower half circle."""
    angle = torch.rand(count) * math.pi
    classes = (torch.arange(count) % 2).float()
    upper = torch.stack([angle.cos(), angle.sin()], dim=1)
    lower = torch.stack([1 - angle.cos(), 0.5 - angle.sin()], dim=1)
    points = torch.where(classes.unsqueeze(1) == 0, upper, lower)
    return points + noise * torch.randn(count, 2), classes


points, classes = two_moons(200)
print(points.shape, classes.shape)
print(points[:3])
print(classes[:3])

# %% alt="200 points in two colors: two half circles that reach into each other"
import matplotlib.pyplot as plt


def show_points(points, classes):
    for number, color in [(0, "tab:blue"), (1, "tab:orange")]:
        chosen = points[classes == number]
        style = dict(s=20, color=color, edgecolor="white", linewidth=0.5)
        plt.scatter(chosen[:, 0], chosen[:, 1], label=f"class {number}", **style)
    plt.legend()


show_points(points, classes)
plt.show()

# %% [markdown]
# ## One neuron
#
# A neuron multiplies each input with a weight and adds everything, plus a bias (lesson 1). For two
# inputs:
#
# `score = x1 * w1 + x2 * w2 + b`
#
# A large score means "class 1", a small (negative) one means "class 0". With all 200 points at once, the
# sum over the inputs is a matrix product: `points @ w + b`, with the shapes `(200, 2) @ (2,)` plus
# `()`, which gives `(200,)`.
#
# **The cost.** We turn the score into a probability with the function `sigmoid(s) = 1 / (1 + exp(-s))`:
# it is 0.5 at 0, near 1 for large scores and near 0 for very negative ones. For a point of class
# 1 the probability should be near 1. The cost is `-log(probability of the right class)`: 0 when
# the network is
# sure and right, large when it is sure and wrong.

# %%
for probability in (0.99, 0.5, 0.01):
    cost = -math.log(probability)
    print(f"probability of the right class {probability:4}: cost {cost:.2f}")


def cost_of(scores, classes):
    probability = torch.sigmoid(scores)
    right = torch.where(classes == 1, probability, 1 - probability)
    return -right.log().mean()


# %% [markdown]
# Now we train one neuron, as in lesson 1: cost, backward, a small step downhill.


# %%
def train_neuron(steps, rate):
    w = torch.zeros(2, requires_grad=True)
    b = torch.zeros((), requires_grad=True)
    for _ in range(steps):
        cost = cost_of(points @ w + b, classes)
        w.grad = b.grad = None
        cost.backward()
        with torch.no_grad():
            w -= rate * w.grad
            b -= rate * b.grad
    return w.detach(), b.detach(), cost.item()


def accuracy(scores, classes):
    return ((scores > 0).float() == classes).float().mean().item()


w, b, cost = train_neuron(200, 1.0)
print("weights:", w, " bias:", b, " cost:", round(cost, 3))
neuron_accuracy = accuracy(points @ w + b, classes)
print(f"right: {neuron_accuracy:.1%}")

# %% [markdown]
# That is not bad, but it does not get better, however long we train. The picture shows why. We compute
# the score at every place of the plane and draw where it is 0: the **decision boundary**.


# %%
def show_boundary(score, title):
    """Colors the plane by the probability of class 1."""
    xs, ys = torch.linspace(-1.6, 2.6, 85), torch.linspace(-1.2, 1.7, 59)
    plane = torch.stack(torch.meshgrid(xs, ys, indexing="xy"), dim=-1)  # (59, 85, 2)
    with torch.no_grad():
        probability = torch.sigmoid(score(plane.reshape(-1, 2))).reshape(59, 85)
    plt.contourf(
        xs, ys, probability, levels=10, vmin=0, vmax=1, cmap="PuOr_r", alpha=0.35
    )
    plt.contour(xs, ys, probability, levels=[0.5], colors="gray")
    show_points(points, classes)
    plt.title(title)


# %% alt="The boundary of one neuron: a straight line, many points are on the wrong side"
show_boundary(lambda x: x @ w + b, f"one neuron: {neuron_accuracy:.1%} right")
plt.show()

# %% [markdown]
# The boundary of a neuron is always a **straight line**: the points where `x1 * w1 + x2 * w2 + b = 0`.

# %% [markdown]
# ## A layer
#
# One neuron draws one line. Several neurons draw several lines. Neurons side by side that get the same
# inputs are a **layer**. Three neurons with two inputs have six weights: a matrix of shape `(2, 3)`. The
# whole layer is one product: `(200, 2) @ (2, 3)` gives `(200, 3)`: three scores for each point.
#
# Then another layer gets these three scores as its inputs. That is all: **a network is layers in a
# row.**

# %% [markdown]
# ## Why a bend is needed
#
# But something is missing. Let us put two layers in a row and see what they can do.

# %%
w1, b1 = torch.randn(2, 3), torch.randn(3)
w2, b2 = torch.randn(3, 1), torch.randn(1)
two_layers = (points @ w1 + b1) @ w2 + b2
one_layer = points @ (w1 @ w2) + (b1 @ w2 + b2)
print("largest difference:", (two_layers - one_layer).abs().max().item())
assert torch.allclose(two_layers, one_layer, atol=1e-5)

# %% [markdown]
# Two layers are the same as **one** layer with the weights `w1 @ w2`. A line of a line is a line.
# Nothing is gained, even with a hundred layers.
#
# So between the layers we put a function that **bends**: an *activation function*. Two well-known ones
# are `tanh`, which we know, and `relu`, which is simply "0 if negative, otherwise unchanged".

# %% alt="Two curves: tanh goes smoothly from -1 to 1; relu is 0 and then a rising line"
xs = torch.linspace(-3, 3, 121)
plt.figure(figsize=(6.4, 2.4))
plt.plot(xs, xs.tanh(), label="tanh")
plt.plot(xs, xs.relu(), label="relu")
plt.axhline(0, linewidth=0.5, color="gray")
plt.legend()
plt.show()

# %% [markdown]
# ## A network
#
# rushlight has the pieces ready, under the names of PyTorch, in `torch.nn`. Let us first write them
# ourselves, to see that there is no secret. A **module** is an object that has weights and can be
# called.


# %%
class Layer(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        bound = 1 / math.sqrt(inputs)  # small random numbers to begin with
        self.weight = torch.nn.Parameter(
            torch.empty(inputs, outputs).uniform_(-bound, bound)
        )
        self.bias = torch.nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        return x @ self.weight + self.bias


class Network(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = Layer(2, width)
        self.second = Layer(width, width)
        self.last = Layer(width, 1)

    def forward(self, x):
        x = torch.tanh(self.first(x))
        x = torch.tanh(self.second(x))
        return self.last(x).squeeze(1)  # (n, 1) -> (n,): see the end of lesson 3


model = Network(16)
for name, parameter in model.named_parameters():
    print(f"{name:14} {tuple(parameter.shape)!s:9} {parameter.numel():4} numbers")
print("together:", sum(p.numel() for p in model.parameters()))

# %% [markdown]
# What does `nn.Module` do for us? It finds all parameters, also those of modules inside of modules, and
# gives them names. (`nn.Parameter` is a tensor with `requires_grad=True` that a module counts as its
# own.) So the training loop works for any network.
#
# Why random numbers at the beginning? If all weights were equal, all neurons of a layer would compute
# the same and get the same gradient. They would stay equal for ever.


# %%
def train(model, steps, rate):
    costs = []
    for _ in range(steps):
        cost = cost_of(model(points), classes)  # 1. forward
        model.zero_grad()  # 2. clear the gradients
        cost.backward()  # 3. backward
        with torch.no_grad():  # 4. a step downhill
            for parameter in model.parameters():
                parameter -= rate * parameter.grad
        costs.append(cost.item())
    return costs


costs = train(model, 500, 0.5)
model_accuracy = accuracy(model(points), classes)
print(f"cost {costs[0]:.3f} -> {costs[-1]:.3f}, right: {model_accuracy:.1%}")
assert model_accuracy > 0.98

# %% alt="The boundary of the network: a curve that winds between the two half circles"
show_boundary(model, f"network: {model_accuracy:.1%} right")
plt.show()

# %% alt="The cost by step: it falls, stays nearly level at 0.33, and falls again"
plt.plot(costs)
plt.axhline(cost, linewidth=0.8, color="gray", linestyle="--", label="one neuron")
plt.xlabel("step")
plt.ylabel("cost")
plt.legend()
plt.show()

# %% [markdown]
# In the first hundred steps the network does what one neuron can do: it finds a line. Then it learns
# to bend the line.
#
# ## Does it know the points by heart?
#
# A high share of right answers on the points of the training is not a proof. It might have learned each point
# by heart. So we test with **new** points that it has never seen.

# %%
new_points, new_classes = two_moons(1000)
with torch.no_grad():
    new_accuracy = accuracy(model(new_points), new_classes)
print(f"right on new points: {new_accuracy:.1%}")
assert new_accuracy > 0.95

# %% [markdown]
# ## The same with the pieces of the library
#
# From now on we use the ready modules. `nn.Linear` is our `Layer` (it keeps its weight the other way
# round, as `(outputs, inputs)`). `nn.Sequential` calls modules one after the other. The function
# `binary_cross_entropy_with_logits` is our cost, in a form that also works for very large scores (you
# saw in lesson 5 why this is needed).

# %%
torch.manual_seed(0)
ready = torch.nn.Sequential(
    torch.nn.Linear(2, 16),
    torch.nn.Tanh(),
    torch.nn.Linear(16, 16),
    torch.nn.Tanh(),
    torch.nn.Linear(16, 1),
    torch.nn.Flatten(0),  # (n, 1) -> (n,)
)
train(ready, 500, 0.5)
print(f"right: {accuracy(ready(points), classes):.1%}")
ours = cost_of(ready(points), classes)
theirs = torch.nn.functional.binary_cross_entropy_with_logits(ready(points), classes)
print("cost, ours and ready:", round(ours.item(), 5), round(theirs.item(), 5))
assert abs(ours.item() - theirs.item()) < 1e-4

# %% [markdown]
# The graph of a training step. `collapse=True` draws one box for each module. Backward goes through it
# from the top to the bottom.

# %% alt="The graph of the network: the cost at the top, below it three linear layers with tanh in between"
loss = torch.nn.functional.binary_cross_entropy_with_logits(ready(points), classes)
torch.viz.svg(loss, ready, collapse=True)

# %% [markdown]
# ## Exercises
#
# **Exercise 1.** How wide must the network be? Train it with a width of 1, 2, 4 and 8. Print the
# accuracy, and store it in a dictionary `accuracies`, by width. Guess first.

# %% tags=["solution"]
accuracies = {}
for width in (1, 2, 4, 8):
    torch.manual_seed(1)
    small = Network(width)
    train(small, 500, 0.5)
    accuracies[width] = accuracy(small(points), classes)
    print(f"width {width}: {accuracies[width]:.1%}")
# A width of 1 cannot be better than one line. A few neurons are enough.

# %% tags=["check"] define=["accuracies"]
assert sorted(accuracies) == [1, 2, 4, 8], f"accuracies has the widths {sorted(accuracies)}, not 1, 2, 4 and 8."
assert all(0.5 <= float(a) <= 1 for a in accuracies.values()), "An accuracy is a number from 0.5 (guessing) to 1."
assert accuracies[1] < 0.95, "A width of 1 cannot be better than one line. Is it a new Network(1)?"
assert accuracies[8] > 0.9, "A width of 8 should separate the moons. Train longer, for example train(small, 500, 0.5)."

# %% [markdown]
# **Exercise 2.** Remove the two `tanh` from `Network`, and train such a network, `straight`. What is the accuracy
# now? Why?


# %% tags=["solution"]
class Straight(Network):
    def forward(self, x):
        return self.last(self.second(self.first(x))).squeeze(1)


torch.manual_seed(1)
straight = Straight(16)
train(straight, 500, 0.1)
print(f"without tanh: {accuracy(straight(points), classes):.1%}")
print(f"one neuron:   {neuron_accuracy:.1%}")
assert abs(accuracy(straight(points), classes) - neuron_accuracy) < 0.03
# Layers without a bend are one layer.

# %% tags=["check"] define=["straight"]
a, b = torch.randn(4, 2), torch.randn(4, 2)
with torch.no_grad():
    bend = (straight(a + b) - straight(a) - straight(b) + straight(torch.zeros(4, 2))).abs().max().item()
assert bend < 1e-3, "The network still has a bend: f(a + b) - f(a) - f(b) + f(0) is not 0."
assert accuracy(straight(points), classes) > 0.7, "The network is not trained: train(straight, 500, 0.1)."

# %% [markdown]
# **Exercise 3.** Begin a network `equal` with all weights equal (0.1) instead of random, and train it. Look at the columns
# of `first.weight` after training: each belongs to a neuron. What happened?

# %% tags=["solution"]
equal = Network(4)
with torch.no_grad():
    for parameter in equal.parameters():
        parameter.fill_(0.1)
train(equal, 300, 0.5)
print(equal.first.weight)
assert torch.allclose(equal.first.weight[:, 0], equal.first.weight[:, 3])
# All neurons of the layer are still equal: it is a network of width 1.

# %% tags=["check"] define=["equal"]
weight = equal.first.weight.detach()
assert weight.shape[1] > 1, "Take a network with more than one neuron in a layer, such as Network(4)."
assert not torch.allclose(weight, torch.full_like(weight, 0.1)), "The weights are still 0.1: train the network."
assert torch.allclose(weight, weight[:, :1].expand_as(weight), atol=1e-5), (
    "The neurons differ: did all parameters begin with 0.1, in all three layers? (parameter.fill_(0.1), under no_grad)"
)

# %% [markdown]
# ## What you have seen
#
# - A **neuron** is a weighted sum. Its boundary is a straight line.
# - A **layer** is many neurons side by side: a matrix product. A **network** is layers in a row, with a
#   **bend** (`tanh`, `relu`) in between.
# - `nn.Module` collects the parameters.
# - The training loop: forward, clear, backward, step.
# - Test with points that the network has not seen.
#
# Before: [6. The order of the engine](06_engine.md).
# Next: [8. Optimizers by hand](08_optimizers.md)
