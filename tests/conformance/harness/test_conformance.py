"""The harness must find no fault with torch itself, and every planted fault in a copy of it."""

import dataclasses
import json
import os
import sys
import time
import types

import conformance
import pytest
import torch
from bridge import Library, record_constructor_calls
from runner import Record, Task, measure, run
from suites import SUITES

record_constructor_calls()
torch.set_num_threads(1)


def overlay(base, name, missing=(), **replacements):
    """A module that is `base` except for some names."""

    def look_up(attribute):
        if attribute in missing or attribute == "__path__":
            raise AttributeError(attribute)
        return getattr(base, attribute)

    module = types.ModuleType(name)
    module.__dict__.update(replacements, __getattr__=look_up)
    return module


def ask(suite, title, column, **faults):
    """The record of one column against torch with some faults."""
    suite = SUITES[suite]
    entry = next(entry for entry in suite.entries() if entry.title == title)
    return measure(suite, entry, column, Library(overlay(torch, "faulty", **faults)))


def tasks_for(titles, suites=tuple(SUITES)):
    return [
        Task(name, index, column)
        for name in suites
        for index, entry in enumerate(SUITES[name].entries())
        if entry.title in titles
        for column in SUITES[name].columns(entry)
    ]


OPERATORS = """
add div_ exp mul sub abs matmul sum mean max (reduction_no_dim) softmax cat split topk sort where T
item view expand index_put scatter_add cumsum linalg.svd linalg.eigh linalg.solve linalg.qr fft.rfft
special.zeta signal.windows.hann nn.functional.conv2d nn.functional.gelu nn.functional.dropout
nn.functional.cross_entropy nn.functional.scaled_dot_product_attention nn.functional.rrelu uniform
multinomial empty_like bfloat16 linspace unique __getitem__ __radd__ as_strided broadcast_shapes
"""


def test_torch_passes():
    titles = set(OPERATORS.split()) | {"nn.Linear", "nn.BatchNorm2d", "nn.LSTM", "nn.LazyConv1d"}
    titles |= {"SGD", "AdamW", "LBFGS", "Muon"}
    records = run(tasks_for(titles), "torch", max_samples=6)
    assert len(records) > 400
    assert [record for record in records if record.status not in ("pass", "n/a")] == []
    assert sum(record.status == "pass" for record in records) > 400


@pytest.mark.parametrize("column", ["float32", "int64", "complex128", "noncontiguous", "grad"])
def test_wrong_value(column):
    record = ask("ops", "exp", column, exp=lambda x: torch.exp(x) * 1.001)
    assert record.status == "wrong"
    assert "values differ" in record.message


def test_wrong_dtype():
    record = ask("ops", "sqrt", "float32", sqrt=lambda x: torch.sqrt(x.double()))
    assert record.status == "wrong"
    assert "dtype float64, expected float32" in record.message


def test_wrong_shape():
    record = ask("ops", "sum", "float64", sum=lambda x, *a, **k: torch.sum(x, *a, **k)[None])
    assert record.status == "wrong"
    assert "shape" in record.message


def test_wrong_structure():
    record = ask("ops", "split", "float64", split=lambda *a, **k: list(torch.split(*a, **k)))
    assert record.status == "wrong"
    assert "list, expected a tuple" in record.message


def test_missing_field_names():
    record = ask("ops", "topk", "float64", topk=lambda *a, **k: tuple(torch.topk(*a, **k)))
    assert record.status == "wrong"
    assert "fields" in record.message


def test_wrong_gradient_with_right_value():
    def tanh(x):
        return torch.tanh(x) + 0.01 * (x - x.detach())

    assert ask("ops", "tanh", "float64", tanh=tanh).status == "pass"
    record = ask("ops", "tanh", "grad", tanh=tanh)
    assert record.status == "wrong"
    assert "gradient[0]" in record.message


def test_no_gradient():
    record = ask("ops", "tanh", "grad", tanh=lambda x: torch.tanh(x.detach()))
    assert record.status == "wrong"
    assert "requires_grad False" in record.message


def test_wrong_second_gradient_with_right_first():
    def square(x):
        return x * x.detach() + x.detach() * (x - x.detach())

    assert ask("ops", "square", "grad", square=square).status == "pass"
    assert ask("gradgrad", "square", "float64", square=square).status == "wrong"


def test_missing_function():
    record = ask("ops", "sin", "float32", missing=("sin",))
    assert (record.status, record.message) == ("missing", "faulty has no sin")


def test_missing_namespace():
    record = ask("ops", "linalg.inv", "float64", missing=("linalg",))
    assert (record.status, record.message) == ("missing", "faulty has no linalg.inv")


def test_missing_attribute_of_tensor():
    """Some operators are only reached through an attribute."""

    class Bare:
        def __init__(self, tensor):
            self.tensor = tensor

    record = ask("ops", "mT", "float64", from_numpy=lambda array: Bare(torch.from_numpy(array)))
    assert record.status == "missing"
    assert "mT" in record.message


def test_attribute_error_inside_the_candidate_is_no_missing_name():
    source = "def sin(x):\n    return x.no_such_thing\n"
    scope = {"__name__": "faulty"}
    exec(source, scope)
    record = ask("ops", "sin", "float64", sin=scope["sin"])
    assert record.status == "raises"
    assert record.message.startswith("AttributeError")


def test_raises():
    def cat(*args, **kwargs):
        raise ValueError("not today\nnor tomorrow")

    record = ask("ops", "cat", "float64", cat=cat)
    assert (record.status, record.message) == ("raises", "ValueError: not today")


def test_double_precision_is_close_enough_for_single():
    def matrix_exp(x):
        return torch.matrix_exp(x.double()).float()

    assert ask("ops", "matrix_exp", "float32", matrix_exp=matrix_exp).status == "pass"
    assert ask("ops", "exp", "float32", exp=lambda x: torch.exp(x.half()).float()).status == "wrong"


def test_other_index_of_equal_elements():
    def topk(x, k, dim=-1, largest=True, sorted=True):
        if x.ndim == 0:
            return torch.topk(x, k, dim, largest, sorted)
        values, indices = torch.topk(x.flip(dim), k, dim, largest, sorted)
        return torch.return_types.topk((values, x.shape[dim] - 1 - indices))

    assert ask("ops", "topk", "int64", topk=topk).status == "pass"


def test_other_sign_of_singular_vectors():
    def svd(x, full_matrices=True):
        u, s, vh = torch.linalg.svd(x, full_matrices)
        return torch.return_types.linalg_svd((-u, s, -vh))

    linalg = overlay(torch.linalg, "faulty.linalg", svd=svd)
    assert ask("ops", "linalg.svd", "float64", linalg=linalg).status == "pass"


def test_copy_instead_of_view():
    record = ask("ops", "narrow", "aliasing", narrow=lambda *a: torch.narrow(*a).clone())
    assert (record.status, record.message) == ("wrong", "output 0 is not a view of an input")
    record = ask("ops", "clone", "aliasing", clone=lambda x, **kwargs: x)
    assert (record.status, record.message) == ("wrong", "output 0 is a view of an input")


def test_random_values_are_free_but_not_their_shape():
    def functional(fault):
        def dropout(x, *args, **kwargs):
            return fault(torch.nn.functional.dropout(x, *args, **kwargs))

        inner = overlay(torch.nn.functional, "faulty.nn.functional", dropout=dropout)
        return overlay(torch.nn, "faulty.nn", functional=inner)

    title = "nn.functional.dropout"
    assert ask("ops", title, "float32", nn=functional(lambda x: x)).status == "pass"
    assert ask("ops", title, "float32", nn=functional(lambda x: x.double())).status == "wrong"


def test_missing_error_and_wrong_error():
    def reshape(*args):
        return torch.zeros(1)

    def complain(*args):
        raise KeyError("no")

    assert "no error" in ask("errors", "reshape", "raises", reshape=reshape).message
    assert ask("errors", "reshape", "raises", reshape=complain).status == "pass"
    assert "expected RuntimeError" in ask("errors", "reshape", "type", reshape=complain).message
    assert ask("errors", "reshape", "message", reshape=complain).status == "wrong"


def test_message_may_name_the_candidate():
    def dot(*args):
        try:
            return torch.dot(*args)
        except RuntimeError as error:
            raise RuntimeError(str(error).replace("torch", "faulty")) from None

    assert ask("errors", "dot", "message", dot=dot).status == "pass"


class Linear(torch.nn.Linear):
    def forward(self, input):
        return super().forward(input) + 0.01 * (input - input.detach()).sum(-1, keepdim=True)

    def extra_repr(self):
        return f"{self.in_features} -> {self.out_features}"


class Buffered(torch.nn.Linear):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.register_buffer("extra", torch.zeros(1))


def faulty_nn(**replacements):
    return overlay(torch.nn, "faulty.nn", **replacements)


def test_faulty_module():
    nn = faulty_nn(Linear=Linear)
    status = {c: ask("modules", "nn.Linear", c, nn=nn).status for c in SUITES["modules"].COLUMNS}
    assert status == {
        "construct": "pass",
        "state_dict": "pass",
        "repr": "wrong",
        "train": "pass",
        "eval": "pass",
        "input_grad": "wrong",
        "param_grad": "pass",
    }


def test_faulty_state_dict():
    record = ask("modules", "nn.Linear", "state_dict", nn=faulty_nn(Linear=Buffered))
    assert record.status == "raises"
    assert "Missing key" in record.message or "Error(s) in loading" in record.message


def test_missing_module():
    record = ask("modules", "nn.GRU", "train", nn=faulty_nn(missing=("GRU",)))
    assert (record.status, record.message) == ("missing", "faulty has no nn.GRU")


def test_faulty_optimizer():
    class SGD(torch.optim.SGD):
        def step(self, closure=None):
            super().step(closure)
            if self.param_groups[0]["weight_decay"]:
                self.param_groups[0]["params"][0].data += 1e-5

    optim = overlay(torch.optim, "faulty.optim", SGD=SGD)
    record = ask("optimizers", "SGD", "step", optim=optim)
    assert record.status == "wrong"
    assert 0 < record.passed < record.applicable


def test_faulty_scheduler():
    def step_lr(optimizer, step_size, gamma):
        return torch.optim.lr_scheduler.StepLR(optimizer, step_size - 1, gamma)

    schedulers = overlay(torch.optim.lr_scheduler, "faulty.optim.lr_scheduler", StepLR=step_lr)
    optim = overlay(torch.optim, "faulty.optim", lr_scheduler=schedulers)
    assert ask("optimizers", "SGD", "scheduler", optim=optim).status == "wrong"


def test_hollow_candidate_has_the_same_denominators(monkeypatch):
    """What applies must depend on torch alone."""
    kept = {name: getattr(torch, name) for name in ("Tensor", "from_numpy", "manual_seed")}
    hollow = types.ModuleType("hollow")
    hollow.__dict__.update(kept)
    monkeypatch.setitem(sys.modules, "hollow", hollow)
    titles = {"sin", "T", "cat", "equal", "sgn", "reshape", "nn.Linear", "nn.FractionalMaxPool2d"}
    titles |= {"nn.ReLU", "SGD", "nn.BatchNorm1d", "nn.functional.ctc_loss"}
    tasks = tasks_for(titles)
    applicable = []
    for candidate in ("torch", "hollow"):
        records = run(tasks, candidate, max_samples=5)
        applicable.append({(r.suite, r.title, r.column): r.status != "n/a" for r in records})
    assert applicable[0] == applicable[1]


def test_hang_and_crash(monkeypatch):
    def hang(x):
        while True:
            time.sleep(0.01)

    faulty = overlay(torch, "faulty", sin=hang, cos=lambda x: os._exit(1))
    monkeypatch.setitem(sys.modules, "faulty", faulty)
    suite = SUITES["ops"]
    tasks = [
        Task("ops", index, "float32")
        for index, entry in enumerate(suite.entries())
        if entry.title in ("sin", "cos", "tan")
    ]
    records = {record.name: record for record in run(tasks, "faulty", limit=1)}
    assert records["sin"].message == "time limit of 1 s"
    assert records["cos"].message == "the process died"
    assert records["tan"].status == "pass"


def test_command_line(monkeypatch, tmp_path, capsys):
    faulty = overlay(torch, "faulty", missing=("sin",), exp=lambda x, out=None: x)
    monkeypatch.setitem(sys.modules, "faulty", faulty)
    path = tmp_path / "out.json"
    only = "^(sin|exp|tan|sparse.sampled_addmm)$"
    conformance.main(["--candidate", "faulty", "--suite", "ops", "--only", only, "--json", str(path)])
    report = json.loads(path.read_text())
    row = next(row for row in report["summary"] if row["column"] == "float32")
    assert row == {
        "suite": "ops", "column": "float32", "applicable": 3,
        "pass": 1, "missing": 1, "wrong": 1, "raises": 0, "n/a": 0,
    }  # fmt: skip
    assert report["out_of_scope"][0]["entries"] == ["sparse.sampled_addmm"]
    fields = {field.name for field in dataclasses.fields(Record)}
    assert set(report["records"][0]) == fields
    output = capsys.readouterr().out
    assert "faulty has no sin" in output
    assert "exp [" in output


def test_candidate_that_cannot_be_imported():
    with pytest.raises(SystemExit, match="cannot import no_such_library"):
        run(tasks_for({"sin"}, ("ops",)), "no_such_library")
