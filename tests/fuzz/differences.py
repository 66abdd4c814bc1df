"""Where a program may differ from torch on purpose, and the reason (docs/differences.md)."""

from __future__ import annotations

import re
from importlib.util import find_spec

import harness
from arbiter import torch_is_wrong

# (pattern searched for in the program's text, why the answers differ)
ON_PURPOSE: list[tuple[str, str]] = [
    (
        r"\blogical_(not|and|or|xor)_\(",
        "torch leaves the gradient of what the tensor was on the tensor: it should be zero",
    ),
    (r"(?s)cholesky_inverse\(.*(backward\(|grad\()", "torch's gradient counts the triangle that is not read"),
    (r"(?s)math\.nan.*beta=0.*(backward|grad)\(", "beta=0 gives no gradient: torch's is 0 times NaN"),
    (r"(?s)batch_norm\(.*_version", "the running statistics count their writes: torch's do not"),
    (r"(?s)triangular_solve\(.*o\.requires_grad", "the copy of the coefficients depends on nothing else"),
    (r"(?s)inference_mode.*\bdetach_\(", "detach_() detaches in inference_mode too: torch's does nothing there"),
    (
        r"(?s)register_multi_grad_hook\(\[(\w+)\].*(\b\1\.backward\(|backward\(\[\1\b|grad\(\1,)",
        "torch does not tell the hook of the only tensor that backward starts from",
    ),
    (r"\.data = ", "backward takes the numbers that an op had: torch, for a leaf, those that it has now"),
    (
        r"(?s)(?=.*(complex|\dj)).*silu\(\w+, inplace=True",
        "torch has no derivative of a complex silu, gives a wrong one",
    ),
    (r"\bbessel_[jyik][01]\(", "Bessel functions have derivatives, as in torch 2.15: torch 2.13 has none"),
    (r"\.view\(t\.uint8\)", "the last bytes of a number show its rounding"),
    (r"(?s)allow_mutation_on_saved_tensors.*_foreach_", "torch counts no versions for foreach functions in there"),
    (
        r"\(lambda v: v\.mul_\(2\)\)\(\(x \* 1\)\.unbind\(0\)\[0\]\)",
        "a write to one of several views is recorded as one through any other view: torch refuses it",
    ),
    (
        r"\(y\.exp_\(\), y\.__setitem__\(0, 1\.0\), y\)",
        "the node keeps its own copy of the output of an in-place op: torch refuses",
    ),
    (
        r"(?s)def forward\(ctx, x\): return x \* 2.*func\.grad\(lambda x: S\.apply\(x\)\.sum\(\)\)",
        "a Function of the old style works inside func.grad: torch refuses it",
    ),
    (
        r"(?s)(?=.*autograd\.functional\.(jacobian|hessian)\([^\n]*forward-mode).*inference_mode",
        "jacobian and hessian in forward mode are right inside inference_mode: torch gives zeros",
    ),
    (
        r"(?s)def jvp\(ctx(.*\bfunc\.(jvp|jacfwd|hessian)\(){2}",
        "the jvp of a Function is differentiated again: torch takes it for constant",
    ),
    (
        r"(?s)\w\[[^\]\n]*\b[xyz]\b[^\]\n]*\] [-*+]?= .*vmap\(.*vmap\(",
        "torch's vmap of a vmap writes elsewhere where the outer one alone maps the index",
    ),
    (
        r"(?s)sparse_coo_tensor\(.*create_graph=True",
        "the gradient of sparse_coo_tensor's values has a gradient of its own: torch's has none",
    ),
    (
        r"(?s)sparse_coo_tensor\(.*\.((log_)?softmax|sparse_mask)\(.*(backward|grad)\(",
        "softmax and sparse_mask of indices that repeat have the gradient of the sums: torch's are others",
    ),
    (r"(?s)to_sparse_csc\(.*sparse\.mm\(", "torch's product of two CSC matrices is wrong"),
    (r"is_inference\(\)", "tensors made in inference_mode are ordinary tensors"),
    (r"create_graph=True\)\[0\]\.requires_grad", "a gradient that does not depend on the input does not require grad"),
    (r"outer_jacobian_strategy=.forward-mode.\)\.requires_grad", "without create_graph results do not require grad"),
    (r"as_strided_scatter\(", "torch gives the gradient also to what is written over"),
    (r"(?s)binary_cross_entropy_with_logits\(.*layout\(", "the losses lie as the input does: torch's as 1 - target"),
    (r"(?s)\b(unfold|as_strided|expand)\(.*\b(kthvalue|median|topk|mode)\(", "of equal elements torch picks any"),
    (
        r"(?s)\b(unfold|as_strided|expand)\(.*\b(diagonal|select|slice)_scatter\(",
        "torch's copy keeps windows that overlap",
    ),
    (
        r"(?s)\b(diagonal|select|slice)_scatter\(.*layout\(",
        "the copy lies without gaps: torch's keeps those of its input",
    ),
    (
        r"(?s)\.(conj|adjoint|mH|H)\b.*(\w_\(|\]\)? = |[-+*/]= |out=|\.grad = |\.real = "
        r"|\.imag|inplace)",
        "conj() computes: torch's lazy conjugate shares memory with its base, which is written to",
    ),
]
# Pack hooks that keep the tensor itself.
KEPT = (
    r"t\.autograd\.graph\.(saved_tensors_hooks\(lambda (\w+): \2,.*?lambda (\w+): "
    r"\3\)|save_on_cpu\(\))"
)
HOOKS = r"t\.autograd\.graph\.saved_tensors_hooks\(lambda \w+: .*?, lambda \w+: .*?\)(?=:)"
# What a program calls in the place of a checkpoint, to see what torch says without one.
PLAINLY = "plainly = lambda f, *args, use_reentrant=None, preserve_rng_state=None, **named: f(*args, **named)\n"


def reason(text: str) -> str | None:
    """Why this program's answers differ on purpose; None if they should agree."""
    if written_after_it_was_kept(text):
        return "without the hooks torch refuses: a pack hook kept a tensor that was written to later"
    if (found := next((why for pattern, why in ON_PURPOSE if re.search(pattern, text)), None)) is not None:
        return found
    return "torch contradicts itself: see arbiter.py" if torch_is_wrong(text) else None


def written_after_it_was_kept(text: str) -> bool:
    """Whether torch says without the pack hooks, or the checkpoints, that a saved tensor has changed."""
    plain = re.sub(KEPT, "t.set_grad_enabled(t.is_grad_enabled())", text)
    if plain != text or "t.utils.checkpoint.checkpoint(" in plain:
        plain = re.sub(HOOKS, "t.set_grad_enabled(t.is_grad_enabled())", plain)
    if "t.utils.checkpoint.checkpoint(" in plain:
        plain = PLAINLY + plain.replace("t.utils.checkpoint.checkpoint(", "plainly(")
    if plain == text or find_spec("torch") is None:
        return False
    return "modified by an inplace operation" in harness.run(plain, harness.library("torch")).error
