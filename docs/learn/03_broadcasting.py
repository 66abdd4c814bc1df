# %% [markdown]
# # 3. Broadcasting and its undoing
#
# **At the end of this lesson you know** what a tensor's shape is, what happens when two shapes do not
# match, and what backward must do about it. Most beginners' errors are shape errors. This lesson
# saves you many hours.
#
# **Time:** 30 minutes. **You need:** lessons 1 and 2.

# %% [markdown]
# ## Many numbers at once
#
# Lesson 1 worked with single numbers. Python needs about a tenth of a microsecond for each. A network
# needs millions. So we put many numbers into one object, a **tensor**, and compute with all of them
# in one call. Inside the call, fast code does the loop.

# %%
import rushlight as torch

prices = torch.tensor([1.0, 2.0, 3.0])
print(prices * prices)
print("shape:", prices.shape)

# %% [markdown]
# The **shape** is the arrangement of the numbers. `(3,)` is a row of three. `(2, 3)` is a table with 2
# rows and 3 columns. `()` is a single number. The number of dimensions is the length of the shape.

# %%
table = torch.tensor([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]])
print(table)
print("shape:", table.shape, " dimensions:", table.dim(), " numbers:", table.numel())

# %% [markdown]
# ## When the shapes differ
#
# `table * prices` multiplies a `(2, 3)` with a `(3,)`. They do not match. And still it works:

# %%
print(table * prices)

# %% [markdown]
# Each *row* of the table was multiplied by `prices`. rushlight treated `prices` as a table with
# two equal rows. This is **broadcasting**: the smaller tensor is repeated (in thought, not in
# memory)
# until the shapes match.
#
# Why does such a thing exist? Because networks need it everywhere. A layer adds the same bias to each
# of the 32 examples of a batch. Without broadcasting we would copy the bias 32 times.
#
# **The rule.** Write the two shapes below each other, aligned at the **right**. Missing places on the
# left count as 1. In every column, the sizes must be equal, or one of them must be 1. The 1 is
# repeated.
#
# ```text
# table     2  3          column of 5   5  1          image   3  28  28
# prices       3          row of 4         4          weight     28   1
#          -----                       -----                 ----------
#    result    2  3          result        5  4          result  3  28  28
# ```

# %%
column = torch.tensor([[1.0], [2.0], [3.0]])  # (3, 1)
row = torch.tensor([10.0, 20.0])  # (2,)
print((column + row).shape)
print(column + row)

# %% [markdown]
# A picture of this sum: the column is repeated to the right, the row is repeated downward.

# %% alt="Three tables of numbers: the column repeated twice, the row repeated three times, and their sum"
import matplotlib.pyplot as plt

fig, axes = plt.subplots(1, 3, figsize=(6.4, 2.4))
style = dict(ha="center", va="center", color="white")
shown = [column.expand(3, 2), row.expand(3, 2), column + row]
for ax, numbers, title in zip(
    axes, shown, ["column, repeated", "row, repeated", "sum"]
):
    ax.imshow(numbers, cmap="viridis", vmin=0, vmax=40)
    for i in range(3):
        for j in range(2):
            ax.text(j, i, f"{numbers[i, j].item():.0f}", **style)
    ax.set_title(title)
    ax.set_xticks([])
    ax.set_yticks([])
fig.tight_layout()
plt.show()

# %% [markdown]
# If the shapes break the rule, rushlight raises an error with the shapes and your line:

# %%
try:
    torch.ones(2, 3) + torch.ones(2)
except RuntimeError as error:
    print(error)

# %% [markdown]
# Right-aligned, 3 stands over 2. We meant "the same number for each row", so we need a column of shape
# `(2, 1)`:

# %%
print((torch.ones(2, 3) + torch.ones(2).unsqueeze(1)).shape)

# %% [markdown]
# ## The problem in backward
#
# Now the gradient. Here `x` has three numbers, `y` has one.

# %%
x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = torch.tensor([4.0], requires_grad=True)
z = x * y
z.sum().backward()
print("z:     ", z.detach())
print("x.grad:", x.grad)
print("y.grad:", y.grad)

# %% [markdown]
# The gradient of `x` is clear: the slope of a product is the other factor, so each gets 4.
#
# What about `y`? The slope with respect to `y` is `x`: that is `[1, 2, 3]`. Three slopes for one number! A gradient
# **must have the shape of its tensor**: otherwise we cannot subtract it from the tensor in training.
#
# Lesson 2 has the answer. `y` was used three times, once for each number of `x`. **When a value is used
# several times, its slopes are added.** 1 + 2 + 3 = 6.
#
# So this is the rule of backward: **what forward repeats, backward sums.** rushlight does it for you.

# %% [markdown]
# ## We write the undoing
#
# Let us write this step ourselves. The function gets a gradient in the shape of the result, and the
# shape that it should have. It does the two parts of the broadcasting rule in reverse:
#
# 1. Dimensions that broadcasting added on the left are summed away.
# 2. Dimensions of size 1 that were repeated are summed, but stay as size 1.


# %%
def undo_broadcast(grad, shape):
    """Sums `grad` down to `shape`."""
    while grad.dim() > len(shape):  # 1. dimensions that were added on the left
        grad = grad.sum(dim=0)
    for dim, size in enumerate(shape):  # 2. a 1 that was repeated
        if size == 1 and grad.shape[dim] != 1:
            grad = grad.sum(dim=dim, keepdim=True)
    return grad


# %% [markdown]
# We compare it with rushlight, for several pairs of shapes. `torch.autograd.grad(result, inputs)` is
# another way to call backward: it returns the gradients, where `backward()` stores them in `.grad`.

# %%
torch.manual_seed(0)
pairs = [
    ((3,), (1,)),
    ((2, 3), (3,)),
    ((3, 1), (2,)),
    ((4, 1, 3), (2, 1)),
    ((2, 3), ()),
]
for first, second in pairs:
    a = torch.randn(first, requires_grad=True)
    b = torch.randn(second, requires_grad=True)
    product = a * b
    arriving = torch.randn(product.shape)  # a gradient that comes from later steps
    by_rushlight = torch.autograd.grad(product, [a, b], arriving)
    by_us = [
        undo_broadcast(arriving * b, a.shape),
        undo_broadcast(arriving * a, b.shape),
    ]
    for ours, theirs in zip(by_us, by_rushlight):
        assert ours.shape == theirs.shape and torch.allclose(ours, theirs, atol=1e-5)
    print(
        f"{first!s:10} * {second!s:7} -> {tuple(product.shape)!s:10} gradients agree"
    )

# %% [markdown]
# ## A layer's bias
#
# The most frequent case is a batch of 4 examples with 3 numbers each, and one bias of 3 numbers. Forward
# adds the bias to every example. Backward sums over the examples.

# %%
batch = torch.zeros(4, 3)
bias = torch.tensor([0.1, 0.2, 0.3], requires_grad=True)
(batch + bias).sum().backward()
print(bias.grad)
assert bias.grad.tolist() == [4, 4, 4]

# %% [markdown]
# Each number of the bias was used 4 times, once for each example. So its gradient is 4 times 1.
#
# The same sum is in the gradient of a matrix product. If `y = x @ w`, then the gradient of `w` is
# `x.T @ g`. This product sums over the examples, because each example used the same `w`:

# %%
x = torch.randn(4, 3)
w = torch.randn(3, 2, requires_grad=True)
g = torch.randn(4, 2)  # the gradient that arrives at y
(x @ w).backward(g)
# example by example, then added
one_by_one = sum(x[i].unsqueeze(1) * g[i] for i in range(4))
assert torch.allclose(w.grad, x.T @ g, atol=1e-6)
assert torch.allclose(w.grad, one_by_one, atol=1e-6)
print("x.T @ g is the sum over the examples")

# %% [markdown]
# ## A mistake that gives no error
#
# Broadcasting is comfortable, and it is dangerous. Here a program compares 4 predictions with 4 targets.
# One has the shape `(4, 1)`, the other `(4,)`. The program wants the mean squared difference. The
# predictions are perfect, so the result should be 0.

# %%
prediction = torch.tensor([[1.0], [2.0], [3.0], [4.0]])  # (4, 1), as a layer gives it
target = torch.tensor([1.0, 2.0, 3.0, 4.0])  # (4,)
difference = prediction - target
print("cost: ", (difference**2).mean().item())
print("shape of the difference:", tuple(difference.shape))

# %% [markdown]
# The cost is 2.5. There was no error! The `(4, 1)` and the `(4,)` were broadcast to `(4, 4)`: each
# prediction was compared with **every** target. Such a network learns nothing useful, and it is
# hard to see why.
#
# Two habits help:
#
# - Print shapes, or write `assert prediction.shape == target.shape`.
# - Use the loss functions of the library. They warn:

# %%
import warnings

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    torch.nn.functional.mse_loss(prediction, target)
print(str(caught[0].message)[:200])
assert caught

# %%
right = torch.nn.functional.mse_loss(prediction.squeeze(1), target)
print(right)
assert right == 0

# %% [markdown]
# ## Exercises
#
# **Exercise 1.** Without a computer: which of these pairs can be added, and what is the shape of the
# result? `(5, 4)` and `(4,)`; `(5, 4)` and `(5,)`; `(5, 4)` and `(5, 1)`; `(1,)` and `(3, 1, 2)`;
# `(8, 1, 6)` and `(7, 1)`. Write the five results into a list `sum_shapes`, with `None` where the pair cannot be
# added.

# %% tags=["solution"]
sum_shapes = []
for first, second in [
    ((5, 4), (4,)),
    ((5, 4), (5,)),
    ((5, 4), (5, 1)),
    ((1,), (3, 1, 2)),
    ((8, 1, 6), (7, 1)),
]:
    try:
        sum_shapes.append(tuple((torch.ones(first) + torch.ones(second)).shape))
    except RuntimeError:
        sum_shapes.append(None)
    print(first, second, "->", sum_shapes[-1] or "error")

# %% tags=["check"] define=["sum_shapes"]
assert len(sum_shapes) == 5, f"`sum_shapes` has {len(sum_shapes)} entries: one for each of the five pairs."
pairs = [((5, 4), (4,)), ((5, 4), (5,)), ((5, 4), (5, 1)), ((1,), (3, 1, 2)), ((8, 1, 6), (7, 1))]
for (first, second), shape in zip(pairs, sum_shapes):
    try:
        right = tuple((torch.ones(first) + torch.ones(second)).shape)
    except RuntimeError:
        right = None
    ours = None if shape is None else tuple(shape)
    assert ours == right, f"{first} and {second}: not {shape}. Write them below each other, aligned at the right."

# %% [markdown]
# **Exercise 2.** `x = torch.rand(6, 3) + 1` has the shape `(6, 3)`. In two separate calculations: subtract from each
# column of `x` its mean (`centered`); divide each *row* of `x` by its largest number (`scaled`). Use `keepdim=True` where you
# need it.

# %% tags=["solution"]
x = torch.rand(6, 3) + 1
centered = x - x.mean(dim=0)  # (6, 3) - (3,)
scaled = x / x.amax(dim=1, keepdim=True)  # (6, 3) / (6, 1)
assert torch.allclose(centered.mean(dim=0), torch.zeros(3), atol=1e-6)
assert (scaled.amax(dim=1) == 1).all()
print("without keepdim:", tuple(x.amax(dim=1).shape), "which does not fit (6, 3)")

# %% tags=["check"] define=["centered", "scaled"]
assert centered.shape == (6, 3), f"centered has the shape {tuple(centered.shape)}, it should be (6, 3)."
assert torch.allclose(centered.mean(dim=0), torch.zeros(3), atol=1e-5), (
    "The columns of centered do not have the mean 0. A column's mean is along dim=0."
)
assert centered.abs().max() > 0.01, "centered is 0 everywhere: take the mean of each column, not the numbers themselves."
assert scaled.shape == (6, 3), f"scaled has the shape {tuple(scaled.shape)}, it should be (6, 3)."
assert torch.allclose(scaled.amax(dim=1), torch.ones(6)), (
    "The largest number of each row of scaled should be 1. Use x.amax(dim=1, keepdim=True)."
)
assert scaled.min() < 0.999, "scaled is 1 everywhere: divide each row by its largest number only."

# %% [markdown]
# **Exercise 3.** Write the backward part of `mean` along dimension 0. If `y = x.mean(dim=0)` for an `x`
# of shape `(n, m)`, and `g` of shape `(m,)` arrives: which gradient does `x` get? (What forward sums,
# backward repeats.) Write it as a function `mean_backward(g, n)`. Check it with `torch.autograd.grad`.

# %% tags=["solution"]
def mean_backward(g, n):
    return (g / n).expand(n, len(g))  # each of the n rows had the slope 1/n


x = torch.randn(5, 3, requires_grad=True)
g = torch.randn(3)
ours = mean_backward(g, 5)
(theirs,) = torch.autograd.grad(x.mean(dim=0), x, g)
assert torch.allclose(ours, theirs)
print(ours.shape)

# %% tags=["check"] define=["mean_backward"]
for n, m in ((5, 3), (4, 2)):
    x, g = torch.randn(n, m, requires_grad=True), torch.randn(m)
    (right,) = torch.autograd.grad(x.mean(dim=0), x, g)
    answer = mean_backward(g, n)
    assert tuple(answer.shape) == (n, m), (
        f"For x of shape {(n, m)} the gradient has the shape {tuple(answer.shape)}. A gradient has the shape of its tensor."
    )
    assert torch.allclose(answer, right), "The numbers are wrong: each of the n rows has the slope 1/n, times g."

# %% [markdown]
# ## What you have seen
#
# - A tensor has a **shape**. Shapes are compared from the right; a 1 is repeated.
# - **What forward repeats, backward sums**, because a value that is used often receives many slopes. So
#   each gradient has the shape of its tensor.
# - What forward *sums*, backward *repeats*.
# - A `(4, 1)` and a `(4,)` give a `(4, 4)`, without an error. Look at the shapes.
#
# Before: [2. The chain rule, seen](02_chain_rule.md).
# Next: [4. Leaves and their gradients](04_leaves.md)
