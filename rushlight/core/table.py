"""The table: one entry for each op, from which functions, methods, in-place forms, docs and the compiler derive.

    mul = op(lambda x, y, /: x * y,    x=lambda g, y: g * y,    y=lambda g, x: g * x)

The first function computes the op; the parameters before the slash are tensors, the others are its settings. Then the
gradient of each tensor. A rule's first parameter is the gradient of the output; its other parameters say what is
saved: an input, `out`, `x_shape`, a setting, or a fact of the family (reductions: x_shape, dims, n). Names inside
a rule are ops (core/worlds.py says what they mean); rules mention neither broadcasting nor accumulation: the engine does that.
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from types import FunctionType
from typing import Any

import numpy as np

from rushlight.core.node import Node

# What the result's dtype is, for the family to see to.
SAME, FLOATING, BOOL, REAL = "same", "floating", "bool", "real"

# The kinds of dtypes that `takes` names: bool, unsigned and signed integers, complex. An entry that leaves out `f`,
# floating-point dtypes, has a kernel that refuses them.
DTYPES_OF = {"b": "?", "u": "BHILQ", "i": "bhilq", "f": "", "c": "FD"}
INTEGERS = frozenset(map(np.dtype, "?bBhHiIlLqQ"))  # `in` takes 50 ns, `.kind in "iub"` 75


class Names(dict):
    """What the package has, by name. `own`: what users' files have, by keys (ops/user_ops.py): found here as well, but
    not among the items."""

    def __init__(self) -> None:
        self.own: dict[str, Any] = {}

    def __missing__(self, key: str) -> Any:
        return self.own[key]

    def __contains__(self, key: object) -> bool:
        return super().__contains__(key) or key in self.own

    def get(self, key: str, default: Any = None) -> Any:
        return super().get(key) or self.own.get(key, default)


TABLE: Names = Names()  # name -> Op
SHARED: Names = Names()  # name -> helper of rules, as written
OWN_NAMES: dict[str, str] = {}  # key of an op or helper of a user's file -> its name (ops/user_ops.py)

# Entries and composites named linalg_det, special_entr are found as linalg.det, special.entr: see members().
NAMESPACES = ("linalg", "fft", "special")


class Op:
    """One entry: `forward` and the `rules` by input; the other attributes are derived when the table is built."""

    __slots__ = (
        "name", "forward", "rules", "family", "result", "doc", "options", "inputs", "settings", "defaults",
        "rule_arguments", "saves", "saves_out", "saved_outputs", "freed", "kernel", "node_class", "make_node", "save",
        "call", "rule_call", "method", "elementwise", "takes", "refused", "rerouted",
    )  # fmt: skip

    def __init__(self, forward: Callable, family: Callable, result: str, doc: str, options: dict, rules: dict):
        code = forward.__code__
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        tensors = code.co_posonlyargcount
        self.name = ""
        self.forward, self.family, self.result = forward, family, result
        self.doc, self.options = doc, options
        self.inputs, self.settings = names[:tensors], names[tensors:]
        defaults = forward.__defaults__ or ()
        self.defaults = dict(zip(names[len(names) - len(defaults) :], defaults))
        self.rules = {name: rules.pop(name, None) for name in self.inputs}
        if rules:
            raise TypeError(f"rules for {', '.join(rules)}, but the inputs are {', '.join(self.inputs)}")
        self.rule_arguments = tuple([() if rule is None else parameters(rule)[1:] for rule in self.rules.values()])
        self.saves = tuple(dict.fromkeys(chain(*self.rule_arguments)))
        self.saves_out = "out" in self.saves
        self.saved_outputs = {
            i: name
            for i, name in enumerate(options.get("outputs", "").split())
            if name in self.saves and name != options.get("apart")
        }
        arrays = {*self.inputs, "out", *options.get("outputs", "").split()} - {options.get("stays")}
        # places of the saved arrays, which are freed after backward; shapes and settings stay
        self.freed = tuple([i for i, name in enumerate(self.saves) if name in arrays])
        self.kernel: Callable
        self.call: Callable  # what users call
        self.rule_call: Callable  # what rules call: parameters in the entry's order, numbers in every place
        self.method: Callable  # what Tensor has: the tensor first, also for polygamma(n, x)
        self.node_class: type[Node]
        self.make_node: Callable[[Op], type[Node]]
        self.save: Callable  # (arguments, edges, outputs) -> what a node keeps
        self.elementwise = False
        # `refused`: dtypes that raise an error. `rerouted`: dtypes outside the fast path, refused or promoted
        self.takes = options.get("takes", "buifc")
        left_out = DTYPES_OF.keys() - self.takes
        self.refused = frozenset([np.dtype(char) for kind in left_out for char in DTYPES_OF[kind]])
        self.rerouted = self.refused | (INTEGERS if result == FLOATING else frozenset())

    def __getattr__(self, name: str) -> Any:
        """The class of the op's nodes, and the function of what they save. Made with the first node: at import, all of
        them would cost 6 ms."""
        if name not in ("node_class", "save"):
            raise AttributeError(name)
        if name == "node_class":
            self.node_class = self.make_node(self)
        else:
            from rushlight.core.call import save_function

            self.save = save_function(self)
        return getattr(self, name)

    @property
    def is_view(self) -> bool:
        """Whether the result shows the memory of the input; with `copies=True`, where it can."""
        return self.family.__name__ == "view"

    @property
    def called(self) -> str:
        """What errors and documentation call it: 'linalg.det' for the entry linalg_det."""
        space, _, rest = self.name.partition("_")
        return self.options.get("called") or (f"{space}.{rest}" if space in NAMESPACES else self.name)

    @property
    def names(self) -> tuple[str, ...]:
        """The name, then its aliases, with the prefixes of namespaces (linalg_)."""
        return (self.name, *self.options.get("alias", "").split())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.call(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<op {self.name}({', '.join(self.inputs + self.settings)})>"


def entries(*functions: Any) -> frozenset[Op]:
    """The entries of ops that are given as functions: `entries(mul, div)`."""
    return frozenset([function.op for function in functions])


def in_namespace(name: str) -> bool:
    """Whether a name is that of a member of linalg, fft or special."""
    return name.partition("_")[0] in NAMESPACES


def rebind(function: Callable, world: dict[str, Any]) -> Callable:
    """The same code, its names looked up in `world`, and before it among the numbers of the user's file."""
    if own := numbers(function):
        world = world.__class__({**world, **own})
    named = function.__name__, function.__defaults__, function.__closure__
    return FunctionType(function.__code__, world, *named)


def numbers(function: Callable) -> dict[str, Any]:
    """The numbers of the user's file that a formula names (ops/user_ops.py)."""
    return function.__dict__.get("numbers", {})


def parameters(function: FunctionType | Callable) -> tuple[str, ...]:
    """The names of a function's positional parameters."""
    code = function.__code__
    return code.co_varnames[: code.co_argcount]


def ruled_inputs(op: Op) -> list[str]:
    """The inputs that have an edge: all but a list of tensors without a rule."""
    return [name for name in op.inputs if name != "tensors" or op.rules[name] is not None]


def node_name(name: str) -> str:
    """The name of the op's nodes, as torch forms it: log_softmax -> LogSoftmaxBackward0."""
    return "".join(part.capitalize() for part in name.split("_")) + "Backward0"


def entry(family: Callable, result: str = SAME, **options: Any) -> Callable[..., Op]:
    """A word for entries of one family: `view = entry(families.view)`."""

    def make(forward: Callable, *, doc: str = "", **rules: Any) -> Op:
        more = {name: rules.pop(name) for name in rules.keys() & OPTIONS.keys()}
        return Op(forward, family, result, doc, {**options, **more}, rules)

    return make


# What an entry may say besides its rules. Of the mathematics, and of how the op is computed:
MATHEMATICS = {
    "parts": "the op in other ops: what loops over rows, and fused loops, are written from (fast/formula.py)",
    "outputs": "names of several outputs, in order: 'values indices'",
    "fixed": "the place of an output that is kept for the rules alone, and has no gradient",
    "apart": "the name of an output of which the rules keep a copy, so that users may write to it",
    "promote": "inputs brought to one dtype first: 'x y'",
    "numbers": "which of two operands may be Python numbers, where it is not the second alone: '', 'x y'",
    "single": "tensors of half precision beside a number, or a 0-d tensor, are computed in single precision",
    "wide_rules": "its rules take tensors of half precision to single, and round their results once: they count, or "
    "compute in several steps. Elementwise ops do so without it",
    "stays": "the input that is still saved after backward, since it is a number most of the time: the graph may be "
    "gone through a second time, as in torch",
    "kernel": "the array function, where the world of arrays has none of the op's name",
    "onto": "the kernel that writes into x itself, where the op's writes into a copy",
    "empty": "what a reduction over an empty list of dimensions means where it is not all of them: ()",
    "takes": "the kinds of dtypes that it takes, where they are not all, after promotion: b bool, u unsigned, i "
    "signed integers, f floating-point, c complex; 0: a 0-d tensor may have any dtype. Only elementwise ops "
    "refuse tensors of no elements",
    "strict": "operands of different dtypes are an error; in these words, if it is text",
    "copies": "a view that may have to copy",
    "itself": "a view that is the tensor itself where the kernel returns the array itself",
    "strides": "a view that depends on how the tensor lies in memory",
    "batched": "how vmap runs it where its family does not say: align, matrix, shift, insert, fold, whole, dynamic "
    "(func/batching_families.py)",
    "linear": "the inputs in each of which it is linear: its derivative there, forward, is the op itself",
    "jointly": "the inputs in which it is linear together: its derivative is the op of all their tangents",
    "added": "the inputs that are added to what is linear in the others, and may be left out",
    "boolean": "False if a bool tensor is refused beside another dtype, too",
    "exact": "rounds nothing: each result is an element of an input, its opposite, or a whole number",
    "fused": "False where a compiled loop may not write the formula out: it is the mathematics, but not the numerics",
    "in_order": "a view of the same elements in the same order, in another shape",
    "sizes": "the sizes that it passes on without computing with them: 'all', or 'leading' for samples and channels; "
    "or a function of what it is given that tells the shapes and dtypes of its outputs "
    "(ops/meta/symbolic_sizes.py)",
    "sparse_gradient": "its gradient is sparse, which a program would make dense: it is not compiled",
    "own": "an op in a user's own file (ops/user_ops.py)",
    "random": "draws fresh numbers: two calls are never one, and nothing is computed once for all",
}
# Of torch's surface: names, and where users find the op:
SURFACE = {
    "alias": "other names: 'absolute'",
    "order": "the parameters in the order in which users give them, where tensors do not come first",
    "names": "the public names of parameters, where they are not the usual ones: {'n': 'chunks'}",
    "variadic": "the setting that collects further positional arguments: x.reshape(2, 3)",
    "called": "what errors call it, where users know it by another name",
    "method": "whether tensors have it as a method",
    "function": "whether the package has it as a function",
    "inplace": "whether the form with an underscore exists",
    "list": "the outputs are a list of any length",
    "out": "(op, out, result) -> out: fills out= where it must have a certain dtype",
    "separate": "out= must not share memory with the inputs",
    "node": "torch's name of the node where it is not the op's, or a function of the node that tells "
    "(ops/tensor/node_names.py)",
}
OPTIONS = {**MATHEMATICS, **SURFACE}

# Public names of parameters; the short ones are for the formulas.
PUBLIC = {"x": "input", "y": "other", "new_dim": "dim"}

# NumPy's spellings of parameters, which torch takes too: x.sum(axis=0, keepdims=True).
NUMPY = {"axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "x1": "input", "x2": "other"}
