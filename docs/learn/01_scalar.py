# %% [markdown]
# # 1. A scalar that knows its history
#
# **At the end of this lesson you know** what a gradient is, why a program can compute it exactly, and
# how the tool that does this (it is called *autograd*) works inside. You will have written one
# yourself, in about 50 lines, and it will give the same numbers as rushlight.
#
# **Time:** 30 minutes. **You need:** a little Python (functions, classes), and that you remember from school
# that a derivative is a slope. You need no earlier lesson and no knowledge of neural networks.

# %% [markdown]
# ## Why we want slopes
#
# Here is a program with one setting, the number `x`. It returns one result.

# %%
def f(x):
    return x * x * x - 2 * x


print(f(1.5))

# %% [markdown]
# Suppose that the result is a *cost*. We want it small. Should `x` be a little larger or a little
# smaller?
#
# We can try it. We change `x` by a small number `h`, and look at how much the result changes. We divide
# one change by the other. This is the **slope**.

# %%
h = 0.0001
slope = (f(1.5 + h) - f(1.5)) / h
print(f"result at 1.5:          {f(1.5):.6f}")
print(f"result at 1.5 + 0.0001: {f(1.5 + h):.6f}")
print(f"slope:                  {slope:.4f}")

# %% [markdown]
# The slope is about 4.75: when `x` grows by a little, the result grows by 4.75 times as much.
# So to make the result smaller, we make `x` **smaller**.
#
# In a picture, the slope is the steepness of the line that touches the curve at this point.

# %% alt="The curve x cubed minus 2x, and the line that touches it at x = 1.5 with slope 4.75"
import matplotlib.pyplot as plt

xs = [i / 50 for i in range(0, 111)]
plt.plot(xs, [f(x) for x in xs], label="f(x)")
plt.plot(
    [1.0, 2.0],
    [f(1.5) - 0.5 * slope, f(1.5) + 0.5 * slope],
    label=f"slope {slope:.2f}",
)
plt.plot([1.5], [f(1.5)], "o", color="tab:red")
plt.xlabel("x")
plt.ylabel("f(x)")
plt.legend()
plt.show()

# %% [markdown]
# This is all of machine learning in one sentence: **a program has many settings, we ask how
# steeply the cost changes with each setting, and we move each setting a little, downhill.** The
# list of all slopes
# has a name: the **gradient**. (People also say "the gradient of x" and mean the slope with respect to `x` alone.)
#
# A neural network has thousands or billions of settings. To try each of them, we would run the
# program once per setting. A network with a million settings would need a million runs for one small
# step. That is too slow. And the result is only approximate, because `h` is not zero.
#
# There is a better way. It needs only two runs for any number of settings: one run forward, and one
# run backward.

# %% [markdown]
# ## Two slopes that we know
#
# A program may be long, but each of its steps is simple. There are only a few kinds of steps. Let us
# find the slopes of two of them.
#
# **Addition:** `c = a + b`. When `a` grows by 0.01, `c` grows by 0.01. The slope of `c` with
# respect to `a` is **1**. The same holds for `b`.
#
# **Multiplication:** `c = a * b`. Take `a = 2` and `b = 10`. When `a` grows by 0.01, `c` grows from 20
# to 20.1, which is 10 times as much. The slope of `c` with respect to `a` is **the value of
# `b`**, and the slope with respect to `b` is the value of `a`.

# %%
a, b = 2.0, 10.0
print("slope of a + b by a:", round(((a + h + b) - (a + b)) / h, 3))
print("slope of a * b by a:", round(((a + h) * b - a * b) / h, 3))
print("slope of a * b by b:", round((a * (b + h) - a * b) / h, 3))

# %% [markdown]
# ## Two steps, one after the other
#
# What is the slope of two steps together? Take `c = a * b` and then `d = 3 * c`.
#
# When `a` grows by 0.01, `c` grows by 10 times as much, by 0.1. When `c` grows by 0.1, `d` grows by 3
# times as much, by 0.3. Together: `d` grows by 30 times as much as `a`.
#
# **Slopes of steps that follow each other are multiplied.** This is the **chain rule**. It is the only
# rule of calculus that this course needs.

# %% [markdown]
# ## A number that remembers
#
# To use the chain rule, we must know the steps. So we make a kind of number that remembers them. Let
# us call it `Scalar` (a scalar is a single number).
#
# A `Scalar` has four fields:
#
# - `value`: the number.
# - `inputs`: the scalars from which it was computed. This is its history.
# - `slopes`: for each input, the slope of this step.
# - `grad`: the slope of the *final result* with respect to this number. It is 0 until we ask for it.

# %%
import math


class Scalar:
    """A number that remembers how it was computed."""

    def __init__(self, value, inputs=(), slopes=()):
        self.value = value
        self.inputs = inputs
        self.slopes = slopes
        self.grad = 0.0

    def __repr__(self):
        return f"Scalar({self.value:.4f}, grad={self.grad:.4f})"

    def __add__(self, other):
        other = to_scalar(other)
        return Scalar(self.value + other.value, (self, other), (1.0, 1.0))

    def __mul__(self, other):
        other = to_scalar(other)
        return Scalar(
            self.value * other.value, (self, other), (other.value, self.value)
        )

    def __neg__(self):
        return self * -1.0

    def __sub__(self, other):
        return self + -to_scalar(other)

    def tanh(self):
        t = math.tanh(self.value)
        return Scalar(t, (self,), (1.0 - t * t,))

    __radd__ = __add__  # 2 + x is x + 2
    __rmul__ = __mul__  # 2 * x is x * 2


def to_scalar(x):
    return x if isinstance(x, Scalar) else Scalar(float(x))


# %% [markdown]
# `__add__` is the method that Python calls for `a + b`. It computes the value, as usual. It also
# stores the inputs, and the slope with respect to each input. `tanh` is a function that neural
# networks use; it maps any number into the range from -1 to 1. Its slope is `1 - tanh(x)²`. And `to_scalar`
# makes a `Scalar` of a plain number, so that we can write `3 * c`.
#
# Let us compute something with it.

# %%
a = Scalar(2.0)
b = Scalar(10.0)
c = a * b
d = 3 * c
print(d)
print("d was computed from:", d.inputs)
print("with the slopes:    ", d.slopes)

# %% [markdown]
# `d` refers to `c`, and `c` refers to `a` and `b`. So from `d` we can walk back to the very beginning. That is
# the second half of the work.

# %% [markdown]
# ## Walking back
#
# We want `grad` of every scalar: the slope of the final result with respect to this scalar.
#
# 1. The slope of the result with respect to itself is **1**. We begin there.
# 2. Once the `grad` of a scalar is complete, the scalar sends it to its inputs: each input gets `slope * grad`. That is the
#    chain rule.
# 3. A scalar may send only after all scalars that used it have sent theirs. So we need an order:
#    **first the result, then its inputs, and every scalar after all scalars that were computed from
#    it.**
#
# `history` makes a list with inputs first. Backward goes through this list from its end.


# %%
def history(result):
    """`result` and all scalars behind it, inputs before outputs."""
    found = []

    def visit(scalar):
        if scalar not in found:
            for x in scalar.inputs:
                visit(x)
            found.append(scalar)

    visit(result)
    return found


def backward(result):
    """Sets `grad` of every scalar to the slope of `result` by this scalar."""
    result.grad = 1.0
    for scalar in reversed(history(result)):
        for x, slope in zip(scalar.inputs, scalar.slopes):
            x.grad += slope * scalar.grad


backward(d)
print("a:", a)
print("b:", b)
print("c:", c)
print("d:", d)

# %% [markdown]
# Run the cell with `backward(d)` once: a second run sends the slopes in between again, and `a.grad` becomes
# 90. To walk back again, create the scalars again.
#
# The slope of `d` with respect to `a` is 30, as we found by hand. (Textbooks call it the
# *derivative* of `d` with respect to `a` and write ∂d/∂a.) The slope with respect to `b` is 6:
# when `b` grows by 0.01, `c`
# grows by 0.02 and `d` by 0.06.
#
# Look at one detail in `backward`: the operator is `+=`, not `=`. A scalar that was used twice receives two
# slopes. They are **added**. Here is the function from the beginning, which uses `x` four times.

# %%
x = Scalar(1.5)
y = f(x)
backward(y)
print("by walking back:", x.grad)
print("by trying:      ", round(slope, 4))
print("by hand:        ", 3 * 1.5**2 - 2)
assert x.grad == 3 * 1.5**2 - 2

# %% [markdown]
# We did not change `f`. It contains nothing about `Scalar`. It only multiplies and subtracts, and
# the numbers keep the record. And the result is exact: 4.75, not 4.7505.
#
# Lesson 2 explains in pictures why slopes are added.

# %% [markdown]
# ## The same with rushlight
#
# rushlight does the same thing. Its number is called a **tensor**. A tensor can hold many numbers, but
# it can also hold one. `requires_grad=True` asks the tensor to remember its history, so that it
# gets a gradient.
#
# Here is a **neuron**, the building block of neural networks: it multiplies each input
# with a weight, adds everything, and squeezes the sum with `tanh`. We compute it twice, with our
# scalars and with rushlight. It is the same function. (`neuron(**ours)` means: give each entry of the
# dictionary `ours` to the argument of this name.)

# %%
import rushlight as torch


def neuron(x1, x2, w1, w2, b):
    return (x1 * w1 + x2 * w2 + b).tanh()


start = {"x1": 0.5, "x2": -1.0, "w1": 2.0, "w2": 1.5, "b": 1.0}

ours = {name: Scalar(value) for name, value in start.items()}
our_result = neuron(**ours)
backward(our_result)

theirs = {
    name: torch.tensor(value, requires_grad=True) for name, value in start.items()
}
their_result = neuron(**theirs)
their_result.backward()

print(f"{'':6} {'Scalar':>9} {'rushlight':>10}")
print(f"result {our_result.value:9.5f} {their_result.item():10.5f}")
for name in start:
    print(f"{name:6} {ours[name].grad:9.5f} {theirs[name].grad.item():10.5f}")
    assert abs(ours[name].grad - theirs[name].grad.item()) < 1e-6

# %% [markdown]
# The same gradients. The names are the same, too: `backward` walks back, and `.grad` holds the
# slope. If you know `Scalar`, you know what happens in rushlight, and in PyTorch, whose names rushlight
# uses.
#
# The history can be drawn. The result is at the top. Each box is a step, and the green boxes are the
# numbers that we put in. `Mul` is a multiplication, `Add` an addition. (Lesson 2 explains why the names
# end in `Backward0`.)

# %% alt="The graph of the neuron: tanh at the top, below it two additions, below them two products, and at the bottom the five inputs with values and gradients"
torch.viz.graph(their_result, theirs)

# %% [markdown]
# Such a drawing of steps is called a **graph**: points (the steps) and arrows between them (which
# result was computed from which). In the next lessons "the graph" always means this drawing.

# %% [markdown]
# ## A first training
#
# We have everything for a very small training. We want the neuron to answer 0.8 for these inputs. The
# cost is the squared distance from 0.8. In each step we move each weight against its slope, by a
# tenth of the slope.

# %% alt="The cost falls from 0.11 to nearly 0 within 60 steps"
w1, w2, b = Scalar(2.0), Scalar(1.5), Scalar(1.0)
costs = []
for _ in range(60):
    error = neuron(0.5, -1.0, w1, w2, b) - 0.8
    cost = error * error
    for weight in (w1, w2, b):
        weight.grad = 0.0  # forget the slopes of the last step
    backward(cost)
    for weight in (w1, w2, b):
        weight.value -= 0.1 * weight.grad  # downhill
    costs.append(cost.value)

print("answer before:", round(our_result.value, 3))
print("answer now:   ", round(neuron(0.5, -1.0, w1, w2, b).value, 3))
assert costs[-1] < 0.001 * costs[0]

plt.plot(costs, marker="o", markersize=3)
plt.xlabel("step")
plt.ylabel("cost")
plt.show()

# %% [markdown]
# The neuron has learned. Large networks learn in the same way; they only have more numbers.

# %% [markdown]
# ## Exercises
#
# Try each exercise before you open its solution. In the notebook, write in a cell below the exercise, and use
# the names that the exercise gives: `rushlight lessons check 1` looks for them. On this page, press *Run here*
# at the top: then each exercise has a field for your program.
#
# **Exercise 1.** Add a function `exp(x)` for scalars. (The slope of eˣ is eˣ itself.) Check the
# gradient of `exp(x * x)` at `x = 0.5` by trying a small change.


# %% tags=["solution"]
def exp(x):
    e = math.exp(x.value)
    return Scalar(e, (x,), (e,))


x = Scalar(0.5)
y = exp(x * x)
backward(y)
tried = (math.exp((0.5 + 1e-6) ** 2) - math.exp(0.5**2)) / 1e-6
print(x.grad, tried)
assert abs(x.grad - tried) < 1e-4

# %% tags=["check"] define=["exp"]
for value in (0.5, -1.0):
    x = Scalar(value)
    y = exp(x)
    assert isinstance(y, Scalar), "exp(Scalar(0.5)) must return a Scalar, so that it can be used in further steps."
    assert abs(y.value - math.exp(value)) < 1e-9, f"exp(Scalar({value})) has the value {y.value}. Use math.exp."
    backward(y)
    assert abs(x.grad - math.exp(value)) < 1e-9, (
        f"The slope of exp at {value} is {x.grad}, it should be {math.exp(value):.4f}. "
        "Give the scalar its inputs, (x,), and its slopes: one slope for each input."
    )
x = Scalar(0.5)
backward(exp(x * x))
assert abs(x.grad - math.exp(0.25)) < 1e-9, "exp(x * x) has a wrong slope: does exp return the inputs that it got?"

# %% [markdown]
# **Exercise 2.** Write `=` instead of `+=` in `backward`. For which of these is the gradient of `x`
# wrong: `3 * x`, `x + x`, `x * x`, `x.tanh()`? Guess first, then try. Put the wrong ones as texts into a list
# `wrong`, for example `wrong = ["3 * x"]`.

# %% [markdown] tags=["solution"]
# It is wrong for the functions that use `x` twice: `x + x` and `x * x`. The second slope replaces the first.


# %% tags=["solution"]
def forgetful_backward(result):
    result.grad = 1.0
    for scalar in reversed(history(result)):
        for x, slope in zip(scalar.inputs, scalar.slopes):
            x.grad = slope * scalar.grad


wrong = []
for text in ("3 * x", "x + x", "x * x", "x.tanh()"):
    grads = []
    for walk in (backward, forgetful_backward):
        x = Scalar(2.0)
        walk(eval(text))
        grads.append(x.grad)
    print(f"{text:9} with +=: {grads[0]:.3f}   with =: {grads[1]:.3f}")
    if grads[0] != grads[1]:
        wrong.append(text)
assert wrong == ["x + x", "x * x"]

# %% tags=["check"] define=["wrong"]
texts = {text.replace(" ", "") for text in wrong}
assert texts <= {"3*x", "x+x", "x*x", "x.tanh()"}, f"`wrong` may hold 3 * x, x + x, x * x, x.tanh(); it holds {wrong}."
assert not texts & {"3*x", "x.tanh()"}, "In 3 * x and x.tanh() x is used once: one slope arrives, and = is enough."
assert texts == {"x+x", "x*x"}, "A function is missing. Where is x used twice?"

# %% [markdown]
# **Exercise 3.** The neuron's inputs have gradients as well: `x1.grad` and `x2.grad`. What do
# they mean? When would you change the *inputs* instead of the weights?

# %% [markdown] tags=["solution"]
# They show how the result changes when an input changes. When the input comes from another neuron,
# that neuron needs this slope to learn: it is the `grad` of its output. So the slopes of the
# inputs carry the message further back, from layer to layer. And when the weights are fixed, the
# slopes show which parts of an input (for example, which points of an image) change the result
# most.

# %% [markdown]
# ## What you have seen
#
# - A **slope** is how fast the result changes when one number changes. The list of all slopes is
#   the **gradient**.
# - A number can **remember its history**: its inputs, and the slope of the step with respect to each input.
# - **Backward** walks through the history from the result to the beginning. Slopes along a path are
#   multiplied (the chain rule); slopes that arrive at the same number are added.
# - rushlight and PyTorch do this with tensors: `requires_grad=True`, `backward()`, `.grad`.
# - **Training** is: compute the cost, walk back, move each weight a little against its slope, repeat.
#
# Next: [2. The chain rule, seen](02_chain_rule.md)
