"""A few archives of torch 2.13 with their results, for machines without torch: `python -m tests.archives.kept` writes
them again, with torch."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np

from tests.archives.compared import arrays
from tests.archives.models import models
from tests.archives.programs import programs

FOLDER = Path(__file__).parent / "files"
NAMES = {"lstm.pt2": "lstm", "convnet.pt2": "convnet", "greedy.pt": "greedy", "convnet.pt": "convnet"}


def kept(name):
    """(path of an archive, arrays of its arguments, arrays of its results)."""
    with np.load(FOLDER / f"{name}.npz") as found:
        parts = {kind: [found[key] for key in found.files if key.startswith(kind)] for kind in ("x", "y")}
    return FOLDER / name, parts["x"], parts["y"]


def write():
    """Write the archives with torch."""
    import torch

    warnings.simplefilter("ignore")
    FOLDER.mkdir(exist_ok=True)
    for file, name in NAMES.items():
        torch.manual_seed(0)
        if name in models(torch):
            make, args = models(torch)[name]
            module = make()
        else:
            module, args = programs(torch)[name]
        module.eval()
        if file.endswith(".pt2"):
            torch.export.save(torch.export.export(module, args), FOLDER / file)
        else:
            torch.jit.save(torch.jit.script(module), str(FOLDER / file))
        values = {f"x{k}": a for k, a in enumerate(arrays(args))} | {
            f"y{k}": a for k, a in enumerate(arrays(module(*args)))
        }
        np.savez(FOLDER / f"{file}.npz", **values)


if __name__ == "__main__":
    write()
