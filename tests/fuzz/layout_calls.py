"""Calls on x, as users write them, for layouts.py: separated by semicolons.

{y}: a tensor of x's shape; {b}: one that broadcasts to it; {chan}: a number for each channel; {weight}, {kernel},
{depth}, {bias}: of layers; {d}, {e}: dimensions; {n}: up to the size of dimension d; {c}: the channels; {w}: the last
size."""

from __future__ import annotations

# (numbers of dimensions that x may have, calls)
CALLS: list[tuple[tuple[int, ...], list[str]]] = [
    (dims, [call.strip() for call in calls.replace("\n", " ").split(";")])
    for dims, calls in (
        (
            (0, 1, 2, 3, 4, 5),
            """
    x.relu(); F.relu(x); x.sin(); x.exp(); -x; x.abs(); x.sigmoid(); x.tanh(); F.gelu(x); F.silu(x); F.elu(x);
    F.leaky_relu(x); F.hardtanh(x); F.softplus(x); x.clamp(min=-0.5); x.clamp(-0.5, 0.5); x * 2; 1 - x; x ** 2;
    x.double(); x.half().float(); x > 0; x.clone(); x.contiguous(); x.detach(); x.square(); x.round(); x.sign();
    x.float(); F.dropout(x, 0.5); F.dropout(x, 0.3); x.to(t.float64); x.nan_to_num(); t.zeros_like(x); t.ones_like(x);
    t.rand_like(x); t.randn_like(x); t.full_like(x, 2.0); t.bernoulli(x.abs() % 1); x + {y}; {y} - x; x * {y};
    x / ({y} + 9); t.maximum(x, {y}); t.where(x > 0, x, {y}); t.where({y} > 0, x, 0.0); x.lerp({y}, 0.3);
    t.addcmul(x, x, {y}); x.masked_fill({y} > 0, 1.0); x.pow(2.0); x < {y}; x.atan2({y}); x + {b}; {b} * x; {b} - x;
    t.where({b} > 0, x, 1.0); x.copysign({y}); x.type_as({y}.double()); x + {y}.double(); {y}.double() * x;
    x.logical_and({y}); x.hypot({y}); x.new_zeros(x.shape); x.expand_as({y}); t.complex(x, {y}); t.stack([x, {y}], 0);
    F.mse_loss(x, {y}, reduction='none'); F.logsigmoid(x); F.mish(x); F.alpha_dropout(x, 0.5, training=True);
    F.binary_cross_entropy_with_logits(x, {y}.sigmoid(), reduction='none'); x.reshape(-1); x.flatten(); x.ravel();
    x[None]; x[...]; x.unsqueeze({d}); x.squeeze(); x.T; x.mT; x.view(x.shape); x.reshape(x.shape); x.sum(); x.mean();
    x.max(); x.var(); x.std(); x.norm()
    """,
        ),
        (
            (1, 2, 3, 4, 5),
            """
    x.softmax({d}); x.log_softmax({d}); x.cumsum({d}); x.cumprod({d}); x.sort({d}, stable=True);
    x.sort({d}, stable=True, descending=True);
    x.topk(1, {d})[0]; x.topk({n}, {d})[0]; x.flip({d}); x.roll(1, {d}); t.cat([x, {y}], {d}); t.cat([x, x], {d});
    t.stack([x, {y}], {d}); t.stack([x, x, x], {e}); x.sum({d}); x.sum({d}, keepdim=True); x.mean({d});
    x.mean({d}, keepdim=True); x.amax({d}); x.amax({d}, keepdim=True); x.max({d}); x.min({d}, keepdim=True);
    x.argmax({d}); x.var({d}); x.std({d}, keepdim=True); x.logsumexp({d}); x.prod({d}); (x > 0).all({d}); x.norm(dim={d});
    x.index_select({d}, t.tensor([0, 0])); x.gather({d}, ({y} > 9).long()); x.unbind({d});
    x.scatter({d}, ({y} > 9).long(), 1.0); x.index_add({d}, t.tensor([0]), x.narrow({d}, 0, 1)); x.cummax({d});
    x.repeat_interleave(2, {d}); x.tile((2,)); x[t.tensor([0, 0])]; x[x > 0]; x[..., t.tensor([0])]; x.narrow({d}, 0, 1);
    x.split(1, {d}); x.chunk(2, {d}); F.pad(x, (1, 1)); F.normalize(x, dim={d}); F.layer_norm(x, x.shape[-1:]);
    F.rms_norm(x, x.shape[-1:]); x.diff(dim={d}); x.median({d})[0]; x.kthvalue(1, {d})[0]; F.linear(x, {weight});
    F.linear(x, {weight}, {bias}); x @ {weight}.mT; x.index_fill({d}, t.tensor([0]), 2.0); x.nonzero(); x.select({d}, 0);
    x.take_along_dim(x.argsort({d}), {d}); x.logcumsumexp({d}); x.mode({d})[0]; F.glu(x, {d}); x.quantile(0.5, {d});
    F.embedding((x > 0).long(), {weight}); F.one_hot((x > 0).long()); x.unflatten({d}, (1, -1)); x.unfold({d}, 1, 1);
    x.movedim({d}, 0); F.softmin(x, {d}); x.aminmax(dim={d}); x.searchsorted(x); x.unique(); x.renorm(2, {d}, 1.0);
    F.gumbel_softmax(x, dim={d}); x.broadcast_to((2, *x.shape)); x.expand(3, *x.shape); x.repeat(2, *[1] * x.dim());
    x.index_copy({d}, t.tensor([0]), x.narrow({d}, 0, 1) * 2)
    """,
        ),
        (
            (2, 3, 4, 5),
            """
    x.tril(); x.triu(1); x @ x.mT; x.mT @ {y}; x.transpose({d}, {e}); x.transpose({d}, {e}).contiguous();
    x.swapaxes({d}, {e}).clone(); x.sum(({d}, {e})); x.mean(({d}, {e}), keepdim=True); x.amax(({d}, {e}));
    x.rot90(1, ({d}, {e})); x.flatten({d}); x.flatten(1); x.diagonal(0, {d}, {e}); x.var(({d}, {e}));
    F.batch_norm(x, None, None, training=True); F.batch_norm(x, None, None, {chan}, {chan}, training=True);
    F.batch_norm(x, {chan}.detach(), {chan}.detach().abs() + 1); F.group_norm(x, 1); F.group_norm(x, {c}, {chan}, {chan});
    x.reshape(x.shape[0], -1); F.layer_norm(x, x.shape[-2:]); F.prelu(x, {chan}); F.feature_alpha_dropout(x, 0.5, True);
    t.einsum('...ij->...ji', x); t.einsum('...ij,...kj->...ik', x, {y}); x.cov() if x.dim() == 2 else x; x.trace();
    F.cross_entropy(x, (x.select(1, 0) > 9).long()); F.log_softmax(x, 1); F.softmax(x, 1); x.cumsum(1);
    F.pad(x, (1, 0, 0, 1)); t.addmm(x, x, t.eye(x.shape[1])); F.scaled_dot_product_attention(x, {y}, {y});
    x.logsumexp(({d}, {e})); t.linalg.vector_norm(x, dim=({d}, {e})); x.permute(*range(x.dim())[::-1])
    """,
        ),
        (
            (3,),
            """
    x.bmm(x.mT); t.einsum('bij,bkj->bki', x, {y}); t.einsum('bij,bkj->bik', x, {y}); t.einsum('bij,bij->bi', x, {y});
    t.einsum('bij->bji', x); t.einsum('bij,jk->bki', x, {weight}.mT); t.einsum('bij->b', x);
    F.conv1d(x, {kernel}[..., 0].contiguous()); t.einsum('bij,bik->bjk', x, {y}); t.einsum('bij,bkj->ikb', x, {y});
    t.baddbmm(x @ x.mT, x, x.mT); F.max_pool1d(x, 1); F.dropout1d(x, 0.5); F.avg_pool1d(x, 1); F.instance_norm(x);
    F.interpolate(x, scale_factor=2); F.adaptive_avg_pool1d(x, 1);
    F.multi_head_attention_forward(x, x, x, {w}, 1, t.cat([t.eye({w})] * 3), None, None, None, False, 0.0, {weight}, None)[0]
    """,
        ),
        (
            (4,),
            """
    F.conv2d(x, {kernel}); F.conv2d(x, {kernel}, padding=1); F.conv2d(x, {kernel}, stride=2);
    F.conv_transpose2d(x, {kernel}.transpose(0, 1)); F.conv2d(x, {depth}, groups={c}, padding=1); F.max_pool2d(x, 2);
    F.max_pool2d(x, 3, 1, 1); F.avg_pool2d(x, 2); F.adaptive_avg_pool2d(x, 1); F.adaptive_avg_pool2d(x, (2, 2));
    F.adaptive_max_pool2d(x, 1); F.instance_norm(x); F.interpolate(x, scale_factor=2);
    F.interpolate(x, scale_factor=2, mode='bilinear'); F.interpolate(x, size=(3, 3), mode='bicubic'); F.dropout2d(x, 0.5);
    F.pad(x, (1, 1, 1, 1)); F.pad(x, (1, 1, 1, 1), mode='reflect'); F.pad(x, (1, 1, 1, 1), mode='replicate');
    F.pad(x, (0, 1, 1, 0), mode='circular'); F.unfold(x, 1); x.flatten(2).transpose(1, 2); x.permute(0, 2, 3, 1);
    x.permute(0, 2, 3, 1).contiguous(); F.local_response_norm(x, 2); x.to(memory_format=t.channels_last);
    x.contiguous(memory_format=t.channels_last); x.clone(memory_format=t.contiguous_format); t.empty_like(x).fill_(1.0);
    x.mean((2, 3)); x.mean((2, 3), keepdim=True); x.amax((2, 3), keepdim=True); F.lp_pool2d(x, 2, 2);
    F.grid_sample(x, x.new_zeros(x.shape[0], 2, 2, 2)); F.fold(x.flatten(1, 2), 1, (x.shape[3], 1)); F.logsigmoid(x)
    """,
        ),
        (
            (5,),
            """
    F.max_pool3d(x, 2); F.avg_pool3d(x, 2); F.adaptive_avg_pool3d(x, 1); F.interpolate(x, scale_factor=2);
    F.dropout3d(x, 0.5); F.conv3d(x, {kernel}[:, :, None]); F.instance_norm(x); F.pad(x, (1, 1, 1, 1, 1, 1));
    x.to(memory_format=t.channels_last_3d)
    """,
        ),
    )
]

WRITES = [
    call.strip()
    for call in """
    x.relu_(); x.mul_(2); x.add_({y}); x.sub_({b}); x.copy_({y}); x.zero_(); x.fill_(1.5); x.clamp_(-0.5, 0.5);
    x.masked_fill_({y} > 0, 2.0); x.normal_(); x.uniform_(); x.bernoulli_(0.5); F.dropout(x, 0.5, inplace=True);
    F.relu(x, inplace=True); x.exponential_(); x.sigmoid_(); x.lerp_({y}, 0.5); x.addcmul_({y}, {y}); x.random_(5);
    x.index_fill_(0, t.tensor([0]), 1.0); x.scatter_(0, ({y} > 9).long(), 1.0); x.cumsum_(0); x.t_(); x.squeeze_();
    x.unsqueeze_(0); x.transpose_(0, 1); x.index_put_((t.tensor([0]),), t.tensor(1.0)); x.resize_(x.shape); x.tril_()
""".replace("\n", " ").split(";")
]
