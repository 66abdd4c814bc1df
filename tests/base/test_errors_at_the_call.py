"""An error of a function that is called directly, in any folder: one traceback, which ends at the user's line, and a
message that names the line."""

import traceback
import warnings

import pytest

import rushlight
import rushlight.distributions
import rushlight.func
import rushlight.fx
import rushlight.nn.utils.parametrize
import rushlight.nn.utils.prune
import rushlight.nn.utils.rnn
import rushlight.profiler
import rushlight.sparse
import rushlight.utils.checkpoint
import rushlight.utils.data
import rushlight.vision
from rushlight import distributions, nn, optim
from rushlight.nn import functional as F

SCOPE = {"rushlight": rushlight, "t": rushlight.ones(2, 3), "nn": nn, "F": F, "D": distributions, "optim": optim}
CALLS = {
    "base": [
        'rushlight.device("tpu?")',
        "rushlight.can_cast(1, 2)",
        "rushlight.finfo(rushlight.int32)",
        "rushlight.set_default_dtype(rushlight.int32)",
        "rushlight.promote_types(1, 2)",
    ],
    "creation": ['rushlight.zeros("a")', "rushlight.full(2, 1)", "rushlight.arange(0, 1, 0)"],
    "ops": [
        't.sum("a")',
        "t.view(-2)",
        "t.reshape(4)",
        't.quantile("a")',
        "rushlight.exp(t, out=1)",
        "t.exp_(dim=1)",
        "rushlight.hstack([1])",
        "t.cumsum(5)",
        "rushlight.linalg.qr(t.requires_grad_(), mode='r')[1].sum().backward()",
        'rushlight.fft.fft(t, "a")',
        't.masked_fill(1, "a")',
        "iter(rushlight.tensor(1))",
        "rushlight.cond(1, 2, 3)",
    ],
    "random": [
        "rushlight.randperm(1.5)",
        "rushlight.randint(3, 1, (2,))",
        "rushlight.multinomial(rushlight.tensor([-1.0, 2.0]), 1)",
        "rushlight.empty(2).uniform_(2, 1)",
        "rushlight.empty(2).exponential_(-1)",
        "rushlight.normal(0.0, -1.0, (2,))",
        "rushlight.bernoulli(rushlight.tensor([2.0]))",
    ],
    "nn": [
        'nn.Linear("a", 2)',
        "nn.Conv2d(3, 4, 3, groups=2)",
        "nn.LSTM(2, 3, dropout=2)",
        'nn.Dropout("a")',
        "nn.Module()(t)",
        "nn.Module().add_module('x', 1)",
        "nn.ModuleList([1])",
        "nn.Sequential(nn.ReLU())[3]",
        "nn.ParameterList([1])[4]",
        'nn.Linear(1, 1).get_submodule("x.y")',
        "nn.MultiheadAttention(5, 2)",
        "nn.init.xavier_uniform_(rushlight.ones(2))",
        "nn.init.calculate_gain('a')",
        "nn.utils.clip_grad_norm_(1, 1.0)",
        "nn.utils.rnn.pad_sequence(1)",
        "nn.utils.rnn.pack_padded_sequence(t, [0, 1])",
        "nn.utils.prune.l1_unstructured(nn.Linear(2, 2), 'weight', -1)",
        "nn.utils.parametrize.register_parametrization(nn.Linear(1, 1), 'x', nn.ReLU())",
        "nn.utils.parameters_to_vector([])",
        'F.dropout(t, "a")',
        "F.max_pool2d(t, 1, 'a')",
        "F.linear(t, t, [1])",
        "F.one_hot(t)",
    ],
    "optim": [
        'optim.SGD([t], lr="a")',
        "optim.Adam([t], betas=(2, 0))",
        "optim.SGD([])",
        "optim.lr_scheduler.StepLR(1, 1)",
    ],
    "distributions": [
        "D.Normal(0.0, -1.0)",
        "D.Categorical()",
        "D.Bernoulli()",
        "D.MultivariateNormal(rushlight.zeros(2))",
        "D.kl_divergence(D.Normal(0.0, 1.0), D.Poisson(1.0))",
        "D.Normal(0.0, 1.0).expand((2,)).log_prob(rushlight.ones(3))",
        "D.Poisson(1.0).icdf(0.5)",
    ],
    "serialization": [
        "rushlight.save(1, None)",
        'rushlight.load("/no/such/folder", map_location="cuda")',
        'rushlight.hub.load("a", "b", source="c")',
    ],
    "utils": [
        "rushlight.utils.data.DataLoader([1], batch_size=-1)",
        "rushlight.utils.data.TensorDataset(rushlight.ones(2), rushlight.ones(3))",
        "rushlight.utils.data.random_split([1, 2], [5])",
        "rushlight.utils.data.IterableDataset().__iter__()",
        "rushlight.testing.assert_close(1, 'a')",
    ],
    "autograd": [
        "rushlight.autograd.Function.forward(1)",
        "rushlight.autograd.grad(t, t)",
        "rushlight.autograd.Variable(1)",
    ],
    "func": ["rushlight.func.vmap(lambda x: x)(1)", "rushlight.func.grad(lambda x: x)(t)"],
    "fx": ["rushlight.fx.symbolic_trace(lambda x: x if x else 1)"],
    "sparse": ["rushlight.sparse_coo_tensor([[0]], [1.0], (1,)).numpy()", "t.coalesce()", "t.to_sparse_bsr(1)"],
    "jit": ["rushlight.jit.load('x')", "rushlight.export.load('x')", "rushlight.jit.save(1, 2)"],
    "vision": ["rushlight.vision.transforms.Resize(-1, 2, 3, 4, 5)(t)"],
}
# Errors whose text cannot hold the line: Python's own, of arguments that do not fit a signature, and classes that carry
# more than a text.
WITHOUT_LINE = ("missing", "positional argument", "No such file", "has no attribute")


def outcome(call):
    """The error of a call that stands alone on a line, as a program of the user's."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            eval(call, dict(SCOPE))
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize("folder", CALLS)
def test_traceback_ends_at_the_users_line(folder):
    for call in CALLS[folder]:
        error = outcome(call)
        assert error is not None, call
        frames = traceback.extract_tb(error.__traceback__)
        assert [f.filename for f in frames][-1] == "<string>", (call, str(error))
        assert error.__cause__ is None, call
        text = "".join(traceback.format_exception(error))
        assert text.count("Traceback (most recent call last)") == 1, call
        if not any(part in str(error) for part in WITHOUT_LINE):
            assert "\n  at: " in str(error), (call, str(error))
            assert str(error).count("\n  at: ") == 1, (call, str(error))
