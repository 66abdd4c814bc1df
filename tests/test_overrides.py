"""Classes of tensors that users make: what functions give, and `__torch_function__`. The first class changes functions
for good, so the programs run in processes of their own; what they print is compared with what torch prints."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.support.paths import ROOT

KEPT = """
class Mine(torch.Tensor):
    pass
a = torch.arange(4.).view(2, 2).as_subclass(Mine)
for made in (a + 1, 1 - a, torch.ones(2, 2) * a, a @ a, a.sum(0, keepdim=True), torch.stack([a, a]), torch.relu(a), a[0],
             a.T, F.linear(a, a), torch.linalg.norm(a), torch.fft.fft(a), -a, a > 1, a.clone(), a.to(torch.float64),
             a.detach(), a.new_zeros(2), torch.zeros_like(a), torch.where(a > 0, a, 0.), torch.nn.ReLU()(a),
             torch.nn.Linear(2, 2)(a)):
    print(type(made).__name__, tuple(made.shape), made.dtype)
print([type(p).__name__ for p in a.max(0)], type(a.max(0)).__name__.split("_")[-1][:3], [type(p).__name__ for p in a])
print(type(a.numpy()).__name__, a.tolist(), a.sum().item(), len(a), bool(a[1, 1]), 3. in a, isinstance(a + 1, torch.Tensor))
print(a)
w = torch.ones(2, 2, requires_grad=True)
b = w.as_subclass(Mine)
(b * a).sum().backward()
print(w.grad.tolist(), type(w.grad).__name__)
a += 1
print(type(a).__name__, a.tolist())
p = torch.nn.Parameter(torch.ones(2))
print(type(p + 1).__name__, type(torch.relu(p)).__name__)
class Own(torch.nn.Parameter):
    pass
print(type(Own(torch.ones(2)) * 2).__name__)
class Child(Mine):
    pass
c = torch.ones(2, 2).as_subclass(Child)
print(type(a + c).__name__, type(c + a).__name__, type(c.t()).__name__)
print(len({a, c}), a in [a])

print(type(torch.ones(2) + 1).__name__)
"""

ASKED = """
calls = []
class Seen(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        calls.append((func.__name__, [t.__name__ for t in types]))
        return super().__torch_function__(func, types, args, kwargs or {})
a = torch.arange(4.).view(2, 2).as_subclass(Seen)
calls.clear()
for act in (lambda: a + 1, lambda: 1 + a, lambda: torch.add(torch.ones(2, 2), a), lambda: a @ a, lambda: F.softmax(a, dim=0),
            lambda: torch.cat([a, a]), lambda: a[0], lambda: a.view(-1), lambda: torch.mean(input=a), lambda: a.add_(1),
            lambda: a.T, lambda: len(a), lambda: torch.exp(a), lambda: a.sum().item()):
    act()
    print(calls)
    calls.clear()

HANDLED = {}
def implements(f):
    def decorate(own):
        HANDLED[f] = own
        return own
    return decorate

class Units(torch.Tensor):
    unit = ""
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func in HANDLED:
            return HANDLED[func](*args, **(kwargs or {}))
        if func is torch.Tensor.mul:
            r = super().__torch_function__(func, types, args, kwargs)
            r.unit = "*".join(getattr(x, "unit", "") for x in args)
            return r
        if func is torch.exp:
            return NotImplemented
        return super().__torch_function__(func, types, args, kwargs)

@implements(torch.sqrt)
def root(x):
    return "the root of " + x.unit

x = torch.ones(2).as_subclass(Units)
x.unit = "m"
print((x * x).unit, torch.sqrt(x), type(x + 1).__name__)
try:
    torch.exp(x)
except TypeError as error:
    print("TypeError", "NotImplemented" in str(error))
with torch._C.DisableTorchFunctionSubclass():
    print(type(x + 1).__name__)
from torch.overrides import has_torch_function, has_torch_function_unary, is_tensor_like, handle_torch_function
print(has_torch_function((x,)), has_torch_function_unary(x), has_torch_function((torch.ones(1),)), is_tensor_like(x))
def double(t):
    if has_torch_function_unary(t):
        return handle_torch_function(double, (t,), t)
    return t * 2
print(type(double(x)).__name__, double(torch.ones(1)).tolist())

class Quiet(torch.Tensor):
    __torch_function__ = torch._C._disabled_torch_function_impl
q = torch.ones(2).as_subclass(Quiet)
print(type(q + 1).__name__, type(torch.relu(q)).__name__)

class Duck:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return "quack", func.__name__
print(torch.mean(Duck()), torch.add(torch.ones(1), Duck()))
"""

KNOWN = """
import functools, inspect, pickle
from torch import add, exp, softmax, stack
from torch.nn.functional import linear, cross_entropy, one_hot
HANDLED, calls = {torch.mean: lambda x, *args, **kwargs: ("the mean of", type(x).__name__)}, []
later, kept = functools.partial(exp), {"add": add}
class Seen(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func in HANDLED:
            return HANDLED[func](*args, **(kwargs or {}))
        if func is not torch.Tensor.as_subclass:
            calls.append(func)
        return super().__torch_function__(func, types, args, kwargs or {})
a, b = torch.rand(2, 2).as_subclass(Seen), torch.ones(2, 2)
calls.clear()
for act, func in ((lambda: add(b, a), torch.add), (lambda: add(a, other=b, alpha=2), torch.add),
                  (lambda: later(a), torch.exp), (lambda: kept["add"](a, a), torch.add),
                  (lambda: softmax(a, 0), torch.softmax), (lambda: linear(b, a), linear),
                  (lambda: stack([b, a]), torch.stack), (lambda: cross_entropy(a, torch.tensor([0, 1])), cross_entropy),
                  (lambda: torch.nn.Linear(2, 2)(a), F.linear), (lambda: torch.std(a, dim=0), torch.std),
                  (lambda: torch.where(b > 0, a, b), torch.where), (lambda: torch.zeros_like(a), torch.zeros_like),
                  (lambda: a.exp(), torch.Tensor.exp), (lambda: torch.einsum("ij,jk", a, b), torch.einsum)):
    made = act()
    print(type(made).__name__, [f.__name__ for f in calls], [f is func for f in calls])
    calls.clear()
print(torch.mean(a), torch.mean(a, dim=0), type(a.mean()).__name__, torch.Tensor.exp is torch.exp)
print(add is torch.add, pickle.loads(pickle.dumps(add)) is add, type(add(b, b)).__name__, add(b, b, alpha=2).tolist())
x = torch.ones(2, requires_grad=True)
exp(softmax(x, 0)).sum().backward()
print(x.grad.tolist(), exp(b).grad_fn, exp(x).grad_fn.name(), len(calls))
"""

MODES = """
from torch import add
from torch.overrides import TorchFunctionMode
seen, b, layer = [], torch.ones(2, 2), torch.nn.Linear(2, 2)
class Log(TorchFunctionMode):
    def __init__(self, name):
        self.name = name
    def __torch_function__(self, func, types, args=(), kwargs=None):
        seen.append((self.name, func.__name__, [t.__name__ for t in types if t is not torch.Tensor]))
        return func(*args, **(kwargs or {}))
class Mine(torch.Tensor):
    pass
a = b.as_subclass(Mine)
def act():
    return [add(b, b), b + 1, 1 - b, b.sum(), F.softmax(b, dim=0), torch.ones(2), (b @ b).relu(), b.view(-1), layer(b),
            torch.cat([b, b]), b[0], b > 1, a * 2, torch.exp(a), b.add_(1), torch.zeros_like(b), -b, b.clone()]
with Log("one") as log:
    made = act()
print(*seen, sep="\\n")
print([type(t).__name__ for t in made], log.name)
seen.clear()
act()
with Log("outer"), Log("inner"):
    torch.exp(a)
    b.cos()
print(seen)
class Other(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.add:
            return "added"
        if func is torch.Tensor.sub:
            raise KeyError("sub")
        return NotImplemented if func is torch.sin else func(*args, **(kwargs or {}))
with Other():
    print(add(b, b), torch.mul(b, 2).tolist())
    for act in (lambda: b - 1, lambda: torch.sin(b)):
        try:
            act()
        except Exception as error:
            print(type(error).__name__)
    with Log("inside"):
        print(add(b, b))
class Unit:
    def __radd__(self, other):
        return "theirs"
with Log("three"):
    print(b + Unit())
w = torch.ones(2, requires_grad=True)
seen.clear()
with Log("four"):
    (w * w).sum().backward()
print(seen, w.grad.tolist(), add(b, b).tolist(), (b + 1).tolist())
"""

MADE = """
class Named(torch.Tensor):
    def __new__(cls, data, label="none"):
        made = torch.as_tensor(data).as_subclass(cls)
        made.label = label
        return made
class Plain(torch.Tensor):
    @staticmethod
    def __new__(cls, data, *more):
        return super().__new__(cls, data)
class Same(torch.Tensor):
    @staticmethod
    def __new__(cls, data):
        return torch.Tensor._make_subclass(cls, data, True)
x = torch.ones(2, requires_grad=True)
for made in (Named(x * 2, "two"), Plain([1.0, 2.0], 3), Same(x)):
    print(made, type(made).__name__, made.sum().item())
named = Named(x * 2, "two")
named.sum().backward()
print(named.label, x.grad.tolist(), Same(x).data_ptr() == x.data_ptr())
try:
    x.as_subclass(int)
except TypeError as error:
    print(str(error).splitlines()[0])
"""

DUCKS = """
print("nobody asks yet", torch.isclose(torch.ones(1), torch.ones(1)))
class Duck:                                   # no tensor is of a class of the user's in this program
    known = torch.mul, torch.Tensor.mul, torch.Tensor.matmul
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func, [t.__name__ for t in types]
d, x = Duck(), torch.ones(2)
for f, args in ((torch.clone, (d,)), (torch.mul, (d, x)), (torch.sub, (x, d)), (torch.isclose, (d, x)),
                (torch.stack, ([x, d],)), (torch.linalg.eigh, (d,)), (F.softmax, (d, -1)), (F.linear, (x, d)),
                (torch.diagonal, (d,))):
    told, types = f(*args)
    print(told is f, types)
print([told(d)[0].__name__ for told in (x.matmul, x.mm, x.add, x.mul, x.__matmul__, x.__add__, x.__lt__, x.expand_as,
                                        x.copy_, x.equal)])
print(Duck.known == (torch.mul(x, d)[0], x.mul(d)[0], x.matmul(d)[0]))
print((x == d)[0].__name__, (x + d)[0].__name__, x[d][0].__name__, x + x, x == x, x.add(1))
"""

PARAMETERS = """
class Own(torch.Tensor):
    pass
class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.own, self.plain = torch.nn.Parameter(torch.ones(2, 3).as_subclass(Own)), torch.nn.Parameter(torch.ones(3))
layer = Layer()
(layer.own * layer.plain).sum().backward()
torch.optim.SGD(layer.parameters(), 0.5).step()
layer.double().load_state_dict(layer.state_dict())
own, shared = layer.own, torch.ones(2).as_subclass(Own)
fixed = torch.nn.Parameter(shared, False)
print([type(p).__name__ for p in layer.parameters()], isinstance(own, torch.nn.Parameter), own.requires_grad)
print(own.detach().as_subclass(torch.Tensor), type(torch.nn.Parameter(own)).__name__, fixed.requires_grad)
print(fixed.data_ptr() == shared.data_ptr(), isinstance(shared, torch.nn.Parameter))
for wrong in ((torch.ones(2, 2), None), ([1.0], torch.ones(2))):
    try:
        torch.matmul(*wrong)
    except TypeError as error:
        print("TypeError")
"""

BY_HAND = """
from torch import fx, softmax
graph = fx.Graph()
tracer = fx.proxy.GraphAppendingTracer(graph)
x, w = fx.Proxy(graph.placeholder("x", torch.Tensor), tracer=tracer), fx.Proxy(graph.get_attr("w"), tracer=tracer)
y = torch.einsum("ij,kj->ik", x, w)
z = torch.cat([y.relu(), torch.relu(y) * 2], dim=-1).reshape(x.shape[0], -1) + F.gelu(y).sum()
graph.output(softmax(z, -1).node, torch.Tensor)
home = torch.nn.Module()
home.register_buffer("w", torch.arange(6.0).view(2, 3))
module = fx.GraphModule(home, graph)
print(module(torch.arange(12.0).view(4, 3) / 10))
print([(n.op, n.target if isinstance(n.target, str) else n.target.__name__) for n in module.graph.nodes])
short = fx.Graph()
p = fx.Proxy(short.placeholder("x"))
short.output((p + 1).node)
print(fx.GraphModule(torch.nn.Module(), short)(torch.ones(2)), torch.jit.Error.__mro__[1].__name__)
sure = fx.Graph()
q = fx.Proxy(sure.placeholder("x"), fx.proxy.GraphAppendingTracer(sure))
torch._assert(q.shape[-1] == 2, "two columns")
sure.output((q + 1).node)
for n in (2, 3):
    try:
        print(fx.GraphModule(torch.nn.Module(), sure)(torch.ones(n)))
    except AssertionError as error:
        print(str(error).splitlines()[0])
"""


# a parameter that keeps its gradient in another, as in hypll: `grad` is read, set and deleted there
GRADIENTS = """
class Wrapped(torch.nn.Parameter):
    def __new__(cls, inner):
        return super().__new__(cls)
    def __init__(self, inner):
        self.inner = torch.nn.Parameter(inner)
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func(*[a.inner if isinstance(a, Wrapped) else a for a in args], **(kwargs or {}))
p, layer = Wrapped(torch.ones(3)), torch.nn.Module()
layer.p = p
print(p.grad)
for forget in (torch.optim.SGD([p], 0.1).zero_grad, layer.zero_grad):
    (p.inner * 2).sum().backward()
    print(p.grad)
    forget(set_to_none=False)
    print(p.inner.grad)
    forget()
    print(p.inner.grad)
p.grad = torch.full((3,), 5.0)
print(p.inner.grad)
del p.grad
print(p.inner.grad)
"""


def printed(library, text):
    """What a program prints under torch or rushlight."""
    start = "" if library == "torch" else "import rushlight.compat\nrushlight.compat.install()\n"
    start += "import torch, torch.nn.functional as F, torch.overrides\n"
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", start + text],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert not run.returncode, run.stderr
    return run.stdout


@pytest.mark.parametrize(
    "program", ["KEPT", "ASKED", "KNOWN", "MODES", "MADE", "DUCKS", "PARAMETERS", "BY_HAND", "GRADIENTS"]
)
def test_classes_of_users(oracle, program):
    text = globals()[program]
    expected = oracle(lambda torch: printed("torch", text))
    assert printed("rushlight", text).splitlines() == expected.splitlines()


def test_without_such_classes_nothing_is_replaced():
    assert (
        printed(
            "rushlight",
            """
class Plain(torch.nn.Parameter):
    pass
class Other:
    pass
print(hasattr(torch.add, "__wrapped__"), len(__import__("rushlight.ops.tensor.torch_function").ops.tensor.torch_function.gated_classes), torch.Tensor.__mro__[0].__name__)
""",
        )
        == "False 0 Tensor\n"
    )


def test_compiled_functions_leave_such_classes_alone():
    assert (
        printed(
            "rushlight",
            """
class Mine(torch.Tensor):
    pass
from rushlight.compile import compile, programs
f = compile(lambda x: (x * 2).sin() + 1, backend="numpy")
for _ in range(4):
    print(type(f(torch.ones(3).as_subclass(Mine))).__name__, type(f(torch.ones(3))).__name__)
print(len(programs(f)))
""",
        )
        == "Mine Tensor\n" * 4 + "1\n"
    )


PATCHED = """
import rushlight as torch
torch.Tensor.other = lambda self, x: 1
torch.nn.functional.extra = lambda x, y: 2

def refusing():
    class Refusing(torch.Tensor):
        @classmethod
        def __torch_function__(cls, f, types, args=(), kwargs=None):
            if not all(issubclass(cls, t) for t in types): return NotImplemented
            return super().__torch_function__(f, types, args, kwargs or {})
    return torch.ones(2).as_subclass(Refusing)

a, b = refusing(), refusing()
print(a.other(b), torch.nn.functional.extra(a, b))
try:
    a.add(b)
except TypeError:
    print("refused")
"""


def test_functions_that_a_program_puts_on_tensor_have_no_gate():
    done = subprocess.run([sys.executable, "-c", PATCHED], capture_output=True, text=True)
    assert done.stdout.split() == ["1", "2", "refused"], done.stderr
