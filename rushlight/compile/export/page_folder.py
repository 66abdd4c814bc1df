"""A model as a folder with a short page of NumPy (`rushlight.compiler.export(kind="numpy")`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rushlight.base.errors import value_error
from rushlight.compile.export.dynamic_samples import with_samples
from rushlight.compile.export.folder_text import PAGE_INIT
from rushlight.compile.export.library_folder import TOLERANCE, flat, replaced
from rushlight.compile.export.model_folder import KINDS, WEIGHTS, loaded, named, result_text
from rushlight.compile.export.numpy_page import FIXED, Page, has_page, page, parameters
from rushlight.compile.export.recorded import recorded
from rushlight.compile.graph import Graph
from rushlight.core.tensor import Tensor, from_array
from rushlight.serialization import save_file
from rushlight.version import __version__

Given = Sequence[tuple[str, Tensor, bool]]  # (name, tensor, any number of samples) of each tensor
CHECKED = (1, 5)  # numbers of samples with which a page for any number is compared with the model


def write_page(model: Callable, args: tuple, given: Given, name: str, folder: Path) -> bool:
    """Write the folder. False for a model that a page cannot compute: then its files are to be replaced."""
    samples = any(sampled for *_, sampled in given)
    graphs = [recorded(model, of_samples(args, given, n)) for n in ((2, 3) if samples else (0,))]
    graph, plan = graphs[0]
    store: dict[str, Any] = {}
    if not has_page(graph) or any(t.dtype.name not in KINDS for t in weights(graph)):
        return False
    names = named(model)
    made = Page(graph, graphs[1][0] if samples else None, names, parameters([path for path, *_ in given]), store)
    made.first = next((p for p, (*_, sampled) in zip(made.paths, given) if sampled), "")
    made.write()
    parts = (lambda k: made.value(graph.results[k], graph.results[k])), (lambda k: made.paths[k])
    result = result_text(plan, names, store, "W", parts)
    title = f"{type(model).__name__}: see __init__.py. Made by rushlight.compiler.export {__version__}."
    shapes = [shown(graph, k, made) for k in range(len(graph.results))]
    (folder / "program.py").write_text(page(made, title, f"Gives {', '.join(shapes) or 'constants'}.", result))
    save_file({key: from_array(a) for key, a in store.items()}, folder / WEIGHTS)
    (folder / "__init__.py").write_text(beginning(model, given, shapes, store, name))
    same = verified(model, args, given, folder)
    if samples and not same:
        raise value_error("export: the page of NumPy gives other numbers than the model", FIXED)
    return same


def weights(graph: Graph) -> list[np.ndarray]:
    """The arrays that the graph reads besides the arguments."""
    return [np.asarray(v._array) for v in graph.inputs if v.source[0] != "argument"]


def of_samples(args: tuple, given: Given, count: int) -> tuple:
    """The arguments with `count` samples; the example's own for 0."""
    if not count:
        return args
    by = {id(t): from_array(with_samples(t._array, count, k)) for k, (_, t, any_) in enumerate(given) if any_}
    return tuple(replaced(args, by))


def shown(graph: Graph, number: int, made: Page) -> str:
    """`float32[samples, 10]`"""
    v, twin = graph.results[number], made.twin.results[number]
    return f"{v.dtype.name}[{', '.join([made.size(a, b) for a, b in zip(v.shape, twin.shape)])}]"


def beginning(model: Any, given: Given, shapes: list[str], store: dict[str, Any], name: str) -> str:
    """The text of __init__.py."""
    inputs = [
        (path, (("samples",) if any_ else ()) + t._array.shape[any_:], t._array.dtype.name) for path, t, any_ in given
    ]
    signature = ", ".join(dict.fromkeys(path.partition("[")[0] for path, *_ in inputs))
    told = [f"{path}: {dtype}[{', '.join(map(str, shape))}]" for path, shape, dtype in inputs]
    return PAGE_INIT.format(
        kind=type(model).__name__,
        version=__version__,
        folder=name,
        shown=f"y = model({signature})",
        inputs=", ".join(map(repr, inputs)),
        kinds={KINDS[kind]: kind for kind in sorted({a.dtype.name for a in store.values()})},
        signature=signature,
        doc="\n    ".join(["Arrays in, arrays out. ValueError for other shapes or dtypes.", "", *told])
        + f"\n    gives {', '.join(shapes) or 'constants'}",
        arguments="".join(f"{path}, " for path, *_ in inputs),
    )


def verified(model: Callable, args: tuple, given: Given, folder: Path) -> bool:
    """Whether the page's results are near the results of the model in eager mode."""
    samples = any(sampled for *_, sampled in given)
    with loaded(folder) as package:
        for count in CHECKED if samples else (0,):
            now = of_samples(args, given, count)
            found = arrays(package.program.model(*[t._array for t in flat(now)]))
            want = [t._array for t in flat(model(*now))]
            if len(found) != len(want) or not all(map(near, found, want)):
                return False
    return True


def near(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two results are equal up to rounding."""
    scale = float(np.max(np.abs(b[np.isfinite(b)]), initial=0)) if b.dtype.kind in "fc" else 0
    return a.shape == b.shape and a.dtype == b.dtype and np.allclose(a, b, TOLERANCE, TOLERANCE * scale, equal_nan=True)


def arrays(result: Any) -> list[np.ndarray]:
    """The arrays of a result."""
    if isinstance(result, (np.ndarray, np.generic)):
        return [np.asarray(result)]
    inside = result.values() if isinstance(result, dict) else result if isinstance(result, (tuple, list)) else ()
    return [a for part in inside for a in arrays(part)]
