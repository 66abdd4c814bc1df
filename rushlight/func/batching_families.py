"""The batching rule of each op: chosen by its family, or for general ops by the word `batched` in their entry.

A rule gets the op, the level, the inputs as `Part`s and the settings of one sample's call. It returns the outputs for
all samples, with the batch in front. An op without a rule runs sample by sample, with a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from rushlight.base.errors import runtime_error
from rushlight.core.arguments import reduced_dims
from rushlight.core.table import Op, entries
from rushlight.core.tensor import Tensor
from rushlight.core.worlds import TENSORS
from rushlight.func.batching import Level, Part, rules, slow, wrap

Parts = Sequence[Any]  # each a Part, a list of Parts, or None for a missing input
SPECIAL: dict[Op, Callable] = {}  # rules of single ops: func/batching_rules.py and others
# file of ops loaded on demand -> the file of their rules, which is loaded with the first of these ops
RULE_FILES = {
    "rushlight.ops.nn.attention": "rushlight.func.layer_rules",
    "rushlight.ops.nn.conv": "rushlight.func.layer_rules",
    "rushlight.ops.nn.dropout": "rushlight.func.layer_rules",
    "rushlight.ops.nn.loss": "rushlight.func.layer_rules",
    "rushlight.ops.nn.normalization": "rushlight.func.layer_rules",
    "rushlight.ops.reduce.sorting": "rushlight.func.sorting_rules",
    "rushlight.ops.shape.as_strided": "rushlight.func.strided_rules",
}
DIMENSIONS = {"dim", "dim0", "dim1", "new_dim", "start_dim", "end_dim", "axis", "first", "second"}


def rule(*functions: Any) -> Callable[[Callable], Callable]:
    """A decorator: the function is the batching rule of these ops: `@rule(mm, mv)`."""

    def register(function: Callable) -> Callable:
        SPECIAL.update(dict.fromkeys(entries(*functions), function))
        return function

    return register


@rules
def rule_of(op: Op) -> Callable:
    """(op, level, parts, settings) -> (the op's outputs for all samples, whether the batch is in front)."""
    rule = chosen(op)
    if op.options.get("random"):  # the rule of a random op returns both values itself
        return rule

    folds = rule in (fold, one_by_one) or op in SPECIAL and not op.is_view

    def run(op: Op, level: Level, parts: Parts, settings: tuple) -> tuple[Any, bool]:
        for p in parts:
            if p is not None and (any([one.mapped for one in p]) if p.__class__ is list else p.mapped):
                return (without_samples if folds and not level.size else rule)(op, level, parts, settings), True
        return call(op, [values(p) for p in parts], settings), False

    return run


def chosen(op: Op) -> Callable:
    """The op's own rule, else the rule of its option `batched` (a word or a function), else its family's rule, else
    sample by sample.
    """
    home = op.forward.__module__
    if home in RULE_FILES:
        import_module(RULE_FILES[home])
    word = op.options.get("batched", "align" if op.elementwise else op.family.__name__)
    if callable(word):
        return by_function(word)
    return SPECIAL.get(op) or WORDS.get(word, one_by_one)


class VmapInfo(NamedTuple):
    """The argument `info` of a user's rule."""

    batch_size: int
    randomness: str


def by_function(function: Callable) -> Callable:
    """The rule from a user's function (info, in_dims, *args) -> (result, out_dims), as torch.library.register_vmap
    takes it. RuntimeError if the function does not return a pair."""

    def rule(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
        dims = (*map(mapped_dim, parts), *[None] * len(settings))
        info = VmapInfo(level.size, level.randomness)
        made = function(info, dims, *map(values, parts), *settings)
        if not (isinstance(made, tuple) and len(made) == 2):
            what = f"{op.called}: the vmap rule must return two values, the result and its out_dim"
            raise runtime_error(what, "return result, 0", got=type(made).__name__)
        result, places = made
        if not isinstance(result, (tuple, list)):
            return front(result, places, level)
        places = places if isinstance(places, (tuple, list)) else [places] * len(result)
        return [front(t, dim, level) for t, dim in zip(result, places)]

    return rule


def mapped_dim(p: Any) -> Any:
    """The dimension of the samples in an input: 0, or None for an input that all samples share."""
    return [mapped_dim(one) for one in p] if isinstance(p, list) else 0 if p is not None and p.mapped else None


def front(t: Any, dim: int | None, level: Level) -> Any:
    """An output with the samples in dimension 0. A shared output is expanded, so that its node in the outer graph is
    new."""
    if not isinstance(t, Tensor):
        return t
    return t.expand((level.size, *t.shape)) if dim is None else TENSORS["movedim"](t, dim, 0) if dim else t


def without_samples(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """Empty results for 0 samples, in the shape of the result for one sample of zeros. (A reshape of an empty batch
    could not infer -1.)
    """
    one = Level(1, level.randomness, level.name)

    def zeros(p: Any) -> Any:
        if isinstance(p, list):
            return [zeros(each) for each in p]
        if p is None or not p.mapped:
            return p and Part(p.value, one)
        x = p.value
        smooth = x.is_floating_point() or x.is_complex()
        return Part(wrap(x.sum(0, keepdim=True) if smooth else x.new_zeros((1, *x.shape[1:])), one), one)

    made = chosen(op)(op, one, [zeros(p) for p in parts], settings)
    return made.narrow(0, 0, 0) if isinstance(made, Tensor) else [t.narrow(0, 0, 0) for t in made]


def flat(parts: Parts) -> list[Part]:
    return [one for p in parts if p is not None for one in (p if isinstance(p, list) else [p])]


def values(p: Any) -> Any:
    return None if p is None else [one.value for one in p] if isinstance(p, list) else p.value


def call(op: Op, inputs: Sequence, settings: Sequence) -> Any:
    """The op on tensors, its arguments in the order of the entry."""
    return TENSORS[op.name](*inputs, *settings)


# -- families --------------------------------------------------------------------------------------


def align(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """Align samples for broadcasting: (B, *s) and (B, *t) become (B, 1, ..., *s) and (B, *t). For elementwise ops, and
    ops that treat each element alike.
    """
    ndim = max([p.ndim for p in parts if p is not None])
    return call(op, [p and p.lined(ndim) for p in parts], settings)


def reduction(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """Reduce the dimensions after the batch; a 0-d sample gets a dimension of size 1 first."""
    (x,) = parts
    dim, keepdim = settings
    if not x.ndim:
        reduced_dims(dim, 0)
        return call(op, [x.value.unsqueeze(1)], ((1,), False))
    dims = None if dim is None else reduced_dims(dim, x.ndim, op.options.get("empty"))
    return call(op, [x.value], (tuple(d + 1 for d in (range(x.ndim) if dims is None else dims)), keepdim))


# -- words -----------------------------------------------------------------------------------------


def matrix(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """Stacks of matrices: the batch is one more dimension of the stack."""
    found = flat(parts)
    ndim = max(p.ndim for p in found)
    # several outputs may have the leading dimensions of different inputs
    apart = len({p.ndim for p in found}) > 1
    if any(p.ndim < 2 for p in found) or (apart and "outputs" in op.options):
        return one_by_one(op, level, parts, settings)
    made = call(op, [p and p.whole(ndim) for p in parts], settings)
    if isinstance(made, Tensor):
        return made
    # an output that the op leaves out for all samples
    return [t.expand((level.size, 0)) if t._array.shape == (0,) else t for t in made]


def whole(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """The batch is one more dimension of every input and result."""
    return call(op, [p and p.whole() for p in parts], settings)


def shift(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """For settings that are dimensions, shapes or keys: a dimension d becomes d + 1; shapes and keys begin with the
    batch.

    A 0-d sample gets a dimension of size 1, except in ops of the word `insert`, which insert dimensions."""
    names = op.inputs + op.settings
    ndim = max((p.ndim for p in flat(parts)), default=0)
    point = ndim == 0 and op.options.get("batched") != "insert"
    inputs = [
        None if p is None else [one.whole(point) for one in p] if isinstance(p, list) else p.whole(point) for p in parts
    ]
    moved = [shifted(name, value, level.size, ndim) for name, value in zip(names[len(op.inputs) :], settings)]
    made = call(op, inputs, moved)
    return without_dim(made) if point else made


def without_dim(made: Any) -> Any:
    """Remove from results for 0-d samples the dimension of size 1 that the samples got."""
    if isinstance(made, (tuple, list)):
        return [without_dim(t) for t in made]
    return made.squeeze(1) if made._array.ndim == 2 and made._array.shape[1] == 1 else made


def shifted(name: str, value: Any, size: int, ndim: int) -> Any:
    """A setting of one sample's call, converted for the call on all samples."""
    if name in DIMENSIONS:
        return value if value is None else value + 1 if value >= 0 else value
    if name in ("dims", "axes"):
        return tuple(d + 1 if d >= 0 else d for d in (range(ndim) if value is None else value))
    if name in ("size", "shape"):
        return (size, *value) if isinstance(value, tuple) else value
    if name == "key":
        return (slice(None), *(value if isinstance(value, tuple) else (value,)))
    if name == "amounts":
        return ((0, 0), *value)
    return value


def fold(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """For ops on (N, C, ...) in which the batch can be merged with N: (B, N, ...) becomes (B N, ...), and back."""
    inputs = [p and folded(p.whole()) for p in parts]
    return unfolded(call(op, inputs, settings), level.size)


def folded(t: Tensor) -> Tensor:
    """(B, N, ...) -> (B N, ...)."""
    b, n, *rest = t._array.shape
    return t.reshape((b * n, *rest))


def unfolded(made: Any, b: int) -> Any:
    """(B N, ...) -> (B, N, ...)."""
    if isinstance(made, (tuple, list)):
        return [unfolded(t, b) for t in made]
    n, *rest = made._array.shape
    return made.reshape((b, n // b if b else n, *rest))


def dynamic(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """RuntimeError: the shape of the result depends on the numbers, and may differ between samples."""
    raise runtime_error(
        "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over "
        f"aten::{op.called}."
    )


# -- sample by sample ------------------------------------------------------------------------------


def one_by_one(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """Run the op on each sample, and stack the results."""
    slow(op.called)

    def sample(p: Any, i: int) -> Any:
        if isinstance(p, list):
            return [sample(one, i) for one in p]
        return p if p is None else p.value.select(0, i) if p.mapped else p.value

    made = [call(op, [sample(p, i) for p in parts], settings) for i in range(level.size)]
    if not made:
        raise runtime_error(f"vmap: {op.called} runs sample by sample, so its output shape is unknown for 0 samples")
    stack = TENSORS["stack"]
    return stack(made, 0) if isinstance(made[0], Tensor) else [stack(list(outs), 0) for outs in zip(*made)]


WORDS: dict[str, Callable] = {f.__name__: f for f in (align, reduction, matrix, whole, shift, fold, dynamic)}
WORDS["insert"] = shift
