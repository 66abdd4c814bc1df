"""Calls of float ops on float16 and bfloat16 tensors of thousands of elements, beside torch's answer in float64.

`python tests/fuzz/halves.py --seconds 60`. Counts, sums and sizes of windows do not fit into half precision: float16
ends at 65,504 and skips whole numbers from 2,048 on, bfloat16 from 256 on. A call is wrong where its result, or a
gradient, lies much further from the answer in float64 than torch's result in half precision does. Only results that
torch has wrong as well are hidden by this; `--absolute` shows them, too. grid_sample is left out: torch crashes on
it."""

from __future__ import annotations

import argparse
import random
import re
import resource
import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

# Shapes by name: x, and what `{d}` goes through.
SHAPES = {
    "long": ((70_000,), (0, -1)),
    "row": ((1, 70_000), (1,)),
    "rows": ((2, 3_000), (1, (0, 1))),
    "column": ((70_000, 1), (0,)),
    "columns": ((3_000, 3), (0, 1, (0, 1))),
    "ties": ((2, 257), (1,)),
}
# Which of equal elements gets the gradient is not defined.
CHOOSES = re.compile(r"sort|mode\(|kthvalue|median|topk|unique")
MEMORY_BYTES = 3 * 2**30  # some calls would make a matrix of 70,000 rows and columns
VALUES = ("ones", "normal", "few", "large", "small")

REDUCTIONS = """
x.sum(); x.mean(); x.amax(); x.amin(); x.max(); x.min(); t.aminmax(x)[0]; t.aminmax(x)[1]; x.median(); x.nanmedian();
x.var(); x.std(); x.var(correction=0); t.var_mean(x)[0]; t.std_mean(x)[1]; x.nansum(); x.nanmean(); x.norm(); x.norm(1); x.norm(3);
x.norm(float('inf')); x.norm(-float('inf')); x.norm(0); t.linalg.vector_norm(x); t.linalg.vector_norm(x, 1); t.linalg.vector_norm(x, float('inf'));
t.linalg.vector_norm(x, -float('inf')); t.linalg.vector_norm(x, 4); t.linalg.vector_norm(x, 0.5); t.dist(x, y); t.dist(x, y, 1); t.dist(x, y, float('inf'));
t.dist(x, x.detach() * 0, float('inf')); x.logsumexp(0); (x * 0 + 1).prod(); x.softmax(-1); x.log_softmax(-1); F.softmin(x, -1); x.sum(-1); x.mean(0);
t.count_nonzero(x); x.abs().sum(); (x > 0).sum(); (x > 0).to(x.dtype).sum(); (x > 0).to(x.dtype).mean(); x.dot(x) if x.dim() == 1 else x.flatten().dot(y.flatten());
x.flatten().vdot(y.flatten()); t.trapezoid(x); t.cumulative_trapezoid(x); t.gradient(x.flatten())[0]; t.inner(x.flatten(), y.flatten()); t.linalg.vecdot(x, y); x.reshape(1, -1) @ y.reshape(-1, 1);
t.tensordot(x.flatten(), y.flatten(), 1); t.einsum('i,i', x.flatten(), y.flatten()); t.mv(x.reshape(1, -1), y.flatten()); t.addmv(y.flatten()[:1], x.reshape(1, -1), y.flatten());
F.mse_loss(x, y); F.l1_loss(x, y); F.smooth_l1_loss(x, y); F.huber_loss(x, y); F.mse_loss(x, y, reduction='sum'); F.l1_loss(x, y, reduction='sum');
F.soft_margin_loss(x, y.sign()); F.hinge_embedding_loss(x, y.sign()); F.poisson_nll_loss(x, y.abs()); F.gaussian_nll_loss(x, y, y.abs() + 1);
F.binary_cross_entropy_with_logits(x, p); F.binary_cross_entropy(p, p.detach().flip(0)); F.binary_cross_entropy_with_logits(x, p, pos_weight=y.abs());
F.binary_cross_entropy_with_logits(x, p, weight=y.abs()); F.kl_div(x, p); F.kl_div(x, p, reduction='batchmean'); F.kl_div(x, p, reduction='sum');
F.margin_ranking_loss(x, y, y.sign()); F.mse_loss(x, y, weight=y.abs()); F.cosine_similarity(x, y, -1); F.normalize(x, dim=-1); F.normalize(x, 1, -1); F.pairwise_distance(x, y);
F.cosine_embedding_loss(x.reshape(1, -1), y.reshape(1, -1), t.ones(1)); F.triplet_margin_loss(x.reshape(1, -1), y.reshape(1, -1), p.reshape(1, -1));
x.cumsum(-1); x.cumsum(0); x.logcumsumexp(-1); (x * 0 + 1).cumprod(-1); x.cummax(-1)[0]; t.cov(x[:9]); t.corrcoef(x[:9]); x.flatten().cov();
x.quantile(0.5); x.mode(-1)[0]; x.kthvalue(1)[0]; x.sort(-1)[0]; x.topk(3, 0 if x.dim() == 1 or x.shape[-1] == 1 else -1)[0]; x.argmax(); x.argsort(-1, stable=True); x.unique(return_counts=True)[1];
t.histc(x.detach(), 4, -4, 4); t.bincount((x.detach() > 0).flatten().long(), x.detach().flatten()); x.renorm(2, 0, 1.0) if x.dim() > 1 else x; x.diff();
t.nn.utils.clip_grad_norm_([x], 1.0); x.masked_fill(y > 0, 0).sum(); x[y > 0].sum(); x[y > 0].mean(); t.masked_select(x, y > 0).var(); x.clamp(-1, 1).mean(); x.square().mean(); (x * y).sum(); (x + y).mean();
x.expand(3, *x.shape).sum(0); x.expand(3, *x.shape).mean(); x.exp().sum().log(); x.sigmoid().sum(); x.pow(2).sum().sqrt(); x.repeat(3, *[1] * (x.dim() - 1)).sum();
F.layer_norm(x, x.shape[-1:]); F.rms_norm(x, x.shape[-1:]); F.layer_norm(x, x.shape); F.rms_norm(x, x.shape); F.layer_norm(x, x.shape[-1:], y.detach().reshape(-1)[:x.shape[-1]], y.detach().reshape(-1)[:x.shape[-1]]);
F.batch_norm(x.reshape(-1, 1), None, None, training=True); F.batch_norm(x.reshape(-1, 1), y.flatten()[:1].detach().clone(), y.flatten()[:1].detach().abs() + 1, training=True);
F.batch_norm(x.reshape(1, 1, -1), None, None, training=True); F.instance_norm(x.reshape(1, 1, -1)); F.group_norm(x.reshape(1, 2, -1), 1); F.group_norm(x.reshape(1, 2, -1), 2, y.flatten()[:2].detach(), y.flatten()[:2].detach());
F.local_response_norm(x.reshape(1, -1, 2), 5); F.local_response_norm(x.reshape(1, -1, 2), 301); x + w; x * w; x - w; x / (w.abs() + 1); t.where(y > 0, x, w); x.lerp(y, w); t.addcmul(x, y, w); t.maximum(x, w); t.minimum(w, x);
t.atan2(x, w); x.clamp(w, w + 1); x.clamp(max=w); F.prelu(x, w.reshape(1)); t.outer(x.flatten()[:3000], y.flatten()[:3]).sum(0); t.masked.mean(x, mask=y > 0); t.masked.var(x, mask=y > 0); t.masked.sum(x, mask=y > 0); t.masked.norm(x, 2, mask=y > 0);
t.masked.softmax(x, -1, mask=y > 0); t.masked.std(x); t.masked.amax(x, mask=y > 0); t.masked.median(x, -1, mask=y > 0); t.masked.normalize(x, 2, -1, mask=y > 0); t.masked.logsumexp(x, mask=y > 0) if 0 else x; t.block_diag(x.reshape(1, -1), y.reshape(1, -1)).sum() if x.numel() < 7000 else x;
"""
ALONG = """
x.sum({d}); x.mean({d}); x.amax({d}); x.amin({d}, keepdim=True); x.var({d}); x.std({d}, correction=0); x.logsumexp({d}); x.norm(2, {d}); x.norm(float('inf'), {d}); t.linalg.vector_norm(x, 3, {d});
x.nansum({d}); x.nanmean({d}); t.linalg.vector_norm(x, float('inf'), {d}); t.linalg.vector_norm(x, -float('inf'), {d}); t.masked.mean(x, {d}, mask=y > 0); t.var_mean(x, {d})[0]; t.count_nonzero(x, {d})
"""
ALONG_ONE = """
x.max({d})[0]; x.min({d})[0]; x.median({d})[0]; x.nanmedian({d})[0]; x.softmax({d}); x.log_softmax({d}); x.cumsum({d}); x.logcumsumexp({d}); (x * 0 + 1).cumprod({d}); x.cummax({d})[0];
F.normalize(x, dim={d}); F.cosine_similarity(x, y, {d}); t.aminmax(x, dim={d})[1]; x.renorm(1, {d}, 1.0) if x.dim() > 1 else x; F.softmin(x, {d}); x.mode({d})[0]; t.trapezoid(x, dim={d}); x.quantile(0.5, {d});
x.index_add({d}, (y.select({e}, 0) if x.dim() > 1 else y).abs().long().clamp(max=0), x); x.index_reduce({d}, t.zeros(x.shape[{d}], dtype=t.long), x, 'mean'); x.index_reduce({d}, t.zeros(x.shape[{d}], dtype=t.long), x, 'amax');
x.index_reduce({d}, t.zeros(x.shape[{d}], dtype=t.long), x, 'mean', include_self=False); x.scatter_reduce({d}, t.zeros(x.shape, dtype=t.long), y, 'mean'); x.scatter_reduce({d}, t.zeros(x.shape, dtype=t.long), x, 'mean', include_self=False);
y.scatter_reduce({d}, t.zeros(x.shape, dtype=t.long), x, 'amax'); y.scatter_reduce({d}, t.zeros(x.shape, dtype=t.long), x, 'sum'); y.scatter_add({d}, t.zeros(x.shape, dtype=t.long), x); x.index_select({d}, t.zeros(3000, dtype=t.long)); x.gather({d}, t.zeros(x.shape, dtype=t.long));
x.take_along_dim(t.zeros(x.shape, dtype=t.long), {d}); x.narrow({d}, 0, 1).expand(x.shape); x.narrow({d}, 0, 1).expand(x.shape).mean(); x.roll(1, {d}).mean(); x.repeat_interleave(300, 0)[:1000].sum(0) if x.numel() < 9500 else x; x.unfold({d}, 200, 1).sum() if x.numel() < 9500 else x;
x.index_put((t.zeros(x.shape[0], dtype=t.long),), y, accumulate=True); x[t.zeros(70000, dtype=t.long)]; t.segment_reduce(x, 'mean', lengths=t.tensor([x.shape[0]])); t.segment_reduce(x, 'max', lengths=t.tensor([x.shape[0]])); t.segment_reduce(x, 'sum', lengths=t.tensor([x.shape[0]]))
"""
# Calls that make their own shapes from x (70,000 numbers), y, p in (0, 1), w (a number).
SHAPED = """
F.avg_pool1d(x[None], 70000); F.avg_pool1d(x[None], 2100, 300); F.avg_pool1d(x[None], 300, 100, 100); F.avg_pool1d(x[None], 300, 100, 100, count_include_pad=False); F.adaptive_avg_pool1d(x[None], 1); F.adaptive_avg_pool1d(x[None], 7);
F.adaptive_avg_pool1d(x[None], 9); F.adaptive_avg_pool2d(x.view(1, 250, 280), 1); F.adaptive_avg_pool2d(x.view(1, 250, 280), (3, 1)); F.avg_pool2d(x.view(1, 250, 280), (250, 280)); F.avg_pool2d(x.view(1, 250, 280), 50); F.avg_pool2d(x.view(1, 250, 280), 50, divisor_override=70000);
F.avg_pool2d(x.view(1, 250, 280), 50, divisor_override=2049); F.avg_pool3d(x.view(1, 50, 50, 28), (50, 50, 28)); F.avg_pool3d(x.view(1, 50, 50, 28), 20, 1); F.adaptive_avg_pool3d(x.view(1, 50, 50, 28), 1); F.adaptive_max_pool1d(x[None], 1); F.max_pool1d(x[None], 300, 100); F.max_pool2d(x.view(1, 250, 280), 50, 3);
F.lp_pool1d(x[None].abs(), 2, 2100); F.lp_pool2d(x.view(1, 250, 280).abs(), 2, 50); F.lp_pool1d(x[None].abs(), 1, 300); F.interpolate(x.view(1, 1, -1), size=1, mode='area'); F.interpolate(x.view(1, 1, -1), size=9, mode='area'); F.interpolate(x.view(1, 1, 250, 280), size=(2, 3), mode='area');
F.interpolate(x.view(1, 1, -1), size=3001, mode='linear'); F.interpolate(x.view(1, 1, -1), size=3001, mode='linear', align_corners=True); F.interpolate(x.view(1, 1, -1), size=3001); F.interpolate(x.view(1, 1, -1), size=3001, mode='nearest-exact'); F.interpolate(x.view(1, 1, 250, 280), size=(301, 303), mode='bilinear');
F.interpolate(x.view(1, 1, 250, 280), size=(31, 33), mode='bilinear', antialias=True); F.interpolate(x.view(1, 1, 250, 280), size=(2, 3), mode='bicubic', antialias=True); F.interpolate(x.view(1, 1, 250, 280), size=(301, 303), mode='bicubic'); F.interpolate(x[:3].view(1, 1, -1), size=3000, mode='linear'); F.interpolate(x[:3].view(1, 1, -1), size=3000);
F.interpolate(x[:3].view(1, 1, -1), size=3000, mode='linear', align_corners=True); F.interpolate(x[:9].view(1, 1, 3, 3), size=(300, 300), mode='bicubic');
F.embedding_bag(t.zeros(1, 70000, dtype=t.long), x.view(2, -1)[:, :3], mode='mean'); F.embedding_bag(t.zeros(1, 3000, dtype=t.long), x.view(2, -1)[:, :3], mode='sum'); F.embedding_bag(t.zeros(1, 3000, dtype=t.long), x.view(2, -1)[:, :3], mode='max'); F.embedding_bag(t.zeros(1, 3000, dtype=t.long), x.view(2, -1)[:, :3], mode='sum', per_sample_weights=y[:3000][None]);
F.embedding(t.zeros(70000, dtype=t.long), x.view(2, -1)[:, :3]); F.embedding(t.zeros(70000, dtype=t.long), x.view(2, -1)[:, :3], scale_grad_by_freq=True); F.embedding_bag(t.zeros(1, 70000, dtype=t.long), x.view(2, -1)[:, :3], mode='mean', scale_grad_by_freq=True); F.embedding_bag(t.zeros(1, 3000, dtype=t.long), x.view(2, -1)[:, :3], mode='mean', padding_idx=1);
F.cross_entropy(x.view(-1, 2), t.zeros(35000, dtype=t.long)); F.cross_entropy(x.view(-1, 1), t.zeros(70000, dtype=t.long)); F.cross_entropy(x.view(-1, 2), (y[:35000] > 0).long(), weight=p[:2]); F.cross_entropy(x.view(-1, 1), t.zeros(70000, dtype=t.long), weight=w.detach().abs().reshape(1) + 1); F.cross_entropy(x.view(-1, 2), (y[:35000] > 0).long(), label_smoothing=0.1);
F.cross_entropy(x.view(-1, 2), (y[:35000] > 0).long(), label_smoothing=0.1, weight=p[:2]); F.cross_entropy(x.view(-1, 2), p.view(-1, 2)); F.cross_entropy(x.view(2, -1), t.zeros(2, dtype=t.long), label_smoothing=0.1); F.cross_entropy(x.view(2, -1), p.view(2, -1)); F.cross_entropy(x.view(1, 2, 250, 140), t.zeros(1, 250, 140, dtype=t.long)); F.cross_entropy(x.view(-1, 2), (y[:35000] > 0).long(), reduction='sum');
F.nll_loss(x.view(-1, 2), (y[:35000] > 0).long()); F.nll_loss(x.view(-1, 1), t.zeros(70000, dtype=t.long)); F.nll_loss(x.view(-1, 2), (y[:35000] > 0).long(), weight=p[:2]); F.nll_loss(x.view(1, 2, 250, 140), t.zeros(1, 250, 140, dtype=t.long)); F.multi_margin_loss(x.view(-1, 2), (y[:35000] > 0).long()); F.multi_margin_loss(x.view(2, -1), t.zeros(2, dtype=t.long)); F.multilabel_soft_margin_loss(x.view(2, -1), (y.view(2, -1) > 0).to(x.dtype));
F.multilabel_margin_loss(x.view(-1, 2), t.zeros(35000, 2, dtype=t.long)); F.triplet_margin_loss(x.view(-1, 2), y.view(-1, 2), p.view(-1, 2)); F.cosine_embedding_loss(x.view(-1, 2), y.view(-1, 2), t.ones(35000)); F.ctc_loss(x.view(2100, 1, -1)[:, :, :5].log_softmax(-1).float(), t.ones(1, 300, dtype=t.long), [2100], [300]); F.linear(x.view(2, -1), y.view(2, -1)); F.linear(x.view(-1, 2), y.view(-1, 2)[:3]); F.linear(x.view(-1, 2), y.view(-1, 2)[:3], y[:3].detach().requires_grad_());
F.bilinear(x.view(-1, 2), y.view(-1, 2), y[:4].view(1, 2, 2)); F.conv1d(x[None], y[:300].view(1, 1, -1)); F.conv1d(x.view(1, 1, -1), y[:3].view(1, 1, -1), w.reshape(1)); F.conv2d(x.view(1, 1, 250, 280), y[:9].view(1, 1, 3, 3), w.reshape(1)); F.conv_transpose2d(x.view(1, 1, 250, 280), y[:9].view(1, 1, 3, 3), w.reshape(1)); F.conv2d(x.view(1, 2800, 5, 5), y[:25200].view(1, 2800, 3, 3)); F.conv_transpose1d(x.view(1, 3500, 20), y[:3500].view(3500, 1, 1));
F.scaled_dot_product_attention(x.view(1, 2500, 28)[:, :3], y.view(1, 2500, 28), p.view(1, 2500, 28)); F.scaled_dot_product_attention(x.view(1, 2500, 28)[:, :300], y.view(1, 2500, 28)[:, :300], p.view(1, 2500, 28)[:, :300], is_causal=True); x.view(2, -1) @ y.view(-1, 2); x.view(-1, 2).mT @ y.view(-1, 2); t.bmm(x.view(2, 1, -1), y.view(2, -1, 1)); t.addmm(y[:4].view(2, 2), x.view(2, -1), y.view(-1, 2), beta=0.5, alpha=0.5); t.baddbmm(y[:2].view(2, 1, 1), x.view(2, 1, -1), y.view(2, -1, 1)); t.addbmm(y[:4].view(2, 2), x.view(7, 2, -1), y.view(7, -1, 2)); t.addr(x.view(2, -1)[:, :3000], y[:2], y[:3000]); t.einsum('ij,kj->ik', x.view(2, -1), y.view(2, -1)); t.kron(x[:300], y[:3]).sum();
t.cdist(x.view(2, -1), y.view(2, -1)); t.cdist(x.view(2, -1).float(), y.view(2, -1).float(), 1); t.cdist(x[:9000].view(-1, 3).float(), y[:9].view(3, 3).float()); F.fold(x.view(1, 4, -1)[:, :, :9801], (100, 100), 2); F.unfold(x.view(1, 1, 250, 280), 2); F.pad(x[None], (3000, 3000), mode='replicate'); F.pad(x[None], (3000, 3000), mode='reflect'); F.pad(x[None], (3000, 3000), mode='circular'); F.pad(x.view(1, 250, 280), (200, 200, 200, 200), mode='replicate'); F.pixel_shuffle(x.view(1, 4, 50, 350), 2); F.glu(x); x.view(1, 70000).tile(3, 1).mean(0); t.stack([x] * 300).sum(0); t.cat([x[:9]] * 3000).mean(); F.instance_norm(x.view(1, 1, 250, 280)); F.batch_norm(x.view(1, 1, 250, 280), None, None, w.reshape(1), w.reshape(1), training=True); F.batch_norm(x.view(-1, 2), y[:2].detach(), p[:2].detach() + 1, w.detach().expand(2).clone().requires_grad_(), w.expand(2), training=False); F.layer_norm(x.view(-1, 2), (2,), y[:2].detach().requires_grad_(), w.expand(2)); F.layer_norm(x.view(2, -1), (35000,), y[:35000], y[35000:]); F.rms_norm(x.view(-1, 2), (2,), w.expand(2)); F.group_norm(x.view(1, 2, -1), 2, w.expand(2), w.expand(2)); F.group_norm(x.view(1, 2, -1), 1, w.expand(2), w.expand(2)); F.prelu(x.view(1, 2, -1), w.expand(2)); t.nn.utils.parameters_to_vector([x]).norm(); x.softmax(0).var(); x.view(2, -1).softmax(1) @ y.view(-1, 2); t.linalg.matrix_norm(x.view(2, -1)); t.linalg.matrix_norm(x.view(2, -1), 1); t.linalg.matrix_norm(x.view(2, -1), float('inf')); t.linalg.norm(x); x.view(2, -1).nanmean(1); t.nn.utils.get_total_norm([x, y]); F.dropout(x, 0.0).mean(); x.masked_scatter(y > 0, y).mean(); t.cumulative_trapezoid(x, y); t.logaddexp(x, w); t.hypot(x, w); x.std(); F.gumbel_softmax(x * 0, -1).sum(); t.renorm(x.view(2, -1), 1, 0, 5.0); x.view(2, -1).cov(); x.view(2, -1).corrcoef(); t.nansum(x); t.special.logsumexp(x, 0); x.frac().sum(); F.adaptive_max_pool2d(x.view(1, 250, 280), 2); F.fractional_max_pool2d(x.view(1, 1, 250, 280), 2, output_size=3, _random_samples=p[:2].view(1, 1, 2).detach()); F.max_unpool1d(x[:9].view(1, 1, 9), t.arange(9).view(1, 1, 9) * 7000, 2, output_size=(70000,)); t.nn.functional.threshold(x, 0.1, 0).mean(); F.logsigmoid(x).mean(); F.hardswish(x).sum(); F.gelu(x).mean()
"""
# Calls without x: (t, k) where k is the dtype.
MADE = """
t.linspace(0, 1, 70000, dtype=k); t.linspace(-1, 1, 3001, dtype=k); t.arange(0, 70000, 7, dtype=k); t.arange(3000, dtype=k); t.arange(0, 1, 1 / 3000, dtype=k); t.logspace(-1, 1, 3001, dtype=k); t.hann_window(3000, dtype=k); t.hamming_window(70001, dtype=k); t.blackman_window(3000, dtype=k); t.bartlett_window(70001, dtype=k); t.bartlett_window(3001, dtype=k); t.kaiser_window(3001, dtype=k);
t.eye(3000, dtype=k).sum(); t.full((70000,), 0.1, dtype=k).mean(); t.ones(70000, dtype=k).cumsum(0); t.signal.windows.gaussian(3001, dtype=k); t.signal.windows.cosine(70001, dtype=k); t.signal.windows.exponential(3001, dtype=k); t.signal.windows.nuttall(3001, dtype=k); t.signal.windows.general_cosine(3001, a=[0.5, 0.5], dtype=k); F.affine_grid(t.eye(2, 3, dtype=k)[None], (1, 1, 301, 303)); F.affine_grid(t.eye(2, 3, dtype=k)[None], (1, 1, 301, 303), align_corners=True);
t.vander(t.ones(3, dtype=k), 3000); t.fft.fftfreq(3001, dtype=k); t.linspace(t.tensor(0., dtype=k), t.tensor(1., dtype=k), 3001, dtype=k)
"""


def split(calls: str) -> list[str]:
    return [call.strip() for call in calls.replace("\n", " ").split(";") if call.strip()]


def programs() -> Iterator[tuple[str, str, str]]:
    """(name of the shape, values, call)."""
    for call in split(MADE):
        yield "", "", call
    for values in VALUES:
        for call in split(SHAPED):
            yield "long", values, call
        for name, (shape, dims) in SHAPES.items():
            for call in split(REDUCTIONS):
                yield name, values, call
            for d in dims:
                one = isinstance(d, int)
                for call in split(ALONG) + (split(ALONG_ONE) if one else []):
                    e = 1 - d if one and len(shape) > 1 else 0
                    yield name, values, call.replace("{d}", str(d)).replace("{e}", str(e))


def numbers(values: str, shape: tuple, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    made = {
        "ones": lambda: np.ones(shape),
        "normal": lambda: rng.standard_normal(shape),
        "few": lambda: rng.integers(-1, 3, shape) * 0.5,
        "large": lambda: rng.uniform(50, 90, shape),
        "small": lambda: rng.uniform(-1, 1, shape) * 1e-3,
    }
    return made[values]()


def answers(t: Any, program: tuple[str, str, str], dtype: str, wide: str) -> list | str:
    """The results and the gradients of x, y, p, w as float64 arrays, or the error. The numbers are rounded to `dtype`
    and the call computes in `wide`."""
    shape, values, call = program
    k = getattr(t, wide)
    t.manual_seed(0)
    try:
        if not shape:
            return [array(eval(call, {"t": t, "F": t.nn.functional, "k": k}))]
        x = numbers(values, SHAPES[shape][0], 1)
        y = numbers("ones" if values == "ones" else "normal", SHAPES[shape][0], 2)
        p = np.random.default_rng(3).uniform(0.1, 0.9, SHAPES[shape][0])
        leaves = [
            t.tensor(a, dtype=t.float32).to(getattr(t, dtype)).to(k).requires_grad_()
            for a in (x, y, p, np.float64(0.75))
        ]
        made = eval(call, {"t": t, "F": t.nn.functional, **dict(zip("xypw", leaves))})
        if made.requires_grad and not CHOOSES.search(call):
            g = np.random.default_rng(4).uniform(0.5, 1, tuple(made.shape))
            made.backward(t.tensor(g, dtype=t.float32).to(getattr(t, dtype)).to(made.dtype))
        return [array(made), *[None if a.grad is None else array(a.grad) for a in leaves]]
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:100]}"


def array(x: Any) -> np.ndarray:
    return x.detach().double().numpy()


def divergence(program: tuple, dtype: str, torch: Any, ours: Any, absolute: bool) -> str:
    """'' where ours is as near to float64 as torch, or words."""
    low, made = answers(torch, program, dtype, dtype), answers(ours, program, dtype, dtype)
    if isinstance(low, str):
        return ""  # which dtypes are refused is another fuzzer's question
    if isinstance(made, str):
        return "" if "Memory" in made else f"refused: {made}"
    right = answers(torch, program, dtype, "float64")
    if isinstance(right, str):
        return ""
    step = {"float16": 2**-11, "bfloat16": 2**-8}[dtype]
    tiny = {"float16": 2**-25, "bfloat16": 2**-134}[dtype]
    for what, r, a, b in zip(("result", "x", "y", "p", "w"), right, low, made):
        if r is None or b is None or a is None:
            if (a is None) != (b is None):
                return f"gradient of {what}: None {a is None, b is None}"
            continue
        if r.shape != b.shape:
            return f"{what}: shape {b.shape}, torch {a.shape}"
        if dtype == "float16":
            r = np.where(np.abs(r) >= 65520, np.sign(r) * np.inf, r)
        if not r.size:
            continue
        with np.errstate(all="ignore"):
            scale = np.abs(r) + np.abs(np.where(np.isfinite(r), r, 0)).mean()
            scale = np.where(np.isfinite(scale), scale, 1)
            ours_off, torch_off = off(b, r, scale), off(a, r, scale)
        allowed = 3 * step + tiny / np.where(scale > 0, scale, np.inf)
        if absolute:
            bad = ours_off > 8 * allowed
        else:
            bad = ours_off > 2 * np.maximum(torch_off, torch_off.max() / 2) + allowed
        if bad.any():
            i = np.unravel_index(np.where(bad, ours_off, 0).argmax(), bad.shape)
            return f"{what}: {bad.sum()} of {bad.size}; right {r[i]:.6g}, ours {b[i]:.6g}, torch {a[i]:.6g}"
    return ""


def off(x: np.ndarray, right: np.ndarray, scale: np.ndarray) -> np.ndarray:
    same = (x == right) | (np.isnan(x) & np.isnan(right))
    d = np.where(same, 0, np.abs(x - right) / np.where(scale > 0, scale, 1))
    return np.where(np.isnan(d), np.inf, d)


def main() -> int:
    import torch

    import rushlight

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=None, help="a fresh one by default")
    parser.add_argument("--only", default="", help="a regular expression of calls")
    parser.add_argument("--absolute", action="store_true", help="show what torch has wrong, too")
    args = parser.parse_args()
    seed = random.SystemRandom().randrange(10**9) if args.seed is None else args.seed
    print("halves: seed", seed)
    todo = [(q, d) for q in programs() for d in ("float16", "bfloat16") if re.search(args.only, q[2])]
    random.Random(seed).shuffle(todo)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    end, done, classes = time.monotonic() + args.seconds, 0, {}
    for program, dtype in todo:
        if time.monotonic() > end:
            break
        done += 1
        if found := divergence(program, dtype, torch, rushlight, args.absolute):
            classes.setdefault(program[2], []).append((program, dtype, found))
    for call, those in sorted(classes.items()):
        (shape, values, _), dtype, found = those[0]
        print(f"x{len(those)} {call}\n    {shape} {values} {dtype}: {found}")
    count = sum(map(len, classes.values()))
    print(f"{done} of {len(todo)} programs, {count} diverge, {len(classes)} classes")
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main())
