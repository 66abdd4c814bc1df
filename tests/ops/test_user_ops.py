"""`rushlight.op`: an op in the user's own file."""

import inspect
import math
import pickle
import re

import numpy as np
import pytest

import rushlight as torch
from rushlight.core.table import TABLE
from rushlight.core.tensor import Tensor
from rushlight.ops.composites import offered
from tests.support.paths import ROOT

HALF = 0.5


def halved(x):
    return x * HALF


log_cosh = torch.op(lambda x, /: log(cosh(x)), x=lambda g, x: g * tanh(x))  # noqa: F821

bell = torch.op(
    lambda x, mean, /, width=1.0: exp(-(((x - mean) / width) ** 2) / 2),  # noqa: F821
    x=lambda g, x, mean, width, out: -g * out * (x - mean) / width**2,
    mean=lambda g, x, mean, width, out: g * out * (x - mean) / width**2,
)

# an op, a function and a number of this file
mixed = torch.op(
    lambda a, b, /: log_cosh(a) * halved(b) + math.pi,
    a=lambda g, a, b: g * tanh(a) * halved(b),  # noqa: F821
    b=lambda g, a: g * log_cosh(a) * HALF,
)

log_sum = torch.op(
    lambda x, /, dim=None, keepdim=False: log(sum(exp(x), dim, keepdim)),  # noqa: F821
    x=lambda g, x, out: g * exp(x - out),  # noqa: F821
    family="reduction",
)

sheared = torch.op(lambda x, y, /: x @ y + 1, x=lambda g, y: g @ y.mT, y=lambda g, x: x.mT @ g, family="general")

stable = torch.op(
    lambda x, /: log(cosh(x)),  # noqa: F821
    x=lambda g, x: g * tanh(x),  # noqa: F821
    kernel=lambda x: np.logaddexp(x, -x) - x.dtype.type(math.log(2)),
)


def leaf(*shape, dtype=torch.float64):
    return torch.randn(*shape, dtype=dtype, requires_grad=True)


CALLS = {
    "one input": (log_cosh, lambda: (leaf(3, 4),), lambda x: x.cosh().log()),
    "two inputs, broadcast": (bell, lambda: (leaf(3, 4), leaf(4)), lambda x, m: (-(((x - m) / 1.0) ** 2) / 2).exp()),
    "a setting": (
        lambda x, m: bell(x, m, width=2.5),
        lambda: (leaf(4), leaf(3, 1)),
        lambda x, m: (-(((x - m) / 2.5) ** 2) / 2).exp(),
    ),
    "names of the file": (mixed, lambda: (leaf(2, 3), leaf(3)), lambda a, b: a.cosh().log() * b * 0.5 + math.pi),
    "a reduction": (log_sum, lambda: (leaf(3, 4),), lambda x: x.logsumexp((0, 1))),
    "along a dimension": (lambda x: log_sum(x, 1, keepdim=True), lambda: (leaf(3, 4),), lambda x: x.logsumexp(1, True)),
    "a product": (sheared, lambda: (leaf(3, 4), leaf(4, 2)), lambda x, y: x @ y + 1),
    "a kernel": (stable, lambda: (leaf(3),), lambda x: x.cosh().log()),
    "complex": (log_cosh, lambda: (leaf(3, dtype=torch.complex128) / 3,), lambda x: x.cosh().log()),
}


@pytest.fixture(params=CALLS, autouse=False)
def case(request):
    torch.manual_seed(1)
    f, given, of_ops = CALLS[request.param]
    return f, tuple(x.detach().requires_grad_() for x in given()), of_ops


def test_values(case):
    f, given, of_ops = case
    assert torch.allclose(f(*given), of_ops(*given))


def test_derivatives(case):
    f, given, _ = case
    assert torch.autograd.gradcheck(f, given, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(f, given)


def test_third_derivative(case):
    f, given, of_ops = case
    if given[0].is_complex():
        pytest.skip("real numbers")

    def third(function):
        v = function(*given).sum()
        for _ in range(3):
            gs = torch.autograd.grad(v, given, create_graph=True, allow_unused=True, materialize_grads=True)
            v = sum((g**2).sum() for g in gs)
        return v

    assert torch.allclose(third(f), third(of_ops))


def test_vmap(case):
    f, given, _ = case
    if f is sheared:
        pytest.skip("has a rule of its own below")
    batched = [torch.stack([x, 2 * x]).detach() for x in given]
    expected = torch.stack([f(*[x[i] for x in batched]) for i in range(2)])
    assert torch.allclose(torch.vmap(f)(*batched), expected)
    one = torch.vmap(f, (0, *[None] * (len(given) - 1)))(batched[0], *[x[0] for x in batched[1:]])
    assert torch.allclose(one[0], expected[0])


def test_jacobians(case):
    f, given, of_ops = case
    if given[0].is_complex():
        pytest.skip("real numbers")
    given = tuple(x.detach() for x in given)
    for transform in (torch.func.jacrev, torch.func.jacfwd):
        assert torch.allclose(transform(f)(*given), transform(of_ops)(*given))
    ones = tuple(torch.ones_like(x) for x in given)
    for made, expected in zip(torch.func.jvp(f, given, ones), torch.func.jvp(of_ops, given, ones)):
        assert torch.allclose(made, expected)


def test_compile(case):
    f, given, _ = case
    if given[0].is_complex():
        pytest.skip("real numbers")

    def step(*given):
        loss = (f(*given) * 2).sum()
        return loss, torch.autograd.grad(loss, given)

    compiled = torch.compile(step)
    expected, gradients = step(*given)
    for _ in range(3):
        loss, found = compiled(*given)
        assert torch.allclose(loss, expected)
        assert all(map(torch.allclose, found, gradients))


@pytest.mark.parametrize(("f", "fuses"), [(log_cosh, True), (lambda x: bell(x, x, 3.0), True), (stable, False)])
def test_a_formula_fuses_with_its_neighbours(f, fuses):
    pytest.importorskip("llvmlite")
    told = torch.compiler.explain(lambda x: f(x * 3) * 2 + 1, torch.randn(64, 64))
    assert "no graph breaks" in str(told)
    like = torch.compiler.explain(lambda x: (x * 3).tanh() * 2 + 1, torch.randn(64, 64))
    assert (str(told) == str(like)) == fuses


def test_a_module_that_runs_alone_cannot_have_the_kernel():
    pytest.importorskip("llvmlite")
    compiled, x = torch.compile(lambda x: stable(x) * 2), torch.randn(8, 8)
    for _ in range(3):
        compiled(x)
    with pytest.raises(NotImplementedError, match="stable is an op of your file"):
        torch.compiler.source(compiled, full=True)


def test_dtypes():
    assert log_cosh(torch.tensor([1, 2])).dtype is torch.float32
    assert log_cosh(torch.ones(2, dtype=torch.float16)).dtype is torch.float16
    assert log_cosh(torch.ones(2, dtype=torch.bfloat16)).dtype is torch.bfloat16
    assert bell(torch.ones(2), 0.5).dtype is torch.float32
    counted = torch.op(lambda x, y, /: x * y + 1, name="counted", family="elementwise")
    assert counted(torch.tensor([1, 2]), 3).tolist() == [4, 7]
    assert counted(torch.tensor([1, 2]), 3).dtype is torch.int64
    above = torch.op(lambda x, y, /: x * x > y, family="predicate")
    assert above(torch.tensor([1.0, 2.0]), 3).tolist() == [False, True]


def test_out_and_meta():
    out = torch.empty(2)
    assert log_cosh(torch.zeros(2), out=out) is out
    assert out.tolist() == [0, 0]
    assert log_cosh(torch.empty(3, 4, device="meta")).shape == (3, 4)


def test_inputs_may_have_any_name():
    f = torch.op(lambda state, values, /, args=2.0: state * values + args, state=lambda g, values: g * values)
    x = torch.ones(2, requires_grad=True)
    f(x, torch.full((2,), 3.0)).sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_keywords():
    assert torch.equal(bell(mean=torch.zeros(2), x=torch.ones(2)), bell(torch.ones(2), torch.zeros(2)))
    assert str(inspect.signature(bell)) == "(x, mean, width=1.0, *, out=None)"


# -- names -----------------------------------------------------------------------------------------


def test_names_come_from_the_assignment_or_from_name():
    assert log_cosh.__name__ == "log_cosh"
    assert torch.op(lambda x, /: exp(x), name="grown").__name__ == "grown"  # noqa: F821

    def twice(x, /):
        return x + x

    assert torch.op(twice, x=lambda g: g + g).__name__ == "twice"
    assert log_cosh(leaf(1)).grad_fn.name() == "LogCoshBackward0"
    with pytest.raises(TypeError, match="the op has no name"):
        (torch.op(lambda x, /: x + 1))(torch.ones(1))


def test_two_files_may_use_one_name():
    spaces = [{"torch": torch}, {"torch": torch}]
    for space, text in zip(spaces, ("x + x", "x * x")):
        exec(f"same = torch.op(lambda x, /: {text})\nagain = torch.op(lambda x, /: same(x) + 1)", space)
    assert [space["same"](torch.tensor(3.0)).item() for space in spaces] == [6, 9]
    assert [space["again"](torch.tensor(3.0)).item() for space in spaces] == [7, 10]


def test_nothing_public_changes():
    tanh = torch.op(lambda x, /: x * 0 + 7, name="tanh")
    assert tanh(torch.zeros(1)).item() == 7
    assert torch.tanh(torch.zeros(1)).item() == 0
    assert torch.zeros(1, requires_grad=True).tanh().grad_fn.name() == "TanhBackward0"
    assert "log_cosh" not in offered()
    assert not any("log_cosh" in name for name in [*TABLE])
    assert not hasattr(torch, "log_cosh")
    assert not hasattr(Tensor, "log_cosh")
    assert not any("log_cosh" in name for name in dir(torch) + dir(Tensor))


def test_the_file_s_own_op_comes_first():
    space = {"torch": torch}
    exec("exp = torch.op(lambda x, /: x + 1)\nf = torch.op(lambda x, /: exp(x) * 2)", space)
    assert space["f"](torch.tensor(1.0)).item() == 4


def test_imported_functions_are_ops():
    space = {}
    exec(
        "import rushlight\nfrom rushlight import exp, sinh as sh\nf = rushlight.op(lambda x, /: sh(x) + exp(x))", space
    )
    assert space["f"](torch.tensor(0.0)).item() == 1


def test_numbers_of_an_outer_function():
    def scaled(factor):
        return torch.op(lambda x, /: x * factor, x=lambda g: g * factor, name="scaled")

    x = leaf(3)
    two, three = scaled(2.0), scaled(3.0)
    (two(x) + three(x)).sum().backward()
    assert x.grad.tolist() == [5, 5, 5]


def test_pickle():
    assert pickle.loads(pickle.dumps(log_cosh)) is log_cosh


def test_the_programs_of_the_page():
    """docs/add-an-op.md, first part."""
    page = (ROOT / "docs" / "add-an-op.md").read_text().partition("## In rushlight")[0]
    names = {}
    for program in re.findall("```python\n(.*?)```", page, re.DOTALL):
        exec(program, names)
    assert torch.allclose(names["x"].grad, torch.tanh(names["x"]))
    x, y = leaf(3, 4), leaf(4, 2)
    for name in ("log_cosh", "log_sum", "stable"):
        assert torch.autograd.gradcheck(names[name], x)
    assert torch.autograd.gradcheck(names["bell"], (x, leaf(4)))
    assert torch.autograd.gradcheck(names["times"], (x, y))
    assert torch.vmap(names["times"], (None, 0))(x, torch.stack([y, y])).shape == (2, 3, 2)
    assert torch.isfinite(names["stable"](torch.tensor(1000.0)))


# -- pages and texts -------------------------------------------------------------------------------


def test_help():
    text = inspect.getdoc(log_cosh)
    assert text.startswith("out = log(cosh(x))")
    assert "d x: g * tanh(x)" in text
    assert ">>> log_cosh(rushlight.tensor([0.25, 0.5, 0.75]))\ntensor([0.0309, 0.1201, 0.2583])" in text
    assert "out = log_cosh(a) * halved(b) + 3.14" in inspect.getdoc(mixed) or "pi" in inspect.getdoc(mixed)
    assert "user_" not in inspect.getdoc(mixed)


def test_explain():
    w = torch.tensor(0.3, requires_grad=True)
    z = log_cosh(w) * w
    text = str(torch.explain(z, wrt=w))
    assert "log(cosh(w))" in text
    assert "tanh(w)" in text


def test_step_page(tmp_path):
    w = torch.ones(3, requires_grad=True)
    z = log_cosh(w * 2).sum()
    torch.viz.html(z, tmp_path / "page.html", params={"w": w})
    text = (tmp_path / "page.html").read_text()
    assert "LogCosh" in text
    assert "user_log_cosh" not in text


# -- a rule for vmap -------------------------------------------------------------------------------


def test_vmap_rule():
    seen = []

    def rule(info, in_dims, x, y):
        seen.append((info.batch_size, in_dims))
        return times(x, y), 0

    times = torch.op(
        lambda x, y, /: x @ y, x=lambda g, y: g @ y.mT, y=lambda g, x: x.mT @ g, family="general", vmap=rule
    )
    x, y = torch.randn(5, 3, 4), torch.randn(4, 2)
    assert torch.allclose(torch.vmap(times, (0, None))(x, y), x @ y)
    assert seen == [(5, (0, None))]
    assert torch.vmap(torch.func.grad(lambda x: times(x, y).sum()))(x).shape == x.shape


def test_a_word_for_vmap(recwarn):
    times = torch.op(lambda x, y, /: x @ y, family="general", vmap="matrix")
    x, y = torch.randn(5, 3, 4), torch.randn(5, 4, 2)
    assert torch.allclose(torch.vmap(times)(x, y), x @ y)
    assert not recwarn.list


def test_a_vmap_rule_that_returns_one_value():
    times = torch.op(lambda x, /: x * 2, family="general", vmap=lambda info, dims, x: x)
    with pytest.raises(RuntimeError, match="times: the vmap rule must return two values"):
        torch.vmap(times)(torch.ones(2, 3))


# -- errors ----------------------------------------------------------------------------------------

WRONG = {
    "an unknown name": (
        "torch.op(lambda x, /: sinhh(x), name='f')",
        NameError,
        "f: the formula names 'sinhh', which is not an op; did you mean sinh",
    ),
    "an unknown name in a rule": (
        "torch.op(lambda x, /: sinh(x), name='f', x=lambda g, x: g * coshh(x))",
        NameError,
        "'coshh', which is not an op; did you mean cosh",
    ),
    "a module": ("torch.op(lambda x, /: torch.sinh(x), name='f')", TypeError, "write log(x), not torch.log(x)"),
    "a method": (
        "torch.op(lambda x, /: log(x.exp()), name='f')(torch.ones(2))",
        TypeError,
        "write exp(x), not x.exp()",
    ),
    "a tensor": ("torch.op(lambda x, /: x + t, name='f')", TypeError, "make it an input: lambda x, t, /: ..."),
    "a rule of no input": (
        "torch.op(lambda x, /: sinh(x), name='f', y=lambda g: g)",
        TypeError,
        "f: 'y' is no input and no option",
    ),
    "a wrong parameter of a rule": (
        "torch.op(lambda x, /: sinh(x), name='f', x=lambda g, xx: g)",
        TypeError,
        "the rule of 'x' takes 'xx', which is no input, setting or output",
    ),
    "no slash": ("torch.op(lambda x, y: x + y, name='f')", TypeError, "put a slash after the tensors: lambda x, y, /"),
    "no gradient": ("torch.op(lambda x, /: sign(x), name='f', x=lambda g: 0)", TypeError, "x=lambda g: g * 0"),
    "no function": ("torch.op(3, name='f')", TypeError, "the formula must be a function"),
    "a family": ("torch.op(lambda x, /: x, name='f', family='reductoin')", TypeError, "did you mean reduction"),
    "a reduction": (
        "torch.op(lambda x, /, dim: x, name='f', family='reduction')",
        TypeError,
        "a reduction has the parameters x, dim and keepdim, not x, dim",
    ),
    "a word of the options": ("torch.op(lambda doc, /: doc, name='f')", TypeError, "cannot be called 'doc'"),
    "a name that is none": ("torch.op(lambda x, /: x, name='a b')", TypeError, "must be an identifier"),
    "a shape": ("bell(torch.ones(3), torch.ones(4))", RuntimeError, "The size of tensor a (3) must match"),
    "a keyword": ("bell(torch.ones(3), 0.0, widht=1)", TypeError, "did you mean width"),
    "an argument too few": ("bell(torch.ones(3))", TypeError, "bell() missing required argument: mean"),
    "an argument too many": ("log_cosh(torch.ones(3), 2)", TypeError, "takes at most 1 arguments, but 2 were given"),
    "no tensor": ("log_cosh('a')", TypeError, "log_cosh(): argument must be Tensor, not str"),
    "a rule that fails": (
        "wrong_product(v, torch.ones(4, 2)).sum().backward()",
        RuntimeError,
        "wrong_product: the rule of 'x' failed: matmul",
    ),
    "a gradient of a wrong shape": (
        "turned(v).sum().backward()",
        RuntimeError,
        "the rule of 'x' returned a gradient of shape (4, 3), but 'x' has shape (3, 4)",
    ),
    "the same, recorded": (
        "torch.autograd.grad(turned(v).sum(), v, create_graph=True)",
        RuntimeError,
        "the rule of 'x' returned a gradient of shape (4, 3)",
    ),
}
wrong_product = torch.op(lambda x, y, /: x @ y, x=lambda g, y: g @ y, family="general")
turned = torch.op(lambda x, /: x * 2, x=lambda g: g.mT * 2)


@pytest.mark.parametrize("name", WRONG)
def test_errors(name):
    text, kind, message = WRONG[name]
    names = {"torch": torch, "bell": bell, "log_cosh": log_cosh, "wrong_product": wrong_product, "turned": turned}
    names |= {"t": torch.ones(1), "v": torch.ones(3, 4, requires_grad=True)}
    with pytest.raises(kind, match=re.escape(message)) as caught:
        exec(text, names)
    assert "\n  at: <string>:1" in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_setting_is_a_number():
    scaled = torch.op(lambda x, /, steep=1.0: x * steep, x=lambda g, steep: g * steep, name="scaled")
    assert scaled(torch.ones(2), torch.tensor(3.0)).tolist() == [3.0, 3.0]
    for steep in (torch.ones(3), torch.ones(1, requires_grad=True)):
        with pytest.raises(TypeError, match="argument 'steep' must be Number, not Tensor"):
            scaled(torch.ones(3), steep)
    with pytest.raises(RuntimeError, match=r"calling \.item\(\) on a Tensor"):
        torch.func.vmap(scaled)(torch.ones(3, 2), torch.ones(3))
