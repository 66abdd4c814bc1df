"""torch as judge of itself: its norms, distances and solvers made of simple ops, its forward mode of reverse mode.

torch 2.13 has wrong numbers where the forward derivative of a norm, a determinant, a solution or a QR decomposition is
differentiated again. With the replacements below it must say the same, and says what is right."""

from __future__ import annotations

import re
from contextlib import ExitStack
from importlib.util import find_spec
from typing import Any
from unittest.mock import patch

import harness

if find_spec("torch") is not None:
    import torch

# In the place of a checkpoint, which torch refuses under reverse mode.
PLAINLY = "plainly = lambda f, *args, use_reentrant=None: f(*args)\n"
# What calls a Function: torch records those with a setup_context inside no_grad too, if a transform of torch.func is
# around.
APPLIED = "applied = lambda S, *args: (lambda out: out if t.is_grad_enabled() else out.detach())(S.apply(*args))\n"
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


# -- norms of simple ops ---------------------------------------------------------------------------


def normalized(x: Any, dims: tuple, eps: float, weight: Any = None, bias: Any = None) -> Any:
    far = x - x.mean(dims, keepdim=True)
    out = far / ((far * far).mean(dims, keepdim=True) + eps).sqrt()
    out = out if weight is None else out * weight
    return (out if bias is None else out + bias).clone()  # nobody needs it: programs may write to it


def layer_norm(x: Any, shape: tuple, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    return normalized(x, tuple(range(-len(tuple(shape)), 0)), eps, weight, bias)


def by_channel(x: Any, parameter: Any) -> Any:
    return None if parameter is None else parameter.reshape(-1, *[1] * (x.dim() - 2))


def group_norm(x: Any, groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    out = normalized(x.reshape(x.shape[0], groups, -1), (2,), eps).reshape(x.shape)
    out = out if weight is None else out * by_channel(x, weight)
    return out if bias is None else out + by_channel(x, bias)


def batch_norm(
    x: Any,
    mean: Any,
    var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    weight, bias = by_channel(x, weight), by_channel(x, bias)
    if training:  # without an update of the running statistics
        return normalized(x, (0, *range(2, x.dim())), eps, weight, bias)
    out = (x - by_channel(x, mean)) / (by_channel(x, var) + eps).sqrt()
    out = out if weight is None else out * weight
    return out if bias is None else out + bias


def instance_norm(
    x: Any,
    mean: Any = None,
    var: Any = None,
    weight: Any = None,
    bias: Any = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    return normalized(x, tuple(range(2, x.dim())), eps, by_channel(x, weight), by_channel(x, bias))


# -- linear algebra of simple ops ------------------------------------------------------------------


def det(a: Any) -> Any:
    """By the first row and its minors."""
    n = a.shape[-1]
    if n == 1:
        return a[..., 0, 0]
    columns = [[j for j in range(n) if j != i] for i in range(n)]
    return sum((-1) ** i * a[..., 0, i] * det(torch.stack([a[..., 1:, j] for j in columns[i]], -1)) for i in range(n))


def slogdet(a: Any) -> tuple:
    d = det(a)
    return d.detach().sign(), d.abs().log()


def qr(a: Any) -> tuple:
    """Up to the signs of R's rows: programs look at abs() of R."""
    square = a[..., : a.shape[-2]]
    upper = torch.linalg.cholesky(square.mT @ square).mT
    q = square @ torch.linalg.inv(upper)
    return q, q.mT @ a


def solve(a: Any, b: Any) -> Any:
    return torch.linalg.inv(a) @ b


def cdist(a: Any, b: Any) -> Any:
    squares = ((a.unsqueeze(-2) - b.unsqueeze(-3)) ** 2).sum(-1)
    return torch.where(squares == 0, 0, torch.where(squares == 0, 1, squares).sqrt())


def select_scatter(x: Any, y: Any, dim: int, index: int) -> Any:
    at = index % x.shape[dim]
    return torch.cat([x.narrow(dim, 0, at), y.unsqueeze(dim), x.narrow(dim, at + 1, x.shape[dim] - at - 1)], dim)


NORMS = {"layer_norm": layer_norm, "group_norm": group_norm, "batch_norm": batch_norm, "instance_norm": instance_norm}
LINALG = {"det": det, "slogdet": slogdet, "qr": qr, "solve": solve}


# -- the judgement ---------------------------------------------------------------------------------


def replaced(text: str, forward: bool) -> ExitStack:
    """While it is open, torch's functions are those above; `forward`: its forward mode, too."""
    stack = ExitStack()
    if "norm" in text or "Norm" in text:
        stack.enter_context(patch.multiple(torch.nn.functional, **NORMS))
    stack.enter_context(patch.multiple(torch.linalg, **LINALG))
    stack.enter_context(
        patch.multiple(torch, logdet=lambda a: det(a).log(), cdist=cdist, select_scatter=select_scatter)
    )
    if forward:
        stack.enter_context(patch.multiple(torch.func, jvp=jvp, jacfwd=torch.func.jacrev, hessian=twice))
    return stack


def torch_is_wrong(text: str) -> bool:
    """Whether torch agrees with rushlight as soon as other ops and modes take the place of those that it has wrong."""
    if find_spec("torch") is None:
        return False
    forward = not re.search(APART, text) and re.search(r"func\.(jvp|jacfwd|hessian|linearize)\(|forward-mode", text)
    if not forward and not re.search(
        r"[nN]orm|det\(|cdist\(|linalg\.(qr|solve)\(|select_scatter\(|setup_context", text
    ):
        return False
    ours = harness.run(text, harness.library("rushlight"))
    if harness.compared(harness.run(text, harness.library("torch")), ours) != "wrong":
        return False
    plain = PLAINLY + APPLIED + text.replace("t.utils.checkpoint.checkpoint(", "plainly(")
    plain = re.sub(r"(?<!return )\b(S\d)\.apply\(", r"applied(\1, ", plain)
    for other_modes in (False, True) if forward else (False,):
        with replaced(text, other_modes):
            judge = harness.run(re.sub(STRATEGY, "", plain) if other_modes else plain, harness.library("torch"))
        if not judge.error and harness.compared(judge, ours) == "same":
            return True
    return False
