"""Optimizers, with the arguments and learning rate schedules of optim_db."""

import numpy
from bridge import Arguments
from common import REFERENCE, Entry, reference_only, tensors_in
from compare import Wrong, compare
from torch.testing._internal.common_optimizers import optim_db


class Problem:
    """Least squares whose gradient is computed by NumPy, so that only the optimizer is tested."""

    def __init__(self, library, matrices_only=False):
        random = numpy.random.default_rng(0)
        self.library = library
        self.start = [random.standard_normal((10, 5))]
        if not matrices_only:
            self.start.append(random.standard_normal(10))
        self.targets = [random.standard_normal(value.shape) for value in self.start]
        self.scales = [random.uniform(0.5, 2, value.shape) for value in self.start]
        parameter = library.lookup("nn.Parameter")
        self.parameters = [parameter(library.from_numpy(value.copy())) for value in self.start]

    def values(self):
        return [self.library.export(parameter) for parameter in self.parameters]

    def closure(self):
        """Set the gradients and return the loss."""
        loss = 0.0
        for parameter, target, scale in zip(self.parameters, self.targets, self.scales):
            error = self.library.export(parameter).values - target
            loss += float((scale * error**2).sum())
            parameter.grad = self.library.from_numpy(2 * scale * error)
        return self.library.from_numpy(numpy.asarray(loss))


class OptimizerSuite:
    """Five steps from the same parameters, saved state, parameter groups and schedules."""

    name = "optimizers"
    COLUMNS = ("step", "state_dict", "load_state_dict", "param_groups", "scheduler")
    QUICK = COLUMNS
    STEPS = 5
    EPOCHS = 12

    def entries(self):
        for info in optim_db:
            skip = "sparse" if info.only_supports_sparse_grads else ""
            yield Entry(info.name, "", "optimizer", info, skip)

    def columns(self, entry):
        for column in self.COLUMNS:
            if column != "param_groups" or entry.info.supports_param_groups:
                yield column

    def samples(self, entry, column):
        configurations = entry.info.optim_inputs_func(device="cpu")
        if column == "scheduler":
            for constructors in entry.info.scheduler_inputs:
                yield configurations[0], constructors
        else:
            for configuration in configurations:
                yield configuration, ()

    def describe(self, sample):
        configuration, constructors = sample
        text = f"{configuration.desc} {configuration.kwargs}"
        return text + f" with {len(constructors)} schedulers" if constructors else text

    def check(self, entry, column, sample, candidate):
        info, (configuration, constructors) = entry.info, sample
        run = {
            "step": self._steps,
            "state_dict": self._state,
            "load_state_dict": self._reloaded,
            "param_groups": self._groups,
            "scheduler": self._schedule,
        }[column]
        expected = reference_only(run, REFERENCE, info, configuration, constructors)
        expected = REFERENCE.export(expected)
        actual = candidate.export(run(candidate, info, configuration, constructors))
        if info.name != "Muon" or column in ("state_dict", "scheduler"):
            compare(expected, actual, where=column)
            return
        # Muon orthogonalizes in bfloat16: compare how far the parameters moved.
        start = Problem(REFERENCE, matrices_only=True).start
        compare(expected, actual, values=False, where=column)
        pairs = zip(tensors_in(expected), tensors_in(actual))
        for one, other in pairs:
            moved = numpy.linalg.norm(one.values - start[0])
            if not numpy.linalg.norm(other.values - one.values) <= 0.05 * moved:
                raise Wrong(f"{column}: parameters moved elsewhere")

    def _begin(self, library, info, configuration, groups=False):
        problem = Problem(library, matrices_only=info.name == "Muon")
        kwargs = Arguments(library)(configuration.kwargs)
        parameters = problem.parameters
        if groups:
            rates = (0.01, 0.002)
            parameters = [{"params": [p], "lr": lr} for p, lr in zip(parameters, rates)]
        optimizer = library.counterpart(info.optim_cls)(parameters, **kwargs)
        return problem, optimizer

    def _advance(self, info, problem, optimizer, steps):
        trajectory = []
        for _ in range(steps):
            if info.step_requires_closure:
                optimizer.step(problem.closure)
            else:
                optimizer.zero_grad()
                problem.closure()
                optimizer.step()
            trajectory.append(problem.values())
        return trajectory

    def _steps(self, library, info, configuration, _):
        problem, optimizer = self._begin(library, info, configuration)
        return self._advance(info, problem, optimizer, self.STEPS)

    def _state(self, library, info, configuration, _):
        """The keys of the state and of the parameter groups after a few steps."""
        problem, optimizer = self._begin(library, info, configuration)
        self._advance(info, problem, optimizer, self.STEPS)
        saved = optimizer.state_dict()
        return {
            "keys": sorted(saved),
            "state": {str(i): sorted(map(str, state)) for i, state in saved["state"].items()},
            "param_groups": [sorted(group) for group in saved["param_groups"]],
            "params": [list(group["params"]) for group in saved["param_groups"]],
        }

    def _reloaded(self, library, info, configuration, _):
        """The parameters when the last steps are taken by a fresh optimizer with saved state."""
        problem, optimizer = self._begin(library, info, configuration)
        self._advance(info, problem, optimizer, self.STEPS - 2)
        kwargs = Arguments(library)(configuration.kwargs)
        fresh = library.counterpart(info.optim_cls)(problem.parameters, **kwargs)
        fresh.load_state_dict(optimizer.state_dict())
        return self._advance(info, problem, fresh, 2)

    def _groups(self, library, info, configuration, _):
        problem, optimizer = self._begin(library, info, configuration, groups=True)
        return self._advance(info, problem, optimizer, self.STEPS)

    def _schedule(self, library, info, configuration, constructors):
        """The learning rate at each of some epochs."""
        problem, optimizer = self._begin(library, info, configuration)
        schedulers = [library.counterpart(constructor)(optimizer) for constructor in constructors]
        plateau = library.lookup("optim.lr_scheduler.ReduceLROnPlateau")
        rates = []
        for _ in range(self.EPOCHS):
            self._advance(info, problem, optimizer, 1)
            for scheduler in schedulers:
                if isinstance(scheduler, plateau):
                    scheduler.step(1.0)
                else:
                    scheduler.step()
            rates.append(float(optimizer.param_groups[0]["lr"]))
        return rates
