"""torch as judge of itself: programs in which its norms are made of simple ops, and its forward mode of reverse mode.

torch 2.13 has wrong numbers where the forward derivative of a norm or of a determinant is differentiated again. With the
replacements below it must say the same, and says what is right.
"""
from __future__ import annotations

import re
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import harness

if find_spec("torch") is not None:
    import torch

# In the place of a checkpoint, which torch refuses under reverse mode.
PLAINLY = "plainly = lambda f, *args, use_reentrant=None: f(*args)\n"
# What makes forward and reverse mode differ by right, and what the replacement does not know.
APART = r"no_grad|inference_mode|set_grad_enabled|register_hook|forward_ad|rand(n?\(|n?_like)|dropout|bernoulli"
STRATEGY = r", vectorize=True, (outer_jacobian_)?strategy='forward-mode'"


def jvp(f: Any, primals: tuple, tangents: tuple) -> tuple:
    """(f(x), J t), J t as the derivative by g of g -> J' g, towards t."""
    out, pull = torch.func.vjp(f, *primals)
    _, push = torch.func.vjp(pull, torch.utils._pytree.tree_map(torch.zeros_like, out))
    return out, push(tuple(tangents))[0]


def twice(f: Any, argnums: Any = 0) -> Any:
    """The Hessian, backward twice."""
    return torch.func.jacrev(torch.func.jacrev(f, argnums), argnums)


def normalized(x: Any, dims: tuple, eps: float = 1e-5) -> Any:
    far = x - x.mean(dims, keepdim=True)
    return far / ((far * far).mean(dims, keepdim=True) + eps).sqrt()


def layer_norm(x: Any, shape: tuple, weight: Any = None, bias: Any = None) -> Any:
    out = normalized(x, tuple(range(-len(tuple(shape)), 0)))
    out = out if weight is None else out * weight
    return out if bias is None else out + bias


def group_norm(x: Any, groups: int) -> Any:
    return normalized(x.reshape(x.shape[0], groups, -1), (2,)).reshape(x.shape)


def batch_norm(x: Any, mean: None, var: None, training: bool = True) -> Any:
    return normalized(x, (0, *range(2, x.dim())))


def instance_norm(x: Any) -> Any:
    return normalized(x, tuple(range(2, x.dim())))


NORMS = {"layer_norm": layer_norm, "group_norm": group_norm, "batch_norm": batch_norm, "instance_norm": instance_norm}


def judges(text: str) -> list[dict[str, Any]]:
    """What stands in the place of the names of a program."""
    plain = SimpleNamespace(**{**vars(torch.nn.functional), **NORMS})
    found = [{"F": plain}] if "norm" in text else []
    if not re.search(APART, text) and re.search(r"func\.(jvp|jacfwd|hessian|linearize)\(|forward-mode", text):
        reverse = {"jvp": jvp, "jacfwd": torch.func.jacrev, "hessian": twice}
        found.append({"F": plain, "func": SimpleNamespace(**{**vars(torch.func), **reverse})})
    return found


def torch_is_wrong(text: str) -> bool:
    """Whether torch agrees with rushlight as soon as other ops and modes take the place of those that it has wrong."""
    if find_spec("torch") is None or not (names := judges(text)):
        return False
    ours = harness.run(text, harness.library("rushlight"))
    if harness.compared(harness.run(text, harness.library("torch")), ours) != "wrong":
        return False
    plain = PLAINLY + text.replace("t.utils.checkpoint.checkpoint(", "plainly(")
    found = [harness.run(re.sub(STRATEGY, "", plain) if "func" in given else plain, harness.Side("torch", torch, given))
             for given in names]
    return any(not judge.error and harness.compared(judge, ours) == "same" for judge in found)
