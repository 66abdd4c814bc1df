"""The backward graph as a picture: drawn by Graphviz if it is installed, else by the built-in layout."""

from __future__ import annotations

import os
import shutil
import subprocess
from html import escape
from pathlib import Path
from typing import Any

from rushlight.base.errors import explain
from rushlight.viz.graph import Box, Graph, Params, graph
from rushlight.viz.layout import Point, framed, layout
from rushlight.viz.text import COLOURS, dot_text, grouped

LETTER, LINE = 6.65, 15.0  # width of a letter of 11 px monospace, and line height
PAD, MARGIN = 9.0, 16.0  # space inside a box, and around the picture
# most boxes of a picture; most boxes for Graphviz: it needs about a second for 400
MAX_BOXES, MAX_GRAPHVIZ_BOXES = 5000, 400
FONT = 7.5  # points, in pictures by matplotlib
STROKES = {"output": "#d9a520", "op": "#aab2c0", "leaf": "#5fa874", "module": "#5b7fb5"}
EDGE = "#8a93a3"


class Svg(str):
    """SVG text that a notebook shows as a picture, with modules that can be unfolded; a prompt shows its size."""

    whole: str = ""

    def __repr__(self) -> str:
        return f"<SVG picture of {len(self.encode()) // 1000} kB; print(picture) shows the text>"

    def _repr_svg_(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        more = f"<details><summary>all boxes</summary>{self.whole}</details>" if self.whole else ""
        return f"<div style='overflow:auto'>{self}{more}</div>"


def svg(output: Any, params: Params = None, *, engine: str | None = None, collapse: bool | int | None = None) -> Svg:
    """A picture of the backward graph of a tensor, as SVG text; a notebook shows it.

    The output is at the top, and arrows show where gradients go: through the ops to the leaves (green). Pointing at an
    op shows the line of your program that made it. `params` names the leaves: a dict, `model.named_parameters()` or the
    model. `engine`: "dot" (Graphviz), "own" (no program needed), or None: Graphviz if `dot` is on the PATH and the
    graph is not too large for it. `collapse`: True draws each nn module as one box, at most 40 boxes if it can; a
    number is the depth of names ("layer1.0" is 2); False draws every box; None collapses graphs of more than 40 boxes.
    Raises `ValueError` if nothing was recorded for `output` and for more than 5000 boxes, `RuntimeError` if
    `engine="dot"` fails.

    >>> import rushlight as torch
    >>> x = torch.tensor(3., requires_grad=True)
    >>> torch.viz.svg(x * x, params={"x": x}, engine="own")[:4]
    '<svg'
    """
    return picture(graph(output, params), engine, collapse)


def picture(every: Graph, engine: str | None, collapse: bool | int | None) -> Svg:
    if engine not in (None, "dot", "own"):
        raise ValueError(f'viz.svg: engine must be "dot", "own" or None, not {engine!r}')
    found = checked(grouped(every, collapse))
    program = (
        None if engine == "own" or (engine is None and len(found.boxes) > MAX_GRAPHVIZ_BOXES) else shutil.which("dot")
    )
    if engine == "dot" and program is None:
        raise RuntimeError(
            'viz.svg: Graphviz\'s program `dot` is not on the PATH; install Graphviz or use engine="own"'
        )
    made = Svg(draw_with(program, found) if program else draw(found))
    if len(found.boxes) < len(every.boxes) <= MAX_BOXES // 10:
        made.whole = draw(every)
    return made


def png(
    output: Any, path: str | os.PathLike[str], params: Params = None, *, collapse: bool | int | None = None
) -> None:
    """The same picture as a PNG file: drawn by Graphviz if `dot` is on the PATH, otherwise with matplotlib.

    For more than 400 boxes the picture is an overview: the longer side has 10,000 pixels, and letters that would be
    smaller than 3 pixels are left out; `svg` has them all.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "graph.png")
    >>> x = rushlight.tensor(3., requires_grad=True)
    >>> rushlight.viz.png(x * x, path, params={"x": x})
    >>> os.path.getsize(path) > 0
    True
    """
    save(graph(output, params), path, collapse)


def save(every: Graph, path: str | os.PathLike[str], collapse: bool | int | None) -> None:
    found = checked(grouped(every, collapse))
    program = shutil.which("dot") if len(found.boxes) <= MAX_GRAPHVIZ_BOXES else None
    if program is None:
        paint(found, path)
    else:
        folder = Path(path).parent
        if not folder.is_dir():
            raise FileNotFoundError(
                explain(f"viz.png: cannot write to the missing folder {str(folder)!r} ", "create it first")
            )
        run(program, found, ["-Tpng", "-Gdpi=110", "-o", os.fspath(path)])


def checked(found: Graph) -> Graph:
    """The graph. ValueError if it has more than MAX_BOXES boxes."""
    if len(found.boxes) > MAX_BOXES:
        raise ValueError(
            f"viz.svg: a graph of {len(found.boxes)} nodes is too large to read (at most {MAX_BOXES}); draw fewer "
            "steps or layers, or use viz.print_graph"
        )
    return found


def draw_with(program: str, found: Graph) -> str:
    made = run(program, found, ["-Tsvg"])
    return made[made.index("<svg") :]


def run(program: str, found: Graph, options: list[str]) -> str:
    done = subprocess.run([program, *options], input=dot_text(found), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f'viz.svg: {program} failed: {done.stderr.strip()}; try engine="own"')
    return done.stdout


def paint(found: Graph, path: str | os.PathLike[str]) -> None:
    """Draw the built-in layout with matplotlib."""
    try:
        from matplotlib.collections import LineCollection, PatchCollection
    except ImportError:
        raise ImportError(
            "viz.png needs Graphviz's program dot or matplotlib: pip install matplotlib; viz.svg needs neither"
        ) from None
    from matplotlib.figure import Figure
    from matplotlib.patches import FancyBboxPatch

    texts, points, routes, _ = placed(found)
    width, height = (max(getattr(p, a) for p in points) + 120 for a in "xy")
    dpi = min(110.0, 2e6 / max(width, height))
    readable = dpi * FONT / 72 > 3  # height of letters in pixels; the letters of 3,000 boxes would take two minutes
    figure = Figure(figsize=(width / 100, height / 100), dpi=dpi if readable else dpi / 2)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(height, 0), frame_on=False, xticks=[], yticks=[])
    ways = [[(points[i].x, points[i].y) for i in way] for way in routes]
    axes.add_collection(LineCollection(ways, colors=EDGE, linewidths=0.9, zorder=1), autolim=False)
    style: dict[str, Any] = {"boxstyle": f"round,pad=0,rounding_size={5 if readable else 0}"}
    boxes = [
        FancyBboxPatch(
            (p.x - p.width / 2, p.y - p.height / 2),
            p.width,
            p.height,
            facecolor=COLOURS[box.kind],
            edgecolor=STROKES[box.kind],
            **style,
        )
        for p, box in zip(points, found.boxes)
    ]
    axes.add_collection(PatchCollection(boxes, match_original=True, zorder=2), autolim=False)
    for p, text in zip(points, texts) if readable else ():
        axes.text(p.x, p.y, "\n".join(text), ha="center", va="center", fontsize=FONT, family="monospace", zorder=3)
    figure.savefig(path, format="png")


def placed(found: Graph) -> tuple[list[list[str]], list[Point], list[list[int]], tuple[float, float]]:
    """The lines of each box, the layout moved into the picture, and the picture's size."""
    texts = [[box.label, *box.notes] for box in found.boxes]
    sizes = [(max(map(len, t)) * LETTER + 2 * PAD, len(t) * LINE + PAD) for t in texts]
    points, routes = layout(sizes, found.inputs)
    return texts, points, routes, framed(points, MARGIN)


def draw(found: Graph) -> str:
    """The built-in picture: boxes in layers, edges as curves below them."""
    texts, points, routes, (width, height) = placed(found)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
            f'width="{width:.0f}" '
            f'height="{height:.0f}" font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" '
            'font-size="11">',
            "<title>Backward graph: gradients follow the arrows from the output to the leaves</title>",
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            'markerHeight="7" '
            f'orient="auto"><path d="M0 0.8 L8 4 L0 7.2 z" fill="{EDGE}"/></marker></defs>',
            f'<rect width="{width:.0f}" height="{height:.0f}" fill="white"/>',
            f'<g fill="none" stroke="{EDGE}" stroke-width="1.2">',
            *(
                f'<path d="{curve(points, way, *ends)}" marker-end="url(#tip)"/>'
                for way, ends in zip(routes, ports(points, routes))
            ),
            "</g>",
            *(draw_box(p, box, text) for p, box, text in zip(points, found.boxes, texts)),
            "</svg>\n",
        ]
    )


def ports(points: list[Point], routes: list[list[int]]) -> list[tuple[float, float]]:
    """(x where each edge leaves, x where it enters): spread over the box's side, in the order of their other ends."""
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
    """The curve of an edge, from the bottom of the first box to the top of the last box, vertical at each point."""
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
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{p.width:.1f}" height="{p.height:.1f}" '
        f'rx="{corner}" '
        f'fill="{COLOURS[box.kind]}" stroke="{STROKES[box.kind]}"/>{words}</g>'
    )
