"""The reasons why a graph, or an input, has no native function."""

from __future__ import annotations


class NotNative(Exception):
    """Raised for a graph that has no native function: the program then stays as it is."""


class WrongInput(Exception):
    """Raised by a native function for an input that eager refuses: the caller runs eagerly, for eager's own error."""
