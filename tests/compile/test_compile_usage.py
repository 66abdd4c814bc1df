"""What users do between the steps of a compiled program: schedules, modes, other batches, accumulation, averages.

Each case runs a script twice, eager and compiled, and compares losses, parameters, gradients, buffers and random
numbers; and says how many programs there may be at most."""

from __future__ import annotations

import copy
import functools
import pickle
import threading
import warnings
from collections import namedtuple
from dataclasses import dataclass

import pytest

import rushlight
import rushlight as torch
from rushlight import nn, optim
from rushlight.compile import compile, explain, programs
from rushlight.compile.capture.trace import traced
from rushlight.nn import functional as F
from rushlight.optim import lr_scheduler
from rushlight.utils.data import DataLoader, TensorDataset

quick = functools.partial(compile, backend="numpy")


def data(n=40, size=8):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(n, 6, generator=generator)
    return list(zip(x.split(size), (x.sum(1) > 0).long().split(size)))


def network():
    # no bias before batch norm: its gradient is rounding alone, which Adam scales to whole steps
    return nn.Sequential(
        nn.Linear(6, 16, bias=False), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.25), nn.Linear(16, 2)
    )


class Script:
    """A training script. `compiled(f)` is what is compiled, or f itself; results of `run` are compared."""

    programs = 1

    def __init__(self, compiled):
        torch.manual_seed(0)
        self.model = network()
        self.optimizer = optim.AdamW(self.model.parameters(), lr=0.01)
        self.setup()
        self.compiled = compiled

    def setup(self):
        pass

    def step(self, x, y):
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        return loss

    def run(self):
        step = self.compiled(self.step)
        return [self.between(i) or step(x, y).item() for i, (x, y) in enumerate(data() * 3)]

    def between(self, i):
        """What happens before each step."""

    def state(self):
        tensors = [*self.model.state_dict().values(), *(p.grad for p in self.model.parameters() if p.grad is not None)]
        return [t.detach().clone() for t in (*tensors, torch.rand(3))]


class Plain(Script):
    pass


class StepSchedule(Script):
    """A scheduler that the step does not know."""

    def setup(self):
        self.scheduler = self.schedule()

    def schedule(self):
        return lr_scheduler.LambdaLR(self.optimizer, lambda k: 0.9**k)

    def between(self, i):
        if i:
            self.scheduler.step()


class OneCycle(StepSchedule):
    programs = 2  # a number that the rate explains is the same in the first two runs

    def schedule(self):
        return lr_scheduler.OneCycleLR(self.optimizer, max_lr=0.1, total_steps=20)


class Cosine(StepSchedule):
    def schedule(self):
        return lr_scheduler.CosineAnnealingLR(self.optimizer, T_max=10)


class Warmup(StepSchedule):
    def schedule(self):
        first = lr_scheduler.LinearLR(self.optimizer, 0.1, total_iters=4)
        return lr_scheduler.SequentialLR(self.optimizer, [first, lr_scheduler.ExponentialLR(self.optimizer, 0.9)], [4])


class ScheduleInside(StepSchedule):
    """scheduler.step() at the end of the compiled step."""

    programs = 3

    def step(self, x, y):
        loss = Script.step(self, x, y)
        self.scheduler.step()
        return loss

    def between(self, i):
        pass


class Modes(Script):
    """Evaluation between epochs of training, by the same compiled model."""

    programs = 2

    def run(self):
        model = self.compiled(self.model)
        out = []
        for _ in range(4):
            model.train()
            for x, y in data():
                self.optimizer.zero_grad()
                loss = F.cross_entropy(model(x), y)
                loss.backward()
                self.optimizer.step()
                out.append(loss.item())
            model.eval()
            with torch.no_grad():
                out += [model(x).sum().item() for x, _ in data()]
        return out


class Thaw(Script):
    """Fine-tuning: the first layer learns from some step on."""

    programs = 2

    def setup(self):
        self.model[0].requires_grad_(False)

    def between(self, i):
        if i == 7:
            self.model[0].requires_grad_(True)


class LastBatch(Script):
    """Batches of 7 of 40 samples: the last one has five."""

    programs = 2

    def run(self):
        step = self.compiled(self.step)
        return [step(x, y).item() for x, y in data(size=7) * 4]


class Loader(Script):
    """A shuffling DataLoader, and the loss in a list."""

    programs = 2

    def run(self):
        xs, ys = (torch.cat(t) for t in zip(*data()))
        loader = DataLoader(TensorDataset(xs, ys), batch_size=8, shuffle=True)
        step, losses = self.compiled(self.step), []
        for _ in range(4):
            for i, (x, y) in enumerate(loader):
                losses.append((i + 1) * step(x, y).item())
        return losses


class Counter(Script):
    """A counter that the step advances and reads."""

    programs = 2

    def setup(self):
        self.count = 0

    def step(self, x, y):
        self.count += 1
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        return loss + self.count


class Accumulation(Script):
    """Every third call steps."""

    programs = 5

    def setup(self):
        self.count = 0

    def step(self, x, y):
        loss = F.cross_entropy(self.model(x), y) / 3
        loss.backward()
        self.count += 1
        if self.count % 3 == 0:
            self.optimizer.step()
            self.optimizer.zero_grad()
        return loss


class AccumulationByArgument(Script):
    """The caller says when."""

    programs = 5

    def step(self, x, y, last):
        loss = F.cross_entropy(self.model(x), y) / 3
        loss.backward()
        if last:
            self.optimizer.step()
            self.optimizer.zero_grad()
        return loss

    def run(self):
        step = self.compiled(self.step)
        return [step(x, y, i % 3 == 2).item() for i, (x, y) in enumerate(data() * 4)]


class StepNumber(Script):
    """The number of the step is an argument, and what it is used for is rare."""

    programs = 3

    def step(self, i, x, y):
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        if i % 5 == 0:
            self.seen = i
        return loss

    def run(self):
        step = self.compiled(self.step)
        return [step(i, x, y).item() for i, (x, y) in enumerate(data() * 7)]


class Average(Script):
    """An average of the weights, kept beside them."""

    programs = 1

    def setup(self):
        self.average = copy.deepcopy(self.model)

    def step(self, x, y):
        loss = Script.step(self, x, y)
        with torch.no_grad():
            for a, p in zip(self.average.parameters(), self.model.parameters()):
                a.mul_(0.9).add_(p, alpha=0.1)
            for a, b in zip(self.average.buffers(), self.model.buffers()):
                a.copy_(b)
        return loss

    def state(self):
        return [*super().state(), *self.average.state_dict().values()]


class Swa(Script):
    """torch's AveragedModel."""

    programs = 3

    def setup(self):
        self.average = optim.swa_utils.AveragedModel(self.model, multi_avg_fn=optim.swa_utils.get_ema_multi_avg_fn(0.9))

    def step(self, x, y):
        loss = Script.step(self, x, y)
        self.average.update_parameters(self.model)
        return loss

    def state(self):
        return [*super().state(), *self.average.state_dict().values()]


class TwoModels(Script):
    """A generator and a discriminator, each with its optimizer."""

    programs = 2

    def setup(self):
        # no bias at the end, since batch norm follows (see `network`)
        self.other = nn.Sequential(nn.Linear(3, 12), nn.Tanh(), nn.Linear(12, 6, bias=False))
        self.others = optim.Adam(self.other.parameters(), lr=0.02)

    def step(self, x, y):
        noise = torch.randn(len(x), 3)
        fake = self.other(noise)
        self.optimizer.zero_grad()
        d = F.cross_entropy(self.model(x), torch.ones(len(x), dtype=torch.long)) + F.cross_entropy(
            self.model(fake.detach()), torch.zeros(len(x), dtype=torch.long)
        )
        d.backward()
        self.optimizer.step()
        self.others.zero_grad()
        g = F.cross_entropy(self.model(fake), torch.ones(len(x), dtype=torch.long))
        g.backward()
        self.others.step()
        return d + g

    def state(self):
        return [*super().state(), *self.other.state_dict().values()]


class TwoSteps(TwoModels):
    """The same by two compiled functions; what the second is given has a history, through which Python runs
    backward."""

    programs = 2

    def run(self):
        def d_step(x, fake):
            self.optimizer.zero_grad()
            loss = F.softplus(-self.model(x)).mean() + F.softplus(self.model(fake.detach())).mean()
            loss.backward()
            self.optimizer.step()
            return loss

        def g_step(fake):
            self.others.zero_grad()
            loss = F.softplus(-self.model(fake)).mean()
            loss.backward()
            self.others.step()
            return loss

        first, second, model = self.compiled(d_step), self.compiled(g_step), self.compiled(self.other)
        out = []
        for x, _ in data() * 3:
            fake = model(torch.randn(len(x), 3))
            out += [first(x, fake).item(), second(fake).item()]
        return out


class Autocast(Script):
    """Lower precision around the forward of a compiled model."""

    programs = 1

    def run(self):
        model, out = self.compiled(self.model), []
        for x, y in data() * 2:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = F.cross_entropy(model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            out.append(loss.item())
        return out


class Dicts(Script):
    """Batches are dicts, results dicts with lists and a named tuple."""

    programs = 1

    def step(self, batch):
        loss = Script.step(self, batch["x"], batch["more"][0])
        return {"loss": loss, "all": [loss * 2, Pair(loss + 1, None)], "what": "train"}

    def run(self):
        step, out = self.compiled(self.step), []
        for x, y in data() * 2:
            found = step({"x": x, "more": (y, "name")})
            assert type(found["all"][1]) is Pair
            assert found["what"] == "train"
            out.append(found["loss"].item() + found["all"][0].item() + found["all"][1].first.item())
        return out


Pair = namedtuple("Pair", "first second")


@dataclass
class Batch:
    """Inputs and answers."""

    x: torch.Tensor
    y: torch.Tensor
    name: str = "batch"


@dataclass
class Output:
    """What a model of Hugging Face's kind returns."""

    logits: torch.Tensor
    loss: torch.Tensor | None = None


class Dataclasses(Script):
    """Batches and outputs are objects of dataclasses."""

    programs = 1

    def forward(self, batch):
        logits = self.model(batch.x)
        return Output(logits, F.cross_entropy(logits, batch.y))

    def run(self):
        model, out = self.compiled(self.forward), []
        for x, y in data() * 3:
            found = model(Batch(x, y))
            assert type(found) is Output
            self.optimizer.zero_grad()
            found.loss.backward()
            self.optimizer.step()
            out.append(found.loss.item())
        return out


class Penalty(Script):
    """A gradient penalty: second derivatives through a compiled model."""

    programs = 1

    def setup(self):
        self.model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))
        self.optimizer = optim.SGD(self.model.parameters(), lr=0.1)

    def run(self):
        model, out = self.compiled(self.model), []
        for x, _ in data() * 2:
            x = x.clone().requires_grad_()
            score = model(x)
            (g,) = torch.autograd.grad(score.sum(), x, create_graph=True)
            loss = score.mean() + ((g.norm(dim=1) - 1) ** 2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            out.append(loss.item())
        return out


class Nested(Script):
    """A compiled model inside a compiled step."""

    programs = 1

    def run(self):
        self.inner = quick(self.model) if self.compiled is not same else self.model

        def step(x, y):
            loss = F.cross_entropy(self.inner(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            return loss

        step = self.compiled(step)
        return [step(x, y).item() for x, y in data() * 2]


class LossOfAnother(Script):
    """A compiled model, and a compiled function that runs backward and updates."""

    programs = 1

    def run(self):
        model = quick(self.model) if self.compiled is not same else self.model

        def update(loss):
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

        update, out = self.compiled(update), []
        for x, y in data() * 3:
            loss = F.cross_entropy(model(x), y)
            update(loss)
            out.append(loss.item())
        return out


class Clipped(Script):
    """Clipping, and a norm that is looked at."""

    programs = 2

    def step(self, x, y):
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(x), y)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), 0.5)
        if torch.isfinite(norm):
            self.optimizer.step()
        return loss + norm.item()


class Scaler(Script):
    """A GradScaler, enabled or not as users write it."""

    programs = 3

    def setup(self):
        self.scaler = torch.amp.GradScaler("cpu", init_scale=16.0)

    def step(self, x, y):
        self.optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(self.model(x), y)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss


class Stateful(Script):
    """A recurrent state handed from batch to batch."""

    programs = 2

    def setup(self):
        self.cell, self.head = nn.GRUCell(6, 4), nn.Linear(4, 2)
        self.model = nn.ModuleList([self.cell, self.head])
        self.optimizer = optim.SGD(self.model.parameters(), lr=0.1)
        self.hidden = torch.zeros(8, 4)

    def step(self, x, y, h):
        h = self.cell(x, h)
        loss = F.cross_entropy(self.head(h), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss, h.detach()

    def run(self):
        step, out, h = self.compiled(self.step), [], self.hidden
        for x, y in data() * 3:
            loss, h = step(x, y, h)
            out.append(loss.item())
        return out


SCRIPTS = [c for c in list(globals().values()) if isinstance(c, type) and issubclass(c, Script) and c is not Script]


def same(f):
    return f


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda c: c.__name__)
def test_scripts_compiled_equal_eager(script):
    made = []

    def compiled(f):
        made.append(quick(f))
        return made[-1]

    runs = []
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        for how in (same, compiled):
            one = script(how)
            torch.manual_seed(7)
            runs.append((one.run(), one.state()))
    (losses, state), (got, ours) = runs
    assert got == pytest.approx(losses, rel=2e-3 if script is Autocast else 1e-4, abs=1e-5)
    assert len(state) == len(ours)
    for a, b in zip(state, ours):
        assert torch.allclose(a, b, rtol=1e-2, atol=2e-3 if script is Autocast else 1e-4)
    for f in made:
        assert 1 <= len(programs(f)) <= script.programs, (len(programs(f)), f.given_up, f.unsteady)


def module():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2))


def settled(f, x, calls=4):
    for _ in range(calls):
        f(x)
    return f


def test_a_compiled_module_is_a_module():
    model = module()
    fast = quick(model)
    assert isinstance(fast, nn.Module)
    assert fast._orig_mod is model
    assert list(fast.state_dict()) == [f"_orig_mod.{k}" for k in model.state_dict()]
    assert repr(fast).startswith("OptimizedModule(\n  (_orig_mod): Sequential(")
    assert fast.eval() is fast
    assert not model.training
    fast.note = 3
    assert model.note == 3
    del fast.note
    assert not hasattr(model, "note")
    assert len(fast) == 3
    with pytest.raises(RuntimeError, match="Missing key"):
        fast.load_state_dict(model.state_dict())
    fast.load_state_dict({f"_orig_mod.{k}": v for k, v in model.state_dict().items()})
    seen = []
    handle = fast.register_forward_hook(lambda m, args, out: seen.append(out.shape))
    settled(fast, torch.ones(3, 6))
    assert seen == [(3, 2)] * 4
    handle.remove()
    assert compile(fast, backend="numpy")._orig_mod is model
    assert compile(model, backend="eager")._orig_mod is model
    assert compile(model, disable=True) is model


def test_a_compiled_module_inside_another_is_trained():
    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.head = quick(nn.Linear(6, 4)), nn.Linear(4, 2)

        def forward(self, x):
            return self.head(self.inner(x))

    outer = Outer()
    assert [n for n, _ in outer.named_parameters()] == [
        "inner._orig_mod.weight",
        "inner._orig_mod.bias",
        "head.weight",
        "head.bias",
    ]
    fast = quick(outer)
    before = outer.inner.weight.clone()
    optimizer = optim.SGD(fast.parameters(), lr=0.1)
    for x, y in data():
        optimizer.zero_grad()
        F.cross_entropy(fast(x), y).backward()
        optimizer.step()
    assert not torch.equal(outer.inner.weight, before)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda f: pickle.loads(pickle.dumps(f))], ids=["deepcopy", "pickle"])
def test_copies_are_their_own(copied):
    x = torch.ones(3, 6)
    for make in (lambda: quick(module()), in_place):
        fast = settled(make(), x)
        other = settled(copied(fast), x)
        assert torch.equal(other(x), fast(x))
        with torch.no_grad():
            next(iter(other.parameters())).zero_()
        assert not torch.allclose(other(x), fast(x))
        assert type(other) is type(fast)


def in_place():
    model = module()
    model.compile(backend="numpy")
    return model


def test_compile_in_place():
    model = in_place()
    x = torch.ones(3, 6)
    assert torch.allclose(settled(model, x)(x), module()(x))
    assert len(programs(model.forward)) == 1
    assert list(model.state_dict()) == list(module().state_dict())


@quick
def doubled(x):
    """Twice x."""
    return x * 2


def test_a_decorated_function_is_pickled_by_its_name():
    assert pickle.loads(pickle.dumps(doubled)) is doubled
    assert doubled.__doc__ == "Twice x."


def test_methods_of_several_objects():
    class Scaled:
        def __init__(self, by):
            self.by = by

        @quick
        def run(self, x):
            return x * self.by

    objects = [Scaled(2.0), Scaled(3.0)]
    for _ in range(6):
        assert [o.run(torch.ones(1)).item() for o in objects] == [2, 3]
    assert len(programs(Scaled.run)) == 2


def test_a_compiled_function_inside_a_compiled_function():
    inner = quick(lambda x: (x * 2).exp())
    outer = quick(lambda x: inner(x).log() + inner(x + 1).log())
    x = torch.rand(4)
    for _ in range(5):
        assert torch.allclose(outer(x), 4 * x + 2, rtol=1e-5)
        assert torch.allclose(inner(x), (x * 2).exp(), rtol=1e-5)
    assert len(programs(outer)) == 1


def test_threads_train_models_of_their_own():
    results = {}

    models = [module() for _ in range(4)]

    def work(k):
        model = models[k]  # its own: what others change while it is watched cannot be in a program
        optimizer = optim.Adam(model.parameters(), lr=0.05)

        def step(x, y):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        step = quick(step) if k else step
        results[k] = [step(x, y).item() for x, y in data() * 3]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(results[k] == pytest.approx(results[0], rel=1e-4) for k in range(4))


def test_threads_that_draw_leave_a_program_of_another_alone(monkeypatch):
    """The state of the generator changes during the watched runs; it is not the run that has changed it."""

    def watched(*run):
        other = threading.Thread(target=torch.rand, args=(3,))
        result = traced(*run)
        other.start()
        other.join()
        return result

    x, plain, noisy = torch.full((5,), 2.0), quick(lambda x: (x * 2).exp()), quick(lambda x: x * torch.rand(5))
    with monkeypatch.context() as patched:
        patched.setattr("rushlight.compile.run.compiled_function.traced", watched)
        for _ in range(4):
            plain(x)
            noisy(x)
    assert programs(plain)
    assert not programs(noisy)  # its numbers could not be drawn again
    for _ in range(2):
        noisy(x)
    assert programs(noisy)
    torch.manual_seed(3)
    expected = torch.rand(5) * 2
    torch.manual_seed(3)
    assert torch.equal(noisy(x), expected)


def test_threads_share_one_compiled_model():
    fast, x = quick(module()), torch.rand(5, 6)
    expected, wrong = module()(x), []

    def work():
        for _ in range(40):
            with torch.no_grad():
                if not torch.allclose(fast(x), expected, rtol=1e-5):
                    wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    assert programs(fast)


def test_no_grad_and_inference_mode():
    fast, x = quick(module()), torch.rand(5, 6)
    for _ in range(4):
        assert fast(x).requires_grad
        with torch.no_grad():
            assert not fast(x).requires_grad
        with torch.inference_mode():
            assert fast(x).is_inference() == module()(x).is_inference()
        assert torch.allclose(fast(x), module()(x))
    assert len(programs(fast)) == 3


def test_explain_says_why_of_everything_that_runs_as_it_is():
    def reads(x):
        return x * x.sum().item()

    def counts(x, seen=[0]):  # noqa: B006
        seen[0] += 1
        return x * seen[0]

    assert "looks at the numbers" in str(explain(reads, torch.ones(2)))
    assert "Python state" in str(explain(counts, torch.ones(2)))
    assert "returns a" in str(explain(lambda x: (x * 2, object()), torch.ones(2)))
    assert "runs as it is" not in str(explain(module(), torch.ones(2, 6)))


def test_what_was_not_asked_has_no_gradient():
    """None, not zero, as in eager: an optimizer would decay the weight."""
    a, b = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)

    def f(x):
        return (a * x).sum(), (b * x).sum(), (a * b).sum()

    fast = compile(f, backend="numpy")
    for k in range(4):
        for result, has in enumerate(((True, False), (False, True), (True, True))):
            a.grad = b.grad = None
            fast(torch.arange(3.0) + k)[result].backward()
            assert (a.grad is not None, b.grad is not None) == has


@pytest.mark.parametrize("kind", ["register_hook", "register_post_accumulate_grad_hook"])
def test_hooks_on_parameters_run_in_the_callers_backward(kind):
    """A compiled model is no part of them: they are there in its backward, as they are in eager's."""

    def clipped(told):
        if kind == "register_hook":
            return told.clamp_(-0.01, 0.01)
        told.grad.mul_(3)

    def ran(make):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))
        f, found = make(model), []
        for i in range(9):
            if i == 3:
                handle = getattr(model[0].weight, kind)(clipped)
            if i == 7:
                handle.remove()
            model.zero_grad()
            f(torch.arange(6.0).view(2, 3)).sum().backward()
            found.append([p.grad.tolist() for p in model.parameters()])
        return found, f

    expected, _ = ran(lambda model: model)
    found, f = ran(lambda model: compile(model, backend="numpy"))
    assert found == expected
    assert len(programs(f)) == 3


@pytest.mark.parametrize("name", ["NAdam", "ASGD"])
def test_complex_parameters_of_optimizers_with_counters(name):
    def ran(make):
        p = nn.Parameter(torch.complex(torch.arange(3.0), torch.ones(3)))
        optimizer = getattr(optim, name)([p], lr=0.1)

        def step():
            optimizer.zero_grad()
            (p * p.conj()).real.sum().backward()
            optimizer.step()

        f = make(step)
        for _ in range(5):
            f()
        return p.detach()

    torch.testing.assert_close(ran(quick), ran(lambda f: f))


def of_own(t):
    """A Function whose backward is not what its forward says, so that nothing but it can give the gradient."""

    class Thrice(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.exp()

        @staticmethod
        def backward(ctx, g):
            return 3 * g * ctx.saved_tensors[0].exp()

    return Thrice


@pytest.mark.origin("scripts")
@pytest.mark.filterwarnings("ignore:rushlight.compile")
@pytest.mark.parametrize("inside", ["forward", "step"])
def test_compiled_functions_call_functions_of_ones_own(oracle, inside):
    """They raised: 'Thrice' has no attribute 'name'."""

    def losses(t, compiled):
        own, w = of_own(t), t.nn.Parameter(t.tensor([1.0, 0.5]))
        optimizer = t.optim.SGD([w], 0.001)

        def forward(x):
            y = (x * w).sin() * 2
            return (own.apply(y) ** 2).mean() + w.sum()

        def step(x):
            optimizer.zero_grad()
            loss = run(x)
            loss.backward()
            optimizer.step()
            return loss

        run = compiled(forward) if inside == "forward" else forward
        once = compiled(step) if inside == "step" else step
        return [once(t.tensor([1.0, 2.0])).item() for _ in range(8)]

    expected = oracle(lambda t: losses(t, lambda f: f))
    assert losses(torch, lambda f: f) == pytest.approx(expected, rel=1e-5)
    assert losses(torch, torch.compile) == pytest.approx(expected, rel=1e-5)


@pytest.mark.origin("scripts")
@pytest.mark.filterwarnings("ignore:rushlight.compile")
def test_compiled_functions_call_custom_ops():
    @torch.library.custom_op("scripts::twice", mutates_args=())
    def twice(x: rushlight.Tensor) -> rushlight.Tensor:
        return torch.from_numpy(x.numpy() * 2)

    compiled = torch.compile(lambda x: twice(x) + 1)
    for k in range(5):
        assert compiled(torch.full((2,), float(k))).tolist() == [2 * k + 1] * 2


@pytest.mark.origin("suites")
def test_compiled_functions_take_a_stance():
    f, x, other = rushlight.compile(lambda x: x.sin() * 2 + 1), rushlight.ones(3), rushlight.ones(2, 2)
    stance, programs = rushlight.compiler.set_stance, rushlight.compiler.programs
    right = [(x.sin() * 2 + 1).tolist(), (other.sin() * 2 + 1).tolist()]
    with stance("force_eager"):
        for _ in range(3):
            assert f(x).tolist() == right[0]
    assert not programs(f)
    for _ in range(3):
        f(x)
    assert len(programs(f)) == 1
    with stance("fail_on_recompile"):
        assert f(x).tolist() == right[0]
        with pytest.raises(RuntimeError, match="fail_on_recompile"):
            f(other)
    with stance("eager_on_recompile"):
        for _ in range(3):
            assert f(other).tolist() == right[1]

    @stance("force_eager")
    def apart():
        return f.enter, f(x).tolist()

    assert apart() == (None, right[0])
    assert len(programs(f)) == 1
    assert f(x).tolist() == right[0]
    assert f.enter is not None
    with pytest.raises(RuntimeError, match="invalid torch.compile stance"):
        stance("wrong")
