"""Operators: values, gradients and second gradients, on the samples of op_db."""

import re

import numpy
import torch
from bridge import Arguments, Array, NotApplicable, follow, path_of, strided_copy
from common import (
    PRECISE,
    REFERENCE,
    Entry,
    backward,
    compare_gradients,
    flatten,
    reference_only,
    same,
    tensors_in,
    weights_for,
)
from compare import Wrong, close, compare, excused
from families import family
from torch.testing._internal.common_methods_invocations import op_db

# Operators whose factors are unique only up to a sign or phase: their samples name functions
# of the output that are unique.
AMBIGUOUS = {"linalg.eig", "linalg.eigh", "linalg.svd", "svd", "svd_lowrank", "pca_lowrank"}

# Operators that may return any of several equal elements: the names of the arguments that
# follow the input, and the position of the indices among the outputs.
TIES = {
    "topk": (("k", "dim"), 1),
    "kthvalue": (("k", "dim", "keepdim"), 1),
    "mode": (("dim", "keepdim"), 1),
    "median": (("dim", "keepdim"), 1),
    "nanmedian": (("dim", "keepdim"), 1),
    "sort": (("dim", "descending"), 1),
    "argsort": (("dim", "descending"), None),
}

# Operators that torch itself computes with an error above the usual tolerance.
INEXACT = {"special.bessel_j0": 1e-6, "special.bessel_y1": 1e-6}


def out_of_scope(op):
    """Why an OpInfo asks for something that a dense CPU library does not have."""
    path = op_path(op)
    code = getattr(op.op, "__code__", None)
    names = set(code.co_names) if code else set()
    if op.name.startswith("sparse.") or op.name == "to_sparse":
        return "sparse"
    if op.name.startswith("jiterator") or "triton" in op.variant_test_name:
        return "CUDA only"
    if "scaled_mm" in op.name or "_attention_forward" in op.name and "torch.ops" in op.name:
        return "CUDA only"
    if type(op.op).__name__.startswith("OpOverload") or {"ops", "aten"} <= names:
        return "torch.ops.aten internal"
    if path and re.search(r"(^|\.)_(?!_)", path):
        return "private name"
    if op.name == "as_strided" and op.variant_test_name == "partial_views":
        return "needs torch's own storage"
    if op.name == "chalf":
        return "complex32 has no NumPy dtype"
    if not op.dtypes & set(OpSuite.DTYPES.values()):
        return "no common CPU dtype"
    return ""


def op_path(op):
    """The dotted path of an operator's function, None for a test helper."""
    try:
        if follow(torch, op.name) is op.op:
            return op.name
    except AttributeError:
        pass
    return path_of(op.op)


def is_random(op):
    """Whether an operator's test helper fixes the seed, so that outputs may be random."""
    code = getattr(op.op, "__code__", None)
    return bool(code) and "wrapper_set_seed" in code.co_names


class OpSuite:
    """Values, shapes, dtypes and gradients of the operators in op_db."""

    name = "ops"
    DTYPES = {
        "float32": torch.float32,
        "float64": torch.float64,
        "int64": torch.int64,
        "bool": torch.bool,
        "complex64": torch.complex64,
        "complex128": torch.complex128,
    }
    GRADIENTS = {"grad": torch.float64, "grad_complex": torch.complex128, "inplace_grad": torch.float64}
    VARIANTS = ("method", "inplace", "operator", "alias", "out")
    LAYOUTS = ("noncontiguous", "aliasing")
    COLUMNS = (*DTYPES, *VARIANTS, *LAYOUTS, *GRADIENTS)
    QUICK = ("float32", "float64", "method", "inplace", "operator", "grad", "inplace_grad")

    def entries(self):
        for op in op_db:
            yield Entry(op.name, op.variant_test_name, family(op), op, out_of_scope(op))

    def columns(self, entry):
        op = entry.info
        for column, dtype in self.DTYPES.items():
            if dtype in op.dtypes:
                yield column
        present = {
            "method": op.method_variant,
            "inplace": op.inplace_variant,
            "operator": op.operator_variant,
            "alias": op.aliases,
            "out": op.supports_out,
        }
        yield from (column for column in self.VARIANTS if present[column])
        yield from self.LAYOUTS
        if op.supports_autograd:
            for column, dtype in self.GRADIENTS.items():
                inplace = column == "inplace_grad"
                if inplace and not (op.inplace_variant and op.supports_inplace_autograd):
                    continue
                if dtype in op.backward_dtypes:
                    yield column

    def samples(self, entry, column):
        op = entry.info
        gradient = column in self.GRADIENTS
        dtype = self.DTYPES.get(column) or self.GRADIENTS.get(column) or variant_dtype(op)
        for sample in op.sample_inputs("cpu", dtype, requires_grad=gradient):
            if column == "noncontiguous":
                yield sample.noncontiguous(), None
            elif column == "alias":
                yield from ((sample, alias) for alias in op.aliases)
            else:
                yield sample, None

    def describe(self, sample):
        return sample[0].summary()

    def check(self, entry, column, sample, candidate):
        sample, alias = sample
        if column in self.GRADIENTS:
            call = inplace_call if column == "inplace_grad" else function_call
            check_gradients(entry.info, sample, candidate, call)
        elif column == "out":
            check_out(entry.info, sample, candidate)
        elif column == "aliasing":
            check_aliasing(entry.info, sample, candidate)
        else:
            check_values(entry.info, column, sample, candidate, alias)


def variant_dtype(op):
    """The dtype in which the variants of an operator are called."""
    order = (torch.float64, torch.int64, torch.bool, torch.complex128, torch.float32)
    return next(dtype for dtype in order if dtype in op.dtypes)


def function_call(library, op, sample, build):
    function = library.counterpart(op.op, op_path(op))
    wrapper = library.counterpart(op.gradcheck_wrapper)
    args = build((sample.input, *sample.args))
    return wrapper(function, *args, **build(sample.kwargs))


def inplace_call(library, op, sample, build):
    """Apply the in-place variant to a clone, as a leaf that requires a gradient cannot change."""
    if sample.broadcasts_input:
        raise NotApplicable("broadcasts its input")
    if not isinstance(sample.input, torch.Tensor):
        raise NotApplicable("input is no tensor")
    function = library.counterpart(op.inplace_variant)
    tensor, *args = build((sample.input, *sample.args))
    return function(tensor.clone(), *args, **build(sample.kwargs))


def variant_call(library, op, column, sample, build, alias=None):
    """Call one variant; the in-place one returns what it was given along with its result."""
    variants = {"method": op.method_variant, "inplace": op.inplace_variant, "operator": op.operator_variant}
    if column in variants:
        if not isinstance(sample.input, torch.Tensor):
            raise NotApplicable("input is no tensor")
        if column == "inplace" and sample.broadcasts_input:
            raise NotApplicable("broadcasts its input")
        function = library.counterpart(variants[column])
    elif alias:
        function = library.counterpart(alias.op, alias.name.removeprefix("torch."))
    else:
        function = library.counterpart(op.op, op_path(op))
    args = build((sample.input, *sample.args))
    result = function(*args, **build(sample.kwargs))
    return (result, args[0]) if column == "inplace" else result


def check_values(op, column, sample, candidate, alias):
    def run(library, seed=0):
        if is_random(op):
            library.seed(seed)
        result = variant_call(library, op, column, sample, Arguments(library), alias)
        return result, library.export(result)

    result, expected = reference_only(run, REFERENCE)
    values = not op.has_nondeterministic_output
    if values and is_random(op):
        values = same(expected, run(REFERENCE, seed=1)[1])
    answer, actual = run(candidate)
    compare(expected, actual, values=False)
    if column == "inplace" and answer[0] is not answer[1] and result[0] is result[1]:
        raise Wrong("the result is not the input itself")
    if not values:
        return
    unique = sample.output_process_fn_grad if op.name in AMBIGUOUS else None
    if unique:
        expected = REFERENCE.export(REFERENCE.counterpart(unique)(result))
        actual = candidate.export(candidate.counterpart(unique)(answer))
    try:
        compare(expected, actual, absolute=INEXACT.get(op.name, 0))
    except Wrong:
        if op.name in TIES and same_elements(op, sample, expected, actual):
            return
        precise = variant_call(PRECISE, op, column, sample, Arguments(PRECISE), alias)
        if unique:
            precise = unique(precise)
        if not excused(expected, PRECISE.export(precise), actual):
            raise


def same_elements(op, sample, expected, actual):
    """Whether two sets of indices choose equal elements of the input."""
    names, position = TIES[op.name]
    given = dict(zip(names, sample.args)) | sample.kwargs
    if given.get("stable") or not isinstance(sample.input, torch.Tensor):
        return False
    tensor = strided_copy(sample.input)
    if position is not None:
        compare(expected.items[0], actual.items[0])
        expected, actual = expected.items[position], actual.items[position]
    dim = given.get("dim", -1)
    chosen = []
    for indices in (expected.values, actual.values):
        if indices.ndim < tensor.ndim:
            indices = numpy.expand_dims(indices, dim)
        chosen.append(numpy.take_along_axis(tensor, indices, dim))
    return bool(close(*chosen, 0, 0).all())


def check_out(op, sample, candidate):
    """Call with `out=`: the result must be `out` itself, filled in."""

    def run(library, like=None):
        build = Arguments(library)
        function = library.counterpart(op.op, op_path(op))
        args, kwargs = build((sample.input, *sample.args)), build(sample.kwargs)
        if like is None:
            return function(*args, **kwargs)
        out = [library.from_numpy(numpy.zeros_like(array.values)) for array in tensors_in(like)]
        result = function(*args, **kwargs, out=out[0] if isinstance(like, Array) else tuple(out))
        if not all(one is other for one, other in zip(flatten(library, result), out)):
            raise Wrong("out= is not what is returned")
        return result

    with torch.no_grad():
        plain = REFERENCE.export(reference_only(run, REFERENCE))
        if any(array.dtype in ("bfloat16", "complex32") for array in tensors_in(plain)):
            raise NotApplicable("out= in a dtype that NumPy lacks")
        expected = REFERENCE.export(reference_only(run, REFERENCE, plain))
    actual = candidate.export(run(candidate, plain))
    repeatable = same(plain, expected) and not op.has_nondeterministic_output
    values = repeatable and op.name not in AMBIGUOUS
    try:
        compare(expected, actual, values=values, absolute=INEXACT.get(op.name, 0))
    except Wrong:
        if op.name not in TIES or not same_elements(op, sample, expected, actual):
            raise


def check_aliasing(op, sample, candidate):
    """Each output must share memory with an input exactly where torch's output does."""

    def run(library):
        build = Arguments(library)
        function = library.counterpart(op.op, op_path(op))
        result = function(*build((sample.input, *sample.args)), **build(sample.kwargs))
        outputs = [output.detach().numpy() for output in flatten(library, result)]
        inputs = [given.detach().numpy() for given in build.tensors()]
        shared = [any(numpy.may_share_memory(o, i) for i in inputs) for o in outputs if o.size]
        return shared if inputs else []

    expected = reference_only(run, REFERENCE)
    if not expected:
        raise NotApplicable("nothing to share")
    actual = run(candidate)
    if len(actual) != len(expected):
        raise Wrong(f"{len(actual)} outputs, expected {len(expected)}")
    for index, (one, other) in enumerate(zip(expected, actual)):
        if one != other:
            raise Wrong(f"output {index} {'is not' if one else 'is'} a view of an input")


def check_gradients(op, sample, candidate, call):
    def forward(library, seed=0):
        if is_random(op):
            library.seed(seed)
        build = Arguments(library)
        result = call(library, op, sample, build)
        result = library.counterpart(sample.output_process_fn_grad)(result)
        return build.leaves, result, library.export(result)

    leaves, result, expected = reference_only(forward, REFERENCE)
    like = tensors_in(expected)
    if not any(array.requires_grad for array in like):
        raise NotApplicable("no differentiable output")
    values = not is_random(op) or same(expected, forward(REFERENCE, seed=1)[2])
    reference_only(backward, REFERENCE, result, like)
    gradients = [REFERENCE.export(leaf.grad) for leaf in leaves]

    leaves, result, actual = forward(candidate)
    compare(expected, actual, values=values, flags=True)
    backward(candidate, result, like)
    compare_gradients(gradients, [candidate.export(leaf.grad) for leaf in leaves], values)


class SecondOrderSuite:
    """Second derivatives of the operators in op_db, in double precision."""

    name = "gradgrad"
    COLUMNS = ("float64",)
    QUICK = COLUMNS
    SAMPLES = 2

    def entries(self):
        for op in op_db:
            if op.supports_gradgrad and torch.float64 in op.backward_dtypes:
                yield Entry(op.name, op.variant_test_name, family(op), op, out_of_scope(op))

    def columns(self, entry):
        return self.COLUMNS

    def samples(self, entry, column):
        """The first samples that have something to differentiate twice."""
        found = 0
        for sample in entry.info.sample_inputs("cpu", torch.float64, requires_grad=True):
            try:
                second_order(REFERENCE, entry.info, sample)
            except (RuntimeError, NotApplicable):
                continue
            yield sample
            found += 1
            if found == self.SAMPLES:
                return

    def describe(self, sample):
        return sample.summary()

    def check(self, entry, column, sample, candidate):
        op = entry.info
        expected, arrays, mask = second_order(REFERENCE, op, sample)
        other, _, _ = second_order(REFERENCE, op, sample, seed=1)
        values = same(expected, other, compare_gradients)
        actual, _, _ = second_order(candidate, op, sample, like=arrays, mask=mask)
        compare_gradients(expected, actual, values, "second gradient")


def second_order(library, op, sample, seed=0, like=None, mask=None):
    """Gradients of a weighted sum of the first gradients, for leaves and cotangents.

    `like` and `mask` are torch's outputs and torch's choice of first gradients that can be differentiated again, so
    that the candidate is asked for the same thing.
    """
    if is_random(op):
        library.seed(seed)
    build = Arguments(library)
    result = function_call(library, op, sample, build)
    result = library.counterpart(sample.output_process_fn_grad)(result)
    like = like or tensors_in(library.export(result))
    chosen = [index for index, array in enumerate(like) if array.requires_grad]
    if not chosen or not build.leaves:
        raise NotApplicable("nothing to differentiate")
    tensors = flatten(library, result)
    outputs = [tensors[index] for index in chosen]
    cotangents = [library.from_numpy(w).requires_grad_(True) for w in weights_for([like[i] for i in chosen])]
    gradient = library.lookup("autograd.grad")
    first = gradient(outputs, build.leaves, cotangents, create_graph=True, allow_unused=True)
    if mask is None:
        mask = [one is not None and one.requires_grad for one in first]
    first = [one for one, wanted in zip(first, mask) if wanted]
    if not first:
        raise NotApplicable("first gradients are constant")
    if any(one is None for one in first):
        raise Wrong("a first gradient is None")
    weights = weights_for([library.export(one) for one in first])
    second = gradient(
        first, [*build.leaves, *cotangents], [library.from_numpy(weight) for weight in weights], allow_unused=True
    )
    return [library.export(one) for one in second], like, mask
