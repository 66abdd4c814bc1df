"""How results lie in memory: as torch's do, for `view` must work on them and dropout draws in the order of memory."""

import numpy as np
import pytest

import rushlight
from rushlight.kernels import layout


def permuted(lib, *shape, dims=(0, 2, 1)):
    """Numbers whose dimensions lie in memory in another order than they are named."""
    x = lib.arange(float(np.prod(shape))).reshape(*[shape[d] for d in dims])
    back = [dims.index(d) for d in range(len(dims))]
    return (x % 7 - 3).permute(*back)


CALLS = {
    "softmax": lambda lib, x: x.softmax(-1),
    "log_softmax": lambda lib, x: x.log_softmax(1),
    "layer_norm": lambda lib, x: lib.nn.functional.layer_norm(x, x.shape[-1:]),
    "batch_norm": lambda lib, x: lib.nn.functional.batch_norm(x, None, None, training=True),
    "cat": lambda lib, x: lib.cat([x, x], 1),
    "stack": lambda lib, x: lib.stack([x, x], 1),
    "cumsum": lambda lib, x: x.cumsum(1),
    "cummax": lambda lib, x: x.cummax(1)[0],
    "sum": lambda lib, x: x.sum(0),
    "mean": lambda lib, x: x.mean(0, keepdim=True),
    "amax": lambda lib, x: x.amax(0),
    "logsumexp": lambda lib, x: x.logsumexp(0),
    "all": lambda lib, x: (x > 0).all(0),
    "prod": lambda lib, x: x.prod(0),
    "roll": lambda lib, x: x.roll(1, 1),
    "tril": lambda lib, x: x.tril(),
    "index": lambda lib, x: x.contiguous()[:, lib.tensor([1, 0, 1])],
    "index_last": lambda lib, x: x.contiguous()[..., lib.tensor([1, 0])],
    "mask": lambda lib, x: x.contiguous()[:, lib.tensor([True, False, True, False])],
    "gather": lambda lib, x: x.gather(1, (x > 0).long()),
    "scatter": lambda lib, x: x.scatter(1, (x > 0).long(), 9.0),
    "index_add": lambda lib, x: x.index_add(0, lib.tensor([1]), x[:1]),
    "relu": lambda lib, x: x.relu(),
    "gelu": lambda lib, x: lib.nn.functional.gelu(x),
    "rms_norm": lambda lib, x: lib.nn.functional.rms_norm(x, x.shape[-1:]),
    "tile": lambda lib, x: x.tile((1,)),
    "flip": lambda lib, x: x.flip(1),
    "rot90": lambda lib, x: x.rot90(0),
    "einsum": lambda lib, x: lib.einsum("bij,jk->bki", x, lib.ones(x.shape[2], 2)),
}


@pytest.mark.parametrize("name", CALLS)
def test_strides_are_torchs(name, oracle):
    def strides(lib):
        return list(CALLS[name](lib, permuted(lib, 3, 4, 5)).stride())

    assert strides(rushlight) == oracle(strides)


TWO = {
    "add": lambda lib, x, y: x + y,
    "mul": lambda lib, x, y: x * y,
    "lt": lambda lib, x, y: x < y,
    "maximum": lambda lib, x, y: lib.maximum(x, y),
    "pow": lambda lib, x, y: x.abs() ** y,
    "two dtypes": lambda lib, x, y: x.double() - y,
}


@pytest.mark.parametrize("turned", ["first", "second"])
@pytest.mark.parametrize("name", TWO)
def test_operands_in_different_orders(name, turned, oracle):
    """The first one's order is the result's, and dropout's."""

    def results(lib):
        lib.manual_seed(0)
        x, y = permuted(lib, 3, 4, 5), lib.ones(3, 4, 5)
        r = TWO[name](lib, *((x, y) if turned == "first" else (y, x)))
        return [*r.stride(), *(lib.nn.functional.dropout(r * 1.0 + 9, 0.5) != 0).flatten().tolist()]

    assert results(rushlight) == oracle(results)


LAYERS = {
    "conv": lambda F, x, w: F.conv2d(x, w),
    "strided": lambda F, x, w: F.conv2d(x, w[:, :, :1, :1], stride=2),
    "transposed": lambda F, x, w: F.conv_transpose2d(x, w.transpose(0, 1)),
    "max": lambda F, x, w: F.max_pool2d(x, 2),
    "mean": lambda F, x, w: F.avg_pool2d(x, 2),
    "adaptive": lambda F, x, w: F.adaptive_avg_pool2d(x, 2),
    "batch_norm": lambda F, x, w: F.batch_norm(x, None, None, training=True),
}


@pytest.mark.parametrize("step", [8, 48, 288, 1000])
@pytest.mark.parametrize("name", LAYERS)
def test_one_image_by_the_step_to_the_next(name, step, oracle):
    def strides(lib):
        x = lib.ones(2000).as_strided((1, 8, 6, 6), (step, 1, 48, 8))
        return list(LAYERS[name](lib.nn.functional, x, lib.ones(4, 8, 3, 3)).stride())

    assert strides(rushlight) == oracle(strides)


@pytest.mark.parametrize("name", ["softmax", "layer_norm", "cat", "stack", "sum", "index", "cumsum"])
def test_view_works_on_results(name):
    result = CALLS[name](rushlight, permuted(rushlight, 3, 4, 5))
    assert result.view(-1).shape == (result.numel(),)


@pytest.mark.parametrize("name", ["softmax", "layer_norm", "einsum", "relu"])
def test_dropout_draws_the_same_elements(name, oracle):
    def kept(lib):
        lib.manual_seed(0)
        x = CALLS[name](lib, permuted(lib, 3, 4, 5)) + 10
        return (lib.nn.functional.dropout(x, 0.5) != 0).tolist()

    assert kept(rushlight) == oracle(kept)


@pytest.mark.parametrize("draw", ["rand_like", "randn_like"])
@pytest.mark.parametrize("shape", [(3, 4, 5), (2, 2, 2)])
def test_numbers_like_a_permuted_tensor(draw, shape, oracle):
    def numbers(lib):
        lib.manual_seed(0)
        x = getattr(lib, draw)(permuted(lib, *shape))
        return [list(x.stride()), x.tolist()]

    assert numbers(rushlight) == oracle(numbers)


def test_images_with_channels_innermost_stay_so(oracle):
    def strides(lib):
        x = permuted(lib, 2, 3, 4, 5, dims=(0, 2, 3, 1))
        f = lib.nn.functional
        return [
            list(y.stride())
            for y in (
                f.batch_norm(x, None, None, training=True),
                lib.cat([x, x], 1),
                f.conv2d(x, lib.ones(4, 3, 3, 3), padding=1),
                f.conv_transpose2d(x, lib.ones(3, 4, 2, 2), stride=2),
                f.conv2d(x, lib.ones(3, 1, 3, 3), groups=3).flatten(2).transpose(1, 2),
            )
        ]

    assert strides(rushlight) == oracle(strides)


def test_pooled_images_lie_as_images_do(oracle):
    def strides(lib):
        x, volume = permuted(lib, 2, 3, 4, 5, dims=(0, 2, 3, 1)), permuted(lib, 2, 3, 4, 5, 6, dims=(0, 2, 3, 4, 1))
        f = lib.nn.functional
        made = (
            *f.max_pool2d(x, 2, return_indices=True),
            f.avg_pool2d(x, 2),
            f.adaptive_avg_pool2d(x, 2),
            *f.adaptive_max_pool2d(x, 2, return_indices=True),
            *f.max_pool3d(volume, 2, return_indices=True),
            f.avg_pool3d(volume, 2),
            f.adaptive_avg_pool3d(volume, 2),
            *f.adaptive_max_pool3d(volume, 2, return_indices=True),
        )
        return [list(y.stride()) for y in made]

    assert strides(rushlight) == oracle(strides)


def test_steps_of_dimensions_of_size_1(oracle):
    """NumPy gives a new dimension no step, torch what the next one spans."""

    def steps(lib):
        x, z = lib.zeros(3, 4), lib.zeros(3, 1, 4)
        views = [
            t.unsqueeze(d) for t in (x, x.t(), x[:, :1], z.expand(3, 5, 4), lib.zeros(())) for d in range(t.dim() + 1)
        ]
        return [list(v.stride()) for v in (*views, x[None], x[..., None], x.expand(1, 3, 4), x.expand(2, 1, 3, 4))]

    assert steps(rushlight) == oracle(steps)


# images -> images or numbers, each in the layout that torch gives
IMAGES = {
    "conv": lambda lib, f, x: f.conv2d(x, lib.ones(5, 4, 3, 3), padding=1),
    "grouped conv": lambda lib, f, x: f.conv2d(x, lib.ones(4, 1, 3, 3), groups=4),
    "transposed conv": lambda lib, f, x: f.conv_transpose2d(x, lib.ones(4, 3, 3, 3)),
    "conv of one tap": lambda lib, f, x: f.conv2d(x, lib.ones(3, 4, 1, 1)),
    "max_pool": lambda lib, f, x: f.max_pool2d(x, 2),
    "avg_pool": lambda lib, f, x: f.avg_pool2d(x, 2),
    "lp_pool": lambda lib, f, x: f.lp_pool2d(x, 2, 2),
    "adaptive_avg": lambda lib, f, x: f.adaptive_avg_pool2d(x, (3, 2)),
    "adaptive_max": lambda lib, f, x: f.adaptive_max_pool2d(x, (3, 2)),
    "fractional": lambda lib, f, x: f.fractional_max_pool2d(x, 2, output_size=(3, 3)),
    "unpool": lambda lib, f, x: f.max_unpool2d(*f.max_pool2d(x, 2, return_indices=True), 2),
    "batch_norm": lambda lib, f, x: f.batch_norm(x, None, None, training=True),
    "frozen batch_norm": lambda lib, f, x: f.batch_norm(x, lib.ones(4), lib.ones(4)),
    "instance_norm": lambda lib, f, x: f.instance_norm(x),
    "group_norm": lambda lib, f, x: f.group_norm(x, 2),
    "layer_norm": lambda lib, f, x: f.layer_norm(x, (8,)),
    "response": lambda lib, f, x: f.local_response_norm(x, 2),
    **{
        mode: lambda lib, f, x, mode=mode: f.interpolate(x, size=(9, 5), mode=mode)
        for mode in ("nearest", "nearest-exact", "bilinear", "bicubic", "area")
    },
    "twice": lambda lib, f, x: f.interpolate(x, scale_factor=2),
    "as it was": lambda lib, f, x: f.interpolate(x, size=(6, 8), mode="bilinear"),
    "antialias": lambda lib, f, x: f.interpolate(x, size=(3, 5), mode="bicubic", antialias=True),
    **{
        f"pad {mode}": lambda lib, f, x, mode=mode: f.pad(x, (1, 2, -1, 3), mode=mode)
        for mode in ("constant", "reflect", "replicate", "circular")
    },
    "pad depth": lambda lib, f, x: f.pad(x, (1, 1, 0, 2, 2, 1), mode="reflect"),
    "pixel_shuffle": lambda lib, f, x: f.pixel_shuffle(f.pad(x, (0, 0, 0, 0, 0, 4)), 2),
    "pixel_unshuffle": lambda lib, f, x: f.pixel_unshuffle(x, 2),
    "channel_shuffle": lambda lib, f, x: f.channel_shuffle(x, 2),
    "grid_sample": lambda lib, f, x: f.grid_sample(x, lib.zeros(2, 5, 7, 2), align_corners=False),
    "fold": lambda lib, f, x: f.fold(f.unfold(x, 2), (6, 8), 2),
    "dropout": lambda lib, f, x: f.dropout2d(x, 0.5),
    "softmax": lambda lib, f, x: f.softmax(x, 1),
    "glu": lambda lib, f, x: f.glu(x, 1),
    "prelu": lambda lib, f, x: f.prelu(x, lib.ones(4)),
    "masked_fill": lambda lib, f, x: x.masked_fill(x > 0, 1.0),
    "flip": lambda lib, f, x: x.flip(2),
    "roll": lambda lib, f, x: x.roll(1, 2),
    "cat": lambda lib, f, x: lib.cat([x, x], 1),
    "turn": lambda lib, f, x: x * 2,
}


def images(lib, last):
    x = lib.arange(384.0).view(2, 4, 6, 8) % 7 - 3
    if last == "part":
        x = lib.nn.functional.pad(x, (1, 1, 2, 0)).contiguous(memory_format=lib.channels_last)[:, :, 2:, 1:-1].detach()
    return (x.contiguous(memory_format=lib.channels_last) if last is True else x).requires_grad_()


@pytest.mark.parametrize("last", [True, False, "part"])
@pytest.mark.parametrize("name", IMAGES)
def test_images_stay_as_they_lie(name, last, oracle):
    """And the gradient of a leaf lies as the leaf does, whatever came back."""

    def strides(lib):
        x = images(lib, last)
        y = IMAGES[name](lib, lib.nn.functional, x)
        y.backward(lib.ones(y.shape))
        return [list(y.stride()), list(x.grad.stride())]

    assert strides(rushlight) == oracle(strides)


@pytest.mark.parametrize("name", IMAGES)
def test_numbers_are_the_same_in_either_layout(name):
    found = []
    for last in (True, False):
        rushlight.manual_seed(0)
        x = images(rushlight, last)
        y = IMAGES[name](rushlight, rushlight.nn.functional, x)
        (y * rushlight.arange(float(y.numel())).view(y.shape)).sum().backward()
        found.append((y.detach(), x.grad))
    if "fractional" not in name and name != "dropout":  # which draw as numbers lie
        assert all(rushlight.allclose(a, b, rtol=1e-4, atol=1e-4) for a, b in zip(*found))


def test_weights_with_channels_innermost_decide_too(oracle):
    """As after `model.to(memory_format=channels_last)`: their gradients lie as they do."""

    def strides(lib):
        layer = lib.nn.Conv2d(3, 4, 3).to(memory_format=lib.channels_last)
        y = layer(lib.ones(2, 3, 5, 6))
        y.sum().backward()
        return [list(t.stride()) for t in (y, layer.weight, layer.weight.grad)]

    assert strides(rushlight) == oracle(strides)


@pytest.mark.parametrize("loss", ["whole", "turned", "expanded", "view"])
def test_a_leafs_gradient_lies_as_the_leaf(loss, oracle):
    def strides(lib):
        w = lib.arange(12.0).view(3, 4).t().requires_grad_() if loss != "view" else lib.ones(3, 4, requires_grad=True)
        y = {
            "whole": lambda: w * w,
            "turned": lambda: w.t() * lib.ones(3, 4),
            "expanded": lambda: w.sum(0),
            "view": lambda: lib.ones(5, 4) @ w.t(),
        }[loss]()
        y.sum().backward()
        first = list(w.grad.stride())
        (w * lib.ones(w.shape)).sum().backward()
        return [first, list(w.grad.stride())]

    assert strides(rushlight) == oracle(strides)


@pytest.mark.parametrize(
    "f", [lambda x: x @ x, lambda x: x[:1].bmm(x[:1]), lambda x: x @ x[0], lambda x: x[0].mm(x[1])]
)
def test_products_lie_in_order_whatever_their_operands_do(f):
    """Also where the result has the shape of the first operand: `view` must work on it."""
    assert f(rushlight.randn(2, 4, 4).mT).is_contiguous()


REPEATED = {
    "rows": lambda lib, n: lib.ones(1, n).expand(20, n),
    "columns": lambda lib, n: lib.ones(20, 1).expand(20, n),
    "between": lambda lib, n: lib.ones(2, 1, n).expand(2, 10, n),
}
OF_REPEATED = {
    **{
        name: lambda lib, x, name=name: getattr(x, name)()
        for name in (
            "neg",
            "exp",
            "sqrt",
            "isnan",
            "square",
            "logical_not",
            "nan_to_num",
            "clone",
            "double",
            "half",
            "relu",
            "sigmoid",
        )
    },
    "number": lambda lib, x: x * 3,
    "itself": lambda lib, x: x + x,
    "compared": lambda lib, x: x < 1,
    "power": lambda lib, x: x**2,
    "flip": lambda lib, x: x.flip(-1),
    "silu": lambda lib, x: lib.nn.functional.silu(x),
    **{
        name: lambda lib, x, name=name: getattr(lib, name)(x)
        for name in ("zeros_like", "ones_like", "empty_like", "rand_like")
    },
    "full_like": lambda lib, x: lib.full_like(x, 2),
    "another dtype": lambda lib, x: lib.zeros_like(x, dtype=lib.int64),
    "where": lambda lib, x: lib.where(x > 0, x, 0),
    "mask": lambda lib, x: x.masked_fill(x > 1, 0),
    "choice": lambda lib, x: lib.where(x > 0, lib.ones_like(x), lib.zeros_like(x)),
}


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("n", [3, 30, 5000])
def test_what_is_made_of_repeated_numbers(n, dtype, oracle):
    """Dimensions that repeat stay where they are; NumPy takes them for the innermost, and `view` then fails."""

    def strides(lib):
        inputs = {kind: repeated(lib, n).to(getattr(lib, dtype)) for kind, repeated in REPEATED.items()}
        return {kind: {name: list(f(lib, x).stride()) for name, f in OF_REPEATED.items()} for kind, x in inputs.items()}

    assert strides(rushlight) == oracle(strides)


SUMS = {
    name: lambda x, dim, name=name: getattr(x, name)(dim)
    for name in ("sum", "mean", "var", "std", "amax", "logsumexp", "nansum")
}
SUMS |= {
    f"norm of {p}": lambda x, dim, p=p: rushlight.linalg.vector_norm(x, p, dim) for p in (0, 1, 2, 3, float("inf"))
}


@pytest.mark.parametrize("dtype", [rushlight.float32, rushlight.float64, rushlight.bfloat16], ids=str)
@pytest.mark.parametrize("name", SUMS)
def test_sums_of_turned_tensors_lie_in_order_at_any_size(name, dtype):
    for shape in [(2, 3, 4, 5), (4, 8, 9, 40), (2, 64, 40, 50)]:
        for dims in [(0, 2, 3, 1), (0, 1, 3, 2), (3, 1, 2, 0)]:
            x = permuted(rushlight, *shape, dims=dims).to(dtype)
            for dim in (0, 1, 2, -1, (0, 1), (0, 3)):
                assert SUMS[name](x, dim).is_contiguous(), (shape, dims, dim)


def parts(lib):
    """Parts of a tensor, views of it, and what was detached from them."""
    x = lib.arange(24.0).reshape(2, 3, 4)
    return [x[1:], x[1:].detach(), x[1:, 2:].detach()[:, :, 1:].detach(), x[1:].data, lib.nn.Parameter(x[1:])]


def test_where_parts_begin(oracle):
    """storage_offset counts from the beginning of the memory, which a detached part shares with the whole."""

    def offsets(lib):
        return [
            [p.storage_offset(), p.as_strided((2,), (1,)).tolist(), p.as_strided((2,), (1,), 0).tolist()]
            for p in parts(lib)
        ]

    assert offsets(rushlight) == oracle(offsets)


def test_a_part_whose_memory_was_replaced_begins_at_0():
    x = rushlight.arange(6.0)[2:].detach()
    x.resize_(20)
    assert x.storage_offset() == 0


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_gradient_of_a_write_through_a_view_in_half_precision(dtype):
    """The gradient arrives in another itemsize than its base has."""
    x = rushlight.tensor([1.0, 2.0, 3.0, 4.0], dtype=getattr(rushlight, dtype), requires_grad=True)
    y = x * 1
    y[2] = 0
    (y * y).mean().backward()
    assert x.grad.tolist() == [0.5, 1.0, 0.0, 2.0]


@pytest.mark.parametrize("size", [3, 16, 40, 80])
def test_layers_keep_channels_innermost_at_any_size(size, oracle):
    """Kernels change with the number of elements; dropout draws in the order of memory whichever it was."""

    def strides(lib):
        F = lib.nn.functional
        x = lib.ones(2, 8, size, size).contiguous(memory_format=lib.channels_last)
        w = lib.ones(8, 8, 3, 3)
        made = F.conv2d(x, w, padding=1)
        return [
            list(r.stride())
            for r in (
                made,
                F.relu(made),
                F.relu(F.batch_norm(made, None, None, training=True)),
                F.gelu(made),
                F.leaky_relu(made),
                made.clamp(0, 1),
                F.silu(made) + made,
                lib.where(made > 0, made, 0.0),
                F.max_pool2d(F.relu(made), 2),
            )
        ]

    assert strides(rushlight) == oracle(strides)


def test_windows_that_do_not_overlap_may_be_written():
    x = rushlight.tensor([1.0, -1.0, 2.0, -2.0, 5.0])
    windows = x.unfold(0, 2, 2)
    windows[windows > 0] = 0.0
    windows[rushlight.tensor([1])] = 7.0
    assert x.tolist() == [0.0, -1.0, 7.0, 7.0, 5.0]
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        x.unfold(0, 2, 1)[rushlight.tensor([0])] = 1.0


EQUATIONS = [
    "bij,bkj->bki",
    "bij,bkj->kib",
    "bij,jk->bki",
    "ij,cjk->kic",
    "i,j->ji",
    "bij->jb",
    "cbA,bAc->cb",
    "bij,bij->ib",
    "bcij,bcjk->bkci",
]


@pytest.mark.parametrize("equation", EQUATIONS)
def test_strides_of_einsum(equation, oracle):
    def strides(lib):
        sizes = dict(zip("abcijkA", (2, 3, 4, 5, 2, 3, 4)))
        operands = [lib.ones([sizes[c] for c in letters]) for letters in equation.split("->")[0].split(",")]
        return list(lib.einsum(equation, *operands).stride())

    assert strides(rushlight) == oracle(strides)


KEYS = {
    "one": lambda lib: (slice(None), lib.tensor([1, 0])),
    "last": lambda lib: (..., lib.tensor([1, 0])),
    "two": lambda lib: (lib.tensor([1, 0]), lib.tensor([[1], [0]])),
    "apart": lambda lib: (lib.tensor([1, 0]), slice(None), lib.tensor([1, 0])),
    "mask": lambda lib: (slice(None), lib.tensor([True, False, True])),
    "mask of two": lambda lib: (lib.ones(2, 3) > 0,),
}


@pytest.mark.parametrize("dims", [(0, 1, 2), (2, 0, 1), (1, 2, 0), (2, 1, 0)])
@pytest.mark.parametrize("name", KEYS)
def test_strides_of_indexed_tensors(name, dims, oracle):
    def strides(lib):
        return list(permuted(lib, 2, 3, 4, dims=dims)[KEYS[name](lib)].stride())

    assert strides(rushlight) == oracle(strides)


@pytest.mark.parametrize("shape", [(256, 256), (512, 300), (300, 512), (2, 256, 512), (1024, 264), (264, 1001)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.complex128])
def test_large_transposed_copies(shape, dtype):
    x = np.arange(np.prod(shape)).reshape(shape).astype(dtype).swapaxes(-1, -2)
    made = layout.copied(x)
    assert made.flags.c_contiguous
    assert made.flags.writeable
    assert np.array_equal(made, x)
