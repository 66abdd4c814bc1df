"""autocast: torch's dtypes op by op, gradients, nesting; GradScaler step by step, against torch."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest

import rushlight
from rushlight.nn import functional

HALF = rushlight.bfloat16
CALLS = {
    "mm": "torch.mm(f(2, 3), f(3, 2))",
    "operator": "f(2, 3) @ f(3, 2)",
    "vector": "f(2, 3) @ f(3)",
    "method": "f(2, 3).matmul(h(3, 2))",
    "dot": "torch.dot(f(3), f(3))",
    "mv": "torch.mv(f(2, 3), f(3))",
    "bmm": "torch.bmm(f(2, 2, 2), f(2, 2, 2))",
    "addmm": "torch.addmm(f(2), f(2, 2), f(2, 2))",
    "addmv": "torch.addmv(f(2), f(2, 2), f(2))",
    "baddbmm": "torch.baddbmm(f(2, 2, 2), f(2, 2, 2), f(2, 2, 2))",
    "outer": "torch.outer(f(2), f(2))",
    "einsum": "torch.einsum('ij,jk->ik', f(2, 2), f(2, 2))",
    "linear": "F.linear(f(2, 3), f(4, 3), f(4))",
    "bilinear": "F.bilinear(f(2, 3), f(2, 4), f(5, 3, 4))",
    "conv1d": "F.conv1d(f(1, 2, 5), f(2, 2, 3), f(2))",
    "conv2d": "torch.conv2d(f(1, 2, 5, 5), f(2, 2, 3, 3))",
    "conv3d": "F.conv3d(f(1, 2, 5, 5, 5), f(2, 2, 3, 3, 3))",
    "prelu": "F.prelu(f(2, 3), f(1))",
    "conv_transpose2d": "F.conv_transpose2d(f(1, 2, 5, 5), f(2, 2, 3, 3))",
    "attention": "F.scaled_dot_product_attention(f(1, 2, 3, 4), f(1, 2, 3, 4), h(1, 2, 3, 4))",
    "double": "torch.mm(f(2, 2).double(), f(2, 2).double())",
    "mixed": "torch.mm(f(2, 2), h(2, 2))",
    "out": "torch.mm(f(2, 2), f(2, 2), out=torch.empty(2, 2))",
    "softmax": "h(2, 2).softmax(0)",
    "exp": "h(2).exp()",
    "sum": "h(2).sum()",
    "gelu": "F.gelu(h(2))",
    "add": "h(2) + f(2)",
    "layer_norm": "F.layer_norm(h(2, 2), (2,), f(2), f(2))",
    "interpolate": "F.interpolate(f(1, 1, 2, 2), scale_factor=2)",
    "batch_norm": "F.batch_norm(h(2, 2), f(2), f(2).abs(), f(2), f(2))",
    "group_norm": "F.group_norm(h(2, 2), 2, f(2), f(2))",
    "bilinear up": "F.interpolate(f(1, 1, 2, 2), scale_factor=2, mode='bilinear')",
    "cat": "torch.cat([h(2), f(2)])",
    "cat low": "torch.cat([h(2), h(2)])",
    "stack": "torch.stack([h(2), f(2)])",
    "prod": "h(2).prod()",
    "nll": "F.nll_loss(h(2, 2), torch.tensor([0, 1]))",
    "cross_entropy": "F.cross_entropy(h(2, 2), torch.tensor([0, 1]))",
    "mse": "F.mse_loss(h(2), h(2))",
    "l1": "F.l1_loss(h(2), h(2))",
    "bce": "F.binary_cross_entropy_with_logits(h(2), h(2).sigmoid())",
    "kl": "F.kl_div(h(2), h(2).sigmoid())",
    "huber": "F.huber_loss(h(2), h(2))",
    "smooth_l1": "F.smooth_l1_loss(h(2), h(2))",
    "avg_pool2d": "F.avg_pool2d(h(1, 1, 4, 4), 2)",
    "avg_pool3d": "F.avg_pool3d(h(1, 1, 4, 4, 4), 2)",
    "max_pool3d": "F.max_pool3d(h(1, 1, 4, 4, 4), 2)",
    "reflect": "F.pad(h(1, 1, 4), (1, 1), mode='reflect')",
    "pad": "F.pad(h(1, 1, 4), (1, 1))",
    "inner": "torch.inner(f(2, 2), f(2, 2))",
    "tensordot": "torch.tensordot(f(2, 2), f(2, 2), 1)",
    "addbmm": "torch.addbmm(f(2, 2), f(2, 2, 2), f(2, 2, 2))",
    "multi_dot": "torch.linalg.multi_dot([f(2, 2)] * 3)",
    "cdist": "torch.cdist(h(2, 2), h(2, 2))",
    "inverse": "torch.linalg.inv(torch.eye(2, dtype=torch.bfloat16))",
    "quantile": "torch.quantile(h(3), 0.5)",
    "fft": "torch.fft.fft(h(4)).real",
    "trace": "h(2, 2).trace()",
    "triplet": "F.triplet_margin_loss(h(2, 2), f(2, 2), f(2, 2))",
    "einsum of one": "torch.einsum('ij->', f(2, 2))",
    "einsum without sums": "torch.einsum('i,j->ij', f(2), f(2))",
    "einsum of vectors": "torch.einsum('i,i->', f(2), f(2))",
    "einsum of three": "torch.einsum('ij,jk,ik->ik', *[f(2, 2)] * 3)",
    "inner of vectors": "torch.inner(f(2), f(2))",
    "inner of numbers": "torch.inner(f(()), f(2))",
    "tensordot of all": "torch.tensordot(f(2, 2), f(2, 2), 2)",
    "chain of one": "torch.chain_matmul(f(2, 2))",
    "tensordot to one": "torch.tensordot(f(2, 2, 1), f(2, 1, 2), ([0, 1], [2, 0]))",
    "matrix_power": "torch.linalg.matrix_power(f(2, 2), 3)",
    "matrix_power 1": "torch.linalg.matrix_power(f(2, 2), 1)",
    "cov": "torch.cov(f(2, 3))",
    "corrcoef": "torch.corrcoef(torch.tensor([[1., 2.], [2., 3.]]))",
    "adaptive_max_pool3d": "F.adaptive_max_pool3d(h(1, 1, 4, 4, 4), 2)",
    "unpool": "F.max_unpool1d(h(1, 1, 2), torch.tensor([[[0, 3]]]), 2)",
    "reflect 3": "F.pad(h(1, 1, 4, 4, 4), (1,) * 6, mode='reflect')",
    "reflect 2": "F.pad(h(1, 1, 4, 4), (1,) * 4, mode='reflect')",
    "replicate": "F.pad(h(1, 1, 4), (1, 1), mode='replicate')",
    "max_pool3d and where": "F.max_pool3d(h(1, 1, 4, 4, 4), 2, return_indices=True)[0]",
    "gaussian_nll": "F.gaussian_nll_loss(h(2), h(2), h(2))",
}


def names(lib):
    return {"torch": lib, "F": lib.nn.functional, "f": lib.ones, "h": lambda *n: lib.ones(*n, dtype=lib.bfloat16)}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.filterwarnings("ignore")
def test_dtypes(oracle, call):
    """Values too: of ones, they are exact in any precision."""

    def ask(lib):
        with lib.autocast("cpu"):
            found = eval(CALLS[call], names(lib))
        return [str(found.dtype), found.float().tolist()]

    ours, theirs = ask(rushlight), oracle(ask)
    assert ours[0] == theirs[0]
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-2, atol=1e-2)


def test_products_are_rounded_and_gradients_are_not(oracle):
    def ask(lib):
        x = lib.arange(12.0).reshape(4, 3) / 7
        w = (lib.arange(6.0).reshape(2, 3) / 11).requires_grad_()
        with lib.autocast("cpu"):
            y = lib.nn.functional.linear(x, w)
            loss = y.sin().float().sum()
        loss.backward()
        return [str(w.grad.dtype), y.float().tolist(), w.grad.tolist()]

    ours, theirs = ask(rushlight), oracle(ask)
    assert ours[:2] == theirs[:2]
    np.testing.assert_allclose(ours[2], theirs[2], rtol=2e-2)


def test_modules(oracle):
    def ask(lib):
        nn, seen = lib.nn, []
        model = nn.Sequential(
            nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.LayerNorm(8), nn.Linear(8, 3)
        )
        for layer in model:
            layer.register_forward_hook(lambda m, args, out: seen.append(str(out.dtype)))
        with lib.autocast("cpu"):
            loss = nn.CrossEntropyLoss()(model(lib.ones(2, 1, 4, 4)), lib.tensor([0, 2]))
        loss.backward()
        return seen, str(loss.dtype), {str(p.grad.dtype) for p in model.parameters()}.pop()

    assert list(ask(rushlight)) == [list(part) if isinstance(part, list) else part for part in oracle(ask)]


def test_layers_that_take_another_way_to_their_function(oracle):
    """Of several kinds of convolution and pooling; and a gradient that comes through a rule with a number in it."""

    def ask(lib):
        nn, seen = lib.nn, []
        model = nn.Sequential(
            nn.Conv2d(1, 2, 3, padding="same"),
            nn.LeakyReLU(),
            nn.ConvTranspose2d(2, 2, 3),
            nn.Mish(),
            nn.Conv2d(2, 4, 3, padding=1, padding_mode="circular"),
            nn.Unflatten(1, (2, 2)),
            nn.AvgPool3d((1, 2, 2)),
            nn.AdaptiveAvgPool3d(1),
            nn.Flatten(),
            nn.Linear(2, 1),
        )
        for layer in model:
            layer.register_forward_hook(lambda m, args, out: seen.append(str(out.dtype)))
        with lib.autocast("cpu"):
            out = model(lib.ones(2, 1, 4, 4))
        out.sum().backward()
        return seen, [str(p.grad.dtype) for p in model.parameters()]

    assert list(map(list, ask(rushlight))) == list(map(list, oracle(ask)))


def product_dtype():
    return (rushlight.ones(1, 1) @ rushlight.ones(1, 1)).dtype


def test_nesting_and_what_it_says_of_itself(oracle):
    def ask(lib):
        found = []

        def note():
            found.append(
                [
                    lib.is_autocast_enabled("cpu"),
                    lib.is_autocast_enabled(),
                    str(lib.get_autocast_dtype("cpu")),
                    lib.is_autocast_cache_enabled(),
                    str((lib.ones(1, 1) @ lib.ones(1, 1)).dtype),
                ]
            )

        note()
        with lib.autocast("cpu"):
            note()
            with lib.autocast("cpu", enabled=False):
                note()
            with lib.amp.autocast("cpu", dtype=lib.float16, cache_enabled=False):
                note()
            note()
        with pytest.raises(KeyError), lib.autocast(device_type="cpu", dtype=lib.bfloat16):
            raise KeyError
        note()
        return found

    assert ask(rushlight) == oracle(ask)


def test_decorator_threads_and_generators():
    @rushlight.autocast("cpu")
    def deep(n):
        return deep(n - 1) if n else product_dtype()

    assert deep(3) is HALF
    assert product_dtype() is rushlight.float32
    found = []
    with rushlight.autocast("cpu"):
        thread = threading.Thread(target=lambda: found.append(product_dtype()))
        thread.start()
        thread.join()
    assert found == [rushlight.float32]


def test_functions_imported_before_are_gated_too():
    program = """
import pickle
import rushlight as torch
from rushlight import matmul
from rushlight.nn.functional import linear, cross_entropy
before = torch.Tensor.matmul
with torch.autocast("cpu"):
    print(matmul(torch.ones(1, 1), torch.ones(1, 1)).dtype, linear(torch.ones(1, 1), torch.ones(1, 1)).dtype)
    print(torch.nn.Linear(1, 1)(torch.ones(1, 1)).dtype)
print(matmul(torch.ones(1, 1), torch.ones(1, 1)).dtype, pickle.loads(pickle.dumps(cross_entropy)).__name__)
print(torch.nn.functional.linear.__doc__[:8])
"""
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    assert told[:2] == ["torch.bfloat16 torch.bfloat16", "torch.bfloat16"]
    assert told[2:4] == ["torch.float32 cross_entropy", "x w^T + b"[:8]]


def test_no_gates_without_autocast():
    program = (
        "import sys, rushlight\nrushlight.nn.Linear(1, 1)\nprint('rushlight.amp' in sys.modules, "
        "hasattr(rushlight.matmul, '__wrapped__'))"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert told == "False False\n"


def test_other_devices_and_dtypes(oracle):
    def ask(lib):
        found = []
        for device, dtype in (("cuda", None), ("cpu", "float32"), ("xpu", None)):
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                with lib.autocast(device, dtype=dtype and getattr(lib, dtype)):
                    found.append([str((lib.ones(1, 1) @ lib.ones(1, 1)).dtype), len(seen) > 0])
        for device in ("gpu", 3):
            try:
                lib.autocast(device)
            except (RuntimeError, ValueError) as error:
                found.append([type(error).__name__, str(error).split("\n")[0].split(",")[0][:30]])
        return found

    assert ask(rushlight) == oracle(ask)


def test_functions_of_ones_own(oracle):
    def ask(lib):
        found = []

        class Product(lib.autograd.Function):
            @staticmethod
            @lib.amp.custom_fwd(device_type="cpu")
            def forward(ctx, x, y):
                ctx.save_for_backward(x, y)
                found.append(str((x @ y).dtype))
                return x @ y

            @staticmethod
            @lib.amp.custom_bwd(device_type="cpu")
            def backward(ctx, g):
                x, y = ctx.saved_tensors
                found.append(str((g @ y.t()).dtype))
                return (g @ y.t()).float(), (x.t() @ g).float()

        class Single(Product):
            @staticmethod
            @lib.amp.custom_fwd(device_type="cpu", cast_inputs=lib.float32)
            def forward(ctx, x, y):
                ctx.save_for_backward(x, y)
                found.append(str((x @ y).dtype))
                return x @ y

        for function in (Product, Single):
            x = lib.ones(2, 2, requires_grad=True)
            with lib.autocast("cpu"):
                y = function.apply(x, lib.ones(2, 2))
            y.float().sum().backward()
        return found

    assert ask(rushlight) == oracle(ask)


# -- GradScaler ------------------------------------------------------------------------------------


def run_scaler(lib):
    """Six steps, the third with inf, the fifth with clipping; then on from a state."""
    scaler = lib.amp.GradScaler("cpu", init_scale=4.0, growth_interval=2)
    w = lib.ones(2, requires_grad=True)
    optimizer = lib.optim.SGD([w], lr=0.1)
    found = []
    for i in range(6):
        optimizer.zero_grad()
        x = lib.tensor([1.0, float("inf") if i == 2 else 2.0])
        scaler.scale((w * x).sum()).backward()
        if i == 4:
            scaler.unscale_(optimizer)
            lib.nn.utils.clip_grad_norm_([w], 0.5)
        result = scaler.step(optimizer)
        scaler.update()
        found.append([w.tolist(), scaler.get_scale(), result is None])
    found.append(scaler.state_dict())
    other = lib.amp.GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    found.append([other.get_scale(), other.get_growth_interval(), other.state_dict() == scaler.state_dict()])
    scaler.update(16.0)
    return [*found, scaler.get_scale(), [t.item() for t in scaler.scale([lib.tensor(1.0), lib.tensor(2.0)])]]


def test_scaler(oracle):
    ours, theirs = run_scaler(rushlight), oracle(run_scaler)
    for a, b in zip(ours[:6], theirs[:6], strict=True):
        assert a[1:] == b[1:]
        np.testing.assert_allclose(a[0], b[0], rtol=1e-6)
    assert ours[6:] == theirs[6:]


MISUSE = [
    "s.step(o)",
    "s.update()",
    "s.scale(l).backward(); s.step(o); s.step(o)",
    "s.scale(3)",
    "s.scale(l).backward(); s.unscale_(o); s.unscale_(o)",
    "s.scale(l).backward(); s.step(o); s.unscale_(o)",
    "s.scale(l); s.step(o)",
    "s.scale(l); s.update()",
    "s.load_state_dict({})",
    "s.scale(l).backward(); s.step(o, closure=None)",
    "lib.amp.GradScaler('cpu', growth_factor=1.0)",
]


@pytest.mark.parametrize("program", MISUSE)
def test_scaler_misused(oracle, program):
    def ask(lib):
        w = lib.ones(1, requires_grad=True)
        space = {"s": lib.amp.GradScaler("cpu"), "o": lib.optim.SGD([w], lr=0.1), "l": w.sum(), "lib": lib}
        try:
            exec(program, space)
        except Exception as error:
            return [type(error).__name__, str(error).split("\n")[0][:40]]

    assert ask(rushlight) == oracle(ask)


def test_scaler_disabled():
    with pytest.warns(UserWarning, match="not available"):
        scaler = rushlight.amp.GradScaler()
    w = rushlight.ones(1, requires_grad=True)
    optimizer = rushlight.optim.SGD([w], lr=0.5)
    scaler.scale(w.sum()).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert (w.item(), scaler.get_scale(), scaler.is_enabled(), scaler.state_dict()) == (0.5, 1.0, False, {})


def test_gates_can_be_pickled():
    with rushlight.autocast("cpu"):
        pass
    assert pickle.loads(pickle.dumps(functional.cross_entropy)) is functional.cross_entropy


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("state", [None, "float32", "bfloat16"])
def test_recurrent_layers(oracle, kind, dtype, state):
    """In bfloat16, as torch's, whatever the dtypes of the input and the state; a GRU gives its state's."""

    def run(t):
        t.manual_seed(0)
        layer, x = getattr(t.nn, kind)(4, 8), t.randn(5, 3, 4).to(getattr(t, dtype)).requires_grad_()
        h = None if state is None else t.zeros(1, 3, 8).to(getattr(t, state))
        with t.autocast("cpu", dtype=t.bfloat16):
            out, last = layer(x, (h, h) if kind == "LSTM" and state else h)
        out.float().square().sum().backward()
        last = last[0] if kind == "LSTM" else last
        dtypes = [str(a.dtype).split(".")[-1] == "bfloat16" for a in (out, last, layer.weight_ih_l0.grad, x.grad)]
        return t.cat([t.tensor(dtypes).float(), out.detach().float().flatten(), layer.weight_ih_l0.grad.flatten() / 10])

    np.testing.assert_allclose(run(rushlight), oracle(run), atol=0.03)
