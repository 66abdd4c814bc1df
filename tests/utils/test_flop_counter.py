"""torch.utils.flop_counter: the counts and tables of torch 2.13."""

from __future__ import annotations

import importlib
import threading

import pytest

import rushlight
from rushlight import nn
from rushlight.utils.flop_counter import FlopCounterMode

# case -> operations forward and backward, by the names of torch; recorded from torch 2.13
RECORDED = {
    "mm": {"aten.mm": 360},
    "mm of one that needs a gradient": {"aten.mm": 240},
    "bmm": {"aten.bmm": 720},
    "stack @ matrix": {"aten.mm": 720},
    "broadcast stacks": {"aten.bmm": 1440},
    "vector @ matrix": {"aten.mm": 72},
    "matrix @ vector": {},
    "addmm": {"aten.addmm": 120, "aten.mm": 240},
    "baddbmm": {"aten.baddbmm": 240, "aten.bmm": 480},
    "einsum": {"aten.bmm": 1440},
    "tensordot": {"aten.mm": 720},
    "linear": {"aten.addmm": 120, "aten.mm": 240},
    "linear of a stack": {"aten.mm": 720},
    "linear of a leaf": {"aten.addmm": 120, "aten.mm": 120},
    "conv1d": {"aten.convolution": 1152, "aten.convolution_backward": 2304},
    "conv2d in groups": {"aten.convolution": 15552, "aten.convolution_backward": 46656},
    "conv2d of a leaf": {"aten.convolution": 15552, "aten.convolution_backward": 31104},
    "conv2d with a constant weight": {"aten.convolution": 31104, "aten.convolution_backward": 31104},
    "conv2d with a bias that learns": {"aten.convolution": 15552, "aten.convolution_backward": 0},
    "conv3d": {"aten.convolution": 2592, "aten.convolution_backward": 5184},
    "conv_transpose2d": {"aten.convolution": 3072, "aten.convolution_backward": 6144},
    "conv_transpose2d in groups": {"aten.convolution": 3072, "aten.convolution_backward": 9216},
    "attention of ops": {"aten.bmm": 4800},
    "mul": {},
}


def calls(torch):
    """case -> a function that makes the case's tensors and computes."""
    f = torch.nn.functional

    def r(*shape, grad=True):
        return torch.randn(*shape, requires_grad=grad)

    q = 2, 2, 5, 4
    return {
        "mm": lambda: r(3, 4) @ r(4, 5),
        "mm of one that needs a gradient": lambda: r(3, 4, grad=False) @ r(4, 5),
        "bmm": lambda: torch.bmm(r(2, 3, 4), r(2, 4, 5)),
        "stack @ matrix": lambda: r(2, 3, 4) @ r(4, 5),
        "broadcast stacks": lambda: r(2, 1, 3, 4) @ r(2, 4, 5),
        "vector @ matrix": lambda: r(3) @ r(3, 4),
        "matrix @ vector": lambda: r(3, 4) @ r(4),
        "addmm": lambda: torch.addmm(r(5), r(3, 4), r(4, 5)),
        "baddbmm": lambda: torch.baddbmm(r(2, 3, 5), r(2, 3, 4), r(2, 4, 5)),
        "einsum": lambda: torch.einsum("bhij,bhkj->bhik", r(2, 2, 3, 4), r(2, 2, 5, 4)),
        "tensordot": lambda: torch.tensordot(r(2, 3, 4), r(3, 4, 5), 2),
        "linear": lambda: f.linear(r(3, 4), r(5, 4), r(5)),
        "linear of a stack": lambda: f.linear(r(2, 3, 4), r(5, 4)),
        "linear of a leaf": lambda: f.linear(r(3, 4, grad=False), r(5, 4), r(5)),
        "conv1d": lambda: f.conv1d(r(2, 3, 8), r(4, 3, 3), r(4), padding=1),
        "conv2d in groups": lambda: f.conv2d(r(2, 4, 8, 8), r(6, 2, 3, 3), None, groups=2),
        "conv2d of a leaf": lambda: f.conv2d(r(2, 4, 8, 8, grad=False), r(6, 2, 3, 3), r(6), groups=2),
        "conv2d with a constant weight": lambda: f.conv2d(r(2, 4, 8, 8), r(6, 4, 3, 3, grad=False)),
        "conv2d with a bias that learns": lambda: f.conv2d(r(2, 3, 8, 8, grad=False), r(4, 3, 3, 3, grad=False), r(4)),
        "conv3d": lambda: f.conv3d(r(1, 2, 4, 4, 4), r(3, 2, 2, 2, 2)),
        "conv_transpose2d": lambda: f.conv_transpose2d(r(2, 3, 4, 4), r(3, 4, 2, 2), r(4), stride=2),
        "conv_transpose2d in groups": lambda: f.conv_transpose2d(r(2, 4, 4, 4), r(4, 3, 2, 2), None, groups=2),
        "attention of ops": lambda: f.scaled_dot_product_attention(r(*q), r(*q), r(*q), None, 0.5),
        "mul": lambda: r(3) * 2,
    }


def counted(torch, call, backward=True):
    counter = importlib.import_module(f"{torch.__name__}.utils.flop_counter")
    with counter.FlopCounterMode(display=False) as mode:
        result = call()
        if backward:
            result.sum().backward()
    return mode


def by_name(mode):
    return {
        module: {str(op): flops for op, flops in counts.items()} for module, counts in mode.get_flop_counts().items()
    }


@pytest.mark.parametrize("case", RECORDED)
def test_counts_are_those_of_torch(case):
    mode = counted(rushlight, calls(rushlight)[case])
    assert by_name(mode).get("Global", {}) == RECORDED[case]
    assert mode.get_total_flops() == sum(RECORDED[case].values())


def model_of(torch):
    nn = torch.nn
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Sequential(nn.Linear(128, 6), nn.Linear(6, 2))
    )
    return lambda: model(torch.ones(2, 3, 4, 4))


# get_table(depth=1) of torch 2.13
TABLES = {
    "model": """\
Module                          FLOP    % Total
---------------------------  -------  ---------
Sequential                   37.008K    100.00%
- aten.convolution           13.824K     37.35%
- aten.addmm                  3.120K      8.43%
- aten.mm                     6.240K     16.86%
- aten.convolution_backward  13.824K     37.35%""",
    "addmm": """\
Module          FLOP    % Total
------------  ------  ---------
Global           360    100.00%
- aten.addmm     120     33.33%
- aten.mm        240     66.67%""",
    "mul": """\
Module      FLOP    % Total
--------  ------  ---------
Global         0         0%""",
    "model and a product": """\
Module                            FLOP    % Total
---------------------------  ---------  ---------
Global                       3637.008K    100.00%
- aten.convolution             13.824K      0.38%
- aten.addmm                    3.120K      0.09%
- aten.mm                    3606.240K     99.15%
- aten.convolution_backward    13.824K      0.38%
Sequential                     37.008K      1.02%
- aten.convolution             13.824K      0.38%
- aten.addmm                    3.120K      0.09%
- aten.mm                       6.240K      0.17%
- aten.convolution_backward    13.824K      0.38%""",
}


def test_modules_have_rows():
    mode = counted(rushlight, model_of(rushlight))
    counts = by_name(mode)
    assert counts["Sequential"] == counts["Global"]
    assert counts["Sequential.0"] == {"aten.convolution": 13824, "aten.convolution_backward": 13824}
    assert counts["Sequential.3.1"] == {"aten.addmm": 48, "aten.mm": 96}
    assert "Sequential.3.1" not in mode.get_table()
    assert "Sequential.3.1" in mode.get_table(3)


@pytest.mark.parametrize("case", TABLES)
def test_tables_are_those_of_torch(case):
    model = model_of(rushlight)
    call = {"model": model, "model and a product": lambda: model().sum() + (ones(300, 400) @ ones(400, 5)).sum()}.get(
        case
    ) or calls(rushlight)[case]
    assert counted(rushlight, call).get_table(depth=1) == TABLES[case]


def ones(*shape):
    return rushlight.ones(*shape, requires_grad=True)


def test_fused_attention_counts_as_on_a_gpu():
    # torch.utils.flop_counter.sdpa_flop_count and sdpa_backward_flop_count of these shapes
    q, k, v = (rushlight.randn(2, 2, *shape, requires_grad=True) for shape in [(5, 4), (6, 4), (6, 3)])
    mode = counted(rushlight, lambda: nn.functional.scaled_dot_product_attention(q, k, v))
    name = "aten._scaled_dot_product_flash_attention"
    assert by_name(mode)["Global"] == {name: 1680, f"{name}_backward": 4320}


def test_keys_are_ops_of_aten():
    mode = counted(rushlight, calls(rushlight)["conv1d"])
    aten = rushlight.ops.aten
    assert set(mode.flop_counts["Global"]) == {aten.convolution, aten.convolution_backward}


def test_backward_that_records_counts_once():
    x, y = (rushlight.randn(*shape, requires_grad=True) for shape in [(3, 4), (4, 5)])
    with FlopCounterMode(display=False) as mode:
        rushlight.autograd.grad((x @ y).sum(), (x, y), create_graph=True)
    assert mode.get_total_flops() == 360


def test_backward_frees_what_it_would_free():
    x = rushlight.randn(3, 3, requires_grad=True)
    with FlopCounterMode(display=False):
        y = (x @ x).sum()
        y.backward()
        with pytest.raises(RuntimeError, match="second time"):
            y.backward()


def test_other_threads_and_later_calls_do_not_count():
    x = rushlight.randn(3, 3)
    with FlopCounterMode(display=False) as mode:
        thread = threading.Thread(target=lambda: x @ x)
        thread.start()
        thread.join()
        with pytest.raises(RuntimeError, match="twice"):
            mode.__enter__()
    x @ x
    assert mode.get_total_flops() == 0
    assert mode.get_table().split()[-3:] == ["Global", "0", "0%"]


def test_the_table_is_printed_at_the_end(capsys):
    x = rushlight.randn(3, 3)
    with FlopCounterMode() as mode:
        x @ x
    assert capsys.readouterr().out == mode.get_table() + "\n"
    with pytest.raises(NotImplementedError, match="hint"):
        FlopCounterMode(custom_mapping={rushlight.ops.aten.mul: None})
