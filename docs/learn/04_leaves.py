# %% [markdown]
# # 4. Leaves and their gradients
#
# **At the end of this lesson you know** which tensors get a `.grad`, why you must clear it, how to stop
# the recording, and what the most frequent error messages of autograd mean. We make each mistake
# on purpose and read rushlight's message.
#
# **Time:** 35 minutes. **You need:** lessons 1 to 3.

# %% [markdown]
# ## Leaves
#
# In a graph, two kinds of tensors exist:
#
# - A **leaf** has no recorded history: you made it (`torch.tensor(...)`, `torch.randn(...)`, the weights
#   of a network), or it was computed only from tensors that need no gradient.
# - A **result** was recorded. Its `grad_fn` is the step that made it.
#
# The name comes from the picture of a tree: the leaves are where the branches end.

# %%
import rushlight as torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
data = torch.tensor([3.0, 4.0])
product = w * data
loss = product.sum()

for name, tensor in [("w", w), ("data", data), ("product", product), ("loss", loss)]:
    print(
        f"{name:8} leaf: {tensor.is_leaf!s:5}",
        f"requires_grad: {tensor.requires_grad!s:5}",
        f"grad_fn: {tensor.grad_fn.name() if tensor.grad_fn else None}",
    )

# %% [markdown]
# You set `requires_grad=True` on a leaf. The results inherit it: `product` requires a gradient because
# `w` does. `data` does not, so backward does not compute a gradient for it. This saves work: in a
# network, the images are data and do not change.
#
# After `backward()`, the **leaves that require a gradient** have a `.grad`. Others do not:

# %%
loss.backward()
print("w.grad:   ", w.grad)
print("data.grad:", data.grad)

# %% [markdown]
# For `product.grad` you would get `None` and a warning. Gradients of results are computed, sent
# on and thrown away, because in a large network they would fill the memory. To keep one, call
# `retain_grad()` **before** backward:

# %%
product = w * data
product.retain_grad()
product.sum().backward()
print("product.grad:", product.grad)

# %% [markdown]
# ## `.grad` adds up
#
# We called backward twice now. Look at `w.grad`:

# %%
print("w.grad:", w.grad)
assert w.grad.tolist() == [6, 8]

# %% [markdown]
# It was `[3, 4]`, now it is `[6, 8]`. Backward does not *set* `.grad`. It **adds** to the old value.
#
# Why? Because it is useful. If a batch is too large for your memory, you split it into four parts, call
# backward for each, and `.grad` holds the sum, as if it had been one batch (if the loss is a
# mean: divide each part by four, see exercise 2). It also follows from lesson
# 2: slopes that arrive at the same value are added.
#
# But if you do not want the sum, **you must clear the gradient before each step**. Forgetting this is
# the most frequent mistake in training loops, and there is no error message. Here is the same training
# twice. We look for the number 3. One loop clears, the other forgets it.

# %% alt="With zero_grad the number goes straight to 3; without it, it swings around 3 and never settles"
import matplotlib.pyplot as plt


def train(clear):
    guess = torch.tensor(0.0, requires_grad=True)
    path = []
    for _ in range(25):
        if clear:
            guess.grad = None
        cost = (guess - 3) ** 2
        cost.backward()
        with torch.no_grad():
            guess -= 0.1 * guess.grad
        path.append(guess.item())
    return path


good, bad = train(clear=True), train(clear=False)
print("cleared:    ", round(good[-1], 3))
print("not cleared:", round(bad[-1], 3))
assert abs(good[-1] - 3) < 0.05 and abs(bad[-1] - 3) > 0.3

plt.plot(good, label="cleared in each step")
plt.plot(bad, label="not cleared")
plt.axhline(3, linewidth=0.5, color="gray")
plt.xlabel("step")
plt.ylabel("guess")
plt.legend()
plt.show()

# %% [markdown]
# Without clearing, each step also repeats all former steps. The guess runs past 3, turns around, and
# runs past it again.
#
# With an optimizer (lesson 8) one line clears all weights: `optimizer.zero_grad()`. With a model:
# `model.zero_grad()`. Both set `.grad` to `None`.

# %% [markdown]
# ## `no_grad`: do not record
#
# The update `guess -= 0.1 * guess.grad` stood in `with torch.no_grad():`. Why?
#
# The update is not part of the function whose slope we want. It should not be recorded. Inside of
# `no_grad` nothing is recorded. If we leave it out, we meet the first error:


# %%
def show(error):
    """Prints the text of an error."""
    print(type(error).__name__ + ":", error)


try:
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    w -= 0.1
except RuntimeError as error:
    show(error)
    assert "leaf Variable" in str(error)

# %% [markdown]
# Read such a message in this order: the **first line** names the problem (it is the same as in
# PyTorch, so you can search for it). The line **at** shows the place in your program. The last
# line suggests a fix.
#
# The other use of `no_grad` is to *use* a trained network. No gradient is needed there, and without the
# record the network needs less memory:

# %%
w = torch.tensor([1.0, 2.0], requires_grad=True)
with torch.no_grad():
    answer = (w * 2).sum()
print(answer.requires_grad, answer.grad_fn)

# %% [markdown]
# ## `detach`: a value without its history
#
# `no_grad` is for a block of lines. `detach()` is for one tensor: it returns the same numbers, without
# the history. For backward it is a constant.

# %%
x = torch.tensor(3.0, requires_grad=True)
y = x * x
z = y * y.detach()  # the second y counts as the constant 9
z.backward()
print(x.grad, "and not", 4 * 3.0**3)
assert x.grad == 9 * 2 * 3

# %% [markdown]
# ## The classic mistakes
#
# From here on we only make mistakes. The gradient that was not cleared gave no error. Most of the
# next ones do.
#
# **A result with many numbers.** Backward begins with the slope 1 of *one* number. Which number is it
# here?

# %%
try:
    (torch.ones(2, requires_grad=True) * 2).backward()
except RuntimeError as error:
    show(error)
    assert "scalar outputs" in str(error)

# %% [markdown]
# **Backward twice.** To save memory, backward frees the graph while it walks. A second walk is not
# possible. Often the reason is a computation *outside* of the loop:

# %%
try:
    w = torch.ones(2, requires_grad=True)
    hidden = w.exp()  # should stand inside the loop
    for _ in range(2):
        (hidden * w).sum().backward()
except RuntimeError as error:
    show(error)
    assert "second time" in str(error)

# %% [markdown]
# **A loss without a history.** The program computed it under `no_grad`, or used `.item()`, or
# made a new tensor from the number. The chain is broken:

# %%
try:
    w = torch.ones(2, requires_grad=True)
    number = (w * 2).sum().item()  # a plain number has no history
    loss = torch.tensor(number)
    loss.backward()
except RuntimeError as error:
    show(error)
    assert "does not require grad" in str(error)

# %% [markdown]
# **Writing over a value that backward needs.** The slope of `exp(x)` is `exp(x)` itself, so the step
# keeps its result. If we change this result in place, backward would compute with a wrong number.
# rushlight notices, and shows both lines:

# %%
try:
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    y += 1  # in place; y = y + 1 would be right
    y.sum().backward()
except RuntimeError as error:
    show(error)
    assert "inplace" in str(error)

# %% [markdown]
# **Whole numbers.** A slope needs small changes. Whole numbers cannot change a little.

# %%
try:
    torch.tensor([1, 2], requires_grad=True)
except RuntimeError as error:
    show(error)
    assert "floating point" in str(error)

# %% [markdown]
# **`numpy()` in the middle.** A NumPy array cannot hold a history. rushlight does not drop the
# history silently; you must call `detach()`:

# %%
try:
    torch.ones(2, requires_grad=True).numpy()
except RuntimeError as error:
    show(error)
    assert "numpy" in str(error)

# %% [markdown]
# **A tensor that is not a leaf.** This one has no error. `requires_grad` comes first, then a computation:
# `wrong` is the *result* of a division, not a leaf. Its `.grad` stays empty, and the network does not
# learn.

# %%
import warnings

wrong = torch.ones(2, requires_grad=True) / 2  # a result
right = (torch.ones(2) / 2).requires_grad_()  # a leaf
(wrong.sum() + right.sum()).backward()
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # reading .grad of a result gives a warning
    print("wrong:", wrong.is_leaf, wrong.grad)
print("right:", right.is_leaf, right.grad)
assert right.grad is not None

# %% [markdown]
# ## Freezing a part
#
# Sometimes a part of a network should stay as it is. Then its weights do not require gradients. You can
# switch this at any leaf, with `requires_grad_(False)`. (Methods whose names end with `_` change the
# tensor itself.)

# %%
first = torch.tensor(2.0, requires_grad=True)
second = torch.tensor(5.0, requires_grad=True)
first.requires_grad_(False)
(first * second).backward()
print("first:", first.grad, " second:", second.grad)
assert first.grad is None and second.grad == 2

# %% [markdown]
# ## Exercises
#
# **Exercise 1.** Before you run it: what does this print, and why? Store the number that it prints as `printed`.
#
# ```python
# a = torch.tensor(1.0, requires_grad=True)
# for _ in range(3):
#     (a * 2).backward()
#    print(a.grad)
# ```

# %% tags=["solution"]
a = torch.tensor(1.0, requires_grad=True)
for _ in range(3):
    (a * 2).backward()
printed = a.grad.item()
print(printed)  # 6: three times 2, added, since nobody cleared it
assert printed == 6

# %% tags=["check"] define=["printed"]
assert float(printed) == 6, f"It does not print {printed}. Each backward adds 2 to a.grad, and no line clears it."

# %% [markdown]
# **Exercise 2.** A batch of 8 numbers is too large for your memory (let us imagine). Compute the
# gradient of the *mean* of `(w * x - 1)²` over all 8, but with two calls of backward, on 4 numbers
# each. Compare with the gradient of the whole batch. Use `x = torch.arange(8.0)` and `w = 0.5`; call the two
# gradients `whole` and `in_parts`.

# %% tags=["solution"]
x = torch.arange(8.0)
w = torch.tensor(0.5, requires_grad=True)
((w * x - 1) ** 2).mean().backward()
whole = w.grad.item()

w.grad = None
for part in (x[:4], x[4:]):
    (((w * part - 1) ** 2).mean() / 2).backward()  # / 2: the mean of two means
in_parts = w.grad.item()
print(whole, in_parts)
assert abs(whole - in_parts) < 1e-5

# %% tags=["check"] define=["whole", "in_parts"]
assert abs(float(whole) - 10.5) < 1e-3, f"whole is {float(whole)}: the gradient of ((w * x - 1) ** 2).mean() by w = 0.5."
assert abs(float(in_parts) - 21) > 1e-3, "in_parts is twice as large: the mean of all is the mean of the two means, so / 2."
assert abs(float(in_parts) - 10.5) < 1e-3, (
    f"in_parts is {float(in_parts)}. Clear w.grad before the first part, and do not clear it between the parts."
)

# %% [markdown]
# **Exercise 3.** This loop should find the square root of 2, `r`. It contains three mistakes. Find them. (The
# errors of this lesson help.)
#
# ```python
# r = torch.tensor(1, requires_grad=True)
# for _ in range(50):
#     cost = (r * r - 2) ** 2
#     cost.backward()
#     r -= 0.05 * r.grad
# ```

# %% tags=["solution"]
# 1. a whole number cannot require a gradient
r = torch.tensor(1.0, requires_grad=True)
for _ in range(50):
    r.grad = None  # 2. the gradient must be cleared
    cost = (r * r - 2) ** 2
    cost.backward()
    with torch.no_grad():  # 3. the update must not be recorded
        r -= 0.05 * r.grad
print(r)
assert abs(r.item() - 2**0.5) < 1e-3

# %% tags=["check"] define=["r"]
assert isinstance(r, torch.Tensor) and r.requires_grad, "r should be a tensor that requires a gradient."
assert r.is_leaf, "r is no longer a leaf: the update was recorded. Update it in place, under torch.no_grad()."
assert abs(r.item() - 2**0.5) < 1e-3, f"r is {r.item():.4f}, not the square root of 2. Is the gradient cleared in each step?"

# %% [markdown]
# ## What you have seen
#
# - **Leaves** are made by you, results have a `grad_fn`. Only leaves with `requires_grad=True` get a
#   `.grad`.
# - Backward **adds** to `.grad`. Clear it before each step.
# - `with torch.no_grad():` for updates and for using a network; `detach()` for one tensor.
# - In-place writes can destroy values that backward needs.
# - An error's first line is PyTorch's; below it rushlight shows your line and a hint.
#
# The page [Common mistakes](../mistakes.md) of the documentation has many more examples.
#
# Before: [3. Broadcasting and its undoing](03_broadcasting.md).
# Next: [5. Your own Function](05_function.md)
