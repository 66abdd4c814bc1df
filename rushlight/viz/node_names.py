"""Names for the nodes of a graph: the user's variables, parameters and modules.

The names come from `params`, from the variables of the user's frame, from the statement that made the node (`h =
torch.relu(a)` names the node h), from modules, and last from the alphabet."""

from __future__ import annotations

import ast
import linecache
import sys
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain, count
from typing import Any

from rushlight.base.errors import user_frame
from rushlight.core.node import Node, Output
from rushlight.core.table import Op, ruled_inputs
from rushlight.core.tensor import Tensor
from rushlight.nn.module import Module
from rushlight.viz.graph import Params, pairs
from rushlight.viz.graph_formulas import letters
from rushlight.viz.module_calls import Call, call_of
from rushlight.viz.op_sentences import MOVES, MOVES_TOO

NAMESPACES = ("functional", "nn", "linalg", "special", "fft")  # module aliases, as in F = nn.functional
LOOPS = (ast.For, ast.While, ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)
Place = tuple[int, int]  # line, column
Span = tuple[int, int, int, int]  # first line, last line, first column, end column
SUBSCRIPT_DIGITS = "₀₁₂₃₄₅₆₇₈₉"
SUBSCRIPTS = str.maketrans("0123456789", SUBSCRIPT_DIGITS)
MAX_PARSED_FILES = 16


class Statements(ast.NodeVisitor):
    """The expressions of a file by their position, and the targets of its assignments."""

    def __init__(self, text: str):
        self.expressions: dict[Span, ast.AST] = {}
        self.targets: dict[Span, list[str]] = {}
        self.writes: dict[Span, tuple[str, str]] = {}  # for `h[0] = 1`: ("h[0]", "1")
        self.bound: dict[str, list[Place]] = {}  # name -> the positions of its assignments
        self.assigned: dict[int, Place] = {}  # {id of a target: the end of its statement}
        self.loops: list[tuple[Place, Place]] = []  # start and end of each loop
        self.functions: list[tuple[Place, Place]] = []
        self.modules = {"self"}  # names of imported modules; they hold no tensor
        try:
            todo: list[ast.AST] = [ast.parse(text)]
        except (SyntaxError, ValueError, RecursionError):
            todo = []  # a notebook cell with a magic command, or a file in another language
        for node in todo:  # the list `todo` grows in the loop
            todo.extend(ast.iter_child_nodes(node))
            if isinstance(node, (ast.Call, ast.BinOp, ast.UnaryOp, ast.Subscript)):
                self.expressions[span_of(node)] = node
            elif isinstance(node, ast.AugAssign):
                self.expressions[span_of(node)] = ast.BinOp(node.target, node.op, node.value)
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                self.modules |= {name.asname or name.name.split(".")[0] for name in node.names}
            self.note_targets(node)
            self.note_writes(node)
            self.note_bindings(node)

    def note_writes(self, node: ast.AST) -> None:
        """`h[0] = 1`, `h[0] += 1` and `h[0].add_(1)` write into a part of an array. `F = nn.functional` is a module by
        another name."""
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            target = node.targets[0]
            self.writes[span_of(target)] = ast.unparse(target), ast.unparse(node.value)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Subscript):
            for place in (node, node.target):
                self.writes[span_of(place)] = ast.unparse(node.target), ""
        elif isinstance(node, ast.Call) and last_name(node.func).endswith("_"):
            part = getattr(node.func, "value", None)
            if isinstance(part, ast.Subscript):
                self.writes[span_of(node)] = ast.unparse(part), ""
        elif isinstance(node, ast.Assign) and last_name(node.value) in NAMESPACES:
            self.modules |= {t.id for t in node.targets if isinstance(t, ast.Name)}

    def note_bindings(self, node: Any) -> None:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            place = self.assigned.get(id(node), (node.lineno, node.col_offset))
            self.bound.setdefault(node.id, []).append(place)
        elif isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            _, end = ends_of(node)
            self.assigned |= {id(part): end for top in targets for part in ast.walk(top)}
        elif isinstance(node, LOOPS):
            self.loops.append(ends_of(node))
        elif isinstance(node, (ast.FunctionDef, ast.Lambda)):
            self.functions.append(ends_of(node))
            for arg in ast.walk(node.args):
                if isinstance(arg, ast.arg):
                    self.bound.setdefault(arg.arg, []).append((arg.lineno, arg.col_offset))

    def binding(self, name: str, use: Place) -> tuple[Place, bool] | None:
        """(the position of the last assignment to `name` before `use`, whether a loop or a call assigns again); None
        for a name that the function does not assign.
        """
        whole = ((0, 0), (sys.maxsize, 0))
        around = [f for f in self.functions if f[0] <= use <= f[1]]
        first, last = max(around, default=whole)
        inner = [f for f in self.functions if f != (first, last) and first <= f[0] and f[1] <= last]
        places = [
            at for at in self.bound.get(name, ()) if first <= at <= last and not any(f[0] < at <= f[1] for f in inner)
        ]
        if not places:
            return None
        loops = [(a, b) for a, b in self.loops if first <= a <= use <= b <= last]
        again = any(a <= at <= b for a, b in loops for at in places) if loops else bool(around)
        before = [at for at in places if at <= use] or places
        return max(before), again

    def note_targets(self, node: ast.AST) -> None:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target: ast.AST = node.targets[0]
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.NamedExpr)):
            target = node.target
        else:
            return
        parts = target.elts if isinstance(target, ast.Tuple) else [target]
        names = [part.id if isinstance(part, ast.Name) else "" for part in parts]
        place = node if isinstance(node, ast.AugAssign) else node.value
        if place is not None:
            self.targets[span_of(place)] = names


def ends_of(node: Any) -> tuple[Place, Place]:
    return (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)


def span_of(node: Any) -> Span:
    return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset


@lru_cache(MAX_PARSED_FILES)
def statements(text: str) -> Statements:
    return Statements(text)


class Places:
    """The expression that made a node, found by the position of its instruction in the source."""

    def __init__(self) -> None:
        self.files: dict[str, Statements] = {}
        self.spans: dict[Any, list[Any]] = {}

    def find(self, node: Node) -> tuple[Statements, Span] | None:
        """The parsed file and the position in it; None before Python 3.11, which has no columns."""
        if node.where is None or node.leaf:
            return None
        code, lasti = node.where
        if not hasattr(code, "co_positions"):
            return None
        if code not in self.spans:
            self.spans[code] = list(code.co_positions())
        spans, at = self.spans[code], lasti // 2
        if at >= len(spans) or None in spans[at]:
            return None
        file = code.co_filename
        if file not in self.files:
            self.files[file] = statements("".join(linecache.getlines(file)))
        return self.files[file], spans[at]

    def targets(self, node: Node) -> list[str]:
        """The variables to which the statement assigns the node's result."""
        found = self.find(node)
        return [] if found is None else found[0].targets.get(found[1], [])

    def argument(self, node: Node, slot: int) -> str:
        """The variable passed as input number `slot`; "" for another expression."""
        made = self.given(node, slot)
        return "" if made is None else name_in(made)

    def written(self, node: Node, slot: int) -> str:
        """The short expression passed as input number `slot`: `mask == 0`."""
        made = self.given(node, slot)
        text = "" if made is None or isinstance(made, ast.Starred) else ast.unparse(made)
        return text if len(text) <= MAX_EXPRESSION_LETTERS else ""

    def given(self, node: Node, slot: int) -> ast.AST | None:
        """The expression passed as input number `slot`; None if it is unknown."""
        found = self.find(node)
        made = None if found is None else found[0].expressions.get(found[1])
        if isinstance(made, ast.BinOp):
            given = [made.left, made.right]
            numbers = [side for side in given if is_number(side)]
            if len(numbers) == 1:  # 3 * a is a.__rmul__(3): the slots do not show the order
                (other,) = [side for side in given if side is not numbers[0]]
                return numbers[0] if node.edges[slot] is None else other
            return given[slot] if slot < len(given) else None
        if not isinstance(made, ast.Call) or node.op is None or found is None:
            return None
        return argument_of(made, node.op, slot, found[0].modules)

    def calls_function(self, node: Node) -> bool:
        """True if the line calls the op's function, such as F.linear(x, w), without keywords: all arguments are then
        inputs.
        """
        found = self.find(node)
        made = None if found is None else found[0].expressions.get(found[1])
        if node.op is None or not isinstance(made, ast.Call) or made.keywords:
            return False
        return last_name(made.func) in {node.op.called, *CALLED_AS.get(node.op.name, ())}

    def write(self, node: Node) -> tuple[str, str]:
        """The part that the line writes to, and the value: `h[0]` and `1`; "" if unknown."""
        found = self.find(node)
        return ("", "") if found is None else found[0].writes.get(found[1], ("", ""))

    def versions(self, ops: list[Node]) -> dict[tuple[Node, int], str]:
        """{(node, slot): x₁ or x₂} of constants whose variable gets several values between their uses. `ops`: in the
        order of the program."""
        keys: dict[tuple[Node, int], tuple] = {}
        passes: Counter = Counter()
        for node in ops:
            repeated = node.where, node.name()
            passes[repeated] += 1
            found = self.find(node)
            for slot, edge in enumerate(node.edges):
                name = "" if edge is not None or found is None else self.argument(node, slot)
                at = None if found is None else (found[1][0], found[1][2])
                bound = found[0].binding(name, at) if found and at and name else None
                if bound is not None:
                    place, again = bound
                    keys[node, slot] = name, node.code, place, passes[repeated] if again else 0
        values = {key: i for i, key in enumerate(dict.fromkeys(keys.values()))}
        counts = Counter(name for name, *_ in values)
        seen: Counter = Counter()
        named = {}
        for key in values:
            seen[key[0]] += 1
            named[key] = key[0] + str(seen[key[0]]).translate(SUBSCRIPTS)
        return {use: named[key] for use, key in keys.items() if counts[key[0]] > 1}

    def is_operator(self, node: Node) -> bool:
        """True if the line makes the node by an operator, such as `p * p`."""
        found = self.find(node)
        made = None if found is None else found[0].expressions.get(found[1])
        return isinstance(made, (ast.BinOp, ast.UnaryOp, ast.Subscript))

    def callee(self, node: Node) -> str:
        """The function, method or layer that the line calls: `dropout` of F.dropout(x)."""
        found = self.find(node)
        made = None if found is None else found[0].expressions.get(found[1])
        return last_name(made.func) if isinstance(made, ast.Call) else ""


def argument_of(made: ast.Call, op: Op, slot: int, modules: set[str]) -> Any:
    """The argument of a call that became input number `slot` of `op`. If the called name is not the op's, the function
    made the op inside: layers pass their data on, other functions may pass any value to the op.
    """
    called = last_name(made.func).rstrip("_")
    places = DATA.get(op.name, {0: 0, 1: 1} if op.name.endswith("_loss") else {})
    same = called in {*op.names, op.called, *CALLED_AS.get(op.name, ())}
    if not same or op.name in FUNCTION or any(w.arg in ("alpha", "beta") for w in made.keywords):
        place = (FUNCTION.get(op.name, places) if same else places).get(slot)
        return made.args[place] if place is not None and place < len(made.args) else None
    given: list[Any] = [*made.args]
    if isinstance(made.func, ast.Attribute) and is_value(made.func.value, modules):
        given.insert(0, made.func.value)
    inputs = ruled_inputs(op)
    order = CALL_ORDER.get(op.name) or op.options.get("order", "").split() or inputs
    place = order.index(inputs[slot]) if inputs[slot] in order else len(given)
    return given[place] if place < len(given) else None


def last_name(function: ast.AST) -> str:
    """`relu` for F.relu and for relu; "" for other expressions."""
    return getattr(function, "attr", getattr(function, "id", ""))


def name_in(expression: ast.AST) -> str:
    """`x` for x, `w` for self.w, `w[0]` for w[0]; "" for other expressions."""
    if isinstance(expression, ast.Name):
        return expression.id
    if isinstance(expression, ast.Attribute) and isinstance(expression.value, ast.Name):
        return expression.attr if expression.value.id == "self" else ""
    if isinstance(expression, ast.Subscript) and isinstance(expression.slice, ast.Constant):
        name = name_in(expression.value)
        return f"{name}[{expression.slice.value!r}]" if name else ""
    return ""


def is_number(expression: ast.AST) -> bool:
    """True for a number, or minus a number."""
    if isinstance(expression, ast.UnaryOp):
        expression = expression.operand
    return isinstance(expression, ast.Constant)


def is_value(expression: ast.AST, modules: set[str]) -> bool:
    """True if `a` in `a.f(b)` may be a tensor, and not a module such as nn.functional."""
    while isinstance(expression, ast.Attribute):
        expression = expression.value
    return not (isinstance(expression, ast.Name) and expression.id in modules)


FOLDS = ("sum", "reduce", "prod")  # functions with one result, even if they make many additions or multiplications
ONE_OP = {"Linear", "Embedding", "LayerNorm", "GroupNorm"}  # modules that make a single op
ONE_OP |= {f"{kind}{n}d" for kind in ("Conv", "BatchNorm", "InstanceNorm") for n in (1, 2, 3)}
MAX_EXPRESSION_LETTERS = 24  # longest expression shown in place of a name
CALL_ORDER = {"masked": ("y", "condition", "x")}  # the arguments of masked_fill(input, mask, value)
CALLED_AS = {  # op -> functions that make only this op from their arguments
    "mm": ("matmul", "bmm"),
    "mv": ("matmul",),
    "dot": ("matmul",),
    "convolution": ("conv1d", "conv2d", "conv3d"),
    "nll_loss": ("cross_entropy",),
    "frozen_batch_norm": ("batch_norm",),
    "split_sizes": ("split", "chunk"),
}
# op of a layer or loss -> {number of the input: position in the call of the layer}
DATA = {
    **{name: {0: 0} for name in ("linear", "convolution", "layer_norm", "group_norm")},
    **{name: {0: 0} for name in ("batch_norm", "frozen_batch_norm")},
    "embedding": {1: 0},
    "nll_loss": {0: 0, 1: 1},
}
# the same for a call of its function: layer_norm(input, shape, weight, bias)
FUNCTION = {
    **{name: {0: 0, 1: 1, 2: 2} for name in ("linear", "convolution", "nll_loss")},
    **{name: {0: 0, 1: 2, 2: 3} for name in ("layer_norm", "group_norm")},
    **{name: {0: 0, 1: 3, 2: 4} for name in ("batch_norm", "frozen_batch_norm")},
    "embedding": {0: 1, 1: 0},
}


def users_variables(depth: int) -> dict[str, Any]:
    """{name: value} of the variables of the user's frame."""
    frame = user_frame(depth + 1)
    return {} if frame is None else {**frame.f_globals, **frame.f_locals}


def tensors_in(variables: dict[str, Any]) -> dict[str, Tensor]:
    """{name: tensor} of the variables that hold tensors."""
    return {name: value for name, value in variables.items() if isinstance(value, Tensor) and written_by_the_user(name)}


def written_by_the_user(name: str) -> bool:
    """False for `_`, and for the variables that pytest adds to a function: `@py_assert1`."""
    return name.isidentifier() and not name.startswith("_")


def names_in(variables: dict[str, Any]) -> dict[Node, str]:
    """{node: name} of the tensors in variables, and of the parameters of the modules in them: `model.fc1.weight`."""
    found: dict[Node, str] = {}
    for variable, module in variables.items():
        if isinstance(module, Module) and written_by_the_user(variable):
            for path, tensor in module.named_parameters():
                if tensor._node is not None:
                    found.setdefault(tensor._node, spoken(f"{variable}.{path}"))
    named = tensors_in(variables).items()
    return {**found, **{t._node: name for name, t in named if t._node is not None}}


def names_of(
    params: Params, output: Tensor, wrt: Tensor, variables: dict[str, Any], order: list[Node]
) -> dict[Node, str]:
    """Names of nodes: from `params`, else from the user's variables; without one, z for the output and x for `wrt`, or
    other letters if the program uses these names.
    """
    found = names_in(variables)
    found.update({tensor._node: name for name, tensor in pairs(params) if tensor._node is not None})
    taken = {*variables, *written_names([node for node in order if not node.leaf])}
    for tensor, *names in ((output, "z", "y", "out", "result"), (wrt, "x")):
        if tensor._node is not None and tensor._node not in found:
            free = (name for name in chain(names, letters()) if name not in taken)
            found[tensor._node] = next(free)
            taken.add(found[tensor._node])
    return found


def spoken(path: str) -> str:
    """A parameter's or module's name as in Python: `0.weight` is `model[0].weight`."""
    first, *rest = path.split(".")
    start = f"model[{first}]" if is_index(first) else first
    return start + "".join(f"[{part}]" if is_index(part) else f".{part}" for part in rest)


def is_index(part: str) -> bool:
    """True for a number, or a slice such as 0:10."""
    return part.replace(":", "").isdigit()


def numbered(nodes: list[Node], names: dict[Node, str]) -> dict[Node, str]:
    """The names made unique: x₁, x₂ if the program assigns to x twice."""
    counts = Counter(names[node] for node in nodes if node in names)
    seen: Counter[str] = Counter()
    unique = {}
    for node in nodes:
        if node in names:
            name = names[node]
            seen[name] += 1
            number = str(seen[name]).translate(SUBSCRIPTS)
            unique[node] = name if counts[name] == 1 else f"{name}{number}"
    return unique


def node_names(order: list[Node], params: Params, seen: dict[str, Tensor], places: Places) -> dict[Node, str]:
    """A name for each node (`order`: newest first): one written by the user, otherwise a letter."""
    ops = [node for node in reversed(order) if not node.leaf]
    leaves = [edge for node in ops for edge in node.edges if edge is not None and edge.leaf]
    oldest_first = [*dict.fromkeys(leaves), *ops]  # leaves in the order of their first use
    found = users_names(oldest_first, params, seen, places)
    names = numbered(oldest_first, {n: found[n] for n in oldest_first if n in found})
    taken = {*names.values(), *seen, *written_names(ops)}
    fresh = (name for name in letters() if name not in taken)
    unnamed = (f"leaf{i}" for i in count(1) if f"leaf{i}" not in taken)
    for node in oldest_first:
        if node not in names:
            names[node] = next(unnamed if node.leaf else fresh)
    return names


def written_names(ops: list[Node]) -> set[str]:
    """The names used in the functions that made the ops: a letter equal to one of them would be misleading."""
    codes = {node.where[0] for node in ops if node.where is not None}
    return {
        name for code in codes for name in (*code.co_varnames, *code.co_names, *code.co_cellvars, *code.co_freevars)
    }


def users_names(oldest_first: list[Node], params: Params, seen: dict[str, Tensor], places: Places) -> dict[Node, str]:
    """The names of parameters, variables and modules, not yet unique."""
    found: dict[Node, str] = from_statements(oldest_first, places)
    found.update({t._node: name for name, t in seen.items() if t._node is not None})
    for name, tensor in pairs(params):
        if tensor._node is not None:
            found[tensor._node] = spoken(name)
    for node, name in of_modules(oldest_first, params).items():
        found.setdefault(node, name)
    for node, result in single_results(oldest_first).items():
        if node in found:
            found.setdefault(result, found.pop(node))
    for node in oldest_first:  # names for unnamed leaves, from the first use of each
        for slot, edge in enumerate(node.edges):
            if edge is not None and edge.leaf and not found.get(edge):
                found[edge] = places.argument(node, slot)
    return {node: name for node, name in found.items() if name}


def single_results(order: list[Node]) -> dict[Node, Output]:
    """{op: result} for ops with several outputs of which one is in the graph."""
    found: dict[Node, list[Output]] = {}
    for node in order:
        if isinstance(node, Output):
            found.setdefault(node.source()[0], []).append(node)
    return {node: results[0] for node, results in found.items() if len(results) == 1}


def from_statements(oldest_first: list[Node], places: Places) -> dict[Node, str]:
    """Names from assignments: if one expression made a chain of nodes, the last one is the result."""
    found = {}
    ops = [node for node in oldest_first if not node.leaf]
    for node, after in zip(ops, [*ops[1:], None]):
        if after is not None and after.where == node.where:
            continue
        targets = places.targets(node)
        if len(targets) == 1 and targets[0]:
            found[node] = targets[0]
    readers = readers_in_statement(ops)
    for node in [n for n in found if places.callee(n) in FOLDS]:
        if readers.get(node):  # a partial sum inside sum(...)
            del found[node]
    for node in ops:
        if isinstance(node, Output):
            targets = places.targets(node)
            last = moved_last(node, readers)
            if last is not None and node.number < len(targets) > 1 and targets[node.number]:
                found[last] = targets[node.number]
    return found


def readers_in_statement(ops: list[Node]) -> dict[Node, list[Node]]:
    """{node: the nodes that read it and that the same expression made}."""
    found: dict[Node, list[Node]] = {}
    for node in ops:
        for edge in dict.fromkeys(node.edges):
            if edge is not None and not edge.leaf and edge.where == node.where:
                found.setdefault(edge, []).append(node)
    return found


def moved_last(node: Node, readers: dict[Node, list[Node]]) -> Node | None:
    """The node behind an output that the same expression only moves, such as a transpose; None if the expression
    computes with it.
    """
    while inside := readers.get(node):
        if len(inside) > 1 or inside[0].op is None or inside[0].op.name not in MOVES + MOVES_TOO:
            return None
        (node,) = inside
    return node


def of_modules(oldest_first: list[Node], params: Params) -> dict[Node, str]:
    """The result of each recorded call of a module (`fc1`, `relu1`), and of each op that uses the parameters of one
    module."""
    last: dict[Call, Node] = {}
    for node in oldest_first:
        call = None if node.leaf else call_of(node, params)
        if call is not None and call.path:
            last[call] = node
    found = {node: result_name(call.path, call.kind) for call, node in last.items()}
    own = {t._node: path for path, t in weights_of_one_op(params)}
    for node in oldest_first:
        inputs = () if node.op is None else ruled_inputs(node.op)
        weights = [edge for name, edge in zip(inputs, node.edges) if name == "weight"]
        path = own.get(weights[0]) if len(weights) == 1 else None
        if node not in found and node.op is not None and path:
            found[node] = result_name(path, node.op.called)
    return found


def weights_of_one_op(params: Params) -> Iterator[tuple[str, Tensor]]:
    """(path, weight) of the modules whose result is the result of the op that reads `weight`: our layers, and
    parameters of which only the names are known."""
    modules = dict(params.named_modules()) if isinstance(params, Module) else {}
    for name, tensor in pairs(params):
        path, _, last = name.rpartition(".")
        if last != "weight" or tensor._node is None:
            continue
        kind = type(modules.get(path))
        ours = kind.__module__.startswith(f"{Module.__module__.partition('.')[0]}.")
        if path not in modules or (ours and kind.__name__ in ONE_OP):
            yield path, tensor


def result_name(path: str, kind: str) -> str:
    """The result of module `encoder.0`, a ReLU: `encoder.relu0`; of `fc1`: `fc1`."""
    outer, _, last = path.rpartition(".")
    joint = "_" if any(map(str.isdigit, kind)) else ""  # conv2d_0, relu1
    name = f"{kind.lower()}{joint}{last}" if last.isdigit() else last
    return f"{spoken(outer)}.{name}" if outer else name
