"""What suites of others found in layers, hooks and optimizers."""
from collections import namedtuple

import pytest

import rushlight
from rushlight import nn, tensor
from rushlight.nn import functional as F

TABLE = rushlight.arange(12.0).reshape(6, 2)
Pair = namedtuple("Pair", "first second")


class Calls(nn.Module):
    """A module of a function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def leaf(*shape):
    return rushlight.ones(*shape or (2,), requires_grad=True)


def hooked(function, answer=None):
    """A module, and what its backward hook saw."""
    module, seen = Calls(function), []
    module.register_full_backward_hook(lambda m, *grads: (seen.append(grads), answer)[1])
    return module, seen


# -- tables --------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_the_last_offset_ends_the_last_bag(mode):
    ids = tensor([0, 1, 2, 3])
    made = F.embedding_bag(ids, TABLE, tensor([0, 2, 2]), mode=mode, include_last_offset=True)
    whole = F.embedding_bag(ids[:2], TABLE, tensor([0, 2]), mode=mode)
    assert made.tolist() == whole.tolist()
    assert F.embedding_bag(ids, TABLE, tensor([0]), mode=mode, include_last_offset=True).shape == (0, 2)


@pytest.mark.parametrize(("offsets", "words"), [
    ([0, 5], r"offsets\[-1\] can not be greater than input's length 4"), ([0, 3, 2], "offsets must not decrease"),
    ([1, 2], r"offsets\[0\] has to be 0"), ([0.0], "argument #1 'offsets'")])
def test_bags_say_which_offsets_cannot_be(offsets, words):
    with pytest.raises(RuntimeError, match=words):
        F.embedding_bag(tensor([0, 1, 2, 3]), TABLE, tensor(offsets))


@pytest.mark.parametrize(("change", "error", "words"), [
    ({"input": tensor([[0, 6]])}, RuntimeError, "found idx to be 6"),
    ({"input": tensor([[-1, 0]])}, RuntimeError, "found idx to be -1"),
    ({"weight": TABLE[None]}, RuntimeError, "weight has to be a 2D Tensor"),
    ({"padding_idx": 6}, RuntimeError, "padding_idx must be within the number of embeddings"),
    ({"per_sample_weights": rushlight.ones(2)}, ValueError, "same shape as the input"),
    ({"per_sample_weights": rushlight.ones(1, 2).double()}, RuntimeError, "have the same type as")])
def test_bags_say_which_arguments_cannot_be(change, error, words):
    with pytest.raises(error, match=words):
        F.embedding_bag(**({"input": tensor([[0, 1]]), "weight": TABLE, "mode": "sum"} | change))


def test_empty_bags_are_part_of_the_graph():
    table = TABLE.clone().requires_grad_()
    for mode in ("sum", "mean", "max"):
        F.embedding_bag(tensor([1]), table, tensor([0]), mode=mode, padding_idx=1).sum().backward()
    assert not table.grad.any()


def test_tables_of_no_columns_have_sparse_gradients():
    for rows in (0, 10):
        table = nn.Embedding(rows, 0, sparse=True)
        table(tensor([] if rows == 0 else [1, 2], dtype=rushlight.int64)).sum().backward()
        assert table.weight.grad.is_sparse
        assert table.weight.grad.shape == (rows, 0)


def test_frozen_tables_may_hold_integers():
    table = nn.Embedding.from_pretrained(tensor([[1, 2], [3, 4]]))
    assert table(tensor([1])).tolist() == [[3, 4]]
    assert not table.weight.requires_grad


def test_shortened_rows_keep_their_tangents():
    from rushlight.autograd import forward_ad
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(TABLE * 2, rushlight.ones(6, 2))
        tangent = forward_ad.unpack_dual(F.embedding(tensor([0, 2]), dual, max_norm=1.0)).tangent
    assert tangent.tolist() == [[1.0, 1.0], [1.0, 1.0]]


# -- backward hooks ------------------------------------------------------------------------------------------------------

def test_results_that_nobody_differentiates_are_none_to_hooks():
    module, seen = hooked(lambda a, b: (a * 2, "no tensor", b * 3))
    a, b = leaf(), leaf()
    module(a, b)[0].sum().backward()
    [(grad_input, grad_output)] = seen
    assert [g.tolist() for g in grad_input] == [[2.0, 2.0], [0.0, 0.0]]
    assert grad_output[0].tolist() == [1.0, 1.0]
    assert grad_output[1:] == (None, None)
    assert b.grad.tolist() == [0.0, 0.0]


def test_named_tuples_pass_hooks():
    module, seen = hooked(lambda a: Pair(a * 2, a * 3))
    made = module(leaf())
    made.second.sum().backward()
    assert type(made) is Pair
    assert seen[0][0][0].tolist() == [3.0, 3.0]


def test_what_has_no_gradient_has_none_inside_a_hooked_module():
    module, _ = hooked(lambda a, b: (a * 2, b * 3, b.requires_grad))
    made = module(leaf(), rushlight.ones(2))
    assert made[0].requires_grad
    assert not made[1].requires_grad
    assert made[2] is False


def test_hooks_are_not_called_for_other_results_than_tensors():
    module, seen = hooked(lambda a: {"x": a * 2})
    x = leaf()
    with pytest.warns(UserWarning, match="should be a Tensor or a tuple of Tensors"):
        made = module(x)
    made["x"].sum().backward()
    assert not seen
    assert x.grad.tolist() == [2.0, 2.0]


def test_hooks_that_return_another_number_of_gradients():
    module, _ = hooked(lambda a, b: a * b, answer=(leaf(),))
    with pytest.raises(RuntimeError, match="invalid number of grad_input, got 1, but expected 2"):
        module(leaf(), leaf()).sum().backward()
    module = Calls(lambda a: a * 2)
    module.register_full_backward_pre_hook(lambda m, grads: (*grads, *grads))
    with pytest.raises(RuntimeError, match="invalid number of grad_output, got 2, but expected 1"):
        module(leaf()).sum().backward()
    module, _ = hooked(lambda a: a * leaf(), answer=(leaf(),))
    with pytest.raises(RuntimeError, match="where no input requires gradient"):
        module(rushlight.ones(2)).sum().backward()


def test_an_input_that_is_handed_back_may_have_no_gradient():
    class Keep(rushlight.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.mark_non_differentiable(b)
            return a, b

        @staticmethod
        def backward(ctx, a, b):
            return a, None
    a, b = Keep.apply(leaf(), leaf())
    assert a.requires_grad
    assert not b.requires_grad


# -- others --------------------------------------------------------------------------------------------------------------

def test_complex_weights_over_their_largest_singular_value():
    layer = nn.Linear(2, 2, dtype=rushlight.complex64)
    with rushlight.no_grad():
        diagonal = tensor([0.3 + 0.4j, 0.1j])
        layer.weight = nn.Parameter(rushlight.diag(diagonal))
        nn.utils.parametrizations.spectral_norm(layer)
        assert rushlight.allclose(layer.weight, rushlight.diag(diagonal / 0.5), atol=1e-5)


def test_pools_of_nothing():
    for n, average, unpool in ((1, F.adaptive_avg_pool1d, F.max_unpool1d), (2, F.adaptive_avg_pool2d, F.max_unpool2d)):
        assert average(rushlight.ones(1, 0, *(4,) * n), 2).shape == (1, 0, *(2,) * n)
        none = rushlight.ones(0, 3, *(4,) * n)
        assert unpool(none, none.long(), 2).shape == (0, 3, *(8,) * n)


def test_contexts_of_backends_are_decorators():
    @rushlight.backends.cudnn.flags(enabled=False)
    def plain():
        return 1

    @rushlight.backends.cuda.sdp_kernel(enable_flash=False)
    def attended():
        return 2
    assert (plain(), plain(), attended()) == (1, 1, 2)


def test_names_that_stand_in_two_places():
    assert F.grad is nn.grad
    assert rushlight.chalf is rushlight.complex32
    assert rushlight.utils.data.DataLoader[int].__origin__ is rushlight.utils.data.DataLoader


# -- schedules, files ----------------------------------------------------------------------------------------------------

def cyclic(optimizer, low, high):
    return rushlight.optim.lr_scheduler.CyclicLR(optimizer, low, high, base_momentum=low, max_momentum=high)


def one_cycle(optimizer, low, high):
    return rushlight.optim.lr_scheduler.OneCycleLR(optimizer, high, 9, base_momentum=low, max_momentum=high)


def averaged(optimizer, low, high):
    return rushlight.optim.swa_utils.SWALR(optimizer, low)


def in_sequence(optimizer, low, high):
    parts = [rushlight.optim.lr_scheduler.ExponentialLR(optimizer, 0.5) for _ in range(2)]
    return rushlight.optim.lr_scheduler.SequentialLR(optimizer, parts, [2])


@pytest.mark.parametrize("schedule", [cyclic, one_cycle, averaged, in_sequence])
def test_schedules_keep_their_own_copies_of_tensors(schedule):
    rates = []
    for write in (False, True):
        lr, low, high = tensor(0.5), tensor(0.1), tensor(0.9)
        optimizer = rushlight.optim.SGD([nn.Parameter(rushlight.ones(1))], lr=lr, momentum=0.5)
        made = schedule(optimizer, low, high)
        assert optimizer.param_groups[0]["lr"] is lr
        seen = []
        for _ in range(4):
            if write:
                low.mul_(0.5)
                high.mul_(0.5)
            optimizer.step()
            made.step()
            seen.append(float(optimizer.param_groups[0]["lr"]))
        rates.append(seen)
    assert rates[0] == pytest.approx(rates[1])


def test_a_file_that_is_still_open_can_be_loaded_by_its_name(tmp_path):
    with open(tmp_path / "weights.pt", "wb") as file:
        rushlight.save({"a": tensor([1, 2])}, file)
        assert rushlight.load(file.name, mmap=True)["a"].tolist() == [1, 2]


def test_older_files_load_from_objects_that_only_read_and_seek():
    import io
    file = io.BytesIO()
    rushlight.save(tensor([1, 2]), file, _use_new_zipfile_serialization=False)
    file.seek(0)

    class Plain:
        read, readline, seek, tell = file.read, file.readline, file.seek, file.tell
    assert rushlight.load(Plain()).tolist() == [1, 2]


@pytest.mark.parametrize("kind", [
    "ASGD", "Adadelta", "Adagrad", "Adam", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD"])
def test_two_steps_of_each_optimizer_can_be_differentiated(kind):
    def trained(p, g):
        p = p.clone()
        optimizer = getattr(rushlight.optim, kind)([p], lr=0.1, differentiable=True)
        for _ in range(2):
            p.grad = g * p.clone()
            optimizer.step()
        return p
    p, g = (rushlight.rand(3, dtype=rushlight.float64) + 0.5 for _ in range(2))
    assert rushlight.autograd.gradcheck(trained, (p.requires_grad_(), g.requires_grad_()))


# -- distributions -------------------------------------------------------------------------------------------------------

def test_counts_of_even_chances_have_a_slope():
    from rushlight.distributions import Binomial
    for k in (0.0, 1.0, 2.0):
        logits = tensor(0.0, requires_grad=True)
        Binomial(2, logits=logits).log_prob(tensor(k)).backward()
        assert logits.grad.item() == k - 1.0
    assert Binomial(2, logits=tensor([-100.0, 100.0])).log_prob(tensor([0.0, 2.0])).tolist() == [0.0, 0.0]


def test_lazy_properties_are_part_of_the_graph():
    x = leaf()

    class Lazy:
        @rushlight.distributions.utils.lazy_property
        def doubled(self):
            return x * 2
    one = Lazy()
    with rushlight.no_grad():
        assert one.doubled.requires_grad
    assert one.doubled is one.doubled


def test_gammas_take_numbers():
    assert rushlight.distributions.Gamma(tensor(1.0), tensor(2.0)).log_prob(0) == rushlight.log(tensor(2.0))


def test_densities_of_wisharts_have_gradients_in_whole_matrices():
    from rushlight.distributions import Wishart
    x = (3 * rushlight.eye(3) + 0.1).double().requires_grad_()
    d = Wishart(tensor(7.0).double(), covariance_matrix=rushlight.eye(3).double(), validate_args=False)
    assert rushlight.autograd.gradcheck(d.log_prob, (x,))


def test_transforms_to_intervals_of_tensors():
    from rushlight.distributions import biject_to, constraints, transform_to
    low, high = tensor([0.0, 1.0]), tensor([1.0, 3.0])
    for registry in (biject_to, transform_to):
        assert registry(constraints.interval(low, high))(rushlight.zeros(2)).tolist() == [0.5, 2.0]
        assert registry(constraints.greater_than(low))(rushlight.zeros(2)).tolist() == [1.0, 2.0]


# -- norms ---------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", [rushlight.float16, rushlight.bfloat16])
@pytest.mark.parametrize("norm", [nn.BatchNorm2d(4), nn.BatchNorm2d(4).eval(), nn.GroupNorm(2, 4), nn.LayerNorm(3),
                                  nn.InstanceNorm2d(4, affine=True)])
def test_norms_of_halves_beside_float32_weights(norm, dtype):
    x = rushlight.randn(2, 4, 3, 3).to(dtype).requires_grad_()
    made, whole = norm(x), norm(x.detach().float())
    assert made.dtype is dtype
    assert rushlight.equal(made, whole.to(dtype))
    made.sum().backward()
    assert x.grad.dtype is dtype
    assert norm.weight.grad.dtype is rushlight.float32
