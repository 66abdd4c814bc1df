"""What libraries built on torch ask for (gpytorch, geoopt, pyro and others), and no other test did."""

from __future__ import annotations

import copy
import pickle

from tests.support.programs import Programs, leaf, outcome

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

    class Own(torch.distributions.MultivariateNormal):
        def __init__(self, loc):                  # as gpytorch's, which keeps the covariance in a way of its own
            self.loc, self._validate_args = loc, False
            super(torch.distributions.MultivariateNormal, self).__init__(loc.shape[:-1], loc.shape[-1:], validate_args=False)

    lazy = Lazy(torch.zeros(2), scale_tril=torch.eye(2))
    try:
        message = lazy.asked
    except AttributeError as error:
        message = "missing" in str(error)
    return [Shifted(probs=torch.tensor(0.25)).logits, lazy.covariance_matrix, message,
            list(Own(torch.zeros(3, 2)).batch_shape)]


@run
def sparse_times_dense_by_its_old_name(torch):
    a = torch.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse()
    return [torch.dsmm(a, torch.tensor([[1.0, 2.0], [3.0, 4.0]]))]


@run
def a_tensor_of_one_number_is_a_dimension_or_a_size(torch):
    x, d, n = torch.arange(6.0).view(2, 3), torch.tensor(1), torch.tensor(6)
    return [x.sum(d), x.mean(d), x.amax(d), x.var(d), x.prod(d), x.norm(2, d), x.logsumexp(d), x.flip(d), x.squeeze(d),
            x.any(d), x.all(d), x.nansum(d), torch.count_nonzero(x, d), x.softmax(d), x.view(n), x.reshape(n),
            torch.ones(1).expand(n), x.roll(d, torch.tensor(0)), x.movedim(d, torch.tensor(0)), torch.fft.fftn(x, dim=(d,))]


@run
def sets_of_the_users_own_have_attributes_of_the_class(torch):
    class _Below(torch.distributions.constraints.Constraint):
        event_dim, is_discrete = 1, True

        def __init__(self, bound):
            self.bound = bound

        def check(self, value):
            return (value < self.bound).all(-1)

    c = _Below(3)
    both = torch.distributions.constraints.independent(c, 1)
    return [repr(c), c.event_dim, c.is_discrete, c.check(torch.ones(2)), both.event_dim, both.check(torch.ones(2, 2))]


@run
def distributions_of_the_users_own_expand_as_torchs_notes_say(torch):
    dist = torch.distributions

    class Shifted(dist.Normal):
        def __init__(self, loc, scale, shift):
            self.shift = torch.as_tensor(shift)
            super().__init__(loc, scale)

        def expand(self, batch_shape, _instance=None):
            new = self._get_checked_instance(Shifted, _instance)
            new.shift = self.shift.expand(batch_shape)
            return super().expand(batch_shape, _instance=new)

    class Plain(dist.Normal):
        def __init__(self, loc):
            super().__init__(loc, 1.0)

        def expand(self, batch_shape, _instance=None):
            new = self._get_checked_instance(dist.Normal, _instance)
            return super().expand(batch_shape, _instance=new)

    class Log(dist.TransformedDistribution):
        def __init__(self, loc):
            super().__init__(dist.Normal(loc, 1.0), [dist.ExpTransform()])
            self.loc = torch.as_tensor(loc)

        def expand(self, batch_shape, _instance=None):
            return super().expand(batch_shape, _instance=self._get_checked_instance(Log, _instance))

    s = Shifted(torch.zeros(3), 1.0, 2.0).expand((2, 3))
    log = Log(torch.tensor(0.5)).expand((4,))
    none = dist.Normal(torch.tensor(0.0), 1.0).expand(())
    return [type(s).__name__, list(s.batch_shape), s.loc, s.shift, s.log_prob(torch.zeros(3)),
            outcome(Plain(torch.tensor(0.0)).expand, (2,)), list(log.batch_shape), log.log_prob(torch.ones(4)),
            list(none.batch_shape), none.log_prob(torch.tensor(1.0))]


@run
def sobol_points_are_torchs(torch):
    engine = torch.quasirandom.SobolEngine
    e, many = engine(5), engine(300)
    made = [e.draw(3), e.draw(1), e.draw(20), e.reset().draw(1), e.draw(7, dtype=torch.float64), many.draw_base2(3),
            repr(e), outcome(engine, 0), outcome(engine(2).fast_forward(3).draw_base2, 2)]
    for seed in (0, 7):
        s = engine(6, scramble=True, seed=seed)
        made += [repr(s), s.draw(9), s.fast_forward(1000).draw(5, dtype=torch.float64), s.num_generated]
    torch.manual_seed(3)
    return [*made, engine(3, True).draw(2), torch.rand(2), engine(3).fast_forward(1).draw(2),
            engine(3).fast_forward(0).draw(2), engine(2).draw(4, out=torch.empty(0))]


@run
def prefixes_of_state_dicts_are_taken_away(torch):
    inner = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.BatchNorm1d(1))
    outer = torch.nn.Module()
    outer.module = inner
    state = outer.state_dict()
    torch.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
    inner.load_state_dict(state)
    return [list(state), [list(item) for item in state._metadata.items()]]


@run
def each_tensor_has_a_number_of_its_own(torch):
    p = torch.nn.Parameter(torch.ones(1))
    held = {"p": p}
    return [p._cdata == held["p"]._cdata, p._cdata == torch.ones(1)._cdata, isinstance(p._cdata, int)]


def twice(torch, make):
    """The gradient after two backward passes through one result, or the name of the error."""
    w = torch.arange(1.0, 5.0, dtype=torch.float64).view(2, 2).requires_grad_()
    y = make(w)
    y.backward(torch.ones_like(y))
    return [outcome(y.backward, torch.ones_like(y)), w.grad]


@run
def what_saved_no_array_runs_backward_again(torch):
    b = torch.arange(4.0, dtype=torch.float64).view(2, 2)
    makes = [lambda w: w + b, lambda w: w - b, lambda w: 1 - w, lambda w: -w, lambda w: w.sum(), lambda w: w.sum(0),
             lambda w: w.mean(), lambda w: w.mean(1), lambda w: w.view(4), lambda w: w.t(), lambda w: w.expand(3, 2, 2),
             lambda w: torch.cat([w, w]), lambda w: torch.stack([w, w]), lambda w: w[1:], lambda w: w[0],
             lambda w: w.float(), lambda w: w.permute(1, 0), lambda w: w.unsqueeze(0),
             lambda w: torch.nn.functional.pad(w, (1, 1)),
             lambda w: w.cumsum(0), lambda w: w.flip(0), lambda w: w.roll(1), lambda w: w.repeat(2, 1),
             lambda w: w.split(1)[0], lambda w: w.unbind(0)[1], lambda w: w.tril(), lambda w: w.diagonal(),
             lambda w: w.t().reshape(-1),
             lambda w: w + torch.ones(2, 1, 2), lambda w: w.clone(), lambda w: w * b, lambda w: w.exp(), lambda w: w @ b,
             lambda w: w ** 2, lambda w: w.relu(), lambda w: w.amax(0), lambda w: torch.where(b > 1, w, b)]
    return [twice(torch, make) for make in makes]


@run
def attacks_ask_one_graph_for_gradients_several_times(torch):
    x = torch.rand(2, 3, requires_grad=True)
    near = x + 0.5 * torch.ones(2, 3)             # nothing in it is freed
    found = sum(torch.autograd.grad((near / 2 ** i).pow(2).sum(), x)[0] for i in range(3))
    return [torch.allclose(found, 2 * near * (1 + 1 / 4 + 1 / 16))]


test_program = run.test()
