"""Whole trainings by torch and by rushlight: random modules, losses, optimizers, schedules, mixed precision,
accumulation, averages, and a checkpoint in the middle that other objects read.

The losses, the parameters, the optimizer's state, the rates and the next random number are compared. A bias before a
normalization has a gradient of rounding noise only, which Adam turns into whole steps; so such layers have no bias."""

from __future__ import annotations

import random
import re

HEAD = """
import io
nn, optim = t.nn, t.optim
S = optim.lr_scheduler
class Residual(nn.Module):
    def __init__(self, *layers):
        super().__init__()
        self.inner = nn.Sequential(*layers)
        self.scale = nn.Parameter(t.full((1,), 0.5))
    def forward(self, x): return x + self.scale * self.inner(x)
class Recurrent(nn.Module):
    def __init__(self, kind, **settings):
        super().__init__()
        self.cell = getattr(nn, kind)(3, 3, batch_first=True, **settings)
    def forward(self, x):
        h = self.cell(x.reshape(len(x), 2, 3))[0]
        return h.reshape(len(x), -1)[:, :6]
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attend = nn.MultiheadAttention(3, 1, bias=False, batch_first=True)
    def forward(self, x):
        h = x.reshape(len(x), 2, 3)
        return self.attend(h, h, h, need_weights=False)[0].reshape(len(x), 6)
class Checkpointed(nn.Module):
    def __init__(self, *layers):
        super().__init__()
        self.inner = nn.Sequential(*layers)
    def forward(self, x):
        return t.utils.checkpoint.checkpoint(self.inner, x, use_reentrant=False)
""".strip()

ACTIVATIONS = [
    *("nn.ReLU()", "nn.Tanh()", "nn.GELU()", "nn.GELU('tanh')", "nn.SiLU()", "nn.ELU()"),
    *("nn.Softplus()", "nn.LeakyReLU(0.1)", "nn.Mish()", "nn.PReLU()", "nn.Sigmoid()"),
    *("nn.Hardswish()", "nn.CELU()", "nn.LogSigmoid()", "nn.Softsign()", "nn.Tanhshrink()"),
    *("nn.Hardtanh()", "nn.ReLU6()", "nn.SELU()", "nn.Softmax(1)", "nn.Identity()"),
]
NORMS = [
    *("nn.BatchNorm1d(6)", "nn.LayerNorm(6)", "nn.GroupNorm(2, 6)", "nn.RMSNorm(6)"),
    *("nn.BatchNorm1d(6, momentum=None)", "nn.BatchNorm1d(6, affine=False)"),
    "nn.BatchNorm1d(6, track_running_stats=False)",
]
IMAGES = [
    "nn.Unflatten(1, (1, 2, 3)), nn.Conv2d(1, 2, 3, padding=1), nn.Flatten(), nn.Linear(12, 6)",
    "nn.Unflatten(1, (2, 3)), nn.Conv1d(2, 4, 2), nn.ReLU(), nn.Flatten(), nn.Linear(8, 6)",
    "nn.Unflatten(1, (1, 2, 3)), nn.ConvTranspose2d(1, 1, 2), nn.MaxPool2d(2), nn.Flatten(), nn.LazyLinear(6)",
    "nn.Unflatten(1, (1, 2, 3)), nn.Conv2d(1, 3, 2, bias=False), nn.BatchNorm2d(3), nn.Flatten(), nn.Linear(6, 6)",
    "nn.Unflatten(1, (2, 3)), nn.AdaptiveAvgPool1d(3), nn.Flatten()",
    "nn.Unflatten(1, (2, 1, 3)), nn.InstanceNorm2d(2, affine=True), nn.Flatten()",
    "nn.Unflatten(1, (2, 3)), nn.Upsample(6, mode='linear'), nn.AvgPool1d(2), nn.Flatten()",
]
# Not in a checkpoint: spectral_norm computes another weight in each of the two runs.
SPECTRAL = "nn.utils.spectral_norm(nn.Linear(6, 6))"
LINEAR = [
    *("nn.Linear(6, 6)", "nn.Linear(6, 6)", SPECTRAL),
    "nn.utils.parametrizations.weight_norm(nn.Linear(6, 6))",
    "nn.utils.parametrizations.orthogonal(nn.Linear(6, 6))",
]
DROPOUTS = ["nn.Dropout(0.2)", "nn.AlphaDropout(0.1)", "nn.FeatureAlphaDropout(0.1)"]
LOSSES = [
    *("F.mse_loss(o, y)", "F.l1_loss(o, y)", "F.smooth_l1_loss(o, y)", "F.huber_loss(o, y)"),
    "F.cross_entropy(o, y.argmax(1), label_smoothing=0.1)",
    "F.cross_entropy(o, y.softmax(1))",
    "F.nll_loss(F.log_softmax(o, 1), y.argmax(1), weight=t.arange(1., 7.))",
    "F.binary_cross_entropy_with_logits(o, (y > 0).to(o.dtype))",
    "F.kl_div(o.log_softmax(1), y.softmax(1), reduction='batchmean')",
    "F.gaussian_nll_loss(o, y, F.softplus(o) + 0.1)",
    "F.multi_margin_loss(o, y.argmax(1))",
    "F.poisson_nll_loss(o, y.abs())",
    "F.triplet_margin_loss(o, y, x)",
    "F.cosine_embedding_loss(o, y, t.ones(len(o)))",
    "F.mse_loss(o, y) + 0.01 * sum(p.abs().sum() for p in m.parameters())",
]
# Not centered RMSprop, nor SGD with nesterov: the first divides by a difference of nearly equal numbers, the second
# adds to `.grad` in torch's foreach form (docs/differences.md).
OPTIMIZERS = [
    *("SGD({p}, 0.05)", "SGD({p}, 0.05, momentum=0.9)", "Adam({p}, 0.01)"),
    *("SGD({p}, 0.05, momentum=0.9, dampening=0.1, weight_decay=0.01)", "AdamW({p}, 0.01)"),
    *("Adam({p}, 0.01, amsgrad=True, weight_decay=0.01)", "AdamW({p}, 0.01, amsgrad=True)"),
    *("RMSprop({p}, 0.01)", "RMSprop({p}, 0.01, momentum=0.9)", "NAdam({p}, 0.01)"),
    *("Adagrad({p}, 0.05)", "Adadelta({p})", "RAdam({p}, 0.01)", "Adamax({p}, 0.01)"),
    *("ASGD({p}, 0.01)", "NAdam({p}, 0.01, decoupled_weight_decay=True, weight_decay=0.1)"),
    *("Adagrad({p}, 0.05, lr_decay=0.1)", "SGD({p}, 0.05, maximize=True)"),
]
FORMS = ["", "", "", ", foreach=True", ", foreach=False"]
PARAMETERS = [
    *("m.parameters()", "m.parameters()", "m.named_parameters()"),
    "[{'params': [p], 'weight_decay': 0.01 * i} for i, p in enumerate(m.parameters())]",
    "[p for p in m.parameters() if p.requires_grad]",
]
SCHEDULES = [
    *("S.StepLR(o, 2, 0.5)", "S.ExponentialLR(o, 0.9)", "S.CosineAnnealingLR(o, 5)"),
    *("S.LinearLR(o, 0.5, 1.0, 3)", "S.MultiStepLR(o, [2, 4], 0.5)", "S.PolynomialLR(o, 9, 2.)"),
    *("S.CosineAnnealingWarmRestarts(o, 3)", "S.ConstantLR(o, 0.5, 3)"),
    "S.OneCycleLR(o, 0.1, total_steps=30, cycle_momentum=False)",
    "S.CyclicLR(o, 0.001, 0.1, step_size_up=2, cycle_momentum=False)",
    "S.LambdaLR(o, lambda e: 1 / (1 + e))",
    "S.MultiplicativeLR(o, lambda e: 0.9)",
    "S.SequentialLR(o, [S.LinearLR(o, 0.1, 1.0, 2), S.ExponentialLR(o, 0.8)], [2])",
    "S.ChainedScheduler([S.StepLR(o, 2, 0.5), S.ExponentialLR(o, 0.9)])",
    "S.ReduceLROnPlateau(o, patience=1)",
]


def program(rng: random.Random) -> str:
    amp = rng.random() < 0.12
    double = not amp and rng.random() < 0.8
    schedule = rng.choice([None, *SCHEDULES])
    average = rng.choice([None, None, *AVERAGES])
    body = [*construction(rng, schedule, average, amp), *step(rng, schedule, average, amp)]
    steps = rng.randint(3, 7)
    return "\n".join(
        [
            *HEAD.split("\n"),
            *(["t.set_default_dtype(t.float64)"] if double else []),
            f"t.manual_seed({rng.randint(0, 99)})",
            *body,
            "m, o, s, a = make()",
            "found = []",
            f"for i in range({steps}):",
            *(f"    {line}" for line in middle(rng, steps, schedule)),
            "    found.append(one(m, o, s, a, i))",
            *end(rng, amp),
        ]
    )


def layers(rng: random.Random, depth: int = 0) -> list[str]:
    """The text of some layers from 6 numbers to 6."""
    made = []
    for _ in range(rng.randint(1, 3)):
        kind = rng.random()
        if kind < 0.35:
            made += [rng.choice(LINEAR), rng.choice(ACTIVATIONS)]
        elif kind < 0.5:
            # a nonlinear layer before: else the norm would cancel the shift of an earlier layer
            norm = rng.choice(NORMS)
            made += ["nn.Tanh()", "nn.Linear(6, 6, bias=False)", norm, rng.choice(ACTIVATIONS)]
        elif kind < 0.62:
            made.append(rng.choice(IMAGES))
        elif kind < 0.72:
            made.append(rng.choice(DROPOUTS))
        elif kind < 0.8:
            bidirectional = rng.choice(["", ", bidirectional=True", ", num_layers=2, dropout=0.1"])
            made.append(f"Recurrent('{rng.choice(['LSTM', 'GRU', 'RNN'])}'{bidirectional})")
        elif kind < 0.86:
            made.append("Attention()")
        elif depth < 2:
            outer = rng.choice(["Residual", "Residual", "Checkpointed", "nn.Sequential"])
            inner = ", ".join(layers(rng, depth + 1))
            if outer == "Checkpointed":
                inner = inner.replace(SPECTRAL, "nn.Linear(6, 6)")
            made.append(f"{outer}({inner})")
    return made or ["nn.Linear(6, 6)"]


AVERAGES = [
    "optim.swa_utils.AveragedModel(m)",
    "optim.swa_utils.AveragedModel(m, use_buffers=True)",
    "optim.swa_utils.AveragedModel(m, multi_avg_fn=optim.swa_utils.get_ema_multi_avg_fn(0.9))",
]


def construction(rng: random.Random, schedule: str | None, average: str | None, amp: bool) -> list[str]:
    """The function that makes model, optimizer, schedule and average.

    In mixed precision, rules that divide by the size of a gradient enlarge its rounding: SGD."""
    frozen = rng.random() < 0.2
    inside = [*layers(rng), "nn.Linear(6, 6)"]
    if average is not None:  # a module whose weight is computed cannot be copied
        inside = [re.sub(r"nn\.utils\.(spectral_norm)\((.*?\))\)", r"\2", part) for part in inside]
    optimizer = rng.choice(OPTIMIZERS[:2] if amp else OPTIMIZERS).replace("{p}", rng.choice(PARAMETERS))
    return [
        "def make():",
        f"    m = nn.Sequential({', '.join(inside)})",
        "    m(t.randn(4, 6))",
        *(["    for p in [*m.parameters()][:1]: p.requires_grad_(False)"] if frozen else []),
        f"    o = optim.{optimizer[:-1]}{rng.choice(FORMS)})",
        f"    s = {schedule}",
        f"    a = {average}",
        "    return m, o, s, a",
    ]


def step(rng: random.Random, schedule: str | None, average: str | None, amp: bool) -> list[str]:
    """The function of one step: forward, loss, backward, clipping, update."""
    inside = [
        rng.choice(["o.zero_grad()", "o.zero_grad()", "o.zero_grad(set_to_none=False)"])
        if rng.random() < 0.8
        else "if i % 2 == 0: o.zero_grad()",  # accumulates over two steps
        "x, y = t.randn(4, 6), t.randn(4, 6)",
    ]
    update = [*([rng.choice(CLIPS)] if rng.random() < 0.4 else []), "o.step()"]
    if amp:
        inside += ["with t.autocast('cpu', t.bfloat16): out = m(x)", "out = out.float()"]
    else:
        inside += ["out = m(x)"]
    loss = re.sub(r"\bo\b", "out", rng.choice(LOSSES))
    inside += [f"loss = {loss}", "loss.backward()", *update]
    if schedule is not None:
        inside.append("s.step(1.0)" if "Plateau" in schedule else "s.step()")
    if average is not None:
        inside.append("a.update_parameters(m)")
    return ["def one(m, o, s, a, i):", *(f"    {line}" for line in inside), "    return loss.detach()"]


CLIPS = [
    "nn.utils.clip_grad_norm_(m.parameters(), 0.5)",
    "nn.utils.clip_grad_norm_(m.parameters(), 1.0, float('inf'))",
    "nn.utils.clip_grad_value_(m.parameters(), 0.1)",
]


def middle(rng: random.Random, steps: int, schedule: str | None) -> list[str]:
    """What happens between two steps: a checkpoint that new objects read, evaluation, freezing."""
    at = rng.randint(1, steps - 1)
    parts = "[x for x in (m, o, s, a) if x is not None]"
    lines = []
    if rng.random() < 0.7:
        lines += [
            f"if i == {at}:",
            "    file = io.BytesIO()",
            f"    t.save([x.state_dict() for x in {parts}], file)",
            "    file.seek(0)",
            "    states = t.load(file, weights_only=False)",
            "    m, o, s, a = make()",
            f"    for part, state in zip({parts}, states): part.load_state_dict(state)",
        ]
    if rng.random() < 0.3:
        lines += [
            f"if i == {rng.randint(0, steps - 1)}:",
            "    m.eval()",
            "    with t.no_grad(): found.append(m(t.randn(4, 6)))",
            "    m.train()",
        ]
    if rng.random() < 0.15:
        lines.append(f"if i == {at}: [*m.parameters()][-1].requires_grad_(False)")
    if rng.random() < 0.15 and schedule is None:
        lines.append(f"if i == {at}: o.add_param_group({{'params': [nn.Parameter(t.ones(2))]}})")
    return lines


def end(rng: random.Random, amp: bool) -> list[str]:
    """What is compared. Numbers of mixed precision are rounded, since sums in half precision differ in their last
    places."""
    whole = [
        "state = [v for v in m.state_dict().values()]",
        "slots = [v for part in o.state_dict()['state'].values() for v in part.values()]",
        "rates = [g['lr'] for g in o.param_groups]",
        "mean = [] if a is None else [v for v in a.state_dict().values()]",
    ]
    if amp:
        return [*whole, "return [[v.bfloat16() for v in found + state], rates, t.rand(1)]"]
    return [*whole, "return [found, state, slots, rates, mean, t.rand(1)]"]
