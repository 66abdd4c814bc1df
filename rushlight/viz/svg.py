"""The backward graph as a picture: drawn by Graphviz where it is installed, else by our own layout."""

from __future__ import annotations

import shutil
import subprocess
from html import escape
from typing import Any

from rushlight.viz.graph import Box, Graph, Params, graph
from rushlight.viz.layout import Point, layout
from rushlight.viz.text import COLOURS, dot_text

LETTER, LINE = 6.65, 15.0  # width of a letter of 11 px monospace, and line height
PAD, MARGIN = 9.0, 16.0  # inside a box, and around the picture
LARGEST = 1000  # boxes
STROKES = {"output": "#d9a520", "op": "#aab2c0", "leaf": "#5fa874"}
EDGE = "#8a93a3"


class Svg(str):
    """SVG text that a notebook shows as a picture."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)


def svg(output: Any, params: Params = None, *, engine: str | None = None) -> Svg:
    """A picture of the backward graph of a tensor, as SVG text; a notebook shows it.

    The output stands on top, and arrows show where gradients go: through the ops to the leaves (green).
    Pointing at an op shows the line of your program that made it.
    `params` names the leaves: a dict or `model.named_parameters()`.
    `engine`: "dot" (Graphviz), "own" (no program needed), or None: Graphviz where `dot` is on the PATH.
    Raises `ValueError` where nothing was recorded for `output`, or for a graph of more than 1000 nodes, and
    `RuntimeError` where Graphviz was asked for and fails.

    >>> import rushlight as torch
    >>> x = torch.tensor(3., requires_grad=True)
    >>> torch.viz.svg(x * x, params={"x": x}, engine="own")[:4]
    '<svg'
    """
    if engine not in (None, "dot", "own"):
        raise ValueError(f'viz.svg: engine must be "dot", "own" or None, not {engine!r}')
    found = graph(output, params)
    if len(found.boxes) > LARGEST:
        raise ValueError(
            f"viz.svg: a graph of {len(found.boxes)} nodes is too large to read (at most {LARGEST}); "
            "draw fewer steps or layers, or use viz.print_graph"
        )
    program = None if engine == "own" else shutil.which("dot")
    if engine == "dot" and program is None:
        raise RuntimeError(
            'viz.svg: Graphviz\'s program `dot` is not on the PATH; install Graphviz or use engine="own"'
        )
    return Svg(draw_with(program, found) if program else draw(found))


def draw_with(program: str, found: Graph) -> str:
    done = subprocess.run(
        [program, "-Tsvg"], input=dot_text(found), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f'viz.svg: {program} failed: {done.stderr.strip()}; try engine="own"')
    return done.stdout[done.stdout.index("<svg") :]


def draw(found: Graph) -> str:
    """Our own picture: boxes in layers, edges as curves below them."""
    texts = [[box.label, *box.notes] for box in found.boxes]
    sizes = [(max(map(len, t)) * LETTER + 2 * PAD, len(t) * LINE + PAD) for t in texts]
    points, routes = layout(sizes, found.inputs)
    left = min(p.x - p.width / 2 for p in points) - MARGIN
    for p in points:
        p.x, p.y = p.x - left, p.y + MARGIN
    width = max(p.x + p.width / 2 for p in points) + MARGIN
    height = max(p.y + p.height / 2 for p in points) + MARGIN
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="11">',
        "<title>Backward graph: gradients follow the arrows from the output to the leaves</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        f'orient="auto"><path d="M0 0.8 L8 4 L0 7.2 z" fill="{EDGE}"/></marker></defs>',
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="white"/>',
        f'<g fill="none" stroke="{EDGE}" stroke-width="1.2">',
        *(f'<path d="{curve(points, way, *ends)}" marker-end="url(#tip)"/>'
          for way, ends in zip(routes, ports(points, routes))),
        "</g>",
        *(draw_box(p, box, text) for p, box, text in zip(points, found.boxes, texts)),
        "</svg>\n",
    ])  # fmt: skip


def ports(points: list[Point], routes: list[list[int]]) -> list[tuple[float, float]]:
    """x where each edge leaves and enters: spread over the box's side, in the order of where they lead."""
    starts, ends = [0.0] * len(routes), [0.0] * len(routes)
    for side, own, near in ((starts, 0, 1), (ends, -1, -2)):
        groups: dict[int, list[int]] = {}
        for e, way in enumerate(routes):
            groups.setdefault(way[own], []).append(e)
        for i, group in groups.items():
            group.sort(key=lambda e: points[routes[e][near]].x)
            step = min(14.0, points[i].width * 0.8 / len(group))
            for k, e in enumerate(group):
                side[e] = points[i].x + (k - (len(group) - 1) / 2) * step
    return list(zip(starts, ends))


def curve(points: list[Point], way: list[int], start: float, end: float) -> str:
    """The path of one edge: from the lower side of its first box to the upper side of its last, upright at its points."""
    first, last = points[way[0]], points[way[-1]]
    stops = [(start, first.y + first.height / 2)]
    stops += [(points[i].x, points[i].y) for i in way[1:-1]]
    stops.append((end, last.y - last.height / 2))
    path = f"M{stops[0][0]:.1f} {stops[0][1]:.1f}"
    for (x, y), (to_x, to_y) in zip(stops, stops[1:]):
        half = (y + to_y) / 2
        path += f" C{x:.1f} {half:.1f} {to_x:.1f} {half:.1f} {to_x:.1f} {to_y:.1f}"
    return path


def draw_box(p: Point, box: Box, text: list[str]) -> str:
    x, y = p.x - p.width / 2, p.y - p.height / 2
    words = "".join(
        f'<text x="{p.x:.1f}" y="{y + LINE * (k + 1) + PAD / 2 - 4:.1f}" text-anchor="middle" '
        f'fill="{"#1f2937" if k == 0 else "#5b6474"}">{escape(line)}</text>'
        for k, line in enumerate(text)
    )
    corner = 12 if box.kind == "leaf" else 5
    return (
        f"<g><title>{escape(box.made_at or box.label)}</title>"
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{p.width:.1f}" height="{p.height:.1f}" rx="{corner}" '
        f'fill="{COLOURS[box.kind]}" stroke="{STROKES[box.kind]}"/>{words}</g>'
    )
