"""Random bodies of functions: ops, views and in-place writes on tensors of small shapes.

A line is a template with holes, filled with random variables, dimensions and numbers. `{C}` stands where torch's result
lies in another order (docs/differences.md). torch runs each line as soon as it is made, on one sample: a line that
torch refuses is dropped, and the shapes of the results are known."""

from __future__ import annotations

import random
import re
from typing import Any

import torch

LIMIT = 36  # elements of a value, at most

POINTWISE = """
{a}.sin()|{a}.cos()|{a}.tanh()|{a}.sigmoid()|({a} * 0.5).exp()|{a} * {a}|{a} ** 2|{a} ** 3|{a} * 1|{a}.clone()|-{a}
{a}.abs()|{a}.relu()|F.softplus({a})|F.gelu({a})|F.gelu({a}, approximate="tanh")|F.silu({a})|F.elu({a})|F.mish({a})
F.leaky_relu({a}, 0.1)|F.hardtanh({a}, -0.5, 0.5)|t.erf({a})|t.expm1({a})|({a}.abs() + 1).log()|({a} * {a} + 1).sqrt()
1 / ({a} * {a} + 1)|({a} * {a} + 0.5).reciprocal()|({a} * {a} + 1).rsqrt()|t.atan({a})|t.asinh({a})|t.sinc({a})
{a}.clamp(-0.4, 0.5)|{a}.clamp(min={s})|{a}.clamp(max={s})|{a}.clamp({b}.abs().neg() - 0.1, {b}.abs())|{a}.clamp(max={b})
F.logsigmoid({a})|F.hardswish({a})|F.celu({a})|F.selu({a})|F.softsign({a})|F.tanhshrink({a})|F.softshrink({a}, 0.2)
F.hardshrink({a}, 0.2)|F.threshold({a}, 0.1, 0.3)|F.hardsigmoid({a})|F.relu6({a} * 4)|F.logsigmoid({a})|t.sgn({a})
{a}.sign()|{a}.floor()|{a}.round()|{a}.trunc()|{a}.nan_to_num()|{a}.logit(eps=0.2)|t.square({a})
t.lgamma({a} * {a} + 1)|t.digamma({a} * {a} + 1)|t.special.i0({a})|t.erfinv({a}.tanh() * 0.9)|t.special.ndtr({a})
t.special.entr({a}.abs() + 0.1)|t.special.expit({a})|{a}.deg2rad()|{a}.log1p()|t.log2({a} * {a} + 1)|t.exp2({a})
t.cosh({a})|t.sinh({a})|t.acos({a}.tanh() * 0.9)|t.asin({a}.tanh() * 0.9)|t.tan({a} * 0.5)|t.log_softmax({a}, {d})
{a} + {b}|{a} - {b}|{a} * {b}|{a} * {b}|{a} / ({b} * {b} + 1)|{a} + {s}|{s} * {a}|{s} - {a}|t.add({a}, {b}, alpha={s})
t.sub({a}, {b}, alpha={s})|t.maximum({a}, {b})|t.minimum({a}, {b})|t.fmax({a}, {b})|t.atan2({a}, {b} * {b} + 1)
t.where({m}, {a}, {b})|t.where({m}, {a}, {s})|t.where({m}, {a} * 2, {b})|({a} * {a} + 1) ** {b}|{s1} ** {a}
t.hypot({a} * {a} + 1, {b})|t.lerp({a}, {b}, {s})|t.lerp({a}, {b}, {c})|t.addcmul({a}, {b}, {c}, value={s})
t.addcdiv({a}, {b}, {c} * {c} + 1, value={s})|t.fmod({a} * 3, 0.7)|t.remainder({a} * 3, 0.7)|t.logaddexp({a}, {b})
t.copysign({a}, {b})|t.xlogy({a}, {b} * {b} + 1)|t.special.xlog1py({a}, {b} * {b})|F.mse_loss({a}, {b}, reduction={red})
F.smooth_l1_loss({a}, {b}, reduction={red})|F.l1_loss({a}, {b}, reduction={red})|F.huber_loss({a}, {b}, reduction={red})
F.binary_cross_entropy({a}.sigmoid(), {b}.sigmoid(), reduction={red})|F.kl_div({a}, {b}.softmax({d}), reduction={red})
F.binary_cross_entropy_with_logits({a}, {b}, reduction={red})|F.soft_margin_loss({a}, {b}.sign(), reduction={red})
F.poisson_nll_loss({a}, {b}.abs(), reduction={red})|F.gaussian_nll_loss({a}, {b}, {c} * {c} + 1, reduction={red})
t.rsub({a}, {b})|t.true_divide({a}, {s})|t.float_power({a} * {a} + 1, {b})|t.heaviside({a}, {b})|t.ldexp({a}, {b})
{a}.masked_fill({m}, {s})|{a}.masked_fill({m}, {z})|{a}.double()|{a}.detach() * {b}|{a} * {b}.detach()|{a}.type_as({b})
""".strip()

REDUCTIONS = """
{a}.sum()|{a}.sum({d})|{a}.sum({d}, keepdim=True)|{a}.mean()|{a}.mean({d})|{a}.prod()|{a}.prod({d})|{a}.amax({d})
{a}.amin({d}, keepdim=True)|{a}.max()|{a}.max({d})[0]|{a}.min({d}).values|{a}.var()|{a}.var({d}, unbiased=False)
{a}.std({d}, correction=0)|({a} + 1.5).norm()|{a}.norm(dim={d})|t.linalg.vector_norm({a}, 2, {d})|{a}.norm(1, {d})
t.linalg.vector_norm({a}, 3, {d}, keepdim=True)|{a}.logsumexp({d})|{a}.cumsum({d})|{a}.cumprod({d})|{a}.softmax({d})
F.log_softmax({a}, {d})|F.softmin({a}, {d})|{a}.median({d})[0]|{a}.median()|{a}.sort({d})[0]
{a}.sort({d}, descending=True)[0]
{a}.topk(2, {d})[0]|{a}.kthvalue(1, {d})[0]|{a}.cummax({d})[0]|{a}.cummin({d})[0]|{a}.logcumsumexp({d})|{a}.nansum({d})
F.normalize({a}, dim={d})|t.diff({a}, dim={d})|t.trapezoid({a}, dim={d})|{a}.mode({d})[0]|{a}.aminmax(dim={d})[1]
t.var_mean({a}, {d})[1]|t.std_mean({a}, {d})[0]|{a}.quantile(0.4, {d})|{a}.nanmean({d})|t.dist({a}, {b})
{a}.argmax({d}) * {s}
F.cosine_similarity({a}, {b}, dim={d})|F.layer_norm({a}, {a}.shape[-1:])|F.layer_norm({a}, {a}.shape[-1:], {b}, {c})
F.rms_norm({a}, {a}.shape[-1:])|F.group_norm({a}.reshape(1, 2, -1), 2)|F.instance_norm({a}.reshape(1, 1, -1))
F.batch_norm({a}, None, None, training=True)|F.cross_entropy({a}, {l})|F.nll_loss({a}, {l})|F.glu({a}, {d})
F.cross_entropy({a}, {b}.softmax(-1))|F.cross_entropy({a}, {l}, label_smoothing=0.1)|t.cov({a})|t.trace({a})
F.triplet_margin_loss({a}, {b}, {c})|F.cosine_embedding_loss({a}, {b}, {a}[..., 0].sign())|t.renorm({a}, 2, 0, 0.9)
F.pairwise_distance({a}, {b})|t.cdist({a}, {b})|F.multi_margin_loss({a}, {l})|t.aminmax({a})[0]|{a}.cumsum({d})[..., -1]
{a}.sum((0, 1))|{a}.mean((-1, -2), keepdim=True)|{a}.amax((0, 1))|t.all({a} > 0) * {b}|({a} > 0).sum() * {b}
""".strip()

SHAPES = """
{a}.reshape(-1)|{a}.reshape({Z})|{a}.view({Z})|{a}.flatten()|{a}.unsqueeze({d})|{a}.unsqueeze(-1)|{a}.squeeze()|{a}[None]
{a}.squeeze({d})|{a}.transpose({d}, {e})|{a}.t()|{a}.mT|{a}.T|{a}.permute({P})|{a}.movedim({d}, {e})|{a}.flip({d})
{a}.roll(1, {d})|{a}.expand(2, *{a}.shape)|{a}.repeat(2, *[1] * {a}.dim())|{a}.tile(2)|{a}.narrow({d}, {i0}, 1)
{a}.narrow({d}, 0, 2)|{a}.select({d}, {i0})|{a}[{K}]|{a}[{K}]|{a}[{K}]|{a}[{K}]|{a}[{m}].sum()|{a}.unfold({d}, 2, 1)
{a}.diagonal()|{a}.diag_embed()|t.diag({a})|{a}.tril()|{a}.triu(1)|t.cat([{a}, {b}], {d})|t.cat([{a}, {a}.sin()], {d})
t.stack([{a}, {b}], {d})|{a}.split(1, {d})[0]|{a}.split([1, 2], {d})[1]|{a}.chunk(2, {d})[-1]|{a}.unbind({d})[0]
t.stack({a}.unbind({d}), -1)|F.pad({a}, (1, 0))|F.pad({a}, (0, 1), value={s})|F.pad({a}, (-1, 1))|t.rot90({a})
{a}.repeat_interleave(2, {d})|t.hstack([{a}, {b}])|t.vstack([{a}, {b}])|{a}.gather({d}, {a}.long() * 0 + 1)
{a}.index_select({d}, {I})|{a}.take({I})|t.take_along_dim({a}, {a}.argsort({d}) * 0, {d})|{a}.expand_as({b})
{a}.broadcast_to({b}.shape)|{a}.view_as({a} * 1)|{a}.contiguous()|{a}.mT.contiguous()|{a}.swapaxes({d}, {e})|{a}.ravel()
{a}.unflatten({d}, (-1, 1))|{a}.scatter({d}, {a}.long() * 0, {b})|{a}.scatter_add({d}, {a}.long() * 0, {b})
{a}.index_add({d}, {I}, {b}, alpha={s})|{a}.index_copy({d}, {I}, {b})|{a}.index_fill({d}, {I}, {s})
{a}.index_put(({I},), {b})|{a}.index_put(({I},), {b}, accumulate=True)|{a}.scatter_reduce({d}, {a}.long() * 0, {b}, {R})
{a}.masked_scatter({m}, {b})|t.select_scatter({a}, {b}.select({d}, 0), {d}, {i0}){C}
t.slice_scatter({a}, {b}[:1], 0, 0, 1){C}
t.diagonal_scatter({a}, {b}.diagonal()){C}|t.meshgrid({a}.flatten(), {b}.flatten(), indexing="ij")[0]
t.atleast_2d({a})
t.combinations({a}, 2)|t.block_diag({a}, {b})|t.cartesian_prod({a}, {b})|t.broadcast_tensors({a}, {b})[0]|{a}.put({I}, {b})
F.one_hot({l}, 3) * {a}|t.zeros_like({a}) + {b}|{a}.new_zeros(2) + {a}.sum()|{a}.new_tensor([1.0, 2.0]) * {b}
F.embedding({l}, {a})|F.embedding({l}, {a}, padding_idx=0)|t.tensor_split({a}, 2, {d})[0]|{a}.as_strided((2,), (1,))
F.interpolate({a}.reshape(1, 1, -1), scale_factor=2)|F.avg_pool1d({a}.reshape(1, 1, -1), 2)|F.max_pool1d({a}[None], 2)
F.adaptive_avg_pool1d({a}[None], 2)|F.pixel_shuffle({a}.repeat(4, 1, 1), 2)|{a}.float().double()|{a}.to(t.float32)
""".strip()

PRODUCTS = """
{a} @ {b}|{a} @ {b}.mT|{a}.mT @ {b}|t.mm({a}, {b}.t())|t.mv({a}, {b})|t.dot({a}, {b})|t.outer({a}, {b})|t.inner({a}, {b})
t.einsum("ij,ij->i", {a}, {b})|t.einsum("ij,kj->ik", {a}, {b})|t.einsum("i,j->ij", {a}, {b})|t.einsum("ij->ji", {a})
t.einsum("...i,...i->...", {a}, {b})|F.linear({a}, {b})|F.linear({a}, {b}, {c})|t.addmm({c}, {a}, {b}.t(), alpha={s})
t.addmv({c}, {a}, {b}, beta={s})|t.baddbmm({c}, {a}[None], {b}.mT[None])|t.bmm({a}[None], {b}.mT[None])|t.kron({a}, {b})
t.tensordot({a}, {b}, 1)|t.tensordot({a}, {b}, ([0], [0]))|t.linalg.inv({a} @ {a}.mT + {eye}){C}
t.linalg.det({a} @ {a}.mT + {eye})
t.linalg.solve({a} @ {a}.mT + {eye}, {a}){C}|t.linalg.cholesky({a} @ {a}.mT + {eye}){C}
t.logdet({a} @ {a}.mT + {eye})
t.linalg.matrix_norm({a})|t.matrix_exp(({a} @ {a}.mT) * 0.3)|t.linalg.multi_dot([{a}, {b}.mT, {c}])
t.cross({a}, {b}.cos(), -1)
F.scaled_dot_product_attention({a}[None], {b}[None], {c}[None])|F.bilinear({a}, {b}, {c}[None])|t.vdot({a}, {b})
t.linalg.eigvalsh({a} @ {a}.mT + {eye} * t.arange({n}))|t.linalg.svdvals({a})|t.linalg.pinv({a}){C}
t.linalg.qr({a})[1].abs(){C}
F.conv1d({a}[None], {b}[None])|F.conv1d({a}.reshape(1, 1, -1), {b}.reshape(1, 1, -1)[..., :2], padding=1)
F.conv2d({a}[None, None], {b}[None, None])|F.conv_transpose1d({a}.reshape(1, 1, -1), {b}.reshape(1, 1, -1))
t.linalg.solve_triangular(({a} @ {a}.mT + {eye}).tril(), {a}, upper=False){C}|t.chain_matmul({a}, {b}.mT)
t.ger({a}, {b})
t.linalg.slogdet({a} @ {a}.mT + {eye})[1]|t.addr({c}, {a}, {b})|t.addbmm({a} @ {b}.mT, {a}[None], {b}.mT[None])
""".strip()

WRITES = """
{w}.add_({b})|{w}.add_({b}, alpha={s})|{w}.sub_({b})|{w}.mul_({b})|{w}.div_({b} * {b} + 1)|{w} += {b}|{w} *= {b}|{w} -= {s}
{w}.sin_()|{w}.cos_()|{w}.exp_()|{w}.tanh_()|{w}.sigmoid_()|{w}.neg_()|{w}.abs_()|{w}.relu_()|{w}.square_()|{w}.pow_(2)
F.relu({w}, inplace=True)|F.silu({w}, inplace=True)|F.leaky_relu({w}, 0.1, inplace=True)|F.elu({w}, inplace=True)
F.hardtanh({w}, -0.5, 0.5, inplace=True)|F.threshold({w}, 0.1, 0.3, inplace=True)|F.hardswish({w}, inplace=True)
{w}.addcmul_({b}, {c}, value={s})|{w}.addcdiv_({b}, {c} * {c} + 1)|{w}.lerp_({b}, {s})|{w}.clamp_(-0.4, 0.5)|{w}.erf_()
{w}.clamp_(max={b})|{w}.clamp_(min={b})|{w}.clamp_({b}.abs().neg() - 0.1, {b}.abs())|{w}.copy_({b})|{w}.copy_({b}).mul_({s})
{w}.zero_()|{w}.fill_({s})|{w}.fill_({z})|{w}.masked_fill_({m}, {s})|{w}.masked_fill_({m}, {z})|{w}.masked_scatter_({m}, {b})
{w}.index_add_({d}, {I}, {b})|{w}.index_add_({d}, {I}, {b}, alpha={s})|{w}.index_copy_({d}, {I}, {b})|{w}.floor_()
{w}.index_fill_({d}, {I}, {s})|{w}.index_put_(({I},), {b})|{w}.index_put_(({I},), {b}, accumulate=True)|{w}.put_({I}, {b})
{w}.put_({I}, {b}.flatten(), accumulate=True)|{w}.scatter_({d}, {w}.long() * 0, {b})|{w}.scatter_({d}, {w}.long() * 0, {s})
{w}.scatter_add_({d}, {w}.long() * 0, {b})|{w}.scatter_reduce_({d}, {w}.long() * 0, {b}, {R})|{w}.cumsum_({d})|{w}.log1p_()
{w}.addmm_({b}, {c}.t())|{w}.addmv_({b}, {c})|{w}.addr_({b}, {c})|{w}.tril_()|{w}.triu_()|{w}.index_put_(({m},), {z})
{w}[{K}] = {b}|{w}[{K}] = {b}|{w}[{K}] = {b}|{w}[{K}] = {s}|{w}[{K}] = {z}|{w}[{K}] += {b}|{w}[{K}] *= {s}
{w}[{K}] = {w}[{K}] * 2
{w}[{m}] = {s}|{w}[{m}] = {z}|{w}[{m}] *= {s}|{w}[{K}].mul_({s})|{w}[{K}].add_({b})|{w}[{K}].copy_({b})|{w}.rsqrt_()
{w}.unbind({d})[0].mul_({b})|{w}.unbind({d})[-1].copy_({b})|{w}.chunk(2, {d})[0].add_({b})|{w}.split(1, {d})[0].mul_({s})
{w}.select({d}, {i0}).mul_({b})|{w}.select({d}, {i0}).fill_({z})|{w}.narrow({d}, 0, 1).add_({b})|{w}.diagonal().mul_({s})
{w}.diagonal().copy_({z})|{w}.diagonal().add_({b})|{w}.t().mul_({b})|{w}.mT.add_({b}, alpha={s})|{w}.view(-1).mul_({b})
{w}.view(-1)[:1] = {b}|{w}.view(-1)[1:].add_({b})|{w}.reshape(-1).sin_()|{w}.transpose({d}, {e})[0] = {b}
{w}.flatten()[0] = {s}
{w}.unsqueeze(0).add_({b})|{w}.squeeze().mul_({b})|{w}.fill_diagonal_({s})|{w}.unfold({d}, 1, 1).add_({s})|{w}.nan_to_num_()
{w}.t_()|{w}.unsqueeze_({d})|{w}.transpose_({d}, {e})|{w}.swapaxes_({d}, {e})|{w}.atan2_({b} * {b} + 1)|{w}.hypot_({b})
{w}.fmod_(0.7)|{w}.logit_(eps=0.2)|{w}.expm1_()|{w}.reciprocal_()|{w}.sinh_()|{w}.xlogy_({b} * {b} + 1)
""".strip()

VIEWS = """
{w}.view(-1)|{w}[0]|{w}[1:]|{w}[..., 0]|{w}.t()|{w}.mT|{w}.unbind({d})[0]|{w}.chunk(2, {d})[0]|{w}.split(1, {d})[-1]
{w}.select({d}, {i0})|{w}.narrow({d}, 0, 1)|{w}.diagonal()|{w}.transpose({d}, {e})|{w}.unsqueeze({d})|{w}.squeeze()
{w}[{K}]|{w}.permute({P})|{w}.view({Z})|{w}.flatten()|{w}.reshape({Z})|{w}.detach()|{w}.view_as({w})|{w}.movedim({d}, {e})
{w}[:]|{w}[None]|{w}.expand(1, *{w}.shape)|{w}.unfold({d}, 2, 2)|{w}.swapaxes({d}, {e})
""".strip()

MODULES = [
    "Linear({n}, 2)",
    "Linear({n}, 2, bias=False)",
    "LayerNorm({n})",
    "Sequential(t.nn.Linear({n}, 2), t.nn.Tanh())",
    "Dropout(0.5).eval()",
    "GRUCell({n}, 2)",
    "RNNCell({n}, 2)",
    "LSTMCell({n}, 2)",
    "Softmax(-1)",
    "ReLU(inplace=True)",
    "SiLU(inplace=True)",
    "PReLU()",
    "RMSNorm({n})",
    "BatchNorm1d({n}).eval()",
    "BatchNorm1d({n})",
    "BatchNorm1d({n}, track_running_stats=False)",
    "BatchNorm1d({n}, affine=False)",
    "InstanceNorm1d(2)",
    "Conv1d(2, 2, 2)",
    "Conv1d(2, 2, 1, bias=False)",
    "GroupNorm(1, 2)",
    "Bilinear({n}, {n}, 2)",
    "Flatten(0)",
    "Sequential(t.nn.Linear({n}, {n}), t.nn.ReLU(inplace=True), t.nn.Linear({n}, 1))",
    "MultiheadAttention({n}, 1, batch_first=True)",
    "Sequential(t.nn.Linear({n}, 2), t.nn.LayerNorm(2))",
]


def table(text: str) -> list[str]:
    return [part for line in text.split("\n") for part in line.split("|")]


OPS = {
    "pointwise": table(POINTWISE),
    "reduction": table(REDUCTIONS),
    "shape": table(SHAPES),
    "product": table(PRODUCTS),
    "write": table(WRITES),
    "view": table(VIEWS),
}
WEIGHTS = {"pointwise": 10, "reduction": 4, "shape": 5, "product": 2, "write": 9, "view": 4, "special": 4}
MOVES = re.compile(r"\.(t|unsqueeze|transpose|squeeze|swapaxes|detach)_\(")
SCALARS = ("0.5", "-0.7", "2.0", "1.5", "2", "-1")


def memory(x: torch.Tensor) -> int | None:
    """Where the tensor's memory begins; None for one that has none, which some transform has left behind."""
    try:
        return x.untyped_storage().data_ptr()
    except RuntimeError:
        return None


def apart(x: torch.Tensor) -> bool:
    """Whether each element has a place of its own in memory: torch writes to some that have none."""
    room = 1 + sum((size - 1) * step for size, step in zip(x.shape, x.stride()))
    return not x.numel() or torch.arange(room).as_strided(x.shape, x.stride()).unique().numel() == x.numel()


class Body:
    """The lines of one function, whose arguments and results so far stand in `scope` with the values of one sample."""

    def __init__(self, rng: random.Random, scope: dict, arguments: dict[str, Any], indent: str = "    "):
        self.rng, self.scope, self.indent = rng, {**scope, **arguments}, indent
        self.lines: list[str] = []
        self.floats = [n for n, x in arguments.items() if x.is_floating_point()]
        self.ints = [n for n, x in arguments.items() if x.dtype == torch.int64]
        self.masks = [n for n, x in arguments.items() if x.dtype == torch.bool]
        self.given = list(self.floats)
        self.theirs = {None, *map(memory, arguments.values())}
        self.writes_to_arguments = rng.random() < 0.04

    # -- running lines -----------------------------------------------------------------------------

    def tried(self, line: str, name: str | None = None) -> bool:
        """Whether torch runs the line; then it is the function's next."""
        kept = self.scope.get(name) if name else None
        try:
            exec(line, self.scope)
        except Exception:
            return False
        if name is not None and not self.kept(name):
            self.scope.pop(name, None)
            if kept is not None:
                self.scope[name] = kept
            return False
        self.lines.append(self.indent + line)
        return True

    def kept(self, name: str) -> bool:
        """Whether a result is a tensor of floats, small and finite."""
        x = self.scope.get(name)
        if not isinstance(x, torch.Tensor) or memory(x) is None or not x.is_floating_point():
            return False
        if not 0 < x.numel() <= LIMIT or x.dim() > 4:
            return False
        if not bool(x.isfinite().all()) or float(x.detach().abs().max()) > 1e3:
            return False
        if name not in self.floats:
            self.floats.append(name)
        return True

    def assigned(self, text: str) -> str | None:
        """A new variable with the value of the text."""
        name = f"v{len(self.lines)}"
        while name in self.scope:
            name += "0"
        return name if self.tried(f"{name} = {text}", name) else None

    # -- filling templates -------------------------------------------------------------------------

    def chosen(self) -> str:
        """A variable, one of the last more often."""
        return self.rng.choice(self.floats[-3:] if self.rng.random() < 0.6 else self.floats)

    def like(self, name: str, apart: str | None = None) -> str:
        """A variable of the same shape, more often than not; one that shares no memory with `apart`."""
        found = self.floats if apart is None else [n for n in self.floats if self.memory(n) != self.memory(apart)]
        same = [n for n in found if self.scope[n].shape == self.scope[name].shape and n != name]
        return (
            self.rng.choice(same) if same and self.rng.random() < 0.6 else self.rng.choice(found or [f"{name}.sin()"])
        )

    def memory(self, name: str) -> int | None:
        return memory(self.scope[name])

    def writable(self) -> str | None:
        """A variable that may be written to: its elements have places of their own, which are not those of an argument,
        but for a few functions."""
        found = [
            n
            for n in self.floats
            if (self.writes_to_arguments or self.memory(n) not in self.theirs) and apart(self.scope[n])
        ]
        return self.rng.choice(found) if found else None

    def key(self, x: torch.Tensor) -> str:
        """A key for indexing."""
        rng = self.rng
        parts = [
            "0",
            "1",
            "-1",
            ":",
            "1:",
            ":1",
            "::2",
            "...",
            "None",
            "[1, 0]",
            "t.tensor([0, 1])",
            "t.tensor(1)",
            "[0]",
            "t.tensor([0, 0])",
            "...",
            ":",
            "0",
            "t.tensor([[0, 1]])",
            "True",
            *self.ints,
            *self.ints,
        ]
        count = rng.choice([1, 1, 1, 2, 2, 3])
        if rng.random() < 0.05:
            return self.mask(x)
        chosen = [rng.choice(parts) for _ in range(count)]
        if any("[" in part or part in self.ints for part in chosen):  # with True, torch's vmap writes elsewhere
            chosen = [part for part in chosen if part != "True"]
        return ", ".join(part for i, part in enumerate(chosen) if part != "..." or "..." not in chosen[:i])

    def mask(self, x: torch.Tensor) -> str:
        rng = self.rng
        if self.masks and rng.random() < 0.3:
            return rng.choice(self.masks)
        a = self.chosen()
        return rng.choice(
            [
                f"{a} > 0.1",
                f"{a} < 0.0",
                f"{a}.abs() > 0.5",
                f"{a}[0] > 0",
                "t.tensor([True, False])",
                "t.tensor([True, False, True])",
                "t.tensor(True)",
            ]
        )

    def filled(self, template: str, a: str) -> str:
        """The template with `a` as its subject and random parts."""
        x, rng = self.scope[a], self.rng
        dims = max(x.dim(), 1)
        apart = a if "{w}" in template else None  # torch reads what it has written
        b = self.like(a, apart)
        shape = list(x.shape)
        if rng.random() < 0.5:
            shape = [-1]
        elif len(shape) > 1:
            shape = [shape[0] * shape[1], *shape[2:]]
        else:
            shape = [1, -1]
        holes = {
            "a": lambda: a,
            "w": lambda: a,
            "b": lambda: b,
            "c": lambda: self.like(a, apart),
            "z": self.zero_dim,
            "d": lambda: str(rng.randrange(-dims, dims)),
            "e": lambda: str(rng.randrange(-dims, dims)),
            "s": lambda: rng.choice(SCALARS),
            "s1": lambda: rng.choice(("2.0", "1.5")),
            "n": lambda: str(x.shape[-2] if x.dim() > 1 else 2),
            "C": lambda: ".clone(memory_format=t.contiguous_format)",
            "i0": lambda: str(rng.randrange(-1, 2)),
            "m": lambda: self.mask(x),
            "K": lambda: self.key(x),
            "Z": lambda: ", ".join(map(str, shape)),
            "P": lambda: ", ".join(map(str, rng.sample(range(x.dim()), x.dim()))) or "()",
            "I": lambda: rng.choice([*self.ints, *self.ints, "t.tensor([1, 0])", "t.tensor([0])", "t.tensor([0, 0])"]),
            "l": lambda: rng.choice([*self.ints, "t.tensor([1, 0])", "t.tensor([0, 1, 1])", "t.tensor(1)"]),
            "R": lambda: repr(rng.choice(["sum", "mean", "amax", "amin"])),
            "red": lambda: repr(rng.choice(["sum", "mean", "none"])),
            "eye": lambda: f"t.eye({x.shape[-2] if x.dim() > 1 else 2}).to({a}.dtype)",
        }
        return re.sub(r"\{(\w+)\}", lambda found: holes[found[1]](), template)

    def zero_dim(self) -> str:
        a = self.chosen()
        return a if self.scope[a].dim() == 0 else f"{a}.sum()"

    # -- lines -------------------------------------------------------------------------------------

    def line(self) -> None:
        """Add a line of some kind, if torch runs it."""
        kind = self.rng.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        if kind == "special":
            self.special()
        elif kind == "write":
            self.written()
        elif kind == "view":
            w = self.writable()
            if w is not None and self.rng.random() < 0.8:
                self.view(w)
        else:
            a = self.chosen()
            self.assigned(self.filled(self.rng.choice(OPS[kind]), a))

    def view(self, w: str) -> None:
        """A view, written to, and sometimes used."""
        v = self.assigned(self.filled(self.rng.choice(OPS["view"]), w))
        if v is None:
            return
        if self.rng.random() < 0.3:
            self.tried(self.filled(self.rng.choice(OPS["write"]), w))
        if self.rng.random() < 0.8:
            self.tried(self.filled(self.rng.choice(OPS["write"]), v))
        self.floats.append(w)  # the base matters most

    def written(self) -> None:
        w = self.writable()
        if w is None:
            a = self.chosen()
            w = self.assigned(
                self.rng.choice(
                    [
                        f"{a} * 1",
                        f"{a}.clone()",
                        f"{a}.sin()",
                        f"t.zeros_like({a})",
                        f"{a}.new_zeros({a}.shape)",
                        f"t.empty_like({a}).copy_({a})",
                    ]
                )
            )
        if w is None:
            return
        for _ in range(6):
            line = self.filled(self.rng.choice(OPS["write"]), w)
            if self.memory(w) in self.theirs and MOVES.search(line):  # the shape of an argument is torch's affair
                continue
            if self.tried(line):
                x = self.scope[w]
                if not bool(x.isfinite().all()) or not x.is_floating_point():
                    self.lines.pop()
                return

    def special(self) -> None:
        """Grad modes, hooks, branches, modules, custom Functions and inner transforms."""
        rng, a = self.rng, self.chosen()
        name = f"v{len(self.lines)}"
        text = self.filled(rng.choice(OPS["pointwise"]), a)
        which = rng.randrange(12)
        if which < 2:
            mode = rng.choice(["no_grad", "no_grad", "enable_grad", "inference_mode", "set_grad_enabled"])
            self.tried(f"with t.{mode}({'False' if mode[0] == 's' else ''}): {name} = {text}", name)
        elif which == 2:
            w = self.writable()
            if w:
                self.tried(
                    f"with t.{rng.choice(['no_grad', 'enable_grad'])}(): " + self.filled(rng.choice(OPS["write"]), w)
                )
        elif which == 3:
            if (made := self.assigned(text)) is not None:  # torch crashes for some views
                self.tried(f"if {made}.requires_grad: {made}.register_hook(lambda g: g * 2)")
        elif which == 4:
            self.tried(f"if {a}.sum() > 0: {name} = {text}\n", name)
            if self.lines and self.lines[-1].endswith("\n"):
                self.lines[-1] = self.lines[-1].rstrip("\n")
        elif which < 8:
            self.called(a)
        elif which == 8:
            self.tried(f"with t.autograd.graph.saved_tensors_hooks(lambda q: q, lambda q: q): {name} = {text}", name)
        elif which == 9:
            draw = rng.choice(
                [
                    "t.rand_like({a})",
                    "t.randn_like({a})",
                    "t.bernoulli({a}.sigmoid())",
                    "F.dropout({a}, 0.5)",
                    "t.randn(2, dtype={a}.dtype)",
                ]
            )
            self.assigned(f"{a} * {draw}".replace("{a}", a))
        elif which == 10:
            self.tried(f"with t.autocast('cpu', dtype=t.bfloat16): {name} = {text}", name)
        else:
            self.inner(a)

    def called(self, a: str) -> None:
        """Something made before the function: a custom Function, a module."""
        made = [n for n in self.scope if n[0] in "Sm" and n[1:].isdigit()]
        if not made:
            return
        n = self.rng.choice(made)
        if "inplace=True" in repr(self.scope[n]) and self.memory(a) in self.theirs and not self.writes_to_arguments:
            return
        b = self.like(a)
        scaled = f"{{k: p.detach() * {b}.sigmoid().mean() for k, p in {n}.named_parameters()}}"
        stacked = f"*func.stack_module_state([{n}, {n}])"
        for text in self.rng.sample(
            [f"{n}.apply({a})", f"{n}.apply({a}, {b})"]
            if n[0] == "S"
            else [
                f"{n}({a})",
                f"{n}({a})[0]",
                f"{n}({a}, {b})",
                f"{n}({a}, {a}, {a})[0]",
                f"func.functional_call({n}, {scaled}, ({a},))",
                f"func.vmap(lambda p, u: func.functional_call({n}, (p, u), ({a},)))({stacked})",
            ],
            2,
        ):
            if self.assigned(text):
                return

    def inner(self, a: str) -> None:
        """A transform inside the function, of a function of one line."""
        rng, x = self.rng, self.scope[a]
        self.scope["q"] = x
        text = re.sub(rf"\b{a}\b", "q", self.filled(rng.choice(OPS["pointwise"]), a))
        if rng.random() < 0.3 and self.tried(f"def f0(q): return {text}"):
            text = "f0(q)"
        total = f"lambda q: ({text}).sum()"
        self.assigned(
            rng.choice(
                [
                    f"func.grad({total})({a})",
                    f"func.vmap(lambda q: {text})({a})",
                    f"func.jvp(lambda q: {text}, ({a},), ({a}.cos(),))[1]",
                    f"func.vjp(lambda q: {text}, {a})[1](t.ones_like({a}))[0]",
                    f"func.jacrev({total})({a})",
                    f"func.jacfwd({total})({a})",
                    f"func.vmap(func.grad({total}))({a})",
                    f"func.grad_and_value({total})({a})[0]",
                    f"func.hessian({total})({a}).sum(0)",
                    f"t.utils.checkpoint.checkpoint(lambda q: {text}, {a}, use_reentrant=False)",
                ]
            )
        )
        self.scope.pop("q", None)

    def result(self) -> str:
        """What the function returns."""
        rng = self.rng
        last = self.floats[-1]
        made = [n for n in self.floats if n not in self.given] or self.floats
        last = last if rng.random() < 0.7 else rng.choice(made)
        other = rng.choice(made)
        return rng.choices(
            [last, f"{last}, {other}", f"{last} + {other}.sum()", f"{last}.sum() * {other}"], [5, 1, 2, 1]
        )[0]
