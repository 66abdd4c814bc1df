# %% [markdown]
# # 6. The order of the engine
#
# **At the end of this lesson you know** in which order `backward` visits the steps, how to write such an
# engine in 20 lines, what `retain_graph` and `create_graph` do, and how to get second derivatives.
#
# **Time:** 30 minutes. **You need:** lessons 1, 2 and 5.

# %% [markdown]
# ## A wrong order
#
# The part of a library that runs backward is called the **engine**. Remember lesson 2: at each
# value, first add all arriving slopes, then send the sum on. This needs the right order. What
# happens with a wrong one?
#
# Here is a graph with a shortcut. `a` is used by `b`, and `a` is also used by `c`:
#
# ```text
# x → a → b → c       c = b * a
#     └───────↗
# ```

# %%
import rushlight as torch

x = torch.tensor(2.0, requires_grad=True)
a = x * 3
b = a * a
c = b * a
torch.viz.print_graph(c, {"x": x})

# %% [markdown]
# Suppose that the engine goes from `c` to `a` (because `a` is an input of `c`) and sends the slope on to
# `x` at once. Then it visits `b`, and `b` sends another slope to `a`. But `a` has already sent. Either
# the engine forgets the second slope, and the result is wrong. Or it visits `a` again, and everything
# below it again. With many shortcuts it would walk all paths: a billion in the example of lesson 2.
#
# **So `a` must wait until `b` is done.** In general: *a node runs after all nodes that send it
# something*. Such an order is called a **topological order**. You know one from daily life: socks before
# shoes, shirt before jacket. Socks and shirt have no order between them.

# %% [markdown]
# ## How to find the order
#
# One simple way is counting. We walk once through the graph and count for each node how many other
# nodes will send to it. Then we begin with the result. When a node has run, the count of each of its
# receivers goes down by one. A node whose count is 0 is ready.
#
# Slopes that arrive early are kept in the **ledger**, like the ledger of a shop: for each node
# that is not yet ready, it holds the sum of the slopes that have arrived so far.
#
# Here is the whole engine. It works on rushlight's own nodes: it calls a node with the slope that has
# arrived, and gets the slopes to send, as in lesson 5.

# %%
from collections import Counter


def count_senders(start):
    """For each node below `start`: how many slopes will be sent to it."""
    senders = Counter()
    to_visit, seen = [start], {start}
    while to_visit:
        for node, _ in to_visit.pop().next_functions:
            if node is None:  # a constant
                continue
            senders[node] += 1
            if node not in seen:
                seen.add(node)
                to_visit.append(node)
    return senders


def engine(result):
    """The gradients of all leaves below `result`; and prints what happens."""
    senders = count_senders(result.grad_fn)
    ledger = {result.grad_fn: torch.tensor(1.0)}
    ready = [result.grad_fn]
    gradients = {}
    while ready:
        node = ready.pop()
        arrived = ledger.pop(node)
        if node.name().endswith("AccumulateGrad"):
            gradients[node.variable] = arrived
            print(f"{node.name():24} .grad is {arrived.item():g}")
            continue
        sent = node(arrived)
        sent = sent if isinstance(sent, tuple) else (sent,)
        numbers = [s.item() for s in sent if s is not None]
        print(f"{node.name():24} got {arrived.item():g}, sends {numbers}")
        for (receiver, _), slope in zip(node.next_functions, sent):
            if receiver is None:
                continue
            ledger[receiver] = (
                ledger[receiver] + slope if receiver in ledger else slope
            )
            senders[receiver] -= 1
            if senders[receiver] == 0:
                ready.append(receiver)
    return gradients


gradients = engine(c)
print(gradients[x])

# %% [markdown]
# Read the lines. `c = b * a` got 1 and sends `a = 6` to the node of `b` and `b = 36` to the node of `a`.
# The node of `a` does not run yet: one slope is missing. `b = a * a` got 6 and sends 36 and 36, both to
# `a`. Now all three slopes of `a` have arrived: 36 + 36 + 36 = 108. It runs, **once**, and sends 3 · 108 =
# 324.
#
# And rushlight's engine? The same:

# %%
c.backward()
print(x.grad)
assert x.grad == gradients[x] == 324

# %% [markdown]
# ## An even simpler order
#
# There is a trick, and rushlight uses it. A result is always computed *after* its inputs. So if each
# node gets a running number when it is made, then a node has a larger number than all nodes below it.
# **From the largest number to the smallest** is then a right order. No counting is needed.
#
# Our own engine of lesson 1 used a third way: it made a list by visiting inputs first. All three
# orders may differ, but each is topological, so the gradients are the same.

# %% [markdown]
# ## What is kept, and for how long
#
# To run, a node needs numbers of the forward run: a product needs its two factors. They are saved in
# the node. For a network, these saved numbers are most of the memory of a training step.
#
# As soon as a node has run, its numbers are not needed any more, so backward throws them away. This is
# why a second backward is an error (lesson 4). If you need two, pass `retain_graph=True` to the first:

# %%
x = torch.tensor(2.0, requires_grad=True)
y = x * x * x
y.backward(retain_graph=True)
y.backward()  # the second one may free the graph
print(x.grad)
assert x.grad == 24  # 12 + 12

# %% [markdown]
# When do you need this? For example, when two costs share the first part of their graph and you call
# backward for each. But often it is simpler to add the costs and call backward once: the sum has the
# sum of the gradients.

# %%
w = torch.tensor(2.0, requires_grad=True)
shared = w.exp()
# instead of shared.backward(retain_graph=True) and (shared**2).backward()
(shared + shared**2).backward()
print(w.grad)

# %% [markdown]
# ## The slope of a slope
#
# The gradient of `x³` is `3x²`. This is a function, too, and it has a slope: `6x`. It is the **second
# derivative**: it measures how fast the slope changes: whether a valley is narrow or wide.
#
# How can a program find it? Backward is made of multiplications and additions. So backward itself can
# be **recorded**, as any other program, and then we walk back through *that*. You ask for it with
# `create_graph=True`:

# %%
x = torch.tensor(2.0, requires_grad=True)
y = x**3
(first,) = torch.autograd.grad(y, x, create_graph=True)
print("first: ", first)
(second,) = torch.autograd.grad(first, x, create_graph=True)
print("second:", second)
(third,) = torch.autograd.grad(second, x)
print("third: ", third)
assert (first, second, third) == (12, 12, 6)

# %% [markdown]
# The first derivative has a `grad_fn`: it has a history and can be differentiated again. In a picture,
# with a function that has more curves:

# %% alt="The curves of sin(x) times exp(-x/4) and of its first and second derivative"
import matplotlib.pyplot as plt

xs = torch.linspace(0, 12, 200, requires_grad=True)
curve = xs.sin() * (-xs / 4).exp()
(slope,) = torch.autograd.grad(curve.sum(), xs, create_graph=True)
(slope_of_slope,) = torch.autograd.grad(slope.sum(), xs)
for values, label in [
    (curve, "f(x) = sin(x) · exp(-x/4)"),
    (slope, "slope"),
    (slope_of_slope, "slope of the slope"),
]:
    plt.plot(xs.detach(), values.detach(), label=label)
plt.axhline(0, linewidth=0.5, color="gray")
plt.xlabel("x")
plt.legend()
plt.show()

# %% [markdown]
# ## A better step with the second derivative
#
# In lesson 1 we took a step of "a tenth of the slope". Why a tenth? It was a guess. With the second
# derivative there is a better answer, found by Newton: a step of `slope / second derivative`. It jumps
# to the bottom of the parabola that fits best. Let us minimize `exp(x) - 2x`, whose lowest point is at
# `log(2) = 0.693147`.

# %%
import math


def minimize(newton, steps):
    x = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    errors = []
    for _ in range(steps):
        cost = x.exp() - 2 * x
        (slope,) = torch.autograd.grad(cost, x, create_graph=newton)
        step = slope / torch.autograd.grad(slope, x)[0] if newton else 0.1 * slope
        with torch.no_grad():
            x -= step
        errors.append(abs(x.item() - math.log(2)))
    return errors


plain, newton = minimize(False, 6), minimize(True, 6)
print("step  a tenth of the slope   Newton")
for i, (p, n) in enumerate(zip(plain, newton), 1):
    print(f"{i:4}  {p:20.2e}   {n:.2e}")
assert newton[-1] < 1e-10 < plain[-1]

# %% [markdown]
# After 6 steps, Newton's error is below one part in ten billion. Then why does nobody train large networks in this way?
# Because a network with `n` weights has not one second derivative but `n · n` of them (each slope
# with respect to each weight). For a million weights that is a million times a million. Lesson 8
# shows the usual alternatives.

# %% [markdown]
# ## Exercises
#
# **Exercise 1.** Write down, on paper, a right order of the nodes for `d = (x + y) * x`, then
# `e = d * d + x`. Which node must wait for which? Then let `engine` print its order, with `x = 2` and `y = 1`,
# and store what it returns as `found`.

# %% tags=["solution"]
x = torch.tensor(2.0, requires_grad=True)
y = torch.tensor(1.0, requires_grad=True)
d = (x + y) * x
e = d * d + x
found = engine(e)
# The last addition first, then d * d, then the product, then the first addition. The leaf x must wait
# for three nodes: the last addition, the product, and the first addition.
e.backward()
assert x.grad == found[x] and y.grad == found[y]

# %% tags=["check"] define=["found"]
assert isinstance(found, dict), "Store what engine(e) returns: a dictionary from leaves to gradients."
slopes = sorted(float(slope) for slope in found.values())
assert slopes == [24, 61], f"The gradients are {slopes}, not 24 (by y) and 61 (by x), for d = (x + y) * x and e = d * d + x."

# %% [markdown]
# **Exercise 2.** Change the line `node = ready.pop()` to `ready.pop(0)`: the engine takes the *oldest*
# ready node instead of the newest. Do the gradients change? Why (not)?

# %% [markdown] tags=["solution"]
# They do not change. A node that is ready has received everything. The order of ready nodes makes
# no difference to the slopes that they send. (With floating-point numbers, another order of
# *additions* may
# change the last digit.)

# %% [markdown]
# **Exercise 3.** A *gradient penalty*: the cost is `y + (dy/dx)²` with `y = x² + sin(x)`. Find the
# gradient of this cost at `x = 1`, once with `create_graph=True` (`recorded`), once by hand (`by_hand`).

# %% tags=["solution"]
x = torch.tensor(1.0, requires_grad=True)
y = x**2 + x.sin()
(slope,) = torch.autograd.grad(y, x, create_graph=True)
(y + slope**2).backward()
by_hand = (2 + math.cos(1)) + 2 * (2 + math.cos(1)) * (2 - math.sin(1))
recorded = x.grad.item()
print(recorded, by_hand)
assert abs(recorded - by_hand) < 1e-5

# %% tags=["check"] define=["recorded", "by_hand"]
first, second = 2 + math.cos(1), 2 - math.sin(1)  # the first and the second derivative of y at 1
assert abs(float(recorded) - first) > 1e-3, "recorded is the slope of y alone: the penalty is missing, or it was not recorded."
assert abs(float(recorded) - (first + 2 * first * second)) < 1e-3, f"recorded is {float(recorded)}. Use create_graph=True."
assert abs(float(by_hand) - (first + 2 * first * second)) < 1e-3, (
    f"by_hand is {float(by_hand)}. With s = dy/dx, the slope of s² is 2 s times the slope of s."
)

# %% [markdown]
# ## What you have seen
#
# - A node may run when all its slopes have arrived: a **topological order**. The **ledger** holds the
#   sums until then.
# - The engine is a loop of 20 lines. It visits each node once.
# - Backward frees the saved numbers; `retain_graph=True` keeps them.
# - `create_graph=True` records backward itself. So there are derivatives of any order.
#
# Before: [5. Your own Function](05_function.md).
# Next: [7. A neuron, a layer, a network](07_network.md)
