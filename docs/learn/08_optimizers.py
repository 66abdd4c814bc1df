# %% [markdown]
# # 8. Optimizers by hand
#
# **At the end of this lesson you know** what SGD, momentum and Adam do, each in a few lines of your own,
# why a learning rate can be too small or too large, and that `torch.optim` computes exactly the same.
#
# **Time:** 35 minutes. **You need:** lessons 1, 4 and 7.

# %% [markdown]
# ## A valley
#
# Backward gives the direction of a step, but not its length. Choosing the step is the work of the **optimizer**.
#
# To see what an optimizer does, we use a cost with only two numbers, `x` and `y`. It is a long valley:
# steep across, nearly flat along. Costs of real networks look like this in many directions. The lowest
# point is at (0, 0).

# %%
import rushlight as torch

START = (-4.0, 1.5)


def cost_of(place):
    x, y = place.unbind()
    return 0.01 * x**2 + 1.0 * y**2


place = torch.tensor(START, requires_grad=True)
cost_of(place).backward()
print("cost at the start:", cost_of(place).item())
print("slope:            ", place.grad)

# %% [markdown]
# The slope with respect to `y` is 3, but with respect to `x` only -0.08, although `x` is further from its goal.
#
# We want to compare optimizers. Each of ours will be a small class with a method `step`. `walk` uses it
# and notes the places.


# %%
def walk(make_optimizer, steps=40):
    """The places (steps + 1, 2) on the way down, from START."""
    place = torch.tensor(START, requires_grad=True)
    optimizer = make_optimizer([place])
    places = [place.detach().clone()]
    for _ in range(steps):
        place.grad = None
        cost_of(place).backward()
        optimizer.step()
        places.append(place.detach().clone())
    return torch.stack(places)


# %% [markdown]
# ## SGD: a step against the slope
#
# This is what we did in all lessons so far: `place -= rate * slope`. The name SGD means *stochastic
# gradient descent*: descent along the gradient, where the gradient comes from a random part of the data.
# (Here we use all data in each step; lesson 9 takes random parts.)


# %%
class SGD:
    def __init__(self, parameters, rate):
        self.parameters = list(parameters)
        self.rate = rate

    @torch.no_grad()
    def step(self):
        for p in self.parameters:
            p -= self.rate * p.grad


for rate in (0.1, 0.5, 0.95, 1.05):
    end = walk(lambda p, rate=rate: SGD(p, rate))[-1]
    print(
        f"rate {rate:4}: after 40 steps at ({end[0].item():7.3f}, {end[1].item():7.3f})"
    )

# %% [markdown]
# With 0.1, `x` has hardly moved. With 0.95, `x` is better, but `y` jumps from one side of the valley to
# the other. With 1.05 each jump is larger than the one before: `y` runs away. This is how a **learning
# rate that is too large** looks: the cost grows and becomes infinite or `nan`.
#
# The steep direction forbids a larger rate. The flat direction needs one. This is *the* problem of
# gradient descent, and the reason for the other optimizers.

# %%
import matplotlib.pyplot as plt


def show_paths(paths):
    """Draws the valley, and a path for each name."""
    xs, ys = torch.linspace(-4.5, 2.0, 80), torch.linspace(-2.0, 2.0, 60)
    plane = torch.stack(torch.meshgrid(xs, ys, indexing="xy"))  # (2, 60, 80)
    levels = [0.01, 0.05, 0.15, 0.4, 0.8, 1.4, 2.2, 3.2]
    plt.contour(xs, ys, cost_of(plane), levels=levels, colors="gray", linewidths=0.6)
    for name, places in paths.items():
        plt.plot(
            places[:, 0], places[:, 1], "o-", markersize=3, linewidth=1, label=name
        )
    plt.plot([0], [0], "*", color="tab:red", markersize=12)
    plt.xlabel("x")
    plt.ylabel("y")
    plt.legend()


# %% alt="Two paths in a long valley: with rate 0.1 it creeps along the floor, with 0.95 it jumps from side to side"
show_paths({f"SGD, rate {r}": walk(lambda p, r=r: SGD(p, r)) for r in (0.1, 0.95)})
plt.show()

# %% [markdown]
# ## Momentum: a ball that rolls
#
# A ball that rolls down does not stop and think at each place. It keeps its speed. Across the valley,
# the pushes go left and right, and cancel each other. Along the valley all pushes go the same way, and
# the ball gets faster.
#
# In code: besides each parameter we keep a **velocity**. In each step it loses a part (a tenth, when
# `momentum` is 0.9), and the new slope is added.


# %%
class Momentum(SGD):
    def __init__(self, parameters, rate, momentum=0.9):
        super().__init__(parameters, rate)
        self.momentum = momentum
        self.velocities = [torch.zeros_like(p) for p in self.parameters]

    @torch.no_grad()
    def step(self):
        for p, velocity in zip(self.parameters, self.velocities):
            velocity *= self.momentum
            velocity += p.grad
            p -= self.rate * velocity


# %% [markdown]
# ## Adam: each number has its own rate
#
# Momentum still has one rate for all. Adam measures the usual size of each number's slopes, and
# divides by it. A number with large slopes (`y`) gets a smaller step, a number with
# small slopes (`x`) a larger one. Then the size of a step is about the rate, whatever the slope.
#
# Adam keeps two averages for each number:
#
# - `mean`: the average of the last slopes (momentum adds them; an average keeps the size of a slope),
# - `square`: the average of the last *squared* slopes. Its root is the usual size.
#
# One detail: both begin at 0, so the first averages are too small. After `t` steps, an average with the
# factor 0.9 has only the part `1 - 0.9**t` of its full size. Adam divides by that part.


# %%
class Adam(SGD):
    def __init__(self, parameters, rate, betas=(0.9, 0.999), eps=1e-8):
        super().__init__(parameters, rate)
        self.betas, self.eps = betas, eps
        self.means = [torch.zeros_like(p) for p in self.parameters]
        self.squares = [torch.zeros_like(p) for p in self.parameters]
        self.steps = 0

    @torch.no_grad()
    def step(self):
        self.steps += 1
        beta1, beta2 = self.betas
        for p, mean, square in zip(self.parameters, self.means, self.squares):
            mean *= beta1
            mean += (1 - beta1) * p.grad
            square *= beta2
            square += (1 - beta2) * p.grad**2
            full_mean = mean / (1 - beta1**self.steps)
            full_square = square / (1 - beta2**self.steps)
            p -= self.rate * full_mean / (full_square.sqrt() + self.eps)


# %% alt="Paths of SGD, momentum and Adam: SGD creeps along the floor and does not come far in 40 steps, momentum swings from side to side and comes further, Adam starts on a diagonal, passes the goal and returns"
paths = {
    "SGD 0.5": walk(lambda p: SGD(p, 0.5)),
    "momentum 0.8, rate 0.3": walk(lambda p: Momentum(p, 0.3, momentum=0.8)),
    "Adam 0.3": walk(lambda p: Adam(p, 0.3)),
}
for name, places in paths.items():
    print(f"{name:22} cost after 40 steps: {cost_of(places[-1]).item():.5f}")
show_paths(paths)
plt.show()

# %% [markdown]
# SGD is at the floor of the valley after one jump, because 0.5 is just the right rate for `y`, and then
# slow along it. Momentum swings from side to
# side, but all the time it gets faster along the valley, and comes much further. Adam begins on a
# diagonal: its first steps have the same size in both directions. It runs past the goal, as a ball does,
# and comes back.
#
# No optimizer is the best for everything. Change the rates, and another one wins. For most networks,
# people begin with Adam (or its sister AdamW), because it works with the same rate (0.001) for very
# different networks.

# %% alt="The cost by step on a logarithmic axis, for the three optimizers"
for name, places in paths.items():
    plt.plot([cost_of(place).item() for place in places], label=name)
plt.yscale("log")
plt.xlabel("step")
plt.ylabel("cost")
plt.legend()
plt.show()

# %% [markdown]
# ## The same as `torch.optim`
#
# Each of our optimizers has about ten lines. Does the library compute the same? We compare the paths, place by
# place.

# %%
from rushlight import optim

pairs = {
    "SGD": (lambda p: SGD(p, 0.5), lambda p: optim.SGD(p, lr=0.5)),
    "momentum": (
        lambda p: Momentum(p, 0.3),
        lambda p: optim.SGD(p, lr=0.3, momentum=0.9),
    ),
    "Adam": (lambda p: Adam(p, 0.3), lambda p: optim.Adam(p, lr=0.3)),
}
for name, (ours, theirs) in pairs.items():
    difference = (walk(ours) - walk(theirs)).abs().max().item()
    print(f"{name:9} largest difference on the way: {difference:.1e}")
    assert difference < 1e-5

# %% [markdown]
# The same, up to the rounding of the last digit.
#
# With `torch.optim`, a training step is written like this, for any network and any optimizer:
#
# ```python
# optimizer = optim.Adam(model.parameters(), lr=0.001)
# for ...:
#     loss = ...                # forward
#     optimizer.zero_grad()     # clear
#     loss.backward()           # backward
#     optimizer.step()          # step
# ```

# %% [markdown]
# ## On a network
#
# A valley with two numbers is a toy. So here is a network of 97 numbers that learns a curve. All
# optimizers begin with the same weights.

# %% alt="The cost of a network by step with SGD, momentum and Adam; Adam and momentum fall much faster than SGD"
xs = torch.linspace(-3, 3, 60).unsqueeze(1)
target = (2 * xs).sin() + 0.3 * xs


def fit(make_optimizer, steps=300):
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(1, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1)
    )
    optimizer = make_optimizer(model.parameters())
    costs = []
    for _ in range(steps):
        cost = torch.nn.functional.mse_loss(model(xs), target)
        optimizer.zero_grad()
        cost.backward()
        optimizer.step()
        costs.append(cost.item())
    return model, costs


results = {
    "SGD 0.05": fit(lambda p: optim.SGD(p, lr=0.05)),
    "momentum 0.05": fit(lambda p: optim.SGD(p, lr=0.05, momentum=0.9)),
    "Adam 0.02": fit(lambda p: optim.Adam(p, lr=0.02)),
}
for name, (_, costs) in results.items():
    print(f"{name:14} cost after 300 steps: {costs[-1]:.4f}")
    plt.plot(costs, label=name)
plt.yscale("log")
plt.xlabel("step")
plt.ylabel("cost")
plt.legend()
plt.show()
assert results["Adam 0.02"][1][-1] < 0.2 * results["SGD 0.05"][1][-1]

# %% alt="The target curve and the curves of the three networks; Adam's is closest"
plt.plot(xs, target, ".", markersize=4, color="gray", label="target")
for name, (model, _) in results.items():
    plt.plot(xs, model(xs).detach(), label=name)
plt.xlabel("x")
plt.legend()
plt.show()

# %% [markdown]
# ## Exercises
#
# **Exercise 1.** For which learning rates does SGD stay in the valley? A step for `y` is
# `y - rate * 2 * y`. For which rates is the new `y` closer to 0 than the old one? Check it with `walk`.
# Call the end of this range `largest_rate`.

# %% tags=["solution"]
# y is multiplied by (1 - 2 * rate). It gets smaller when this is between -1 and 1: 0 < rate < 1.
largest_rate = 1.0
for rate in (0.99, 1.01):
    print(rate, walk(lambda p, rate=rate: SGD(p, rate), 100)[-1][1].abs().item())
assert walk(lambda p: SGD(p, 0.99), 100)[-1][1].abs() < 1.5
assert walk(lambda p: SGD(p, 1.01), 100)[-1][1].abs() > 1.5

# %% tags=["check"] define=["largest_rate"]
rate = float(largest_rate)
assert walk(lambda p: SGD(p, rate - 0.01), 100)[-1][1].abs() < 1.5, f"With {rate - 0.01:g}, below your rate, y grows already."
assert walk(lambda p: SGD(p, rate + 0.01), 100)[-1][1].abs() > 1.5, f"With {rate + 0.01:g}, above your rate, y still shrinks."

# %% [markdown]
# **Exercise 2.** Add *weight decay* to `SGD`: in each step, every number is also pulled towards 0, by
# `rate * decay * p`. Write it as a class `DecaySGD(parameters, rate)` with a decay of 0.1. Compare with
# `optim.SGD(..., weight_decay=0.1)`. What is it good for?


# %% tags=["solution"]
class DecaySGD(SGD):
    @torch.no_grad()
    def step(self):
        for p in self.parameters:
            p -= self.rate * (p.grad + 0.1 * p)


ours = walk(lambda p: DecaySGD(p, 0.5))
theirs = walk(lambda p: optim.SGD(p, lr=0.5, weight_decay=0.1))
assert torch.allclose(ours, theirs, atol=1e-6)
print(ours[-1])
# It keeps weights small unless the data needs them large. Such networks know less by heart.

# %% tags=["check"] define=["DecaySGD"]
answer = walk(lambda p: DecaySGD(p, 0.5))
assert not torch.allclose(answer, walk(lambda p: SGD(p, 0.5)), atol=1e-6), "DecaySGD walks as SGD does: no decay is added."
assert torch.allclose(answer, walk(lambda p: optim.SGD(p, lr=0.5, weight_decay=0.1)), atol=1e-5), (
    "DecaySGD walks another way than optim.SGD(lr=0.5, weight_decay=0.1). Add decay * p to the gradient, then step."
)

# %% [markdown]
# **Exercise 3.** Early, large steps are good; late, small steps are good. Use
# `optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=300)` in `fit`: call `scheduler.step()` after
# each `optimizer.step()`. Call the function `fit_with_schedule(rate)`; it returns the last cost. Does SGD with
# momentum end lower?


# %% tags=["solution"]
def fit_with_schedule(rate, steps=300):
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(1, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1)
    )
    optimizer = optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    for _ in range(steps):
        cost = torch.nn.functional.mse_loss(model(xs), target)
        optimizer.zero_grad()
        cost.backward()
        optimizer.step()
        scheduler.step()
    return cost.item()


print("rate stays 0.05:           ", results["momentum 0.05"][1][-1])
print("from 0.05 down to 0:       ", fit_with_schedule(0.05))
print("from a larger 0.1 down to 0:", fit_with_schedule(0.1))
# With the same rate the schedule ends higher here: its steps are smaller on average. Its advantage
# is that it allows a larger rate at the beginning.

# %% tags=["check"] define=["fit_with_schedule"]
end = float(fit_with_schedule(0.05))
unscheduled = results["momentum 0.05"][1][-1]
assert 0 < end < 0.2, f"fit_with_schedule(0.05) returns {end}: it should return the last cost, and train as fit does."
assert abs(end - unscheduled) > 1e-4, "The cost is the one without a schedule. Is scheduler.step() called in each step?"

# %% [markdown]
# ## What you have seen
#
# - The slope gives the direction; the **learning rate** gives the length of a step. With too large a rate the cost grows without end.
# - **Momentum** adds up the slopes: it cancels the zigzag.
# - **Adam** divides by the usual size of the slopes: each number has its own rate.
# - `torch.optim` does the same as our ten lines.
#
# Before: [7. A neuron, a layer, a network](07_network.md).
# Next: [9. Reading digits](09_digits.md)
