"""The texts of an exported folder (compile/export/model_folder.py): `__init__.py`, and the end of program.py.

The first calls run NumPy, since Numba takes seconds to load and compile. `__init__.py` counts calls; when compiling
pays, it reloads program.py with Numba."""

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
    '''"""{kind}, made by rushlight.compiler.export {version}: needs NumPy alone, and is faster where there is Numba.

    from {folder} import model

    {shown}

program.py has the computation, weights.safetensors the weights. The first calls run NumPy; once it pays, Numba compiles the
program's loops, and caches the machine code on disk. From then on results may differ in their last digits. `ready()`
compiles at once.
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
"""Calls of NumPy before loading cached machine code: about a second of calls; ten times as many before compiling."""
INPUTS = [{inputs}]


'''
    + READ
    + '''

KINDS = {kinds}
WEIGHTS = read(Path(__file__).with_name("weights.safetensors"))
LOCK = Lock()
calls, numba = 0, None  # while numba is None, program.py uses NumPy

from . import program  # imports WEIGHTS and numba


def model({signature}):
    """{doc}
    """
    return answer(*map(given, ({arguments}), INPUTS))


def given(x, kind):
    """An input as a C-contiguous array. ValueError for another shape or dtype."""
    name, shape, dtype = kind
    x = np.asarray(x, order="C")
    if x.shape != shape or x.dtype != dtype:
        hint = f"{{name}}.astype({{dtype!r}})" if x.shape == shape else "export it again with an example of that shape"
        raise ValueError(f"{{name}} is {{x.dtype}}{{list(x.shape)}}, but the model was exported for {{dtype}}{{list(shape)}}"
                         f"; hint: {{hint}}")
    return x if x.flags.behaved and all(x is not a for a in WEIGHTS.values()) else x.copy()


def answer(*inputs):
    """The program's result. Under a lock, since the program reuses its memory."""
    global calls
    with LOCK:
        if numba is None:
            calls += 1
            if calls > 10 * CALLS or calls == CALLS and program.kept():
                try:
                    machine_code(inputs)
                except Exception as error:
                    calls = -inf
                    if getattr(error, "name", "") != "numba":  # installed, but fails
                        warn(f"no machine code, NumPy goes on: {{error!r}}", stacklevel=3)
        return program.answer(*inputs)


def machine_code(inputs):
    """Reload the program with Numba, and compile it by a first run, whose changes of buffers are undone."""
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
        if generator is not None:  # keep the state of the random numbers
            program.default_generator = generator


def ready(*inputs):
    """Compile now, or load machine code from disk: for servers before the first request, and for container images.

    `inputs`: arrays for a first call, default zeros. ImportError without Numba.
    """
    with LOCK:
        if numba is None:
            machine_code(inputs or [np.zeros(shape, dtype) for _, shape, dtype in INPUTS])
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
