"""Served models under rushlight.compile: functions without gradients, which become one function of machine code
(rushlight/compile/native), against the same function run eagerly.

A program is a chain of layers and functions on one tensor, with residual sums, concatenations and several results. It is
called with numbers of several kinds: small, large, zeros, infinities and nan. A native function that its own comparison
with eager refuses is an error, too."""

from __future__ import annotations

import random

from harness import Side, library

SIZES = (1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 17, 20, 31, 32, 33, 40)
POINTWISE = (
    "F.relu({})", "F.gelu({})", "t.tanh({})", "t.sigmoid({}) * 2", "{0} * {0}", "F.silu({})", "F.hardswish({})", "-{}",
    "{} * 0.5 + 1", "t.where({0} > 0, {0}, {0} * 0.1)", "{}.abs().sqrt()", "F.softplus({})", "t.clamp({}, -1, 2)",
    "F.elu({})", "t.exp(-{}.abs())", "F.leaky_relu({}, 0.2)", "{0} / (1 + {0}.abs())", "F.mish({})", "t.sin({})",
)  # fmt: skip
VALUES = ("t.randn({})", "t.randn({}) * 100", "t.zeros({})", "special(t.randn({}))", "t.randn({}).clamp(-1, 1)")


def sides() -> tuple[Side, Side]:
    ours = library("rushlight")
    from rushlight.compile.run.program import Program

    drop = Program.drop_native

    def checked(self: Program, reason: str) -> None:
        if "NumPy" not in reason:
            raise AssertionError(reason)
        drop(self, reason)

    Program.drop_native = checked  # type: ignore[method-assign]
    return Side("eager", ours, {"compile_": lambda f: f}), Side("compiled", ours, {"compile_": ours.compile})


class Writer:
    """`layers`: lines that make modules; `lines`: the function's body. The present value is h, of `shape`."""

    def __init__(self, rng: random.Random):
        self.rng = rng
        self.layers: list[str] = []
        self.lines: list[str] = []
        self.shape = self.first_shape()
        self.kept: list[tuple[str, tuple[int, ...]]] = []
        self.tokens = False

    def first_shape(self) -> tuple[int, ...]:
        r = self.rng
        n = r.choice((1, 1, 2, 3, 5))
        size = lambda *most: r.choice([k for k in SIZES if k <= (most or (40,))[0]])
        return r.choice(
            [(n, size(20), size(17), size(17)), (n, size(20), size(33)), (n, size()), (n, size(17), size())]
        )

    def layer(self, text: str) -> str:
        self.layers.append(f"m{len(self.layers)} = t.nn.{text}")
        return f"m{len(self.layers) - 1}"

    def put(self, text: str, shape: tuple[int, ...] | None = None) -> None:
        self.lines.append(f"h = {text}")
        self.shape = self.shape if shape is None else shape

    # -- steps; each leaves the value as it is if it does not fit --

    def pointwise(self) -> None:
        self.put(self.rng.choice(POINTWISE).format("h"))

    def constant(self) -> None:
        r, n = self.rng, len(self.shape)
        small = [k if r.random() < 0.5 else 1 for k in self.shape[r.randrange(n) :]]
        self.put(f"h {r.choice('+-*')} p{len(self.layers)}")
        self.layers.append(f"p{len(self.layers)} = t.nn.Parameter(t.randn({small}))")

    def linear(self) -> None:
        k = self.rng.choice(SIZES)
        self.put(
            f"{self.layer(f'Linear({self.shape[-1]}, {k}, bias={self.rng.random() < 0.7})')}(h)", (*self.shape[:-1], k)
        )

    def convolution(self) -> None:
        r, d = self.rng, len(self.shape) - 2
        if d not in (1, 2):
            return
        channels = self.shape[1]
        groups = r.choice([1, 1, channels, *(g for g in (2, 3, 4) if channels % g == 0)])
        filters = groups * r.choice((1, 1, 2, 3)) if groups > 1 else r.choice(SIZES)
        kernel, stride, padding, dilation = (
            r.choice((1, 2, 3, 3, 5)),
            r.choice((1, 1, 2)),
            r.choice((0, 1, 2)),
            r.choice((1, 1, 2)),
        )
        sizes = [(n + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1 for n in self.shape[2:]]
        if min(sizes) < 1:
            return
        made = self.layer(
            f"Conv{d}d({channels}, {filters}, {kernel}, {stride}, {padding}, {dilation}, {groups}, {r.random() < 0.6})"
        )
        self.put(f"{made}(h)", (self.shape[0], filters, *sizes))
        if r.random() < 0.5:
            self.batch_norm()

    def turned(self) -> None:
        r, d = self.rng, len(self.shape) - 2
        if d not in (1, 2) or max(self.shape[2:]) > 20:
            return
        kernel, stride, padding, filters = r.choice((1, 2, 3)), r.choice((1, 2)), r.choice((0, 1)), r.choice(SIZES[:10])
        sizes = [(n - 1) * stride - 2 * padding + kernel for n in self.shape[2:]]
        if min(sizes) < 1 or padding >= kernel:
            return
        made = self.layer(f"ConvTranspose{d}d({self.shape[1]}, {filters}, {kernel}, {stride}, {padding})")
        self.put(f"{made}(h)", (self.shape[0], filters, *sizes))

    def batch_norm(self) -> None:
        d = len(self.shape) - 2
        if d < 0:
            return
        made = self.layer(f"BatchNorm{max(d, 1)}d({self.shape[1]})")
        self.layers.append(
            f"{made}.running_mean.normal_(); {made}.running_var.uniform_(0.5, 2); {made}.weight.data.normal_()"
        )
        self.put(f"{made}(h)")

    def pooling(self) -> None:
        r, d = self.rng, len(self.shape) - 2
        if d not in (1, 2):
            return
        kernel, stride = r.choice((2, 3)), r.choice((1, 2, 3))
        padding = r.choice((0, kernel // 2))
        sizes = [(n + 2 * padding - kernel) // stride + 1 for n in self.shape[2:]]
        if min(sizes) < 1:
            return
        self.put(f"F.{r.choice(('max', 'avg'))}_pool{d}d(h, {kernel}, {stride}, {padding})", (*self.shape[:2], *sizes))

    def adaptive(self) -> None:
        d = len(self.shape) - 2
        if d in (1, 2):
            self.put(f"F.adaptive_avg_pool{d}d(h, 1)", (*self.shape[:2], *(1,) * d))

    def rows(self) -> None:
        r, k = self.rng, self.shape[-1]
        if r.random() < 0.5 and k > 1:
            self.put(f"{self.layer(f'LayerNorm({k})')}(h)")
        else:
            self.put(f"F.{r.choice(('softmax', 'log_softmax'))}(h, {r.randrange(len(self.shape))})")

    def group_norm(self) -> None:
        groups = [g for g in (1, 2, 4) if len(self.shape) > 1 and self.shape[1] % g == 0]
        if groups and self.shape[-1] > 1:
            self.put(f"{self.layer(f'GroupNorm({self.rng.choice(groups)}, {self.shape[1]})')}(h)")

    def reduction(self) -> None:
        r, d = self.rng, self.rng.randrange(len(self.shape))
        keep = r.random() < 0.5 or len(self.shape) < 3
        shape = [1 if i == d else n for i, n in enumerate(self.shape) if keep or i != d]
        self.put(f"h.{r.choice(('sum', 'mean', 'amax', 'amin'))}({d}, keepdim={keep})", tuple(shape))

    def product(self) -> None:
        if len(self.shape) > 1 and self.shape[-2] * self.shape[-1] < 1500:
            self.put("h @ h.mT * 0.1", (*self.shape[:-1], self.shape[-2]))

    def attention(self) -> None:
        r = self.rng
        if len(self.shape) != 3:
            return
        heads = r.choice([k for k in (1, 2, 4) if self.shape[-1] % k == 0])
        n, s, f = self.shape
        self.lines.append(f"q = h.view({n}, {s}, {heads}, {f // heads}).transpose(1, 2)")
        mask = r.choice(("", "", f", attn_mask=t.ones({s}, {s}).tril() > 0", ", is_causal=True"))
        self.put(f"F.scaled_dot_product_attention(q, q * 0.5, q{mask}).transpose(1, 2).reshape({n}, {s}, {f})")

    def recurrent(self) -> None:
        if len(self.shape) != 3:
            return
        hidden = self.rng.choice(SIZES)
        kind = self.rng.choice(("LSTM", "GRU", "RNN"))
        twice = self.rng.random() < 0.3
        made = self.layer(f"{kind}({self.shape[-1]}, {hidden}, batch_first=True, bidirectional={twice})")
        self.put(f"{made}(h)[0]", (*self.shape[:2], hidden * (1 + twice)))

    def layout(self) -> None:
        r, n = self.rng, len(self.shape)
        kind = r.randrange(4)
        if kind == 0 and n > 2:
            i, j = r.sample(range(1, n), 2)
            shape = list(self.shape)
            shape[i], shape[j] = shape[j], shape[i]
            self.put(f"h.transpose({i}, {j})", tuple(shape))
        elif kind == 1 and n > 2:
            size = 1
            for k in self.shape[1:]:
                size *= k
            if size <= 600:
                self.put("h.flatten(1)", (self.shape[0], size))
        elif kind == 2 and self.shape[-1] > 1:
            start = r.randrange(self.shape[-1])
            self.put(f"h[..., {start}:]", (*self.shape[:-1], self.shape[-1] - start))
        elif n == 2:
            self.put("h.unsqueeze(1)", (self.shape[0], 1, self.shape[1]))

    def joined(self) -> None:
        r, d = self.rng, self.rng.randrange(len(self.shape))
        for name, shape in self.kept:
            if len(shape) == len(self.shape) and all(
                a == b for i, (a, b) in enumerate(zip(shape, self.shape)) if i != d
            ):
                grown = tuple(a + b if i == d else a for i, (a, b) in enumerate(zip(self.shape, shape)))
                return self.put(f"t.cat([h, {name}], {d})", grown)
        pad = [r.randrange(3), r.randrange(3)]
        self.put(f"F.pad(h, {pad})", (*self.shape[:-1], self.shape[-1] + sum(pad)))

    def residual(self) -> None:
        for name, shape in self.kept:
            if shape == self.shape:
                return self.put(f"h {self.rng.choice('+*')} {name}")
        self.keep()

    def keep(self) -> None:
        name = f"k{len(self.kept)}"
        self.lines.append(f"{name} = h")
        self.kept.append((name, self.shape))

    def resized(self) -> None:
        if len(self.shape) == 4 and max(self.shape[2:]) <= 17:
            mode = self.rng.choice(("'nearest'", "'bilinear', align_corners=False"))
            self.put(
                f"F.interpolate(h, scale_factor=2, mode={mode})", (*self.shape[:2], *(2 * n for n in self.shape[2:]))
            )

    def gathered(self) -> None:
        k = self.rng.choice(SIZES)
        d = self.rng.randrange(len(self.shape))
        self.put(
            f"h.index_select({d}, i{len(self.layers)})", tuple(k if i == d else n for i, n in enumerate(self.shape))
        )
        self.layers.append(f"i{len(self.layers)} = t.randint(0, {self.shape_before(d)}, ({k},))")

    def shape_before(self, d: int) -> int:
        """The size of a dimension before `gathered` has changed it: at least 1 of the present value."""
        return self.sizes[d]

    def step(self) -> None:
        self.sizes = self.shape
        self.rng.choice(STEPS)(self)


STEPS = [
    *5 * [Writer.pointwise], Writer.constant, *2 * [Writer.linear], *3 * [Writer.convolution], Writer.turned,
    Writer.batch_norm, Writer.pooling, Writer.adaptive, *2 * [Writer.rows], Writer.group_norm, Writer.reduction,
    Writer.product, Writer.attention, Writer.recurrent, *2 * [Writer.layout], Writer.joined, *2 * [Writer.residual],
    Writer.keep, Writer.resized, Writer.gathered,
]  # fmt: skip


def program(rng: random.Random) -> str:
    writer = Writer(rng)
    shape = writer.shape
    for _ in range(rng.randint(1, 9)):
        size = 1
        for k in writer.shape:
            size *= k
        if size < 20_000:
            writer.step()
    results = ["h + 0", *(f"{name} * 2" for name, _ in writer.kept if rng.random() < 0.3)]
    given = [rng.choice(VALUES).format(list(shape)) for _ in range(2)]
    body = "\n".join(f"    {line}" for line in (*writer.lines, f"return {', '.join(results)},"))
    d = rng.choice((0, 0, rng.randrange(len(shape))))  # the dimension whose size differs from call to call
    other = ", ".join("n" if k == d else str(size) for k, size in enumerate(shape))
    sizes = rng.sample(range(1, 12), 5)
    modules = "\n".join(writer.layers)
    norms = "\n".join(f"m{k}.eval()" for k, line in enumerate(writer.layers) if line.startswith(f"m{k} = "))
    return f"""def special(x):
    x.view(-1)[::3] = float("inf")
    x.view(-1)[1::4] = -float("inf")
    x.view(-1)[2::7] = float("nan")
    return x
{modules}
{norms}
def f(h):
{body}
g = compile_(f)
found = []
with t.no_grad():
    x = t.randn({list(shape)})
    for given in (x, x, {given[0]}, {given[1]}, x):
        found.append(g(given))
    for n in {sizes}:
        try:
            found.append(g(t.randn([{other}])))
        except Exception as error:
            found.append(type(error).__name__)
return found"""
