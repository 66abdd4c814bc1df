"""An error shows the user's statements only, in every place where programs run."""

import gc
import os
import pickle
import subprocess
import sys
import traceback

import pytest

import rushlight
from rushlight import nn
from rushlight.base import tracebacks
from tests.support.paths import ROOT

pytestmark = pytest.mark.skipif(
    sys.gettrace() is not None, reason="a debugger or a measure of coverage keeps all frames"
)

PROGRAM = """\
import rushlight as torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(5, 2))

    def forward(self, x):
        return self.layers(x)

def train(net):
    return net(torch.ones(8, 3))

train(Net())
"""
FRAMES = ["<module>", "train", "forward"]


def error_of(function):
    with pytest.raises(Exception) as caught:
        function()
    return caught.value


def names(error):
    """The functions of a traceback, without the frames of this test."""
    found = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    return [name for name in found if name != "error_of"]


def mismatch():
    return rushlight.ones(2, 3) @ rushlight.ones(2, 3)


def scalar():
    return rushlight.ones(2, requires_grad=True).backward()


def optimizer():
    return rushlight.optim.SGD([], lr=0.1)


def loss():
    return nn.functional.cross_entropy(rushlight.ones(2, 3), rushlight.tensor([0, 5]))


def index():
    return rushlight.ones(3)[7]


def loader():
    batches = rushlight.utils.data.DataLoader([rushlight.ones(1), rushlight.ones(2)], batch_size=2)
    return next(iter(batches))


def name():
    return rushlight.matmull


def attribute():
    return nn.Linear(1, 1).weigth


@pytest.mark.parametrize("function", [mismatch, scalar, optimizer, loss, index, loader, name, attribute])
def test_the_last_frame_is_the_users(function):
    error = error_of(function)
    assert names(error) == [function.__name__]
    assert error.__cause__ is None
    assert error.__context__ is None
    assert sys.gettrace() is None


def test_frames_of_the_user_between_stay():
    class Inner(nn.Module):
        def forward(self, x):
            return x @ x

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Sequential(Inner())

        def forward(self, x):
            return self.inner(x)

    def run():
        return Outer()(rushlight.ones(2, 3))

    assert names(error_of(run)) == ["run", "forward", "forward"]


def test_an_error_of_the_users_keeps_the_users_frames():
    class Divides(nn.Module):
        def forward(self, x):
            return 1 / 0

    def run():
        return nn.Sequential(Divides())(rushlight.ones(2))

    assert names(error_of(run)) == ["run", "forward"]


def test_a_hook_in_backward():
    def hook(grad):
        return grad @ rushlight.ones(3, 7)

    def run():
        x = rushlight.ones(2, 2, requires_grad=True)
        y = x * 2
        y.register_hook(hook)
        y.sum().backward()

    assert names(error_of(run)) == ["run", "hook"]


def test_the_users_own_context_stays():
    def run():
        try:
            {}["key"]
        except KeyError:
            mismatch()

    error = error_of(run)
    assert names(error) == ["run", "mismatch"]
    assert isinstance(error.__context__, KeyError)
    assert not error.__suppress_context__


def test_the_whole_traceback_on_demand(monkeypatch):
    monkeypatch.setenv("RUSHLIGHT_TRACEBACK", "full")
    assert len(names(error_of(mismatch))) > 1


def test_a_debugger_is_left_alone():
    def trace(frame, event, arg):
        return None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        error = error_of(mismatch)
        assert sys.gettrace() is trace
    finally:
        sys.settrace(before)
    assert len(names(error)) > 1


def test_an_error_that_the_library_handles_leaves_no_trace_function():
    rushlight.base.errors.explain("handled")
    made = [1]
    assert sys.gettrace() is None
    assert sys._getframe().f_trace is None
    assert made


def test_a_trace_function_gives_up_after_many_calls():
    def calls():  # a frame that is not the user's: the watch waits in the frame of the test
        sys.settrace(watch)
        for _ in range(tracebacks.MAX_CALLS + 2):
            step()
        return sys.gettrace()

    def step():
        return None

    watch = tracebacks.Watch(sys._getframe(), True)
    assert calls() is None


def in_a_hook(x):
    x.register_hook(lambda grad: grad @ grad)
    x.sum().backward()


def second_time(x):
    x.sum().backward()
    x.sum().backward()


def written(x):
    y = x.exp()
    y += 1
    y.sum().backward()


def not_finite(x):
    with rushlight.autograd.detect_anomaly():
        (x - x).sqrt().sum().backward()


@pytest.mark.parametrize("fails", [in_a_hook, second_time, written, not_finite])
@pytest.mark.filterwarnings("ignore:Anomaly")
def test_errors_in_backward_leave_no_objects(fails, uncollected):
    def attempt():
        x = rushlight.ones(2, 3, requires_grad=True)
        for _ in range(50):
            x = x * 2
        try:
            fails(x)
        except RuntimeError:
            return
        raise AssertionError("no error")

    attempt()
    before = len(gc.get_objects())
    for _ in range(20):
        attempt()
    assert len(gc.get_objects()) - before < 20


@pytest.mark.parametrize(
    ("make", "shown"),
    [
        (lambda: rushlight.nothing, "AttributeError: module 'rushlight' has no"),
        (lambda: nn.Linear(1, 1).nothing, "AttributeError: 'Linear' object has no"),
        (lambda: rushlight.ones(1).cuda(), "AssertionError: Torch not compiled"),
        (lambda: rushlight.linalg.inv(rushlight.zeros(2, 2)), "rushlight.linalg.LinAlgError: linalg.inv"),
        (lambda: rushlight.ones(1, device="meta").item(), "RuntimeError: Tensor.item"),
        (lambda: rushlight.func.vmap(lambda x: x.item())(rushlight.ones(2)), "RuntimeError: vmap"),
    ],
)
def test_exceptions_print_under_the_names_that_users_catch(make, shown):
    error = error_of(make)
    assert "".join(traceback.format_exception_only(type(error), error)).startswith(shown)


@pytest.mark.parametrize("make", [lambda: rushlight.nothing, lambda: nn.Linear(1, 1).nothing])
def test_attribute_errors_can_be_pickled(make):
    error = error_of(make)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is AttributeError
    assert str(again) == str(error)


def run(*command, text=None):
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, *command], input=text, capture_output=True, text=True, env=env, check=False)
    return done.stdout + done.stderr


def functions_in(output):
    return [line.rpartition(", in ")[2] for line in output.split("\n") if "  File " in line]


@pytest.mark.parametrize("command", [(), ("-m", "rushlight", "run")])
def test_a_script(tmp_path, command):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    output = run(*command, str(path))
    assert functions_in(output) == FRAMES
    assert output.count("Traceback") == 1
    assert "hint: " in output


def test_python_c():
    assert functions_in(run("-c", PROGRAM)) == FRAMES


def test_the_repl():
    text = "import rushlight as torch\ntorch.ones(2, 3) @ torch.ones(2, 3)\n"
    output = run("-i", "-q", text=text)
    assert functions_in(output) == ["<module>"]


def test_pytest_shows_the_users_lines(tmp_path):
    path = tmp_path / "test_program.py"
    path.write_text(PROGRAM.replace("train(Net())", "def test_train():\n    train(Net())"))
    output = run("-m", "pytest", "-p", "no:cacheprovider", "--tb=short", "--noconftest", "-c", os.devnull, str(path))
    assert "rushlight/nn" not in output
    assert "in forward" in output


def test_ipython_shows_the_users_lines():
    shell = pytest.importorskip("IPython.core.interactiveshell")
    text = (
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance(colors='NoColor')\n"
        f"shell.run_cell({PROGRAM!r})\n"
    )
    output = run("-c", text)
    assert shell
    assert "rushlight/nn" not in output
    assert "forward(self, x)" in output
    assert output.count("Traceback") == 1
    assert output.count("\n") < 50
