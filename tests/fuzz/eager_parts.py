"""What statements of eager programs are made of: templates, whose places live.py fills for the tensor called {x}."""

from __future__ import annotations


def listed(text: str) -> list[str]:
    return [line.strip() for line in text.strip().split("\n") if line.strip()]


VIEWS = listed("""
    {x}.select({d}, {i})
    {x}[{i}]
    {x}[{key}]
    {x}[{key}]
    {x}.narrow({d}, 0, {n})
    {x}.narrow({d}, -1, 1)
    {x}.unbind({d})[{i}]
    {x}.split({n}, {d})[-1]
    {x}.split([1, {n}], {d})[1]
    {x}.chunk(2, {d})[0]
    {x}.tensor_split(2, {d})[1]
    t.hsplit({x}, 1)[0]
    {x}.transpose({d}, {e})
    {x}.swapaxes({d}, {e})
    {x}.movedim({d}, {e})
    {x}.permute({order})
    {x}.t()
    {x}.mT
    {x}.T
    {x}.mH
    {x}.adjoint()
    {x}.view({shape})
    {x}.view(-1)
    {x}.view_as({same})
    {x}.reshape({shape})
    {x}.reshape(-1)
    {x}.flatten()
    {x}.ravel()
    {x}.unflatten({d}, (-1, {n}))
    {x}.unsqueeze({d})
    {x}.squeeze()
    {x}.squeeze({d})
    {x}[None]
    {x}[..., None]
    {x}.expand(2, *{sizes})
    {x}.expand({sizes})
    {x}.expand_as({any})
    t.broadcast_tensors({x}, {any})[0]
    {x}.unfold({d}, {n}, {n})
    {x}.unfold({d}, 2, 2)
    {x}.unfold({d}, 2, 1).clone()
    {x}.diagonal()
    {x}.diagonal(1, {d}, {e})
    {x}.as_strided((2, 2), (2, 1))
    {x}.as_strided((2, 2), (1, 2))
    {x}.as_strided((3,), (1,), 1)
    {x}.as_strided((2,), (2,), {i})
    {x}.detach()
    {x}.data
    {x}.real
    {x}.imag
    {x}.conj()
    t.view_as_real({x})
    t.view_as_complex({x})
    {x}.view(t.uint8)
    {x}.contiguous()
    {x}.to(t.{dtype})
    {x}.positive()
    t.atleast_2d({x})
    t.diag_embed({x})
    {x}.rot90(1, ({d}, {e}))
    {x}.split_with_sizes([1, {n}], {d})[0]
    {x}.resolve_conj()
    F.unfold({x}[None, None], 2)
""")

WRITES = listed("""
    {x}.add_({y})
    {x}.add_({z}, alpha={s})
    {x}.sub_({y})
    {x}.mul_({y})
    {x}.div_({y})
    {x}.pow_({n})
    {x}.copy_({z})
    {x}.copy_({any}.clone())
    {x}.fill_({s})
    {x}.fill_({z}.sum())
    {x}.zero_()
    {x}.sin_()
    {x}.cos_()
    {x}.tanh_()
    {x}.exp_()
    {x}.abs_()
    {x}.neg_()
    {x}.sigmoid_()
    {x}.square_()
    {x}.relu_()
    {x}.sgn_()
    {x}.floor_()
    {x}.clamp_(-1, 1)
    {x}.clamp_(max={z})
    {x}.clamp_min_({z})
    {x}.lerp_({z}, 0.3)
    {x}.lerp_({z}, {same})
    {x}.addcmul_({z}, {same}, value={s})
    {x}.addcdiv_({z}, {same}.abs() + 1)
    {x}.addmm_({same}.clone(), {same}.clone())
    {x}.addmv_({x}[:, None] * {same}, {same}.clone())
    {x}.baddbmm_({same}.clone(), {same}.clone())
    {x}.addr_({x}[:, 0].clone(), {same}[0].clone())
    {x}.masked_fill_({mask}, {s})
    {x}.masked_fill_({mask}, {z}.sum())
    {x}.masked_scatter_({mask}, {same}.clone())
    {x}.index_fill_({d}, {idx}, {s})
    {x}.index_add_({d}, {idx}, {same}.narrow({d}, 0, 1))
    {x}.index_add_(0, {idx2}, {same}[:2].clone(), alpha={s})
    {x}.index_copy_(0, {idx2}, {same}[:2].clone())
    {x}.index_put_(({idx},), {z}.sum())
    {x}.index_put_(({idx2}, {idx2}), {z}.sum(), accumulate={flag})
    {x}.put_({idx2}, {z}.reshape(-1)[:2], accumulate={flag})
    {x}.scatter_(0, t.zeros_like({x}, dtype=t.int64), {same})
    {x}.scatter_(0, t.zeros_like({x}, dtype=t.int64)[:1], {s})
    {x}.scatter_add_({d}, t.zeros_like({x}, dtype=t.int64), {same})
    {x}.scatter_reduce_(0, t.zeros_like({x}, dtype=t.int64), {same}, "sum")
    {x}.index_reduce_(0, {idx2}, {same}[:2].clone(), "mean")
    {x}.cumsum_({d})
    {x}.cumprod_({d})
    {x}.tril_()
    {x}.triu_(1)
    {x}.fill_diagonal_({s})
    {x}.t_()
    {x}.transpose_({d}, {e})
    {x}.squeeze_()
    {x}.unsqueeze_({d})
    {x}.swapaxes_({d}, {e})
    {x}.detach_()
    {x}.hypot_({z})
    {x}.atan2_({z})
    {x}.copysign_({z})
    {x}.xlogy_({z}.abs() + 1)
    {x}.eq_({z})
    {x}.gt_({z})
    {x}.remainder_(2)
    {x}.fmod_(2)
    {x}.nan_to_num_(0.5)
    {x}.bernoulli_(0.5)
    {x}.uniform_()
    {x}.normal_()
    {x}.random_(5)
    {x}.conj_physical_()
    {x}.logit_(0.1)
    {x}.sinc_()
    {x}.erf_()
    {x}.abs_().add_(0.5).rsqrt_()
    {x}.abs_().add_(0.5).sqrt_()
    {x}.square_().log1p_()
    {x}.square_().add_(0.5).reciprocal_()
    F.relu({x}, inplace=True)
    F.silu({x}, inplace=True)
    F.elu({x}, inplace=True)
    F.leaky_relu({x}, 0.2, inplace=True)
    F.hardtanh({x}, inplace=True)
    F.hardswish({x}, inplace=True)
    F.mish({x}, inplace=True)
    F.selu({x}, inplace=True)
    F.celu({x}, inplace=True)
    F.threshold({x}, 0.1, {s}, inplace=True)
    F.dropout({x}, 0.5, inplace=True)
    F.rrelu({x}, inplace=True)
    t.nn.ReLU6(inplace=True)({x})
    t.nn.init.constant_({x}, {s})
    t._foreach_add_([{x}], {s})
    t._foreach_mul_([{x}, {same}.detach().clone()], {s})
    t._foreach_add_([{x}], [{same}], alpha={s})
    t._foreach_copy_([{x}], [{same}])
    t._foreach_zero_([{x}])
    t._foreach_addcmul_([{x}], [{same}], [{same}], {s})
    t._foreach_sin_([{x}])
    {x}.requires_grad_()
    {x}.requires_grad_(False)
    {x}.data.mul_({s})
    {x}.data.copy_({z})
    {x}.detach().add_({s})
    {x}.set_({same})
""")

ASSIGNMENTS = listed("""
    {x}[{key}] = {y}
    {x}[{key}] = {s}
    {x}[{key}] = {any}
    {x}[{key}] += {s}
    {x}[{key}] *= {any}
    {x}[{key}].mul_({s})
    {x}[{mask}] = {s}
    {x}[{mask}] = {same}[{mask}]
    {x}[{i}] = {x}[0]
    {x}[{key}], {x}[{key}] = {x}[{key}], {s}
    {x} += {z}
    {x} *= {y}
    {x} -= {y}
    {x} /= 2
    {x} **= 2
    {x}.data = {same}.clone()
    {x}.data = {same}.detach() * 2
    {x}.data = {any}.detach()
    {x}.grad = {same}.detach()
    {x}.requires_grad = True
    {x}.T[{i}] = {s}
    {x}.real = {s}
    {x}.imag[{i}] = {s}
    {x}.diagonal().add_({y})
    {x}.unbind({d})[{i}].mul_({s})
    {x}.view(-1)[{i}] = {any}
    {x}.split(1)[{i}].copy_({any})
""")

OUT = listed("""
    t.add({x}, {y}, out={same}.detach())
    t.mul({x}, {z}, out={same})
    t.sin({x}, out={same})
    t.exp({x}, out=t.zeros(0, dtype={x}.dtype))
    t.sum({x}, {d}, keepdim=True, out=t.zeros(0, dtype={x}.dtype))
    t.cumsum({x}.clone(), {d}, out={same})
    t.cat([{x}, {x}], out=t.zeros(0, dtype={x}.dtype))
    t.where({mask}, {x}, {z}, out={same})
    t.clamp({x}, -1, 1, out={same})
    t.index_select({x}, 0, {idx}, out=t.zeros(0, dtype={x}.dtype))
    t.sub({x}, {z}, out={x})
    t.abs({x}, out={x}[...])
    t.stack([{x}, {same}], out=t.zeros(0, dtype={x}.dtype))
    t.bmm({x}.clone(), {same}.clone(), out={same}.detach())
    t.sort({x}, {d}, out=({same}, t.zeros(0, dtype=t.int64)))
""")

# Tensors of their own memory, most of them recorded by autograd.
RESULTS = listed("""
    {x} + {y}
    {x} - {y}
    {x} * {y}
    {x} * {y}
    {x} / ({z}.abs() + 1)
    {x} ** 2
    {x} ** {n}
    -{x}
    {s} - {x}
    {x} * 1
    {x}.clone()
    {x}.sin()
    {x}.cos()
    {x}.tanh()
    {x}.exp()
    {x}.sigmoid()
    {x}.abs()
    {x}.relu()
    {x}.square()
    ({x}.abs() + 0.5).log()
    ({x}.abs() + 0.5).sqrt()
    {x}.erf()
    {x}.sum()
    {x}.sum({d})
    {x}.sum({d}, keepdim=True)
    {x}.mean({d})
    {x}.prod({d})
    {x}.amax({d})
    {x}.max({d}).values
    {x}.max()
    {x}.median()
    {x}.var({d}).add(1).sqrt()
    {x}.var({d}, correction=0)
    {x}.norm()
    {x}.norm(dim={d})
    {x}.logsumexp({d})
    {x}.cumsum({d})
    {x}.cumprod({d})
    {x}.softmax({d})
    {x}.log_softmax({d})
    {x}.sort({d}).values
    {x}.topk(1, {d}).values
    {x}.flip({d})
    {x}.roll(1, {d})
    {x}.repeat(2, *[1] * {x}.dim())
    {x}.repeat_interleave(2, {d})
    {x}.tril()
    {x} @ {mat}
    t.cat([{x}, {same}], {d})
    t.cat([{x}, {any}])
    t.stack([{x}, {same}], {d})
    t.where({mask}, {x}, {y})
    {x}.masked_fill({mask}, {s})
    {x}.gather({d}, t.zeros_like({x}, dtype=t.int64))
    {x}.index_select({d}, {idx})
    {x}.take({idx})
    t.take_along_dim({x}, t.zeros_like({x}, dtype=t.int64), {d})
    {x}.scatter({d}, t.zeros_like({x}, dtype=t.int64), {same})
    {x}.index_add(0, {idx2}, {same}[:2])
    {x}.index_put(({idx},), {z}.sum())
    {x}.select_scatter({s} * {x}.select({d}, 0), {d}, 0)
    {x}.slice_scatter({same}[:1], 0, 0, 1)
    {x}.diagonal_scatter({x}.diagonal() * {s})
    {x}.clamp(-1, 1)
    t.maximum({x}, {z})
    t.lerp({x}, {same}, 0.3)
    t.addcmul({x}, {same}, {z})
    t.outer({x}, {x})
    t.einsum("i,j->ij", {x}, {x})
    t.einsum("ij,kj->ik", {x}, {same})
    t.cdist({x}, {same})
    t.kron({x}, {x})
    {x}.to(t.{other_dtype})
    {x}.double()
    {x}.float()
    {x}.to(t.bfloat16)
    t.complex({x}, {same})
    {x}.abs().sum()
    t.zeros_like({x})
    t.ones_like({x}, requires_grad=True)
    t.full_like({x}, {s})
    {x}.new_zeros({sizes})
    t.rand_like({x})
    {x} > 0
    {x}.argmax({d})
    {x}.long()
    {x}.numpy(force=True).shape and {x}.detach().clone().requires_grad_()
    F.layer_norm({x}, ({last},))
    F.batch_norm({x}, t.zeros({x}.shape[1], dtype={x}.dtype), t.ones({x}.shape[1], dtype={x}.dtype), training={flag})
    F.linear({x}, {same})
    F.linear({x}, {same}, {z}.sum())
    F.gelu({x})
    F.softplus({x})
    F.dropout({x}, 0.5)
    F.normalize({x}, dim={d})
    F.pad({x}, (1, 1))
    F.pad({x}, (-1, 0))
    F.conv1d({x}[None], {x}[:, None])
    F.max_pool1d({x}[None], 2)
    F.avg_pool1d({x}[None], 2)
    F.interpolate({x}[None], scale_factor=2)
    F.embedding({idx}, {x})
    F.cross_entropy({x}, t.zeros({len}, dtype=t.int64))
    F.mse_loss({x}, {same})
    F.smooth_l1_loss({x}, {same})
    F.scaled_dot_product_attention({x}[None], {same}[None], {same}[None])
    F.glu(t.cat([{x}, {same}], {d}), {d})
    F.cosine_similarity({x}, {same}, {d})
    F.prelu({x}, {z}.sum().reshape(1))
    t.nn.BatchNorm1d({x}.shape[1], dtype={x}.dtype)({x})
    t.nn.Linear({last}, 2, dtype={x}.dtype)({x})
    t.nn.Sequential(t.nn.Linear({last}, 3, dtype={x}.dtype), t.nn.ReLU(inplace=True))({x})
    t.nn.GroupNorm(1, {x}.shape[1], dtype={x}.dtype)({x})
    t._foreach_mul([{x}], [{same}])[0]
    t.linalg.norm({x})
    {x}.det()
    t.fft.fft({x}).abs()
    {x}.__deepcopy__({{}}) if {x}.is_leaf else {x} * 3
""")

CONTEXTS = listed("""
    t.no_grad()
    t.no_grad()
    t.enable_grad()
    t.set_grad_enabled({flag})
    t.inference_mode()
    t.inference_mode(False)
    t.autograd.graph.saved_tensors_hooks(lambda q: q, lambda q: q)
    t.autograd.graph.saved_tensors_hooks(lambda q: q.clone(), lambda q: q)
    t.autograd.graph.saved_tensors_hooks(lambda q: q * 2, lambda q: q / 2)
    t.autograd.graph.saved_tensors_hooks(lambda q: q.numpy(force=True).copy(), lambda q: t.from_numpy(q))
    t.autograd.graph.save_on_cpu()
    t.autograd.graph.allow_mutation_on_saved_tensors()
    t.autocast("cpu")
    t.autocast("cpu", dtype=t.float16)
    t.autocast("cpu", enabled=False)
    t.autograd.detect_anomaly()
    t.random.fork_rng()
""")

# `.grad_fn` comes first: torch crashes on a hook of a view whose base was written to, unless its node was asked for.
HOOKS = listed("""
    {x}.grad_fn, {x}.register_hook(lambda g: g * {s})
    {x}.grad_fn, {x}.register_hook(lambda g: log.append(g.sum()))
    {x}.grad_fn, {x}.register_hook(lambda g: g.clone().fill_({s}))
    {x}.grad_fn, {x}.register_hook(lambda g: log.append(g + {x}.detach()))
    {x}.grad_fn, {x}.register_hook(lambda g: g * 3).remove()
    {x}.grad_fn, {x}.retain_grad()
    {x}.grad_fn, {x}.register_post_accumulate_grad_hook(lambda p: log.append(p.grad.clone()))
    {x}.grad_fn.register_hook(lambda inputs, outputs: log.append(outputs[0].sum()))
    {x}.grad_fn.register_hook(lambda inputs, outputs: tuple(g * {s} if g is not None else g for g in inputs))
    {x}.grad_fn.register_prehook(lambda outputs: log.append(outputs[0].sum()))
    {x}.grad_fn.register_prehook(lambda outputs: tuple(g * {s} if g is not None else g for g in outputs))
    t.autograd.graph.register_multi_grad_hook([{x}], lambda gs: log.append(gs[0].sum())) if {x}.grad_fn else 0
    t.autograd.graph.register_multi_grad_hook([{x}], lambda g: log.append(g.sum()), mode="any") if {x}.grad_fn else 0
""")

# Gradients in the middle of a program.
BACKWARDS = listed("""
    {x}.sum().backward(retain_graph=True)
    {x}.backward(t.ones_like({x}), retain_graph={flag})
    {x}.sum().backward()
    {x}.square().sum().backward(create_graph=True)
    {x}.sum().backward(inputs=[{leaf}], retain_graph=True)
    t.autograd.backward([{x}, {any}], [t.ones_like({x}), t.ones_like({any})], retain_graph=True)
""")
# Copies: torch adds gradients up in place, or expands them, which shows in their versions and strides.
GRADIENTS = listed("""
    t.autograd.grad({x}.sum(), {any}, retain_graph={flag})[0].clone(memory_format=t.contiguous_format)
    t.autograd.grad({x}.sum(), {any}, create_graph=True)[0].clone(memory_format=t.contiguous_format)
    t.autograd.grad({x}.square().sum(), {any}, create_graph=True)[0].clone(memory_format=t.contiguous_format)
    t.autograd.grad({x}, {any}, t.ones_like({x}), create_graph=True)[0].clone(memory_format=t.contiguous_format)
    t.autograd.grad({x} * 1, {any}, {same}.detach().clone(), retain_graph=True, materialize_grads=True)[0] * 1
    t.autograd.grad({x}, {any}, t.ones_like({x}).expand(2, *{sizes}), is_grads_batched=True)[0] * 1
    t.autograd.functional.vjp(lambda q: q.sin() * q, {x}, {same})[1].clone(memory_format=t.contiguous_format)
    t.autograd.functional.jvp(lambda q: q.sin() * q, {x}, {same}, create_graph=True)[1] * 1
""")
CHECKPOINTS = listed("""
    t.utils.checkpoint.checkpoint({f}, {x}, use_reentrant=False)
    t.utils.checkpoint.checkpoint({f}, {x}, use_reentrant=False)
    t.utils.checkpoint.checkpoint({f}, {x}, use_reentrant=True)
    t.utils.checkpoint.checkpoint_sequential([{f}, t.sin, {f}], 2, {x}, use_reentrant={flag})
    {f}({x})
""")
# Custom Functions: what forward makes of x (or of x and y), and what backward makes of the gradient of it.
OUTPUTS = [
    ("x.sin()", "g * s.cos()"),
    ("x * 2", "g * 2"),
    ("x * x", "2 * s * g"),
    ("x", "g"),
    ("x.view_as(x)", "g * 3"),
    ("x.mT", "g.mT"),
    ("x.sum()", "g.expand_as(s)"),
    ("x.detach()", "g"),
    ("x > 0", ""),
    ("x.clone().exp_()", "g * s.exp()"),
    ("x * y", "g * r"),
    ("x + 2 * y", "g.sin()"),
    ("x[...]", "g"),
    ("x.clone()", "g.mul(s)"),
    ("x.unbind()[0]", "g.expand_as(s)"),
]
OWN = [(f, g) for f, g in OUTPUTS if g and any(sign in f for sign in "*+_")]  # in memory of their own
