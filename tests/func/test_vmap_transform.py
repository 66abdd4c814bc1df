"""vmap: a function of one sample, mapped over a batch, is the loop over the samples, stacked; its gradients too."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import rushlight
from rushlight import Tensor
from rushlight.func import grad, vmap
from tests.support.op_calls import agree, arrays_in, check_all, fixed, put_into, varies
from tests.table.samples import NAMES, SAMPLES, function_of, is_random
from tests.table.samples.by_hand import Constant

pytestmark = [
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:There is a performance drop"),
]
B = 3

# What the samples' numbers decide: the shape of the result, or the way that it is computed. torch refuses it too.
REFUSED = {
    "argwhere",
    "changes",
    "counted",
    "distinct",
    "from_these",
    "masked_select",
    "nonzero",
    "unique",
    "unique_consecutive",
    "as_strided_scatter",
}
WITHOUT_DERIVATIVE = {"bincount", "histogram", "histogramdd"}
BY_MEMORY = {
    "as_strided",
    "as_strided_copy",
}  # what they show depends on how samples lie: test_vmap_transform_programs.py
DATA = ("dynamic shape", "calling .item()")
BY_NUMBERS = {"repeat_interleave"}  # how often, a tensor says

ONCE = {function_of(name): name for name in reversed(NAMES) if not is_random(name)}  # aliases are tried once
every_op = pytest.mark.parametrize("name", sorted(set(ONCE.values()) - BY_MEMORY))


class Case:
    """A sample of an op as a function of its arrays alone, and B variants of each array."""

    def __init__(self, name, sample):
        self.name, self.function, self.sample = name, function_of(name), sample
        self.dtype = next((d for d in ("float64", "int64", "complex128") if self.runs(d)), None)
        if self.dtype is not None:
            self.args, self.kwargs = sample.make(self.dtype)
            self.arrays = [a for a in arrays_in([self.args, self.kwargs]) if not isinstance(a, Constant)]

    def runs(self, dtype):
        args, kwargs = sample_of = self.sample.make(dtype)
        self.args, self.kwargs = sample_of
        try:
            made = self(*[a for a in arrays_in([args, kwargs]) if not isinstance(a, Constant)])
            return len(made) > 0 and all(isinstance(t, Tensor) for t in made)
        except (RuntimeError, TypeError, IndexError, ValueError, AttributeError, NotImplementedError):
            return False

    def __call__(self, *tensors):
        rest = iter(tensors)

        def tensor(a):
            given = fixed(a) if isinstance(a, Constant) else next(rest)
            return given if isinstance(given, Tensor) else fixed(given)

        args, kwargs = (put_into(v, tensor) for v in (self.args, self.kwargs))
        return tuple(arrays_in(self.function(*args, **kwargs)))


def variants(a):
    """Arrays of which none is the other, where their elements are free."""
    return [(a * (1 - 0.04 * i)).astype(a.dtype) if varies(a) else a.copy() for i in range(B)]


def cases(name):
    for sample in SAMPLES[name]:
        case = Case(name, sample)
        if case.dtype is not None and case.arrays:
            yield sample, case


def looped(function, batches, mapped):
    """The function of each sample, and the results stacked; None where they have no one shape."""
    made = [function(*[fixed(b[i] if m else b[0]) for b, m in zip(batches, mapped)]) for i in range(B)]
    if any(a.shape != b.shape for one in made for a, b in zip(one, made[0])):
        return None
    return [np.stack([one[j]._array for one in made]) for j in range(len(made[0]))]


def refused_by_torch(error):
    return any(text in str(error) for text in DATA)


def check_mapped(case, dims):
    """vmap with these in_dims (None: shared by all) is the loop."""
    batches, mapped = [variants(a) for a in case.arrays], [d is not None for d in dims]
    if not any(mapped):
        return
    expected = looped(case, batches, mapped)
    if expected is None:
        return
    inputs = [fixed(np.moveaxis(np.stack(b), 0, d) if d is not None else b[0]) for b, d in zip(batches, dims)]
    try:
        made = vmap(case, in_dims=tuple(dims))(*inputs)
    except RuntimeError as error:
        if not refused_by_torch(error) and case.name not in BY_NUMBERS:
            raise
        return
    agree(list(made), expected, f"in_dims {dims}", 1e-7)


@every_op
def test_vmap_is_the_stacked_loop(name):
    """All arguments mapped along 0 and along -1; the first alone; all but the first."""

    def check(sample, case):
        n = len(case.arrays)
        for dims in ([0] * n, [-1] * n, [0] + [None] * (n - 1), [None] + [0] * (n - 1)):
            check_mapped(case, dims)

    if name in REFUSED:
        for _, case in cases(name):
            with pytest.raises((RuntimeError, NotImplementedError)):
                vmap(case)(*[fixed(np.stack(variants(a))) for a in case.arrays])
        return
    check_all(cases(name), check)


@pytest.mark.exhaustive(every=4)
@every_op
def test_vmap_nests(name):
    """The outer vmap along 0, the inner along -1; and each argument mapped by one of them alone."""

    def check(sample, case):
        batches = [variants(a) for a in case.arrays]
        n = len(batches)
        if looped(case, batches, [True] * n) is None:
            return
        grids = [[[a * (1 - 0.02 * j) if varies(a) else a for a in b] for j in range(2)] for b in batches]
        whole = [fixed(np.moveaxis(np.array(g), 1, -1)) for g in grids]  # (2, ..., B)
        try:
            made = vmap(vmap(case, in_dims=-1))(*whole)
            split = (
                vmap(vmap(case, in_dims=(None,) * (n - 1) + (0,)), in_dims=(0,) * (n - 1) + (None,))(
                    *[fixed(np.array([g[0][0], g[1][0]])) for g in grids[:-1]], fixed(np.array(grids[-1][0]))
                )
                if n > 1
                else None
            )
        except RuntimeError as error:
            if not refused_by_torch(error) and name not in BY_NUMBERS:
                raise
            return
        for i in (0, 1):
            for j in (0, B - 1):
                agree([t[i, j] for t in made], [t._array for t in case(*[g[i][j] for g in grids])], f"[{i}, {j}]", 1e-7)
                if split:
                    one = case(*[g[i][0] for g in grids[:-1]], grids[-1][0][j])
                    agree([t[i, j] for t in split], [t._array for t in one], f"split [{i}, {j}]", 1e-7)

    if name not in REFUSED:
        check_all(list(cases(name))[:6], check)


def scalar_of(case, places):
    """The case as a function of what varies, to one number."""

    def run(*tensors):
        rest = iter(tensors)
        outs = case(*[next(rest) if i in places else a for i, a in enumerate(case.arrays)])
        outs = [t for t in outs if t.is_floating_point() or t.is_complex()]
        total = sum(((rushlight.view_as_real(t) if t.is_complex() else t) * 0.7).sin().sum() for t in outs)
        return total

    return run


@every_op
def test_gradients_of_samples_are_those_of_the_loop(name):
    """vmap(grad(f)): all arguments mapped, and the last one shared, whose gradient is one for each sample too."""

    def check(sample, case):
        places = [i for i, a in enumerate(case.arrays) if varies(a) and a.size]
        whole = looped(case, [variants(a) for a in case.arrays], [True] * len(case.arrays))
        if not places or not sample.smooth or whole is None:
            return
        f, batches = scalar_of(case, places), [variants(case.arrays[i]) for i in places]
        try:
            one = f(*[fixed(b[0]).requires_grad_() for b in batches])
        except RuntimeError:
            return
        if not isinstance(one, Tensor) or not one.requires_grad:
            return
        numbers = tuple(range(len(places)))
        for shared in (False, True) if len(places) > 1 else (False,):
            last = len(places) - 1
            given = [[b[0] if shared and j == last else b[i] for j, b in enumerate(batches)] for i in range(B)]
            loop = [grad(f, numbers)(*[fixed(a) for a in one]) for one in given]
            dims = tuple(None if shared and j == last else 0 for j in numbers)
            try:
                made = vmap(grad(f, numbers), in_dims=dims)(
                    *[fixed(np.stack(b)) if d == 0 else fixed(b[0]) for b, d in zip(batches, dims)]
                )
            except RuntimeError as error:
                if not refused_by_torch(error):
                    raise
                return
            agree(list(made), [np.stack([g[j]._array for g in loop]) for j in numbers], f"shared {shared}", 1e-6)
            assert not any(g.requires_grad for g in made)

    if name not in REFUSED | WITHOUT_DERIVATIVE:
        check_all(list(cases(name))[:6], check)


@pytest.mark.parametrize(
    "make",
    [
        lambda a: rushlight.from_numpy(pickle.loads(pickle.dumps(a))),
        lambda a: pickle.loads(pickle.dumps(rushlight.from_numpy(a))),
    ],
    ids=["an array", "a tensor"],
)
def test_a_batch_that_was_unpickled(make):
    """Unpickled arrays have a dtype that equals NumPy's float32 and is another object, and ops compare dtypes by
    identity. (Batches of a DataLoader with workers are unpickled.)"""
    x, w = make(np.arange(12, dtype=np.float32).reshape(3, 4)), rushlight.ones(4, 4)
    assert x._array.dtype is not np.dtype(np.float32)
    slope = rushlight.func.grad(lambda w, r: (w @ r * r).sum())
    each = rushlight.func.vmap(slope, (None, 0))(w, x)
    assert each.tolist() == [rushlight.outer(r, r).tolist() for r in x]


@pytest.mark.parametrize("name", ["softplus", "elu", "leaky_relu"])
def test_a_setting_that_differs_by_sample(name):
    """A setting is a number: the error says so, as torch's."""
    function = getattr(rushlight.nn.functional, name)
    with pytest.raises(RuntimeError, match=r"calling \.item\(\) on a Tensor"):
        rushlight.func.vmap(function)(rushlight.ones(3, 2), rushlight.ones(3))
