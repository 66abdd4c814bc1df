"""Large arrays through elementwise ops: loops made from the rules give what NumPy's kernels give."""

import platform
import subprocess
import sys

import numpy as np
import pytest

import rushlight
import rushlight.nn.functional as F
from rushlight.base import lazy
from rushlight.base.buffer_pool import HELD_BY_US, MIN_ARRAY_BYTES, memory
from rushlight.core.table import TABLE, parameters
from rushlight.core.worlds import ARRAYS, rebind
from rushlight.fast import dispatch, elementwise, softmax_norm
from rushlight.fast.index import ELEMENTWISE_ELEMENTS as LARGE
from rushlight.fast.index import WAYS
from rushlight.fast.policy import small_arrays as spent
from rushlight.kernels import index
from rushlight.loops import budget
from rushlight.loops.budget import Budget

pytest.importorskip("llvmlite")
while lazy.next_part():
    pass
SIZE = LARGE + 3
HARD = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-42, 3e38, -3e38, 20.0, -20.0, 1.0, -1.0, 0.5, -0.5], np.float32)
ELEMENTWISE = sorted(name for name, op in TABLE.items() if op.elementwise)


def operands(op):
    """Numbers for an op's inputs, hard ones among them; of the kind that it takes."""
    random = np.random.default_rng(len(op.name))
    many = [random.standard_normal(SIZE).astype(np.float32) for _ in op.inputs]
    for k, x in enumerate(many):
        x[: HARD.size] = np.roll(HARD, k)
    if op.name in ("where", "masked"):
        many[0] = many[0] > 0
    return many + [op.defaults.get(name, 0.25) for name in op.settings]


def jobs(op):
    """(input or "", kernel, arguments) of the forward and of each derivative."""
    given, kernel = operands(op), getattr(op.kernel, "numpy", op.kernel)
    known = dict(zip(op.inputs + op.settings, given))
    try:
        known["out"] = np.asarray(kernel(*given))
    except (TypeError, ValueError, NotImplementedError):  # whole, complex or positive numbers only
        return []
    known["g"] = np.random.default_rng(1).standard_normal(SIZE).astype(np.float32)
    found = [("", kernel, given)]
    for name, rule in op.rules.items():
        if rule is not None and all(p in known for p in parameters(rule)):
            found.append((name, rebind(rule, ARRAYS), [known[p] for p in parameters(rule)]))
    return found


@pytest.mark.exhaustive(every=3)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_every_loop_gives_what_numpy_gives(name):
    """To the last bit where the loop promises it; else within a few ulp of what is added up on the way."""
    for of, kernel, args in jobs(TABLE[name]):
        kinds = elementwise.looked_at(tuple(args))
        loop = None if kinds is None else elementwise.loop_of(name, of, kinds[0])
        if loop is None:
            continue
        if loop.paid is not None:
            loop.paid.build()
        expected, made = np.asarray(kernel(*args)), loop.call(*kinds[1:])
        assert (made.dtype, made.shape) == (expected.dtype, expected.shape)
        if loop.paid is not None and name not in ("deg2rad", "rad2deg"):  # NumPy's own constant there
            np.testing.assert_array_equal(made, expected, f"{name}, {of}")
        else:
            scale = np.maximum(1, np.abs(np.nan_to_num(args[0], posinf=1, neginf=1))) if of else 1
            np.testing.assert_allclose(made / scale, expected / scale, rtol=2e-6, atol=1e-6, err_msg=f"{name}, {of}")


def test_the_frequent_ones_have_loops():
    x, number = ("f4", "each"), ("value", 1.0)
    for name in ("gelu", "silu", "sigmoid", "mish", "gelu_tanh", "relu", "log_sigmoid", "hardswish"):
        assert elementwise.loop_of(name, "", (x,)) is not None, name
    for name, saved in (("gelu", 1), ("silu", 1), ("sigmoid", 1), ("tanh", 1), ("exp", 1), ("erf", 1), ("relu", 1)):
        assert elementwise.loop_of(name, "x", (x,) * (1 + saved)) is not None, name
    assert elementwise.loop_of("softplus", "", (x, number, ("value", 20.0))) is not None


@pytest.mark.parametrize("function", ["gelu", "silu", "sigmoid", "tanh", "softplus", "leaky_relu", "hardswish", "elu"])
def test_a_tensor_takes_the_loop_and_its_gradient_too(monkeypatch, function):
    """The whole way round, against the same numbers in small pieces, for which NumPy is called."""
    calls = []
    run = elementwise.run
    monkeypatch.setattr(dispatch, "run_of", lambda way: lambda *args: calls.append(args[1]) or run(*args))
    x = rushlight.randn(3, SIZE // 2, requires_grad=True)
    getattr(F, function)(x).pow(2).sum().backward()
    assert "" in calls or function == "tanh"  # NumPy's own tanh is asked for by larger ones only
    assert "x" in calls
    for start in range(0, SIZE // 2, 40_000):
        part = x.detach()[1, start : start + 40_000].clone().requires_grad_()
        getattr(F, function)(part).pow(2).sum().backward()
        assert rushlight.allclose(part.grad, x.grad[1, start : start + 40_000], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(SIZE // 8,), (3, SIZE)])
def test_sines_of_float64_go_to_a_loop_but_for_huge_numbers(shape, monkeypatch):
    monkeypatch.setattr(spent, "left", 0.0)  # much was done
    a = np.random.default_rng(0).standard_normal(shape) * 50
    a.flat[:6] = 0.0, -0.0, 1e22, -3e5, np.inf, np.nan
    x = rushlight.tensor(a, requires_grad=True)
    with np.errstate(invalid="ignore"):
        (slope,) = x.sin().grad_fn.arrays(np.ones(shape))
        for made, wanted in ((x.sin()._array, np.sin(a)), (x.cos()._array, np.cos(a)), (slope, np.cos(a))):
            np.testing.assert_array_almost_equal_nulp(np.nan_to_num(made), np.nan_to_num(wanted), 2)
            np.testing.assert_array_equal(np.isnan(made), np.isnan(wanted))
    assert (x.sin()._array != np.sin(np.nan_to_num(a, posinf=0))).any()  # it was the loop
    np.testing.assert_array_equal(x.detach().clone().sin_()._array, x.sin()._array)  # huge ones are read once more


def test_other_layouts_and_dtypes_are_left_to_numpy():
    x = rushlight.randn(600, 500)
    for y in (x.T, x[:, ::2], x.double(), x.bfloat16(), x.expand(2, 600, 500)):
        assert rushlight.allclose(F.silu(y).float(), (y * y.sigmoid()).float(), rtol=1e-2)
    row = rushlight.randn(500)
    assert rushlight.equal(rushlight.maximum(x, row), rushlight.where(x > row, x, row))
    assert rushlight.equal(rushlight.maximum(x, row[:1]), rushlight.where(x > row[0], x, row[0]))


def test_a_gradient_that_is_one_number_repeated():
    x = rushlight.randn(SIZE, requires_grad=True)
    F.silu(x).sum().backward()
    y = x.detach().clone().requires_grad_()
    F.silu(y).backward(rushlight.ones(SIZE))
    assert rushlight.allclose(x.grad, y.grad)


# -- rows


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("shape", [(300, 1000), (3, 7, 5000), (131072, 1), (2, 60000)])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_rows_of_softmax(name, shape):
    """As in double precision, which NumPy does; the last shape's rows are too long for the loop."""
    x = rushlight.tensor(3 * normal(*shape), requires_grad=True)
    g = rushlight.tensor(normal(*shape, seed=1))
    wide = x.detach().double().requires_grad_()
    y, expected = getattr(F, name)(x, dim=-1), getattr(F, name)(wide, dim=-1)
    y.backward(g)
    expected.backward(g.double())
    assert rushlight.allclose(y.double(), expected, rtol=3e-6, atol=1e-6)
    assert rushlight.allclose(x.grad.double(), wide.grad, rtol=1e-5, atol=1e-5)


def test_rows_with_infinities_and_nan():
    x = rushlight.tensor(normal(100, 1000))
    x[0, :5] = -rushlight.inf
    x[1] = -rushlight.inf
    x[2, 3] = rushlight.nan
    x[3, 3] = rushlight.inf
    for function in (F.softmax, F.log_softmax):
        large_one, small = function(x, dim=-1), function(x[:4].clone(), dim=-1)
        assert rushlight.allclose(large_one[:4], small, rtol=1e-5, atol=1e-6, equal_nan=True)


@pytest.mark.parametrize(
    ("shape", "dims", "affine"),
    [
        ((300, 500), 1, True),
        ((1, 40, 50, 60), 2, True),
        ((70, 1, 2000), 2, True),
        ((5, 50000), 1, True),
        ((300, 500), 1, False),
    ],
)
def test_rows_of_layer_norm(shape, dims, affine):
    x = rushlight.tensor(normal(*shape) + 5, requires_grad=True)
    weight, bias = (
        rushlight.tensor(normal(*shape[-dims:], seed=k), requires_grad=True) if affine else None for k in (1, 2)
    )
    g = rushlight.tensor(normal(*shape, seed=3))
    given = [t for t in (x, weight, bias) if t is not None]
    wide = [None if t is None else t.detach().double().requires_grad_() for t in (x, weight, bias)]
    y, expected = F.layer_norm(x, shape[-dims:], weight, bias), F.layer_norm(wide[0], shape[-dims:], *wide[1:])
    y.backward(g)
    expected.backward(g.double())
    assert rushlight.allclose(y.double(), expected, rtol=1e-5, atol=2e-5)
    for t, w in zip(given, [w for w in wide if w is not None]):
        assert t.grad.shape == t.shape
        assert rushlight.allclose(t.grad.double(), w.grad, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(
    ("shape", "dim"),
    [
        ((300, 1000), 1),
        ((3, 7, 5000), -1),
        ((300, 1000), 0),
        ((40, 30, 100), (0, 1)),
        ((2, 60000), 1),
        ((1, 100000), 0),
    ],
)
@pytest.mark.parametrize("name", ["logsumexp", "var", "std"])
def test_sums_of_rows_and_columns(name, shape, dim):
    """As in double precision, which NumPy does; so it does sums along other dimensions, and of too few numbers."""
    x = rushlight.tensor(normal(*shape) + 3, requires_grad=True)
    wide = x.detach().double().requires_grad_()
    y, expected = getattr(x, name)(dim), getattr(wide, name)(dim)
    g = rushlight.tensor(normal(*y.shape, seed=1))
    y.backward(g)
    expected.backward(g.double())
    assert y.shape == expected.shape
    assert rushlight.allclose(y.double(), expected, rtol=1e-5, atol=1e-6, equal_nan=True)
    assert rushlight.allclose(x.grad.double(), wide.grad, rtol=1e-4, atol=1e-5, equal_nan=True)


def test_variance_of_all_and_of_rows_far_from_zero():
    x = rushlight.tensor(normal(40, 70, 100) + 1000, requires_grad=True)
    wide = x.detach().double().requires_grad_()
    for dim, correction in ((None, 1), ((1, 2), 0), (-1, 2), ((2, 0, 1), 1)):
        for t in (x, wide):
            t.grad = None
            (t.var(dim, correction=correction) ** 2).sum().backward()
        x_var, expected = [t.var(dim, correction=correction).double() for t in (x, wide)]
        assert rushlight.allclose(x_var, expected, rtol=1e-5)
        assert rushlight.allclose(x.grad.double(), wide.grad, rtol=1e-4, atol=1e-4 * float(wide.grad.abs().max()))
    assert x.var((1, 2), keepdim=True).shape == (40, 1, 1)


@pytest.mark.parametrize(("name", "dim", "kept"), [("logsumexp", (1,), (300, 1)), ("var_core", (0,), (1, 1000))])
def test_the_gradient_of_a_mean_is_one_number_repeated(name, dim, kept):
    x, g = normal(300, 1000), np.broadcast_to(np.float32(0.1), kept)
    settings = {"logsumexp": (np.logaddexp.reduce(x, 1, keepdims=True),), "var_core": (dim, 1)}[name]
    made = softmax_norm.FUNCTIONS[name, "x"](g, x, *settings)
    np.testing.assert_allclose(made, rebind(TABLE[name].rules["x"], ARRAYS)(g, x, *settings), rtol=1e-5, atol=1e-8)


def test_logsumexp_of_infinities():
    x = rushlight.tensor(normal(100, 1000))
    x[0] = -rushlight.inf
    x[1, 3], x[2, 3] = rushlight.inf, rushlight.nan
    x[3, 5:] = -rushlight.inf
    assert rushlight.allclose(x.logsumexp(1)[:4], x[:4].clone().logsumexp(1), equal_nan=True)
    assert x.logsumexp(1, keepdim=True).shape == (100, 1)


def test_layer_norm_that_is_differentiated_twice():
    """Gradients of the mean and variance themselves: the loop leaves those to the rule."""
    x = rushlight.tensor(normal(200, 400), requires_grad=True)
    y = F.layer_norm(x, (400,))
    (g,) = rushlight.autograd.grad((y * y * y).sum(), x, create_graph=True)
    (g * g).sum().backward()
    wide = x.detach().double().requires_grad_()
    y = F.layer_norm(wide, (400,))
    (g,) = rushlight.autograd.grad((y * y * y).sum(), wide, create_graph=True)
    (g * g).sum().backward()
    assert rushlight.allclose(x.grad.double(), wide.grad, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("n", [1, 7, 5000])
def test_rows_that_are_added_up(n):
    g, place = normal(1200, 4, 8), np.random.default_rng(2).integers(-n, n, (300, 4))
    x, wide = normal(n, 4, 8, seed=3), np.zeros((n, 4, 8))
    np.add.at(wide, place.reshape(-1), g.astype(float))
    made = index.index_add_zeros(g, [place.reshape(-1)], (index.HERE,), wide.shape)
    np.testing.assert_allclose(made, wide, rtol=1e-5, atol=1e-4)
    added = index.index_add(x, place.reshape(-1) % n, g, 0)
    np.testing.assert_allclose(added, x + wide, rtol=1e-5, atol=1e-4)
    with pytest.raises(IndexError):
        index.add_rows(x, np.full(1200, n), g)


def test_entries_with_loops_for_rows_are_those_of_the_index():
    assert set(softmax_norm.FUNCTIONS) == {key for key, way in WAYS.items() if way.module == softmax_norm.__name__}
    assert all(set(of.split()) <= TABLE[name].rules.keys() for name, of in softmax_norm.FUNCTIONS)


SMALL = [(1, 5), (3, 1), (2, 3, 17), (7, 128), (0, 4)]


@pytest.mark.parametrize("shape", SMALL)
@pytest.mark.parametrize(
    "function",
    [
        F.gelu,
        F.mish,
        lambda x: F.gelu(x, "tanh"),
        lambda x: F.softmax(x, -1),
        lambda x: F.softmax(x, 0),
        lambda x: F.log_softmax(x, -1),
        lambda x: x.logsumexp(-1),
        lambda x: x.var(-1),
        lambda x: F.layer_norm(x, x.shape[-1:]),
        lambda x: F.layer_norm(x, x.shape[-1:], *x.reshape(-1, x.shape[-1])[:1].tile(2, 1)),
        lambda x: F.scaled_dot_product_attention(x, x * 2, x[..., :3], is_causal=True),
    ],
    ids=range(11),
)
def test_small_tensors_go_to_loops_once_much_was_done(function, shape, monkeypatch):
    """And give what NumPy gives, forward and back."""

    def results(left):
        monkeypatch.setattr(spent, "left", left)
        x = rushlight.tensor(np.random.default_rng(3).standard_normal(shape).astype(np.float32), requires_grad=True)
        y = function(x)
        (y * y.detach().cos()).sum().backward()
        return y.detach().numpy(), x.grad.numpy()

    for ours, numpys in zip(results(0), results(np.inf), strict=True):
        np.testing.assert_allclose(ours, numpys, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "function",
    [
        F.gelu,
        F.mish,
        F.silu,
        lambda x: F.softmax(x, 0),
        lambda x: F.softmax(x, -1),
        lambda x: F.log_softmax(x, -1),
        lambda x: x.logsumexp(0),
        lambda x: x.norm(),
        lambda x: x.cumsum(0),
        lambda x: x.sum(0),
        rushlight.std,
        lambda x: F.layer_norm(x.reshape(1), (1,)),
    ],
)
def test_single_numbers_after_much_was_done(function, monkeypatch):
    monkeypatch.setattr(spent, "left", 0)
    x = rushlight.tensor(1.5, requires_grad=True)
    y = function(x)
    y.sum().backward()
    found = y.detach(), x.grad
    monkeypatch.setattr(spent, "left", np.inf)
    x = rushlight.tensor(1.5, requires_grad=True)
    y = function(x)
    y.sum().backward()
    rushlight.testing.assert_close(found, (y.detach(), x.grad), equal_nan=True)


def test_when_loops_take_over(monkeypatch):
    monkeypatch.setattr(spent, "left", 30e-6)
    seen = []
    monkeypatch.setitem(softmax_norm.FUNCTIONS, ("softmax", ""), lambda *args: seen.append(args))
    x = rushlight.ones(2, 10)
    for _ in range(9):  # 12 passes of 0.4 us each
        F.softmax(x, 1)
    assert len(seen) == 3
    assert F.softmax(x, 1).tolist() == [[np.float32(0.1).item()] * 10] * 2


@pytest.mark.parametrize(("loaded", "calls"), [(False, 7), (True, 1)])
def test_a_compiler_that_is_loaded_costs_no_loading(loaded, calls, monkeypatch):
    monkeypatch.setattr(budget, "modules", {"llvmlite.binding": None} if loaded else {})
    bill = Budget(1.0, loading=0.75)
    assert [bill.charge(0.125) for _ in range(12)].index(True) == calls


# -- memory


def test_memory_is_used_again_and_only_when_nobody_holds_it():
    shape = (MIN_ARRAY_BYTES // 4 + 1,)
    first = memory.take(shape, np.dtype(np.float32))
    place = first.ctypes.data
    part = first[3:5]
    assert memory.take(shape, np.dtype(np.float32)).ctypes.data != place
    del first
    assert memory.take(shape, np.dtype(np.float32)).ctypes.data != place  # `part` still looks at it
    del part
    assert place in {a.ctypes.data for a in [memory.take(shape, np.dtype(np.float32)) for _ in range(3)]}
    assert sys.getrefcount(memory.known[shape, np.dtype(np.float32)][0]) <= HELD_BY_US


def test_small_memory_is_not_remembered():
    memory.take((12345,), np.dtype(np.float32))
    assert ((12345,), np.dtype(np.float32)) not in memory.known


def test_remembered_memory_has_a_bound(monkeypatch):
    monkeypatch.setattr("rushlight.base.buffer_pool.MAX_POOL_BYTES", memory.bytes + 3 * MIN_ARRAY_BYTES)
    held = [memory.take((MIN_ARRAY_BYTES // 8, k), np.dtype(np.float64)) for k in range(1, 4)]
    assert memory.bytes <= memory.bytes + 3 * MIN_ARRAY_BYTES
    del held
    many = [memory.take((MIN_ARRAY_BYTES // 8 + k,), np.dtype(np.float64)) for k in range(20)]
    assert sum(a.nbytes for known in memory.known.values() for a in known) == memory.bytes
    assert len(many) == 20


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="of glibc")
def test_memory_of_a_step_is_not_handed_back():
    """Thirty arrays of a megabyte and a half, made and let go twice, are the second time there already."""
    program = """
import resource, rushlight
x, faults = rushlight.ones(400_000), []
for step in range(3):
    kept = [x.neg() for i in range(30)]
    del kept
    faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
print(faults[2] - faults[1])
"""
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(told.stdout) < 1000  # 30 arrays have 11,700 pages


def test_set_num_threads_holds_for_loops(monkeypatch):
    pytest.importorskip("threadpoolctl")
    from rushlight.base import threads
    from rushlight.loops import parallel

    monkeypatch.setattr(parallel.pool, "run", lambda *args: pytest.fail("work was handed to a thread"))
    before = threads.chosen, rushlight.get_num_threads()
    try:
        rushlight.set_num_threads(1)
        F.gelu(rushlight.randn(1 << 20))
    finally:
        rushlight.set_num_threads(before[1])
        threads.chosen = before[0]


CHANNELS = {
    "prelu": ("prelu_core", "", ((4, 8, 20, 20), (8, 1, 1))),
    "prelu back": ("prelu_core", "x", ((4, 8, 20, 20), (4, 8, 20, 20), (1, 8, 1, 1))),
    "samples and channels": ("addcmul", "", ((4, 8, 40), (4, 8, 1), (4, 8, 1), 0.5)),
    "two of three": ("addcmul", "", ((4, 8, 40), (8, 1), (8, 1), 1.0)),
}


@pytest.mark.parametrize("case", CHANNELS)
def test_a_number_for_each_channel(case):
    """The bits of NumPy, which broadcasts."""
    name, of, shapes = CHANNELS[case]
    rng = np.random.default_rng(2)
    args = [rng.standard_normal(s).astype(np.float32) if isinstance(s, tuple) else s for s in shapes]
    op = TABLE[name]
    kinds, arrays, shape = elementwise.looked_at(tuple(args))
    assert "channel" in [kind[1] for kind in kinds]
    loop = elementwise.loop_of(name, of, kinds)
    loop.paid.build()
    np.testing.assert_array_equal(loop.call(arrays, shape), rebind(op.rules[of] if of else op.forward, ARRAYS)(*args))


@pytest.mark.parametrize("shape", [(40,), (8, 40), (1, 1, 40)])
def test_rows_broadcast_in_a_loop(shape):
    x, row = normal(4, 8, 40), normal(*shape)
    kinds, arrays, whole = elementwise.looked_at((x, row))
    assert [kind[1] for kind in kinds] == ["each", "row"]
    assert arrays[0].shape == (x.size // row.size, row.size)
    loop = elementwise.loop_of("mul", "", kinds)
    loop.build()
    assert (loop.call(arrays, whole) == x * row).all()


def test_what_broadcasts_otherwise_is_left_to_numpy():
    x = np.ones((4, 8, 40), np.float32)
    for shape in ((4, 1, 40), (3, 8, 1), (2, 4, 8, 1)):
        assert elementwise.looked_at((x, np.arange(np.prod(shape), dtype=np.float32).reshape(shape))) is None
    assert (
        elementwise.looked_at((x, x[:, :, :1].copy() + 1, x[0, :, :1] + np.arange(8, dtype=np.float32)[:, None]))
        is None
    )
