"""The table: one entry for each op, from which functions, methods, in-place forms, docs and the compiler derive.

    mul = op(lambda x, y, /: x * y,    x=lambda g, y: g * y,    y=lambda g, x: g * x)

The first function computes the op: its parameters before the slash are tensors, the others are settings. Each further
function is the rule of one tensor. A rule's first parameter is the gradient of the output; its other parameters name
the saved values: an input, `out`, `x_shape`, a setting, or a fact of the family (reductions: x_shape, dims, n). The
names inside a rule are ops (core/worlds.py). The engine undoes broadcasting and adds gradients, so rules do neither.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from types import FunctionType
from typing import Any

import numpy as np

from rushlight.core.node import Node

# How the dtype of the result follows from the dtypes of the inputs; families convert.
SAME, FLOATING, BOOL, REAL = "same", "floating", "bool", "real"

# The kinds of dtypes that `takes` names: bool, unsigned and signed integers, complex. An entry that leaves out `f`,
# floating-point dtypes, has a kernel that refuses them.
DTYPES_OF = {"b": "?", "u": "BHILQ", "i": "bhilq", "f": "", "c": "FD"}
INTEGERS = frozenset(map(np.dtype, "?bBhHiIlLqQ"))  # `in` takes 50 ns, `.kind in "iub"` 75


NOT_BUILT = (
    "an entry is not a function yet: in your own file define the op with rushlight.op(...); in a file of rushlight/ops "
    "`build(globals())` at the end makes the functions (docs/add-an-op.md)"
)


class Names(dict):
    """{name: object of the package}. `own`: {key: object of a user's file} (ops/user_ops.py); lookups find these, too,
    but iteration does not."""

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
        "call", "rule_call", "method", "inplace", "elementwise", "takes", "refused", "rerouted",
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
        self.rule_call: Callable  # what rules call: parameters in the entry's order; every operand may be a number
        self.method: Callable  # what Tensor has: the tensor first, also for polygamma(n, x)
        self.inplace: Callable  # x.mul_(y)
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
        """`node_class`, `save` and `inplace`, made when they are first read: at import, all of them would cost 7 ms."""
        if name == "node_class":
            made: Any = self.make_node(self)
        elif name == "save":
            from rushlight.core.call import save_function

            made = save_function(self)
        elif name == "inplace":
            from rushlight.core.build import inplace

            made = inplace(self)
        elif name == "call":
            raise AttributeError(NOT_BUILT)
        else:
            raise AttributeError(name)
        setattr(self, name, made)
        return made

    @property
    def is_view(self) -> bool:
        """Whether the result shares the memory of the input (with `copies=True`: if it can)."""
        return self.family.__name__ == "view"

    @property
    def called(self) -> str:
        """The name in errors and documentation: 'linalg.det' for the entry linalg_det."""
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
    """Whether this is the name of a member of linalg, fft or special."""
    return name.partition("_")[0] in NAMESPACES


def rebind(function: Callable, world: dict[str, Any]) -> Callable:
    """A function with the same code whose names are looked up in `world`, or first in the user's numbers."""
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
    """The inputs that have an edge in the graph: all inputs but a list of tensors without a rule."""
    return [name for name in op.inputs if name != "tensors" or op.rules[name] is not None]


def node_name(name: str) -> str:
    """The name of the op's nodes, as torch forms it: log_softmax -> LogSoftmaxBackward0."""
    return "".join(part.capitalize() for part in name.split("_")) + "Backward0"


def entry(family: Callable, result: str = SAME, **options: Any) -> Callable[..., Op]:
    """A function that makes entries of one family: `view = entry(families.view)`."""

    def make(forward: Callable, *, doc: str = "", **rules: Any) -> Op:
        more = {name: rules.pop(name) for name in rules.keys() & OPTIONS.keys()}
        return Op(forward, family, result, doc, {**options, **more}, rules)

    return make


# The options of an entry. First the mathematics, and how the op is computed:
MATHEMATICS = {
    "parts": "the op in terms of other ops; loops over rows and fused loops are written from it (fast/formula.py)",
    "outputs": "the names of several outputs, in order: 'values indices'",
    "fixed": "the number of an output that only the rules read; it has no gradient",
    "apart": "the name of an output that nodes keep as a copy, so that users may write to the output",
    "promote": "the inputs that are converted to one dtype first: 'x y'",
    "numbers": "the operands that may be Python numbers: '', 'x y'; default: the second",
    "single": "a half-precision tensor beside a number or a 0-d tensor is computed in float32",
    "wide_rules": "the rules convert half precision to float32 and round their results once, because they count or "
    "take several steps; elementwise ops do so without this option",
    "stays": "the input that nodes keep after backward: it is a number in most calls. The graph may then run twice, "
    "as in torch",
    "kernel": "the array function, if the world of arrays has none of the op's name",
    "onto": "the kernel that writes into x itself; the op's own kernel writes into a copy",
    "empty": "the meaning of an empty list of dimensions in a reduction; () reduces no dimension. Default: all",
    "takes": "the kinds of dtypes that the op takes after promotion: b bool, u unsigned, i signed integers, f "
    "floating-point, c complex; 0: a 0-d tensor may have any dtype. Only elementwise ops refuse empty tensors",
    "strict": "operands of different dtypes are an error; a text is the error's message",
    "copies": "a view op that may have to copy",
    "itself": "a view op that returns the tensor itself if the kernel returns its array itself",
    "strides": "a view op that depends on the strides of the tensor",
    "batched": "how vmap runs the op, if its family does not determine that: align, matrix, shift, insert, fold, "
    "whole, dynamic (func/batching_families.py)",
    "linear": "the inputs in each of which the op is linear: the forward derivative is the op itself",
    "jointly": "the inputs in which the op is linear together: the derivative is the op of all their tangents",
    "added": "the inputs that are added to a term that is linear in the others; they may be left out",
    "boolean": "False if a bool tensor beside a tensor of another dtype is refused",
    "exact": "no result is rounded: each is an element of an input, its negative, or an integer",
    "fused": "False if a compiled loop may not use the formula, because its rounding errors differ from the kernel's",
    "in_order": "a view op whose result has the same elements in the same order, in another shape",
    "sizes": "the sizes that the op copies to its result: 'all', or 'leading' for samples and channels; or a function "
    "from the arguments to the shapes and dtypes of the outputs (ops/meta/symbolic_sizes.py)",
    "sparse_gradient": "the gradient is sparse; such ops are not compiled, because a program would make it dense",
    "own": "an op in a user's own file (ops/user_ops.py)",
    "random": "the op draws random numbers: two equal calls are not merged, and nothing is computed in advance",
}
# Then torch's surface: names, and where users find the op:
SURFACE = {
    "alias": "other names: 'absolute'",
    "order": "the order of the parameters in users' calls, if the tensors do not come first",
    "names": "the public names of parameters that differ from the usual ones: {'n': 'chunks'}",
    "variadic": "the setting that collects further positional arguments: x.reshape(2, 3)",
    "called": "the name in errors, if users know the op by another name",
    "method": "False if tensors do not have the op as a method",
    "function": "False if the package does not have the op as a function",
    "inplace": "False if there is no form with an underscore",
    "list": "the outputs are a list of any length",
    "out": "(op, out, result) -> out: the function that fills out=, for ops whose out= must have a certain dtype",
    "separate": "out= must not share memory with the inputs",
    "node": "torch's name of the node if it is not derived from the op's name, or a function from the node to its "
    "name (ops/tensor/node_names.py)",
}
OPTIONS = {**MATHEMATICS, **SURFACE}

# Public names of parameters; the short ones are for the formulas.
PUBLIC = {"x": "input", "y": "other", "new_dim": "dim"}

# NumPy's spellings of parameters, which torch takes too: x.sum(axis=0, keepdims=True).
NUMPY = {"axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "x1": "input", "x2": "other"}
