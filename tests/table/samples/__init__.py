"""Inputs for every op of the table and every function made of ops.

A sample is derived where the entry says enough: its family and the names of its settings. What names do not say is
written by hand, here where a function is defined and which settings are worth trying, in by_hand.py the rest. So a new
op of a known kind gets its tests for nothing; one that needs a word makes `test_every_op_has_samples` say so."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path

import numpy as np

import rushlight
import rushlight.nn.functional
from rushlight.base import lazy
from rushlight.core.table import TABLE, in_namespace
from rushlight.ops.composites import FUNCTIONS
from tests.table.samples.by_hand import (
    ALSO_DERIVED,
    HAND,
    INSIDE_ONE,
    POSITIVE,
    PROBABILITY,
    SHAPE,
    SMALL,
    Data,
    Sample,
    exactly,
    scalar,
    x,
)

lazy.complete()
# -- elementwise -----------------------------------------------------------------------------------

# Where a function is defined and smooth, if not everywhere: for all its inputs, or for each.
DOMAIN = {
    **dict.fromkeys(["acos", "asin", "atanh", "erfinv", "log1p"], INSIDE_ONE),
    **dict.fromkeys(
        ["log", "log2", "log10", "sqrt", "root_of_squares", "rsqrt", "lgamma", "digamma", "polygamma"], POSITIVE
    ),
    "acosh": {"low": 1.2, "high": 3.0, "signed": False},
    "tan": SMALL,
    "pow": [POSITIVE, {}],
    "xlogy": [{}, POSITIVE],
    "trunc_divide": [{}, POSITIVE],
    "binary_cross_entropy": PROBABILITY,
    "binary_cross_entropy_with_logits": [{}, PROBABILITY],
    "bitwise_left_shift": [{}, POSITIVE],
    "bitwise_right_shift": [{}, POSITIVE],
}

# Settings worth trying besides the defaults.
SETTINGS = {
    "softplus": [{"beta": 2.0}, {"beta": 2.0, "threshold": 1.0}],
    "multiple": [{"factor": 2.5}, {"factor": -3}],
    "fraction": [{"divisor": 2.5}, {"divisor": -3}],
    "leaky_relu": [{"negative_slope": 0.2}],
    "elu": [{"alpha": 0.5}, {"alpha": 1.2, "scale": 1.1}, {"alpha": 1.2, "scale": 1.1, "input_scale": 0.7}],
    "polygamma": [{"n": 1}, {"n": 2}],
    "nan_to_num": [{"nan": 1.0, "posinf": 2.0, "neginf": -2.0}],
    "hardtanh": [{"min_val": -0.5, "max_val": 0.7}],
    "hardshrink": [{"lambd": 0.9}],
    "softshrink": [{"lambd": 0.9}],
    "threshold": [{"threshold": 0.5, "value": 3.0}],
    "clamp_both": [{"low": -0.5, "high": 0.6}],
    "huber_loss": [{"delta": 0.5}],
    "smooth_l1_loss": [{"beta": 0.5}],
}

for file in sorted(Path(__file__).parent.glob("[a-z]*.py")):  # the like for a subject, each in its file
    subject = import_module(f"{__name__}.{file.stem}")
    for found, more in ((HAND, "HAND"), (DOMAIN, "DOMAIN"), (SETTINGS, "SETTINGS")):
        found.update(getattr(subject, more, {}))

KINKS = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, 2.0, -2.0, 2.5, 3.0, -3.0, 6.0]
FEW_KINKS = [0.0, -0.0, 0.5, 1.0, -1.0, 2.0, -3.0]
FAR = [20.0, -30.0, np.inf, -np.inf, np.nan]
OF_THREE = [0.0, 1.0, -2.0]
BEGINS = dict.fromkeys(["acosh", "digamma", "lgamma", "polygamma"], 1.0)  # before: poles, or nothing


def elementwise(op):
    """One shape, one number, nothing; broadcast against each other; a Python number; where functions have corners."""
    n = len(op.inputs)
    how = DOMAIN.get(op.name, {})
    how = how if isinstance(how, list) else [how] * n
    kinds = [{"dtype": "bool"} if name == "condition" else {} for name in op.inputs]

    def inputs(*shapes):
        return [Data(*shape, **h, **k) for shape, h, k in zip(shapes, how, kinds)]

    needed = [name for name in op.settings if name not in op.defaults]
    settings = SETTINGS.get(op.name, [])
    first = settings[0] if needed else {}
    for given in settings if needed else [{}, *settings]:
        yield named(op, inputs(*[SHAPE] * n), given)
    yield named(op, inputs(*[()] * n), first)
    yield named(op, inputs(*[(0, 3)] * n), first)
    if n > 1:
        yield named(op, inputs(*[(2, 1), (3,), ()][:n]), first)
        yield named(op, inputs(*[(), (3,), (2, 1)][:n]), first)
        yield named(op, [*inputs(*[SHAPE] * (n - 1)), 2], first)
        yield named(op, [*inputs(*[SHAPE] * (n - 1)), 1.5], first)
    yield corners(op, kinds, first, [])
    yield corners(op, kinds, first, FAR)


def named(op, tensors, settings):
    """A sample with the settings in the order in which users give them."""
    values = dict(zip(op.inputs, tensors)) | settings
    order = op.options.get("order", " ".join(op.inputs)).split()
    public = op.options.get("names", {})
    rest = {public.get(k, k): v for k, v in values.items() if k not in order}
    return Sample(*[values[name] for name in order], **rest)


def corners(op, kinds, settings, more):
    """All points against all others: 0, -0, whole and half numbers; and infinities and nan."""
    near = [KINKS, FEW_KINKS, OF_THREE][len(op.inputs) - 1]
    points = np.array(near + more[-3:] if len(op.inputs) > 2 else near + more)
    points = points[~(points < BEGINS.get(op.name, -np.inf))]
    places = [(slice(None),) + (None,) * i for i in range(len(op.inputs))]
    sample = named(op, [Data(values=points[at], **kind) for at, kind in zip(places, kinds)], settings)
    sample.smooth, sample.slopes = False, not more
    return sample


# -- reductions, and what has settings with known names --------------------------------------------


def reduction(op):
    for dim in (0, -1, (0, 2)):
        yield Sample(x(2, 3, 2), dim)
    yield Sample(x(2, 3, 2))
    yield Sample(x(2, 3, 2), 1, True)
    yield Sample(x(2, 3, 2), keepdim=True, dim=(1, 2))
    yield Sample(scalar())
    yield Sample(scalar(), 0)
    yield Sample(x(0, 3), 0)
    yield Sample(x(0, 3), 1)
    yield Sample(x(0, 3))
    yield Sample(exactly([[0.0, 2.0, 2.0], [1.0, 0.0, 1.0]]), 1, smooth=False, slopes=True)  # ties, zeros
    yield Sample(exactly([[np.nan, 2.0], [np.inf, -np.inf], [np.inf, 1.0]]), 1, smooth=False)


# What can be given to a setting of this name, for a tensor of three dimensions.
BY_NAME = {
    "dim": [0, -1, 1],
    "dim0": [0, 1],
    "dim1": [-1, 0],
    "new_dim": [0, -1, 1],
    "dims": [(0,), (1, -1)],
    "start_dim": [0, 1],
    "end_dim": [1, -1],
    "keepdim": [True],
    "descending": [True],
    "largest": [False],
    "k": [2],
    "offset": [1],
    "diagonal": [1, -1],
    "padding_idx": [1],
}


def by_names(op):
    """Every value of each setting, the others at their first; None if a setting's name says too little."""
    needed = [name for name in op.settings if name not in op.defaults]
    if any(name not in BY_NAME for name in needed) or op.inputs not in (("x",), ("tensors",)):
        return None
    first = {name: BY_NAME[name][0] for name in needed}
    tensor = [x(2, 3, 2), x(2, 3, 2)] if op.inputs == ("tensors",) else x(2, 3, 2)
    public = op.options.get("names", {}) | ({"new_dim": "dim"} if op.name not in INTERNAL else {})
    tries = [first] + [first | {name: value} for name in op.settings for value in BY_NAME.get(name, ())]
    return [Sample(tensor, **{public.get(k, k): v for k, v in given.items()}) for given in tries]


# -- all of them -----------------------------------------------------------------------------------


def public(name):
    """What users find under the name: of the package, of a namespace (linalg_det), or else of Tensor."""
    home, _, rest = name.partition("_")
    if in_namespace(name):
        return getattr(getattr(rushlight, home), rest, None)
    found = getattr(rushlight, name, None)
    return found if found is not None and not inspect.ismodule(found) else getattr(rushlight.Tensor, name, None)


# Entries that only rules and other functions use; what has their name in the package may take other arguments.
INTERNAL = {
    name
    for name, op in TABLE.items()
    if name not in FUNCTIONS and op.call not in (public(name), getattr(rushlight.Tensor, name, None))
}


def samples_of(name):
    """The samples of an op or composite; an alias has those of what it is an alias of. Empty if nothing is known."""
    found = list(HAND.get(name, ()))
    op = TABLE.get(name)
    if op is not None and (not found or name in ALSO_DERIVED):
        derive = elementwise if op.elementwise else reduction if op.family.__name__ == "reduction" else by_names
        found += list(derive(op) or ())
    if not found and name in FUNCTIONS and FUNCTIONS[name].__name__ != name:
        return samples_of(FUNCTIONS[name].__name__)
    return [numbered(sample, f"{name}/{i}") for i, sample in enumerate(found)]


def numbered(sample, name):
    copy = Sample(*sample.args, smooth=sample.smooth, slopes=sample.slopes, **sample.kwargs)
    copy.name = name
    return copy


NAMES = sorted(
    {
        *TABLE,
        *(n for n in FUNCTIONS if not n.endswith("_")),
        *(n for n in HAND if hasattr(rushlight.Tensor, n) or n in TABLE),
    }
)
SAMPLES = {name: samples_of(name) for name in NAMES}


def function_of(name):
    """What users call: the package's function, or else the method, or else the entry's own function."""
    if name in INTERNAL:
        return TABLE[name].call
    return public(name)


# Ops whose results require grad, and whose derivative is not implemented, as in torch: backward raises.
NOT_IMPLEMENTED = {
    "bincount",
    "changes",
    "counted",
    "distinct",
    "from_these",
    "histogram",
    "histogramdd",
    "unique",
    "unique_consecutive",
}


def is_random(name):
    """Whether two calls of an op give different numbers."""
    return name in TABLE and TABLE[name].options.get("random")
