# %% [markdown]
# # 12. Your own op
#
# **At the end of this lesson you know** how to give rushlight a new function in one line: its formula
# and the rule of its slope. You get second derivatives, batches and compiled loops for free.
#
# **Time:** 30 minutes. **You need:** lessons 1 to 5.

# %% [markdown]
# ## A cost that forgives
#
# We fit a line to points. Some of the points are wrong: somebody has typed a digit too many. The cost
# of lesson 8, the mean of the squared errors, looks at an error of 10 a hundred times as closely as at
# an error of 1. So a few wrong points pull the line away.
#
# Statistics has a remedy: a cost that is like the square for small errors, and grows like a straight
# line for large ones. One such function is **log(cosh(x))**:

# %% alt="Two curves: the square grows quickly, log cosh grows like a straight line"
import matplotlib.pyplot as plt

import rushlight as torch

xs = torch.linspace(-4, 4, 161)
plt.plot(xs, xs**2 / 2, label="x² / 2")
plt.plot(xs, torch.log(torch.cosh(xs)), label="log(cosh(x))")
plt.ylim(0, 5)
plt.xlabel("error")
plt.ylabel("cost")
plt.legend()
plt.show()

# %% [markdown]
# ## One line
#
# rushlight has `log` and `cosh`, so `torch.log(torch.cosh(x))` works already. Its graph has two steps.
# We want *one* step, with a slope that we know: the derivative of log(cosh(x)) is tanh(x).

# %%
log_cosh = torch.op(lambda x, /: log(cosh(x)), x=lambda g, x: g * tanh(x))

x = torch.tensor([0.0, 1.0, -3.0], requires_grad=True)
y = log_cosh(x)
print(y)
y.sum().backward()
print(x.grad)
assert torch.allclose(x.grad, torch.tanh(x))

# %% [markdown]
# Read the line from left to right:
#
# - `lambda x, /: log(cosh(x))` is the **formula**. What stands before the slash is a tensor.
# - `x=lambda g, x: g * tanh(x)` is the **rule of x**. `g` is the slope that arrives, as in lesson 5. The
#   rule multiplies it with the slope of the step. Its other parameters are what it needs: here `x`.
#   Only that is saved.
#
# Inside the two lambdas you write `log`, not `torch.log`. These names are ops of rushlight; you need
# not import them. Why? rushlight runs the same text in several ways. In `backward()` the names mean
# functions of NumPy arrays. For a second derivative they mean functions of tensors. In the documentation
# they mean symbols:

# %%
print(log_cosh.__doc__)

# %% [markdown]
# And the chain rule of lesson 2 has the new step, too:

# %%
w = torch.tensor(0.5, requires_grad=True)
z = log_cosh(w) * w
print(torch.explain(z, wrt=w))

# %% [markdown]
# ## Is it right?
#
# As in lesson 5, `gradcheck` compares the rule with small changes. `gradgradcheck` does the same for
# the second derivative. You did not write a second derivative: rushlight derives the rule, which is
# made of ops.

# %%
numbers = torch.randn(5, dtype=torch.float64, requires_grad=True)
print(torch.autograd.gradcheck(log_cosh, numbers), torch.autograd.gradgradcheck(log_cosh, numbers))

wrong = torch.op(lambda x, /: log(cosh(x)), x=lambda g, x: g * cosh(x))
try:
    torch.autograd.gradcheck(wrong, numbers)
except RuntimeError as error:
    print(str(error).splitlines()[0].rstrip(","))
    assert "Jacobian mismatch" in str(error)

# %% [markdown]
# Other mistakes are found earlier. rushlight reads the formula when you define the op:

# %%
try:
    typo = torch.op(lambda x, /: log(kosh(x)))
except NameError as error:
    print(str(error).splitlines()[0])
    assert "did you mean cosh" in str(error)

# %% [markdown]
# ## The line through the points
#
# Now the experiment. The true line is 2x + 1; five of forty points are wrong.

# %% alt="Points with five outliers; the line of the squared error is pulled up, the line of log cosh goes through the others"
torch.manual_seed(3)
xs = torch.linspace(-2, 2, 40)
ys = 2 * xs + 1 + 0.3 * torch.randn(40)
ys[30:35] += 12


def fitted(cost):
    a, b = torch.zeros(2, requires_grad=True), torch.zeros(1, requires_grad=True)
    line = [a, b]
    optimizer = torch.optim.Adam(line, lr=0.1)
    for _ in range(300):
        optimizer.zero_grad()
        cost(a[0] * xs + b - ys).mean().backward()
        optimizer.step()
    return a[0].item(), b.item()


square, forgiving = fitted(lambda e: e**2 / 2), fitted(log_cosh)
print("squared error: {:.2f} x + {:.2f}".format(*square))
print("log cosh:      {:.2f} x + {:.2f}".format(*forgiving))
plt.plot(xs, ys, "o", markersize=3)
for (a, b), name in ((square, "squared error"), (forgiving, "log(cosh)")):
    plt.plot(xs, a * xs + b, label=name)
plt.legend()
plt.show()
assert abs(forgiving[0] - 2) < 0.3 and abs(forgiving[1] - 1) < 0.5

# %% [markdown]
# The squared error has let itself be pulled up. `log_cosh` has nearly found the true line.
#
# ## Two inputs and a setting
#
# An op can have several tensors, each with a rule, and **settings** after the slash. This one is a bell
# curve. `out` in a rule is the result of the op:

# %%
bell = torch.op(
    lambda x, mean, /, width=1.0: exp(-(((x - mean) / width) ** 2) / 2),
    x=lambda g, x, mean, width, out: -g * out * (x - mean) / width**2,
    mean=lambda g, x, mean, width, out: g * out * (x - mean) / width**2,
)
x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
mean = torch.randn(3, dtype=torch.float64, requires_grad=True)
print(bell(x, mean, width=2.0).shape)
assert torch.autograd.gradcheck(lambda x, mean: bell(x, mean, width=2.0), (x, mean))

# %% [markdown]
# The row `mean` was used for each of the four rows of `x`. The rule knows nothing of this: it returns a
# slope of the shape of the *output*, and backward sums it over the rows, as in lesson 3.
#
# ## What you get besides
#
# The op has all that the other ops have: derivatives forward, batches by `vmap`, compiled loops.

# %%
points = torch.linspace(-1, 1, 5)
one, slopes = torch.func.jvp(log_cosh, (points,), (torch.ones(5),))
print("forward:   ", slopes)
second = torch.vmap(torch.func.grad(torch.func.grad(log_cosh)))(points)
print("second:    ", second)
assert torch.allclose(second, 1 - torch.tanh(points) ** 2)
step = torch.compile(lambda x: (log_cosh(x) * 2).sum())
assert torch.allclose(step(points), (log_cosh(points) * 2).sum())
print("compiled:  ", step(points).item())

# %% [markdown]
# **When do you write a `Function`, when an op?** If you can write the function and its slope as formulas,
# write an op: it is shorter, and everything works. If you call another program, or if the slope needs
# loops and conditions of Python, write a `Function` (lesson 5). All options of an op are on the page
# [Add an op](../add-an-op.md).

# %% [markdown]
# ## Exercises
#
# **Exercise 1.** Write the op `softsign(x) = x / (1 + |x|)`. Its slope is 1 / (1 + |x|)². Check it.

# %% tags=["solution"]
softsign = torch.op(lambda x, /: x / (1 + abs(x)), x=lambda g, x: g / (1 + abs(x)) ** 2)
x = torch.tensor([-3.0, 0.5, 2.0], dtype=torch.float64, requires_grad=True)
print(softsign(x))
assert torch.autograd.gradcheck(softsign, x)

# %% tags=["check"] define=["softsign"]
x = torch.tensor([-3.0, 0.5, 2.0], dtype=torch.float64, requires_grad=True)
assert torch.allclose(softsign(x), x / (1 + x.abs())), "softsign(x) should be x / (1 + |x|)."
(slope,) = torch.autograd.grad(softsign(x), x, torch.full((3,), 2.0, dtype=torch.float64))
assert torch.allclose(slope, 2 / (1 + x.abs()) ** 2), "The slope is not g / (1 + |x|)². Does the rule multiply with g?"

# %% [markdown]
# **Exercise 2.** The slope of `exp` is its result. So a rule can use `out` in place of `x`. Write the op
# `growth(x) = exp(2 x)` in this way. What does its node save?

# %% tags=["solution"]
growth = torch.op(lambda x, /: exp(2 * x), x=lambda g, out: 2 * g * out)
x = torch.tensor([0.0, 1.0], dtype=torch.float64, requires_grad=True)
assert torch.autograd.gradcheck(growth, x)
print(growth(x).grad_fn.saved_tensors)
# Only the result: no rule names x, so x is not kept.

# %% tags=["check"] define=["growth"]
x = torch.tensor([0.0, 1.0], dtype=torch.float64, requires_grad=True)
y = growth(x)
assert torch.allclose(y, (2 * x).exp()), "growth(x) should be exp(2 x)."
(slope,) = torch.autograd.grad(y, x, torch.full((2,), 3.0, dtype=torch.float64), retain_graph=True)
assert torch.allclose(slope, 6 * (2 * x).exp()), "The slope of exp(2 x) is 2 exp(2 x), times g."
saved = y.grad_fn.saved_tensors
assert len(saved) == 1 and torch.equal(saved[0], y), "The node saves x. Name `out` in the rule in place of x."

# %% [markdown]
# **Exercise 3.** Lesson 5 had a step whose slope was not the true one: it lets slopes pass through a
# rounding. Write it as an op `rounded`: forward `round(x)`, and a rule that sends `g` on as it is.

# %% tags=["solution"]
rounded = torch.op(lambda x, /: round(x), x=lambda g: g)
x = torch.tensor([0.4, 1.7], requires_grad=True)
y = rounded(x)
y.sum().backward()
print(y, x.grad)
assert y.tolist() == [0, 2] and x.grad.tolist() == [1, 1]

# %% tags=["check"] define=["rounded"]
x = torch.tensor([0.4, 1.7, -2.6], requires_grad=True)
y = rounded(x)
assert y.tolist() == [0, 2, -3], f"rounded of 0.4, 1.7 and -2.6 is {y.tolist()}."
y.backward(torch.tensor([1.0, 2.0, 3.0]))
assert x.grad.tolist() == [1, 2, 3], f"For the slopes 1, 2, 3 the rule sends {x.grad.tolist()}: it should send g as it is."

# %% [markdown]
# ## What you have seen
#
# - `torch.op(formula, x=rule)` makes an op. The rule multiplies the slope that arrives, `g`, with the
#   slope of the step, and names what it needs.
# - One text serves NumPy arrays, tensors, symbols and compiled loops: names in it are ops.
# - Rules return slopes of the output's shape. Backward sums what broadcasting has repeated.
# - `gradcheck` and `gradgradcheck` test each new op.
#
# Before: [11. Attention and a GPT](11_gpt.md). The whole course: [From a scalar to a GPT](index.md).
