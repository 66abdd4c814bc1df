"""Seeing the graph: as text in the terminal, in Graphviz's language, as a picture."""

from rushlight.viz.graph import Box, Graph, graph
from rushlight.viz.svg import svg
from rushlight.viz.text import dot, print_graph

__all__ = ["Box", "Graph", "dot", "graph", "print_graph", "svg"]
