"""Every op by itself: derivatives are slopes, both worlds agree, in-place is out-of-place, layout does not matter."""

from __future__ import annotations

import builtins
import dis
import inspect
import types
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.extra.numpy import mutually_broadcastable_shapes

import rushlight
from rushlight import Tensor
from rushlight.autograd import grad, gradcheck
from rushlight.core.table import BOOL, TABLE
from rushlight.core.worlds import ARRAYS, TENSORS
from rushlight.ops.composites import FUNCTIONS
from tests.support.op_calls import agree, arrays_in, call, check_all, fixed, gradients, leaf, put_into, varies, weights
from tests.table.samples import INTERNAL, NAMES, NOT_IMPLEMENTED, SAMPLES, function_of, is_random

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # see test_no_warning_reaches_the_user
every_op = pytest.mark.parametrize("name", NAMES)
every_rule = pytest.mark.parametrize("name", [name for name in NAMES if name not in NOT_IMPLEMENTED])


def tried(name, dtype="float64"):
    """The samples that the op takes in this dtype."""
    found = []
    for sample in SAMPLES[name]:
        try:
            call(function_of(name), sample, dtype, fixed)
        except (RuntimeError, TypeError, IndexError):
            continue
        found.append(sample)
    return found


@every_op
def test_every_op_has_samples(name):
    assert SAMPLES[name] or name == "to", f"give {name} samples in tests/table/samples"


@every_op
def test_most_samples_run(name):
    """In float64, or as integers or complex numbers for ops that take nothing else."""
    run = {sample for dtype in ("float64", "int64", "complex128") for sample in tried(name, dtype)}
    assert len(run) >= len(SAMPLES[name]) / 2


def differentiable(name):
    """(sample, (function of the tensors to vary, those tensors)) for the smooth samples."""
    function = function_of(name)
    for sample in tried(name):
        args, kwargs = sample.make("float64")
        inside = [a for a in arrays_in([args, kwargs]) if varies(a)]
        if sample.smooth and inside and all(a.size for a in inside):
            yield sample, (varied(function, args, kwargs), [leaf(a) for a in inside])


def varied(function, args, kwargs):
    """A function of the floating-point tensors alone; its results that have no gradient left away."""

    def run(*tensors):
        rest = iter(tensors)
        a, k = (put_into(v, lambda x: next(rest) if varies(x) else fixed(x)) for v in (args, kwargs))
        return tuple(t for t in arrays_in(function(*a, **k)) if t.requires_grad)

    return run


@every_rule
def test_first_derivatives_are_slopes(name):
    def check(sample, case):
        function, leaves = case
        if function(*leaves):
            gradcheck(function, tuple(leaves))

    check_all(differentiable(name), check)


@every_rule
def test_second_derivatives_are_slopes(name):
    def check(sample, case):
        function, leaves = case
        outs = function(*leaves)
        seeds = [rushlight.from_numpy(weights(t.shape, t._array.dtype)).requires_grad_() for t in outs]

        def gradients(*tensors):
            inner = tensors[: len(leaves)]
            found = grad(function(*inner), inner, tensors[len(leaves) :], create_graph=True, allow_unused=True)
            return tuple(g for g in found if g is not None and g.requires_grad)

        if outs and gradients(*leaves, *seeds):
            check_directions(gradients, leaves + seeds)

    check_all(differentiable(name), check)


def check_directions(function, leaves):
    """AssertionError unless v . J u is what finite differences say, for two random u and v: gradcheck takes 20 times as
    long for second derivatives, and what it finds shows here too."""
    random = np.random.default_rng(0)
    for _ in range(2):
        outs = function(*leaves)
        v = [random.standard_normal(t.shape) for t in outs]
        u = [random.standard_normal(t.shape) for t in leaves]
        grads = grad(outs, leaves, [rushlight.tensor(w) for w in v], allow_unused=True)
        found = sum(np.vdot(g._array, w).real for g, w in zip(grads, u) if g is not None)
        ends = [function(*[leaf(t._array + eps * w) for t, w in zip(leaves, u)]) for eps in (1e-6, -1e-6)]
        slope = sum(np.vdot(w, a._array - b._array).real for a, b, w in zip(*ends, v)) / 2e-6
        assert np.isclose(found, slope, 1e-4, 1e-5), f"the derivative is {found}, finite differences say {slope}"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@every_rule
def test_both_worlds_give_one_gradient(name, dtype):
    """Also of the input's shape and dtype, and the same where only one input asks for it."""
    function = function_of(name)

    def check(sample, _):
        fast, slow = gradients(function, sample, dtype), gradients(function, sample, dtype, create_graph=True)
        agree(fast["grads"], [t.detach()._array for t in slow["grads"]], "arrays and tensors")
        inside = [a for a in arrays_in(list(sample.make(dtype))) if varies(a)]
        for g, a in zip(fast["grads"], inside):
            assert (g._array.dtype, g._array.shape) == (a.dtype, a.shape)
        for i, g in enumerate(fast["grads"] if len(fast["grads"]) > 1 else ()):
            agree(alone(function, sample, dtype, i), g._array, f"input {i} alone")

    check_all([(sample, None) for sample in tried(name, dtype)], check)


def alone(function, sample, dtype, i):
    """The gradient of the i-th floating-point tensor when no other requires grad."""
    count = iter(range(100))
    made, inside = call(function, sample, dtype, lambda a: leaf(a) if varies(a) and next(count) == i else fixed(a))
    (x,) = [t for t in inside if t.requires_grad]
    chosen = [t for t in arrays_in(made) if t.requires_grad]
    g = (
        grad(chosen, x, [rushlight.from_numpy(weights(t.shape, t._array.dtype)) for t in chosen], allow_unused=True)[0]
        if chosen
        else None
    )
    return rushlight.zeros_like(x) if g is None else g


def strided(array):
    """The same elements, every second one of a larger array, its dimensions in opposite order."""
    room = np.zeros(tuple(2 * n for n in array.shape[::-1]), array.dtype)
    view = room[(..., *[slice(None, None, 2)] * array.ndim)].transpose()
    view[...] = array
    return view


@every_op
def test_layout_makes_no_difference(name):
    function = function_of(name)

    def check(sample, _):
        straight, _ = call(function, sample, "float64", fixed)
        crooked, _ = call(function, sample, "float64", lambda a: rushlight.from_numpy(strided(a)))
        agree(list(arrays_in(crooked)), [t._array for t in arrays_in(straight)])

    lie_together = ("view", "view_as", "view_as_shape", "view_copy")  # or they say so: test_errors.py
    of_memory = ("as_strided", "as_strided_copy", "as_strided_scatter", "lie")
    if name not in lie_together + of_memory and not is_random(name):
        check_all([(sample, None) for sample in tried(name)], check)


@pytest.mark.exhaustive(every=4)
@every_op
def test_inputs_may_be_read_only(name):
    """As arrays from memory maps and other libraries are: nothing is written into them, forward or backward."""

    def locked(array):
        copy = np.array(array)
        copy.flags.writeable = False
        return rushlight.from_numpy(copy).requires_grad_(varies(array))

    def run(sample, tensor):
        made, inside = call(function_of(name), sample, "float64", tensor)
        outs = [t for t in arrays_in(made) if t.requires_grad]
        try:
            leaves = [t for t in inside if t.requires_grad]
            grads = grad(outs, leaves, [rushlight.ones_like(t) for t in outs], allow_unused=True) if outs else ()
        except RuntimeError:  # it has no derivative: then from other arrays neither
            grads = ()
        return [t.detach() for t in arrays_in(made)] + [g for g in grads if g is not None]

    def check(sample, _):
        agree(run(sample, locked), [t._array for t in run(sample, leaf)])

    if not is_random(name) and not name.endswith("_"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # from_numpy says that the array is read-only, as torch does
            check_all([(sample, None) for sample in tried(name)], check)


@pytest.mark.exhaustive(every=4)
@every_rule
def test_no_warning_reaches_the_user(name):
    """NumPy warns of overflow and division by zero, torch does not; rushlight silences its own modules only."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"rushlight\.")
        warnings.filterwarnings("ignore", r"\w+\(\): degrees of freedom")  # torch warns, too
        for dtype in ("float64", "int64"):
            for sample in tried(name, dtype):
                gradients(function_of(name), sample, dtype)
                gradients(function_of(name), sample, dtype, create_graph=True)


@pytest.mark.exhaustive(every=4)
@every_rule
def test_inputs_stay_as_they_are(name):
    function = function_of(name)

    def check(sample, _):
        made, inside = call(function, sample, "float64", leaf)
        for create_graph in (False, True):
            before = [t._array.tobytes() for t in inside]
            outs = [t for t in arrays_in(made) if t.requires_grad]
            seeds = [rushlight.ones_like(t) for t in outs]
            if outs:
                grad(outs, [t for t in inside if t.requires_grad], seeds, True, create_graph, allow_unused=True)
            assert [t._array.tobytes() for t in inside] == before
            assert all((s._array == 1).all() for s in seeds), "the gradient given to backward has changed"
        assert not any(t._version for t in inside)

    check_all([(sample, None) for sample in tried(name)], check)


# Their forms with an underscore change the tensor's shape, not its elements: ops/shape/test_views.py.
BECOME = ("as_strided", "detach", "squeeze", "swapaxes", "swapdims", "t", "transpose", "unsqueeze")


@pytest.mark.parametrize(
    "name", [name for name in NAMES if hasattr(Tensor, name + "_") and name not in INTERNAL and name not in BECOME]
)
def test_inplace_is_out_of_place(name):
    function, inplace = function_of(name), getattr(Tensor, name + "_")

    def check(sample, _):
        for dtype in ("float64", "int64"):
            args, kwargs = sample.make(dtype)
            if isinstance(args[0], np.ndarray) and sample in tried(name, dtype):
                check_values(args, kwargs)
                if dtype == "float64":
                    check_gradients(sample)

    def check_values(args, kwargs):
        (x, *rest), more = put_into(args, rushlight.tensor), put_into(kwargs, rushlight.tensor)
        expected, before = function(x, *rest, **more), x._array.copy()
        if expected.shape != x.shape or expected.dtype.category > x.dtype.category:
            with pytest.raises(RuntimeError):
                inplace(x, *rest, **more)
            assert np.array_equal(x._array, before, equal_nan=True)
            assert x._version == 0, "a failed call counts no write"
            return
        back = inplace(x, *rest, **more)
        assert back is x
        assert x._version == 1
        agree(x, expected.to(x.dtype)._array, "in-place")

    def check_gradients(sample):
        outcomes = []
        for run in (function, lambda x, *args, **k: inplace(x * 1, *args, **k)):
            try:
                outcomes.append(gradients(run, sample, "float64")["grads"])
            except RuntimeError as error:
                if "doesn't match" in str(error) or "can't be cast" in str(error):
                    return
                raise
        if name in TABLE and TABLE[name].result == BOOL:  # asks for none, but what it is written into does
            assert outcomes[1]
            outcomes[0] = [rushlight.zeros_like(g) for g in outcomes[1]]
        agree(outcomes[1], [g._array for g in outcomes[0]], "gradients in place")

    check_all([(sample, None) for sample in SAMPLES[name]], check)


@pytest.mark.parametrize("name", [name for name in NAMES if hasattr(Tensor, name) and hasattr(rushlight, name)])
def test_method_is_function(name):
    function, method = getattr(rushlight, name), getattr(Tensor, name)

    def check(sample, _):
        if isinstance(sample.make("float64")[0][0], np.ndarray):
            ours = call(function, sample, "float64", fixed)[0]
            agree(arrays_in(call(method, sample, "float64", fixed)[0]), [t._array for t in arrays_in(ours)])

    if callable(method) and name != "where":  # the method's first argument is not the function's
        check_all([(sample, None) for sample in tried(name)], check)


@every_op
def test_documentation(name):
    function = function_of(name)
    assert len(str(function.__doc__ or "").strip()) > 15, f"{name} has no docstring"
    assert inspect.signature(function).parameters
    assert function.__name__ == name or name in FUNCTIONS or name in dir(Tensor)


# -- rules -----------------------------------------------------------------------------------------


def global_names(code):
    """The global names that a code object, or one nested in it, reads."""
    found = {i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return found.union(*[global_names(c) for c in code.co_consts if isinstance(c, types.CodeType)])


@pytest.mark.parametrize("world", [ARRAYS, TENSORS], ids=["arrays", "tensors"])
@pytest.mark.parametrize("name", TABLE)
def test_names_in_rules_mean_something_in_both_worlds(name, world):
    for rule in TABLE[name].rules.values():
        if rule is not None:
            lost = {n for n in global_names(rule.__code__) if n not in world and not hasattr(builtins, n)}
            assert not lost


@pytest.mark.parametrize("world", [ARRAYS, TENSORS], ids=["arrays", "tensors"])
def test_names_in_helpers_mean_something(world):
    helpers = [f for f in world.values() if isinstance(f, types.FunctionType) and f.__globals__ is world]
    assert len(helpers) > 5
    for helper in helpers:
        lost = {n for n in global_names(helper.__code__) if n not in world and not hasattr(builtins, n)}
        assert not lost, helper.__name__


# -- broadcasting ----------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(mutually_broadcastable_shapes(num_shapes=3, max_dims=4, max_side=3, min_side=0))
def test_any_shapes_broadcast(shapes):
    """where(c, x, y) * x + y: NumPy's value, and gradients that are NumPy's sums over what was repeated."""
    random = np.random.default_rng(0)
    c, a, b = random.random(shapes.input_shapes[0]) > 0.5, *map(random.standard_normal, shapes.input_shapes[1:])
    x, y = rushlight.tensor(a, requires_grad=True), rushlight.tensor(b, requires_grad=True)
    out = rushlight.where(rushlight.tensor(c), x, y) * x + y
    assert np.array_equal(out.detach().numpy(), np.where(c, a, b) * a + b)
    assert out.shape == shapes.result_shape
    out.sum().backward()
    chosen = np.where(c, a, b)
    agree(x.grad, summed(np.where(c, 2 * a, b) + 0 * chosen, a.shape))
    agree(y.grad, summed(np.where(c, 0.0, a) + 1 + 0 * chosen, b.shape))


def summed(g, shape):
    """g added up to the shape that was broadcast."""
    g = g.sum(tuple(range(g.ndim - len(shape))))
    return np.asarray(g.sum(tuple(i for i, n in enumerate(shape) if n == 1), keepdims=True))
