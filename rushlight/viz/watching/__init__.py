"""A training that one watches: the live page, and the loss landscape along the path that was taken."""

from rushlight.viz.watching.live import Live, live

__all__ = ["Live", "live"]
