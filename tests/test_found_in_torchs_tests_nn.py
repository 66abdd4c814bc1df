"""What torch's own tests ask of layers, and no other test did."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

import rushlight
from tests.support.programs import Programs, outcome

run = Programs()


@run
def cells_of_no_hidden_numbers(torch):
    def of(kind):
        x, cell = torch.ones(2, 3, requires_grad=True), getattr(torch.nn, kind)(3, 0)
        found = cell(x)
        first = found[0] if kind == "LSTMCell" else found
        first.sum().backward()
        return [first.detach(), x.grad]
    return [of(kind) for kind in ("RNNCell", "GRUCell", "LSTMCell")]


@run
def layers_refuse_images_of_nothing(torch):
    f, zeros = torch.nn.functional, torch.zeros
    shapes = [(3, 0, 4), (0, 3, 4), (0, 4), (2, 3, 0), (0, 0, 4)]
    pads = [(shape, mode) for shape in shapes for mode in ("reflect", "replicate")]
    return [*[outcome(f.pad, zeros(shape), (2, 2), mode=mode) for shape, mode in pads],
            *[outcome(f.pad, zeros(shape), (2, 2), mode="circular") for shape in [(3, 0, 4), (0, 3, 4)]],
            *[outcome(f.unfold, zeros(shape), 2) for shape in [(1, 0, 5, 5), (0, 2, 5, 5), (0, 5, 5)]],
            *[outcome(f.fold, zeros(shape), (4, 5), 2) for shape in [(1, 0, 12), (0, 4, 12), (0, 12)]],
            *[outcome(f.interpolate, zeros(shape), 2) for shape in [(2, 0, 4, 4), (0, 2, 4, 4), (2, 0, 4), (2, 1, 0)]],
            *[outcome(f.group_norm, zeros(shape), groups) for shape, groups in [((1, 4), 4), ((2, 4), 4), ((1, 4), 2)]]]


@run
def sizes_are_whole_numbers(torch):
    f, x = torch.nn.functional, torch.zeros(1, 1, 4)
    sizes = [2.0, (2.0,), torch.tensor(2.0), "a", (None,), 2, torch.tensor(2), (torch.tensor(2),), np.int64(2),
             (np.int32(3),)]
    ratios = [[0.5, 0.5, 0.6], (0.5, 0.25)]
    return [*[outcome(f.interpolate, x, size=size) for size in sizes],
            *[outcome(f.fractional_max_pool2d, torch.zeros(1, 1, 8, 8), 2, output_ratio=r) for r in ratios]]


@run
def the_order_of_where_a_module_goes(torch):
    cpu, double, like = torch.device("cpu"), torch.float64, torch.zeros(1)
    orders = [(cpu, True), (None, True), ("cpu", double, True), (double, True), (like, True), (like, True, True),
              (double, cpu), (like, double), (double, True, True), (cpu, cpu), (None,), (), (None, double),
              (None, None, True), (torch.long,)]
    def where(*args, **kwargs):
        return str(torch.nn.Linear(1, 1).to(*args, **kwargs).weight.dtype)
    return [*[outcome(where, *order) for order in orders], *[outcome(where, "cpu", copy=copy) for copy in (True, False)]]


@pytest.mark.parametrize(("words", "call"), [
    ("0D or 1D target tensor expected, multi-target not supported",
     lambda x: rushlight.nn.functional.cosine_embedding_loss(x, x, x)),
    ("both arguments to linear need to be at least 1D, but they are 0D and 2D",
     lambda x: rushlight.nn.Linear(1, 1)(rushlight.tensor(1.0))),
    ("smaller than num_classes", lambda x: rushlight.nn.functional.one_hot(x.long(), -2)),
    ("Expected num groups to be greater than 0, got -2", lambda x: rushlight.nn.functional.group_norm(x, -2))])
def test_layers_say_what_they_expected(words, call):
    with pytest.raises(RuntimeError, match=words):
        call(rushlight.zeros(2, 4))


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
def test_padding_by_nothing_is_a_tensor_of_its_own(mode):
    x = rushlight.zeros(1, 1, 4, 4)
    rushlight.nn.functional.pad(x, (0, 0, 0, 0), mode=mode).fill_(4)
    assert not x.any()


def test_storages_say_whether_they_are_shared():
    x = rushlight.zeros(2)
    assert [x.storage().is_shared(), x.untyped_storage().is_shared()] == [False, False]
    x.share_memory_()
    assert [x.storage().is_shared(), x.untyped_storage().is_shared()] == [True, True]


def test_the_names_of_all_modules(torch):
    ours, theirs = set(rushlight.nn.modules.__all__), set(torch.nn.modules.__all__)
    assert ours <= theirs
    assert theirs - ours <= {"Container", "LinearCrossEntropyOptions"}         # an old name, and a new one's options
    found = {}
    exec("from rushlight.nn.modules import *", found)
    assert found["Conv2d"] is rushlight.nn.Conv2d


@run
def writes_to_indices_that_a_gradient_needs_are_noticed(torch):
    f, a = torch.nn.functional, torch.tensor([[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 4.0]], dtype=torch.float64)
    calls = [lambda x: x.max(1), lambda x: x.sort(1), lambda x: x.topk(1, 1), lambda x: x.kthvalue(3, 1),
             lambda x: x.cummax(1), lambda x: f.max_pool1d(x, 2, return_indices=True), torch.linalg.svd,
             lambda x: f.adaptive_max_pool2d(x[None], 2, return_indices=True), lambda x: torch.linalg.qr(x)[::-1]]

    def written(call, after):
        x = a.clone().requires_grad_()
        found = call(x)
        used, other = found[0], found[1] if after else found[1].clone()
        if after:
            used.sum().backward()
        other.zero_()
        if not after:
            used.sum().backward()
        return x.grad

    def too_early(call):
        found = call(a.clone().requires_grad_())
        found[1].zero_()
        found[0].sum().backward()
    return [outcome(too_early, call) for call in calls] + [written(call, after) for call in calls for after in (True, False)]


@run
def none_is_no_tensor(torch):
    f, x = torch.nn.functional, torch.ones(2, 2)
    calls = [torch.sin, torch.sum, torch.max, torch.zeros_like, f.relu, f.gelu, f.elu, f.dropout, torch.nn.Linear(2, 2),
             torch.nn.Conv2d(1, 1, 1), torch.nn.MaxPool2d(2), torch.nn.LayerNorm(2), torch.nn.BatchNorm1d(2)]
    return [outcome(call, None) for call in calls] + [
        outcome(torch.matmul, x, None), outcome(torch.matmul, [1.0], x), outcome(f.cross_entropy, None, x)]


@run
def a_lazy_parameter_takes_one_number_for_its_shape(torch):
    waiting = torch.nn.parameter.UninitializedParameter()
    waiting.materialize(3)
    return list(waiting.shape)


@run
def masks_of_whole_numbers_prune(torch):
    prune = import_module(f"{torch.__name__}.nn.utils.prune")
    chain, method = prune.PruningContainer(), prune.L1Unstructured(amount=2)
    chain._tensor_name = method._tensor_name = "weight"
    chain.add_pruning_method(method)
    return chain.compute_mask(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[1, 1], [0, 1]]))


@run
def distributions_far_from_the_middle_and_of_no_sense(torch):
    d = torch.distributions

    def continuous(logit, x):
        logits = torch.tensor([logit], dtype=torch.float64, requires_grad=True)
        found = d.ContinuousBernoulli(logits=logits).log_prob(torch.tensor([x], dtype=torch.float64))
        found.sum().backward()
        return [found.detach(), logits.grad]
    kinds = [d.Binomial, d.Categorical, d.Multinomial, d.Uniform, d.Pareto, d.GeneralizedPareto]
    return [*[continuous(sign * size, x) for size in (1e308, 800.0, 30.0) for sign in (1, -1) for x in (0.0, 0.25, 1.0)],
            *[outcome(lambda x: d.Chi2(x, validate_args=True), torch.tensor(df)) for df in ([0.0, 0.0], [-2.0, 1.0])],
            *[[kind.support.event_dim, kind.support.is_discrete] for kind in kinds],
            *[outcome(getattr, kind.support, "event_dim") for kind in (d.Independent, d.MixtureSameFamily)]]


@run
def numbers_of_double_precision_keep_it(torch):
    types = [torch.DoubleTensor([1e300, 0.1]), torch.DoubleTensor((0.1,)), torch.LongTensor([2**53 + 1])]
    sparse = [torch.sparse_coo_tensor([[0]], [0.1], (2,), dtype=torch.float64),
              torch.sparse_csr_tensor([0, 1], [0], [0.1], dtype=torch.float64)]
    return [t.tolist() for t in types] + [t.to_dense().flatten().tolist() for t in sparse]


@run
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
        outcome(gradient, "LSTM", lambda t: t.add_(1))]


test_programs = run.test()


def test_return_indices_may_be_given_by_position():
    """`max_pool2d_with_indices(x, 2, 2, 0, 1, False, False)` was a TypeError: two values for return_indices."""
    F = rushlight.nn.functional
    for n in (1, 2, 3):
        x = rushlight.rand(1, 1, *[4] * n)
        for return_indices in (False, True):
            values, where = getattr(F, f"max_pool{n}d_with_indices")(x, 2, 2, 0, 1, False, return_indices)
            assert x.flatten()[where].equal(values)
            values, where = getattr(F, f"adaptive_max_pool{n}d_with_indices")(x, 3, return_indices)
            assert x.flatten()[where].equal(values)
