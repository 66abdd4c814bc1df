"""Checkpoints: one file per step, with everything that the next steps depend on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rushlight.base.errors import type_error, value_error
from rushlight.core.tensor import Tensor
from rushlight.nn.module import Module
from rushlight.optim.optimizer import Optimizer
from rushlight.serialization import load, save

FORMAT = 1  # version of the file format
NAME = "step-{:09d}.pt"


def steps_in(folder: Path) -> list[int]:
    """The steps that have a checkpoint, in order."""
    return sorted(int(file.stem[5:]) for file in folder.glob("step-*.pt"))


def write(folder: Path, step: int, content: dict[str, Any]) -> None:
    """Write a checkpoint; the file is either complete or absent, even if the process is killed."""
    save({"format": FORMAT, "step": step, **content}, folder / NAME.format(step))


def read(folder: Path, step: int | None) -> dict[str, Any]:
    """The last checkpoint at or before a step, or the last of all. ValueError if there is none."""
    found = [s for s in steps_in(folder) if step is None or s <= step]
    if not found:
        raise value_error(
            f"no checkpoint at or before step {step} in {folder}" if step is not None else f"no checkpoint in {folder}",
            "write them by rushlight.record(folder, loader, ...)",
        )
    content = load(folder / NAME.format(found[-1]))
    if content.get("format") != FORMAT:
        raise value_error(f"{folder} has format {content.get('format')}, not {FORMAT}")
    return content


# -- the user's objects ----------------------------------------------------------------------------


def check_objects(objects: dict[str, Any]) -> None:
    """TypeError unless all objects have a state."""
    for name, thing in objects.items():
        if not (hasattr(thing, "state_dict") and hasattr(thing, "load_state_dict")):
            raise type_error(
                f"{name}, of type {type(thing).__name__}, has no state_dict() and load_state_dict()",
                "give modules, optimizers, schedulers, or an object with both methods",
            )


def parameters(objects: dict[str, Any]) -> Iterator[Tensor]:
    """The parameters of all objects, each once."""
    seen = set()
    for thing in objects.values():
        found = list(thing.parameters()) if isinstance(thing, Module) else []
        found += [p for group in getattr(thing, "param_groups", ()) for p in group["params"]]
        for p in found:
            if id(p) not in seen:
                seen.add(id(p))
                yield p


def states(objects: dict[str, Any]) -> dict[str, Any]:
    """States, gradients (needed for gradient accumulation), the mode of each module, and whether each optimizer has
    made a step.
    """
    return {
        "objects": {name: thing.state_dict() for name, thing in objects.items()},
        "gradients": [None if p._grad is None else p._grad.detach() for p in parameters(objects)],
        "training": {
            name: [m.training for m in thing.modules()] for name, thing in objects.items() if isinstance(thing, Module)
        },
        "stepped": {name: thing._opt_called for name, thing in objects.items() if isinstance(thing, Optimizer)},
    }


def set_states(content: dict[str, Any], objects: dict[str, Any]) -> None:
    """Give the objects the recorded states. ValueError, without any change, if the names differ."""
    if content["objects"].keys() != objects.keys():
        raise value_error(
            f"the recording has {', '.join(sorted(content['objects'])) or 'no objects'}, but "
            f"{', '.join(sorted(objects)) or 'none'} were given",
            "give the same objects under the same names as to rushlight.record",
        )
    for name, thing in objects.items():
        thing.load_state_dict(content["objects"][name])
    for name, modes in content["training"].items():
        for module, training in zip(objects[name].modules(), modes):
            module.training = training
    for name, stepped in content["stepped"].items():
        objects[name]._opt_called = stepped  # a compiled function sees it change
    for p, gradient in zip(parameters(objects), content["gradients"]):
        p.grad = gradient
