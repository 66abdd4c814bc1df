"""`viz.graph`: the backward graph as an object that is text, a picture and data at once."""

from __future__ import annotations

import os
from typing import Any

from rushlight.viz.graph import Graph, Params
from rushlight.viz.graph import graph as found
from rushlight.viz.svg import Svg, picture, save
from rushlight.viz.text import dot_text, grouped, lines


class Drawing(Graph):
    """The graph of a tensor. `print` shows it as a tree, a notebook as a picture; `boxes` and `inputs` are its data.

    >>> x = rushlight.tensor(3., requires_grad=True)
    >>> isinstance(rushlight.viz.graph(x * x), rushlight.viz.Drawing)
    True
    """

    def dot(self, collapse: bool | int | None = None) -> str:
        """The graph in Graphviz's language, with frames around modules."""
        return dot_text(grouped(self, collapse))

    def svg(self, engine: str | None = None, collapse: bool | int | None = None) -> Svg:
        """The picture as SVG text."""
        return picture(self, engine, collapse)

    def png(self, path: str | os.PathLike[str], collapse: bool | int | None = None) -> None:
        """Write the picture to a PNG file."""
        save(self, path, collapse)

    def __str__(self) -> str:
        return "\n".join(lines(self))

    __repr__ = __str__

    def _repr_svg_(self) -> str:
        return str(self.svg())

    def _repr_html_(self) -> str:
        return self.svg()._repr_html_()


def graph(output: Any, params: Params = None) -> Drawing:
    """The graph that backward will walk from the tensor `output`: every op and every leaf once.

    Boxes show name, shape, result and gradient, if known: all elements of a small tensor; minimum, maximum and mean of
    a large one. `params` names the leaves and the modules: a dict `{name: tensor}`, `model.named_parameters()` or the
    model. A graph of more than 40 boxes is drawn with one box for each module; `collapse=False` draws all ops, a number
    is the depth of names ("layer1.0" is 2). The result has `dot()`, `svg()` and `png(path)`; it prints as a tree and is
    a picture in a notebook. Raises `ValueError` if nothing was recorded for `output`.

    >>> import rushlight as torch
    >>> x = torch.tensor(3., requires_grad=True)
    >>> print(torch.viz.graph(x * x + x, params={"x": x}))
    AddBackward0 ()  = 12
    ├─ MulBackward0 ()  = 9
    │  ├─ x = 3.0  #1
    │  └─ x  #1, see above
    └─ x  #1, see above
    """
    data = found(output, params)
    return Drawing(data.boxes, data.inputs)
