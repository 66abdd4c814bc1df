"""Hostile TorchScript archives: each is refused with a clear error, in 5 s and 500 MB, and nothing of it is executed."""

from __future__ import annotations

import io
import sys
import zipfile
from pathlib import Path

import pytest

import rushlight
from rushlight.archives import LimitExceeded
from rushlight.serialization.archive import Damaged

sys.path.insert(0, str(Path(__file__).parents[2] / "fuzz"))
import files as fuzz_files
from archives import CLASS, CODE, GOOD, archive, module, tensor, text

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are those of Linux")


def statement(line):
    """An archive whose forward has a statement."""
    return archive(CLASS.format("\n".join(f"    {part}" for part in [*line.split("\n"), "return x"])))


STATEMENTS = [
    "import os", "from os import system", "import os as torch", "del x", "global x", "raise x", "assert x",
    "y = lambda: x", "y = [z for z in x]", "y = {z for z in x}", "y = {z: z for z in x}", "y = (z for z in x)",
    "try:\n  pass\nexcept:\n  pass", "def f():\n  pass", "class F:\n  pass", "async def f():\n  pass", "yield x",
    "await x", "y = x.__class__", "y = (x).__class__", "y = self.__dict__", "y = self.__class__.__bases__",
    "self.__class__ = x", "self.__dict__ = x", "y = getattr(self, \"__class__\")", "y = getattr(x, y)",
    "y = (x).__reduce__()", "y = x.forward.__globals__", "__import__(\"os\")", "y = __builtins__", "y = __loader__",
    "y = f\"{x.__class__}\"", "y = x if x else x.__class__", "x[0] = 1", "x += 1", "y = x + x", "y = x and x",
    "y = x < x", "y = not x", "y = ~x", "y = (z := x)", "y = [*x]", "y = {**x}", "f(*x)", "f(**x)", "y = b\"x\"",
    "y = ...", "y = 99999999999999999999", "y: x = x.__class__", "for __class__ in range(1):\n  pass",
    "for i in x:\n  break\nelse:\n  pass", "while x:\n  continue", "match x:\n  case 1:\n    pass", "y = torch",
    "y = torch.add", "y = ops.prim", "y = z = x", "with x as __class__:\n  pass", "print(\"a\", file=x)", "y = bool()",
    "y = int(x, base=2)", "y = torch.add.sub(x)", "y = annotate(x)", "y = self.w.__array__()",
    "y = torch.__class__.x(x)", "y = __torch__.m.M.__class__(x)", "y = builtins.__new__(x)", "y = x.__new__(x)",
]  # fmt: skip


def hostile():
    """(name, bytes) of the files."""
    good = archive()
    yield from ((f"cut at {i}", good[: len(good) * i // 16]) for i in range(16))
    yield from ((f"statement {line!r}", statement(line)) for line in STATEMENTS)
    yield from ((f"pickle of {n!r}", archive(data=d)) for n, d in pickles())
    yield from ((f"code {n}", archive(code=c)) for n, c in codes())
    yield from records()


def pickles():
    """Pickles that call, loop, or reach outside."""
    yield "os.system", b"cos\nsystem\nX\4\0\0\0true\x85R."
    yield "builtins.eval", b"cbuiltins\neval\n" + text("1") + b"\x85R."
    yield "a reduce of the class", b"c__torch__.m\nM\n(tR."
    yield "a class that is missing", module(name="__torch__.m\nN")
    yield "a class of Python", module(name="rushlight\nTensor")
    yield "a path as a class", module(name="__torch__.../m\nM")
    yield "no module", b"\x80\x02K\x01."
    yield "a list", b"\x80\x02]."
    yield "a state twice", module()[:-1] + b"}b."
    yield "a state that is a list", b"\x80\x02c__torch__.m\nM\n)\x81]b."
    yield "a module in itself", b"\x80\x02c__torch__.m\nM\n)\x81q\x00}(" + text("w") + b"h\x00ub."
    yield "a list in itself", b"\x80\x02c__torch__.m\nM\n)\x81}(" + text("v") + b"]q\x00h\x00aub."
    yield "a dict in itself", b"\x80\x02c__torch__.m\nM\n)\x81}(" + text("v") + b"}q\x00" + text("k") + b"h\x00sub."
    yield "deep lists", b"\x80\x02c__torch__.m\nM\n)\x81}(" + text("v") + b"]" * 5000 + b"a" * 4999 + b"ub."
    yield "a number as a name", b"\x80\x02c__torch__.m\nM\n)\x81}(K\x01K\x01ub."
    yield (
        "a name with a dot",
        module(weight=tensor())[:-3].replace(b"w", b"w") + text("a.b") + b"c__torch__.m\nM\n)\x81}bub.",
    )
    yield "a weight that is a text", module(weight=text("abc") + b"0" + b"]")
    for size in (2**31, 2**40, 2**60, -1, 2**64):
        yield f"a size of {size}", module(weight=tensor(size=(size,)))
        yield f"a storage of {size}", module(weight=tensor(elements=size))
        yield f"an offset of {size}", module(weight=tensor(offset=size))
    for size in (2, 2**61, -1):
        yield f"a stride of {size}", module(weight=tensor(stride=(size,)))
    for key in ("../0", "/etc/passwd", "1", "", "../../data.pkl"):
        yield f"memory at {key!r}", module(weight=tensor(key=key))
    yield "a storage of another kind", module(weight=tensor(kind="SystemStorage"))


def codes():
    """Code that TorchScript does not have."""
    yield "that is no Python", "class M(Module):\n  def"
    yield "with a null", GOOD + "\0"
    yield "with a statement outside", "print(1)\n" + GOOD
    yield "with an import", "import os\n" + GOOD
    yield "with a call in a default", GOOD.replace("x: Tensor)", 'x: Tensor=__import__("os"))')
    yield "with a decorator", GOOD.replace("  def forward", "  @print\n  def forward")
    yield "with another base", GOOD.replace("(Module)", "(object)")
    yield "with a metaclass", GOOD.replace("(Module)", "(Module, metaclass=type)")
    yield "with a statement in the class", GOOD.replace("  w : Tensor", "  print(1)")
    yield "with a setting in the class", GOOD.replace("  w : Tensor", "  __slots__ = []")
    yield "with names that are numbers", GOOD.replace('["w", ]', "[1]")
    yield "with names that are a call", GOOD.replace('["w", ]', "print(1)")
    yield "with *args", GOOD.replace("x: Tensor)", "*x)")
    yield "with deep brackets", CLASS.format("    return " + "(" * 150 + "x" + ",)" * 150)
    yield "with very deep brackets", CLASS.format("    return " + "[" * 10**5)
    yield "with many minus signs", CLASS.format("    return " + "-" * 10**5 + "1")
    yield "with a long chain", CLASS.format("    return x" + ".a" * 10**5)
    yield "with a million lines", CLASS.format("    y = x\n" * 10**6)
    yield "with a number of 10000 digits", CLASS.format("    return " + "9" * 10**4)
    yield "in another place", GOOD.replace("class M", "class N")


def records():
    """Records that are missing, double, or elsewhere."""
    for missing in ("data.pkl", "constants.pkl", CODE, "data/0"):
        yield f"without {missing}", archive(**{missing: None})
    yield "names that climb", archive(**{"../../evil": "x"})
    yield "names from the root", archive(folder="/m/")
    yield "short memory", archive(**{"data/0": b"1234"})
    yield "code that is not UTF-8", archive(code=b"\xff\xfe")
    yield "constants that call", archive(constants=b"cos\nsystem\nX\4\0\0\0true\x85R.")
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as bomb:
        for name, content in {"data.pkl": module(), "constants.pkl": b"\x80\x02).", CODE: " " * 10**9}.items():
            bomb.writestr("m/" + name, content)
    yield "code of a gigabyte", file.getvalue()
    yield "text", b"hello, this is no archive"
    yield "nothing", b""
    yield "a zip without records", b"PK\5\6" + bytes(18)


FILES = dict(hostile())
# code that is TorchScript, and computes without end or without measure when it runs
ENDLESS = {
    "an endless loop": "while True:\n  y = 1",
    "a long loop": "for i in range(9223372036854775807):\n  y = i",
    "loops in loops": "for i in range(100000):\n  for j in range(100000):\n    y = j",
    "growing integers": "y = 3\nwhile True:\n  y = torch.mul(y, y)",
    "a power": "y = torch.pow(10, 9223372036854775807)",
    "a shift": "y = torch.__lshift__(1, 9223372036854775807)",
    "growing texts": 'y = "a"\nwhile True:\n  y = torch.add(y, y)',
    "a long text": 'y = torch.mul("a", 9223372036854775807)',
    "growing lists": "y = [1]\nwhile True:\n  y = torch.add(y, y)",
    "a list of its own elements": "y = [1]\nwhile True:\n  torch.extend(y, y)",
    "many elements": "y = [1]\nwhile True:\n  z = torch.append(y, 1)",
    "a list in itself": 'y = annotate(List[int], [])\nz = torch.append(y, y)\nu = torch.format("{}", y)\nwhile True:\n  pass',
    "zeros": "y = torch.zeros([1099511627776])",
    "zeros of many dimensions": "y = torch.zeros([65536, 65536, 65536])",
    "a negative size": "y = torch.zeros([-1])",
    "numbers": "y = torch.arange(9223372036854775807)",
    "an identity": "y = torch.eye(1000000)",
    "repeated elements": "y = torch.repeat(x, [1000000, 1000000])",
    "expanded elements": "y = torch.clone(torch.expand(x, [1000000, 1000000, 2]))",
    "padding": "y = torch.pad(x, [9223372036854775807, 0])",
    "classes": "y = torch.one_hot(torch.to(x, 4), 9223372036854775807)",
    "a large picture": "y = torch.upsample_nearest2d(torch.view(x, [1, 1, 1, 2]), [1000000, 1000000], None)",
    "tensors in a list": "y = annotate(List[Tensor], [])\nwhile True:\n  z = torch.append(y, torch.zeros([10000000]))",
    "a call of itself": "y = (self).forward(x)",
    "a product": "y = torch.outer(torch.zeros([10000000]), torch.zeros([10000000]))",
    "a file": 'y = torch.from_file("/etc/passwd", False, 10)',
    "another file": 'y = torch.load("/etc/passwd")',
    "a system call": 'y = torch.system("true")',
    "a private operator": 'y = torch._C("true")',
    "an operator of another library": "y = ops.os.system(x)",
    "an attribute in a text": 'y = torch.format("{0.__class__}{}", 1)\nops.prim.RaiseException(y)',
    "a wide number in a text": 'y = torch.percentFormat("%9999999999d", 1)\nops.prim.RaiseException(y)',
    "a name without a value": "y = z",
    "a tensor's attribute": "y = x._array",
    "a tensor's method": "y = (x).numpy()",
    "a module's attribute": "y = self._parameters",
    "a constant that is missing": "y = CONSTANTS.c7",
    "a constant's attribute": "y = CONSTANTS.append",
    "a function that is missing": "y = __torch__.os.system(x)",
    "a class that is a function": "y = __torch__.m.M.__new__(__torch__.m.M)",
}
CLEAR = (
    rushlight.jit.Error,
    RuntimeError,
    ValueError,
    TypeError,
    AttributeError,
    NameError,
    IndexError,
    ArithmeticError,
)


def test_there_are_a_hundred():
    assert len(FILES) >= 100


def test_the_archive_itself_is_good():
    assert rushlight.jit.load(io.BytesIO(archive()))(rushlight.ones(2)).tolist() == [2, 3]


def refused(name):
    with fuzz_files.limited(), pytest.raises((Damaged, EOFError)):
        rushlight.jit.load(io.BytesIO(FILES[name]))


@LINUX
@pytest.mark.parametrize("name", FILES)
def test_a_hostile_file_is_refused(name, monkeypatch):
    refused(name)  # imports modules, which runs code

    def ran(*_):
        pytest.fail("code ran")

    monkeypatch.setattr("builtins.exec", ran)
    monkeypatch.setattr("builtins.eval", ran)
    monkeypatch.setattr("os.system", ran)
    refused(name)


def test_texts_look_up_no_attributes():
    name = "an attribute in a text"
    with pytest.raises(rushlight.jit.Error, match=r"Exception: \{0\.__class__\}1"):
        rushlight.jit.load(io.BytesIO(statement(ENDLESS[name])))(rushlight.ones(2))


@LINUX
@pytest.mark.parametrize("name", ENDLESS)
def test_a_hostile_program_is_stopped(name):
    model = rushlight.jit.load(io.BytesIO(statement(ENDLESS[name])))
    with fuzz_files.limited(), pytest.raises(CLEAR):
        model(rushlight.ones(2))


def test_limits_can_be_raised():
    model = rushlight.jit.load(io.BytesIO(statement("for i in range(50):\n  y = i")))
    assert model(rushlight.ones(2)).shape == (2,)
    with rushlight.archives.limits(steps=10), pytest.raises(LimitExceeded, match="limits"):
        model(rushlight.ones(2))
    wide = rushlight.jit.load(io.BytesIO(statement("y = torch.zeros([1000])")))
    wide(rushlight.ones(2))
    with rushlight.archives.limits(bytes=100), pytest.raises(LimitExceeded, match="limits"):
        wide(rushlight.ones(2))
