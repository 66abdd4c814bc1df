"""docs/mistakes.md: thirty classic mistakes, each with the message that rushlight gives, which must
teach."""

import linecache
import re

import pytest

from tests.support.paths import ROOT

PAGE = ROOT / "docs" / "mistakes.md"
SETUP = "import rushlight as torch\nfrom rushlight import nn, optim\n"
CASE = re.compile(r"### \d+\. ([^\n]+)\n\n```python\n(.*?)\n```\n\n```pytb\n(.*?)\n```", re.DOTALL)
CASES = (
    {name: (code, shown) for name, code, shown in CASE.findall(PAGE.read_text())}
    if PAGE.exists()
    else {}
)


def message_of(code):
    """Type and message of the error, as a program "you.py" with these lines would see it."""
    lines = code.splitlines(keepends=True)
    linecache.cache["you.py"] = (len(code), None, lines, "you.py")
    scope = {"__name__": "__main__"}
    exec(SETUP, scope)
    try:
        exec(compile(code, "you.py", "exec"), scope)
    except Exception as error:
        return f"{type(error).__name__}: {error}".replace("\t", "    ").rstrip()
    finally:
        linecache.cache.pop("you.py", None)
    raise AssertionError("no error")


def test_there_are_thirty():
    assert len(CASES) >= 30
    assert len(CASES) == PAGE.read_text().count("### ")


@pytest.mark.parametrize("name", CASES)
def test_the_message_is_the_one_shown(name):
    code, shown = CASES[name]
    assert message_of(code) == shown


@pytest.mark.parametrize("name", CASES)
def test_the_message_says_where_and_what_to_do(name):
    _, shown = CASES[name]
    assert "hint:" in shown or "did you mean" in shown or "super().__init__()" in shown
    if "at: " in shown:
        assert re.search(r"  at: you\.py:\d+: \S", shown)


def torch_type(code):
    import torch

    scope = {"__name__": "__main__", "torch": torch, "nn": torch.nn, "optim": torch.optim}
    try:
        exec(code, scope)
    except Exception as error:
        return type(error)
    return None


@pytest.mark.parametrize("name", CASES)
def test_the_exception_is_torchs(name, torch):
    expected = torch_type(CASES[name][0])
    if expected is None:
        pytest.skip("torch does not refuse it")
    assert CASES[name][1].split(":")[0] in {kind.__name__ for kind in expected.__mro__}
