"""quantize_dynamic beside torch's: integers, scales, outputs, state dicts, and which modules are replaced."""

from __future__ import annotations

import copy
import io

import numpy as np
import pytest

import rushlight
from rushlight.ao.nn.quantized import dynamic
from rushlight.ao.quantization import (
    MinMaxObserver,
    QConfig,
    default_dynamic_qconfig,
    default_dynamic_quant_observer,
    per_channel_dynamic_qconfig,
    quantize_dynamic,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore:torch.ao.quantization is deprecated"),
    pytest.mark.filterwarnings("ignore:Please use quant_min and quant_max"),
]
QCONFIGS = ["default_dynamic_qconfig", "per_channel_dynamic_qconfig"]


def filled(torch, module, seed=0):
    """The module with the same numbers in each library."""
    rng = np.random.default_rng(seed)
    for p in module.parameters():
        p.data = torch.from_numpy((rng.standard_normal(tuple(p.shape)) / 4).astype(np.float32))
    return module


def inputs(torch, *shape, seed=1, scale=1.0, shift=0.0):
    x = np.random.default_rng(seed).standard_normal(shape) * scale + shift
    return torch.from_numpy(x.astype(np.float32))


def close(found, expected):
    np.testing.assert_allclose(np.asarray(found.detach()), expected, rtol=1e-5, atol=1e-5 * abs(expected).max())


# -- linear ----------------------------------------------------------------------------------------


def linear(torch, qconfig, shape):
    """(outputs, integers, scales) of a quantized linear layer."""
    rows, k, n = shape
    model = filled(torch, torch.nn.Sequential(torch.nn.Linear(k, n)))
    spec = {torch.nn.Linear: getattr(torch.ao.quantization, qconfig)}
    model = torch.ao.quantization.quantize_dynamic(model, spec)
    weight = model[0].weight()
    one = weight.qscheme() == torch.per_tensor_affine
    scales = torch.tensor([weight.q_scale()]) if one else weight.q_per_channel_scales().float()
    return model(inputs(torch, rows, k)), weight.int_repr(), scales


@pytest.mark.parametrize("qconfig", QCONFIGS)
@pytest.mark.parametrize("shape", [(1, 20, 9), (5, 33, 40), (2, 130, 1)])
def test_a_linear_layer_has_torchs_integers_scales_and_outputs(oracle, qconfig, shape):
    expected = oracle(lambda torch: linear(torch, qconfig, shape))
    out, values, scales = linear(rushlight, qconfig, shape)
    assert (values.numpy() == expected[1]).all()
    assert (scales.numpy() == expected[2]).all()
    close(out, expected[0])


RANGES = [(1, 0), (1, 3), (1, -3), (1e-5, 0), (1e-5, 1e-4), (1e-5, -1e-4), (0, 0), (300, 0), (1e-42, 0)]


@pytest.mark.parametrize(("scale", "shift"), RANGES)
def test_activations_get_torchs_scales_and_zero_points(oracle, scale, shift):
    """The outputs beside an input of any range; a wrong zero point shows in all of them."""

    def run(torch):
        model = filled(torch, torch.nn.Sequential(torch.nn.Linear(12, 5, bias=False)))
        return torch.ao.quantization.quantize_dynamic(model)(inputs(torch, 4, 12, scale=scale, shift=shift))

    close(run(rushlight), oracle(run))


def test_inputs_of_any_shape(oracle):
    def run(torch):
        model = torch.ao.quantization.quantize_dynamic(filled(torch, torch.nn.Sequential(torch.nn.Linear(6, 3))))
        return [model(inputs(torch, *shape)) for shape in ((1, 6), (2, 3, 6), (0, 6))]

    for found, expected in zip(run(rushlight), oracle(run)):
        assert found.shape == expected.shape
        if expected.size:
            close(found, expected)


def test_a_weight_around_another_number_than_zero(oracle):
    def run(torch):
        quantization = torch.ao.quantization
        observer = quantization.MinMaxObserver.with_args(dtype=torch.qint8, qscheme=torch.per_tensor_affine)
        model = filled(torch, torch.nn.Sequential(torch.nn.Linear(6, 3)))
        model[0].weight.data = model[0].weight.data + 1
        qconfig = quantization.QConfig(quantization.default_dynamic_quant_observer, observer)
        model = quantization.quantize_dynamic(model, {torch.nn.Linear: qconfig})
        return model(inputs(torch, 4, 6)), model[0].weight().int_repr(), model[0].weight().q_zero_point()

    found, expected = run(rushlight), oracle(run)
    assert (found[1].numpy() == expected[1]).all()
    assert found[2] == expected[2] != 0
    close(found[0], expected[0])


def test_errors_of_a_linear_layer():
    model = quantize_dynamic(rushlight.nn.Sequential(rushlight.nn.Linear(4, 2)))
    with pytest.raises(RuntimeError, match="must be in_features, 4"):
        model(rushlight.ones(3, 5))
    with pytest.raises(RuntimeError, match="takes float32"):
        model(rushlight.ones(3, 4, dtype=rushlight.float64))
    with pytest.raises(RuntimeError, match="takes float32"):
        model(rushlight.ones(3, 4, device="meta"))
    with pytest.raises(NotImplementedError, match="float16"):
        quantize_dynamic(rushlight.nn.Sequential(rushlight.nn.Linear(4, 2)), dtype=rushlight.float16)


def test_backward_through_a_quantized_module_is_an_error():
    nn = rushlight.nn
    model = quantize_dynamic(nn.ModuleDict({"a": nn.Linear(4, 2), "b": nn.LSTM(4, 2), "c": nn.GRUCell(4, 2)}))
    x = rushlight.ones(3, 4, requires_grad=True)
    for out in (model["a"](x), model["b"](x.unsqueeze(0))[0], model["c"](x)):
        assert out.requires_grad
        with pytest.raises(NotImplementedError, match="no gradients"):
            out.sum().backward()
    with rushlight.no_grad():
        assert not model["a"](x).requires_grad
    assert not model["a"](x.detach()).requires_grad
    with pytest.raises(RuntimeError, match="outside vmap"):
        rushlight.func.vmap(model["a"])(rushlight.ones(2, 3, 4))


# -- recurrent layers ------------------------------------------------------------------------------

LAYERS = [
    ("LSTM", {}),
    ("GRU", {}),
    ("LSTM", {"num_layers": 2, "bidirectional": True}),
    ("GRU", {"num_layers": 2, "batch_first": True}),
]


def recurrent(torch, kind, settings, packed=False):
    nn = torch.nn
    model = filled(torch, nn.Sequential(getattr(nn, kind)(7, 12, **settings)))
    layer = torch.ao.quantization.quantize_dynamic(model, {nn.LSTM, nn.GRU})[0]
    x = inputs(torch, 5, 3, 7)
    if packed:
        x = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([3, 5, 2]), enforce_sorted=False)
    out, states = layer(x)
    return [out.data, *(states if isinstance(states, tuple) else [states])]


@pytest.mark.parametrize(("kind", "settings"), LAYERS)
def test_a_recurrent_layer_computes_as_torchs(oracle, kind, settings):
    expected = oracle(lambda torch: recurrent(torch, kind, settings))
    for found, each in zip(recurrent(rushlight, kind, settings), expected, strict=True):
        close(found, each)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_packed_sequences(oracle, kind):
    expected = oracle(lambda torch: recurrent(torch, kind, {}, packed=True))
    for found, each in zip(recurrent(rushlight, kind, {}, packed=True), expected, strict=True):
        close(found, each)


@pytest.mark.parametrize("kind", ["LSTMCell", "GRUCell", "RNNCell"])
def test_a_cell_computes_as_torchs(oracle, kind):
    def run(torch):
        model = filled(torch, torch.nn.Sequential(getattr(torch.nn, kind)(7, 12)))
        cell = torch.ao.quantization.quantize_dynamic(model)[0]
        states = [inputs(torch, 3, 12, seed=seed) for seed in (5, 6)]
        with_states = cell(inputs(torch, 3, 7), tuple(states) if kind == "LSTMCell" else states[0])
        return [*(with_states if kind == "LSTMCell" else [with_states]), cell(inputs(torch, 3, 7))[0]]

    for found, each in zip(run(rushlight), oracle(run), strict=True):
        close(found, each)


# -- embeddings ------------------------------------------------------------------------------------


def test_an_embedding_has_torchs_integers_and_rows(oracle):
    def run(torch):
        model = filled(torch, torch.nn.Sequential(torch.nn.Embedding(20, 9)))
        model = torch.ao.quantization.quantize_dynamic(model, {torch.nn.Embedding}, dtype=torch.quint8)
        weight = model[0].weight()
        return weight.int_repr(), weight.q_per_channel_scales().clone(), model(torch.arange(20).reshape(4, 5))

    values, scales, rows = run(rushlight)
    expected = oracle(run)
    assert (values.numpy() == expected[0]).all()
    assert (scales.numpy() == expected[1]).all()
    close(rows, expected[2])


def test_a_bag_of_rows(oracle):
    def run(torch):
        model = filled(torch, torch.nn.ModuleDict({"bag": torch.nn.EmbeddingBag(20, 9, mode="sum")}))
        model = torch.ao.quantization.quantize_dynamic(model, dtype=torch.quint8)
        return model["bag"](torch.arange(20), torch.tensor([0, 3, 11]))

    close(run(rushlight), oracle(run))


def test_an_embedding_of_signed_integers_is_an_error():
    model = rushlight.nn.Sequential(rushlight.nn.Embedding(3, 2))
    with pytest.raises(AssertionError, match="float_qparams_weight_only_qconfig"):
        quantize_dynamic(model, {rushlight.nn.Embedding}, dtype=rushlight.qint8)


# -- which modules, and their state ----------------------------------------------------------------


def names(model):
    return [m._get_name() for m in model.modules() if "Packed" not in type(m).__name__]


def kinds(torch):
    """The classes of the modules of a model after several specifications."""
    nn = torch.nn
    quantize = torch.ao.quantization.quantize_dynamic

    def model():
        return nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.Linear(4, 4), nn.ReLU()), nn.MultiheadAttention(4, 2))

    q = torch.ao.quantization.default_dynamic_qconfig
    specs = [None, {nn.Linear}, {nn.LSTM}, {"0": q}, {"1": q}, {nn.Sequential: q, "1": None}, {nn.Linear: q, "0": None}]
    found = [names(quantize(model(), spec)) for spec in specs]
    return [*found, names(quantize(nn.Linear(2, 2)))]


def test_torchs_modules_are_replaced(oracle):
    assert kinds(rushlight) == oracle(kinds)


def test_the_text_of_a_model_is_torchs(oracle):
    def text(torch):
        nn = torch.nn
        model = nn.ModuleList([nn.Linear(3, 4), nn.LSTM(3, 4, 2), nn.GRU(3, 4, batch_first=True), nn.LSTMCell(3, 4)])
        tables = torch.ao.quantization.quantize_dynamic(nn.ModuleList([nn.Embedding(5, 2)]), dtype=torch.quint8)
        return [repr(torch.ao.quantization.quantize_dynamic(model)), repr(tables)]

    assert text(rushlight) == oracle(text)


def test_the_model_itself_stays_unless_inplace():
    model = rushlight.nn.Sequential(rushlight.nn.Linear(3, 4))
    quantize_dynamic(model)
    assert type(model[0]) is rushlight.nn.Linear
    assert not hasattr(model[0], "qconfig")
    assert quantize_dynamic(model, inplace=True) is model
    assert type(model[0]) is dynamic.Linear


def test_hooks_stay():
    model, seen = rushlight.nn.Sequential(rushlight.nn.Linear(3, 4)), []
    model[0].register_forward_pre_hook(lambda module, args: seen.append("before"))
    model[0].register_forward_hook(lambda module, args, out: seen.append("after"))
    quantize_dynamic(model)(rushlight.ones(1, 3))
    assert seen == ["before", "after"]


def test_the_state_has_torchs_keys(oracle):
    def state(torch):
        model = torch.ao.quantization.quantize_dynamic(filled(torch, torch.nn.Sequential(torch.nn.Linear(3, 2))))
        state = model.state_dict()
        weight, bias = state["0._packed_params._packed_params"]
        return list(state), str(state["0._packed_params.dtype"]), weight.int_repr(), bias, state["0.scale"]

    found, expected = state(rushlight), oracle(state)
    assert list(found[:2]) == expected[:2]
    for ours, theirs in zip(found[2:], expected[2:]):
        assert (ours.numpy() == theirs).all()


@pytest.mark.parametrize("qconfig", [default_dynamic_qconfig, per_channel_dynamic_qconfig])
def test_a_state_loads_into_another_model(qconfig):
    def model():
        nn = rushlight.nn
        layers = nn.ModuleDict({"a": nn.Linear(3, 4), "b": nn.LSTM(4, 5), "c": nn.GRUCell(3, 4)})
        return quantize_dynamic(layers, dict.fromkeys((nn.Linear, nn.LSTM, nn.GRUCell), qconfig))

    one, other, x = model(), model(), rushlight.ones(2, 3)
    other.load_state_dict(one.state_dict())
    assert (one["a"](x) == other["a"](x)).all()
    assert (one["b"](one["a"](x))[0] == other["b"](other["a"](x))[0]).all()
    assert (one["c"](x) == other["c"](x)).all()
    assert one["a"].weight().qscheme() is other["a"].weight().qscheme()


def test_models_are_copied_and_saved():
    model, x = quantize_dynamic(rushlight.nn.Sequential(rushlight.nn.Linear(3, 4))), rushlight.ones(2, 3)
    file = io.BytesIO()
    rushlight.save(model, file)
    file.seek(0)
    loaded = rushlight.load(file, weights_only=False)
    assert (loaded(x) == model(x)).all()
    assert (copy.deepcopy(model)(x) == model(x)).all()


@pytest.mark.filterwarnings("ignore:rushlight.compile")
def test_a_compiled_function_may_contain_quantized_modules():
    model = quantize_dynamic(rushlight.nn.Sequential(rushlight.nn.Linear(8, 8), rushlight.nn.ReLU()))
    compiled = rushlight.compile(lambda x: model(x * 2) + 1)
    for seed in range(3):
        x = inputs(rushlight, 4, 8, seed=seed)
        np.testing.assert_allclose(compiled(x).numpy(), (model(x * 2) + 1).numpy(), rtol=1e-5)


# -- observers and quantized tensors ---------------------------------------------------------------

OBSERVERS = [
    ("MinMaxObserver", {"dtype": "qint8", "qscheme": "per_tensor_symmetric"}),
    ("MinMaxObserver", {"dtype": "quint8", "qscheme": "per_tensor_affine"}),
    ("MinMaxObserver", {"dtype": "quint8", "qscheme": "per_tensor_symmetric"}),
    ("MinMaxObserver", {"dtype": "qint8", "qscheme": "per_tensor_symmetric", "reduce_range": True}),
    ("MinMaxObserver", {"dtype": "qint8", "qscheme": "per_tensor_affine", "quant_min": -100, "quant_max": 50}),
    ("PerChannelMinMaxObserver", {"dtype": "qint8", "qscheme": "per_channel_symmetric"}),
    ("PerChannelMinMaxObserver", {"dtype": "quint8", "qscheme": "per_channel_affine", "ch_axis": 1}),
    ("PerChannelMinMaxObserver", {"dtype": "quint8", "qscheme": "per_channel_affine_float_qparams"}),
]


@pytest.mark.parametrize(("name", "settings"), OBSERVERS)
def test_observers_choose_torchs_scales(oracle, name, settings):
    def run(torch):
        named = {k: getattr(torch, v) if isinstance(v, str) else v for k, v in settings.items()}
        observer = getattr(torch.ao.quantization, name)(**named)
        observer(inputs(torch, 4, 5)), observer(inputs(torch, 4, 5, seed=2, shift=1))
        return list(observer.calculate_qparams())

    for found, expected in zip(run(rushlight), oracle(run), strict=True):
        assert (found.numpy() == expected).all()


@pytest.mark.parametrize("dtype", ["qint8", "quint8"])
def test_quantized_tensors(oracle, dtype):
    def run(torch):
        x, kind = inputs(torch, 3, 4, scale=5), getattr(torch, dtype)
        one = torch.quantize_per_tensor(x, 0.05, 10, kind)
        scales, zeros = torch.tensor([0.1, 0.2, 0.3, 0.01]), torch.tensor([0, 5, 9, 1])
        many = torch.quantize_per_channel(x, scales, zeros, 1, kind)
        real = torch.quantize_per_channel(x, scales, zeros.float() + 0.25, 1, kind) if dtype == "quint8" else many
        return [t for q in (one, many, real) for t in (q.int_repr(), q.dequantize())] + [
            one.q_scale(), one.q_zero_point(), many.q_per_channel_axis(), str(many.qscheme()),
        ]  # fmt: skip

    for found, expected in zip(run(rushlight), oracle(run), strict=True):
        if isinstance(found, rushlight.Tensor):
            np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)
        else:
            assert found == expected


def test_an_observer_that_has_seen_nothing():
    with pytest.raises(RuntimeError, match="has seen no tensor"):
        MinMaxObserver(dtype=rushlight.qint8).calculate_qparams()
    assert QConfig(default_dynamic_quant_observer, None).weight is None


# -- files -----------------------------------------------------------------------------------------


def saved(torch, thing):
    """A file with the object, at its beginning."""
    file = io.BytesIO()
    torch.save(thing, file)
    file.seek(0)
    return file


@pytest.mark.parametrize("qconfig", QCONFIGS)
@pytest.mark.parametrize("weights_only", [True, False])
def test_states_are_exchanged_with_torch(torch, qconfig, weights_only):
    """A state of each library loads in the other, and the model computes the same."""

    def model(lib, seed):
        built = filled(lib, lib.nn.Sequential(lib.nn.Linear(20, 9), lib.nn.ReLU(), lib.nn.Linear(9, 4)), seed)
        return lib.ao.quantization.quantize_dynamic(built, {lib.nn.Linear: getattr(lib.ao.quantization, qconfig)})

    for one, other in ((torch, rushlight), (rushlight, torch)):
        first, second = model(one, seed=1), model(other, seed=2)
        second.load_state_dict(other.load(saved(one, first.state_dict()), weights_only=weights_only))
        found, expected = second(inputs(other, 5, 20)), first(inputs(one, 5, 20))
        close(found, np.asarray(expected.detach()))


def test_states_of_embeddings_are_exchanged_with_torch(torch):
    def model(lib, seed):
        built = filled(lib, lib.nn.Sequential(lib.nn.Embedding(20, 9)), seed)
        return lib.ao.quantization.quantize_dynamic(built, dtype=lib.quint8)

    for one, other in ((torch, rushlight), (rushlight, torch)):
        first, second = model(one, seed=1), model(other, seed=2)
        second.load_state_dict(other.load(saved(one, first.state_dict())))
        close(second(other.arange(20)), np.asarray(first(one.arange(20))))


@pytest.mark.parametrize("axis", [-1, 2, "0"])
def test_a_file_with_a_wrong_axis_is_refused(axis):
    x = rushlight.ones(3, 3)
    q = rushlight.quantize_per_channel(x, rushlight.ones(3), rushlight.zeros(3), 0, rushlight.quint8)
    q._axis = axis
    with pytest.raises(Exception, match="scales along one of its dimensions"):
        rushlight.load(saved(rushlight, {"w": q}))


def test_a_file_with_too_few_scales_is_refused():
    q = rushlight.quantize_per_channel(rushlight.ones(3, 3), rushlight.ones(3), rushlight.zeros(3), 0, rushlight.quint8)
    q._scales = q._scales[:2]
    with pytest.raises(Exception, match="a scale and a zero point for each index"):
        rushlight.load(saved(rushlight, {"w": q}))
