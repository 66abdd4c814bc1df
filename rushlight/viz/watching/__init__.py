"""A training that one watches: the live page, and the loss landscape along the path that was taken."""

from rushlight.viz.watching.landscape import Landscape, landscape
from rushlight.viz.watching.live import Live, live
from rushlight.viz.watching.path import Path

__all__ = ["Landscape", "Live", "Path", "landscape", "live"]
