"""The texts of an exported folder (compile/export/model_folder.py): `__init__.py`, and the end of program.py."""

from __future__ import annotations

READ = '''def read(path):
    """Arrays by name from a safetensors file: 8 bytes with the length of the header, the header as JSON, the
    numbers."""
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        numbers = np.frombuffer(bytearray(file.read()), np.uint8)
    header.pop("__metadata__", None)
    return {{name: numbers[slice(*x["data_offsets"])].view(KINDS[x["dtype"]]).reshape(x["shape"])
            for name, x in header.items()}}
'''

PAGE_INIT = (
    '''"""{kind}, made by rushlight.compiler.export {version}: needs only NumPy.

    from {folder} import model

    {shown}

program.py has the computation, weights.safetensors the weights.
"""
import json
from pathlib import Path

import numpy as np

INPUTS = [{inputs}]
KINDS = {kinds}


'''
    + READ
    + '''

W = read(Path(__file__).with_name("weights.safetensors"))

from . import program  # imports W


def model({signature}):
    """{doc}
    """
    with np.errstate(all="ignore"):
        return program.model(*map(given, ({arguments}), INPUTS))


def given(x, kind):
    """An input as an array. ValueError for another shape or dtype."""
    name, shape, dtype = kind
    x = np.asarray(x, order="C")
    fits = x.ndim == len(shape) and all(n in (m, "samples") for m, n in zip(x.shape, shape))
    if not fits or x.dtype != dtype:
        hint = f"{{name}}.astype({{dtype!r}})" if fits else "export it again with an example of that shape"
        shown = f"{{dtype}}[{{', '.join(map(str, shape))}}]"
        raise ValueError(f"{{name}} is {{x.dtype}}{{list(x.shape)}}, but the model was exported for {{shown}}; hint: {{hint}}")
    return x
'''
)

INIT = (
    '''"""{kind}, made by rushlight.compiler.export {version}: needs only NumPy.

    from {folder} import model

    {shown}

program.py has the computation, weights.safetensors the weights.
"""
from __future__ import annotations

import json
from pathlib import Path
from threading import Lock

import numpy as np

INPUTS = [{inputs}]
KINDS = {kinds}


'''
    + READ
    + '''

WEIGHTS = read(Path(__file__).with_name("weights.safetensors"))
LOCK = Lock()  # the program reuses its memory

from . import program  # imports WEIGHTS


def model({signature}):
    """{doc}
    """
    with LOCK:
        return program.answer(*map(given, ({arguments}), INPUTS))


def given(x, kind):
    """An input as a C-contiguous array. ValueError for another shape or dtype."""
    name, shape, dtype = kind
    x = np.asarray(x, order="C")
    if x.shape != shape or x.dtype != dtype:
        hint = f"{{name}}.astype({{dtype!r}})" if x.shape == shape else "export it again with an example of that shape"
        raise ValueError(f"{{name}} is {{x.dtype}}{{list(x.shape)}}, but the model was exported for {{dtype}}{{list(shape)}}"
                         f"; hint: {{hint}}")
    return x if x.flags.behaved and all(x is not a for a in WEIGHTS.values()) else x.copy()
'''
)

ENDING = '''
{weights}
CHANGED = [{changed}]        # the arrays that the model writes to
{views}


def answer({arguments}):
    """The model's result."""
    with np.errstate(all="ignore"):
        results, _ = run({call})
    return {result}
'''

PACKED = '''

def packed(a):
    """A weight in C order, in which products read it faster; a large weight unchanged, for which it makes no
    difference."""
    small = a.nbytes <= 1 << 19 and not any(np.may_share_memory(a, b) for b in CHANGED)
    return np.asarray(a, order="C") if small else a


VIEWS = [packed(v) for v in bind({bound})]'''
