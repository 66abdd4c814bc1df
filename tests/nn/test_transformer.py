"""MultiheadAttention and the transformer's modules, against torch's with the same weights."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import rushlight
from rushlight import nn


def numbers(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape)


def pair(torch, name, *args, **kwargs):
    """The module in both libraries, in double precision, with torch's numbers in both."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = getattr(torch.nn, name)(*args, **kwargs, dtype=torch.float64)
        ours = getattr(nn, name)(*args, **kwargs, dtype=rushlight.float64)
    state = {k: rushlight.tensor(v.numpy()) for k, v in theirs.state_dict().items()}
    assert list(ours.state_dict()) == list(state)
    ours.load_state_dict(state)
    theirs.load_state_dict({k: torch.tensor(v.numpy()) for k, v in ours.state_dict().items()})
    return ours, theirs


def tensors(lib, values):
    """Arrays as leaves of one of the libraries; integers and booleans ask for no gradient."""
    return [
        None if v is None else lib.tensor(v, requires_grad=v.dtype.kind == "f" and not np.isinf(v).any())
        for v in values
    ]


def both(torch, modules, arrays, **kwargs):
    """Outputs and all gradients of the two modules on the same arrays are equal."""
    found = []
    for lib, module in zip((rushlight, torch), modules):
        inputs = tensors(lib, arrays)
        masks = {k: lib.tensor(v) if isinstance(v, np.ndarray) else v for k, v in kwargs.items()}
        given = dict(zip(("query", "key", "value"), inputs)) if len(arrays) == 3 else {}
        out = module(**given, **masks) if given else module(*inputs, **masks)
        outs = [o for o in (out if isinstance(out, tuple) else (out,)) if o is not None]
        weighted = [(o * lib.tensor(numbers(*o.shape))).sum() for o in outs]
        sum(weighted[1:], weighted[0]).backward()
        grads = [t.grad for t in inputs if t is not None and t.requires_grad]
        grads += [p.grad for p in module.parameters()]
        found.append([t.detach().numpy() for t in (*outs, *grads)])
    assert len(found[0]) == len(found[1]) > 1
    for ours, theirs in zip(*found):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


HIDE = np.array([[False, False, True, True], [False, False, False, False], [False, True, False, True]])
CAUSAL = np.triu(np.full((4, 4), -np.inf), 1)
MASK = numbers(3, 4) > 1


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"bias": False, "batch_first": True},
        {"add_bias_kv": True},
        {"add_zero_attn": True, "batch_first": True},
        {"kdim": 5, "vdim": 7, "add_bias_kv": True, "add_zero_attn": True},
    ],
    ids=str,
)
def test_attention_to_others(torch, settings, need_weights):
    modules = pair(torch, "MultiheadAttention", 8, 2, **settings)
    q, k, v = numbers(3, 3, 8), numbers(4, 3, settings.get("kdim", 8)), numbers(4, 3, settings.get("vdim", 8))
    if settings.get("batch_first"):
        q, k, v = (a.swapaxes(0, 1) for a in (q, k, v))
    both(torch, modules, [q, k, v], need_weights=need_weights)
    both(torch, modules, [q, k, v], need_weights=need_weights, key_padding_mask=HIDE, attn_mask=MASK)
    both(torch, modules, [q, k, v], need_weights=need_weights, attn_mask=numbers(6, 3, 4), average_attn_weights=False)
    q, k, v = (a[0] if settings.get("batch_first") else a[:, 0] for a in (q, k, v))
    both(torch, modules, [q, k, v], need_weights=need_weights, key_padding_mask=HIDE[0])
    both(torch, modules, [q, k, v], need_weights=need_weights, attn_mask=numbers(2, 3, 4))


@pytest.mark.parametrize("same", ["all", "key and value"])
def test_attention_to_itself(torch, same):
    """One tensor given two or three times gets all its gradients."""
    modules = pair(torch, "MultiheadAttention", 8, 4)

    def run(lib, module):
        x, y = lib.tensor(numbers(4, 3, 8), requires_grad=True), lib.tensor(numbers(5, 3, 8), requires_grad=True)
        out, weights = module(x, x, x) if same == "all" else module(x, y, y)
        (out.sin().sum() + weights.cos().sum()).backward()
        grads = (x.grad,) if same == "all" else (x.grad, y.grad)
        return [t.detach().numpy() for t in (out, weights, *grads, *(p.grad for p in module.parameters()))]

    for ours, theirs in zip(run(rushlight, modules[0]), run(torch, modules[1])):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def test_attention_where_a_query_may_look_nowhere(torch):
    """0 without weights, as torch's; nan with them."""
    modules = pair(torch, "MultiheadAttention", 4, 1, bias=False)
    for lib, module in zip((rushlight, torch), modules):
        x = lib.tensor(numbers(2, 1, 4))
        mask = lib.tensor([[True, True], [False, True]])
        assert (module(x, x, x, attn_mask=mask, need_weights=False)[0][0] == 0).all()
        assert module(x, x, x, attn_mask=mask)[0][0].isnan().all()


LAYER = {"d_model": 8, "nhead": 2, "dim_feedforward": 12, "dropout": 0.0}
KINDS = [{}, {"norm_first": True}, {"activation": "gelu", "bias": False, "batch_first": True}]


@pytest.mark.parametrize("settings", KINDS, ids=str)
def test_layers(torch, settings):
    turned = settings.get("batch_first")
    x, y = ((3, 4, 8), (3, 5, 8)) if turned else ((4, 3, 8), (5, 3, 8))
    modules = pair(torch, "TransformerEncoderLayer", **LAYER, **settings)
    both(torch, modules, [numbers(*x)])
    both(torch, modules, [numbers(*x)], src_mask=CAUSAL, is_causal=True)
    both(torch, modules, [numbers(*x)], src_mask=numbers(4, 4), src_key_padding_mask=np.where(HIDE, -np.inf, 0.0))
    both(torch, modules, [numbers(4, 8)])
    modules = pair(torch, "TransformerDecoderLayer", **LAYER, **settings)
    both(torch, modules, [numbers(*x), numbers(*y)], tgt_mask=CAUSAL, tgt_is_causal=True)
    both(torch, modules, [numbers(*x), numbers(*y)], tgt_key_padding_mask=HIDE, memory_mask=numbers(4, 5) > 1)


@pytest.mark.parametrize("settings", KINDS, ids=str)
def test_transformer(torch, settings):
    modules = pair(torch, "Transformer", **LAYER, num_encoder_layers=2, num_decoder_layers=2, **settings)
    src, tgt = numbers(5, 3, 8), numbers(4, 3, 8)
    if settings.get("batch_first"):
        src, tgt = src.swapaxes(0, 1), tgt.swapaxes(0, 1)
    both(torch, modules, [src, tgt], tgt_mask=CAUSAL)
    both(torch, modules, [src, tgt], tgt_mask=numbers(4, 4), tgt_key_padding_mask=np.where(HIDE, -np.inf, 0.0))
    assert repr(modules[0]) == repr(modules[1]).replace("torch.", "rushlight.")


def test_padding_is_zero_in_evaluation(torch):
    """torch leaves padding out with nested tensors, and gives 0 there; so do we, where torch would."""
    for hidden in (HIDE[:2], HIDE):
        results = []
        layers = pair(torch, "TransformerEncoderLayer", **LAYER, batch_first=True)
        for lib, layer in zip((rushlight, torch), layers):
            encoder = lib.nn.TransformerEncoder(layer, 2).eval()
            with lib.no_grad():
                out = encoder(lib.tensor(numbers(len(hidden), 4, 8)), src_key_padding_mask=lib.tensor(hidden))
            results.append(out.numpy())
        np.testing.assert_allclose(*results, rtol=1e-9, atol=1e-12)
        assert (results[0][hidden] == 0).all() == (len(hidden) == 2)  # the third sequence has padding inside


def test_first_numbers_are_torchs(torch):
    for name, args in {
        "MultiheadAttention": (8, 2, 0.0, True, True),
        "TransformerDecoderLayer": (8, 2, 12),
        "Transformer": (8, 2, 1, 1, 12),
    }.items():
        torch.manual_seed(3), rushlight.manual_seed(3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs, ours = getattr(torch.nn, name)(*args), getattr(nn, name)(*args)
        for a, b in zip(ours.parameters(), theirs.parameters()):
            np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-5, atol=1e-7)


def test_dropout_is_torchs(torch):
    torch.manual_seed(5), rushlight.manual_seed(5)
    theirs, ours = (lib.nn.TransformerEncoderLayer(8, 2, 12, 0.5) for lib in (torch, rushlight))
    x = numbers(4, 3, 8).astype(np.float32)
    a, b = ours(rushlight.tensor(x)).detach().numpy(), theirs(torch.tensor(x)).detach().numpy()
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


FAULTS = {
    "heads do not divide": lambda lib: lib.nn.MultiheadAttention(5, 2),
    "no heads": lambda lib: lib.nn.MultiheadAttention(4, 0),
    "4-d query": lambda lib: lib.nn.MultiheadAttention(4, 2)(*[lib.ones(1, 1, 1, 4)] * 3),
    "2-d key": lambda lib: lib.nn.MultiheadAttention(4, 2)(lib.ones(1, 1, 4), lib.ones(1, 4), lib.ones(1, 4)),
    "width": lambda lib: lib.nn.MultiheadAttention(4, 2)(*[lib.ones(2, 1, 6)] * 3),
    "lengths": lambda lib: lib.nn.MultiheadAttention(4, 2)(lib.ones(2, 1, 4), lib.ones(2, 1, 4), lib.ones(3, 1, 4)),
    "mask's shape": lambda lib: lib.nn.MultiheadAttention(4, 2)(*[lib.ones(2, 1, 4)] * 3, attn_mask=lib.ones(3, 3)),
    "integer mask": lambda lib: lib.nn.MultiheadAttention(4, 2)(
        *[lib.ones(2, 1, 4)] * 3, attn_mask=lib.ones(2, 2, dtype=lib.int64)
    ),
    "padding's shape": lambda lib: lib.nn.MultiheadAttention(4, 2)(
        *[lib.ones(2, 1, 4)] * 3, key_padding_mask=lib.ones(3, 2)
    ),
    "causal without a mask": lambda lib: lib.nn.MultiheadAttention(4, 2)(*[lib.ones(2, 1, 4)] * 3, is_causal=True),
    "activation": lambda lib: lib.nn.TransformerEncoderLayer(4, 2, activation="tanh"),
    "batches differ": lambda lib: lib.nn.Transformer(4, 2, 1, 1)(lib.ones(2, 3, 4), lib.ones(2, 2, 4)),
    "features differ": lambda lib: lib.nn.Transformer(4, 2, 1, 1)(lib.ones(2, 3, 6), lib.ones(2, 3, 6)),
}


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("fault", FAULTS)
def test_refusals_are_torchs(torch, fault):
    with pytest.raises(Exception) as theirs:
        FAULTS[fault](torch)
    with pytest.raises(type(theirs.value)) as ours:
        FAULTS[fault](rushlight)
    assert str(theirs.value).split("\n")[0] in str(ours.value).split("\n")[0]


def test_a_padding_mask_of_another_kind_warns():
    layer = nn.MultiheadAttention(4, 2)
    with pytest.warns(UserWarning, match="mismatched key_padding_mask and attn_mask"):
        layer(
            *[rushlight.ones(2, 1, 4)] * 3,
            key_padding_mask=rushlight.tensor([[False, True]]),
            attn_mask=rushlight.zeros(2, 2),
        )


def test_reasons_against_nested_tensors(torch):
    for settings in ({}, {"batch_first": True, "norm_first": True}, {"batch_first": True, "bias": False}):
        texts = []
        for lib in (rushlight, torch):
            layer = lib.nn.TransformerEncoderLayer(4, 2, **settings)
            with pytest.warns(UserWarning, match="enable_nested_tensor is True, but") as caught:
                lib.nn.TransformerEncoder(layer, 1)
            texts.append(str(caught[0].message))
        assert texts[0] == texts[1]


def test_attention_kernels_are_accepted():
    from rushlight.nn.attention import SDPBackend, sdpa_kernel

    with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION], set_priority=True):
        nn.MultiheadAttention(4, 2)(*[rushlight.ones(2, 1, 4)] * 3)
    with pytest.raises(AssertionError, match="Backend must be an instance of SDPBackend"), sdpa_kernel("math"):
        pass


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_a_seed_gives_torchs_numbers(oracle):
    """Weights, input, outputs and a gradient from nothing but a seed: also without torch, from its answers."""

    def run(lib):
        lib.manual_seed(0)
        model = lib.nn.Transformer(8, 2, 1, 1, 12, 0.0)
        src, tgt = lib.randn(5, 2, 8), lib.randn(4, 2, 8)
        mask = lib.nn.Transformer.generate_square_subsequent_mask(4)
        out = model(src, tgt, tgt_mask=mask, src_key_padding_mask=lib.tensor([[False] * 5, [False] * 3 + [True] * 2]))
        out.sin().sum().backward()
        attention = model.decoder.layers[0].multihead_attn
        return [
            out,
            *attention(tgt, src, src),
            attention.out_proj.weight.grad,
            model.encoder.layers[0].linear1.bias.grad,
        ]

    for ours, theirs in zip(run(rushlight), oracle(run)):
        np.testing.assert_allclose(ours.detach().numpy(), theirs, rtol=1e-3, atol=1e-5)


@pytest.mark.origin("model zoos")
def test_projections_packed(oracle):
    def parts(t):
        q, k = t.arange(4.0).view(2, 2), t.ones(3, 2)
        return t.cat(t.nn.functional._in_projection_packed(q, k, k, t.arange(12.0).view(6, 2)))

    assert parts(rushlight).tolist() == oracle(parts).tolist()
