"""A program as a readable page: `compiler.source(f)`.

The page has the program's statements, in the same order (compile/lower/page_text.py). Parameters have their names in
the model, values the names of the user's variables, loops the names of the ops that they compute.
"""

from __future__ import annotations

import ast
import keyword
import re
import textwrap
from collections.abc import Iterator
from typing import Any

from rushlight.compile.lower.page_text import MARK, Page, Shown, Statement
from rushlight.core.tensor import Tensor
from rushlight.nn.module import Module
from rushlight.ops.result_names import RESULT_NAMES

WIDTH = 100
MAX_ORIGINS_IN_NAME = 4
BACKWARD = "_backward"  # the end of the name of a backward, such as linear_backward
MAX_PLACES = 3  # at most this many of the user's statements are named above a statement of the page
HEAD = '''"""{title}

For reading: the program that runs, with other names. A loop stands here as a function of whole
arrays; it runs as machine code, element by element, in memory that is planned once.
It returns results and gradients{grads}. compiler.source(f, full=True) runs alone.

{inputs}
"""'''


def program_page(program: Any, function: Any, kind: Any) -> str:
    """The page of a program of the compiled `function`, made for arguments of the kind `kind`."""
    namer = StateNames(program.outline.before.kept)
    if program.holds():  # the optimizers' settings have not changed since the program was made
        namer.settings = [settings_of(o) for o in namer.optimizers]
    given = argument_names(function, kind)
    name = identifier(getattr(function, "__name__", type(function).__name__))
    sheets = [Sheet(p.parts.page, namer, given) for p in program.parts]
    for sheet in sheets:
        sheet.give_names()
        # forward's results beyond the function's own are the values that backward reads
        results = [replaced(text, sheet.names) for text in sheet.page.results]
        sheets[-1].saved = [identifier(text) for text in results[program.results :]]
    blocks: list[str] = []
    known: dict[str, str] = {}
    for sheet, called in zip(sheets, (name, f"{name}_backward")):
        blocks += [*sheet.functions(known), sheet.main(called)]
    told = [line for sheet in sheets[:1] for line in sheet.told_inputs()]
    inputs = textwrap.fill(";  ".join(told), WIDTH, break_long_words=False)
    new = any(sheet.page.grads for sheet in sheets)  # otherwise the program adds to `.grad`
    grads = " (after zero_grad())" if new else " (`.grad`)"
    return "\n\n".join(
        [HEAD.format(grads=grads, title=f"Made by rushlight.compile from {name}.", inputs=inputs), *blocks]
    )


class StateNames:
    """Names of the tensors that a function reaches: `fc1_weight`, `fc1_weight_exp_avg`."""

    def __init__(self, reached: list[Any]):
        self.names: dict[int, str] = {}
        self.settings: list[str] = []  # the optimizers' settings, in words
        self.optimizers = [x for x in reached if is_optimizer(x)]
        modules = [m for m in reached if isinstance(m, Module)]
        children = {id(c) for m in modules for c in m.modules() if c is not m}
        for module in [m for m in modules if id(m) not in children]:
            for path, t in [*module.named_parameters(), *module.named_buffers()]:
                self.names.setdefault(id(t), identifier(path))
        for holder in reached:
            if isinstance(holder, dict):
                for key, value in [*holder.items()]:
                    if isinstance(value, Tensor) and isinstance(key, str):
                        self.names.setdefault(id(value), identifier(key))
        for optimizer in self.optimizers:
            for p, state in [*optimizer.state.items()]:
                for key, value in state.items() if isinstance(state, dict) else ():
                    if isinstance(value, Tensor):
                        owner = self.names.get(id(p), "parameter")
                        self.names[id(value)] = f"{owner}_{identifier(key)}"

    def __call__(self, t: Any) -> str:
        return self.names.get(id(t), "tensor")


def settings_of(optimizer: Any) -> str:
    """`AdamW: lr=0.001, betas=(0.9, 0.999), eps=1e-08, weight_decay=0.01`."""
    group = optimizer.param_groups[0]
    told = [f"{key}={value!r}" for key, value in group.items() if isinstance(value, (float, tuple)) and value != 0]
    return f"{type(optimizer).__name__}: {', '.join(told)}"


def is_optimizer(x: Any) -> bool:
    return any((c.__module__, c.__name__) == ("rushlight.optim.optimizer", "Optimizer") for c in type(x).__mro__)


def argument_names(function: Any, kind: Any) -> list[str]:
    """The names of the tensors among the arguments, in the order of the program's `arg0`, ..."""
    call = getattr(function, "forward", function)
    code = getattr(getattr(call, "__func__", call), "__code__", None)
    bound = hasattr(call, "__func__")
    known = [] if code is None else [*code.co_varnames[bound : code.co_argcount]]
    names: list[str] = []
    args, kwargs = kind[0][1:], kind[1][1:]
    known += [f"argument_{i}" for i in range(len(known), len(args))]
    for path, sign in [*zip(known, args), *kwargs]:
        names += paths_of(path, sign)
    return names


def paths_of(path: Any, sign: Any) -> Iterator[str]:
    """The names of the tensors in an argument whose signature is `sign`."""
    if not isinstance(sign, tuple) or not sign:
        return
    if isinstance(sign[0], tuple):  # a tensor
        yield identifier(str(path))
    elif sign[0] is dict:
        for key, inner in sign[1:]:
            yield from paths_of(f"{path}_{key}", inner)
    elif isinstance(sign[0], type):
        for i, inner in enumerate(sign[1:]):
            yield from paths_of(f"{path}_{i}", inner)


class Sheet:
    """One function of the page: the program, or its backward."""

    def __init__(self, page: Page, state: StateNames, arguments: list[str]):
        self.page, self.state, self.arguments = page, state, arguments
        self.names: dict[str, str] = {}  # mark -> name
        self.saved: list[str] = []
        self.taken: set[str] = {"np"}
        for s in page.statements:
            self.taken |= called(s)
        self.loops: dict[str, list[Statement]] = {}  # text of a function -> its calls
        for s in page.statements:
            if s.arguments is not None and not self.is_inline(s):
                self.loops.setdefault(canonical(s), []).append(s)

    @staticmethod
    def is_inline(s: Statement) -> bool:
        """Whether the page shows the expression of a loop in place of a call."""
        return not s.on_numbers and len(s.lines) + len(s.returned) == 1

    # -- names -------------------------------------------------------------------------------------

    def give_names(self) -> None:
        used = "\n".join("\n".join([*s.outs, *(s.arguments or s.lines)]) for s in self.page.statements)
        shown = {*MARK.findall("\n".join([used, *self.page.results, *self.page.grads]))}
        for i, value in enumerate(self.page.values):
            if value.source is not None or f"§{i}" in shown:
                self.names[f"§{i}"] = unused(self.wanted(value), self.taken)

    def wanted(self, v: Shown) -> str:
        if v.source is not None:
            return self.input_name(*v.source)
        if v.leaf is not None:
            return f"{self.input_name(*v.leaf)}_grad"
        variables, op = variables_of(v.place), v.op
        if is_backward(v.place):
            return f"grad_{v.origin.removesuffix(BACKWARD) or op}"
        if v.last and v.slot < len(variables):
            return variables[v.slot]
        variable = variables[0] if len(variables) == 1 else ""
        if calls_step([v.place]) and len(self.state.optimizers) == 1:
            variable = type(self.state.optimizers[0]).__name__.lower()
        maker = variable or module_of(v.place) or v.origin
        return f"{maker}_{op}" if maker and maker != op else op

    def input_name(self, kind: str, what: Any) -> str:
        if kind == "grad":
            inner = self.input_name("argument" if isinstance(what, int) else "state", what)
            return f"{inner}_grad"
        if kind == "state":
            return self.state(what)
        if kind == "argument":
            return self.arguments[what] if what < len(self.arguments) else "argument"
        if kind == "saved":
            return self.saved[what] if what < len(self.saved) else "saved"
        return {"seed": "grad_output", "number": "number"}.get(kind, kind)

    def told_inputs(self) -> Iterator[str]:
        """The arguments and parameters with dtypes and shapes, then the number of the remaining arrays."""
        rest = 0
        own = {*self.arguments}
        parameters = {p for o in self.state.optimizers for p in o.state}
        for i, v in enumerate(self.page.values):
            name = self.names.get(f"§{i}", "")
            if v.source is None:
                if v.op == "constant" and name:
                    yield f"{name}: {v.what}, a constant"
                continue
            known = isinstance(v.source[1], Tensor) and v.source[1] in parameters
            if name in own or known or not parameters:
                yield f"{name}: {v.what}"
            else:
                rest += 1
        kinds = ", ".join(dict.fromkeys(type(o).__name__ for o in self.state.optimizers))
        if rest:
            yield f"and {rest} arrays of {kinds or 'other state'}"

    def loop_name(self, s: Statement) -> str:
        """`linear_gelu`, `cross_entropy_rows`, `gelu_backward`, `adamw`, `adamw_factors`."""
        whole = all(origin.endswith(BACKWARD) for origin in s.origins)
        names = [o.removesuffix(BACKWARD) for o in s.origins]
        if not whole:  # a loop that belongs to forward and backward is named after the forward pass
            names = [o for o, own in zip(s.origins, names) if o == own or own not in s.origins]
        if len(names) > MAX_ORIGINS_IN_NAME:
            names = [names[0], "to", names[-1]]
        name = "_".join(names) + BACKWARD * whole if names else "copy"
        return name + "_rows" * s.by_rows + "_factors" * s.on_numbers

    # -- text --------------------------------------------------------------------------------------

    def functions(self, known: dict[str, str]) -> Iterator[str]:
        """The definitions of the loops. `known`: text of a function -> its name."""
        for key, calls in self.loops.items():
            if key not in known:
                known[key] = unused(identifier(self.loop_name(calls[0])), self.taken)
                yield self.definition(known[key], calls)
        self.known = known

    def definition(self, name: str, calls: list[Statement]) -> str:
        first = calls[0]
        taken: set[str] = {name, *called(first)}
        local: dict[str, str] = {}

        for k, mark in enumerate(first.arguments or ()):
            local[mark] = unused(common([self.names[(c.arguments or [])[k]] for c in calls]), taken)
        for k, mark in enumerate(first.outs):
            if mark in "".join(first.lines):
                local[mark] = unused(common([self.names[c.outs[k]] for c in calls]), taken)
        for target, mark in re.findall(r"(§\d+)\[\.\.\.\] = (§\d+)", "\n".join(first.lines)):
            if mark not in local:
                local[mark] = unused(f"new_{local[target]}", taken)
        for mark in MARK.findall("\n".join([*first.lines, *first.returned])):
            if mark not in local:
                op = self.page.values[int(mark[1:])].op
                local[mark] = unused(RESULT_NAMES.get(op, f"{op}_value"), taken)
        lines = [replaced(line, local) for line in first.lines]
        if first.returned:
            lines.append(f"return {', '.join(replaced(r, local) for r in first.returned)}")
        parameters = ", ".join(local[m] for m in first.arguments or ())
        return "\n".join([wrapped(f"def {name}({parameters}):"), *map(indented, lines)])

    def main(self, name: str) -> str:
        parameters = [
            self.names[f"§{i}"]
            for i, v in enumerate(self.page.values)
            if v.source is not None and v.source[0] in ("argument", "seed", "saved")
        ]
        lines = [wrapped(f"def {name}({', '.join(parameters)}):")]
        places: list[str] = []
        for s in self.page.statements:
            if s.places and s.places != places:
                places = s.places
                told = places if len(places) <= MAX_PLACES else [*places[:2], "...", places[-1]]
                lines += [f"    # {text}" for text in grouped(told)]
                if calls_step(places):
                    lines += [f"    # {text}" for text in self.state.settings]
            lines.append(indented(self.statement(s)))
        results, grads = (
            f"[{', '.join(replaced(m, self.names) for m in marks)}]" for marks in (self.page.results, self.page.grads)
        )
        return "\n".join([*lines, indented(f"return {results}, {grads}")])

    def statement(self, s: Statement) -> str:
        outs = ", ".join(replaced(m, self.names) for m in s.outs)
        if s.arguments is None or self.is_inline(s):
            text = replaced((*s.lines, *s.returned)[0], self.names)
        else:
            given = ", ".join(replaced(m, self.names) for m in s.arguments)
            text = f"{self.known[canonical(s)]}({given})"
        return f"{outs} = {text}" if outs else text


def unused(name: str, taken: set[str]) -> str:
    """`name`, or `name` with a number if it is taken; takes the result."""
    given, number = name, 2
    while given in taken:
        given, number = f"{name}_{number}", number + 1
    taken.add(given)
    return given


def called(s: Statement) -> set[str]:
    """The functions that a statement calls; no value may have one of these names."""
    return {*re.findall(r"(?<!\.)\b([a-z]\w*)\(", "\n".join([*s.lines, *s.returned]))}


def canonical(s: Statement) -> str:
    """The text of a loop with values numbered by their first use: equal for equal loops."""
    numbers: dict[str, str] = {}
    text = "\n".join([", ".join(s.arguments or ()), *s.lines, ", ".join(s.returned)])
    return MARK.sub(lambda m: numbers.setdefault(m[0], f"§{len(numbers)}"), text)


def replaced(text: str, names: dict[str, str]) -> str:
    return MARK.sub(lambda m: names.get(m[0], f"value_{m[0][1:]}"), text)


def common(names: list[str]) -> str:
    """The words that all names end with: `grad` for fc1_weight_grad and fc2_bias_grad; `param` for names without a
    common word.
    """
    if len(set(names)) == 1:
        return names[0]
    words = [re.sub(r"_\d+$", "", n).split("_") for n in names]
    shared: list[str] = []
    for column in zip(*(reversed(w) for w in words)):
        if len({*column}) > 1:
            break
        shared.insert(0, column[0])
    return "_".join(shared) or "param"


def grouped(places: list[str]) -> list[str]:
    """The user's lines as comments, several on one line if they fit."""
    lines: list[str] = []
    file = ""
    for place in places:
        last, file = file, place.partition(":")[0]
        if lines and len(lines[-1]) + len(place) + 2 <= WIDTH - 6:
            lines[-1] += "; " + (place.removeprefix(file) if file == last else place)
        else:
            lines.append(place[: WIDTH - 6])
    return lines


def calls_step(places: list[str]) -> bool:
    return [call_of(p) for p in places] == ["step"]


def is_backward(place: str) -> bool:
    return bool(re.search(r"\.backward\(|\bgrad\(", place))


def statement_of(place: str) -> Any:
    """The syntax of the user's statement; None if the line is only a part of one."""
    text = place.partition(" ")[2]
    for whole in (text, text + "pass", text + " pass"):
        try:
            return ast.parse(textwrap.dedent(whole)).body[0]
        except (SyntaxError, IndexError):
            continue
    return None


def variables_of(place: str) -> list[str]:
    """The variables to which the user's statement assigns; for `return f(x)`, the name f."""
    found = statement_of(place)
    if isinstance(found, ast.Assign):
        target = found.targets[0]
    elif isinstance(found, (ast.AugAssign, ast.AnnAssign)):
        target = found.target
    elif isinstance(found, ast.Return):
        return [call_of(place)] if isinstance(found.value, ast.Call) else []
    else:
        match = re.match(r"(\w+) = ", place.partition(" ")[2])
        return [match[1]] if match else []
    if isinstance(target, ast.Tuple):
        return [t.id for t in target.elts if isinstance(t, ast.Name)]
    return [t for t in (getattr(target, "id", getattr(target, "attr", "")),) if t]


def call_of(place: str) -> str:
    """The name of the function that the user's statement calls last: `gelu` for
    `h = F.gelu(self.fc1(x))`."""
    value = getattr(statement_of(place), "value", None)
    for node in ast.walk(value) if value is not None else ():
        if isinstance(node, ast.Call):
            return getattr(node.func, "attr", getattr(node.func, "id", ""))
    return ""


def module_of(place: str) -> str:
    """The module that the user's statement calls: `fc2` for `return self.fc2(h)`; "" if it calls several."""
    value = getattr(statement_of(place), "value", None)
    calls = [n.func for n in ast.walk(value) if isinstance(n, ast.Call)] if value else []
    found = {
        f.attr for f in calls if isinstance(f, ast.Attribute) and isinstance(f.value, ast.Name) and f.value.id == "self"
    }
    return found.pop() if len(found) == 1 else ""


def identifier(text: str) -> str:
    name = re.sub(r"\W+", "_", text).strip("_") or "value"
    if keyword.iskeyword(name):
        return f"{name}_"
    return f"layer{name}" if name[0].isdigit() else name


def indented(text: str) -> str:
    return textwrap.indent(wrapped(text), "    ")


def wrapped(line: str) -> str:
    """A statement, wrapped inside brackets if it is long."""
    if len(line) <= WIDTH - 4:
        return line
    found = re.match(r"(return |(?:[\w, .\[\]]+) = )(.*)", line, re.S)
    if found:
        left, right = found[1], found[2]
        if len(left) > WIDTH // 2 and left.endswith(" = "):
            left = f"({left[:-3]}) = "
        line = left + (f"({right})" if " " in outside(right) else right)
    kept = iter(outside(line))
    line = "".join("\0" if c == " " and next(kept) == " " else c for c in line)
    lines = textwrap.wrap(line, WIDTH - 4, subsequent_indent=" " * 8, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines).replace("\0", " ")


def outside(line: str) -> str:
    """Each space of the line: " " outside of brackets, "_" inside; other characters are left out."""
    depth, spaces = 0, []
    for c in line:
        depth += (c in "([{") - (c in ")]}")
        if c == " ":
            spaces.append("_" if depth else " ")
    return "".join(spaces)
