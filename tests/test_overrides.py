"""Classes of tensors that users make: what functions give, and `__torch_function__`. The first class changes the namespaces
for good, so the programs run in processes of their own; what they print is compared with what torch prints."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

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


def printed(library, text):
    """What a program prints under torch or rushlight."""
    start = ("import torch, torch.nn.functional as F, torch.overrides\n" if library == "torch" else
             "import sys, rushlight as torch, rushlight.nn.functional as F, rushlight.overrides\n"
             "sys.modules['torch'], sys.modules['torch.overrides'] = torch, torch.overrides\n")
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", start + text], capture_output=True, text=True, check=False,
                         env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert not run.returncode, run.stderr
    return run.stdout


@pytest.mark.parametrize("program", ["KEPT", "ASKED"])
def test_classes_of_users(oracle, program):
    text = globals()[program]
    expected = oracle(lambda torch: printed("torch", text))
    assert printed("rushlight", text).splitlines() == expected.splitlines()


def test_without_such_classes_nothing_is_replaced():
    assert printed("rushlight", """
class Plain(torch.nn.Parameter):
    pass
print(hasattr(torch.add, "__wrapped__"), len(torch.overrides.made), torch.Tensor.__mro__[0].__name__)
""") == "False 0 Tensor\n"


def test_compiled_functions_leave_such_classes_alone():
    assert printed("rushlight", """
class Mine(torch.Tensor):
    pass
from rushlight.compile import compile, programs
f = compile(lambda x: (x * 2).sin() + 1, backend="numpy")
for _ in range(4):
    print(type(f(torch.ones(3).as_subclass(Mine))).__name__, type(f(torch.ones(3))).__name__)
print(len(programs(f)))
""") == "Mine Tensor\n" * 4 + "1\n"
