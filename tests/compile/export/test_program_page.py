"""`compiler.source(f)`: the page says what runs, in the user's names. It is run here with the op table's kernels, and
gives the numbers of the compiled step."""

import ast
import re

import numpy as np
import pytest

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import compiler, nn
from rushlight.compile.lower.runtime import check_classes
from rushlight.core.table import TABLE

ELEMENTARY = "where exp log sqrt tanh pow maximum minimum abs".split()
TITLE = '"""Made by rushlight.compile from train_step.\n'


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(20, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x):
        h = F.gelu(self.fc1(x))
        return self.fc2(h)


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 5)
        self.fc1 = nn.Linear(64, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        return self.fc1(x.flatten(1))


class RNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.wx = nn.Linear(8, 16)
        self.wh = nn.Linear(16, 16, bias=False)
        self.out = nn.Linear(16, 10)

    def forward(self, x):
        h = torch.zeros(x.shape[0], 16)
        for t in range(x.shape[1]):
            h = torch.tanh(self.wx(x[:, t]) + self.wh(h))
        return self.out(h)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(12, 16)
        self.norm = nn.LayerNorm(16)
        self.qkv = nn.Linear(16, 48)
        self.head = nn.Linear(16, 10)

    def forward(self, i):
        x = self.emb(i)
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        x = x + F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.head(x).mean(1)


def trained(model, x, optimizer):
    torch.manual_seed(0)
    y = torch.randint(0, 10, (len(x),))
    opt = optimizer(model.parameters(), lr=0.01)

    @torch.compile(fullgraph=True)
    def train_step(x, y):
        opt.zero_grad()
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        loss.backward()
        opt.step()
        return loss

    for _ in range(3):
        train_step(x, y)
    return train_step, opt, x, y


def named_state(model, opt):
    """The arrays that a page finds as globals: parameters, and what the optimizer keeps of them."""
    found = {}
    for path, p in model.named_parameters():
        name = path.replace(".", "_")
        found[name] = p.detach().numpy().copy()
        for key, value in opt.state[p].items():
            if isinstance(value, torch.Tensor):
                found[f"{name}_{key}"] = value.numpy().copy()
    return found


CASES = {
    "mlp": lambda: (MLP(), torch.randn(16, 20), torch.optim.AdamW),
    "lenet": lambda: (LeNet(), torch.randn(4, 1, 12, 12), torch.optim.SGD),
    "rnn": lambda: (RNN(), torch.randn(6, 3, 8), torch.optim.Adam),
    "attention": lambda: (Attention(), torch.randint(0, 12, (4, 7)), torch.optim.SGD),
}


def functions(page):
    """The names of the functions that the page defines."""
    return re.findall(r"^def (\w+)\(", page, re.M)


@pytest.mark.parametrize("case", CASES)
def test_the_page_computes_what_the_program_computes(case):
    torch.manual_seed(1)
    model, x, optimizer = CASES[case]()
    step, opt, x, y = trained(model, x, optimizer)
    page = compiler.source(step)
    names = {name: op.kernel for name, op in TABLE.items()}
    names |= {name: getattr(np, name) for name in ELEMENTARY}
    names |= {"np": np, "f32": np.float32, "f64": np.float64, "check_classes": check_classes}
    ran = names | named_state(model, opt)
    exec(page, ran)
    with np.errstate(all="ignore"):
        results, _ = ran["train_step"](x.numpy(), y.numpy())
    np.testing.assert_allclose(results[0], step(x, y).detach().numpy(), rtol=1e-5, atol=1e-6)
    for name, value in named_state(model, opt).items():
        np.testing.assert_allclose(ran[name], value, rtol=1e-4, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("case", CASES)
def test_the_page_has_no_made_up_names(case):
    torch.manual_seed(1)
    step, *_ = trained(*CASES[case]())
    page = compiler.source(step)
    ast.parse(page)
    assert page.startswith(TITLE)
    assert re.findall(r"\b[vtprkxc]\d+\b|\bloop_\d+|\barg\d+|§|8192", page.partition("def ")[2]) == []
    assert max(map(len, page.splitlines())) <= 100


def test_the_page_of_an_mlp():
    torch.manual_seed(1)
    step, *_ = trained(*CASES["mlp"]())
    page = compiler.source(step)
    lines = page.splitlines()
    assert "gradients (after zero_grad())" in "\n".join(lines[:8])
    assert len(lines) <= 80
    begin = lines.index("def train_step(x, y):")
    assert [line for line in lines[begin:] if not line.startswith("    #")][:5] == [
        "def train_step(x, y):",
        "    check_classes(y, classes=10, ignore_index=-100)",
        "    h_mm = x @ fc1_weight.T",
        "    h_add, h = linear_gelu(h_mm, fc1_bias)",
        "    fc2_mm = h @ fc2_weight.T",
    ]
    at = lines.index("def linear_gelu(h_mm, fc1_bias):")
    assert lines[at + 1 : at + 3] == ["    h_add = h_mm + fc1_bias", "    return h_add, gelu(h_add)"]
    assert functions(page) == [
        "linear_gelu",
        "linear_cross_entropy_rows",
        "cross_entropy",
        "cross_entropy_backward_rows",
        "adamw_factors",
        "adamw",
        "train_step",
    ]
    above = lines[lines.index("    h_mm = x @ fc1_weight.T") - 1]
    assert above.endswith("h = F.gelu(self.fc1(x))")
    assert "test_program_page.py:" in above
    assert "    # AdamW: lr=0.01, betas=(0.9, 0.999), eps=1e-08, weight_decay=0.01" in lines


class Block(nn.Module):
    """A residual add in front of a layer norm, and functions of nn.functional."""

    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(20, 20), nn.Linear(20, 10)
        self.norm = nn.LayerNorm(20)

    def forward(self, x):
        x = x + self.fc1(x)
        return self.fc2(F.silu(self.norm(x)))


def test_loops_have_the_names_of_the_functions_that_they_compute():
    torch.manual_seed(1)
    step, *_ = trained(Block(), torch.randn(16, 20), torch.optim.SGD)
    page = compiler.source(step)
    assert functions(page) == [
        "linear_add_layer_norm_silu_rows",
        "linear_cross_entropy_rows",
        "cross_entropy",
        "cross_entropy_backward_rows",
        "silu_layer_norm_backward_rows",
        "train_step",
    ]


def test_statements_of_backward_have_the_line_that_they_are_the_backward_of():
    torch.manual_seed(1)
    step, *_ = trained(*CASES["mlp"]())
    lines = compiler.source(step).splitlines()
    (above,) = [i for i, line in enumerate(lines) if "fc2_weight_grad = " in line]
    comment = next(line for line in reversed(lines[:above]) if line.startswith("    #"))
    assert re.fullmatch(r"    # backward of test_program_page.py:\d+ return self.fc2\(h\)", comment)
    assert not any("backward()" in line for line in lines)


def test_a_constant_of_the_program_is_named_with_its_shape():
    mask = torch.tensor([float(i % 2) for i in range(20)])

    @torch.compile
    def masked(x):
        return (x * mask).tanh() + torch.arange(20.0).flip(0)

    for _ in range(3):
        masked(torch.randn(4, 20))
    page = compiler.source(masked)
    names = re.findall(r"(\w+): float32\[20\], a constant", page)
    assert names
    for name in names:
        assert re.search(rf"\b{name}\b", page[page.index("def ") :])


def test_full_is_the_text_that_runs():
    step, *_ = trained(MLP(), torch.randn(16, 20), torch.optim.SGD)
    assert compiler.source(step, full=True) == compiler.programs(step)[-1].source


def test_a_compiled_module_has_pages_of_forward_and_backward():
    model = torch.compile(nn.Sequential(nn.Linear(4, 3), nn.Tanh()))
    for _ in range(3):
        model(torch.ones(2, 4)).sum().backward()
    page = compiler.source(model)
    ast.parse(page)
    assert "layer0_weight" in page
    assert len(re.findall(r"^def \w+_backward\(", page, re.M)) == 1
