"""The chain rule of one derivative: every factor, every path, their sum, in words, numbers and LaTeX."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import numpy as np

from rushlight.base.errors import explain as message
from rushlight.core.backward import grad
from rushlight.core.engine import leading_to, reachable
from rushlight.core.node import Node
from rushlight.core.tensor import Tensor
from rushlight.core.worlds import sum_to_array
from rushlight.introspect.formulas import Formula
from rushlight.ops.grad_mode import no_grad
from rushlight.viz.array_preview import rounded
from rushlight.viz.backward_steps import forward_values
from rushlight.viz.graph import Params, check_kept, check_recorded
from rushlight.viz.graph_formulas import MAX_SYMBOLS, Symbols, is_partial, product, size, total
from rushlight.viz.node_names import names_of, tensors_in, users_variables, written_names
from rushlight.viz.op_sentences import Use, backward_sentence, place_of

MAX_PATHS = 64  # most paths that are listed individually


@dataclass(frozen=True)
class Factor:
    """A factor of a path: d `result` / d `operand`; ∂ if the result has several inputs (`partial`).

    `formula`: in the names of the steps. `full`: in the names of the leaves, with numbers for constants; None if there
    is no plain formula, as for a matrix product. `value`: for an elementwise op. `words`: the rule as a sentence.
    `place`: "first" or "second" where the step uses the operand several times, as in x * x; `text` then names both.
    """

    result: str
    operand: str
    formula: Any
    full: Any
    rule: str | None
    value: np.ndarray | None
    words: str | None = None
    partial: bool = False
    place: str = ""
    placed: Any = None
    apart: bool = False  # the formula by another of these operands differs

    @property
    def slope(self) -> str:
        d = "∂" if self.partial else "d"
        into = f"({self.place} {self.operand})" if self.place else self.operand
        return f"{d}{self.result}/{d}{into}"

    @property
    def text(self) -> str:
        """The formula in the names of the steps; the slope if there is none."""
        return str(self.formula) if self.formula is not None else self.slope

    @property
    def told(self) -> str:
        """The formula with operands told apart: the derivative of x * x by the first x is the second x."""
        return self.text if self.placed is None else str(self.placed)


@dataclass(frozen=True)
class Path:
    """A path from the output to `wrt`: its factors, and its contribution to the derivative."""

    factors: tuple[Factor, ...]
    share: np.ndarray

    def formula(self, full: bool = True) -> Any:
        """The product of the factors, in the names of the leaves or of the steps; None if a factor has no plain
        formula.
        """
        parts = [f.full if full else f.formula for f in self.factors]
        return None if any(f.full is None for f in self.factors) else product(parts)

    def __str__(self) -> str:
        if not self.factors:
            return ""
        before = [None, *self.factors]
        names = [
            f"{b.place} {f.result}" if b is not None and b.apart else f.result for b, f in zip(before, self.factors)
        ]
        last = self.factors[-1]
        return " → ".join([*names, f"{last.place} {last.operand}" if last.apart else last.operand])


class Explanation:
    """The chain rule of d `output` / d `wrt`.

    `steps`: (name, formula, value) of the forward pass; `factors`; `paths` (empty if there are more than 64; `count` is
    their number); `formula`: the derivative, in leaves if it is not too large, else in the names of the steps; `value`:
    the result of backward; `values`: the values of the names in the formulas; `constants`: sentences on the letters of
    constants. Printed as text, shown in a notebook as a page; `latex` is the derivative.
    """

    def __init__(
        self, output: str, wrt: str, steps: list, factors: list[Factor], paths: list[Path], count: int, value: Tensor,
        values: dict[str, Any], constants: list[str],
    ):  # fmt: skip
        self.output, self.wrt, self.steps, self.factors = output, wrt, steps, factors
        self.constants = constants
        self.paths, self.count, self.value, self.values = paths, count, value, values
        self.formula = self.summed(full=True)

    def summed(self, full: bool) -> Any:
        """The sum over paths, in the names of the leaves; in the names of the steps if that is too large."""
        terms = [path.formula(full) for path in self.paths]
        if not terms or any(term is None for term in terms):
            return None
        whole = total(terms)
        return self.summed(full=False) if full and size(whole) > 4 * MAX_SYMBOLS else whole

    @property
    def latex(self) -> str:
        """The derivative as an equation; if it has no plain formula, the sum over paths of products of partial
        derivatives.
        """
        name = f"\\frac{{\\partial {tex(self.output)}}}{{\\partial {tex(self.wrt)}}}"
        if self.formula is not None:
            return f"{name} = {tex(self.formula)}"
        products = [
            " \\, ".join(f"\\frac{{\\partial {tex(f.result)}}}{{\\partial {tex(f.operand)}}}" for f in path.factors)
            for path in self.paths
        ]
        return f"{name} = {' + '.join(products)}" if products else name

    def __str__(self) -> str:
        return "\n".join(self.lines())

    __repr__ = __str__

    def lines(self) -> Iterator[str]:
        yield f"d{self.output}/d{self.wrt} by the chain rule"
        yield ""
        yield "Forward, in steps:"
        yield from table([[f"  {name}", f"= {made}", f"= {shown(value)}"] for name, made, value in self.steps])
        yield from (f"  {sentence}" for sentence in self.constants)
        yield ""
        yield "The derivative of each step by its inputs:"
        yield from table(
            [
                [
                    f"  {f.slope}",
                    f"= {f.told}" if f.formula is not None else said(f),
                    f"= {shown(f.value)}" if f.value is not None else "",
                ]
                for f in self.factors
            ]
        )
        yield ""
        yield from self.path_lines()
        yield f"d{self.output}/d{self.wrt} = {shown(self.value._array)}"

    def path_lines(self) -> Iterator[str]:
        if not self.paths:
            yield (f"{self.count} paths lead from {self.output} to {self.wrt}, too many to list (at most {MAX_PATHS}).")
            return
        ways = "One path leads" if self.count == 1 else f"{self.count} paths lead"
        yield (
            f"{ways} from {self.output} to {self.wrt}. Along a path the factors are multiplied"
            + ("." if self.count == 1 else "; the paths are added:")
        )
        rows = []
        for equal in self.equal_paths():
            path, times = equal[0], len(equal)
            factors = " · ".join(bracketed(f.text) for f in path.factors) or "1"
            share = equal[0].share if times == 1 else np.sum([each.share for each in equal], 0)
            rows.append(
                [f"  {path}{often(times)}", f"{times} · {factors}" if times > 1 else factors, f"= {shown(share)}"]
            )
        yield from table(rows)

    def equal_paths(self) -> list[list[Path]]:
        """Lists of paths with equal names, factors and shares: x * x has one list of two paths."""
        found: dict[Any, list[Path]] = {}
        for path in self.paths:
            key = (*((f.result, f.operand, f.text) for f in path.factors), path.share.tobytes())
            found.setdefault(key, []).append(path)
        return [*found.values()]

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex}$"

    def _repr_html_(self) -> str:
        value = escape(shown(self.value._array))
        return f"<div>$$\\displaystyle {escape(self.latex)}$$<pre>{escape(str(self))}</pre><p>value: {value}</p></div>"


def explain(output: Tensor, wrt: Tensor, params: Params = None) -> Explanation:
    """The chain rule of d output / d wrt: the steps, the derivative of each, and the sum over all paths.

    Of equal paths one is listed, with their number; x * x has the factors "first x" and "second x".
    Steps get the names of your variables (or of `params`: a dict or a module), else letters. `output` has one element;
    `wrt` may have any shape, and may be a leaf or an intermediate tensor. If all steps are elementwise, the derivative
    is a formula, for the branches that were taken; otherwise each path lists its rules, with its computed share. No
    side effects: `.grad` and the graph are unchanged. The graph does not keep an added constant; the shortest decimal
    that gives the result is shown. Raises `ValueError` if nothing was recorded for `output`, `TypeError` if `wrt` is
    not a tensor, `RuntimeError` for an output of several elements, if `wrt` was not used, and for a graph that was
    freed.

    >>> import rushlight as torch
    >>> x = torch.tensor(1.2, requires_grad=True)
    >>> z = x * x + x
    >>> print(torch.explain(z, wrt=x))
    dz/dx by the chain rule
    <BLANKLINE>
    Forward, in steps:
      a  = x * x  = 1.44
      z  = a + x  = 2.64
    <BLANKLINE>
    The derivative of each step by its inputs:
      ∂z/∂a           = 1         = 1
      ∂z/∂x           = 1         = 1
      ∂a/∂(first x)   = second x  = 1.2
      ∂a/∂(second x)  = first x   = 1.2
    <BLANKLINE>
    3 paths lead from z to x. Along a path the factors are multiplied; the paths are added:
      z → a → x (twice)  2 · 1 · x  = 2.4
      z → x              1          = 1
    dz/dx = 3.4
    """
    check_recorded(output)
    assert output._node is not None
    order = reachable([output._node])
    check_explained(output, wrt, order)
    assert wrt._node is not None
    between = leading_to({wrt._node}, order)
    check_kept("explain", between)
    (value,) = grad(output, wrt, retain_graph=True)
    variables = users_variables(1)
    names = names_of(params, output, wrt, variables, order)
    called = {id(t._array): name for name, t in tensors_in(variables).items() if t._node is None}
    reserved = {*variables, *written_names([node for node in order if not node.leaf])}
    with no_grad():
        return Chain(output, wrt, order, between, names, called, reserved).explained(value)


def check_explained(output: Tensor, wrt: Any, order: list[Node]) -> None:
    """The errors of `explain` for invalid arguments."""
    if not isinstance(wrt, Tensor):
        raise TypeError(
            message(
                f"explain: wrt must be a tensor, not {type(wrt).__name__}",
                "give the tensor itself, such as wrt=w or wrt=model.fc1.weight; call explain once for each tensor",
            )
        )
    if output._array.size != 1:
        raise RuntimeError(
            message(
                "explain: the chain rule is shown for scalar outputs",
                "explain one element, such as output[0], or output.sum()",
                shape=tuple(output.shape),
            )
        )
    if wrt._node is None:
        raise RuntimeError(
            message(
                "explain: wrt does not require grad",
                "call requires_grad_() on it before it is used",
                shape=tuple(wrt.shape),
            )
        )
    if not any(node is wrt._node for node in order):
        raise RuntimeError(
            message(
                "explain: wrt appears to not have been used in the graph of the output",
                "compute the output from it, or explain a tensor that was used",
                shape=tuple(wrt.shape),
            )
        )


class Chain:
    """The nodes between output and `wrt`."""

    def __init__(
        self, output: Tensor, wrt: Tensor, order: list[Node], between: set[Node], names: dict[Node, str],
        called: dict[int, str], reserved: set[str],
    ):  # fmt: skip
        self.output, self.wrt, self.order = output, wrt, order
        self.between = [node for node in order if node in between]
        self.values = forward_values(output)
        self.symbols = Symbols(order, self.values, names, called, reserved)
        self.factors: dict[tuple[Node, int], Factor] = {}

    def explained(self, value: Tensor) -> Explanation:
        s, top, end = self.symbols, self.output._node, self.wrt._node
        assert top is not None
        assert end is not None
        steps = [(s.names[node], s.step(node), self.values.get(node)) for node in reversed(self.order) if not node.leaf]
        inner = [node for node in self.between if node is not end]
        for node in inner:
            found = {slot: self.factor(node, slot) for slot in self.slots(node)}
            for slot, f in found.items():
                others = {g.text for g in found.values() if g.place and g.operand == f.operand}
                self.factors[node, slot] = replace(f, apart=bool(f.place) and len(others) > 1)
        count = self.count()
        paths = [self.path(way) for way in self.ways()] if count <= MAX_PATHS else []
        texts = [made for _, made, _ in steps]
        texts += [f.rule or f.text for f in self.factors.values()]
        return Explanation(
            s.names[top],
            s.names[end],
            steps,
            [*self.factors.values()],
            paths,
            count,
            value,
            s.held(),
            s.defined(" ".join(texts)),
        )

    def slots(self, node: Node) -> list[int]:
        """The inputs of a node from which `wrt` can be reached."""
        wanted = set(self.between)
        return [slot for slot, edge in enumerate(node.edges) if edge in wanted]

    def factor(self, node: Node, slot: int) -> Factor:
        s, edge = self.symbols, node.edges[slot]
        local = s.local(node, slot, {}, Formula("name", s.names[node]))
        full = s.local(node, slot, s.full, s.full[node]) if edge.shape == node.shape else None
        full = s.local(node, slot, {}, s.name(node)) if full is not None and size(full) > 2 * MAX_SYMBOLS else full
        value = None
        if local is not None and edge.shape == node.shape:
            value = np.asarray(node.arrays(np.ones(node.shape or (), self.dtype(node)))[slot])
        out, into, rule = s.names[node], s.names[edge], s.gradient_rule(node, slot)
        words = None if node.op is None else backward_sentence(Use(node, slot, out, into, None))
        place = place_of(node, slot)
        placed = s.local_apart(node, slot) if place and local is not None else None
        return Factor(out, into, local, full, rule, value, words, is_partial(node), place, placed)

    def dtype(self, node: Node) -> Any:
        value = self.values.get(node)
        return self.output._array.dtype if value is None else value.dtype

    def count(self) -> int:
        """The exact number of paths from the output to `wrt`."""
        ways: dict[Node, int] = {}
        wanted = set(self.between)
        for node in reversed(self.between):
            ways[node] = 1 if node is self.wrt._node else sum(ways[edge] for edge in node.edges if edge in wanted)
        return ways.get(self.output._node, 0)  # type: ignore[arg-type]

    def ways(self) -> Iterator[list[tuple[Node, int]]]:
        """Each path as (node, input), from the output down."""
        stack: list[tuple[Node, list]] = [(self.output._node, [])]  # type: ignore[list-item]
        while stack:
            node, way = stack.pop()
            if node is self.wrt._node:
                yield way
                continue
            stack += [(node.edges[slot], [*way, (node, slot)]) for slot in reversed(self.slots(node))]

    def path(self, way: list[tuple[Node, int]]) -> Path:
        """The path with the gradient that it contributes."""
        g: Any = np.ones_like(self.output._array)
        for node, slot in way:
            g = node.arrays(g)[slot]
            if g.shape != node.edges[slot].shape:
                g = sum_to_array(g, node.edges[slot].shape)
        return Path(tuple(self.factors[step] for step in way), np.array(g))


# -- text ------------------------------------------------------------------------------------------


def table(rows: list[list[str]]) -> Iterator[str]:
    """Rows with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()


def shown(value: Any) -> str:
    """Up to 8 numbers as text; for more numbers the shape with minimum, mean and maximum."""
    if value is None:
        return "(not kept)"
    value = np.asarray(value)
    if value.size <= 8:
        return rounded(value.tolist())
    wide = value.astype(complex if value.dtype.kind == "c" else float)
    if wide.dtype.kind == "c":
        return f"shape {value.shape}, mean {wide.mean():.4g}"
    return f"shape {value.shape}, min {wide.min():.4g}, mean {wide.mean():.4g}, max {wide.max():.4g}"


def often(times: int) -> str:
    """` (twice)`, ` (3 times)`; nothing for once."""
    return "" if times == 1 else " (twice)" if times == 2 else f" ({times} times)"


def said(f: Factor) -> str:
    return f"sends {f.rule}" if f.rule else f.words or "sends what its backward returns"


def bracketed(text: str) -> str:
    return f"({text})" if " + " in text or " - " in text or text.startswith("-") else text


def tex(value: Any) -> str:
    from_name = Formula("name", value) if isinstance(value, str) else value
    return from_name.latex if isinstance(from_name, Formula) else str(from_name)
