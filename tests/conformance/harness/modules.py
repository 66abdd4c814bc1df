"""Modules, on the samples of module_db, with the parameters that torch's module has."""

import collections
import copy

import torch
from bridge import Arguments, NotApplicable
from common import PRECISE, REFERENCE, Entry, backward, compare_gradients, reference_only, same, tensors_in
from compare import Wrong, compare, excused
from torch.testing._internal.common_modules import module_db


def build_module(library, info, sample, dtype):
    call = sample.constructor_input
    build = Arguments(library)
    module = library.counterpart(info.module_cls)(*build(call.args), **build(call.kwargs))
    if dtype != torch.float32:
        module = module.to(build(dtype))
    return module


def forward_module(library, module, sample, seed=0):
    library.seed(seed)
    build = Arguments(library)
    call = sample.forward_input
    return module(*build(call.args), **build(call.kwargs)), build


def reference_module(info, sample, dtype, training):
    """torch's module and a copy of its parameters and buffers."""
    torch.manual_seed(0)
    module = reference_only(build_module, REFERENCE, info, sample, dtype).train(training)
    if info.is_lazy:
        forward_module(REFERENCE, module, sample)
    return module, copy.deepcopy(module.state_dict())


def candidate_module(library, info, sample, dtype, training, state):
    """The candidate's module with the given parameters and buffers."""
    module = build_module(library, info, sample, dtype)
    if info.is_lazy:
        forward_module(library, module, sample)
    if state:
        build = Arguments(library)
        module.load_state_dict(collections.OrderedDict((key, build(value)) for key, value in state.items()))
    return module.train(training)


def module_is_random(reference, sample):
    outputs = []
    for seed in (0, 1):
        module = copy.deepcopy(reference)
        result, _ = reference_only(forward_module, REFERENCE, module, sample, seed)
        outputs.append(REFERENCE.export(result))
    return not same(*outputs)


class ModuleSuite:
    """Modules of torch.nn with torch's parameters: outputs, buffers, gradients, state, repr."""

    name = "modules"
    COLUMNS = ("construct", "state_dict", "repr", "train", "eval", "input_grad", "param_grad")
    QUICK = COLUMNS

    def entries(self):
        for info in module_db:
            quantized = info.module_cls.__module__.startswith("torch.ao")
            skip = "quantized" if quantized else ""
            yield Entry(info.name, "", "module", info, skip)

    def columns(self, entry):
        return self.COLUMNS

    def samples(self, entry, column):
        info = entry.info
        gradient = column.endswith("grad")
        dtype = torch.float64 if gradient else torch.float32
        if dtype in info.dtypes:
            yield from info.module_inputs_func(info, "cpu", dtype, gradient, column != "eval")

    def describe(self, sample):
        def show(value):
            if isinstance(value, torch.Tensor):
                return f"Tensor{list(value.shape)}"
            return repr(value)

        def call(arguments):
            parts = [show(value) for value in arguments.args]
            parts += [f"{key}={show(value)}" for key, value in arguments.kwargs.items()]
            return f"({', '.join(parts)})"

        return call(sample.constructor_input) + call(sample.forward_input)

    def check(self, entry, column, sample, candidate):
        info = entry.info
        if column in ("train", "eval"):
            self._check_forward(info, sample, column == "train", candidate)
        elif column in ("input_grad", "param_grad"):
            self._check_gradients(info, sample, column, candidate)
        else:
            reference, state = reference_module(info, sample, torch.float32, True)
            if column == "construct":
                build_module(candidate, info, sample, torch.float32)
                return
            module = candidate_module(candidate, info, sample, torch.float32, True, state)
            if column == "state_dict":
                expected = REFERENCE.export(dict(state))
                compare(expected, candidate.export(dict(module.state_dict())), where="state_dict")
            elif repr(module) != repr(reference):
                raise Wrong(f"repr {repr(module)!r}, expected {repr(reference)!r}")

    def _check_forward(self, info, sample, training, candidate):
        reference, state = reference_module(info, sample, torch.float32, training)
        values = not module_is_random(reference, sample)
        precise = copy.deepcopy(reference).to(torch.float64)
        expected = REFERENCE.export(forward_module(REFERENCE, reference, sample)[0])
        expected_state = REFERENCE.export(dict(reference.state_dict()))

        module = candidate_module(candidate, info, sample, torch.float32, training, state)
        actual = candidate.export(forward_module(candidate, module, sample)[0])
        try:
            compare(expected, actual, values=values)
        except Wrong:
            compare(expected, actual, values=False)
            result = PRECISE.export(forward_module(PRECISE, precise, sample)[0])
            if not excused(expected, result, actual):
                raise
        actual_state = candidate.export(dict(module.state_dict()))
        compare(expected_state, actual_state, values=values, where="state after forward")

    def _check_gradients(self, info, sample, column, candidate):
        reference, state = reference_module(info, sample, torch.float64, True)
        training = not module_is_random(reference, sample)
        reference.train(training)
        values = not module_is_random(reference, sample)
        expected = self._gradients(REFERENCE, reference, sample)[column]
        if not expected:
            raise NotApplicable("nothing that requires a gradient")
        module = candidate_module(candidate, info, sample, torch.float64, training, state)
        actual = self._gradients(candidate, module, sample)[column]
        if list(actual) != list(expected):
            raise Wrong(f"parameters {list(actual)}, expected {list(expected)}")
        compare_gradients(list(expected.values()), list(actual.values()), values, column)

    def _gradients(self, library, module, sample):
        """The gradients of a weighted sum of the outputs, by column and name."""
        result, build = forward_module(library, module, sample)
        backward(library, result, tensors_in(library.export(result)))
        export = library.export
        return {
            "input_grad": {index: export(leaf.grad) for index, leaf in enumerate(build.leaves)},
            "param_grad": {name: export(p.grad) for name, p in module.named_parameters()},
        }
