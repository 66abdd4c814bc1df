"""What a program is guarded by: Python state that the code reads, and no other."""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass
from types import ModuleType

import rushlight as torch
from rushlight import nn
from rushlight.compile import compile, programs

X = torch.ones(2)


class Plain:
    """An object of the user's: what it is used for, and what else it keeps."""

    def __init__(self):
        self.scale, self.count, self.seen, self.hidden = 2.0, 0, [], 3.0

    def apply(self, x):
        return x * self.scale

    @property
    def double(self):
        return 2 * self.hidden

    @functools.cached_property
    def kept(self):
        return self.hidden

    def by_name(self, x):
        return x * getattr(self, "hid" + "den")

    def __call__(self, x):
        return x + self.hidden


def settled(f, *args):
    for _ in range(4):
        f(*args)
    assert len(programs(f)) == 1, f.given_up
    return f


def test_attributes_that_no_code_names_are_free_to_change():
    thing = Plain()
    f = settled(compile(thing.apply, backend="numpy"), X)
    for i in range(30):
        thing.count += 1
        thing.seen.append(i)
        assert f(X).tolist() == [2.0, 2.0]
    assert len(programs(f)) == 1
    assert not f.given_up
    thing.scale = 5.0
    assert f(X).tolist() == [5.0, 5.0]


def test_attributes_that_are_read_by_properties_names_and_special_methods():
    for read in (
        lambda x, t: x * t.double,
        lambda x, t: t.by_name(x) * 2,
        lambda x, t: t(x) + t.hidden,
        lambda x, t: x * t.hidden * 2,
        lambda x, t: x * t.kept * 2,
    ):
        thing = Plain()
        f = settled(compile(lambda x, t=thing, read=read: read(x, t), backend="numpy"), X)
        assert f(X)[0] in (6.0, 7.0)
        thing.hidden = 4.0
        thing.__dict__.pop("kept", None)
        assert f(X)[0] == read(X, thing)[0]


def test_attributes_that_come_later():
    thing = Plain()
    f = settled(compile(lambda x: x * (thing.extra if hasattr(thing, "extra") else 1), backend="numpy"), X)
    thing.extra = 7
    assert f(X).tolist() == [7.0, 7.0]
    del thing.extra
    assert f(X).tolist() == [1.0, 1.0]


def test_a_module_that_counts_its_epochs():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.epoch, self.power = nn.Linear(2, 2), 0, 1

        def forward(self, x):
            return self.layer(x) * self.power

    net = Net()
    f = settled(compile(net, backend="numpy"), X)
    for _ in range(30):
        net.epoch += 1
        f(X)
    assert len(programs(f)) == 1
    net.power = 3
    assert torch.allclose(f(X), net(X))
    net.layer = nn.Linear(2, 2)
    assert torch.allclose(f(X), net(X))


def test_a_dataclass_and_a_match():
    @dataclass
    class Setting:
        scale: float
        other: int = 0

    thing = Setting(2.0)

    def f(x):
        match thing:
            case Setting(other=1):
                return x
        return x * thing.scale

    g = settled(compile(f, backend="numpy"), X)
    thing.other = 1
    assert g(X).tolist() == [1.0, 1.0]


def test_numbers_in_small_arrays_and_sets():
    import numpy as np

    counts, names = np.zeros(2), {"a"}

    def f(x):
        counts[0] += 1
        return x * len(names)

    g = compile(f, backend="numpy")
    for i in range(6):
        assert g(X).tolist() == [1.0, 1.0]
        assert counts[0] == i + 1
    h = settled(compile(lambda x: x * len(names), backend="numpy"), X)
    names.add("b")
    assert h(X).tolist() == [2.0, 2.0]


def test_programs_for_other_shapes_share_their_tests():
    thing = Plain()
    f = compile(lambda x: thing.apply(x), backend="numpy")
    shapes = torch.ones(2), torch.ones(3)
    for x in shapes * 4:
        f(x)
    checks = {program.holds for many in f.programs.values() for program in many}
    assert len(f.programs) == 2
    assert len(checks) == 1
    thing.scale = 5.0
    assert [f(x).tolist() for x in shapes] == [[5.0] * 2, [5.0] * 3]


def test_a_dict_without_an_order():
    class Settings(dict):
        __reversed__ = None

    settings = Settings(scale=2, name="a")
    run = torch.compile(lambda x: x * settings["scale"])
    for scale in (2, 2, 2, 2, 3, 2, 3, 3):
        settings["scale"] = scale
        assert run(torch.ones(2)).tolist() == [scale] * 2


def test_names_of_modules_that_a_function_does_not_import_lead_nowhere(monkeypatch):
    """It may use a name that is also that of a module which somebody else has loaded: `import rushlight as torch`."""
    other = ModuleType("exp")
    other.exp = {i: object() for i in range(60_000)}  # more than can be watched
    monkeypatch.setitem(sys.modules, "exp", other)
    run = compile(lambda x: x.exp() * 2)
    for _ in range(4):
        torch.testing.assert_close(run(torch.ones(2)), torch.ones(2).exp() * 2)
    assert programs(run), run.given_up


class Slotted:
    """Attributes in slots, one of them empty, one with a private name."""

    __slots__ = ("__own", "later", "scale")

    def __init__(self):
        self.scale, self.__own = 2.0, 3.0

    def use(self, x):
        return x * self.scale * self.__own + (self.later if hasattr(self, "later") else 0)

    def own(self, value):
        self.__own = value


def test_slots():
    slotted = Slotted()
    f = compile(lambda x: slotted.use(x), backend="numpy")
    settled(f, X)
    assert [p.holds() for ps in f.programs.values() for p in ps] == [True]
    for change in (
        lambda: setattr(slotted, "scale", 5.0),
        lambda: slotted.own(7.0),
        lambda: setattr(slotted, "later", 1),
    ):
        change()
        for _ in range(4):
            assert f(X).tolist() == slotted.use(X).tolist()
    assert len(programs(f)) == 4


def test_a_dtype_is_no_object_of_the_users(monkeypatch):
    """Also while compat lets it say that it is torch's."""
    monkeypatch.setattr(torch.dtype, "__module__", "torch")
    layer = nn.Linear(2, 2)
    layer.kind = torch.float32
    f = compile(lambda x: layer(x.to(layer.kind)) if x.is_floating_point() else x, backend="numpy")
    settled(f, X)
    assert [p.holds() for ps in f.programs.values() for p in ps] == [True]


def test_a_global_with_an_attributes_name_is_no_state_of_the_function():
    """`for step in ...: run(x)` in a script, where `run` calls `optimizer.step()`."""
    text = """
def build():
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    def train(x):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
    return torch.compile(train)
run = build()
for step in range(12):
    run(torch.ones(3, 4))
"""
    script = {"torch": torch}
    exec(text, script)
    assert len(torch.compiler.programs(script["run"])) == 1
