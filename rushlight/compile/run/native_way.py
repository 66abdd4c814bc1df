"""Whether a program has a native function (compile/native), and the function in place of the program's text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rushlight import fast
from rushlight.base.dependencies import has_llvmlite
from rushlight.base.errors import NoArray
from rushlight.compile.capture.input_sources import keyed
from rushlight.compile.graph import Graph, Store, is_random, memory_of
from rushlight.compile.passes import optimize

# passes that write ops in parts: the native function has an anchor for each op
WHOLE_OPS = {"decompose": False, "tables": False, "products": False}


class Natives:
    """The native programs of a compiled function, for all sizes of its arguments."""

    def __init__(self) -> None:
        self.sizes: Any = None

    def of_all_sizes(self) -> Any:
        """A SeveralSizes, made when the first native program is made."""
        from rushlight.compile.native.several_sizes import SeveralSizes

        self.sizes = self.sizes or SeveralSizes()
        return self.sizes

    def drop(self, native: Any) -> None:
        """Make no more programs from the code of a program that gave wrong numbers."""
        if self.sizes is not None:
            self.sizes.drop(native.code)


def native_of(
    graph: Graph, live: Sequence[int], likes: list[Any], options: Mapping[str, Any], natives: Natives
) -> tuple[Any, str]:
    """(the native function of a recorded graph, ""), or (None, the reason why there is none).

    `live`: the results through which the caller may run backward; `likes`: eager's arrays of the results; `natives`:
    the native programs of the compiled function."""
    reason = refusal(graph, live, options)
    if reason:
        return None, reason
    from rushlight.compile.native.errors import NotNative
    from rushlight.compile.native.schedule import copied

    own = Graph(list(map(copied, graph.steps)), list(graph.inputs), list(graph.results))
    optimize(own, {**options, **WHOLE_OPS, "show": None})
    try:
        return natives.of_all_sizes().program(own, likes), ""
    except NotNative as error:
        return None, str(error)
    except NoArray as error:
        return None, f"a kernel refuses its arguments: {error}"


def refusal(graph: Graph, live: Sequence[int], options: Mapping[str, Any]) -> str:
    if live or graph.grads:
        return "it has gradients"
    if any(isinstance(s, Store) or is_random(s) or not s.outs for s in graph.steps):
        return "it writes to memory, draws random numbers or checks data"
    if not options.get("native", True) or not options.get("fuse", True) or not fast.is_on():
        return "it is switched off"
    if not has_llvmlite():
        return "llvmlite is not installed"
    origin = memory_of(graph)
    homes = [origin.get(v, v) for v in graph.results]
    if not graph.steps or len({*homes}) < len(homes) or any(v.kind != "call" for v in homes):
        return "its results share memory with each other or with inputs"
    return ""


def in_its_place(native: Any, sources: Sequence[tuple]) -> tuple[Callable, Callable]:
    """`call` and `bind` of a Part for a native function. `sources`: the inputs of the program's text."""
    number = {keyed(s): i for i, s in enumerate(sources)}
    given = [number[keyed(s)] for s in native.sources]
    bound = [i for i, (kind, _) in enumerate(sources) if kind == "state"]
    state = [bound.index(number[keyed(v.source)]) for v in native.state]

    def call(new: list, *arrays: np.ndarray) -> tuple[list, list]:
        return native.call(*[arrays[i] for i in given]), []

    def bind(*arrays: np.ndarray) -> tuple:
        return native.bind(*[arrays[i] for i in state])

    return call, bind
