"""What scripts that nobody named do and no other test did: each was once a wrong result, a missing name or a crash."""

from __future__ import annotations

import importlib
import warnings

import numpy as np
import pytest

import rushlight

OLD_AMP = {
    "cuda": lambda t: [t.cuda.amp.autocast(), t.cuda.amp.autocast(False), t.cuda.amp.GradScaler(enabled=False),
                       t.cuda.amp.custom_fwd(lambda ctx, x: x), t.cuda.amp.custom_bwd(lambda ctx, g: g)],
    "cuda, enabled": lambda t: [t.cuda.amp.GradScaler(), t.autocast("cuda")],
    "cpu": lambda t: [t.cpu.amp.autocast(), t.cpu.amp.GradScaler()],
}


def warnings_of(f):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        f()
    return [(w.category.__name__, str(w.message)) for w in caught]


@pytest.mark.parametrize("name", OLD_AMP)
def test_old_names_of_mixed_precision_warn_as_torch(oracle, name):
    importlib.import_module("rushlight.cpu")
    expected = oracle(lambda t: [" ".join(w) for w in warnings_of(lambda: OLD_AMP[name](t))])
    assert [" ".join(w) for w in warnings_of(lambda: OLD_AMP[name](rushlight))] == expected


def test_old_names_of_mixed_precision_do_what_the_new_ones_do():
    x = rushlight.ones(2, 2)
    with pytest.warns(FutureWarning), rushlight.cpu.amp.autocast():
        assert (x @ x).dtype == rushlight.bfloat16
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with rushlight.cuda.amp.autocast():
            assert (x @ x).dtype == rushlight.float32

        @rushlight.cuda.amp.autocast(enabled=False)
        def product(x):
            return x @ x

        assert product(x).dtype == rushlight.float32
        assert rushlight.cpu.amp.GradScaler(init_scale=8.0).scale(x).sum() == 32
        assert not rushlight.cuda.amp.GradScaler().is_enabled()


def test_images_are_normalized_by_as_many_numbers_as_they_have_channels():
    normalize = rushlight.vision.transforms.Normalize([0.5, 0.5, 0.5], [0.5, 0.25, 0.5])
    grey, coloured = rushlight.ones(1, 2, 2), rushlight.ones(3, 2, 2)
    with pytest.raises(RuntimeError, match=r"output with shape \[1, 2, 2\] doesn't match the broadcast shape \[3, 2, 2\]"):
        normalize(grey)
    assert normalize(coloured)[:, 0, 0].tolist() == [1.0, 2.0, 1.0]
    assert coloured.sum() == 12                   # as it was


VERSIONS = ["1.10.0", "1.10", "1.10.0a0", "1.10.0b2", "1.10.0rc1", "1.10.0.dev20210101", "1.10.0.post1", "1.10.0+cpu",
            "1.9.1", "2.13.0+rushlight", "2.0.0a0+gitabc", "v2.0", "2.0.0alpha3"]  # fmt: skip


def test_versions_compare_as_torch(oracle):
    """"2.13" comes after "2.9"."""

    def compared(t):
        version = importlib.import_module(f"{t.__name__}.torch_version").TorchVersion
        others = [*VERSIONS, (1, 10), (2,), (1, 9, 1), ("2", "13")]
        return [[getattr(version(a), op)(b) for b in others for op in ("__eq__", "__lt__", "__le__", "__gt__", "__ge__")]
                for a in VERSIONS]  # fmt: skip

    assert compared(rushlight) == oracle(compared)


def of_settings(t):
    """Settings of the compiler that scripts make, devices that they ask for, and files of torch that they import from."""
    inductor = importlib.import_module(f"{t.__name__}._inductor")
    inductor.config.triton.cudagraphs = inductor.config.coordinate_descent_tuning = True
    found = [t.mps.is_available(), t.xpu.is_available(), t.xpu.device_count(), t.cpu.device_count(), t.cpu.current_device()]
    collate = importlib.import_module(f"{t.__name__}.utils.data._utils").collate
    found.append(collate.default_collate([1, 2]).tolist())
    both = [t.arange(6.0).reshape(2, 3), t.ones(2)]
    flat = importlib.import_module(f"{t.__name__}._utils")._flatten_dense_tensors(both)
    back = importlib.import_module(f"{t.__name__}._utils")._unflatten_dense_tensors(flat, both)
    return [*found, flat.tolist(), [b.tolist() for b in back], t.functional.norm(both[0]).item() > 7.4]


def test_files_and_devices_that_scripts_name(oracle):
    assert of_settings(importlib.import_module("rushlight")) == oracle(of_settings)
    with pytest.raises(AttributeError, match="torch.nn.functional.relu"):
        rushlight.functional.relu
    with pytest.raises(AssertionError, match="not compiled with XPU"):
        rushlight.xpu.current_device()


def three(t):
    t.manual_seed(0)
    return t.randn(4, 5), t.randn(4, 5), t.randn(4, 5)


def of_signs(t):
    return t.tensor([1.0, -1.0, 1.0, -1.0])


POSITIONAL = {
    "kl_div": lambda t, a, b, c, r: t.kl_div(a.log_softmax(1), b.softmax(1), r),
    "kl_div, log_target": lambda t, a, b, c, r: t.kl_div(a, b.log_softmax(1), r, log_target=True),
    "hinge": lambda t, a, b, c, r: t.hinge_embedding_loss(a, b.sign(), 1.0, r),
    "cosine": lambda t, a, b, c, r: t.cosine_embedding_loss(a, b, of_signs(t), 0.1, r),
    "ranking": lambda t, a, b, c, r: t.margin_ranking_loss(a[:, 0], b[:, 0], of_signs(t), 0.2, r),
    "triplet": lambda t, a, b, c, r: t.triplet_margin_loss(a, b, c, 1.0, 2.0, 1e-6, False, r),
    "poisson": lambda t, a, b, c, r: t.poisson_nll_loss(a, b.exp(), True, False, 1e-8, r),
    "bce": lambda t, a, b, c, r: t.binary_cross_entropy_with_logits(a, b.sigmoid(), None, None, r),
    "ctc": lambda t, a, b, c, r: t.ctc_loss(
        a[:, None].log_softmax(2), t.tensor([[1, 2]]), t.tensor([4]), t.tensor([2]), 0, r),  # fmt: skip
    "embedding": lambda t, a, b, c, r: t.embedding(a, t.tensor([r, 2]), 1),
    "batch_norm": lambda t, a, b, c, r: t.batch_norm(a, b[0], c[0], None, None, True, 0.1, 1e-5, False),
    "instance_norm": lambda t, a, b, c, r: t.instance_norm(a[None], None, None, None, None, True, 0.1, 1e-5, False),
}


@pytest.mark.parametrize("name", POSITIONAL)
def test_functions_in_the_order_of_torchs_own_code(oracle, name):
    for reduction in (0, 1, 2):
        expected = oracle(lambda t, r=reduction: POSITIONAL[name](t, *three(t), r))
        np.testing.assert_allclose(POSITIONAL[name](rushlight, *three(rushlight), reduction), expected, rtol=1e-5, atol=1e-6)


def test_too_many_arguments_say_which_there_are():
    with pytest.raises(TypeError, match="torch.kl_div\\(input, target, reduction\\)"):
        rushlight.kl_div(1, 2, 3, 4)


def test_branches_and_checks_as_functions():
    x = rushlight.ones(2, requires_grad=True)
    y = rushlight.cond(x.sum() > 3, lambda x: x, lambda x: 2 * x, (x,))
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    rushlight._check(True)
    rushlight._check_is_size(0)
    rushlight._check_tensor_all(x > 0)
    for wrong, kind in ((lambda: rushlight._check(False, lambda: "odd"), RuntimeError),
                        (lambda: rushlight._check_index(False, lambda: "odd"), IndexError),
                        (lambda: rushlight._check_value(False, lambda: "odd"), ValueError),
                        (lambda: rushlight._check_not_implemented(False, lambda: "odd"), NotImplementedError),
                        (lambda: rushlight._check_tensor_all(x > 1, lambda: "odd"), RuntimeError),
                        (lambda: rushlight._check_type(False, lambda: "odd"), TypeError)):  # fmt: skip
        with pytest.raises(kind, match="odd"):
            wrong()
    with pytest.raises(RuntimeError, match="single-element"):
        rushlight.cond(rushlight.ones(2), len, len)


@pytest.mark.parametrize("f", [lambda x: x**2, lambda x: x.exp(), lambda x: x.prod(), lambda x: 2**x, lambda x: x.norm()])
def test_hooks_of_saved_tensors_meet_what_is_saved_only(oracle, f):
    """A rule that does not need its op's result saves None for it, which was handed to the hook."""

    def gradient(t):
        x = t.tensor([1.0, 2.0, 3.0], requires_grad=True)
        with t.autograd.graph.saved_tensors_hooks(lambda s: s * 4, lambda s: s / 4):
            y = f(x).sum()
        y.backward()
        return x.grad

    np.testing.assert_allclose(gradient(rushlight), oracle(gradient), rtol=1e-6)


REFUSED = {
    "softmax of whole numbers": lambda t: t.arange(3).softmax(0),
    "softmax of truths": lambda t: t.tensor([[True]]).softmax(1),
    "log_softmax of whole numbers": lambda t: t.nn.functional.log_softmax(t.arange(3), 0),
    "a parameter of numbers": lambda t: t.nn.Parameter([1.0]),
    "a parameter of an array": lambda t: t.nn.Parameter(np.ones(2)),
    "a parameter of whole numbers": lambda t: t.nn.Parameter(t.arange(2)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_as_in_torch(oracle, name):
    def kind(t):
        with pytest.raises((AttributeError, NotImplementedError, RuntimeError)) as caught:
            REFUSED[name](t)
        return caught.type.__name__

    assert kind(rushlight) == oracle(kind)


def test_softmax_of_whole_numbers_as_a_dtype():
    assert rushlight.arange(2).softmax(0, dtype=rushlight.float64).sum() == 1
    assert rushlight.zeros(0).softmax(0).shape == (0,)


def test_the_distance_of_a_triplet_loss_is_a_module(oracle):
    def shown(t):
        return repr(t.nn.TripletMarginWithDistanceLoss(margin=2.0))

    assert shown(rushlight) == oracle(shown)


def function_with(t, slope):
    """exp, whose derivative is known forward only, and is `slope` of it."""

    class Forward(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.out = x.exp()
            return ctx.out

        @staticmethod
        def jvp(ctx, tangent):
            return slope * tangent * ctx.out

    return Forward.apply


@pytest.mark.parametrize("slope", [1.0, 1.1])
def test_gradcheck_looks_at_tangents_when_told(oracle, slope):
    """Without backward, where there is none; `check_forward_ad` was passed over, so that nothing was checked."""

    def checked(t):
        x = t.tensor([0.3, -0.4], dtype=t.float64, requires_grad=True)
        f = function_with(t, slope)
        ways = {"check_forward_ad": True, "check_backward_ad": False, "check_undefined_grad": False}
        try:
            return t.autograd.gradcheck(f, (x,), **ways, check_batched_grad=False)
        except RuntimeError as error:
            return str(error).split("\n")[0]

    assert checked(rushlight) == oracle(checked)
    assert (checked(rushlight) is True) == (slope == 1.0)


def test_gradcheck_of_tangents_of_complex_numbers_and_several_inputs():
    x = rushlight.tensor([1 + 2j, 3 - 1j], dtype=rushlight.complex128, requires_grad=True)
    y = rushlight.tensor([[2.0], [0.5]], dtype=rushlight.float64, requires_grad=True)
    for f in (lambda x, y: (x * y).abs(), lambda x, y: x.conj() * y.exp(), lambda x, y: (x.real @ y, y.sum())):
        assert rushlight.autograd.gradcheck(f, (x, y), check_forward_ad=True)


def test_explanations_are_asked_for_as_in_torch(oracle):
    """`torch._dynamo.explain(f)(*args)`: the function was called without its arguments."""

    def counted(t):
        found = importlib.import_module(f"{t.__name__}._dynamo").explain(lambda x, y: x * y + 1)(t.ones(2), t.ones(2))
        return [found.graph_count, found.graph_break_count]

    assert counted(rushlight) == oracle(counted) == [1, 0]
    assert rushlight._dynamo.explain(lambda x: x + 1, rushlight.ones(2)).graph_count == 1
    with rushlight._inductor.utils.fresh_inductor_cache():
        pass


def test_a_break_that_a_script_asks_for_breaks_nothing():
    def f(x):
        y = x * 2
        rushlight._dynamo.graph_break()
        return y + 1
    assert rushlight.compiler.explain(f, rushlight.ones(2)).graph_count == 1


def of_own(t):
    """A Function whose backward is not what its forward says, so that nothing but it can give the gradient."""

    class Thrice(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.exp()

        @staticmethod
        def backward(ctx, g):
            return 3 * g * ctx.saved_tensors[0].exp()

    return Thrice


@pytest.mark.filterwarnings("ignore:rushlight.compile")
@pytest.mark.parametrize("inside", ["forward", "step"])
def test_compiled_functions_call_functions_of_ones_own(oracle, inside):
    """They raised: 'Thrice' has no attribute 'name'."""

    def losses(t, compiled):
        own, w = of_own(t), t.nn.Parameter(t.tensor([1.0, 0.5]))
        optimizer = t.optim.SGD([w], 0.001)

        def forward(x):
            y = (x * w).sin() * 2
            return (own.apply(y) ** 2).mean() + w.sum()

        def step(x):
            optimizer.zero_grad()
            loss = run(x)
            loss.backward()
            optimizer.step()
            return loss

        run = compiled(forward) if inside == "forward" else forward
        once = compiled(step) if inside == "step" else step
        return [once(t.tensor([1.0, 2.0])).item() for _ in range(8)]

    expected = oracle(lambda t: losses(t, lambda f: f))
    assert losses(rushlight, lambda f: f) == pytest.approx(expected, rel=1e-5)
    assert losses(rushlight, rushlight.compile) == pytest.approx(expected, rel=1e-5)


@pytest.mark.filterwarnings("ignore:rushlight.compile")
def test_compiled_functions_call_custom_ops():
    @rushlight.library.custom_op("scripts::twice", mutates_args=())
    def twice(x: rushlight.Tensor) -> rushlight.Tensor:
        return rushlight.from_numpy(x.numpy() * 2)

    compiled = rushlight.compile(lambda x: twice(x) + 1)
    for k in range(5):
        assert compiled(rushlight.full((2,), float(k))).tolist() == [2 * k + 1] * 2


def test_empty_in_an_order_of_memory(oracle):
    def strides(t):
        return [list(t.empty(2, 3, 4, 5, memory_format=form).stride()) for form in (t.channels_last, t.contiguous_format)]

    assert strides(rushlight) == oracle(strides)
