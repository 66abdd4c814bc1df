"""The texts of an exported folder (export.py): `__init__.py`, and what program.py ends with.

NumPy answers first: to load Numba takes half a second, to compile ten. `__init__.py` counts calls, and makes machine code of
program.py's loops, by loading it once more, when that pays.
"""
from __future__ import annotations

INIT = '''"""{kind}, made by rushlight.export {version}: needs NumPy alone, and is faster where there is Numba.

    from {folder} import model

    {shown}

What is computed stands in program.py, the weights lie in weights.safetensors. NumPy answers the first calls; once it pays,
Numba makes machine code of the program's loops, which is kept on disk; from then on results may differ in their last
places. `ready()` does that at once.
"""
from __future__ import annotations

import json
from importlib import reload
from math import inf
from pathlib import Path
from threading import Lock
from warnings import warn

import numpy as np

CALLS = {calls}
"""Calls before machine code, if some is on disk: what NumPy took a second for; else ten times as many. inf: never."""
INPUTS = [{inputs}]


def read(path):
    """Arrays by name from a safetensors file: 8 bytes that say how long the header is, the header as JSON, the numbers."""
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        numbers = np.frombuffer(bytearray(file.read()), np.uint8)
    header.pop("__metadata__", None)
    return {{name: numbers[slice(*x["data_offsets"])].view(KINDS[x["dtype"]]).reshape(x["shape"])
            for name, x in header.items()}}


KINDS = {kinds}
WEIGHTS = read(Path(__file__).with_name("weights.safetensors"))
LOCK = Lock()
calls, numba = 0, None                            # program.py's loops are NumPy's, as long as there is no numba

from . import program                             # of WEIGHTS and numba


def model({signature}):
    """{doc}
    """
    return answer(*map(given, ({arguments}), INPUTS))


def given(x, kind):
    """An input as the program wants it; ValueError where it is of another shape or dtype."""
    name, shape, dtype = kind
    x = np.asarray(x, order="C")
    if x.shape != shape or x.dtype != dtype:
        cure = f"{{name}}.astype({{dtype!r}})" if x.shape == shape else "export it again with an example of that shape"
        raise ValueError(f"{{name}} is {{x.dtype}}{{list(x.shape)}}, but the model was exported for {{dtype}}{{list(shape)}}"
                         f"; cure: {{cure}}")
    return x if x.flags.behaved and all(x is not a for a in WEIGHTS.values()) else x.copy()


def answer(*inputs):
    """What the program gives; it uses its memory again, so that threads wait for one another."""
    global calls
    with LOCK:
        if numba is None:
            calls += 1
            if calls > 10 * CALLS or calls == CALLS and program.kept():
                try:
                    machine_code(inputs)
                except Exception as error:
                    calls = -inf
                    if getattr(error, "name", "") != "numba":              # it is there, but fails
                        warn(f"no machine code, NumPy goes on: {{error!r}}", stacklevel=3)
        return program.answer(*inputs)


def machine_code(inputs):
    """The program once more, with its loops as machine code, which a first run makes; what that changes is taken back."""
    global numba
    before, generator = [a.copy() for a in program.CHANGED], getattr(program, "default_generator", None)
    try:
        import numba
        reload(program)
        program.answer(*[x.copy() for x in inputs])
    except BaseException:
        numba = None
        reload(program)
        raise
    finally:
        for a, b in zip(program.CHANGED, before):
            a[...] = b
        if generator is not None:                 # of random numbers, which go on
            program.default_generator = generator


def ready(*inputs):
    """Make machine code now, or read it from disk: for servers before their first request, and for images of containers.

    `inputs`: arrays for a first call, zeros if none are given. ImportError where there is no Numba.
    """
    with LOCK:
        if numba is None:
            machine_code(inputs or [np.zeros(shape, dtype) for _, shape, dtype in INPUTS])
'''

ENDING = '''
{weights}
CHANGED = [{changed}]        # what the model writes to
{views}


def answer({arguments}):
    """What the model gives."""
    with np.errstate(all="ignore"):
        results, _ = run({call})
    return {result}
'''

PACKED = '''

def packed(a):
    """A weight the way round in which products read it; large ones stay. With 64 rows, products with 784x128 and 128x64
    turned weights took 1.3 and 1.4 times as long; with 1024x1024 nothing is won."""
    small = a.nbytes <= 1 << 19 and not any(np.may_share_memory(a, b) for b in CHANGED)
    return np.asarray(a, order="C") if small else a


VIEWS = [packed(v) for v in bind({bound})]'''
