"""torch.classes: classes written in C++, by namespace and name. None are available; access raises torch's error."""

from __future__ import annotations

from typing import Any

from rushlight.base.errors import runtime_error


class Namespace:
    """The classes of one library."""

    def __init__(self, name: str):
        self.name = name

    def __getattr__(self, name: str) -> Any:
        raise runtime_error(
            f"Tried to instantiate class '{self.name}.{name}', but it does not exist! Ensure that it is "
            "registered via torch::class_",
            "rushlight cannot load C++ classes",
        )


def __getattr__(name: str) -> Namespace:
    if name.startswith("__"):
        raise AttributeError(name)
    return Namespace(name)
