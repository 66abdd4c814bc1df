"""Hints look at what was written: a beginner's mistake, and the words that its hint must have, and must not have."""

from __future__ import annotations

import linecache

import pytest

import rushlight

WRITES = """
x = torch.ones(2, requires_grad=True)
y = x.exp()
{}
y.sum().backward()
"""
MISTAKES = {
    "max of Python": ("max(0, torch.ones(3))", ["clamp(min=0)", "torch.maximum"], [".any()"]),
    "min of Python": ("min(torch.ones(3), 1)", ["clamp(max=0)", "torch.minimum"], [".any()"]),
    "and of masks": ("x = torch.ones(3)\n(x > 0) and (x < 1)", ["&"], []),
    "not of a mask": ("not torch.ones(3)", ["~mask"], []),
    "if": ("if torch.ones(3): pass", [".any() or .all()"], ["&", "clamp"]),
    "grey pictures": ("nn.Conv2d(1, 8, 3)(torch.ones(32, 28, 28))", ["x.unsqueeze(1)"], ["in_channels=32"]),
    "a grey picture": ("nn.Conv2d(1, 8, 3)(torch.ones(28, 28))", ["x[None, None]"], ["flatten"]),
    "channels that differ": ("nn.Conv2d(3, 8, 3)(torch.ones(2, 4, 28, 28))", ["in_channels=4"], ["unsqueeze"]),
    "a loss rebuilt": (
        "w = torch.ones(2, requires_grad=True)\ntorch.tensor(w.sum()).backward()",
        ["torch.tensor(loss)"],
        [],
    ),
    "a series without features": (
        "nn.LSTM(1, 4, batch_first=True)(torch.ones(32, 10))",
        ["x.unsqueeze(-1)"],
        ["input_size=10"],
    ),
    "one series": ("nn.LSTM(1, 4)(torch.ones(10))", ["x.unsqueeze(-1)"], []),
    "features first": ("nn.LSTM(5, 4, batch_first=True)(torch.ones(32, 5, 10))", ["movedim(1, -1)"], ["input_size=10"]),
    "+=": (WRITES.format("y += 1"), ["`y = y + 1` instead of `y += 1`"], ["x = x"]),
    "*= of a sum": (WRITES.format("y *= 1 + 2"), ["`y = y * (1 + 2)`"], ["x = x"]),
    "mul_": (WRITES.format("y.mul_(2)"), ["`y = y.mul(2)`"], ["+="]),
    "assigned": (WRITES.format("z = y.relu_()"), ["`z = y.relu()`"], ["+="]),
    "an element": (WRITES.format("y[0] = 1"), ["clone()"], ["+="]),
    "a layer in place": (WRITES.format("nn.ReLU(inplace=True)(y)"), ["leave out inplace=True"], ["+="]),
    "a step before backward": (
        """
m = nn.Sequential(nn.Linear(2, 1), nn.Linear(1, 1))
loss = m(torch.ones(1, 2)).sum()
loss.backward(retain_graph=True)
torch.optim.SGD(m.parameters(), lr=0.1).step()
loss.backward()
""",
        ["run the forward pass again after step()"],
        ["+="],
    ),
    "a list of modules called": (
        "nn.ModuleList([nn.Linear(2, 2)])(torch.ones(2))",
        ["call each of them"],
        ["def forward"],
    ),
    "one logit for two classes": (
        "F.cross_entropy(torch.ones(2, 1), torch.tensor([0, 1]))",
        ["binary_cross_entropy_with_logits"],
        ["0 to 0"],
    ),
    "clip_grad_norm_ of a module": ("nn.utils.clip_grad_norm_(nn.Linear(2, 2), 1.0)", ["model.parameters()"], []),
    "batches of matrices": (
        "torch.ones(2, 3, 4) @ torch.ones(3, 4, 5)",
        ["size of tensor a (2) must match the size of tensor b (3)", "dimension 0", "are batch dimensions"],
        ["inner", "reshape()"],
    ),
    "a vector for each matrix": ("torch.ones(2, 3, 4) @ torch.ones(2, 4)", ["b.unsqueeze(-1)"], ["did you mean"]),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_the_hint_fits_the_statement(name, tmp_path):
    text, wanted, unwanted = MISTAKES[name]
    file = tmp_path / "program.py"
    file.write_text(text)
    linecache.checkcache()
    nn = rushlight.nn
    scope = {"torch": rushlight, "nn": nn, "F": nn.functional}
    with pytest.raises((RuntimeError, TypeError, ValueError, IndexError)) as error:
        exec(compile(text, str(file), "exec"), scope)
    lines = str(error.value).split("\n")
    said = "\n".join([line for line in lines if not line.startswith(("  at:", "  written at:"))])
    for words in wanted:
        assert words in said
    for words in unwanted:
        assert words not in said


INTERNAL = {
    "cosine_similarity": lambda: rushlight.cosine_similarity(rushlight.ones(2), rushlight.ones(3), 0),
    "split of a number": lambda: rushlight.ones(()).split(2),
    "interpolate by nan": lambda: rushlight.nn.functional.interpolate(
        rushlight.ones(1, 1, 2), scale_factor=float("nan")
    ),
    "repeats of a float": lambda: rushlight.ones(3).repeat_interleave(1.5),
    "padding with a list": lambda: rushlight.constant_pad_nd(rushlight.ones(2), (1, 1), [1.0]),
    "a solution of a vector": lambda: rushlight.linalg.solve(rushlight.ones(()), rushlight.ones(2)),
    "a window below 0": lambda: rushlight.stft(rushlight.ones(8), -9, return_complex=True),
}


@pytest.mark.parametrize("name", INTERNAL)
def test_the_words_of_numpy_do_not_reach_the_user(name):
    with pytest.raises((RuntimeError, TypeError, ValueError, IndexError)) as error:
        INTERNAL[name]()
    text = str(error.value)
    assert "\n  at: " in text
    for words in ("tuple index", "broadcast together", "array", "axis", "dtype(", "convert float"):
        assert words not in text.partition("\n  at: ")[0]
