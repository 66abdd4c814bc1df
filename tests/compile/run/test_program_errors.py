"""What happens in a compiled function when the numbers of a later call are wrong: an index too large, a singular
matrix."""

import copy

import pytest

import rushlight
from rushlight import nn
from rushlight.nn import functional as F


def message(function, *args):
    """The error's kind and text; `at:` in it names this file's line, in a program as in eager."""
    with pytest.raises((IndexError, RuntimeError)) as caught:
        function(*args)
    return caught.type, str(caught.value)


def gathered(x, index):
    return x.gather(1, index) * 2


def singular(x, b):
    return rushlight.linalg.solve(x, b) + 1


def classes(x, target):
    return F.cross_entropy(x * 2, target)


RIGHT = rushlight.tensor([[0, 1], [1, 2]])
CASES = {
    "index": (gathered, (rushlight.ones(2, 3), RIGHT), (rushlight.ones(2, 3), RIGHT + 4)),
    "matrix": (singular, (rushlight.eye(3), rushlight.ones(3)), (rushlight.zeros(3, 3), rushlight.ones(3))),
    "class": (
        classes,
        (rushlight.ones(2, 3), rushlight.tensor([0, 2])),
        (rushlight.ones(2, 3), rushlight.tensor([0, 7])),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_error_is_eagers(name):
    function, right, wrong = CASES[name]
    compiled = rushlight.compile(function)
    for _ in range(5):
        compiled(*right)
    assert compiled.programs
    for _ in range(2):
        assert message(compiled, *wrong) == message(function, *wrong)
        rushlight.testing.assert_close(compiled(*right), function(*right))
    assert compiled.programs


def test_the_function_catches_it():
    def careful(x, index):
        try:
            return x.gather(1, index) * 2
        except RuntimeError:
            return x.sum()

    compiled = rushlight.compile(careful)
    x = rushlight.ones(2, 3)
    for _ in range(5):
        compiled(x, RIGHT)
    assert compiled.programs
    assert compiled(x, RIGHT + 4).item() == 6
    assert compiled(x, RIGHT).tolist() == [[2, 2], [2, 2]]


def trained(wrap, batches):
    """The parameters, the optimizer's state and the errors after some batches, of which some are wrong."""
    rushlight.manual_seed(0)
    model = nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 3))
    opt = rushlight.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step(ids, target):
        opt.zero_grad()
        loss = F.cross_entropy(model(ids), target)
        loss.backward()
        opt.step()
        return loss

    run, errors = wrap(step), []
    for ids, target in batches:
        try:
            run(rushlight.tensor(ids), rushlight.tensor(target))
        except IndexError as error:
            errors.append(str(error))
    return copy.deepcopy(model.state_dict()), opt.state_dict()["state"], errors


def test_nothing_is_half_changed():
    good = ([0, 1, 4], [0, 1, 2])
    batches = [good] * 5 + [([0, 9, 4], [0, 1, 2]), good, good, good, ([0, 1, 4], [0, 8, 2])] + [good] * 4
    eager, compiled = trained(lambda f: f, batches), trained(rushlight.compile, batches)
    assert len(eager[2]) == 2
    assert eager[2] == compiled[2]
    rushlight.testing.assert_close(eager[:2], compiled[:2])


def test_random_numbers_that_were_drawn_are_not_drawn_again():
    def function(x, index):
        return F.dropout(x, 0.5).gather(1, index)

    compiled = rushlight.compile(function)
    x, states = rushlight.ones(2, 3), []
    for _ in range(5):
        compiled(x, RIGHT)
    for run in (function, compiled):
        rushlight.manual_seed(3)
        with pytest.raises(RuntimeError, match="index 6 is out of bounds") as caught:
            run(x, RIGHT + 4)
        states.append(rushlight.random.get_rng_state())
    assert rushlight.equal(*states)
    notes = getattr(caught.value, "__notes__", None)
    assert notes is None or "test_program_errors.py" in notes[0]


def test_memory_that_was_written_is_not_written_again():
    norm = nn.BatchNorm1d(3)

    def function(x, index):
        return norm(x).gather(1, index)

    compiled, x = rushlight.compile(function), rushlight.arange(6.0).reshape(2, 3)
    for _ in range(5):
        compiled(x, RIGHT)
    assert compiled.programs
    twin, old = copy.deepcopy(norm), norm.running_mean.clone()
    with pytest.raises(RuntimeError):
        compiled(x, RIGHT + 4)
    twin(x)
    assert not rushlight.equal(old, norm.running_mean)
    rushlight.testing.assert_close(norm.running_mean, twin.running_mean)


def test_classes_are_looked_at_before_anything_is_written():
    norm, target = nn.BatchNorm1d(3), rushlight.tensor([0, 2])

    def loss(x, target):
        return F.cross_entropy(F.dropout(norm(x), 0.1), target)

    compiled, x = rushlight.compile(loss), rushlight.arange(6.0).reshape(2, 3)
    for _ in range(5):
        compiled(x, target)
    assert compiled.programs
    assert message(compiled, x, target + 9) == message(loss, x, target + 9)
    assert norm.num_batches_tracked.item() == 7


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["index", "matrix", "chance"])
def test_an_error_that_was_caught_in_the_runs_that_were_watched(name):
    fails = {
        "index": lambda x: rushlight.ones(2, 3).gather(1, (x > 0).long().reshape(1, 3) * 5),
        "matrix": lambda x: rushlight.linalg.cholesky(rushlight.diag(-x)),
        "chance": lambda x: rushlight.bernoulli(x + 0.5),
    }[name]

    def careful(x):
        try:
            return fails(x).sum()
        except RuntimeError:
            return x.sum()

    compiled = rushlight.compile(careful)
    for sign in (1, 1, 1, 1, -0.5, 1, -0.5):
        x = rushlight.full((3,), 1.0) * sign
        rushlight.manual_seed(0)
        want = careful(x)
        rushlight.manual_seed(0)
        assert compiled(x).item() == want.item()


@pytest.mark.parametrize("backend", ["loops", "numpy"])
def test_of_an_error_that_the_function_catches_nothing_is_left(backend):
    """Statistics of a norm, weights and random numbers as in eager, which stops in the middle: the rows to be gathered
    are numbers that the step has made itself."""

    def played(compiled):
        rushlight.manual_seed(0)
        norm, w = nn.BatchNorm1d(3), rushlight.ones(3, requires_grad=True)
        optimizer = rushlight.optim.SGD([w], lr=0.1, momentum=0.9)

        def step(x):
            optimizer.zero_grad()
            y = F.dropout(norm(x) * w)
            y.square().sum().backward()
            optimizer.step()
            try:
                z = y.detach().gather(1, (x * 2).long() % 7)
            except RuntimeError:
                z = rushlight.rand(2)
            return z, w.grad.clone()

        run = rushlight.compile(step, backend=backend) if compiled else step
        found = []
        for k in (0.0, 0.1, 0.2, 0.3, 2.0, 0.4, 2.5, 0.5):  # from 1.5 on there is no such column
            z, grad = run(rushlight.full((4, 3), k) + rushlight.arange(12.0).reshape(4, 3) * 0.01)
            found += [
                z,
                grad,
                *copy.deepcopy([w.detach(), norm.running_mean, norm.num_batches_tracked]),
                rushlight.rand(1),
            ]
        assert not compiled or run.programs
        return found

    for one, other in zip(played(True), played(False)):
        rushlight.testing.assert_close(one, other)
