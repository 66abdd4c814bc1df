"""RNN, LSTM, GRU, their cells and packed sequences, against torch's with the same weights."""

from __future__ import annotations

import copy
import pickle
import warnings
from inspect import unwrap
from types import SimpleNamespace

import numpy as np
import pytest

import rushlight
from rushlight import nn
from rushlight.autograd import grad
from rushlight.fast import recurrent_loops as loops
from rushlight.fast import recurrent_text as texts
from rushlight.fast.policy import small_arrays as spent
from rushlight.kernels import recurrent as kernels
from rushlight.nn.utils import rnn as sequences
from rushlight.ops.nn import recurrent
from tests.support.programs import Programs, outcome

LENGTHS = [2, 4, 1, 3, 4]
INPUT, HIDDEN, STEPS, BATCH = 3, 4, 4, 5
UNIT = 2.0**-24  # what rounding a float32 costs at most


def numbers(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape)


def pair(torch, name, *args, **kwargs):
    """The module in both libraries, in double precision, with torch's numbers in both."""
    theirs = getattr(torch.nn, name)(*args, **kwargs, dtype=torch.float64)
    ours = getattr(nn, name)(*args, **kwargs, dtype=rushlight.float64)
    state = {k: rushlight.tensor(v.numpy()) for k, v in theirs.state_dict().items()}
    assert list(ours.state_dict()) == list(state)
    ours.load_state_dict(state)
    theirs.load_state_dict({k: torch.tensor(v.numpy()) for k, v in ours.state_dict().items()})
    return (rushlight, ours), (torch, theirs)


def leaf(lib, array):
    return lib.tensor(array, requires_grad=True)


def flat(value):
    """All tensors in nested tuples, in order."""
    if isinstance(value, tuple):
        return [t for part in value for t in flat(part)]
    return [] if value is None else [value]


def same(first, second, tol=1e-9):
    assert len(first) == len(second)
    for a, b in zip(first, second):
        assert tuple(a.shape) == tuple(b.shape)
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=tol, atol=tol * 1e-3)


def both(modules, run):
    """run(lib, module) -> (results, leaves): results and gradients of a sum of them are equal in both libraries."""
    found = []
    for lib, module in modules:
        results, leaves = run(lib, module)
        results = flat(results)
        terms = [(r * lib.tensor(numbers(*r.shape))).sum() for r in results if r.is_floating_point()]
        sum(terms[1:], terms[0]).backward()
        grads = [t.grad for t in (*leaves, *module.parameters())]
        found.append([*results, *grads])
    same(*found)


def states(lib, name, settings, batch=(BATCH,)):
    """Given initial states for a module: a tensor, or two."""
    n = settings.get("num_layers", 1) * (1 + settings.get("bidirectional", False))
    h = leaf(lib, numbers(n, *batch, settings.get("proj_size", 0) or HIDDEN))
    return (h, leaf(lib, numbers(n, *batch, HIDDEN, seed=1))) if name == "LSTM" else h


KINDS = [
    ("RNN", {}),
    ("RNN", {"nonlinearity": "relu", "bidirectional": True, "num_layers": 2}),
    ("LSTM", {}),
    ("LSTM", {"num_layers": 2, "bidirectional": True, "batch_first": True}),
    ("LSTM", {"proj_size": 2, "bias": False, "num_layers": 2}),
    ("LSTM", {"proj_size": 3, "bidirectional": True, "num_layers": 2}),
    ("GRU", {}),
    ("GRU", {"num_layers": 2, "bidirectional": True, "bias": False}),
    ("GRU", {"batch_first": True, "dropout": 0.0}),
]
kinds = pytest.mark.parametrize(("name", "settings"), KINDS, ids=str)


@kinds
@pytest.mark.parametrize("given", [False, True], ids=["from zero", "from states"])
def test_sequences(torch, name, settings, given):
    shape = (BATCH, STEPS, INPUT) if settings.get("batch_first") else (STEPS, BATCH, INPUT)

    def run(lib, module):
        x = leaf(lib, numbers(*shape))
        hx = states(lib, name, settings) if given else None
        return module(x, hx), [x, *flat(hx)]

    both(pair(torch, name, INPUT, HIDDEN, **settings), run)


@kinds
def test_one_sequence(torch, name, settings):
    def run(lib, module):
        x, hx = leaf(lib, numbers(STEPS, INPUT)), states(lib, name, settings, ())
        return (module(x, hx), module(x)), [x, *flat(hx)]

    both(pair(torch, name, INPUT, HIDDEN, **settings), run)


@kinds
@pytest.mark.parametrize("is_sorted", [False, True], ids=["unsorted", "sorted"])
def test_packed_sequences(torch, name, settings, is_sorted):
    lengths = sorted(LENGTHS, reverse=True) if is_sorted else LENGTHS

    def run(lib, module):
        x, hx = leaf(lib, numbers(BATCH, STEPS, INPUT)), states(lib, name, settings)
        packed = lib.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=is_sorted)
        out, last = module(packed, hx)
        assert isinstance(out, lib.nn.utils.rnn.PackedSequence)
        padded, n = lib.nn.utils.rnn.pad_packed_sequence(out)
        return (out.data, padded, n, last, module(packed)[1]), [x, *flat(hx)]

    both(pair(torch, name, INPUT, HIDDEN, **settings), run)


def test_only_the_last_state_is_used(torch):
    """No gradient comes from the outputs; from the cell of an LSTM alone neither."""
    for name, pick in {"LSTM": lambda out: out[1][1], "GRU": lambda out: out[1], "RNN": lambda out: out[1]}.items():
        both(
            pair(torch, name, INPUT, HIDDEN), lambda lib, m, pick=pick: (pick(m(lib.tensor(numbers(2, 2, INPUT)))), [])
        )


def test_frozen_weights_and_no_gradient(torch):
    module = nn.LSTM(INPUT, HIDDEN)
    module.weight_hh_l0.requires_grad_(False)
    x = leaf(rushlight, numbers(2, 2, INPUT).astype(np.float32))
    module(x)[0].sum().backward()
    assert module.weight_hh_l0.grad is None
    assert module.weight_ih_l0.grad is not None
    assert x.grad is not None
    with rushlight.no_grad():
        assert not module(x)[0].requires_grad


@pytest.mark.parametrize("name", ["RNNCell", "LSTMCell", "GRUCell"])
@pytest.mark.parametrize("bias", [True, False])
def test_cells(torch, name, bias):
    def run(lib, module):
        x, leaves = leaf(lib, numbers(BATCH, INPUT)), [leaf(lib, numbers(BATCH, HIDDEN, seed=i)) for i in range(2)]
        hx = tuple(leaves) if name == "LSTMCell" else leaves[0]
        one = tuple(h[0] for h in leaves) if name == "LSTMCell" else leaves[0][0]
        twice = module(x, module(x, hx))
        used = leaves if name == "LSTMCell" else leaves[:1]
        return (twice, module(x), module(x[0], one), module(x[0])), [x, *used]

    both(pair(torch, name, INPUT, HIDDEN, bias), run)


def test_a_cell_of_relus(torch):
    both(pair(torch, "RNNCell", INPUT, HIDDEN, True, "relu"), lambda lib, m: (m(lib.tensor(numbers(BATCH, INPUT))), []))


CELLS = {
    "lstm": (recurrent.lstm_layer, (), recurrent.lstm_cell, 2, 4),
    "gru": (recurrent.gru_layer, (), recurrent.gru_cell, 1, 3),
    "tanh": (recurrent.rnn_layer, (False,), recurrent.rnn_tanh_cell, 1, 1),
    "relu": (recurrent.rnn_layer, (True,), recurrent.rnn_relu_cell, 1, 1),
}


@pytest.mark.parametrize("kind", [*CELLS, "lstm with a projection"])
@pytest.mark.parametrize("sizes", [None, (3, 3, 2, 1), (2,)], ids=["even", "uneven", "one step"])
@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "backward"])
def test_layers_are_what_their_cells_say(kind, sizes, reverse):
    """Values and first, second and third derivatives of the fused ops, against the same made of ops."""
    op, extra, cell, n, gates = CELLS[kind.partition(" ")[0]]
    batch, out = (sizes or (3,))[0], 2 if "projection" in kind else HIDDEN
    shapes = [
        (sum(sizes or (3, 3)), gates * HIDDEN),
        (batch, out),
        (batch, HIDDEN),
        (gates * HIDDEN, out),
        (out, HIDDEN),
    ]
    shapes = shapes[:2] + shapes[2:3] * (n == 2) + shapes[3:4] + shapes[4:] * ("projection" in kind)
    shapes += [(gates * HIDDEN,)] * (kind == "gru")
    given = [leaf(rushlight, numbers(*shape)) for shape in shapes]
    ways = [list(op(given, *extra, sizes, reverse))[: 1 + n], recurrent.unrolled(cell, n, given, sizes, reverse)]
    for _ in range(3):
        same(*ways)
        ways = [
            grad(sum((t * t * t).sum() for t in way if t is not None), given, create_graph=True, allow_unused=True)
            for way in ways
        ]
        ways = [[t for t in way if t is not None] for way in ways]
    same(*ways, tol=1e-7)


def answers(module, x, lengths):
    """Results of the module in its dtype, and the gradients of x and of its parameters."""
    given, first = leaf(rushlight, x.astype(str(module.weight_ih_l0.dtype).split(".")[1])), module.batch_first
    packed = sequences.pack_padded_sequence(given, lengths, first, enforce_sorted=False) if lengths else given
    out, last = module(packed)
    module.zero_grad()
    results = [out.data if lengths else out, *flat(last)]
    sum((t.sin() * t).sum() for t in results).backward()
    return [t.detach().numpy().copy() for t in (*results, given.grad, *(p.grad for p in module.parameters()))]


@pytest.mark.faster
@kinds
@pytest.mark.parametrize("lengths", [None, LENGTHS], ids=["even", "uneven"])
def test_loops_of_large_layers(monkeypatch, name, settings, lengths):
    """Compiled loops are right, forward and back, whatever of a vector or of a group of rows is left over: no further
    from float64 than 8 times what rounding the input and the weights once does (measured: at most 3.6 times, NumPy's
    float32 3.4; which of the two is nearer is chance)."""
    pytest.importorskip("llvmlite")
    module, calls = getattr(nn, name)(INPUT, 37, **settings), []
    monkeypatch.setattr(loops, "back", lambda *args, back=loops.back: calls.append(1) or back(*args))
    x = numbers(*((BATCH, STEPS) if module.batch_first else (STEPS, BATCH)), INPUT).astype(np.float32)
    monkeypatch.setattr(loops, "RECURRENT_ELEMENTS", 1)
    looped, wide = answers(module, x, lengths), copy.deepcopy(module).double()
    assert len(calls) == module.num_layers * (1 + module.bidirectional)
    exact, rng, moved = answers(wide, x, lengths), np.random.default_rng(0), []

    def rounded(a):
        return a * (1 + rng.uniform(-UNIT, UNIT, a.shape))

    for _ in range(4):
        other = copy.deepcopy(wide)
        other.load_state_dict({k: rushlight.tensor(rounded(v.numpy())) for k, v in other.state_dict().items()})
        moved.append(answers(other, rounded(x.astype(float)), lengths))
    for one, right, *others in zip(looped, exact, *moved):
        assert abs(one - right).max() <= 8 * (max(abs(a - right).max() for a in others) + UNIT * abs(right).max())


@pytest.mark.faster
@pytest.mark.parametrize("seed", range(24))
def test_loops_are_the_kernels(monkeypatch, seed):
    """Loops and NumPy give the same, for any number of rows and columns, in both orders of memory, on one core and on
    some; either reads what the other has saved."""
    pytest.importorskip("llvmlite")
    monkeypatch.setattr(loops, "RECURRENT_ELEMENTS", 1)
    monkeypatch.setattr(loops, "RECURRENT_PARALLEL_PRODUCTS", 1)
    monkeypatch.setattr(loops, "cores", lambda: 1 + seed // 3 % 3)
    rng = np.random.default_rng(seed)
    name = ("lstm", "gru", "rnn")[seed % 3]
    hidden, batch, steps, reverse = *rng.integers(1, (70, 120, 5)).tolist(), bool(seed % 2)
    sizes = None if seed % 4 else (*sorted(rng.integers(1, batch + 1, steps).tolist() + [batch], reverse=True),)
    gates, wide = {"lstm": 4, "gru": 3, "rnn": 1}[name], hidden - (name == "lstm" and seed % 5 == 0 and hidden > 1)

    def draw(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    x = draw(sum(sizes), gates * hidden) if sizes else draw(steps, batch, gates * hidden)
    x = x if sizes or seed % 2 else np.ascontiguousarray(x.swapaxes(0, 1)).swapaxes(0, 1)
    weight = draw(gates * hidden, wide) / (2 * wide**0.5)
    given = [
        x,
        draw(batch, wide),
        *([draw(batch, hidden)] if name == "lstm" else []),
        weight,
        *([draw(gates * hidden)] if seed % 4 < 3 else []),
        *([draw(wide, hidden)] if wide < hidden else []),
    ]
    settings = *((seed % 2 == 0,) if name == "rnn" else ()), sizes, reverse
    numpy = SimpleNamespace(**{op: unwrap(getattr(kernels, op)) for op in (name, name + "_back")})
    ways = [getattr(module, name)(given, *settings) for module in (loops, numpy)]
    slopes = [draw(*a.shape) for a in ways[0][: 3 if name == "lstm" else 2]]
    saved = [found[:1] if name == "rnn" else [found[0], found[-1]] for found in ways]
    back = [
        getattr(module, name + "_back")([*given, *kept, *slopes], *settings)
        for module in (numpy, loops)
        for kept in saved
    ]
    for first, *others in (ways, back):
        for other in others:
            assert len(first) == len(other)
            for a, b in zip(first, other):
                assert a.shape == b.shape
                assert abs(a - b).max() <= 3e-6 * abs(b).max()


@pytest.mark.faster
def test_small_layers_take_loops_once_numpy_has_cost_enough(monkeypatch):
    pytest.importorskip("llvmlite")
    calls, x, layer, cell = [], rushlight.randn(5, 2, INPUT), nn.LSTM(INPUT, HIDDEN), nn.GRUCell(INPUT, HIDDEN)
    monkeypatch.setattr(loops, "loops", lambda *args, made=loops.loops: calls.append(args) or made(*args))
    outs = []
    for left in (1e9, 0.0):
        monkeypatch.setattr(spent, "left", left)
        outs.append([layer(x)[0], cell(x[0])])
        assert bool(calls) == (left == 0)
    same(*outs, tol=1e-5)


def test_a_loop_of_many_columns_and_rows(monkeypatch):
    """Products deeper than a panel is read at once, by hand in float64."""
    pytest.importorskip("llvmlite")
    monkeypatch.setattr(loops, "RECURRENT_ELEMENTS", 1)
    module = nn.RNN(3, 300, nonlinearity="relu")
    x = rushlight.tensor(numbers(2, 17, 3).astype(np.float32), requires_grad=True)
    wide, y = copy.deepcopy(module).double(), x.detach().double().requires_grad_()
    for m, given in ((module, x), (wide, y)):
        m(given)[0].square().sum().backward()
    for one, other in zip(
        (x.grad, *(p.grad for p in module.parameters())), (y.grad, *(p.grad for p in wide.parameters()))
    ):
        assert abs(one.numpy() - other.numpy()).max() <= 1e-5 * abs(other.numpy()).max()


@pytest.mark.parametrize("name", ["LSTM", "GRU"])
def test_how_many_tiles_go_together_changes_no_sequence(monkeypatch, name):
    pytest.importorskip("llvmlite")
    monkeypatch.setattr(loops, "RECURRENT_ELEMENTS", 1)
    layer, found = getattr(nn, name)(INPUT, HIDDEN, batch_first=True), []
    for together in (1, 2, 8):
        monkeypatch.setattr(loops, "together", lambda weight, n=together: n)
        x = rushlight.tensor(numbers(29, 6, INPUT).astype(np.float32), requires_grad=True)
        layer.zero_grad()
        out, _ = layer(x)
        out.square().sum().backward()
        found.append([out.detach().numpy(), x.grad.numpy(), *(p.grad.numpy() for p in layer.parameters())])
    for other in found[1:]:
        assert all((a == b).all() for a, b in zip(found[0][:2], other))
        same(*([rushlight.tensor(a) for a in one[2:]] for one in (found[0], other)), tol=1e-5)


def test_small_layers_and_double_precision_compile_nothing(monkeypatch):
    monkeypatch.setattr(loops, "loops", None)
    nn.LSTM(16, 32)(rushlight.ones(20, 4, 16))[0].sum().backward()
    nn.LSTM(16, 64, dtype=rushlight.float64)(rushlight.ones(40, 16, 16, dtype=rushlight.float64))[0].sum().backward()


def test_loops_are_made_from_the_cells_rules():
    text = texts.back_text(loops.GRU, False)
    assert "saved_1[j] * (f32(1) - saved_1[j])" in text
    assert "tanh" not in text  # it is saved


@pytest.mark.parametrize("sizes", [(2, 3, 1), (3, 2), (2, 2, 2)], ids=str)
def test_rows_that_do_not_fit_are_refused(sizes):
    given = [rushlight.ones(6, 4), rushlight.ones(3, 4), rushlight.ones(4, 4)]
    with pytest.raises(RuntimeError, match=r"rnn_layer\(\): a state of 3 rows and steps of .* do not fit 6 rows"):
        recurrent.rnn_layer(given, False, sizes, False)


def test_a_gradient_stops_at_each_input_in_second_derivatives():
    """The initial state is made from the weights: what goes through it is counted once."""
    w, x = leaf(rushlight, numbers(4, 1)), rushlight.tensor(numbers(3, 4))
    given = [x, w[:1] * w[1:2], w[2:3] * w[2:3], w]
    out = [
        recurrent.lstm_layer(given, None, False)[0],
        recurrent.unrolled(recurrent.lstm_cell, 2, given, None, False)[0],
    ]
    first = [grad((t * t).sum(), w, create_graph=True)[0] for t in out]
    same(*[grad((g * g).sum(), w, retain_graph=True) for g in first])


def test_first_numbers_are_torchs(torch):
    for name, settings in [*KINDS, ("LSTMCell", {}), ("GRUCell", {"bias": False}), ("RNNCell", {})]:
        torch.manual_seed(3), rushlight.manual_seed(3)
        theirs, ours = (getattr(lib.nn, name)(INPUT, HIDDEN, **settings) for lib in (torch, rushlight))
        same(list(ours.parameters()), list(theirs.parameters()), tol=1e-6)
        assert repr(ours) == repr(theirs)


def test_dropout_between_layers_is_torchs(torch):
    x = numbers(STEPS, BATCH, INPUT).astype(np.float32)
    for name in ("RNN", "LSTM", "GRU"):
        torch.manual_seed(3), rushlight.manual_seed(3)
        settings = {"num_layers": 3, "dropout": 0.4, "bidirectional": True}
        theirs, ours = (getattr(lib.nn, name)(INPUT, HIDDEN, **settings) for lib in (torch, rushlight))
        same([ours(rushlight.tensor(x))[0]], [theirs(torch.tensor(x))[0]], tol=1e-4)
        ours.eval()
        same([ours(rushlight.tensor(x))[0]], [ours(rushlight.tensor(x))[0]])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_dtypes(torch, dtype):
    found = []
    for lib in (rushlight, torch):
        lib.manual_seed(0)
        module = lib.nn.LSTM(INPUT, HIDDEN).to(getattr(lib, dtype))
        x = lib.tensor(numbers(STEPS, BATCH, INPUT).astype(np.float32)).to(getattr(lib, dtype))
        out, (h, c) = module(x)
        out.float().sum().backward()
        assert {str(t.dtype).split(".")[1] for t in (out, h, c, module.weight_hh_l0.grad)} == {dtype}
        found.append(out.float().detach().numpy())
    np.testing.assert_allclose(*found, rtol=0, atol=1e-6 if dtype == "float32" else 0.02)


def test_copies_and_pickles():
    module = nn.GRU(INPUT, HIDDEN, 2, bidirectional=True, dtype=rushlight.float64)
    x = rushlight.tensor(numbers(STEPS, BATCH, INPUT))
    for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        same(flat(other(x)), flat(module(x)))
        assert repr(other) == repr(module)
    module.flatten_parameters()
    assert [len(weights) for weights in module.all_weights] == [4] * 4


def test_compiled():
    module = nn.LSTM(INPUT, HIDDEN)
    x = rushlight.randn(STEPS, BATCH, INPUT)
    compiled = rushlight.compile(lambda x: module(x)[0].tanh(), fullgraph=True)
    for _ in range(3):
        found = []
        for f in (compiled, lambda x: module(x)[0].tanh()):
            module.zero_grad()
            out = f(x)
            (out * out).sum().backward()
            found.append([out, *(p.grad for p in module.parameters())])
        same(*found, tol=1e-4)


FAULTS = {
    "4-d": lambda lib: lib.nn.RNN(2, 3)(lib.ones(1, 1, 1, 2)),
    "4-d LSTM": lambda lib: lib.nn.LSTM(2, 3)(lib.ones(1, 1, 1, 2)),
    "features": lambda lib: lib.nn.GRU(2, 3)(lib.ones(1, 1, 3)),
    "dtype": lambda lib: lib.nn.GRU(2, 3)(lib.ones(1, 1, 2, dtype=lib.float64)),
    "state's dtype": lambda lib: lib.nn.GRU(2, 3)(lib.ones(1, 1, 2), lib.ones(1, 1, 3, dtype=lib.float64)),
    "cell's state's dtype": lambda lib: lib.nn.RNNCell(2, 3)(lib.ones(1, 2), lib.ones(1, 3, dtype=lib.float64)),
    "state's size": lambda lib: lib.nn.GRU(2, 3)(lib.ones(1, 1, 2), lib.ones(1, 1, 2)),
    "state's dimensions": lambda lib: lib.nn.GRU(2, 3)(lib.ones(1, 1, 2), lib.ones(1, 3)),
    "states' dimensions": lambda lib: lib.nn.LSTM(2, 3)(lib.ones(1, 2), (lib.ones(1, 3), lib.ones(1, 1, 3))),
    "cell's size": lambda lib: lib.nn.LSTM(2, 3)(lib.ones(1, 1, 2), (lib.ones(1, 1, 3), lib.ones(1, 2, 3))),
    "three states": lambda lib: lib.nn.LSTM(2, 3)(lib.ones(1, 1, 2), [lib.ones(1, 1, 3)] * 3),
    "no steps": lambda lib: lib.nn.GRU(2, 3)(lib.ones(0, 1, 2)),
    "dropout": lambda lib: lib.nn.LSTM(2, 3, dropout=2),
    "dropout true": lambda lib: lib.nn.LSTM(2, 3, dropout=True),
    "hidden size": lambda lib: lib.nn.LSTM(2, 0),
    "hidden size's type": lambda lib: lib.nn.LSTM(2, 3.0),
    "layers": lambda lib: lib.nn.LSTM(2, 3, 0),
    "projection": lambda lib: lib.nn.LSTM(2, 3, proj_size=3),
    "projection of a GRU": lambda lib: lib.nn.GRU(2, 3, proj_size=2),
    "nonlinearity": lambda lib: lib.nn.RNN(2, 3, nonlinearity="sigmoid"),
    "cell's input": lambda lib: lib.nn.LSTMCell(2, 3)(lib.ones(1, 3)),
    "cell's dimensions": lambda lib: lib.nn.GRUCell(2, 3)(lib.ones(1, 1, 2)),
    "cell's state": lambda lib: lib.nn.GRUCell(2, 3)(lib.ones(2, 2), lib.ones(1, 3)),
    "cell's state's size": lambda lib: lib.nn.RNNCell(2, 3)(lib.ones(2, 2), lib.ones(2, 2)),
    "cell's nonlinearity": lambda lib: lib.nn.RNNCell(2, 3, nonlinearity="sigmoid")(lib.ones(2, 2)),
    "lengths grow": lambda lib: lib.nn.utils.rnn.pack_padded_sequence(lib.ones(3, 2), [1, 2]),
    "length 0": lambda lib: lib.nn.utils.rnn.pack_padded_sequence(lib.ones(3, 2), [1, 0]),
    "number of lengths": lambda lib: lib.nn.utils.rnn.pack_padded_sequence(lib.ones(3, 2), [1]),
    "2-d lengths": lambda lib: lib.nn.utils.rnn.pack_padded_sequence(lib.ones(3, 2), lib.ones(1, 2)),
    "nothing": lambda lib: lib.nn.utils.rnn.pack_padded_sequence(lib.ones(0, 2), [1, 1]),
    "total length": lambda lib: lib.nn.utils.rnn.pad_packed_sequence(
        lib.nn.utils.rnn.pack_sequence([lib.ones(3)]), total_length=2
    ),
    "no sequences": lambda lib: lib.nn.utils.rnn.pad_sequence([]),
    "a number": lambda lib: lib.nn.utils.rnn.pad_sequence(3),
    "side": lambda lib: lib.nn.utils.rnn.pad_sequence([lib.ones(2)], padding_side="top"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_refusals_are_torchs(torch, fault):
    with pytest.raises(Exception) as theirs:
        FAULTS[fault](torch)
    with pytest.raises(type(theirs.value)) as ours:
        FAULTS[fault](rushlight)
    text = str(theirs.value).split("\n")[0].replace("torch.float", "rushlight.float")
    assert text in str(ours.value).split("\n")[0].replace("torch.float", "rushlight.float")


def test_dropout_without_a_second_layer_warns():
    with pytest.warns(UserWarning, match="dropout option adds dropout after all but last recurrent layer"):
        nn.LSTM(2, 3, dropout=0.5)


# -- sequences of different lengths ----------------------------------------------------------------


def test_packing_and_padding(torch):
    found = []
    for lib in (rushlight, torch):
        utils, x = lib.nn.utils.rnn, leaf(lib, numbers(STEPS, BATCH, 2))
        results = []
        for first in (False, True):
            y = x.transpose(0, 1) if first else x
            packed = utils.pack_padded_sequence(y, lib.tensor(LENGTHS), first, enforce_sorted=False)
            padded = utils.pad_packed_sequence(packed, first, -1.5, total_length=6)
            results += [*packed, *padded, *utils.unpack_sequence(packed)]
        parts = [x[:n, i] for i, n in enumerate(LENGTHS)]
        for side in ("left", "right"):
            results += [utils.pad_sequence(parts, side == "left", 2.5, side)]
        packed = utils.pack_sequence(parts, enforce_sorted=False)
        results += [*packed, *utils.unpad_sequence(x.transpose(0, 1), lib.tensor(LENGTHS), True)]
        terms = [(t * t).sum() for t in results if t.is_floating_point()]
        sum(terms[1:], terms[0]).backward()
        found.append([*results, x.grad])
    same(*found)


def test_packed_sequences_are_tuples():
    packed = sequences.pack_sequence([rushlight.tensor([1.0, 2, 3]), rushlight.tensor([4.0])])
    data, sizes, order, inverse = packed
    assert [data.tolist(), sizes.tolist(), order, inverse] == [[1, 4, 2, 3], [2, 1, 1], None, None]
    assert packed.to(rushlight.float32) is packed
    assert packed.double().data.dtype == rushlight.float64
    assert isinstance(packed.double(), sequences.PackedSequence)
    again = pickle.loads(pickle.dumps(packed))
    assert isinstance(again, sequences.PackedSequence)
    assert again.batch_sizes.tolist() == [2, 1, 1]
    built = sequences.PackedSequence((data, sizes), sorted_indices=rushlight.tensor([1, 0]))
    assert built.unsorted_indices.tolist() == [1, 0]


def test_lengths_beyond_the_input_are_refused():
    """torch repeats the last step in silence."""
    with pytest.raises(RuntimeError, match=r"a length is 5, but the input has 3 steps(.|\n)*batch_first"):
        sequences.pack_padded_sequence(rushlight.ones(3, 2), [5, 1])


def test_no_warnings(recwarn):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nn.LSTM(INPUT, HIDDEN, 2, dropout=0.5)(rushlight.ones(STEPS, BATCH, INPUT))


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_a_seed_gives_torchs_numbers(oracle, name):
    """Weights, input, outputs and a gradient from nothing but a seed: also without torch, from its answers."""

    def run(lib):
        lib.manual_seed(0)
        module = getattr(lib.nn, name)(INPUT, HIDDEN, 2, bidirectional=True)
        packed = lib.nn.utils.rnn.pack_padded_sequence(lib.randn(STEPS, BATCH, INPUT), LENGTHS, enforce_sorted=False)
        out, last = module(packed)
        (out.data.sin().sum() + flat(last)[0].cos().sum()).backward()
        return [out.data, *flat(last), module.weight_hh_l0.grad, module.bias_hh_l0_reverse.grad]

    for ours, theirs in zip(run(rushlight), oracle(run)):
        np.testing.assert_allclose(ours.detach().numpy(), theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.origin("sizes in use")
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("batch_first", [False, True])
def test_dropout_between_large_layers_draws_torchs_numbers(oracle, kind, batch_first):
    """In the order of steps, however the loops of large layers lay out what they give."""
    x = np.random.default_rng(0).standard_normal((4, 60, 8)).astype(np.float32)

    def run(t):
        t.manual_seed(3)
        model = getattr(t.nn, kind)(8, 48, 2, dropout=0.3, batch_first=batch_first)
        given = t.tensor(x) if batch_first else t.tensor(x).transpose(0, 1)
        return model(given)[0].detach()

    np.testing.assert_allclose(run(rushlight).numpy(), oracle(run), atol=1e-6)


@pytest.mark.origin("courses")
@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_the_flat_weights_of_recurrent_layers_may_be_written(oracle, kind):
    """higher does, once it has put its tensors in the place of the parameters."""

    def run(t):
        t.manual_seed(0)
        layer, x = getattr(t.nn, kind)(3, 4, num_layers=2), t.randn(5, 2, 3)
        layer._flat_weights = [t.nn.Parameter(w.detach() * 2) for w in layer._flat_weights]
        return layer(x)[0].detach()

    assert rushlight.allclose(run(rushlight), rushlight.tensor(oracle(run)), atol=1e-6)


@pytest.mark.origin("courses")
def test_what_is_no_parameter_is_refused_as_a_flat_weight():
    layer = nn.GRU(3, 4)
    with pytest.raises(TypeError, match="weight_hh_l0"):
        layer._flat_weights = [w * 2 if i == 1 else w for i, w in enumerate(layer._flat_weights)]
    with pytest.raises(ValueError, match="shorter"):
        layer._flat_weights = layer._flat_weights[:2]


@pytest.mark.origin("programs")
@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_the_last_state_is_nobodys_view(kind):
    """Truncated backpropagation through time: programs detach it in place."""
    _, states = getattr(rushlight.nn, kind)(3, 4)(rushlight.ones(5, 2, 3))
    for state in states if kind == "LSTM" else [states]:
        assert state.grad_fn.name() == "StackBackward0"
        assert not state.detach_().requires_grad


program = Programs()


@program.found_in("torch tests")
def cells_of_no_hidden_numbers(torch):
    def of(kind):
        x, cell = torch.ones(2, 3, requires_grad=True), getattr(torch.nn, kind)(3, 0)
        found = cell(x)
        first = found[0] if kind == "LSTMCell" else found
        first.sum().backward()
        return [first.detach(), x.grad]

    return [of(kind) for kind in ("RNNCell", "GRUCell", "LSTMCell")]


@program.found_in("torch tests")
def what_recurrent_layers_give_may_be_written_to(torch):
    def gradient(kind, write):
        torch.manual_seed(0)
        layer = getattr(torch.nn, kind)(3, 4, num_layers=2).double()
        x = torch.ones(5, 2, 3, dtype=torch.float64, requires_grad=True)
        out, h = layer(x)
        write(out)
        ((out * out).sum() + h.sum()).backward()
        return x.grad

    writes = [lambda t: t, lambda t: t.add_(1), lambda t: t.relu_()]
    return [gradient(kind, write) for kind in ("GRU", "RNN") for write in writes] + [
        outcome(gradient, "LSTM", lambda t: t.add_(1))
    ]


test_program = program.test()


@pytest.mark.parametrize("enforce_sorted", [True, False])
@pytest.mark.parametrize("batch_first", [True, False])
def test_padded_sequences_lie_in_memory_as_in_torch(oracle, batch_first, enforce_sorted):
    """So that dropout after them draws the same mask."""

    def run(lib):
        lib.manual_seed(0)
        rnn = lib.nn.utils.rnn
        packed = rnn.pack_padded_sequence(lib.ones(3, 3, 2), [3, 2, 1], batch_first, enforce_sorted)
        padded = rnn.pad_packed_sequence(packed, batch_first)[0]
        parts = rnn.unpack_sequence(packed)
        strides = [padded.stride(), *(part.stride() for part in parts)]
        return [lib.nn.functional.dropout(padded, 0.5), lib.tensor(strides[0]), lib.tensor(strides[1:])]

    for ours, theirs in zip(run(rushlight), oracle(run)):
        np.testing.assert_array_equal(ours.numpy(), theirs)
