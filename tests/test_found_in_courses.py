"""What programs of courses, books and collections of examples do and no other test did: each was once a crash."""
from __future__ import annotations

import importlib
import pickle
import subprocess
import sys

import pytest

import rushlight
from rushlight import nn

PARTS = ["_C", "_dynamo.config", "_inductor.config", "_subclasses.fake_tensor", "backends.cuda", "backends.cudnn",
         "backends.mps", "cpu.amp.autocast_mode", "cuda.amp.grad_scaler", "distributed.constants",
         "distributed.fsdp.fully_sharded_data_parallel", "distributed.nn.functional", "jit.annotations",
         "utils.data._utils.collate", "utils.tensorboard.writer"]


@pytest.mark.parametrize("name", PARTS)
def test_what_is_a_module_in_torch_can_be_imported(name):
    parent, _, own = name.rpartition(".")
    part = importlib.import_module(f"rushlight.{name}")
    assert part is getattr(importlib.import_module(f"rushlight.{parent}".rstrip(".")), own)


# a stand-in for torch of somebody else's: each module of torch is the one of that name in rushlight
ALIAS = """
import importlib, importlib.util, sys

class Loader:
    def __init__(self, name): self.name = name
    def create_module(self, spec): return importlib.import_module("rushlight" + self.name)
    def exec_module(self, module): pass

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            return importlib.util.spec_from_loader(name, Loader(name[len("torch"):]))

sys.meta_path.insert(0, Finder())
import torch.backends.cudnn as cudnn, torch._inductor.config as settings, torch._dynamo.config
from torch.utils.data._utils.collate import default_collate
cudnn.benchmark = settings.coordinate_descent_tuning = True
print(torch.backends.cudnn.benchmark, torch._inductor.config.coordinate_descent_tuning)
"""


def test_parts_are_found_under_an_alias():
    done = subprocess.run([sys.executable, "-c", ALIAS], capture_output=True, text=True, timeout=600, check=False)
    assert done.stdout == "True True\n", done.stderr


READ = """
import rushlight.compat, pickle, sys
rushlight.compat.install()
import torch
for file in sys.argv[1:]:
    found = pickle.load(open(file, "rb")) if file.endswith("pkl") else torch.load(file, weights_only=False)
    print(*(repr(part) for part in found), sep="\\n")
"""


def test_pickles_that_torch_wrote(torch, tmp_path):
    nn, x = torch.nn, torch.arange(6.0).reshape(2, 3)
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(inplace=True), nn.LeakyReLU(0.2), nn.Flatten(),
                          nn.Linear(8, 2), nn.Dropout(0.3), nn.Softmax(dim=1))
    parts = [x.t(), x[1], x.half(), torch.tensor(True), torch.zeros(0, 3), x.to_sparse(), nn.Parameter(x),
             {"weight": x.bfloat16()}, torch.Size([2]), torch.float64, model]
    for protocol in (2, 4):
        (tmp_path / f"{protocol}.pkl").write_bytes(pickle.dumps(parts, protocol))
    torch.save(parts[-1:], tmp_path / "whole.pt")
    files = sorted(tmp_path.iterdir())
    done = subprocess.run([sys.executable, "-c", READ, *map(str, files)], capture_output=True, text=True, timeout=600,
                          check=False)
    text = "\n".join(repr(part) for part in parts)
    assert done.stdout == f"{text}\n{text}\n{model!r}\n", done.stderr


def two_returned(x):
    a = x.sin()
    return a.cos(), a.exp()


class Held(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.shift = nn.Linear(3, 3), nn.Parameter(rushlight.ones(3))

    def forward(self, x):
        return self.linear(x) + self.shift


t = rushlight
REWRITTEN = {                                     # program, pattern, replacement, how often it is there, the names then
    "twice": (lambda x: t.relu(x) + t.relu(x * 2), lambda x: t.relu(x), lambda x: t.tanh(x) + 1, 2,
              "x tanh add mul tanh_1 add_1 add_2"),
    "one after the other": (lambda x: x.relu().relu(), lambda x: x.relu(), lambda x: x.sigmoid(), 2, "x sigmoid sigmoid_1"),
    "a number that must agree": (lambda x: t.add(x, 3) * t.add(x, 4), lambda x: t.add(x, 3), lambda x: x - 3, 1,
                                 "x add_1 sub mul"),
    "any number": (lambda x: t.add(x, 3) * t.add(x, 4), lambda x, y: t.add(x, y), lambda x, y: x - y, 2, "x sub sub_1 mul"),
    "two results": (lambda x: sum(two_returned(x * 2)), two_returned, lambda x: (x.tan(), x.log()), 1,
                    "x mul tan log add add_1"),
    "used in between": (lambda x: (lambda a: a.cos() + a)(x.sin()), lambda x: x.sin().cos(), lambda x: x.tan(), 0,
                        "x sin cos add"),
}


@pytest.mark.parametrize("case", REWRITTEN)
def test_patterns_are_replaced(case):
    program, pattern, replacement, times, names = REWRITTEN[case]
    traced = rushlight.fx.symbolic_trace(program)
    matches = rushlight.fx.replace_pattern(traced, pattern, replacement)
    assert len(matches) == times
    assert sorted(n.name for n in traced.graph.nodes if n.op != "output") == sorted(names.split())
    traced.graph.lint()
    traced(rushlight.rand(3))


def test_a_replacement_brings_its_parts():
    traced = rushlight.fx.symbolic_trace(Held())
    x = rushlight.rand(2, 3)
    found = rushlight.fx.replace_pattern(traced, lambda a, b: a + b, lambda a, b: a - b)
    assert traced(x).equal(traced.linear(x) - traced.shift)
    assert [value.name for value in found[0].nodes_map.values()] == ["add", "linear", "shift"]
    other = rushlight.fx.symbolic_trace(lambda x: rushlight.sigmoid(x) * 2)
    new = rushlight.fx.symbolic_trace(Held())
    rushlight.fx.replace_pattern(other, lambda x: rushlight.sigmoid(x), new)
    assert other(x).equal(new(x) * 2)
    assert other.linear is not new.linear
    with pytest.raises(ValueError, match="the same arguments"):
        rushlight.fx.replace_pattern(other, lambda x: x * 2, lambda x, y: x)


class Lowering(rushlight.fx.Tracer):
    """Goes into activations."""

    def is_leaf_module(self, m, module_qualified_name):
        return not isinstance(m, nn.ReLU) and super().is_leaf_module(m, module_qualified_name)

    def create_proxy(self, kind: str, target: rushlight.fx.node.Target, *args: rushlight.fx.node.Argument, **kwargs):
        return super().create_proxy(kind, target, *args, **kwargs)


def test_a_tracer_goes_into_layers():
    graph = Lowering().trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.ReLU(inplace=True)))
    assert [node.op for node in graph.nodes] == ["placeholder", "call_module", "call_function", "call_function", "output"]


IMPORTED = ["hub._get_torch_home", "autograd.function.InplaceFunction", "nn.modules.module._addindent",
            "cuda.nvtx.range_push", "vision.datasets.vision.VisionDataset", "vision.datasets.folder.is_image_file",
            "vision.models._utils._make_divisible", "storage._load_from_bytes", "_tensor._rebuild_from_type_v2"]


@pytest.mark.parametrize("name", IMPORTED)
def test_names_that_programs_import(name):
    home, _, own = name.rpartition(".")
    assert callable(getattr(importlib.import_module(f"rushlight.{home}"), own))


def test_helpers_do_what_torchs_do():
    class Square(importlib.import_module("rushlight.autograd.function").InplaceFunction):
        @staticmethod
        def forward(ctx, x, inplace=False):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return 2 * ctx.saved_tensors[0] * g, None

    x = rushlight.tensor([3.0], requires_grad=True)
    Square.apply(x, True).backward()
    assert x.grad.item() == 6
    assert nn.modules.module._addindent("a\nb", 3) == "a\n   b"
    assert rushlight.vision.models._utils._make_divisible(37, 8) == 40
    assert rushlight.vision.datasets.folder.is_image_file("A.PNG")
    with pytest.raises(RuntimeError, match="NVTX functions not installed"):
        rushlight.cuda.nvtx.range_push("x")
    with pytest.raises(TypeError, match=r"torch.cuda.FloatTensor not available"):
        rushlight.cuda.FloatTensor(2)


def test_schedules_are_of_the_module_that_has_them():
    """`if scheduler.__module__ == lr_scheduler.__name__: scheduler.step()`, where it may be a plain function instead."""
    from rushlight.optim import SGD, lr_scheduler

    scheduler = lr_scheduler.StepLR(SGD([nn.Parameter(rushlight.ones(1))], lr=0.1), 2)
    assert scheduler.__module__ == lr_scheduler.__name__ == "rushlight.optim.lr_scheduler"
    assert {getattr(lr_scheduler, name).__module__ for name in lr_scheduler.__all__} == {lr_scheduler.__name__}
    assert type(pickle.loads(pickle.dumps(lr_scheduler.LambdaLR))) is type


def test_scripted_modules_say_what_to_write_for_save():
    scripted = rushlight.jit.script(nn.Linear(2, 1))
    assert not hasattr(scripted, "save")
    with pytest.raises(AttributeError, match=r"has no attribute 'save'.*torch\.save\(module\.state_dict\(\), file\)"):
        scripted.save("model.pt")


def test_optimizers_take_lists_of_parameters():
    """MAML's Learner gives its ParameterList from parameters()."""
    one, two = nn.Parameter(rushlight.ones(1)), nn.Parameter(rushlight.ones(2))
    given = nn.ParameterList([one, two])
    assert rushlight.optim.Adam(given).param_groups[0]["params"] == [one, two]
    assert rushlight.optim.SGD([{"params": given}], lr=0.1).param_groups[0]["params"] == [one, two]
    with pytest.raises(TypeError, match=r"'Linear' object is not iterable(?s:.*)give model\.parameters\(\)"):
        rushlight.optim.Adam(nn.Linear(1, 1))
    with pytest.raises(TypeError, match=r"one of the params is Linear(?s:.*)model\.parameters\(\)"):
        rushlight.optim.Adam(nn.Sequential(nn.Linear(1, 1)))


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_the_flat_weights_of_recurrent_layers_may_be_written(oracle, kind):
    """higher does, once it has put its tensors in the place of the parameters."""
    def run(t):
        t.manual_seed(0)
        layer, x = getattr(t.nn, kind)(3, 4, num_layers=2), t.randn(5, 2, 3)
        layer._flat_weights = [t.nn.Parameter(w.detach() * 2) for w in layer._flat_weights]
        return layer(x)[0].detach()
    assert rushlight.allclose(run(rushlight), rushlight.tensor(oracle(run)), atol=1e-6)


def test_what_is_no_parameter_is_refused_as_a_flat_weight():
    layer = nn.GRU(3, 4)
    with pytest.raises(TypeError, match="weight_hh_l0"):
        layer._flat_weights = [w * 2 if i == 1 else w for i, w in enumerate(layer._flat_weights)]
    with pytest.raises(ValueError, match="shorter"):
        layer._flat_weights = layer._flat_weights[:2]


def test_where_to_is_told_by_cpu():
    """GPyTorch's search of neighbours: its `to` calls its `cpu`, which calls the module's."""
    class Index(nn.Module):
        def cpu(self):
            super().cpu()
            self.place = "cpu"
            return self

        def to(self, device):
            return self.cpu()

    index = Index()
    assert index.to("cpu") is index
    assert index.place == "cpu"
    with pytest.raises(NotImplementedError, match="to_empty"):
        nn.Linear(2, 2, device="meta").cpu()
