# %% [markdown]
# # 2. The chain rule, seen
#
# **At the end of this lesson you know** how to read a graph, how a gradient is made of *paths*, why
# gradients are **added** when a value is used twice, and which tools of rushlight show all this for
# your own programs.
#
# **Time:** 25 minutes. **You need:** lesson 1.

# %% [markdown]
# ## A function in small steps
#
# In lesson 1 a program was a list of small steps. This lesson looks at the steps one by one. We take a
# function in which one value is used twice:

# %%
import rushlight as torch

x = torch.tensor(0.5, requires_grad=True)
a = x.sin()
b = a * x
z = b + 1
print(z)

# %% [markdown]
# `z` prints two things: its value, and a `grad_fn`. The `grad_fn` is the step that made it, an
# addition. rushlight's tensors keep their history, as our `Scalar` did.
#
# `torch.viz.print_graph` prints the whole history as a tree. The result is at the top, its inputs are
# below it.

# %%
torch.viz.print_graph(z, {"x": x})

# %% [markdown]
# Read it from the bottom: `x` goes into `Sin`. The result, 0.4794, goes into `Mul`, and `x` goes into
# `Mul` a second time. Then comes `Add`, with the constant 1. (Constants have no gradient and are not
# shown.)
#
# The names end in `Backward0` because each step stands for its backward part: the part that sends
# slopes. (PyTorch numbers variants of a step, so there is a 0.) `AccumulateGrad` is the last
# station: it adds the slope to `x.grad`. Lesson 5 explains it.

# %% alt="The graph of z: an addition, below it a product, below it a sine and x; x has two arrows to it"
torch.viz.graph(z, {"x": x})

# %% [markdown]
# ## Paths
#
# How can a change of `x` reach `z`? Follow the lines of the graph from `z` down to `x`. There are **two
# paths**:
#
# 1. `z → b → a → x`: x changes the sine, the sine changes the product, the product changes z.
# 2. `z → b → x`: x changes the product directly.
#
# Each line has a slope of its own, which is easy to find:
#
# | step, with respect to | its slope | at x = 0.5 |
# |---|---|---|
# | `z = b + 1`, `b` | 1 | 1 |
# | `b = a * x`, `a` | `x` | 0.5 |
# | `b = a * x`, `x` | `a` | 0.4794 |
# | `a = sin(x)`, `x` | `cos(x)` | 0.8776 |
#
# **Along a path, the slopes are multiplied.** The first path gives 1 · 0.5 · 0.8776 = 0.4388. The
# second gives 1 · 0.4794 = 0.4794.
#
# **The paths are added.** 0.4388 + 0.4794 = 0.9182. That is the gradient of `x`.
#
# rushlight prints this calculation for any function. It even uses the names of your variables.

# %%
print(torch.explain(z, wrt=x))

# %% [markdown]
# (`wrt` means *with respect to*: dz/dx is the slope of z with respect to x. The round ∂ in ∂b/∂x
# marks the slope of a step with several inputs: only x moves, and the other inputs of the step
# stay fixed.)
#
# And this is what `backward` computes:

# %%
z.backward()
print(x.grad)
assert abs(x.grad.item() - 0.9182) < 1e-4

# %% [markdown]
# ## Why are the paths added?
#
# Let us see it with numbers. We take the product `p * q`, where `p` and `q` are two separate numbers,
# both 3. The slope with respect to `p` is 3, and so is the slope with respect to `q`.
#
# - We move only `p` by 0.01: the product grows by 0.03.
# - We move only `q` by 0.01: the product grows by 0.03.
# - We move **both** by 0.01: the product grows by 0.06 (and a tiny 0.0001 more).

# %%
h = 0.01
print("move p only:", round((3 + h) * 3 - 9, 4))
print("move q only:", round(3 * (3 + h) - 9, 4))
print("move both:  ", round((3 + h) * (3 + h) - 9, 4))

# %% [markdown]
# Now let `p` and `q` be **the same** variable `x`. Then one cannot move without the other: when
# `x` moves, both places move. The two effects come together, so the two slopes are added: 3 + 3 =
# 6.
#
# This is the whole reason. **A value that is used in two places acts through both places, and its
# gradient is the sum.** A weight of a neural network is used for every example of a batch, and in some
# networks for every word of a text. Its gradient is the sum over all uses.

# %% [markdown]
# ## Which use contributed how much?
#
# When a gradient is a sum, we can ask for its parts. `torch.contributions` lists them: one part for
# each place where `x` was used.

# %%
x = torch.tensor(0.5, requires_grad=True)
a = x.sin()
b = a * x
z = b + 1
parts = torch.contributions(x, of=z)
for node, share in parts.by_use():
    print(f"{share.item():8.4f}  from  {node.name()}")
print(f"{parts.total.item():8.4f}  together")
assert abs(float(parts.total) - 0.9182) < 1e-4

# %% [markdown]
# ## Backward does not follow paths
#
# There is a problem with paths: there can be very many of them. Here every step uses the value before
# it twice. After 3 steps there are 8 paths, after 30 steps there are 2³⁰, more than a billion.

# %%
x = torch.tensor(2.0, requires_grad=True)
y = x
for _ in range(3):
    y = 0.6 * y + 0.5 * y
print("paths after 3 steps:", len(torch.explain(y, wrt=x).paths))

x = torch.tensor(2.0, requires_grad=True)
y = x
for _ in range(30):
    y = 0.6 * y + 0.5 * y
y.backward()
print("gradient after 30 steps:", x.grad.item())
print("by hand, 1.1 ** 30:     ", 1.1**30)
assert abs(x.grad.item() - 1.1**30) < 1e-4

# %% [markdown]
# This ran at once. `backward` does not walk along each path. At every value it **first adds** all
# arriving slopes, and **then sends** the sum on, once. So each step of the graph is visited
# exactly one time.
# That is why the two runs of lesson 1 (one forward, one backward) are enough for any number of
# settings.
#
# It is like the way home from a hike: at every junction, people wait until all groups have
# arrived, and then walk on together.

# %% [markdown]
# ## Backward, step by step
#
# The next picture is a small page that you can use: press **next** (or the key →) to see what `backward`
# does at each step: which slope arrives, what is multiplied, what is sent on.

# %% alt="Backward step by step: the graph of a product of sine and x, with a button for the next step"
x = torch.tensor(0.5, requires_grad=True)
a = x.sin()
b = a * x
z = b + 1
torch.viz.html(z, params={"x": x})

# %% [markdown]
# In your own program, `torch.viz.html(z, "backward.html")` writes the page to a file, which you open in
# a browser. Call it **before** `z.backward()`: after backward, the graph is gone.

# %% [markdown]
# ## A function and its slope in one picture
#
# The slope at one point is a number. The slope at every point is a new curve. We compute the function at
# 241 points, call backward, and draw both. (In one line: `torch.viz.plot("sin(x) * x + 1", -6, 6)`.)

# %% alt="Two curves: sin(x) times x, and its derivative"
import matplotlib.pyplot as plt

xs = torch.linspace(-6, 6, 241, requires_grad=True)
ys = xs.sin() * xs + 1
ys.sum().backward()
plt.plot(xs.detach(), ys.detach(), label="z = sin(x) · x + 1")
plt.plot(xs.detach(), xs.grad, label="slope of z")
plt.plot([0.5], [0.9182], "o", color="tab:red", label="x = 0.5: slope 0.9182")
plt.axhline(0, linewidth=0.5, color="gray")
plt.xlabel("x")
plt.legend()
plt.show()

# %% [markdown]
# Where the slope is 0, the function is at the top of a hill or at the bottom of a valley. (Why `.sum()`?
# Each of the 241 results depends only on its own x. So the slope of the sum with respect to one x
# is the slope of this one result. With one call of `backward` we get 241 slopes.)

# %% [markdown]
# ## Exercises
#
# **Exercise 1.** How many paths lead from `z` to `x` in `z = x * x * x + x`? What does each contribute
# at `x = 2`? Write it on paper. Then let `torch.explain` check it.
# Call the number of paths `path_count`, and the sum of what they contribute `path_sum`.

# %% [markdown] tags=["solution"]
# Four: three through the product (one for each x), and one directly from the sum. At 2 each of the three
# contributes 2 · 2 = 4, and the direct one contributes 1. Together: 13, which is 3x² + 1.

# %% tags=["solution"]
x = torch.tensor(2.0, requires_grad=True)
z = x * x * x + x
told = torch.explain(z, wrt=x)
print(told)
path_count, path_sum = len(told.paths), float(told.value)
assert len(told.paths) == 4 and float(told.value) == 13

# %% tags=["check"] define=["path_count", "path_sum"]
assert path_count == 4, f"There are not {path_count} paths. Each x of the product begins a path, and the last x as well."
assert abs(float(path_sum) - 13) < 1e-4, f"The sum is not {path_sum}. Compare with the slope of x³ + x at 2, 3x² + 1."

# %% [markdown]
# **Exercise 2.** A value that is *not* used: what is `b.grad` after `(a * a).backward()`? Is it 0?
# Store it as `unused`.

# %% tags=["solution"]
a = torch.tensor(2.0, requires_grad=True)
b = torch.tensor(5.0, requires_grad=True)
(a * a).backward()
unused = b.grad
print(a.grad, unused)
assert unused is None
# None: no path leads to b. It is not 0: nothing has arrived at all.

# %% tags=["check"] define=["unused"]
assert unused is None, f"`unused` is {unused}. Store b.grad itself, after the backward pass of a * a. No path leads to b."

# %% [markdown]
# **Exercise 3.** In `z = (x + 1) * (x - 1)` at `x = 3`, both paths end with the same factor, the slope
# of an addition. Find the gradient with paths, then by multiplying out (x² - 1), then with backward.
# Call the results `by_paths`, `multiplied_out` and `by_backward`.

# %% tags=["solution"]
x = torch.tensor(3.0, requires_grad=True)
left, right = x + 1, x - 1
z = left * right
z.backward()
by_paths = right.item() * 1 + left.item() * 1  # 2 + 4
multiplied_out = 2 * 3.0
by_backward = x.grad.item()
print(by_paths, multiplied_out, by_backward)
assert by_paths == multiplied_out == by_backward

# %% tags=["check"] define=["by_paths", "multiplied_out", "by_backward"]
assert abs(float(by_paths) - 6) < 1e-4, f"by_paths is {by_paths}: a path through x + 1 has the factor x - 1, and vice versa."
assert abs(float(multiplied_out) - 6) < 1e-4, f"multiplied_out is {multiplied_out}: the slope of x² - 1 is 2x."
assert abs(float(by_backward) - 6) < 1e-4, f"by_backward is {by_backward}: store x.grad after one z.backward()."

# %% [markdown]
# ## What you have seen
#
# - The **graph** holds all steps. `print_graph` and `viz.graph` show it.
# - **Along a path slopes are multiplied, and paths are added.** `torch.explain` prints each factor and
#   each path.
# - Slopes are **added where a value is used twice**, because it acts through both places.
# - `backward` adds first and sends once, so it visits every step once, even in a graph with a
#   billion paths.
# - `viz.html` shows backward step by step.
#
# Before: [1. A scalar that knows its history](01_scalar.md).
# Next: [3. Broadcasting and its undoing](03_broadcasting.md)
