"""Errors of backward show the statements at fault; those of shapes the module, both shapes and the change that mends
it."""

import pytest

import rushlight
import rushlight as torch
from rushlight import nn
from rushlight.base import errors


def error_of(work, kind=RuntimeError):
    with pytest.raises(kind) as caught:
        work()
    return str(caught.value)


def lines_of(message):
    return {line.split(": ", 1)[0].strip(): line.split(": ", 1)[1] for line in message.splitlines()[1:] if ": " in line}


# -- a second time


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.state = nn.Linear(2, 2), torch.zeros(1, 2)

    def forward(self, x):
        self.state = (self.cell(x) + self.state).tanh()  # the state
        return self.state.sum()


def test_what_an_object_carries_over_is_named():
    net = Recurrent()
    net(torch.ones(1, 2)).backward()
    told = lines_of(error_of(lambda: net(torch.ones(1, 2)).backward()))
    assert told["tensor"] == "net.state, of shape (1, 2); an earlier backward() freed its graph"
    assert told["made at"].endswith("# the state")
    assert "detach()" in told["hint"]


def test_what_a_list_holds_is_named():
    w = torch.ones(2, requires_grad=True)
    states = [w, w.exp()]
    states[1].sum().backward()
    assert lines_of(error_of(lambda: (states[1] * w).sum().backward()))["tensor"].startswith("states[1], of shape (2,)")


def test_the_tensor_may_be_computed_from_what_was_freed():
    w = torch.ones(2, requires_grad=True)
    hidden = w.exp().reshape(1, 2) + 1
    first = (hidden * w).sum()
    first.backward()
    told = lines_of(error_of(lambda: (hidden + w).sum().backward()))
    assert told["tensor"].startswith("hidden, of shape (1, 2)")


def test_the_loss_itself_is_named():
    w = torch.ones(2, requires_grad=True)
    loss = (w * w).sum()
    loss.backward()
    assert lines_of(error_of(loss.backward))["tensor"].startswith("loss, of shape ()")


# -- written over

WRITES = {
    "add_": lambda x, y: y.add_(1),
    "mul_ of a view": lambda x, y: y[0].mul_(2),
    "item": lambda x, y: y.__setitem__(0, 5.0),
    "out=": lambda x, y: torch.add(y.detach(), 1, out=y.detach()),
    "copy_": lambda x, y: y.detach().copy_(torch.zeros(3)),
}


@pytest.mark.parametrize("write", WRITES)
def test_both_statements_are_shown(write):
    x = torch.ones(3, requires_grad=True)
    y = x * 1
    z = y.exp() * y  # SAVED HERE
    WRITES[write](x, y)
    message = error_of(z.sum().backward)
    told = lines_of(message)
    assert "modified by an inplace operation" in message
    assert "# SAVED HERE" in told["saved by"]
    assert WRITES[write].__code__.co_filename in told["written at"]
    assert write.split()[0].rstrip("=") in told["written at"].replace("__setitem__", "item")
    assert "test_errors.py" in told["at"]
    assert "clone()" in told["hint"]


def test_functions_of_ones_own_tell_too():
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 2 * x

    x = torch.ones(2, requires_grad=True) * 1
    y = Square.apply(x)  # SAVED HERE
    x += 1
    told = lines_of(error_of(y.sum().backward))
    assert "# SAVED HERE" in told["saved by"]
    assert told["written at"].endswith("x += 1")
    z = Square.apply(x)
    z.sum().backward()
    assert "second time" in error_of(z.sum().backward)


class TooMany(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g, g


class NoBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2


class Fails(NoBackward):
    @staticmethod
    def backward(ctx, g):
        raise KeyError("mine")


@pytest.mark.parametrize("function", [TooMany, NoBackward])
def test_what_fails_in_backward_names_the_forward_statement(function):
    y = function.apply(torch.ones(2, requires_grad=True))  # APPLIED HERE
    with pytest.raises((RuntimeError, NotImplementedError)) as caught:
        y.sum().backward()
    told = lines_of(str(caught.value))
    assert told["made at"].endswith("# APPLIED HERE")
    assert told["at"].endswith("y.sum().backward()")


def test_what_has_no_derivative_names_the_forward_statement():
    x = torch.ones(2, requires_grad=True)
    y = torch.special.zeta(x, x)  # NO DERIVATIVE
    told = lines_of(error_of(y.sum().backward, NotImplementedError))
    assert told["made at"].endswith("# NO DERIVATIVE")
    assert "test_errors.py" in told["at"]
    assert told["hint"].startswith("detach()")


@pytest.mark.skipif(not hasattr(Exception, "add_note"), reason="notes of exceptions came with Python 3.11")
def test_an_error_of_ones_own_is_left_and_gets_a_note():
    y = Fails.apply(torch.ones(2, requires_grad=True))  # APPLIED HERE
    with pytest.raises(KeyError) as caught:
        y.sum().backward()
    assert caught.value.args == ("mine",)
    (note,) = caught.value.__notes__
    assert "in backward of FailsBackward" in note
    assert "# APPLIED HERE" in note


def test_a_hook_that_changes_the_size():
    y = torch.ones(2, requires_grad=True) * 2  # MADE HERE
    y.register_hook(lambda g: torch.ones(5))
    assert "# MADE HERE" in lines_of(error_of(y.sum().backward))["made at"]


# -- shapes inside modules


class Net(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.body = nn.Sequential(nn.Identity(), inner)

    def forward(self, x):
        return self.body(x)


class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3, 4))

    def forward(self, x):
        return x @ self.w


SHAPES = {
    "Linear": (lambda: nn.Linear(5, 2), (8, 4), ("8x4", "5x2", "in_features=4")),
    "Conv1d": (lambda: nn.Conv1d(3, 2, 1), (1, 4, 5), ("[2, 3, 1]", "[1, 4, 5]", "in_channels=4")),
    "Conv2d": (lambda: nn.Conv2d(3, 2, 1), (1, 4, 5, 5), ("[2, 3, 1, 1]", "[1, 4, 5, 5]", "in_channels=4")),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(3, 2, 1), (1, 4, 5, 5), ("[3, 2, 1, 1]", "[1, 4, 5, 5]", "4")),
    "BatchNorm1d": (lambda: nn.BatchNorm1d(3), (8, 4), ("4", "3", "num_features=4")),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(3), (8, 4, 2, 2), ("4", "3", "num_features=4")),
    "LayerNorm": (lambda: nn.LayerNorm(3), (8, 4), ("[3]", "[8, 4]", "normalized_shape=4")),
    "GroupNorm": (lambda: nn.GroupNorm(2, 6), (8, 4), ("6", "4", "num_channels=4")),
    "LSTM": (lambda: nn.LSTM(3, 2), (5, 1, 4), ("3", "4", "input_size=4")),
    "GRUCell": (lambda: nn.GRUCell(3, 2), (1, 4), ("3", "4", "input_size=4")),
    "MultiheadAttention": (lambda: Attends(), (5, 1, 6), ("6", "4", "embed_dim=6")),
    "Bilinear": (lambda: Pairs(), (8, 4), ("3", "4", "in1_features=4")),
    "Own": (Own, (8, 5), ("8x5", "3x4", "inner sizes differ (5 and 3)")),
}


class Attends(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 2)

    def forward(self, x):
        return self.attention(x, x, x)


class Pairs(nn.Module):
    def __init__(self):
        super().__init__()
        self.pair = nn.Bilinear(3, 3, 2)

    def forward(self, x):
        return self.pair(x, x)


@pytest.mark.parametrize("name", SHAPES)
def test_shape_errors_name_the_module_and_the_change(name):
    make, shape, says = SHAPES[name]
    with pytest.raises((RuntimeError, ValueError, AssertionError)) as caught:
        Net(make())(torch.ones(*shape))
    message = str(caught.value)
    told = lines_of(message)
    assert "'body.1" in told["module"]
    for word in says:
        assert word in message
    assert "hint" in told
    assert "test_errors.py" in told["at"]


def test_nodes_of_derivatives_are_made_by_the_users_statement():
    x = torch.ones(2, requires_grad=True)
    y = (x * x * x).sum()
    (g,) = torch.autograd.grad(y, x, create_graph=True)  # SECOND ORDER
    todo = [g.grad_fn]
    for node in todo:  # `todo` grows while it is read
        todo += [below for below, _ in node.next_functions if below is not None and below not in todo]
    places = {node.made_at for node in todo if not node.leaf}
    assert all("test_errors.py" in place for place in places)
    assert any(place.endswith("# SECOND ORDER") for place in places)


TWO = "torch.ones(2, 3)"


MISTAKES = {
    "nn.MSELoss(torch.ones(2), torch.ones(2)).backward()": (RuntimeError, "create the loss first"),
    f"nn.CrossEntropyLoss({TWO}, torch.tensor([0, 1]))": (RuntimeError, "create the loss first"),
    "optim.Adam(nn.Linear(2, 2), lr=0.1)": (TypeError, "model.parameters()"),
    "optim.SGD([{'param': [torch.ones(2)]}], lr=0.1)": (KeyError, "params"),
    "nn.Sequential(nn.Linear(2, 2), nn.ReLU)": (TypeError, "make one: ReLU()"),
    "nn.Sequential(nn.Linear(2, 2), F.relu)": (TypeError, "nn.ReLU() for relu"),
    "nn.Sequential([nn.Linear(2, 2)])": (TypeError, "nn.Sequential(*layers)"),
    "nn.Linear(2, 2).load_state_dict(nn.Linear(2, 2))": (TypeError, "model.state_dict()"),
    f"{TWO}[2]": (IndexError, "indices are 0 to 1"),
    f"{TWO}[torch.tensor([0, 5])]": (IndexError, "indices are 0 to 1"),
    f"{TWO}[0, 0, 0]": (IndexError, "the shape is (2, 3)"),
    f"{TWO}[torch.tensor([True])]": (IndexError, "the mask must have the tensor's shape"),
    f"F.cross_entropy({TWO}, torch.tensor([1]))": (ValueError, "one class for each row"),
    "F.one_hot(torch.tensor([3]), 2)": (RuntimeError, "num classes: 2"),
    "torch.ones(2, device='cuda')": (AssertionError, "if torch.cuda.is_available()"),
    "torch.ones(2).to('gpu')": (RuntimeError, "use 'cpu'"),
    f"nn.BatchNorm2d(3)({TWO})": (ValueError, "take BatchNorm1d"),
    "nn.LSTM(4, 5)(torch.ones(3, 2, 4), torch.ones(1, 2, 5))": (IndexError, "(h_0, c_0)"),
    "nn.MultiheadAttention(10, 3)": (AssertionError, "num heads: 3"),
    "nn.Dropout(1.5)": (ValueError, "0.5"),
    "nn.Linear(24, 2)(torch.ones(5, 2, 3, 4))": (RuntimeError, "x.flatten(1)"),
    "nn.Conv2d(3, 8, 3)(torch.ones(2, 9, 9, 3))": (RuntimeError, "x.movedim(-1, -3)"),
    f"F.cross_entropy(torch.tensor([1, 2]), {TWO})": (NotImplementedError, "swapped?"),
    f"F.cross_entropy({TWO}, {TWO}.long())": (RuntimeError, "target.argmax(1)"),
    "nn.Linear(2, 2)(torch.ones(1, 2).double())": (RuntimeError, "x.float()"),
    "nn.Conv1d(1, 1, 1)(torch.ones(1, 1, 1).double())": (RuntimeError, "x.float()"),
    "optim.SGD(nn.Module().parameters())": (ValueError, "nn.ModuleList"),
    f"{TWO} @ {TWO}": (RuntimeError, "A @ B.mT"),
}


@pytest.mark.origin("newcomers")
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_with_its_line_and_its_hint(mistake, tmp_path):
    kind, hint = MISTAKES[mistake]
    file = tmp_path / "mine.py"
    file.write_text(f"\n{mistake}\n")
    with pytest.raises(kind) as caught:
        exec(
            compile(file.read_text(), str(file), "exec"),
            {"torch": rushlight, "nn": nn, "optim": rushlight.optim, "F": nn.functional},
        )
    text = str(caught.value.args[0])
    assert f"at: {file}:2: {mistake}" in text
    assert hint in text


def test_a_weight_that_an_update_has_replaced_has_a_hint():
    w = torch.ones(2, requires_grad=True)
    (w * 2).sum().backward()
    w = w - 0.1 * w.grad
    with pytest.warns(UserWarning, match="with torch.no_grad..: w -= lr"):
        assert w.grad is None
    with pytest.warns(UserWarning, match="retain_grad") as found:
        assert (w * 2).grad is None
    assert "hint" not in str(found[0].message)


@pytest.mark.origin("newcomers")
def test_a_place_that_is_shared_has_no_folder_of_the_author(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    inside, outside = tmp_path / "src" / "train.py", tmp_path.parent / "other.py"
    assert errors.shared_place(f"{inside}:3: y = x: int") == "src/train.py:3: y = x: int"
    assert errors.shared_place(str(inside)) == "src/train.py"
    assert errors.shared_place(f"{outside}:7") == "other.py:7"
    for unchanged in ("<stdin>:1: x", "neuron.py:6", "cell 2, line 1: x", ""):
        assert errors.shared_place(unchanged) == unchanged
