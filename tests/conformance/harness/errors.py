"""Calls that torch refuses, of operators, modules and optimizers."""

import re
import warnings

import torch
from bridge import Arguments, NotApplicable
from common import REFERENCE, Entry, first_line
from compare import Wrong
from families import family
from modules import build_module, forward_module
from operators import op_path, out_of_scope
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import ModuleErrorEnum, module_db
from torch.testing._internal.common_optimizers import OptimizerErrorEnum, optim_db
from torch.testing._internal.opinfo.core import SampleInput


class ErrorSuite:
    """Calls that torch refuses: the candidate must refuse them, and for the same reason."""

    name = "errors"
    COLUMNS = ("raises", "type", "message")
    QUICK = COLUMNS

    def entries(self):
        for op in op_db:
            if op.error_inputs_func is not None:
                yield Entry(op.name, op.variant_test_name, family(op), op, out_of_scope(op))
        for info in module_db:
            if info.module_error_inputs_func is not None:
                yield Entry(info.name, "", "module", info)
        for info in optim_db:
            if info.optim_error_inputs_func is not None:
                skip = "sparse" if info.only_supports_sparse_grads else ""
                yield Entry(info.name, "", "optimizer", info, skip)

    def columns(self, entry):
        return self.COLUMNS

    def samples(self, entry, column):
        info = entry.info
        if entry.family == "module":
            for training in (True, False):
                yield from info.module_error_inputs_func(
                    info, "cpu", torch.float32, requires_grad=False, training=training
                )
        elif entry.family == "optimizer":
            yield from info.optim_error_inputs_func("cpu", torch.float32)
        else:
            yield from info.error_inputs("cpu")

    def describe(self, sample):
        for part in ("sample_input", "module_error_input", "optimizer_error_input"):
            given = getattr(sample, part, None)
            if isinstance(given, SampleInput):
                return given.summary()
            if given is not None:
                call = getattr(given, "constructor_input", given)
                return f"{getattr(call, 'args', '')}{call.kwargs}"

    def check(self, entry, column, sample, candidate):
        expected = self._outcome(entry, sample, REFERENCE)
        if expected is None:
            raise NotApplicable("torch does not raise")
        kind = type(expected) if sample.error_type is Exception else sample.error_type
        kind = next(base for base in kind.__mro__ if base.__module__ == "builtins")
        if not isinstance(expected, kind) or not re.search(sample.error_regex, str(expected)):
            raise NotApplicable("torch fails otherwise when its tensors come from NumPy")
        raised = self._outcome(entry, sample, candidate)
        if raised is None:
            raise Wrong(f"no error, expected {type(expected).__name__}: {first_line(expected)}")
        if candidate.is_missing(raised):
            raise raised
        message = str(raised).replace(candidate.name, "torch")
        found = f"{type(raised).__name__}: {first_line(raised)}"
        if column == "type" and not isinstance(raised, kind):
            raise Wrong(f"{found}, expected {kind.__name__}")
        if column == "message" and not re.search(sample.error_regex, message):
            raise Wrong(f"{found}, expected {sample.error_regex!r}")

    def _outcome(self, entry, sample, library):
        """The exception that a library raises, or None."""
        attempt = {"module": self._use_module, "optimizer": self._use_optimizer}.get(entry.family, self._call_operator)
        with warnings.catch_warnings():
            if issubclass(sample.error_type, Warning):
                warnings.simplefilter("error", sample.error_type)
            try:
                attempt(library, entry.info, sample)
            except NotApplicable:
                raise
            except Exception as error:
                return error

    def _call_operator(self, library, op, error):
        sample = error.sample_input
        build = Arguments(library)
        args, kwargs = build((sample.input, *sample.args)), build(sample.kwargs)
        library.counterpart(op.op, op_path(op))(*args, **kwargs)

    def _use_module(self, library, info, error):
        sample = error.module_error_input
        module = build_module(library, info, sample, torch.float32)
        if error.error_on is ModuleErrorEnum.FORWARD_ERROR:
            forward_module(library, module, sample)

    def _use_optimizer(self, library, info, error):
        if error.error_on is not OptimizerErrorEnum.CONSTRUCTION_ERROR:
            raise NotApplicable("fails in a step")
        sample = error.optimizer_error_input
        build = Arguments(library)
        library.counterpart(info.optim_cls)(build(sample.params), **build(sample.kwargs))
