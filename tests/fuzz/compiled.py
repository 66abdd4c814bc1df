"""Functions, modules and training steps under rushlight.compile, against the same program run eagerly by rushlight.

`compile_` is rushlight.compile on one side, and gives the function back on the other. Several calls follow each other:
the same shapes until a program is made and used, then other shapes, dtypes, strides, flags and Python arguments in
between. Results, inputs after writes, gradients, parameters, buffers, the optimizer's state and the random numbers are
compared."""

from __future__ import annotations

import random
from typing import Any

import eager
from harness import Side, library
from live import Writer

FAULTS = ("please report this", "a limit of the compiler")


def sides() -> tuple[Side, Side]:
    """rushlight twice: as it is, and compiled. A program of which the compiler itself says that it is wrong is an
    error."""
    ours = library("rushlight")
    from rushlight.compile.run.compiled_function import Compiled

    stop = Compiled.stop

    def checked(self: Compiled, why: str) -> None:
        if any(fault in why for fault in FAULTS):
            raise AssertionError(why)
        stop(self, why)

    Compiled.stop = checked  # type: ignore[method-assign]
    return Side("eager", ours, {"compile_": lambda f, **options: f}), Side("compiled", ours, {"compile_": ours.compile})


def program(rng: random.Random) -> str:
    made = rng.choice([of_function, of_function, of_module, of_step])(rng)
    wide = "BatchNorm" in made or rng.random() < 0.5  # before BatchNorm the gradient of a bias is nothing but rounding
    if "BatchNorm" in made:  # Rprop steps by the sign of a gradient, also of rounding
        made = made.replace("Rprop(m.parameters())", "SGD(m.parameters(), 0.1)")
    return "t.set_default_dtype(t.float64)\n" + made if wide else made


OPTIONS = ["", ', backend="loops"', ', backend="numpy"']

# One call, with a backward pass from its results where they have a graph; what it raised, if it did.
CALL = """
def call(*args):
    try:
        made = g(*args)
        several = made if isinstance(made, tuple) else (made,)
        ends = [o.abs().square().sum() for o in several if o.requires_grad]
        if ends and backward:
            sum(ends).backward()
        out.append([[(o, o.requires_grad, o.is_leaf) for o in several], [after(a) for a in args]])
    except Exception as error:
        out.append(type(error).__name__)
def after(a):
    return [a, a.grad, a.requires_grad] if isinstance(a, t.Tensor) else a
""".strip()


# -- functions -------------------------------------------------------------------------------------


def tensor(rng: random.Random, shape: tuple[int, ...], plain: bool) -> str:
    """A new random tensor of a shape; unless `plain`, perhaps otherwise strided, of another dtype, recorded."""
    sizes = ", ".join(map(str, shape))
    made = f"t.randn({sizes})"
    if plain:
        return made
    if len(shape) == 2:
        m, n = shape
        expanded = f"t.randn(1, {n}).expand({m}, {n})"
        made = rng.choice([made, f"t.randn({n}, {m}).t()", f"t.randn({m}, {2 * n})[:, ::2]", expanded])
    made += rng.choice(["", "", "", "", ".double()", ".half()", ".bfloat16()"])
    return made + rng.choice(["", "", ".requires_grad_()"])


def calls(rng: random.Random, shape: tuple[int, ...], count: int, other: str, wanted: str) -> list[str]:
    """Calls of `call`: some alike, then some that differ in one thing, and alike ones between them."""
    lines = []
    for i in range(rng.randint(5, 9)):
        plain = i < 4 or rng.random() < 0.4
        sizes = shape if plain or rng.random() < 0.7 else rng.choice([(4, 3), (2, 3), (3, 3), (1, 3), (0, 3)])
        given = [tensor(rng, sizes, plain) + (wanted if plain else "") for _ in range(count)]
        number = other if plain else rng.choice([other, "2", "0.5", "True", "-1"])
        line = f"call({', '.join([*given, *([number] if number else [])])})"
        context = (
            ""
            if plain or rng.random() < 0.7
            else rng.choice(
                [
                    "with t.no_grad(): ",
                    "with t.inference_mode(): ",
                    "with t.autocast('cpu'): ",
                    "backward = not backward; ",
                ]
            )
        )
        lines.append(context + line)
    return lines


def of_function(rng: random.Random) -> str:
    """A function of two tensors and perhaps a number: eager statements."""
    lib, shape = library("rushlight"), rng.choice([(2, 3), (2, 3), (3, 3), (4,), (2, 2, 3), ()])
    wanted = rng.choice(["", "", ".requires_grad_()"])
    number = rng.choice(["", "", "2", "0.5"])
    body = body_of(rng, lib, {"x": lib.randn(shape), "y": lib.randn(shape)}, bool(wanted), number)
    return "\n".join(
        [
            "out, backward = [], True",
            f"def f(x, y{', k' if number else ''}):",
            *(f"    {line}" for line in body),
            f"g = compile_(f{rng.choice(OPTIONS)})",
            *CALL.split("\n"),
            *calls(rng, shape, 2, number, wanted),
            "return [out, t.rand(1)]",
        ]
    )


def body_of(rng: random.Random, lib: Any, names: dict[str, Any], wants: bool, number: str = "") -> list[str]:
    """Two to eight statements on these tensors, each tried, and a return of one to three results."""
    writer = Writer(rng, lib, {**names, "log": [], "k": 2})
    writer.made, writer.count = list(names), 12
    for x in names.values():
        x.requires_grad_(wants)
    if number:
        writer.attempt(rng.choice(["x * k", "y + k", "x.clamp(max=k)", "x * 2 if k > 1 else x"]), writer.fresh())
    for _ in range(rng.randint(2, 8)):
        rng.choices(STATEMENTS, weights=[3, 10, 3, 2])[0](writer)
    made = writer.tensors(lambda x: x.is_floating_point()) or list(names)
    several = dict.fromkeys([made[-1]] + rng.sample(made, min(len(made), rng.choice([0, 0, 1, 2]))))
    return [*writer.lines, f"return {', '.join(several)}"]


STATEMENTS = [eager.view, eager.result, eager.write, eager.assignment]


# -- modules and training --------------------------------------------------------------------------

LAYERS = [
    "t.nn.Linear(3, 3)",
    "t.nn.Linear(3, 3, bias=False)",
    "t.nn.ReLU()",
    "t.nn.ReLU(inplace=True)",
    "t.nn.GELU()",
    "t.nn.Tanh()",
    "t.nn.Dropout(0.5)",
    "t.nn.LayerNorm(3)",
    "t.nn.BatchNorm1d(3)",
    "t.nn.SiLU(inplace=True)",
    "t.nn.BatchNorm1d(3, momentum=None)",
    "t.nn.Softmax(-1)",
    "t.nn.Sigmoid()",
    "t.nn.RMSNorm(3)",
    "t.nn.PReLU()",
    "t.nn.utils.parametrizations.weight_norm(t.nn.Linear(3, 3))",
    "t.nn.LeakyReLU(0.2)",
    "t.nn.Identity()",
    "t.nn.utils.parametrizations.spectral_norm(t.nn.Linear(3, 3))",
    "t.nn.Sequential(t.nn.Linear(3, 5), t.nn.Linear(5, 3))",
    "t.nn.Softplus()",
    "t.nn.ELU(inplace=True)",
]
STATE = "[[p, p.grad, p.requires_grad] for p in m.parameters()], list(m.buffers())"


def module(rng: random.Random) -> list[str]:
    """A module m of layers on rows of three numbers, some with forward written out."""
    layers = ", ".join(rng.choice(LAYERS) for _ in range(rng.randint(1, 4)))
    lines = ["t.manual_seed(1)", f"layers = [t.nn.Linear(3, 3), {layers}]"]
    if rng.random() < 0.5:
        return [*lines, "m = t.nn.Sequential(*layers)"]
    lib = library("rushlight")
    body = body_of(rng, lib, {"x": lib.randn(4, 3)}, True)
    return [
        *lines,
        "class M(t.nn.Module):",
        "    def __init__(self):",
        "        super().__init__()",
        "        self.layers = t.nn.Sequential(*layers)",
        "        self.register_buffer('seen', t.zeros(3))",
        "        self.calls = 0",
        "    def forward(self, x):",
        "        x = self.layers(x)",
        *(f"        {line}" for line in rng.sample(NOTES, rng.randint(0, 2)) + body),
        "m = M()",
    ]


NOTES = [
    "self.seen.add_(x.detach().sum(0))",
    "self.seen = self.seen * 0.9 + x.detach().mean(0)",
    "self.calls += 1",
    "x = x * self.seen.sum().sin()",
]


def of_module(rng: random.Random) -> str:
    """A compiled module: training and evaluation, frozen parameters, other batches."""
    lines = calls(rng, (4, 3), 1, "", rng.choice(["", "", ".requires_grad_()"]))
    changes = [
        "m.eval()",
        "m.train()",
        "m.zero_grad()",
        "m.requires_grad_(False)",
        "m.requires_grad_(True)",
        "m.zero_grad(set_to_none=False)",
        "t.manual_seed(3)",
        "for p in m.parameters(): p.data.mul_(0.5)",
        "m.load_state_dict(m.state_dict())",
        "m.double()",
        "m.float()",
    ]
    for _ in range(rng.randint(0, 4)):
        lines.insert(rng.randint(0, len(lines)), rng.choice(changes))
    return "\n".join(
        [
            *module(rng),
            "out, backward = [], True",
            f"g = compile_(m{rng.choice(OPTIONS)})",
            *CALL.split("\n"),
            *lines,
            f"return [out, {STATE}, t.rand(1)]",
        ]
    )


OPTIMIZERS = [
    "SGD(m.parameters(), 0.1)",
    "SGD(m.parameters(), 0.1, momentum=0.9, nesterov=True)",
    "SGD(m.parameters(), 0.1, momentum=0.5, weight_decay=0.1)",
    "Adam(m.parameters(), 0.01)",
    "AdamW(m.parameters(), 0.01)",
    "Adam(m.parameters(), 0.01, amsgrad=True)",
    "Adam(m.parameters(), maximize=True)",
    "AdamW([{'params': p, 'lr': 0.01 * i} for i, p in enumerate(m.parameters())])",
    "Adagrad(m.parameters())",
    "RMSprop(m.parameters(), 0.01, momentum=0.9)",
    "NAdam(m.parameters())",
    "Adadelta(m.parameters())",
    "RAdam(m.parameters())",
    "Adamax(m.parameters())",
    "Rprop(m.parameters())",
]
LOSSES = [
    "F.mse_loss(o, y)",
    "F.cross_entropy(o, y.argmax(1))",
    "(o - y).abs().mean()",
    "F.smooth_l1_loss(o, y)",
    "F.mse_loss(o, y) + 0.1 * sum(p.square().sum() for p in m.parameters())",
    "F.kl_div(o.log_softmax(1), y.softmax(1))",
]
CLIPS = [
    "t.nn.utils.clip_grad_norm_(m.parameters(), 0.5)",
    "t.nn.utils.clip_grad_value_(m.parameters(), 0.1)",
    "for p in m.parameters(): p.grad.mul_(0.5)",
]


def of_step(rng: random.Random) -> str:
    """A compiled training step: forward, loss, backward, clipping, the optimizer's step, a schedule around it."""
    body = [
        rng.choice(
            ["opt.zero_grad()", "opt.zero_grad()", "opt.zero_grad(set_to_none=False)", "m.zero_grad()", "k = 1"]
        ),
        rng.choice(["o = m(x)", "o = m(x)", "with t.autocast('cpu'): o = m(x)", "o = m(x + 0.1 * t.randn_like(x))"]),
        f"loss = {rng.choice(LOSSES)}",
        "loss.backward()",
        *rng.sample(CLIPS, rng.random() < 0.3),
        "opt.step()",
        rng.choice(["return loss", "return loss.detach()", "return loss, o", "return loss.detach(), o.detach()"]),
    ]
    changes = [
        "m.eval()",
        "m.train()",
        "opt.param_groups[0]['lr'] *= 0.5",
        "opt.zero_grad()",
        "t.manual_seed(3)",
        "sched.step()",
        "opt.load_state_dict(opt.state_dict())",
        "next(m.parameters()).requires_grad_(False)",
    ]
    lines = calls(rng, (4, 3), 2, "", "")
    for _ in range(rng.randint(0, 4)):
        lines.insert(rng.randint(0, len(lines)), rng.choice(changes))
    schedule = rng.choice(["StepLR(opt, 1, 0.5)", "ExponentialLR(opt, 0.9)", "CosineAnnealingLR(opt, 5)"])
    return "\n".join(
        [
            *module(rng),
            f"opt = t.optim.{rng.choice(OPTIMIZERS)}",
            f"sched = t.optim.lr_scheduler.{schedule}",
            "def f(x, y):",
            *(f"    {line}" for line in body),
            "out, backward = [], False",
            f"g = compile_(f{rng.choice(OPTIONS)})",
            *CALL.split("\n"),
            *lines,
            f"return [out, {STATE}, [list(s.values()) for s in opt.state.values()], t.rand(1)]",
        ]
    )
