"""What libraries built on torch ask for (gpytorch, geoopt, pyro and others), and no other test did."""

from __future__ import annotations

import copy
import pickle

from programs import Programs, leaf, outcome

run = Programs()


@run
def results_are_pickled_as_leaves(torch):
    y = leaf(torch, 1.0, 2.0) * 2
    again, same = pickle.loads(pickle.dumps(y)), copy.copy(y)
    return [again, again.requires_grad, again.is_leaf, same, outcome(copy.deepcopy, y)]


@run
def parameters_of_classes_whose_new_takes_more(torch):
    class Marked(torch.nn.Parameter):
        def __new__(cls, data, mark=None, requires_grad=True):
            made = super().__new__(cls, data, requires_grad)
            made.mark = mark
            return made

    class Same(torch.nn.Parameter):
        def __new__(cls, data, mark=None, requires_grad=True):
            made = torch.Tensor._make_subclass(cls, data, requires_grad)
            made.mark = mark
            return made

    made = [Marked(torch.ones(2), "a"), Marked(torch.ones(2), mark="b", requires_grad=False), Same(torch.ones(2), "c"),
            Same(torch.ones(2), mark="d")]
    return [[p.detach(), p.mark, p.requires_grad, type(p).__name__] for p in made] + [
        outcome(torch.nn.Parameter, torch.ones(2), True, 3), isinstance(made[0], torch.nn.Parameter)]


@run
def parts_of_complex_numbers_can_be_set(torch):
    z, x, w = torch.zeros(2, dtype=torch.complex64), torch.zeros(2), leaf(torch, 1.0, 2.0)
    z.real, z.imag, x.real = torch.ones(2), 3, torch.tensor([2.0, 3.0])
    c = torch.zeros(2, dtype=torch.complex128)
    c.imag = w * 2
    c.abs().sum().backward()
    return [z, x, w.grad, outcome(setattr, x, "imag", 1)]


@run
def normal_vectors_keep_the_factor_that_was_given(torch):
    d = torch.distributions.MultivariateNormal(torch.zeros(3, 2), torch.eye(2) * 4)
    w = torch.distributions.Wishart(torch.tensor([3.0, 4.0]), torch.eye(2))
    more = d.expand((4, 3))
    return [d._unbroadcasted_scale_tril, d.scale_tril, d.variance, d.entropy(), d.precision_matrix,
            list(more.scale_tril.shape), more.entropy(), w._unbroadcasted_scale_tril, w.variance, w.entropy(),
            w.log_prob(torch.eye(2)), w.scale_tril]


@run
def what_a_distribution_computes_is_there_for_classes_made_of_it(torch):
    class Shifted(torch.distributions.Bernoulli):
        @torch.distributions.utils.lazy_property
        def logits(self):
            return super().logits + 1

    class Lazy(torch.distributions.MultivariateNormal):
        @property
        def asked(self):
            return self.missing

        @torch.distributions.utils.lazy_property
        def covariance_matrix(self):
            return super().covariance_matrix * 2

    lazy = Lazy(torch.zeros(2), scale_tril=torch.eye(2))
    try:
        message = lazy.asked
    except AttributeError as error:
        message = "missing" in str(error)
    return [Shifted(probs=torch.tensor(0.25)).logits, lazy.covariance_matrix, message]


@run
def sparse_times_dense_by_its_old_name(torch):
    a = torch.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse()
    return [torch.dsmm(a, torch.tensor([[1.0, 2.0], [3.0, 4.0]]))]


test_program = run.test()
