"""State after failures: a call that raises leaves tensors, modules, optimizers and generators as they were.

`python tests/fuzz/failures.py --seconds 60`. A program makes things, calls something that must fail, and compares the
things before and after. It returns 'unchanged', 'no error', or the names of the things that changed. rushlight must
never change a thing; torch's answer is not compared, since torch changes some."""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Callable, Iterator

import forked
import harness
import operators

# module | good input | bad inputs, in which x is the good one
MODULES = """
Linear(3, 2) | t.rand(4, 3)
Bilinear(3, 3, 2) | t.rand(4, 3), t.rand(4, 3)
Conv1d(2, 3, 3) | t.rand(2, 2, 6)
Conv2d(2, 3, 3) | t.rand(2, 2, 6, 6)
Conv3d(2, 3, 2) | t.rand(2, 2, 4, 4, 4)
ConvTranspose2d(2, 3, 3) | t.rand(2, 2, 6, 6)
BatchNorm1d(3) | t.rand(4, 3)
BatchNorm2d(3) | t.rand(2, 3, 4, 4)
BatchNorm2d(3, momentum=None) | t.rand(2, 3, 4, 4)
BatchNorm3d(3) | t.rand(2, 3, 2, 2, 2)
InstanceNorm2d(3, affine=True, track_running_stats=True) | t.rand(2, 3, 4, 4)
LayerNorm(3) | t.rand(4, 3)
GroupNorm(1, 3) | t.rand(4, 3)
RMSNorm(3) | t.rand(4, 3)
LocalResponseNorm(2) | t.rand(4, 3, 4)
Embedding(5, 2, max_norm=0.1) | t.tensor([1, 2])
EmbeddingBag(5, 2, max_norm=0.1) | t.tensor([[1, 2]])
RNN(3, 2, 2, dropout=0.5) | t.rand(4, 1, 3)
LSTM(3, 2, 2, dropout=0.5) | t.rand(4, 1, 3)
GRU(3, 2, 2, dropout=0.5, bidirectional=True) | t.rand(4, 1, 3)
LSTMCell(3, 2) | t.rand(4, 3)
MultiheadAttention(4, 2, dropout=0.5) | t.rand(3, 2, 4), t.rand(3, 2, 4), t.rand(3, 2, 4)
TransformerEncoderLayer(4, 2, 8) | t.rand(3, 2, 4)
Transformer(4, 2, 1, 1, 8) | t.rand(3, 2, 4), t.rand(3, 2, 4)
Dropout(0.5) | t.rand(3)
Dropout2d(0.5) | t.rand(2, 3, 4, 4)
AlphaDropout(0.5) | t.rand(3)
RReLU() | t.rand(3)
PReLU(3) | t.rand(2, 3)
FractionalMaxPool2d(2, output_ratio=0.5) | t.rand(2, 3, 6, 6)
MaxPool2d(2) | t.rand(2, 3, 4, 4)
AdaptiveAvgPool2d(2) | t.rand(2, 3, 4, 4)
CrossEntropyLoss() | t.rand(4, 3), t.tensor([0, 1, 2, 0])
AdaptiveLogSoftmaxWithLoss(4, 6, [2, 4]) | t.rand(3, 4), t.tensor([0, 3, 5])
Sequential(t.nn.Dropout(0.5), t.nn.BatchNorm1d(3), t.nn.Linear(4, 2)) | t.rand(4, 3)
utils.parametrizations.spectral_norm(t.nn.Linear(3, 2)) | t.rand(4, 3)
utils.weight_norm(t.nn.Linear(3, 2)) | t.rand(4, 3)
LazyLinear(2) | t.rand(4, 3)
LazyBatchNorm1d() | t.rand(4, 3)
LazyConv2d(2, 3) | t.rand(2, 3, 4, 4)
"""
BAD_INPUTS = (
    "None",
    "x[..., :1]",
    "x[0, ..., :0]",
    "x[None, None, None]",
    "x.to(t.complex64)",
    "(x * 0 + 2**40).long()",
    "x.reshape(-1)[:1].reshape(())",
    "x.double()",
    "'x'",
    "x, x, x, x, x, x, x, x, x, x, x, x",
    "x, surplus=1",
    "",
)
OPTIMIZERS = """SGD(ps, 0.1, momentum=0.9); Adam(ps); AdamW(ps, amsgrad=True); NAdam(ps); RAdam(ps); Adamax(ps); Adagrad(ps);
Adadelta(ps); RMSprop(ps, momentum=0.5, centered=True); Rprop(ps); ASGD(ps); LBFGS(ps); SparseAdam(ps); Adafactor(ps); Muon(ps[:1])"""
OPTIMIZER_CALLS = (
    "o.step(raises)",
    "o.add_param_group({'params': ps[:1]})",
    "o.add_param_group({'params': 3})",
    "o.add_param_group([t.nn.Parameter(t.ones(2))])",
    "o.load_state_dict({})",
    "o.load_state_dict({'state': {}, 'param_groups': []})",
    "o.load_state_dict({'state': {}, 'param_groups': [{'params': [0, 1, 2, 3, 4]}]})",
    "o.zero_grad(3, 4)",
    "o.step(1, 2, 3)",
    "(o.param_groups[0].__setitem__('lr', 'text'), o.step())",
    "(o.param_groups[0].__setitem__('lr', None), o.step())",
    "(o.param_groups[0].pop('weight_decay', 0), o.param_groups[0].pop('lr'), o.step())",
    "(setattr(ps[1], 'grad', t.eye(2).to_sparse()), setattr(ps[0], 'grad', t.eye(2).to_sparse()), o.step())",
    "t.optim.lr_scheduler.StepLR(o, 0)",
    "t.optim.lr_scheduler.MultiStepLR(o, 3)",
    "t.optim.lr_scheduler.OneCycleLR(o)",
    "t.optim.lr_scheduler.LambdaLR(o, [1, 2])",
    "t.optim.lr_scheduler.CyclicLR(o, 0.1, [1, 2, 3])",
    "t.optim.lr_scheduler.SequentialLR(o, [], [])",
    "t.optim.lr_scheduler.CosineAnnealingWarmRestarts(o, 0)",
)
DRAWS = """t.rand(-1); t.rand(2, dtype=t.int64); t.randn(2, -3); t.randint(5, 2, (3,)); t.randint(0, 300, (3,), dtype=t.uint8); t.randperm(-1);
t.multinomial(t.tensor([-1.0, 2.0]), 1); t.multinomial(t.ones(3), 4); t.multinomial(t.zeros(3), 1); t.bernoulli(t.tensor([2.0]));
t.bernoulli(t.ones(3), 2.0); t.normal(t.ones(3), -t.ones(3)); t.normal(t.ones(3), t.ones(2)); t.poisson(-t.ones(3)); t.ones(2).exponential_(-1.0);
t.ones(3).uniform_(2, 1); t.ones(3).normal_(0, -1); t.ones(3).geometric_(2.0); t.ones(3).cauchy_(0, -1); t.ones(3).log_normal_(0, -1);
t.ones(3).random_(5, 2); t.ones(3, dtype=t.int64).normal_(); t.ones(3, dtype=t.int64).uniform_(); t.ones(3, dtype=t.bool).random_(0, 5);
F.dropout(x, 2.0); F.dropout(x, -0.5); F.dropout(x, None); F.alpha_dropout(x, 1.5, True); F.gumbel_softmax(x, dim=5); F.rrelu(x, 0.5, 0.1, True);
F.fractional_max_pool2d(x, 5, output_size=2); F.dropout2d(x, 3.0); t.nn.init.orthogonal_(t.ones(3)); t.nn.init.xavier_uniform_(t.ones(3));
t.nn.init.trunc_normal_(t.ones(3), 0, -1); t.nn.init.sparse_(t.ones(3), 0.5); t.nn.init.dirac_(t.ones(3)); t.nn.Linear(-1, 2); t.nn.Linear(2, -1);
t.nn.LSTM(2, 2, dropout=3.0); t.nn.Conv2d(3, 2, 3, groups=2); t.nn.MultiheadAttention(5, 2); t.nn.Transformer(5, 2); t.nn.Embedding(2, 3, padding_idx=7);
t.utils.data.random_split([1, 2, 3], [5, 5]); t.utils.data.DataLoader([1, 2], batch_size=-1, shuffle=True); t.set_rng_state(t.ones(3));
t.set_rng_state(t.zeros(5056, dtype=t.uint8)); t.manual_seed('x'); t.manual_seed(2**70); t.default_generator.set_state(t.ones(2, dtype=t.uint8));
t.rand(2, generator='x'); t.randn(2, out=t.ones(2, dtype=t.int64)); t.rand(2, 3, out=t.ones(2, dtype=t.float64)); t.distributions.Normal(0.0, -1.0);
t.distributions.Categorical(t.tensor([-1.0, 2.0])).sample(); t.distributions.Beta(t.ones(2), t.ones(3)).sample(); t.distributions.Dirichlet(-t.ones(2)).sample()"""
WRONG = ("w.repeat(2, *[3] * w.dim())", "w.to(t.complex64)", "w.double() + 0.5", "None", "'text'")

STATE = """
def frozen(v):
    if isinstance(v, t.Tensor):
        try: data = v.detach().to_dense().numpy().tobytes() if v.layout != t.strided else v.detach().resolve_conj().float().numpy().tobytes() if v.dtype == t.bfloat16 else v.detach().resolve_conj().numpy().tobytes()
        except Exception: data = type(v).__name__
        return (data, str(v.dtype), tuple(v.shape) if data != type(v).__name__ else (), v.requires_grad, id(v.grad_fn), v.grad is not None and frozen(v.grad))
    if isinstance(v, t.nn.Module):
        d = {k: w for k, w in v.__dict__.items() if k not in ('_modules', '_parameters', '_buffers')}
        return [frozen(list(v._parameters.items())), frozen(list(v._buffers.items())), sorted(k for k in d), v.training, [frozen(m) for m in v.children()], frozen({k: w for k, w in d.items() if isinstance(w, (int, float, str, tuple, dict))})]
    if isinstance(v, t.optim.Optimizer): return frozen([v.param_groups, list(v.state.items())])
    if isinstance(v, dict): return [(frozen(k), frozen(w)) for k, w in v.items()]
    if isinstance(v, (list, tuple)): return [frozen(w) for w in v]
    return v if isinstance(v, (int, float, str, bool, type(None))) else (type(v).__name__, id(v))
def raises(): raise KeyError('of the user')
def attempt(call, **things):
    if "lazy" not in things: things["generator"] = t.get_rng_state
    seen = lambda: {k: frozen(v() if k in ('generator', 'version') else v) for k, v in things.items()}
    before = seen()
    try: call()
    except Exception: pass
    else: return 'no error'
    after = seen()
    return ' '.join(k for k in before if before[k] != after[k]) or 'unchanged'
"""


def modules() -> Iterator[tuple[str, list[str]]]:
    """Modules called with inputs that do not fit, in training. A lazy module may be made by them, as in torch;
    spectral_norm may improve its vectors."""
    for line in MODULES.strip().split("\n"):
        module, good = line.split(" | ")
        lines = [f"given = ({good},)", f"m = t.nn.{module}", "x = given[0]"]
        if "Lazy" not in module:
            lines.insert(2, "m(*given)")
        things = "input=x, lazy=1" if "Lazy" in module else "module=m, input=x"
        calls = [f"return attempt(lambda: m({bad}), {things})" for bad in BAD_INPUTS]
        yield module, ["\n".join([*lines, call]) for call in calls]


def optimizers() -> Iterator[tuple[str, list[str]]]:
    """Optimizers after two steps, then a call that fails. What the call itself sets counts as given: those programs
    compare parameters and state alone."""
    for optimizer in OPTIMIZERS.replace("\n", " ").split(";"):
        name = optimizer.strip()
        lines = [
            "ps = [t.nn.Parameter(t.eye(2) + i) for i in range(2)]",
            f"o = t.optim.{name}",
            "def closure():",
            "    for i, p in enumerate(ps): p.grad = t.ones(2, 2) * (i + 1)",
            "    return t.tensor(1.0)",
            "closure(); o.step(closure) if 'LBFGS' in type(o).__name__ else o.step()",
            "closure()",
        ]
        things = "numbers=[p.detach() for p in ps], state=list(o.state.values())"
        texts = []
        for call in OPTIMIZER_CALLS:
            also = "" if call.startswith("(") else ", optimizer=o"
            texts.append("\n".join([*lines, f"return attempt(lambda: {call}, {things}{also})"]))
        yield name, texts


def draws() -> Iterator[tuple[str, list[str]]]:
    """Calls that draw random numbers, with arguments that cannot be."""
    for call in DRAWS.replace("\n", " ").split(";"):
        name = call.strip()
        yield name, [f"x = t.ones(2, 3, 4, 4)\nreturn attempt(lambda: {name}, input=x)"]


def writes() -> Iterator[tuple[str, Callable[[], list[str]]]]:
    """In-place ops of torch's database, with an argument that does not fit."""
    for number, op in enumerate(operators.operators()):
        if op.inplace_variant and re.fullmatch(r"\w+", op.name):
            yield op.name, lambda number=number: written(number)


def written(number: int) -> list[str]:
    """Programs of one in-place op: each argument of a sample in turn is replaced by WRONG."""
    name, texts = operators.operators()[number].name, []
    for sample in operators.samples(number, "float32")[:3]:
        lines: list[str] = []
        names: list[str] = []
        plain = random.Random(0)
        try:
            args = [operators.written(plain, a, lines, names) for a in (sample.input, *sample.args)]
            named = [f"{k}={operators.written(plain, v, lines, names)}" for k, v in sample.kwargs.items()]
        except TypeError:
            continue
        for i in range(1, len(args)):
            for wrong in WRONG:
                wrong = wrong.replace("w", args[i]) if args[i].isidentifier() else wrong.replace("w", "x0")
                call = f"x0.{name}_({', '.join([*args[1:i], wrong, *args[i + 1 :], *named])})"
                for leaf in ("x0", "x0 = x0 * t.ones((), requires_grad=True)"):
                    texts.append(
                        "\n".join([*lines, leaf, f"return attempt(lambda: {call}, x0=x0, version=lambda: x0._version)"])
                    )
        texts.append("\n".join([*lines, f"return attempt(lambda: x0.{name}_(surplus=1), x0=x0)"]))
    return texts


def groups(seed: int, only: str = "") -> Iterator[tuple[str, Callable[[], list[str]]]]:
    """All groups in a random order."""
    found: list[tuple[str, Callable[[], list[str]]]] = [*writes()]
    for of_kind in (modules, optimizers, draws):
        found += [(name, lambda texts=texts: texts) for name, texts in of_kind()]
    random.Random(seed).shuffle(found)
    for name, texts in found:
        if re.search(only, name):
            yield name, lambda texts=texts: [STATE + text for text in texts()]


def compare(torchs: harness.Outcome, ours: harness.Outcome) -> str:
    """'changed' where a failure changed something in rushlight; 'error' where the program itself failed there and not
    in torch."""
    if ours.error:
        return "same" if torchs.error else "error"
    return "same" if ours.leaves[0] in ("unchanged", "no error") else "changed"


if __name__ == "__main__":
    sys.exit(forked.main("failures", __doc__, groups, compare))
