"""Settings and constants that depend on dynamic dimensions become arithmetic on sizes; where that is impossible, the
error names the line."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from rushlight import nn
from rushlight.export import Dim
from rushlight.nn import functional as F
from rushlight.onnx.export import OnnxExporterError, export
from tests.onnx.onnx_case import check, largest_error, session

SIZES = (4, 6), (1, 9), (7, 1)  # rows and columns


def written(x):
    y = x.clone()
    y[:, -1] = 3.0
    y[0] += x.sum(0)
    return y


def written_middle(x):
    y = rushlight.zeros(x.shape[0] + 2, x.shape[1] * 2)
    y[1:-1, ::2] = x
    y.copy_(y.to(rushlight.int64))
    y[1:-1, 1::2] = x.to(rushlight.int64)
    return y


def sinusoids(x):
    time, width = x.shape
    at = rushlight.arange(time, dtype=rushlight.float32)[:, None] / 10 ** rushlight.linspace(0, 1, width)
    return x + at.sin()


def causal(x):
    n = x.shape[0]
    mask = rushlight.tril(rushlight.ones(n, n, dtype=rushlight.bool))
    return (x @ x.T).masked_fill(~mask, float("-inf")).softmax(-1)


FUNCTIONS = {  # of x (rows, columns)
    "view": lambda x: x.view(x.shape[0] * x.shape[1]).view(-1, x.shape[0]),
    "product of three": lambda x: x.expand(3, -1, -1).reshape(3 * x.shape[0] * x.shape[1]),
    "half": lambda x: rushlight.cat([x[: (x.shape[0] + 1) // 2], x[x.shape[0] // 2 :]]),
    "slices": lambda x: x[1:, :-1] if False else x[x.shape[0] - 1 :, : x.shape[1]],
    "half of the product": lambda x: x.reshape(-1).split((x.numel() + 1) // 2)[0] * 2,
    "select last": lambda x: x[-1] + x[:, -1:].sum(),
    "narrow": lambda x: x.narrow(1, 0, x.shape[1]),
    "roll": lambda x: x.roll(-1, 1) + x.roll(1, 0),
    "roll by half": lambda x: x.roll(x.shape[1] // 2, 1).roll((-x.shape[0], 3), (0, 1)),
    "reflect": lambda x: F.pad(x.repeat(1, 5)[None], (3, 2), mode="reflect"),
    "flip": lambda x: x.flip(0, 1),
    "repeat": lambda x: x.repeat(2, 3),
    "tile by size": lambda x: x[:1].expand(x.shape[0], x.shape[1]) * x,
    "diagonal": lambda x: (x.T @ x).diagonal() + (x.T @ x).trace(),
    "eye": lambda x: x @ rushlight.eye(x.shape[1]) + rushlight.eye(x.shape[0], x.shape[1]),
    "tril": lambda x: x.tril(-1) + x.triu(1),
    "causal": causal,
    "arange": lambda x: x + rushlight.arange(x.shape[1]) - rushlight.arange(x.shape[0], 0, -1)[:, None],
    "arange by 2": lambda x: rushlight.arange(1, 2 * x.shape[0] + 1, 2) * x.sum(1),
    "linspace": lambda x: x * rushlight.linspace(-1, 1, x.shape[1] + 1)[1:],
    "full": lambda x: rushlight.full((x.shape[1], x.shape[0]), 0.5) @ x,
    "size as number": lambda x: x.sum(0) / x.shape[0] + x.shape[1],
    "scale by root": lambda x: x / x.shape[1] ** 0.5,
    "sinusoids": sinusoids,
    "pad": lambda x: F.pad(x, (1, 2, 3, 0), value=2.0),
    "pad to double": lambda x: F.pad(x, (0, x.shape[1])),
    "pad circular": lambda x: F.pad(x[None], (1, 0), mode="circular"),
    "replicate": lambda x: F.pad(x[None], (2, 1), mode="replicate"),
    "unfold": lambda x: F.pad(x, (0, 4)).unfold(1, 3, 2),
    "resize": lambda x: F.interpolate(x[None], scale_factor=2.0, mode="linear"),
    "resize to size": lambda x: F.interpolate(x[None], size=2 * x.shape[1] + 1, mode="nearest"),
    "resize image": lambda x: F.interpolate(x[None, None], scale_factor=1.5, mode="bicubic"),
    "aligned": lambda x: F.interpolate(x[None, None], size=(9, 5), mode="bilinear", align_corners=True),
    "exact": lambda x: F.interpolate(x[None, None], size=(5, 3), mode="nearest-exact"),
    "grid": lambda x: F.grid_sample(x[None, None], rushlight.linspace(-1, 1, 18).view(1, 3, 3, 2), align_corners=False),
    "gather": lambda x: x.gather(1, x.argsort(1)) + x.sort(1, descending=True).values,
    "topk": lambda x: x.topk(1, 1).values + x.max(1, keepdim=True).values,
    "index": lambda x: x[rushlight.arange(x.shape[0]), x.argmax(1)],
    "index matrix": lambda x: x[rushlight.arange(x.shape[0])[:, None], rushlight.zeros(1, 2, dtype=rushlight.int64)],
    "scatter": lambda x: rushlight.zeros_like(x).scatter(1, x.argmax(1, keepdim=True), 1.0),
    "write": written,
    "write middle": written_middle,
    "chunk": lambda x: rushlight.cat(F.pad(x, (0, x.shape[1])).chunk(2, 1), 0),
    "stack": lambda x: rushlight.stack([x, x.T.reshape(x.shape)]).mean((0, 2)),
    "std": lambda x: F.pad(x, (0, 1)).std(1) + F.pad(x, (0, 1)).var(1, unbiased=False),
    "cumsum": lambda x: x.cumsum(0) + x.cumsum(1),
    "outer": lambda x: rushlight.einsum("ij,ik->jk", x, x),
    "meshgrid": lambda x: (
        sum(rushlight.meshgrid(rushlight.arange(x.shape[0]), rushlight.arange(x.shape[1]), indexing="ij")) + x
    ),
    "conv": lambda x: F.conv1d(x[None, None].flatten(2), rushlight.ones(1, 1, 3), padding=1, stride=2).flatten(),
    "window mean": lambda x: F.avg_pool1d(x[None], 2, 1, 1)[0],
    "layer norm": lambda x: F.layer_norm(F.pad(x, (0, 1)), (x.shape[1] + 1,)),
    "adaptive average": lambda x: F.adaptive_avg_pool2d(x[None], (3, 2)),
    "adaptive maximum": lambda x: F.adaptive_max_pool2d(x[None], (2, 3)),
    "global maximum": lambda x: F.adaptive_max_pool2d(x[None], 1),
    "isin": lambda x: rushlight.isin(x.round().to(rushlight.int64), rushlight.arange(x.shape[1])),
    "repeated places": lambda x: x[np.repeat(np.arange(x.shape[0]), x.shape[1])],
    "tiled places": lambda x: x[np.tile(np.arange(x.shape[0]), 3)],
    "places of maxima": lambda x: F.max_pool2d(x[None].repeat(1, 2, 2), 2, return_indices=True)[1],
    "bags": lambda x: F.embedding_bag((x > 0).to(rushlight.int64), rushlight.arange(6.0).view(2, 3)),
    "embedding bag": lambda x: F.embedding_bag(rushlight.arange(6).view(2, 3) % 1, x, mode="sum"),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_any_size(name):
    rushlight.manual_seed(0)
    check(FUNCTIONS[name], [(rushlight.randn(*s),) for s in SIZES], dynamic_shapes=({0: "rows", 1: "columns"},))


def test_sizes_of_adaptive_pooling_are_fixed():
    pool = nn.AdaptiveMaxPool2d((3, 2))
    check(pool, [(rushlight.randn(n, 2, 7, 9),) for n in (2, 1, 4)], dynamic_shapes=({0: "batch"},))


def test_numbers_that_near_sizes_share():
    """size // 32 is 2 for all sizes near 64; traces of other sizes show the formula."""

    def model(x):
        return x.new_ones(x.shape[0] // 32 + 1) * x.sum()

    check(model, [(rushlight.randn(n),) for n in (64, 32, 200)], dynamic_shapes=({0: "n"},))
    examples = [(rushlight.randn(n),) for n in (64, 32, 192)]
    check(lambda x: model(x) + x.view(-1, 16)[0, 0], examples, dynamic_shapes=({0: "n"},))


# -- forms of dynamic_shapes ---------------------------------------------------------------------------


def shapes_of(program):
    return [[d.dim_param or d.dim_value for d in i.type.tensor_type.shape.dim] for i in program.model_proto.graph.input]


def added(x, y):
    return x + y


X = rushlight.ones(3, 4)
FORMS = [
    ({"dynamic_shapes": ({0: "n"}, {0: "n"})}, [["n", 4], ["n", 4]]),
    ({"dynamic_shapes": {"x": {0: "n"}, "y": ["n", None]}}, [["n", 4], ["n", 4]]),
    ({"dynamic_shapes": [{0: Dim("n", min=2, max=9), 1: "m"}] * 2}, [["n", "m"], ["n", "m"]]),
    ({"dynamic_shapes": ({1: Dim.AUTO}, {1: Dim.STATIC})}, None),
    ({"dynamic_axes": {"x": {0: "n"}, "y": {0: "n"}, "z": {0: "n"}}, "output_names": ["z"]}, [["n", 4], ["n", 4]]),
]


@pytest.mark.parametrize(("options", "wanted"), FORMS)
def test_forms_of_dynamic_shapes(options, wanted):
    if wanted is None:
        with pytest.raises(OnnxExporterError, match="takes no other size of 'x_dim_1' than 4; for 5: RuntimeError"):
            export(added, (X, X), **options)
    else:
        assert shapes_of(export(added, (X, X), **options)) == wanted


def test_dynamic_axes_as_lists():
    program = export(lambda x: x * 2, (X,), input_names=["in"], dynamic_axes={"in": [0, 1]})
    assert shapes_of(program) == [["in_dim_0", "in_dim_1"]]


def test_nested_arguments_and_kwargs():
    def model(pair, *, named):
        return {"sum": pair["a"] + pair["b"][0], "named": [named * 2, named]}

    pair = {"a": X, "b": (X,)}
    dynamic = {"pair": {"a": {0: "n"}, "b": ({0: "n"},)}, "named": {0: "k"}}
    program = export(model, (pair,), kwargs={"named": rushlight.ones(2)}, dynamic_shapes=dynamic)
    assert [i.name for i in program.model_proto.graph.input] == ["pair_a", "pair_b_0", "named"]
    assert [o.name for o in program.model_proto.graph.output] == ["sum", "named_0", "named_1"]
    other = {"a": rushlight.randn(5, 4), "b": (rushlight.randn(5, 4),)}
    assert largest_error(session(program), model, (other,), {"named": rushlight.randn(7)}) < 1e-6


@pytest.mark.parametrize(
    ("dynamic", "message"),
    [
        ({"z": {0: "n"}}, "names 'z'; the arguments are x, y"),
        (({2: "n"},), "x has 2 dimensions, but no dimension 2"),
        (({0: "n", 1: "n"},), "'n' is both 3 and 4"),
        ("batch", "dynamic_shapes is a str"),
        ((5, None), "the dynamic dimensions of x are 5"),
    ],
)
def test_wrong_dynamic_shapes(dynamic, message):
    with pytest.raises(ValueError, match=message):
        export(added, (X, X), dynamic_shapes=dynamic)


# -- sizes that the model allows -----------------------------------------------------------------------


def test_positions_allow_smaller_sizes_only():
    class Positions(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(8, 3)

        def forward(self, x):
            return x + self.table(rushlight.arange(x.shape[1]))

    examples = [(rushlight.randn(2, time, 3),) for time in (8, 1, 5)]
    check(Positions(), examples, dynamic_shapes=({0: "batch", 1: "time"},))


def test_multiples_of_four():
    def model(x):
        return x.view(-1, 4).sum(1) if x.shape[0] % 4 == 0 else rushlight.ones(0).view(-1, 4, 0, 7)[9]

    check(model, [(rushlight.randn(n),) for n in (8, 4, 20)], dynamic_shapes=({0: Dim("n", min=4)},))


# -- errors --------------------------------------------------------------------------------------------


def refused(model, *args, **options):
    with pytest.raises(OnnxExporterError) as caught:
        export(model, args, **options)
    return str(caught.value)


def test_operators_that_onnx_lacks_are_named_with_shape_and_line():
    def model(x):
        y = rushlight.linalg.svdvals(x)
        return rushlight.lgamma(y) + y

    text = refused(model, rushlight.randn(3, 3))
    assert "2 operators cannot be expressed in ONNX (opset 20)" in text
    assert "linalg_svdvals of float32[3, 3] -> float32[3]: ONNX has no such operator" in text
    assert "test_dynamic_dims.py" in text
    assert "y = rushlight.linalg.svdvals(x)" in text
    assert "return rushlight.lgamma(y) + y" in text


def test_reading_numbers_is_named_with_the_line():
    def model(x):
        return x * 2 if x.sum() > 0 else x

    assert "return x * 2 if x.sum() > 0 else x" in refused(model, rushlight.ones(3))


def test_writing_to_a_buffer():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", rushlight.zeros(()))

        def forward(self, x):
            self.count += 1
            return x * self.count

    model = Counter()
    assert "an ONNX file keeps no state" in refused(model, rushlight.ones(3))
    assert model.count == 0


def test_random_numbers():
    assert "draws random numbers" in refused(lambda x: x + rushlight.rand_like(x), rushlight.ones(3))


def test_other_steps_for_other_sizes():
    def model(x):
        return x.relu() if x.shape[0] > 6 else x.tanh()

    text = refused(model, rushlight.ones(6), dynamic_shapes=({0: "n"},))
    assert "the model computes differently for other sizes" in text


def test_a_size_that_no_formula_gives():
    def model(x):
        return x.new_ones(bin(x.shape[0]).count("1")) * x.sum()

    text = refused(model, rushlight.ones(8), dynamic_shapes=({0: "n"},))
    assert "a size is" in text
    assert "dimension 0 of x is" in text


def test_a_table_that_depends_on_a_size():
    def model(x):
        return x + rushlight.tensor([k * k for k in range(x.shape[0])])

    assert "not evenly spaced" in refused(model, rushlight.ones(4), dynamic_shapes=({0: "n"},))
