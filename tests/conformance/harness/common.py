"""What the suites share: entries, the two reference libraries, gradients and their comparison."""

import dataclasses

import numpy
import torch
from bridge import Array, Library, Missing, NotApplicable
from compare import Wrong, compare

REFERENCE = Library(torch)
PRECISE = Library(torch, widen=True)


@dataclasses.dataclass
class Entry:
    """One row of a suite; `skip` says why it is out of scope, if it is."""

    name: str
    variant: str
    family: str
    info: object
    skip: str = ""

    @property
    def title(self):
        return f"{self.name} ({self.variant})" if self.variant else self.name


def tensors_in(value):
    """The arrays inside an exported result, in order."""
    if isinstance(value, Array):
        return [value]
    return [array for item in getattr(value, "items", ()) for array in tensors_in(item)]


def flatten(library, value):
    """The tensors inside a result, in order."""
    if isinstance(value, library.tensor_type):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, tuple | list):
        return []
    return [tensor for item in value for tensor in flatten(library, item)]


def reference_only(function, *args):
    """Call torch; a sample that torch itself refuses asks nothing of a candidate."""
    try:
        return function(*args)
    except (Missing, NotApplicable):
        raise
    except Exception as error:
        raise NotApplicable(f"torch raises {type(error).__name__}") from error


def same(expected, other, comparison=compare):
    """Whether a comparison finds no difference."""
    try:
        comparison(expected, other)
    except Wrong:
        return False
    return True


def weights_for(outputs):
    """Random cotangents, the same for each library, one for each output."""
    random = numpy.random.default_rng(0)
    weights = []
    for output in outputs:
        weight = random.standard_normal(output.shape)
        if output.values.dtype.kind == "c":
            weight = weight + 1j * random.standard_normal(output.shape)
        weights.append(numpy.asarray(weight, output.values.dtype))
    return weights


def compare_gradients(expected, actual, values=True, where="gradient"):
    """Compare gradients; a gradient that is None means the same as zeros."""
    for index, (one, other) in enumerate(zip(expected, actual, strict=True)):
        if one is None and other is None:
            continue
        known = one or other
        zeros = Array(known.dtype, numpy.zeros_like(known.values), False)
        compare(one or zeros, other or zeros, values=values, where=f"{where}[{index}]")


def backward(library, result, like):
    """Run backward from a result, with random weights on what requires a gradient in `like`."""
    tensors = flatten(library, result)
    chosen = [index for index, array in enumerate(like) if array.requires_grad]
    outputs = [tensors[index] for index in chosen]
    weights = [library.from_numpy(w) for w in weights_for([like[index] for index in chosen])]
    if len(outputs) == 1:
        outputs[0].backward(weights[0])
    elif outputs:
        library.lookup("autograd.backward")(outputs, weights)


def first_line(error):
    return (str(error).splitlines() or [""])[0]
