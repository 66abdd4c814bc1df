"""Compare exported results, naming the first difference."""

import numpy
from bridge import Array, Sequence

# Relative and absolute tolerance for results of each dtype; other dtypes must agree exactly.
TOLERANCES = {
    "bfloat16": (2e-2, 1e-2),
    "float16": (2e-3, 1e-3),
    "complex32": (2e-3, 1e-3),
    "float32": (1e-5, 1e-5),
    "complex64": (1e-5, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex128": (1e-7, 1e-7),
}

# A single-precision result may be this many times as far from the double-precision one as torch's own single-precision
# result is.
SLACK = 4


class Wrong(Exception):
    """The library answered, but not what torch answers."""


def compare(expected, actual, *, values=True, flags=False, absolute=0.0, where="output"):
    """Raise `Wrong` where `actual` differs from `expected`.

    `values=False` compares structure, shape and dtype only; `flags=True` also compares `requires_grad`; `absolute` is
    an absolute tolerance for where that of the dtype is too small."""
    if isinstance(expected, Array):
        if not isinstance(actual, Array):
            raise Wrong(f"{where}: {type(actual).__name__}, expected a tensor")
        _compare_arrays(expected, actual, values, flags, absolute, where)
    elif isinstance(expected, Sequence):
        if not isinstance(actual, Sequence) or actual.kind != expected.kind:
            found = actual.kind if isinstance(actual, Sequence) else type(actual).__name__
            raise Wrong(f"{where}: {found}, expected a {expected.kind}")
        if len(actual.items) != len(expected.items):
            raise Wrong(f"{where}: {len(actual.items)} items, expected {len(expected.items)}")
        if expected.fields and actual.fields != expected.fields:
            raise Wrong(f"{where}: fields {actual.fields}, expected {expected.fields}")
        options = {"values": values, "flags": flags, "absolute": absolute}
        for index, (one, other) in enumerate(zip(expected.items, actual.items)):
            compare(one, other, **options, where=f"{where}[{index}]")
    else:
        _compare_scalars(expected, actual, values, where)


def _compare_scalars(expected, actual, values, where):
    if type(actual).__name__ != type(expected).__name__:
        raise Wrong(f"{where}: {type(actual).__name__}, expected {type(expected).__name__}")
    if not values:
        return
    if isinstance(expected, float | complex):
        if not close(numpy.asarray(expected), numpy.asarray(actual), 1e-7, 1e-7).all():
            raise Wrong(f"{where}: {actual}, expected {expected}")
    elif actual != expected:
        raise Wrong(f"{where}: {actual!r}, expected {expected!r}")


def _compare_arrays(expected, actual, values, flags, least, where):
    if actual.dtype != expected.dtype:
        raise Wrong(f"{where}: dtype {actual.dtype}, expected {expected.dtype}")
    if actual.shape != expected.shape:
        raise Wrong(f"{where}: shape {actual.shape}, expected {expected.shape}")
    if actual.values.dtype != expected.values.dtype:
        raise Wrong(f"{where}: numpy() gives {actual.values.dtype} for {expected.dtype}")
    if flags and actual.requires_grad != expected.requires_grad:
        raise Wrong(f"{where}: requires_grad {actual.requires_grad}")
    if not values:
        return
    relative, absolute = TOLERANCES.get(expected.dtype, (0, 0))
    agree = close(expected.values, actual.values, relative, max(absolute, least))
    if not agree.all():
        raise Wrong(f"{where}: {describe(expected.values, actual.values, agree)}")


def close(expected, actual, relative, absolute):
    """Where two arrays agree; NaN agrees with NaN."""
    same = expected == actual
    if expected.dtype.kind not in "fc":
        return same
    with numpy.errstate(all="ignore"):
        finite = numpy.isfinite(expected) & numpy.isfinite(actual)
        near = numpy.abs(actual - expected) <= absolute + relative * numpy.abs(expected)
    return same | (finite & near) | (numpy.isnan(expected) & numpy.isnan(actual))


def describe(expected, actual, agree):
    index = tuple(int(i) for i in numpy.argwhere(~agree)[0])
    return (
        f"{(~agree).sum()} of {agree.size} values differ, first at {index}: {actual[index]}, expected {expected[index]}"
    )


def excused(expected, precise, actual):
    """Whether single-precision results differ no more than single precision allows.

    `precise` is torch's double-precision result for the same inputs: `actual` is excused where its distance from it is
    at most `SLACK` times that of torch's own result `expected`.
    """
    if isinstance(expected, Sequence):
        triples = zip(expected.items, precise.items, actual.items)
        return all(excused(*triple) for triple in triples)
    if not isinstance(expected, Array):
        return expected == actual
    if expected.shape != precise.shape:
        return False
    relative, absolute = TOLERANCES.get(expected.dtype, (0, 0))
    agree = close(expected.values, actual.values, relative, absolute)
    if expected.dtype in ("float32", "complex64") and not agree.all():
        with numpy.errstate(all="ignore"):
            own = numpy.abs(expected.values - precise.values)
        own = own[numpy.isfinite(own)].max(initial=0)
        agree |= close(precise.values, actual.values, relative, absolute + SLACK * own)
    return bool(agree.all())
