"""Forward mode: tangents are torch's for every op, and go through writes, views, modules, levels and users'
Functions."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from rushlight.func import forward_ad as ours
from rushlight.func.forward_ad import level_of
from tests.support.op_calls import agree, arrays_in, call, check_all, fixed, leaf, varies, weights
from tests.table.samples import NAMES, NOT_IMPLEMENTED, SAMPLES, function_of, is_random
from tests.table.test_ops_like_torch import KNOWN, LOOSE, SEVERAL, UP_TO_SIGN, WRONG_IN_TORCH, refusable, theirs

# -- over the table --------------------------------------------------------------------------------


def tangents(torch, fw, tensor, function, sample, dtype):
    """Of each floating-point result: zeros where it is constant."""
    with fw.dual_level():
        made, _ = call(
            function,
            sample,
            dtype,
            lambda a: fw.make_dual(tensor(a), tensor(weights(a.shape, a.dtype))) if varies(a) else tensor(a),
        )
        smooth = [t for t in arrays_in(made) if t.is_floating_point() or t.is_complex()]
        found = [fw.unpack_dual(t) for t in smooth]
        return [
            torch.zeros_like(t)
            if pair.tangent is None or getattr(pair.tangent, "_is_zerotensor", bool)()
            else pair.tangent.clone()
            for t, pair in zip(smooth, found)
        ]


# Where the derivative is a matter of convention (ties, poles, 0/0), torch's own differ between forward and backward;
# ours are backward's. There, only samples with one derivative are compared.
CONVENTIONS = {"atan2", "div", "divide", "true_divide", "fmax", "logsumexp", "std", "std_mean"}
WRONG_FORWARD = {
    "triangular_solve",  # torch 2.13: not what its solution does when the matrix moves,
    "scatter_reduce",  # zeros for products; see test_tangents_are_differences,
    "linalg_cholesky",
    "linalg_cholesky_ex",
    "cholesky",  # half of a tangent that is not symmetric
    ("silu", "complex128"),
}  # and the conjugate


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize(
    "name", [name for name in KNOWN if name not in SEVERAL | WRONG_IN_TORCH | UP_TO_SIGN | WRONG_FORWARD]
)
def test_tangents_are_torchs(oracle, name, dtype):
    def answers(torch):
        import torch.autograd.forward_ad as fw

        def tensor(a):
            return torch.from_numpy(np.array(a))

        def ask(sample):
            smooth = sample.smooth if dtype == "complex128" or name in CONVENTIONS else sample.slopes
            if not smooth or (name, dtype) in WRONG_FORWARD:
                return "refused"
            found = refusable(tangents, torch, fw, tensor, theirs(torch, name), sample, dtype)
            undefined = name in CONVENTIONS and found != "refused" and any(not t.isfinite().all() for t in found)
            return "refused" if undefined else found

        return [ask(sample) for sample in SAMPLES[name]]

    def check(sample, expected):
        agree(tangents(rushlight, ours, fixed, function_of(name), sample, dtype), expected, "tangents", LOOSE.get(name))

    check_all(zip(SAMPLES[name], oracle(answers)), check)


def difference(function, sample, step=1e-6):
    """(f(x + step t) - f(x - step t)) / 2 step, of each floating-point result."""

    def moved(sign):
        made, _ = call(
            function,
            sample,
            "float64",
            lambda a: fixed(a + sign * step * weights(a.shape, a.dtype)) if varies(a) else fixed(a),
        )
        return [t._array for t in arrays_in(made) if t._array.dtype.kind in "fc"]

    return [(a - b) / (2 * step) for a, b in zip(moved(1), moved(-1))]


def differentiable(function, sample):
    """Which of the floating-point results are: those through which backward goes; none where the op refuses."""
    made = refusable(call, function, sample, "float64", leaf)
    return [] if made == "refused" else [t.requires_grad for t in arrays_in(made[0]) if t._array.dtype.kind in "fc"]


@pytest.mark.parametrize("name", sorted(NOT_IMPLEMENTED))
def test_ops_without_derivative_say_so(name):
    """Where torch's backward is not implemented, forward mode raises too."""
    samples = [sample for sample in SAMPLES[name] if any(differentiable(function_of(name), sample))]
    assert samples
    for sample in samples:
        with pytest.raises(NotImplementedError, match="the derivative for '.*' is not implemented"):
            tangents(rushlight, ours, fixed, function_of(name), sample, "float64")


@pytest.mark.parametrize("name", [name for name in NAMES if not is_random(name) and name not in NOT_IMPLEMENTED])
def test_tangents_are_differences(name):
    """Independent of torch and of the rules; the entries for rules alone too."""
    function = function_of(name)
    for sample in SAMPLES[name]:
        which = differentiable(function, sample) if sample.smooth else []
        if not any(which):
            continue
        found = tangents(rushlight, ours, fixed, function, sample, "float64")
        for t, expected, is_one in zip(found, difference(function, sample), which):
            scale = 1 + np.abs(expected).max(initial=0)
            there = np.isfinite(expected)
            close = np.allclose(t._array[there], expected[there], 1e-5, 1e-7 * scale)
            assert close or not is_one, f"{sample}: {t._array}, not {expected}"


# -- programs --------------------------------------------------------------------------------------


def writes_through_a_view(x):
    y = x * 1
    y[0].mul_(y[1])
    y[:, 1] = y.sum(1)
    return y


def a_view_of_what_is_written(x):
    y = x.clone()
    column = y[:, 1]
    y.exp_()
    return column * 2


def filled(x):
    y = x.clone()
    y[0].zero_()
    return y + y.new_zeros(2, 3).copy_(x)


def turned(x):
    y = x.sin()
    y.t_().unsqueeze_(0)
    y[0, 1].add_(1).mul_(3)
    return y


def an_output_filled(torch):
    def f(x):
        return torch.nn.functional.layer_norm(x @ x.T, (2,)).softmax(0).logsumexp(1)

    return f


PROGRAMS = {
    "writes through a view": lambda torch: writes_through_a_view,
    "a view of what is written": lambda torch: a_view_of_what_is_written,
    "filled": lambda torch: filled,
    "turned": lambda torch: turned,
    "a chain": an_output_filled,
    "split, joined and sorted": lambda torch: lambda x: torch.cat(x.split(1, 1)[::-1], 1).sort(1).values.cumsum(0),
    "indexed": lambda torch: lambda x: x[torch.tensor([1, 0, 1])].index_add(0, torch.tensor([0, 2]), x * x),
    "complex": lambda torch: lambda x: torch.view_as_real(torch.fft.fft(x) * (1 + 2j)).abs(),
    "without gradients": lambda torch: torch.no_grad()(lambda x: x.exp() * x),
    "detached": lambda torch: lambda x: x * x.detach(),
    "a module": lambda torch: recurrent(torch),
}


def recurrent(torch):
    torch.manual_seed(3)
    model = torch.nn.LSTM(3, 2, batch_first=True).double()
    norm = torch.nn.BatchNorm1d(2).double()
    return lambda x: norm(model(x.unsqueeze(0))[0][0])


def point(torch):
    return torch.tensor([[0.3, -1.2, 0.7], [1.5, 0.1, -0.4]], dtype=torch.float64)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(oracle, name):
    def ask(torch):
        import importlib

        fw = importlib.import_module(f"{torch.__name__}.autograd.forward_ad")
        f, x = PROGRAMS[name](torch), point(torch)
        with fw.dual_level():
            y, t = fw.unpack_dual(f(fw.make_dual(x, x.cos())))
        return [y.detach(), t.detach()]

    agree(ask(rushlight), oracle(ask))


def test_a_view_shares_its_base_s_tangent():
    with ours.dual_level():
        x = ours.make_dual(rushlight.zeros(4), rushlight.arange(4.0))
        y = x.view(2, 2)
        y[1] = 5.0
        assert ours.unpack_dual(x).tangent.tolist() == [0, 1, 0, 0]
        assert ours.unpack_dual(y.t()).tangent.tolist() == [[0, 0], [1, 0]]


def test_what_was_dual_is_none_once_the_level_is_closed():
    x, t = rushlight.tensor(2.0), rushlight.tensor(1.0)
    with ours.dual_level():
        y = ours.make_dual(x, t) ** 3
        assert ours.unpack_dual(y).tangent == 12
    assert ours.unpack_dual(y).tangent is None
    assert y.__dict__["_tangents"] == {}
    with ours.dual_level():
        assert ours.unpack_dual(y * 2).tangent is None


def test_a_failure_inside_closes_the_level():
    with pytest.raises(ZeroDivisionError), ours.dual_level():
        raise ZeroDivisionError
    with pytest.raises(RuntimeError, match="no level exists"):
        ours.make_dual(rushlight.ones(1), rushlight.ones(1))


def test_levels_nest():
    """x^3 at 2: the second derivative, and no mixing where an inner function multiplies by an outer variable."""

    def derivative(f, x):
        with ours.dual_level():
            return ours.unpack_dual(f(ours.make_dual(x, rushlight.ones_like(x)))).tangent

    x = rushlight.tensor(2.0)
    assert derivative(lambda x: derivative(lambda y: y**3, x), x) == 12
    assert derivative(lambda x: x * derivative(lambda y: x + y, rushlight.tensor(1.0)), x) == 1
    with ours.dual_level() as outer, ours.dual_level() as inner:
        assert (outer, inner) == (0, 1)
        both = ours.make_dual(ours.make_dual(x, rushlight.tensor(1.0), level=outer), rushlight.tensor(1.0))
        y = both * both
        assert ours.unpack_dual(y, level=outer).tangent == 4
        assert ours.unpack_dual(ours.unpack_dual(y).tangent, level=outer).tangent == 2


def test_backward_and_forward_go_through_one_another():
    x = rushlight.tensor([0.3, 0.7], dtype=rushlight.float64, requires_grad=True)
    v = rushlight.tensor([1.0, 2.0], dtype=rushlight.float64)
    with ours.dual_level():  # backward through a tangent
        t = ours.unpack_dual(ours.make_dual(x, v).tanh()).tangent
    (through,) = rushlight.autograd.grad(t.sum(), x)
    with ours.dual_level():  # tangent of a gradient
        dual = ours.make_dual(x, v)
        (g,) = rushlight.autograd.grad(dual.tanh().sum(), dual)
        along = ours.unpack_dual(g).tangent
        dual.tanh().sum().backward()
    out = x.tanh()
    assert np.allclose(along._array, (-2 * out * (1 - out**2) * v).detach()._array)
    assert np.allclose(through._array, along._array)
    assert np.allclose(x.grad._array, (1 - out**2).detach()._array)


# -- users' Functions ------------------------------------------------------------------------------


def cube_in(torch):
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(x, n):
            return x**3, x > n

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_forward(inputs[0])
            ctx.save_for_backward(inputs[0])
            ctx.mark_non_differentiable(output[1])

        @staticmethod
        def backward(ctx, g, _):
            return 3 * ctx.saved_tensors[0] ** 2 * g, None

        @staticmethod
        def jvp(ctx, t, n):
            assert n is None
            return 3 * ctx.saved_tensors[0] ** 2 * t, None

    return Cube


def test_a_function_with_a_jvp(oracle):
    def ask(torch):
        import importlib

        fw = importlib.import_module(f"{torch.__name__}.autograd.forward_ad")
        with fw.dual_level():
            y, large = cube_in(torch).apply(fw.make_dual(point(torch), point(torch).cos()), 0)
            return [*fw.unpack_dual(y), large]

    agree(ask(rushlight), oracle(ask))


def test_a_function_with_a_jvp_nests():
    Cube = cube_in(rushlight)

    def derivative(f, x):
        with ours.dual_level():
            return ours.unpack_dual(f(ours.make_dual(x, rushlight.ones_like(x)))).tangent

    x = rushlight.tensor(2.0)
    assert derivative(lambda x: derivative(lambda y: Cube.apply(y, 0)[0], x), x) == 12


def broken(torch, answer):
    class Broken(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        jvp = staticmethod(lambda ctx, t: answer) if answer is not None else torch.autograd.Function.jvp

    return Broken.apply


REFUSED = {
    "no level": lambda torch, fw, x: (fw.exit_dual_level(), fw.make_dual(x, x), fw.enter_dual_level()),
    "no level to exit": lambda torch, fw, x: (fw.exit_dual_level(), fw.exit_dual_level()),
    "another level": lambda torch, fw, x: fw.exit_dual_level(level=5),
    "another size": lambda torch, fw, x: fw.make_dual(x, x[0]),
    "integers": lambda torch, fw, x: fw.make_dual(x.long(), x.long()),
    "integers' tangents": lambda torch, fw, x: fw.make_dual(x, x.long()),
    "dual already": lambda torch, fw, x: fw.make_dual(fw.make_dual(x, x), x),
    "a dual tangent": lambda torch, fw, x: fw.make_dual(x, fw.make_dual(x, x)),
    "no jvp": lambda torch, fw, x: broken(torch, None)(fw.make_dual(x, x)),
    "too many tangents": lambda torch, fw, x: broken(torch, (x, x))(fw.make_dual(x, x)),
    "a tangent of another size": lambda torch, fw, x: broken(torch, x[0])(fw.make_dual(x, x)),
    "a number for a tangent": lambda torch, fw, x: broken(torch, 3)(fw.make_dual(x, x)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(oracle, name):
    def ask(torch):
        import importlib

        fw = importlib.import_module(f"{torch.__name__}.autograd.forward_ad")
        fw.enter_dual_level()
        try:
            REFUSED[name](torch, fw, point(torch))
        except Exception as error:
            return [type(error).__name__, str(error).split("\n")[0].split(" Tensor is")[0]]
        finally:
            if fw._current_level >= 0 if hasattr(fw, "_current_level") else level_of(None) is not None:
                fw.exit_dual_level()
        return ["nothing", ""]

    kind, words = ask(rushlight)
    expected, text = oracle(ask)
    assert kind == expected
    assert text in words


def test_refusing_hooks_on_saved_tensors_silences_nobody(oracle):
    """`disable_saved_tensors_hooks` inside a dual level, inside and around hooks, and twice."""

    def ask(torch):
        import importlib

        fw, graph = importlib.import_module(f"{torch.__name__}.autograd.forward_ad"), torch.autograd.graph
        packed = []

        def hooks():
            return graph.saved_tensors_hooks(lambda t: packed.append(1) or t, lambda t: t)

        def refused(outer, inner):
            try:
                with outer(), inner():
                    return "both"
            except RuntimeError as error:
                return str(error)

        def one():
            return graph.disable_saved_tensors_hooks("one")

        def two():
            return graph.disable_saved_tensors_hooks("two")

        with fw.dual_level():
            x = fw.make_dual(point(torch), point(torch))
            with one():
                tangent = fw.unpack_dual(x.exp()).tangent
        with one(), two():
            pass
        with hooks():
            point(torch).requires_grad_().exp()
        return [
            tangent,
            refused(one, hooks),
            refused(hooks, one),
            refused(one, two),
            len(packed),
            refused(one, graph.save_on_cpu),
        ]

    answers, expected = ask(rushlight), oracle(ask)
    np.testing.assert_allclose(answers[0]._array, expected[0])
    assert answers[1:] == list(expected[1:])


def test_a_function_that_writes_has_the_tangents_of_before():
    class Double(rushlight.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def jvp(ctx, t):
            return t.mul_(2)

    with ours.dual_level():
        x = ours.make_dual(rushlight.ones(2), rushlight.tensor([1.0, 3.0])).clone()
        assert ours.unpack_dual(Double.apply(x)).tangent.tolist() == [2.0, 6.0]
