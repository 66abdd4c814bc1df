"""Views of the graph: text in the terminal, Graphviz's language, a picture, and backward step by step."""

from rushlight.viz.drawing import Drawing, graph
from rushlight.viz.graph import Box, Graph
from rushlight.viz.module_calls import module_calls
from rushlight.viz.page import html
from rushlight.viz.plots import Plot, plot
from rushlight.viz.svg import png, svg
from rushlight.viz.text import dot, print_graph
from rushlight.viz.training_page import TrainingPage, steps
from rushlight.viz.training_pictures import (
    LayerLog,
    Log,
    attention,
    confusion,
    decision_boundary,
    filters,
    histograms,
    training,
)
from rushlight.viz.watching import Landscape, Live, Path, landscape, live

__all__ = [
    "Box", "Drawing", "Graph", "Landscape", "LayerLog", "Live", "Log", "Path", "Plot", "TrainingPage", "attention",
    "confusion", "decision_boundary", "dot", "filters", "graph", "histograms", "html", "landscape", "live",
    "module_calls", "plot", "png", "print_graph", "steps", "svg", "training",
]  # fmt: skip
