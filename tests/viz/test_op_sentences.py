"""Each formula that the step page prints for a gradient is true: evaluated on the page's numbers, it gives the gradient
that backward computes. No op, no option, and no set of inputs that require a gradient makes the page or `explain`
fail."""

import json
from functools import partial
from itertools import combinations

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn, viz
from rushlight.core.engine import reachable
from rushlight.core.node import Output
from rushlight.core.worlds import ARRAYS, sum_to_array
from rushlight.viz.page import Content, record
from tests.support.op_calls import arrays_in, fixed, leaf, put_into, varies
from tests.table.samples import NAMES, NOT_IMPLEMENTED, SAMPLES, function_of

F = nn.functional
SUBSETS = 7  # of the inputs that require a gradient


def data_of(page):
    return json.loads(page.split('id="data">')[1].split("</script>")[0])


def sentences(output, params=None):
    """All sentences of the backward steps."""
    return [a["said"] for s in data_of(viz.html(output, None, params))["steps"] for a in s["arrivals"]]


def forward(output):
    return [node["said"] for node in data_of(viz.html(output))["nodes"] if node["said"]]


def pages(name):
    """(output, the names of its leaves) for samples of the op, each with several sets of leaves."""
    function = function_of(name)
    for sample in SAMPLES[name]:
        args, kwargs = sample.make("float64")
        inside = [a for a in arrays_in([args, kwargs]) if varies(a) and a.size]
        sets = [c for r in range(1, len(inside) + 1) for c in combinations(range(len(inside)), r)]
        for chosen in sets[:SUBSETS]:
            leaves = {id(inside[i]): leaf(inside[i]) for i in chosen}
            tensor = partial(in_place_of, leaves)
            try:
                made = function(*put_into(args, tensor), **put_into(kwargs, tensor))
                outs = [t for t in arrays_in(made) if t.requires_grad and not t.is_complex()]
                output = sum((t * 1.5).sum() for t in outs)
                if outs:
                    output.backward(retain_graph=True)
            except (RuntimeError, TypeError, IndexError):  # as in test_ops.py: not in this dtype
                continue
            if outs:
                yield output, {f"leaf_{i}": leaves[id(inside[i])] for i in chosen}


def in_place_of(leaves, array):
    return leaves[id(array)] if id(array) in leaves else fixed(array)


def holds(formula, arrival, incoming, known):
    """Whether the formula, on the page's numbers, is the gradient; None if a number is not kept."""
    if isinstance(incoming, dict):
        (incoming,) = incoming.values() if len(incoming) == 1 else (None,)
    held = {name: np.asarray(value) for name, value in known.items() if value is not None}
    if incoming is None or arrival.part.dtype.kind == "c":
        return None
    part = arrival.part
    for axes in left_out(len(part.shape) - np.ndim(incoming), len(part.shape)):
        arrays = {**held, "g": np.asarray(incoming)}
        arrays = {n: np.expand_dims(a, axes) if a.shape == np.shape(incoming) else a for n, a in arrays.items()}
        try:
            found = np.asarray(eval(formula, FUNCTIONS, arrays))
            shape = np.broadcast_shapes(found.shape, part.shape)
        except NameError as error:
            return None if error.name in known else False
        except ValueError:
            continue
        found = np.broadcast_to(found, shape)
        found = found if shape == part.shape else sum_to_array(found, part.shape)
        if np.allclose(found, part, rtol=1e-6, atol=1e-9, equal_nan=True):
            return True
    return False


def left_out(missing, ndim):
    """No axes, and those that a reduction may have left out: a sum over dim 1 has g of (N,)."""
    yield ()
    if missing > 0:
        yield from combinations(range(ndim), missing)


NUMBERS = ("log", "log1p", "sqrt", "exp", "maximum", "minimum", "floor_divide")  # of Python numbers, too


def on_arrays(kernel):
    """The kernel, which a formula may call with numbers alone."""
    if not callable(kernel):
        return kernel

    def call(*args):
        numbers = all(type(a) in (int, float) for a in args)
        return kernel(*map(np.asarray, args)) if numbers else kernel(*args)

    return call


KERNELS = {name: on_arrays(kernel) for name, kernel in ARRAYS.items()}
FUNCTIONS = {**KERNELS, "pi": np.pi, **{name: getattr(np, name) for name in NUMBERS}}


@pytest.mark.parametrize("name", [name for name in NAMES if name not in NOT_IMPLEMENTED])
@pytest.mark.filterwarnings("ignore")
def test_formulas_are_the_gradients(name):
    for output, named in pages(name):
        str(viz.html(output, None, named))
        for used in [t for t in named.values() if t.grad is not None][:1]:
            str(torch.explain(output, used))
        order = reachable([output._node])
        steps = record(output)
        with torch.no_grad():
            content = Content(output, order, steps, named, "", {})
            known = {**content.formulas.held()}
            for step in steps:
                if step.node.op is None or isinstance(step.node, Output):
                    continue
                for arrival in step.arrivals:
                    formula = content.formulas.gradient_rule(step.node, arrival.slot)
                    known.update(content.formulas.held())
                    if formula is not None:
                        told = (step.node.op.name, arrival.slot, formula)
                        assert holds(formula, arrival, step.incoming, known) is not False, told


# -- sentences, with the options that change them


def labels_of(logits, labels, **options):
    """The sentence and the gradient of nll_loss."""
    rows = logits.detach().log_softmax(1).requires_grad_()
    loss = F.nll_loss(rows, labels, **options)
    (told,) = sentences(loss, {"rows": rows}) if loss.ndim == 0 else sentences(loss.sum())[1:]
    loss.sum().backward()
    return told, rows.grad


def test_a_loss_tells_of_ignored_labels_weights_and_reductions():
    torch.manual_seed(0)
    logits, labels = torch.randn(3, 4), torch.tensor([1, 0, -100])
    weight = torch.tensor([0.5, 2.0, 1.0, 1.0])
    told, grad = labels_of(logits, labels)
    assert "mean of rows at 2 labels (1 more is ignored)" in told
    assert "−g / 2" in told
    assert grad[0, 1] == -1 / 2
    told, grad = labels_of(logits, labels, weight=weight)
    assert "−g · (the weight of its class) / (the sum of these weights)" in told
    assert grad[0, 1] == -2.0 / 2.5
    told, grad = labels_of(logits, labels, reduction="sum")
    assert "minus the sum of rows" in told
    assert "gets −g, elsewhere" in told
    assert grad[0, 1] == -1
    told, grad = labels_of(logits, labels, weight=weight, reduction="none")
    assert "gets −its g · (the weight of its class), elsewhere" in told
    assert grad[0, 1] == -2.0
    told, _ = labels_of(logits[:1], labels[:1])
    assert "at 1 label: " in told
    told, _ = labels_of(torch.randn(2, 4, 5), torch.zeros(2, 5, dtype=torch.int64))
    assert "−g / 10" in told
    told, _ = labels_of(logits, torch.tensor([1, 0, 2]), reduction="sum", ignore_index=1)
    assert "(1 more is ignored)" in told
    loss = F.nll_loss(torch.zeros(2, 4, requires_grad=True), torch.tensor([3, 3]), weight=weight)
    assert "Minus the weighted mean of the numbers at the labels." in forward(loss)[0]


def by_words(g, weight, x, mean, var, eps, dims):
    """The sentence of a normalization: (h − mean of h − x̂ · mean of h · x̂) / √(var + eps)."""
    h, s = g * weight, np.sqrt(var + eps)
    x = (x - mean) / s
    return (h - h.mean(dims, keepdims=True) - x * (h * x).mean(dims, keepdims=True)) / s


@pytest.mark.parametrize("kind", ["layer", "batch", "instance", "frozen"])
def test_the_sentence_of_a_normalization_is_its_gradient(kind):
    torch.manual_seed(1)
    x = torch.randn(4, 3, 5, dtype=torch.float64, requires_grad=True)
    size = 5 if kind == "layer" else 3
    w = torch.rand(size, dtype=torch.float64, requires_grad=True)
    b = torch.rand(size, dtype=torch.float64, requires_grad=True)
    mean, var = torch.zeros(3, dtype=torch.float64), torch.ones(3, dtype=torch.float64)
    y = {
        "layer": lambda: F.layer_norm(x, (5,), w, b),
        "batch": lambda: F.batch_norm(x, mean, var, w, b, True),
        "instance": lambda: F.instance_norm(x, None, None, w, b),
        "frozen": lambda: F.batch_norm(x, mean, var, w, b, False),
    }[kind]()
    told = [text for text in sentences((y * y).sum(), {"x": x, "w": w, "b": b}) if "rule of" in text]
    assert not told
    g = 2 * y.detach().numpy()
    simple = " ".join(sentences(y.sum(), {"x": x}))
    (y * y).sum().backward()
    a, weight = x.detach().numpy(), w.detach().numpy()
    dims = {"layer": (2,), "batch": (0, 2), "instance": (2,), "frozen": ()}[kind]
    weight = weight if kind == "layer" else weight[:, None]
    if kind == "frozen":
        assert "g · weight / √(running variance + eps)" in simple
        want = g * weight / np.sqrt(1 + 1e-5)
    else:
        means = a.mean(dims, keepdims=True), a.var(dims, keepdims=True)
        want = by_words(g, weight, a, *means, 1e-5, dims)
    np.testing.assert_allclose(x.grad.numpy(), want, rtol=1e-9, atol=1e-12)


def test_the_sentences_of_attention_are_its_gradients():
    torch.manual_seed(2)
    q, k, v = (torch.randn(1, 2, n, 4, dtype=torch.float64, requires_grad=True) for n in (3, 5, 5))
    out = F.scaled_dot_product_attention(q, k, v)
    g = torch.randn(out.shape, dtype=torch.float64)
    told = " ".join(sentences((out * g).sum(), {"q": q, "k": k, "v": v}))
    assert "v gets A.T @ g" in told
    assert "q gets 0.5 · ds @ key" in told
    assert "k gets 0.5 · ds.T @ query" in told
    out.backward(g)
    with torch.no_grad():
        weights = (q @ k.mT * 0.5).softmax(-1)
        moved = g @ v.mT
        ds = weights * (moved - (weights * moved).sum(-1, keepdim=True))
        for tensor, want in ((v, weights.mT @ g), (q, 0.5 * ds @ k), (k, 0.5 * ds.mT @ q)):
            torch.testing.assert_close(tensor.grad, want)


def test_sentences_of_windows_and_tables_hold_for_all_options():
    x = torch.rand(1, 1, 6, 6, requires_grad=True)
    (told,) = [t for t in sentences(F.max_pool2d(x, 3, 1).sum(), {"x": x}) if "window" in t]
    assert "the sum of g over the windows that chose it" in told
    (told,) = [t for t in sentences(F.avg_pool2d(x, 3, 1).sum(), {"x": x}) if "window" in t]
    assert "the sum of g / 9" in told
    padded = F.avg_pool2d(x, 3, 1, padding=1, count_include_pad=False)
    (told,) = [t for t in sentences(padded.sum(), {"x": x}) if "window" in t]
    assert "the count by which" in told
    table = torch.rand(4, 2, requires_grad=True)
    rows = F.embedding(torch.tensor([0, 1, 1]), table, padding_idx=0)
    assert "unused rows and the padding row 0 get 0" in " ".join(sentences(rows.sum()))
    assert "padding" not in " ".join(sentences(F.embedding(torch.tensor([0]), table).sum()))


def test_a_bound_keeps_its_digits():
    x = torch.rand(3, requires_grad=True)
    told = " ".join(sentences(x.clamp(0.123456789, 1.0).sum(), {"x": x}))
    assert "x >= 0.123456789" in told
    assert "0.1235" not in told


def test_a_linear_layer_shows_a_bias_if_it_has_one():
    x = torch.rand(3, 2)
    free, held = nn.Linear(2, 1, bias=False), nn.Linear(2, 1)
    held.bias.requires_grad_(False)
    for layer, end in ((free, "x @ weight.T"), (held, "x @ weight.T + bias")):
        nodes = data_of(viz.html(layer(x).sum(), None, layer))["nodes"]
        assert end in [node["forward"] for node in nodes]
    assert not any("plus the bias" in text for text in forward(free(x).sum()))


def test_a_frozen_bias_stands_in_the_formula():
    x, weight, bias = torch.rand(1, 1, 5, 5), torch.rand(1, 1, 3, 3, requires_grad=True), torch.ones(1)
    layer = nn.Conv2d(1, 1, 3)
    layer.bias.requires_grad_(False)
    free = nn.Conv2d(1, 1, 3, bias=False)
    outputs = [
        (F.conv2d(x, weight, bias).sum(), None, "convolution(x, weight, bias)"),
        (F.conv2d(x, weight).sum(), None, "convolution(x, weight)"),
        (F.conv2d(x, weight, bias=bias).sum(), None, "convolution(x, weight, …)"),
        (layer(x).sum(), layer, "convolution(x, weight, bias)"),
        (free(x).sum(), free, "convolution(x, weight)"),
    ]
    for output, model, formula in outputs:
        nodes = data_of(viz.html(output, None, model or {"weight": weight}))["nodes"]
        assert formula in [node["forward"] for node in nodes]


def test_weights_that_an_embedding_and_a_linear_layer_share():
    table, head = nn.Embedding(4, 3), nn.Linear(3, 4, bias=False)
    head.weight = table.weight
    model = nn.Sequential(table, head)
    assert "@ model[0].weight.T" in str(viz.html(model(torch.tensor([0, 1])).sum(), None, model))


def test_a_closed_lstm_layer_has_reasons():
    lstm = nn.LSTM(3, 2)
    told = " ".join(sentences(lstm(torch.rand(4, 1, 3))[0].sum(), lstm))
    assert "weight_hh_l0 is used again in each step" in told
    assert "rule of" not in told


def softmax_by_words(x, g):
    out = x.softmax(1)
    return out * (g - (g * out).sum(1, keepdim=True))


def largest_by_words(x, g):
    chosen = x == x.amax(1, keepdim=True)
    return g[:, None] * chosen / chosen.sum(1, keepdim=True)


BY_WORDS = {  # what a sentence says, as a program
    "softmax": (lambda x: x.softmax(1), "x gets out · (g − (sum of g · out))", softmax_by_words),
    "log_softmax": (
        lambda x: x.log_softmax(1),
        "g − softmax(x) · (sum of g)",
        lambda x, g: g - x.softmax(1) * g.sum(1, keepdim=True),
    ),
    "var": (
        lambda x: x.var(1),
        "g · 2 · (x − mean) / (n − 1)",
        lambda x, g: g[:, None] * 2 * (x - x.mean(1, keepdim=True)) / (x.shape[1] - 1),
    ),
    "norm": (lambda x: x.norm(dim=1), "g · x / out", lambda x, g: g[:, None] * x / x.norm(dim=1, keepdim=True)),
    "norm1": (lambda x: torch.linalg.vector_norm(x, 1, dim=1), "g · sign(x)", lambda x, g: g[:, None] * x.sign()),
    "amax": (lambda x: x.amax(1), "numbers that tie share it evenly", largest_by_words),
    "prod": (
        lambda x: x.prod(1),
        "g times the product of the others",
        lambda x, g: g[:, None] * x.prod(1, keepdim=True) / x,
    ),
    "mean": (lambda x: x.mean(1), "each gets g / 4", lambda x, g: g[:, None].expand(3, 4) / 4),
}


@pytest.mark.parametrize("name", BY_WORDS)
def test_what_a_sentence_says_is_the_gradient(name):
    torch.manual_seed(3)
    function, words, gradient = BY_WORDS[name]
    x = torch.randint(1, 5, (3, 4)).double().requires_grad_()  # with equal numbers
    out = function(x)
    g = torch.randn(out.shape, dtype=torch.float64)
    data = data_of(viz.html(out, None, {"x": x}, gradient=g))
    told = " ".join(a["said"] for s in data["steps"] for a in s["arrivals"])
    assert words in told, told
    out.backward(g)
    torch.testing.assert_close(x.grad, gradient(x.detach(), g))
