# %% [markdown]
# # 5. Your own Function
#
# **At the end of this lesson you know** what `grad_fn`, `next_functions`, `AccumulateGrad` and
# `save_for_backward` are, and you can give rushlight a new operation: its forward part and its backward
# part.
#
# **Time:** 30 minutes. **You need:** lessons 1 to 4.

# %% [markdown]
# ## The graph without a picture
#
# The pictures of lesson 2 are made from objects that you can look at. Each result has a `grad_fn`: the
# **node** of its step. Each node has `next_functions`: the nodes to which it sends slopes.

# %%
import rushlight as torch

x = torch.tensor(3.0, requires_grad=True)
y = torch.tensor(4.0, requires_grad=True)
z = x * y + x

print("z.grad_fn:              ", z.grad_fn.name())
for node, _ in z.grad_fn.next_functions:
    print("  sends a slope to:     ", node.name())

product = z.grad_fn.next_functions[0][0]
for node, _ in product.next_functions:
    print("    which sends one to: ", node.name())

# %% [markdown]
# (In each pair, the second entry is the number of the node's *output*. Nearly all steps have only one
# output, so it is 0.)
#
# It is a chain of objects, as in lesson 1, where a `Scalar` refers to its inputs. There is one
# difference. Our `Scalar` held value and history in one object. Here they are separate: the
# tensor holds the numbers, the node holds the history. So a tensor that requires no gradient
# carries no history at all.
#
# Where does the chain end? At `AccumulateGrad`. This node belongs to a leaf. It does not send slopes
# any further: it **adds** the arriving slope to `.grad` of its leaf. Its field `variable` is that leaf.

# %%
accumulate = product.next_functions[0][0]
print(accumulate.name(), "has", len(accumulate.next_functions), "next functions")
assert accumulate.variable is x
# there is one for each leaf, however often the leaf is used
assert z.grad_fn.next_functions[1][0] is accumulate
print("its leaf is x:", accumulate.variable)

# %% [markdown]
# We can do the work of backward by hand. A node can be *called* with the slope that arrives, and it
# returns the slopes that it sends.

# %%
sent = z.grad_fn(torch.tensor(1.0))  # the addition: sends the slope on, to both
print("the addition sends ", [slope.item() for slope in sent])
sent = product(sent[0])  # the product: y to x, and x to y
print("the product sends  ", [slope.item() for slope in sent])
print("so x receives", 4.0 + 1.0, "and y receives", 3.0)

z.backward()
print("backward says:", x.grad.item(), "and", y.grad.item())
assert (x.grad, y.grad) == (5, 3)

# %% [markdown]
# ## A new operation
#
# Why write your own operation? There are three good reasons:
#
# 1. You call a program that rushlight cannot record (a C library, a simulation), and you know its
#    slope.
# 2. The recorded steps are correct, but slow or not exact.
# 3. You want *another* slope than the true one. This sounds strange, but we will need it below.
#
# You write a class with two methods. `forward` computes the result. `backward` gets the slope that
# arrives and returns the slopes to send, **one for each input**, in the same order.
#
# `ctx` (short for *context*) passes values from forward to backward: `ctx.save_for_backward(...)`
# in forward, `ctx.saved_tensors` in backward. Our first operation is the square:


# %%
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad  # the slope of this step, times the slope that arrives


x = torch.tensor(3.0, requires_grad=True)
y = Square.apply(x)
print(y)
y.backward()
print(x.grad)
assert x.grad == 6

# %% [markdown]
# Three remarks:
#
# - You call `Square.apply(x)`, not `Square.forward(x)`. `apply` runs forward and makes the node.
# - `backward` multiplies with `grad`. Without this factor the gradient is wrong as soon as
#   another step follows.
# - Use `save_for_backward`, not `ctx.x = x`. The saved tensors are freed after backward. And
#   rushlight checks that they have not been written to since (lesson 4).

# %% [markdown]
# ## Is it right?
#
# A wrong backward gives no error, only a network that learns badly. So we check it with the method of
# lesson 1: try a small change. `torch.autograd.gradcheck` does this for each number of each input. It
# needs 64-bit numbers, because the small changes need many digits.


# %%
class WrongSquare(Square):
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return x * grad  # the 2 is missing


numbers = torch.randn(5, dtype=torch.float64, requires_grad=True)
print("Square:     ", torch.autograd.gradcheck(Square.apply, numbers))
try:
    torch.autograd.gradcheck(WrongSquare.apply, numbers)
except RuntimeError as error:
    print("WrongSquare:", str(error).splitlines()[0].rstrip(","))
    assert "Jacobian mismatch" in str(error)

# %% [markdown]
# ## Two inputs and a constant
#
# The next operation is `a * x + y` with a plain number `a`. It has three inputs, so backward returns
# three things. For the plain number it returns `None`: no gradient.
#
# `ctx.needs_input_grad` marks the inputs that need a slope. So backward can skip the others.


# %%
class ScaledSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, x, y):
        ctx.a = a  # a plain number, no tensor: as a field
        return a * x + y

    @staticmethod
    def backward(ctx, grad):
        to_x = ctx.a * grad if ctx.needs_input_grad[1] else None
        to_y = grad if ctx.needs_input_grad[2] else None
        return None, to_x, to_y


x = torch.ones(2, requires_grad=True)
y = torch.ones(2)  # requires no gradient
result = ScaledSum.apply(5.0, x, y)
print(result.grad_fn.next_functions)
result.sum().backward()
print(x.grad, y.grad)
assert x.grad.tolist() == [5, 5] and y.grad is None

# %% [markdown]
# `next_functions` has one entry for each input *tensor*. The entry of `y` is empty (`None`),
# because `y` needs no slope.

# %% [markdown]
# ## Reason 2: more exact
#
# The function `log(1 + exp(x))` (it is called *softplus*) is written in one line. For a large `x` this
# line fails: `exp(200)` is larger than the largest 32-bit number, so it becomes infinite.

# %%
x = torch.tensor([-2.0, 1.0, 200.0], requires_grad=True)
plain = (1 + x.exp()).log()
print(plain)
print(torch.autograd.grad(plain.sum(), x)[0])

# %% [markdown]
# Infinite, and `nan` (not a number) for the gradient. One such `nan` destroys all weights in the next
# step. With our own function, forward uses a form that stays exact, and backward uses the known slope:
# it is `sigmoid(x)`.


# %%
class Softplus(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        # exp of a number that is never positive
        return x.clamp(min=0) + (-x.abs()).exp().log1p()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x.sigmoid()


ours = Softplus.apply(x)
print(ours)
(gradient,) = torch.autograd.grad(ours.sum(), x)
print(gradient)
assert torch.isfinite(gradient).all()
assert torch.allclose(ours, torch.nn.functional.softplus(x))  # rushlight has it, too

# %% [markdown]
# ## Reason 3: another slope
#
# `round` has steps: between them it is flat. Its slope is 0 everywhere except at the steps, where
# no slope exists. A network with `round` inside cannot learn: every slope that goes through it
# becomes 0.
#
# A well-known trick pretends in backward that `round` is not there. It passes the slope straight
# through. Networks with few bits per number are trained in this way.


# %%
class RoundStraightThrough(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, grad):
        return grad


def find(rounding):
    """Looks for the whole number closest to 7.3, from 0.4."""
    guess = torch.tensor(0.4, requires_grad=True)
    path = []
    for _ in range(40):
        guess.grad = None
        (rounding(guess) - 7.3).square().backward()
        with torch.no_grad():
            guess -= 0.05 * guess.grad
        path.append(guess.item())
    return path


with_zero_slope = find(torch.round)
straight_through = find(RoundStraightThrough.apply)
print("round:           ", round(with_zero_slope[-1], 2))
print("straight through:", round(straight_through[-1], 2))
assert (
    with_zero_slope[-1] == with_zero_slope[0]
    and abs(straight_through[-1] - 7.3) < 0.6
)

# %% alt="With round the guess stays at 0.4; with the straight-through slope it climbs and stays close to 7.3"
import matplotlib.pyplot as plt

plt.plot(with_zero_slope, label="slope of round: 0")
plt.plot(straight_through, label="straight through")
plt.axhline(7.3, linewidth=0.5, color="gray")
plt.xlabel("step")
plt.ylabel("guess")
plt.legend()
plt.show()

# %% [markdown]
# ## Exercises
#
# **Exercise 1.** Write `Sine`, with `cos` in backward. Check it with `gradcheck`.


# %% tags=["solution"]
class Sine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x.cos()


assert torch.autograd.gradcheck(Sine.apply, numbers)
print("right")

# %% tags=["check"] define=["Sine"]
x = torch.randn(5, dtype=torch.float64, requires_grad=True)
assert torch.allclose(Sine.apply(x), x.sin()), "Sine.apply(x) should be x.sin()."
(slope,) = torch.autograd.grad(Sine.apply(x), x, torch.full((5,), 3.0, dtype=torch.float64))
assert not torch.allclose(slope, x.cos()), "Backward must multiply with the slope that arrives: grad * x.cos()."
assert torch.allclose(slope, 3 * x.cos()), "The slope of sin(x) is cos(x), times the slope that arrives."


# %% [markdown]
# **Exercise 2.** Write `MatMul` for two matrices: `forward` returns `x @ w`. Lesson 3 had the gradient of
# `w`. What is the gradient of `x`? (Look at the shapes: there is only one way to multiply `grad` and
# `w` that gives the shape of `x`.)


# %% tags=["solution"]
class MatMul(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        return grad @ w.T, x.T @ grad


x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
w = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
assert torch.autograd.gradcheck(MatMul.apply, (x, w))
print("right")

# %% tags=["check"] define=["MatMul"]
x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
w = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
g = torch.randn(4, 2, dtype=torch.float64)
assert torch.allclose(MatMul.apply(x, w), x @ w), "MatMul.apply(x, w) should be x @ w."
slopes = torch.autograd.grad(MatMul.apply(x, w), (x, w), g)
for name, slope, right in zip("xw", slopes, (g @ w.T, x.T @ g)):
    assert torch.allclose(slope, right), (
        f"The gradient of {name} is wrong. Its shape is {tuple(right.shape)}, grad has the shape (4, 2): what must be transposed?"
    )


# %% [markdown]
# **Exercise 3.** Write `ReverseGradient`: forward returns the input unchanged (`x.view_as(x)`), backward
# sends the slope with the opposite sign. What does a network do with its weights below such a step,
# when everything else minimizes the cost?


# %% tags=["solution"]
class ReverseGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -grad


w = torch.tensor(2.0, requires_grad=True)
ReverseGradient.apply(w * 3).backward()
print(w.grad)
assert w.grad == -3
# The weights below it move uphill: they make the cost larger. This is used to make a part of a
# network forget something, for example from which camera an image comes.

# %% tags=["check"] define=["ReverseGradient"]
w = torch.tensor([2.0, -1.0], requires_grad=True)
result = ReverseGradient.apply(w)
assert torch.equal(result, w), "Forward should return the numbers of its input."
result.backward(torch.tensor([1.0, 5.0]))
assert w.grad.tolist() == [-1, -5], f"For the slopes 1 and 5 it sends {w.grad.tolist()}, it should be -1 and -5."

# %% [markdown]
# ## What you have seen
#
# - `grad_fn` is the node of a step. `next_functions` are the nodes that get its slopes.
#   `AccumulateGrad` ends the chain and adds to `.grad` of its leaf.
# - A `Function` has `forward(ctx, ...)` and `backward(ctx, grad)`. Backward returns one slope for each
#   input, and multiplies with the slope that arrives.
# - `ctx.save_for_backward` keeps the values that backward needs.
# - `gradcheck` compares with small changes. Use it for each new function.
#
# Before: [4. Leaves and their gradients](04_leaves.md).
# Next: [6. The order of the engine](06_engine.md)
