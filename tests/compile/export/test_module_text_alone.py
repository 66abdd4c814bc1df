"""The text of a program runs in a process that has only NumPy: to the same bits, or near those of loops."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import numpy as np
import pytest

import rushlight as torch
from rushlight import kernels, nn, optim
from rushlight.compile import compile, programs
from rushlight.compile.capture.input_sources import find
from rushlight.compile.export.collect_source import Bundle
from rushlight.compile.export.module_text import Module
from rushlight.core.table import TABLE
from rushlight.loops import budget
from rushlight.nn import functional as F
from tests.compile.test_compile_random_programs import MOVES, POOL
from tests.compile.test_compile_random_programs import step as random_step

RUN = """
import sys
import numpy as np
for name in ("rushlight", "scipy", "llvmlite"):
    sys.modules[name] = None                      # importing it fails
import program
given = np.load("given.npz")
arrays = [given[str(i)] for i in range(len(given.files))]
results, grads = program.call(*arrays)
assert not any(name.startswith("rushlight.") for name in sys.modules)
np.savez("made.npz", *results, *grads, *arrays)
"""


def run_alone(text, arrays, folder):
    """What `call` of the text gives in a process of its own, and what it leaves in its arguments."""
    folder.mkdir(exist_ok=True)
    (folder / "program.py").write_text(text)
    (folder / "run.py").write_text(RUN)
    np.savez(folder / "given.npz", **{str(i): a for i, a in enumerate(arrays)})
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run([sys.executable, "run.py"], cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    made = np.load(folder / "made.npz")
    return [made[f"arr_{i}"] for i in range(len(made.files))]


def mlp():
    model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3))
    return trained(model, optim.Adam(model.parameters()), torch.randn(8, 6), torch.randint(0, 3, (8,)))


def lenet():
    model = nn.Sequential(
        nn.Conv2d(1, 3, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(3, 4, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(36, 10),
    )
    return trained(
        model,
        optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
        torch.randn(4, 1, 18, 18),
        torch.randint(0, 10, (4,)),
    )


class Block(nn.Module):
    def __init__(self, width=16, heads=2):
        super().__init__()
        self.norm, self.norm2, self.heads = nn.LayerNorm(width), nn.LayerNorm(width), heads
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (a.view(b, t, self.heads, -1).transpose(1, 2) for a in self.qkv(self.norm(x)).split(c, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.narrow(F.gelu(self.wide(self.norm2(x))))


def gpt():
    words, places, block, head = nn.Embedding(11, 16), nn.Embedding(8, 16), Block(), nn.Linear(16, 11)
    model = nn.ModuleList([words, places, block, head])

    def forward(x):
        return head(block(words(x) + places(torch.arange(x.shape[1])))).flatten(0, 1)

    text = torch.randint(0, 11, (3, 9))
    return trained(model, optim.AdamW(model.parameters()), text[:, :8], text[:, 1:].flatten(), forward, clip=True)


def trained(model, optimizer, x, y, forward=None, clip=False):
    forward = forward or model
    parameters = list(model.parameters())

    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(forward(x), y)
        loss.backward()
        if clip:
            nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        return loss

    return step, (x, y)


def program_of(step, args, backend):
    compiled = compile(step, backend=backend, fullgraph=True)
    for _ in range(3):
        compiled(*args)
    return compiled, programs(compiled)[-1]


def given_to(program, args):
    return [find(source, list(args))._array.copy() for source in program.forward.sources]


def near(got, wanted):
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.exhaustive(every=3)
@pytest.mark.parametrize("backend", ["numpy", "loops"])
@pytest.mark.parametrize("make", [mlp, lenet, gpt])
def test_a_training_step_runs_alone(make, backend, tmp_path, monkeypatch):
    """To the same bits as the reference kernels."""
    if backend == "loops":
        pytest.importorskip("llvmlite")
    else:
        monkeypatch.setattr(budget, "allowed", False)
    torch.manual_seed(0)
    step, args = make()
    compiled, program = program_of(step, args, backend)
    given, text = given_to(program, args), program.source
    loss = compiled(*args)
    assert len(programs(compiled)) == 1
    grads = [find(("grad", what), list(args))._array for (_, what), some in program.leaves if some]
    want = [loss.detach().numpy(), *grads, *(find(s, list(args))._array for s in program.forward.sources)]
    assert "import rushlight" not in text
    assert "from rushlight" not in text
    assert "test_module_text_alone.py:" in text  # the user's lines
    for got, wanted in zip(run_alone(text, given, tmp_path), want, strict=True):
        assert got.dtype == wanted.dtype
        if backend == "numpy":
            assert got.tobytes() == wanted.tobytes()
        near(got, wanted)


@pytest.mark.faster
def test_attention_that_is_enough_for_its_loops_runs_alone(tmp_path):
    pytest.importorskip("llvmlite")
    args = (torch.randn(1, 4, 64, 32),)
    compiled, program = program_of(lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True) * 2, args, "loops")
    got, *_ = run_alone(program.source, given_to(program, args), tmp_path)
    near(got, compiled(*args).numpy())


def functions(x, y):
    """The functions that loops contain, on numbers between 0 and 1."""
    one = [
        *(x.erf(), x.erfc(), x.lgamma(), x.erfinv(), x.exp(), x.expm1(), x.exp2(), x.log(), x.log1p(), x.log2()),
        *(x.log10(), x.sin(), x.cos(), x.tan(), x.asin(), x.acos(), x.atan(), x.sinh(), x.cosh(), x.tanh(), x.asinh()),
        *((x + 1).acosh(), x.atanh(), x.sigmoid(), x.sqrt(), x.rsqrt(), x.sign(), x.floor(), x.ceil(), x.trunc()),
        *((x * 9).round(), F.gelu(x), F.softplus(x), x.isnan().to(x.dtype), (x / 0).isinf().to(x.dtype)),
    ]
    two = [torch.maximum(x, y), torch.minimum(x, y), torch.fmax(x, y), torch.fmin(x, y), torch.atan2(x, y)]
    two += [torch.hypot(x, y), x**y, torch.copysign(x, -y), torch.where(x < y, x, y), torch.logaddexp(x, y)]
    return sum(f * (k + 1) for k, f in enumerate([*one, *two]))


def rows(x, y):
    """Sums and maxima along rows, columns and both; numbers between loops; writes."""
    p = torch.softmax(x, -1)
    scale = (p * y).sum() + x.amax().exp()
    y.mul_(0.5).add_(p)
    mean = (x * scale.sqrt()).mean(0)
    return p * scale, mean, (x - mean).square().sum(), scale.log() * 2 + 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("function", "size"), [(functions, (4, 5)), (functions, ()), (rows, (6, 7)), (rows, (2100, 2048))]
)
def test_loops_run_alone_on_whole_arrays(function, size, dtype, tmp_path):
    """The largest arrays are divided among the cores."""
    pytest.importorskip("llvmlite")
    torch.manual_seed(0)
    args = tuple(torch.rand(size, dtype=dtype) * 0.98 + 0.01 for _ in range(2))
    compiled, program = program_of(function, args, "loops")
    given, text = given_to(program, args), program.source
    assert re.search(r"(?m)^def loop_\d+\(", text)
    assert not re.search(r"restrict|numba|llvm", text)
    made = compiled(*args)
    want = [t.numpy() for t in (made if isinstance(made, tuple) else (made,))] + [args[1].numpy()] * (function is rows)
    got = run_alone(text, given, tmp_path)
    for a, b in zip([*got[: len(want) - (function is rows)], *got[-1:] * (function is rows)], want, strict=True):
        assert a.dtype == b.dtype
        near(a, b)


def test_random_programs_run_on_whole_arrays():
    """Among them loops whose numbers (`c0`, `c1`) the versions for whole arrays meet in another order."""
    pytest.importorskip("llvmlite")
    rng, names, loops = np.random.default_rng(0), sorted(MOVES.keys() - {"dropout"}), 0
    for _ in range(12):
        moves = [(names[rng.integers(len(names))], *rng.integers(POOL, size=2).tolist()) for _ in range(6)]
        args = (
            torch.tensor(rng.standard_normal((3, 4), np.float32)),
            torch.tensor(rng.standard_normal((4, 4), np.float32)),
        )
        args[1].requires_grad_()
        f = compile(random_step(moves), backend="loops")
        for _ in range(3):
            f(*args)
        for program in programs(f):
            given, other = given_to(program, args), given_to(program, args)
            names_of_text = {"__name__": "alone"}
            exec(program.source, names_of_text)
            loops += sum(name.startswith("loop_") for name in names_of_text)
            part = program.forward
            with np.errstate(all="ignore"):
                want = part.call(part.new, *given, *part.bind(*[given[i] for i in part.bound]))
            got = names_of_text["call"](*other)
            for a, b in zip((*got[0], *got[1], *other), (*want[0], *want[1], *given), strict=True):
                np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-4)
    assert loops > 20


def test_every_kernel_of_the_table_has_a_text():
    """As one module for all: names that modules use for different things are told apart."""
    text = Module("")
    kernels = {name: text.kernel(name) for name in sorted(TABLE)}
    names = {"__name__": "alone"}
    exec(
        "from __future__ import annotations\nimport numpy as np\nfrom numpy import asarray, copyto, inf, matmul, nan\n"
        + "\n".join([*text.imports, *text.texts]),
        names,
    )
    assert not re.search(r"rushlight import|import rushlight|fast\.|numba|llvm", "\n".join(text.texts))
    x = np.linspace(0.1, 0.9, 6, dtype=np.float32).reshape(2, 3)
    alike = 0
    for name, kernel in kernels.items():
        op = TABLE[name]
        if len(op.inputs) == 1 and op.elementwise and not op.settings:
            try:
                with np.errstate(all="ignore"):
                    want = op.kernel(x)
            except (TypeError, NotImplementedError):  # for whole numbers or complex ones
                continue
            with np.errstate(all="ignore"):
                got = eval(kernel, names)(x)
            assert np.array_equal(got, want, equal_nan=True), name
            alike += 1
    assert alike > 50


def test_dropout_draws_from_the_texts_own_generator(tmp_path):
    x = torch.ones(3, 4)
    compiled, program = program_of(lambda x: F.dropout(x, 0.5) + 1, (x,), "numpy")
    given = given_to(program, (x,))
    text = program.source + "\ndefault_generator.manual_seed(7)\n"
    torch.manual_seed(7)
    want = compiled(x).numpy()
    assert run_alone(text, given, tmp_path)[0].tobytes() == want.tobytes()


def test_forward_and_backward_are_two_functions_of_one_text(tmp_path):
    w = torch.randn(3, 2, requires_grad=True)
    x, g = torch.randn(4, 3), np.ones((4, 2), np.float32)
    compiled, program = program_of(lambda x: (x @ w).tanh(), (x,), "numpy")
    names = {"__name__": "alone"}
    exec(program.source, names)
    (y, *saved), _ = names["call"](*given_to(program, (x,)))
    given = {"seed": [g], "saved": saved}
    arrays = [
        given[kind][what] if kind in given else find((kind, what), [x])._array
        for kind, what in program.backward.sources
    ]
    made, _ = names["back_call"](*arrays)
    want = compiled(x)
    want.backward(torch.tensor(g))
    assert y.tobytes() == want.detach().numpy().tobytes()
    assert made[0].tobytes() == w.grad.numpy().tobytes()


def test_local_names_hide_no_bundled_function(tmp_path, monkeypatch):
    """In one text modules have no names before their functions': a variable may be called like one of these."""
    monkeypatch.setattr(kernels, "__path__", [*kernels.__path__, str(tmp_path)])
    (tmp_path / "first_of_two.py").write_text(
        "from rushlight.kernels import second_of_two\n\n\n"
        "def one(x):\n    scaled, deeper = x + 1, 5\n    return "
        "second_of_two.deep(second_of_two.scaled(scaled)) + deeper\n"
    )
    (tmp_path / "second_of_two.py").write_text(
        "from rushlight.kernels import first_of_two\n\n\n"
        "def scaled(x):\n    return 2 * x\n\n\ndef deep(x):\n    one = 1\n    return x + one\n"
    )
    bundle = Bundle({})
    name = bundle.need("rushlight.kernels.first_of_two", "one")
    names: dict = {}
    exec("\n".join(bundle.texts), names)
    assert names[name](1) == 10
