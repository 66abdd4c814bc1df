"""Sparse tensors in all layouts with autograd: made, converted, computed with, multiplied, reduced, indexed, made
dense, differentiated once or twice.

A program returns the dense values, the layout and the flag `is_coalesced` of what it made, and the gradients of its
leaves with their layouts."""

from __future__ import annotations

import random
from typing import Any

from harness import library
from live import Writer

DTYPES = ("float64",) * 4 + ("float32", "complex128")
SPARSE = (  # results that are mostly sparse
    "{s} * {n}",
    "{n} * {s}",
    "{s} / {n}",
    "-{s}",
    "{s} + {s2}",
    "{s} - {s2}",
    "{s} * {s2}",
    "t.add({s}, {s2}, alpha={n})",
    "{s} * {d}",
    "{d} * {s}",
    "{s} * {d}.sum()",
    "{s} / {d}.sum()",
    "{s} ** 2",
    "{s}.abs()",
    "{s}.sin()",
    "{s}.relu()",
    "{s}.square()",
    "{s}.t()",
    "{s}.transpose(0, 1)",
    "{s}.transpose(-1, -2)",
    "{s}.permute(1, 0)",
    "{s}.coalesce()",
    "{s}.clone()",
    "{s}.clone().mul_({n})",
    "{s}.clone().neg_()",
    "{s}.detach()",
    "{s}.to_sparse()",
    "{s}.to_sparse_csr()",
    "{s}.to_sparse_csc()",
    "{s}.to(t.float64)",
    "{s}.index_select({k}, t.tensor([{i}, 0]))",
    "{s}.select({k}, {i})",
    "{s}[{i}]",
    "{s}[:, {i}]",
    "{s}.unsqueeze({k})",
    "{s}.unsqueeze(0).squeeze(0)",
    "{s}.narrow_copy({k}, 0, {i})",
    "t.cat([{s}, {s2}], {k})",
    "t.stack([{s}, {s2}])",
    "t.hstack([{s}, {s2}])",
    "t.vstack([{s}, {s2}])",
    "t.sparse.softmax({s}, {k})",
    "t.sparse.log_softmax({s}, {k})",
    "t.sparse.sum({s}, {k})",
    "{s}.sum({k})",
    "{s}.sum({k}, keepdim=True)",
    "{s} @ {s2}",
    "t.sparse.mm({s}, {s2})",
    "{d}.sparse_mask({s})",
    "{s}.sparse_mask({s2})",
    "t.smm({s}, {d})",
    "t.hspmm({s}, {d})",
    "t.sspaddmm({s}, {s2}, {d})",
    "t.zeros_like({s}) + {s2}",
    "t.sparse.sampled_addmm({s}, {d}, {d})",
)
DENSE = (  # results that are dense
    "{s} @ {d}",
    "{d} @ {s}",
    "{s} @ {d}[:, 0]",
    "t.mv({s}, {d}[:, {i}])",
    "t.mm({s}, {d})",
    "t.addmm({d}, {s}, {d})",
    "t.addmm({d}, {s}, {d}, beta={n}, alpha={n})",
    "t.sparse.mm({s}, {d})",
    "t.sparse.mm({d}, {s})",
    "t.sparse.addmm({d}, {s}, {d}, beta={n}, alpha={n})",
    't.sparse.mm({s}, {d}, "{reduce}")',
    "t.bmm({s}, {d})",
    "{d} + {s}",
    "{d} - {s}",
    "t.add({d}, {s}, alpha={n})",
    "{d}.clone().add_({s})",
    "{s}.sum()",
    "t.sparse.sum({s})",
    "{s}.sum((0, 1))",
    "t.sparse.sum({s}, (0, 1))",
    "{s}.norm()",
    "{s}[0][{i}]",
    "{s}.coalesce().values()",
    "{s}.values()",
    "F.linear({d}, {s})",
    "{s}.to_dense()",
    "{s}.to_dense(masked_grad=False)",
)
PLACES: dict[str, Any] = {
    "n": lambda rng: rng.choice(("2", "-0.5", "3")),
    "k": lambda rng: rng.choice("0101-1".replace("-", "")) if rng.random() < 0.9 else "-1",
    "i": lambda rng: rng.choice("012"),
    "reduce": lambda rng: rng.choice(("sum", "mean", "amax", "amin")),
}
SHOWN = (
    "show = lambda q, grad=False: None if q is None else [str(q.layout), not grad and q.layout == t.sparse_coo "
    "and q._nnz() > 1 and q.is_coalesced(), q.detach().to_dense()]"
)


def program(rng: random.Random) -> str:
    writer = Writer(rng, library("torch"))
    dtype = rng.choice(DTYPES)
    leaves: list[str] = []
    size = rng.choice(((3, 3), (3, 3), (2, 3), (3, 2)))
    for _ in range(rng.choice((1, 1, 2))):
        leaves.append(dense_leaf(writer, size, dtype))
    for _ in range(rng.choice((1, 2))):
        leaves.append(sparse_source(writer, rng.choice((size, size, size[::-1])), dtype))
    for _ in range(rng.choice((1, 2, 2, 3))):
        step(writer, SPARSE if rng.random() < 0.75 else DENSE)
    step(writer, DENSE)
    return "\n".join([*writer.lines, SHOWN, *ended(writer, leaves)])


def dense_leaf(writer: Writer, size: tuple[int, ...], dtype: str) -> str:
    name = writer.fresh()
    writer.attempt(f"{writer.values(size, dtype)}.requires_grad_()", name)
    return name


def sparse_source(writer: Writer, size: tuple[int, int], dtype: str) -> str:
    """A sparse tensor: a leaf, or made of a leaf. Returns the leaf's name."""
    rng, leaf, made = writer.rng, writer.fresh(), writer.fresh()
    kind = rng.choice(("leaf", "dense", "values", "values", "csr", "hybrid"))
    if kind == "dense" or kind == "csr":
        values = [[writer.number(dtype) if rng.random() < 0.5 else 0 for _ in range(size[1])] for _ in range(size[0])]
        text = f"t.tensor({values}, dtype=t.{dtype})".replace("'", "")
        layout = rng.choice(("to_sparse()", "to_sparse_csr()", "to_sparse_csc()"))
        if kind == "csr":
            writer.attempt(f"{text}.{layout}.requires_grad_()", leaf)
            return leaf
        writer.attempt(f"{text}.requires_grad_()", leaf)
        writer.attempt(f"{leaf}.{layout}", made)
        return leaf
    count = rng.choice((0, 1, 2, 3, 4))
    places = [[rng.randrange(n) for _ in range(count)] for n in size]
    inside = (2,) if kind == "hybrid" else ()
    parts = f"t.tensor({places}, dtype=t.int64).view(2, {count})"
    values = f"{writer.values((count, *inside), dtype)}"
    if kind == "leaf":
        text = f"t.sparse_coo_tensor({parts}, {values}, {size}, requires_grad=True)"
        writer.attempt(text, leaf)
        return leaf
    writer.attempt(f"{values}.requires_grad_()", leaf)
    writer.attempt(f"t.sparse_coo_tensor({parts}, {leaf}, {(*size, *inside)})", made)
    return leaf


def step(writer: Writer, templates: tuple[str, ...]) -> None:
    """One more statement that torch answers."""
    for _ in range(12):
        text = writer.rng.choice(templates)
        for place, choose in PLACES.items():
            text = text.replace("{" + place + "}", choose(writer.rng))
        for place in ("{s}", "{s2}", "{d}"):
            while place in text:
                sparse = place != "{d}"
                name = writer.pick(lambda x, sparse=sparse: (str(x.layout) != "torch.strided") == sparse)
                if name is None:
                    break
                text = text.replace(place, name, 1)
        if "{" not in text and writer.attempt(text, writer.fresh()):
            return


def ended(writer: Writer, leaves: list[str]) -> list[str]:
    """The lines that differentiate and return."""
    rng, last = writer.rng, writer.made[-1]
    shown = f"[show(q) for q in [{', '.join(writer.made)}]]"
    dense = f"w = {last}.to_dense(masked_grad={rng.random() < 0.5})"
    if str(writer.scope[last].layout) == "torch.strided":
        dense = f"w = {last}"
    grads = f"[show(q.grad, True) for q in [{', '.join(leaves)}]]"
    if rng.random() < 0.3:
        return [
            dense,
            "loss = (w * w.conj()).real.sum()",
            f"g, = t.autograd.grad(loss, [{rng.choice(leaves)}], create_graph=True)",
            "h = g if g.layout == t.strided else g.to_dense(masked_grad=False)",
            "(h * h.conj()).real.sum().backward()",
            f"return [{shown}, show(g, True), {grads}]",
        ]
    power = rng.choice(("", " ** 2"))
    return [dense, f"((w * w.conj()).real.sum(){power}).backward()", f"return [{shown}, {grads}]"]
