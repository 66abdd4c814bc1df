"""Calls with values that no tensor holds and sizes that no memory has, beside torch: the class of the error counts.

`python tests/fuzz/bad_values.py --seconds 60`. A program is a template of `CALLS` with a value of its list in each gap.
Both sides must answer alike, or raise errors of the same built-in class."""

from __future__ import annotations

import itertools
import random
import re
import sys
from collections.abc import Callable, Iterator

import forked
import harness

# gap -> (a good value, bad values). Values of a wrong kind ('2' or None as a size) are tests/core's.
GAPS = {
    "n": (
        "1",
        "2**31; 2**63; 2**64; 2**70; -2**63 - 1; -2**70; 10**400; math.inf; -math.inf; math.nan; -1; 300; 1e300",
    ),
    "s": ("2", "-1; -2; -7; 0; 2**31; 2**40; 2**62; 2**63; 2**64; 2**70; -2**70; math.nan; 1.5"),
    "i": ("0", "-1; -4; 3; 7; -7; 2**31; 2**63; 2**70; -2**70; math.nan; 1.5"),
    "dtype": ("t.float32", "t.uint8; t.int8; t.int32; t.int64; t.bool; t.float16; t.bfloat16; t.float64; t.complex64"),
    "v": (
        "1",
        """'text'; b'ab'; ''; None; [2**63]; [2**70, 1]; [-2**63 - 1]; [1, 'a']; [[1], [1, 2]]; [[1], 2]; [None]; {}; {1};
    {'a': 1}; object(); [object()]; np.array(['a']); np.array([None]); np.array(2**63, np.uint64); 1j; [1j, 2**70];
    [1.0, 2**70]; [math.nan, 2**64]; (1, [2]); [[]]; [[], [1]]; [t.tensor(1), 2]; [t.ones(2), t.ones(3)]; slice(1); ...; len;
    [b'a']; [True, 2**70]; bytearray(b'ab'); np.float64(1e300); 2**63; 2**64; 2**70; -2**63 - 1; 10**400; math.inf""",
    ),
}

CALLS = """
t.tensor({v}); t.as_tensor({v}); t.tensor({v}, dtype={dtype}); t.tensor({n}, dtype={dtype});
t.tensor([{n}]); t.tensor({n}); t.asarray({v}); t.Tensor({v}); t.Tensor({s}); t.LongTensor({v});
t.FloatTensor({s}, {s}); t.scalar_tensor({n}); x.new_tensor({v}); x.new_full(({s},), {n});
x.new_zeros({s}); x.new_zeros(({s}, {s})); t.full(({s},), {n}).shape;
t.full((2,), {n}, dtype={dtype}); t.full_like(k, {n}); t.full_like(u, {n}); t.zeros({s}).shape;
t.zeros({s}, {s}).shape; t.zeros(({s},)).shape; t.ones({s}, dtype={dtype}).shape;
t.empty({s}, {s}).shape; t.rand({s}).shape; t.randn({s}, {s}).shape; t.randint({n}, (2,));
t.randint(0, {n}, (2,)).shape; t.randint({n}, {n}, (2,)).shape; t.randint(5, ({s},)).shape;
t.randperm({s}).shape; t.arange({n}).shape; t.arange({n}, {n}).shape; t.arange(0, 3, {n}).shape;
t.linspace(0, 1, {s}).shape; t.linspace({n}, {n}, 3); t.logspace(0, 1, {s}).shape;
t.eye({s}).shape; t.eye({s}, {s}).shape; t.tril_indices({s}, {s}).shape;
t.empty_strided(({s}, 2), (1, {s})).shape; t.Size([{s}, {s}]); t.normal({n}, {n}, (2,)).shape;
t.normal(x, {n}).shape; t.bernoulli(x, {n}).shape; t.multinomial(x.abs(), {s}).shape;
t.poisson(x * {n}).shape; x[{i}]; x[{i}, {i}]; x[[{i}]]; x[:, {i}]; x[{i}:]; x[::{i}];
x[t.tensor([{i}])]; k[{i}]; x[{i}, ..., {i}]; x[..., ...]; x.__setitem__({i}, 1.0);
x.__setitem__(0, {v}); k.__setitem__(0, {n}); u.__setitem__(0, {n}); x.__setitem__(0, {n});
x.__setitem__((0, {i}), {n}); x.select({i}, {i}); x.narrow({i}, {i}, {s});
x.index_select({i}, t.tensor([{i}])); x.split({s}); x.split([{s}, {s}]); x.chunk({s});
x.unbind({i}); x.gather({i}, t.tensor([[{i}]])); x.scatter({i}, t.tensor([[{i}]]), {n});
x.take(t.tensor([{i}])); x.put(t.tensor([{i}]), t.tensor([1.0]));
x.index_add({i}, t.tensor([{i}]), x[:1]); x.index_fill({i}, t.tensor([{i}]), {n});
x.index_copy({i}, t.tensor([{i}]), x[:1]); x.kthvalue({s}); x.topk({s}); x.reshape({s});
x.reshape({s}, {s}); x.view({s}, {s}); x.expand({s}, {s}); x.expand({s}, 2, 3);
x.repeat({s}, {s}).shape; x.tile(({s},)).shape; x.unflatten({i}, ({s}, {s})); x.flatten({i}, {i});
x.permute({i}, {i}); x.transpose({i}, {i}); x.squeeze({i}); x.unsqueeze({i}); x.movedim({i}, {i});
x.sum({i}); x.mean({i}); x.amax({i}); x.argmax({i}); x.softmax({i}); x.cumsum({i}); x.sort({i});
x.std({i}); x.var({i}, correction={n}); x.median({i}); x.prod({i}); x.sum(({i}, {i}));
x.norm({n}); x.norm(2, {i}); x.logsumexp({i}); x.flip({i}); x.roll({s}, {i});
x.rot90({s}, ({i}, {i})); x.diagonal({i}, {i}, {i}); x.unfold({i}, {s}, {s});
x.repeat_interleave({s}); x.repeat_interleave({s}, {i}); x.as_strided(({s},), ({s},));
x.resize_({s}).shape; x.swapaxes({i}, {i}); x.tril({i}); x.diag({i}); t.diag_embed(x[0], {i});
x + {n}; k + {n}; u + {n}; {n} - k; k * {n}; k / {n}; k // {n}; k % {n}; x ** {n}; k ** {n};
{n} ** k; x.add(x, alpha={n}); k.add(k, alpha={n}); k == {n}; u == {n}; k < {n}; b + {n}; b & {n};
k & {n}; k << {n}; k.clamp({n}); k.clamp(max={n}); x.clamp({n}, {n}); x.lerp(x, {n});
x.fill_({n}); k.fill_({n}); u.fill_({n}); b.fill_({n}); x.masked_fill(x > 0, {n});
k.masked_fill(k > 0, {n}); t.where(k > 0, k, {n}); k.add_({n}); k.mul_({n}); u.mul_({n});
u.sub_({n}); k.pow_({n}); t.nan_to_num(x, {n}); k.maximum({n}); x.copy_({v}); x.item();
x[:0].item(); int(x); float(x); bool(x); bool(x[:0]); len(x[0, 0]); list(x[0, 0]);
int(x[0, 0] * math.nan); int(x[0, 0] * math.inf); range(x); [1, 2, 3][k[0]]; [1][x[0, 0]];
complex(x); x.half({n}); x.tolist({n}); x.view({dtype}); x.to({dtype}).shape; x.numpy({n});
t.promote_types({dtype}, {dtype}); t.iinfo({dtype}); t.finfo({dtype}); F.one_hot(k, {s});
F.one_hot(k - 1); F.embedding(k + {i}, x); F.pad(x, ({s}, {s})); F.pad(x, ({s},));
F.dropout(x, {n}).shape; F.interpolate(im, {s}); F.interpolate(im, scale_factor={n});
F.max_pool2d(im, {s}); F.avg_pool2d(im, {s}, {s}); F.max_pool2d(im, 2, padding={s});
F.conv2d(im, w, stride={s}); F.conv2d(im, w, padding={s}); F.conv2d(im, w, dilation={s});
F.conv2d(im, w, groups={s}); F.adaptive_avg_pool2d(im, {s}); F.unfold(im, {s});
F.fold(im[:, 0], {s}, {s}); F.pixel_shuffle(im, {s}); F.group_norm(im, {s});
F.layer_norm(x, ({s},)); F.batch_norm(im, None, None, momentum={n}, training=True);
F.cross_entropy(x, k[:2] + {i}); F.nll_loss(x, k[:2] + {i});
F.cross_entropy(x, k[:2], label_smoothing={n}); F.softmax(x, {i}); F.glu(x, {i});
F.normalize(x, {n}, {i}); t.nn.Linear({s}, {s}).weight.shape;
t.nn.Conv2d({s}, {s}, 3).weight.shape; t.nn.Conv2d(2, 2, {s}).weight.shape;
t.nn.Conv2d(4, 4, 1, groups={s}).weight.shape; t.nn.Embedding({s}, 2).weight.shape;
t.nn.Embedding(3, 2, padding_idx={i}).weight.shape; t.nn.Dropout({n}); t.nn.LSTM({s}, {s});
t.nn.LSTM(2, 2, {s}); t.nn.LSTM(2, 2, dropout={n}); t.nn.GroupNorm({s}, 4);
t.nn.BatchNorm2d({s}).weight.shape; t.nn.MultiheadAttention({s}, {s}); t.optim.SGD([x], lr={n});
t.optim.SGD([x], 0.1, momentum={n}); t.optim.Adam([x], lr={n});
t.optim.Adam([x], betas=({n}, {n})); t.optim.AdamW([x], eps={n}, weight_decay={n});
t.optim.lr_scheduler.StepLR(t.optim.SGD([x], 0.1), {s}); t.utils.data.DataLoader(x, {s});
t.utils.data.DataLoader(x, num_workers={s}); t.utils.data.random_split(x, [{s}, {s}]);
t.utils.data.Subset(x, [{i}])[0]; t.manual_seed({n}); t.set_default_dtype({dtype});
t.set_num_threads({s}); t.Generator().manual_seed({n}); t.einsum('ij,jk', x, x); t.histc(x, {s});
t.bincount(k + {i}); t.bincount(k, minlength={s}).shape; t.linalg.norm(x, {n});
t.linalg.matrix_power(x @ x.T, {s}); t.fft.fft(x, {s}); t.fft.fft(x, dim={i}); t.stft(x[0], {s});
t.hann_window({s}).shape; t.combinations(k, {s}).shape; t.vander(k, {s}).shape;
t.quantile(x, {n}); t.cdist(x, x, {n}); t.renorm(x, {n}, {i}, {n}); t.dist(x, x, {n});
t.isclose(x, x, {n}, {n}); t.searchsorted(x[0], {n}); t.trapz(x, dx={n}); t.diff(x, {s});
t.broadcast_to(x, ({s}, {s})); t.broadcast_shapes(({s},), ({s},))
"""
SETUP = """x = t.arange(6.0).reshape(2, 3)
k = t.tensor([0, 1, 2])
u = t.tensor([1, 2], dtype=t.uint8)
b = t.tensor([True, False])
im = t.ones(1, 4, 4, 4)
w = t.ones(4, 4, 2, 2)
"""
END = """if isinstance(r, (t.Tensor, bool, int, float, complex, str)): return r
return list(r) if isinstance(r, (tuple, list)) else type(r).__name__"""


def compare(torchs: harness.Outcome, ours: harness.Outcome) -> str:
    """As `harness.compared`; 'class' where both raise, errors of two built-in classes."""
    if torchs.error and ours.error:
        return "same" if torchs.raised == ours.raised else "class"
    return harness.compared(torchs, ours)


def programs(call: str) -> list[str]:
    """Programs of a template: a bad value in one gap, a good one in each of the others."""
    gaps = re.findall(r"\{(\w+)\}", call)
    good = [GAPS[gap][0] for gap in gaps]
    chosen = {tuple(good): None}
    for i, gap in enumerate(gaps):
        chosen |= {(*good[:i], bad, *good[i + 1 :]): None for bad in values(GAPS[gap][1])}
    if "dtype" in gaps and len(gaps) == 2:
        pairs = itertools.product(*(values(GAPS[gap][1]) for gap in gaps))
        chosen |= dict.fromkeys(pairs)
    return [f"{SETUP}r = {filled(call, those)}\n{END}" for those in chosen]


def filled(call: str, chosen: tuple[str, ...]) -> str:
    """The template with a value in each gap."""
    left = iter(chosen)
    return re.sub(r"\{\w+\}", lambda gap: next(left), call)


def values(text: str) -> list[str]:
    return [part.strip() for part in text.split(";") if part.strip()]


def groups(seed: int, only: str = "") -> Iterator[tuple[str, Callable[[], list[str]]]]:
    """All templates in a random order."""
    calls = [call for call in values(CALLS) if re.search(only, call)]
    random.Random(seed).shuffle(calls)
    for call in calls:
        yield call, lambda call=call: programs(call)


if __name__ == "__main__":
    sys.exit(forked.main("bad_values", __doc__, groups, compare))
