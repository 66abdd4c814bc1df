"""An op in the user's own file: `rushlight.op` makes an entry of the table from a formula and its derivatives.

The op table stores the op with a key that no op of the package has: user_log_cosh, then user_log_cosh_2 for the next op
with this name. So two files can use the same name; messages contain only the name. A name in the formula is looked up
in the user's file first: an op becomes its key in the table, a function becomes a helper of rules (`shared`), and a
number stays with the formula (`numbers`, core/table.py). All other names come from core/worlds.py.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Iterable, Iterator
from dis import get_instructions
from inspect import CO_VARARGS, CO_VARKEYWORDS
from threading import Lock
from types import CodeType, FrameType, FunctionType
from typing import Any

from rushlight.base.errors import describe, explain, meant, type_error
from rushlight.base.lazy import next_part
from rushlight.base.public_function import private
from rushlight.base.tracebacks import user_frame
from rushlight.core import build
from rushlight.core.families import FACTS
from rushlight.core.table import OPTIONS, OWN_NAMES, Op, node_name, parameters
from rushlight.core.tensor import Tensor
from rushlight.core.worlds import ARRAYS, TENSORS, shared

FAMILIES = {
    "floating": build.floating,
    "elementwise": build.op,
    "real_valued": build.real_valued,
    "predicate": build.predicate,
    "reduction": build.reduction,
    "averaging": build.averaging,
    "general": build.general,
    "floating_general": build.floating_general,
}
RESERVED = OPTIONS.keys() | {"name", "family", "vmap", "doc", "out"}
NUMBERS = (int, float, complex, bool, type(None), type(math))  # math.pi
HINT = "names in a formula are ops (exp, sum, where), and the ops, numbers and functions of your file"

MISSING = object()

defining = Lock()
helpers: dict[FunctionType, str] = {}  # functions of users' files -> their keys among the helpers of rules


def op(
    formula: Callable, /, *, name: str = "", family: str = "floating", vmap: Any = None, doc: str = "", **rules: Any
) -> Callable[..., Tensor]:
    """out = formula(inputs, settings), with a rule for the gradient of each input.

    Parameters before the slash are tensors, the others are settings. A rule has the input's name. Its first parameter
    is the gradient of out; its other parameters name the values that the rule needs: an input, a setting, `out`,
    `x_shape`, `x_dtype`. The function has derivatives of any order, and works with vmap, jvp, jacrev and compile.

    `name`: by default, the name of the variable to which the function is assigned. `family`: how arguments are passed,
    and the dtype of the result; "floating" is for elementwise functions. `vmap`: a word, or a function (info, in_dims,
    *args) -> (result, out_dim), for an op of the family "general". `kernel=f`: f computes the op on NumPy arrays in
    place of the formula. docs/add-an-op.md describes all options.

    TypeError for a wrong rule or parameter, NameError for an unknown name in the formula.

    >>> log_cosh = rushlight.op(lambda x, /: log(cosh(x)), x=lambda g, x: g * tanh(x))
    >>> x = rushlight.tensor([0.0, 1.0], requires_grad=True)
    >>> log_cosh(x)
    tensor([0.0000, 0.4338], grad_fn=<LogCoshBackward0>)
    >>> log_cosh(x).sum().backward()
    >>> x.grad
    tensor([0.0000, 0.7616])
    """
    name = name or name_of(formula) or assigned(user_frame(1))
    check_form(name, formula, family, rules)
    options = {word: rules.pop(word) for word in rules.keys() & OPTIONS.keys()}
    if "kernel" in options:
        options.setdefault("fused", False)  # the formula equals the kernel, except for roundings
    if vmap is not None:
        options["batched"] = vmap
    if FAMILIES[family] not in (build.reduction, build.averaging):
        options["names"] = {word: word for word in parameters(formula)}
    options |= {"own": True, "called": name, "node": node_name(name)}
    options |= dict.fromkeys(("method", "function", "inplace"), False)
    rules = {word: resolved(rule, name) for word, rule in rules.items() if rule is not None}
    made = FAMILIES[family](resolved(formula, name), doc=doc, **options, **rules)
    check_rules(made)
    with defining:
        key = free(name)
        namespace: dict[str, Any] = {key: made}
        build.build(namespace)
    call = namespace[key]
    call.__name__ = call.__qualname__ = name
    call.__module__ = formula.__module__
    return call


def free(name: str) -> str:
    """A new key for this name: with a number if another op has it."""
    key, n = f"user_{name}", 1
    while key in OWN_NAMES:
        n += 1
        key = f"user_{name}_{n}"
    OWN_NAMES[key] = name
    return key


# -- the name --------------------------------------------------------------------------------------


def name_of(formula: Callable) -> str:
    """The name of a function; "" for a lambda."""
    name = getattr(formula, "__name__", "")
    return name if name.isidentifier() else ""


def assigned(frame: FrameType | None) -> str:
    """The variable to which the frame's current statement assigns the result of the call. TypeError if there is
    none."""
    if frame is not None:
        steps = [step for step in get_instructions(frame.f_code) if step.offset > frame.f_lasti]
        after = next((step for step in steps if step.opname != "CACHE"), None)
        if after is not None and after.opname.startswith("STORE_") and isinstance(after.argval, str):
            return after.argval
    raise type_error("op(): the op has no name", 'assign it, log_cosh = rushlight.op(...), or pass name="log_cosh"')


# -- checks ----------------------------------------------------------------------------------------


def check_form(name: str, formula: Any, family: str, rules: dict[str, Any]) -> None:
    """TypeError unless the formula and the rules are Python functions with the parameters of the family."""
    if not name.isidentifier():
        raise type_error(f"op(): the name must be an identifier, not {name!r}")
    if family not in FAMILIES:
        raise type_error(
            f"op(): there is no family {family!r}{meant(str(family), [*FAMILIES])}", families=", ".join(FAMILIES)
        )
    if not isinstance(formula, FunctionType) or irregular(formula.__code__):
        raise type_error(
            f"{name}: the formula must be a function with named, positional parameters, not {describe(formula)}",
            "write lambda x, /: log(cosh(x))",
        )
    inputs = parameters(formula)[: formula.__code__.co_posonlyargcount]
    if not inputs:
        shown = ", ".join(parameters(formula)) or "x"
        raise type_error(f"{name}: the formula has no input", f"put a slash after the tensors: lambda {shown}, /: ...")
    for word in inputs:
        if word in RESERVED:
            raise type_error(f"{name}: an input cannot be called '{word}', which is an option of op()", "rename it")
    for word, rule in rules.items():
        if word not in inputs and word not in OPTIONS:
            what = f"{name}: '{word}' is no input and no option{meant(word, [*inputs])}"
            raise type_error(what, "a rule has the name of its input: x=lambda g, x: ...", inputs=", ".join(inputs))
        if word in inputs and rule is not None and not is_rule(rule):
            what = f"{name}: the rule of '{word}' must be a function that uses the gradient, its first parameter"
            hint = f"{word}=lambda g, {word}: ...; for a gradient of zero: {word}=lambda g: g * 0"
            raise type_error(what, hint, got=describe(rule))
    if family in ("reduction", "averaging") and parameters(formula) != ("x", "dim", "keepdim"):
        raise type_error(
            f"{name}: a reduction has the parameters x, dim and keepdim, not {', '.join(parameters(formula))}",
            "write lambda x, /, dim=None, keepdim=False: ...",
        )


def is_rule(rule: Any) -> bool:
    """Whether a rule is a function that uses its first parameter."""
    if not isinstance(rule, FunctionType) or not parameters(rule):
        return False
    used = [step.argval for step in get_instructions(rule.__code__) if step.opname.startswith("LOAD_")]
    g = parameters(rule)[0]
    return any([g in value if isinstance(value, tuple) else g == value for value in used])


def irregular(code: CodeType) -> bool:
    """Whether a function has *args, **kwargs, or parameters after a star."""
    return bool(code.co_kwonlyargcount or code.co_flags & (CO_VARARGS | CO_VARKEYWORDS))


def check_rules(made: Op) -> None:
    """TypeError for a parameter of a rule that is not an input, setting, output, shape or dtype."""
    if made.family is build.families.reduction:
        known = {"x", "out", *FACTS}
    else:
        outputs = made.options.get("outputs", "out").split()
        facts = [f"{name}_{fact}" for name in made.inputs for fact in ("shape", "dtype")]
        known = {*made.inputs, *made.settings, *outputs, *facts}
    for name, asked in zip(made.inputs, made.rule_arguments):
        for word in asked:
            if word not in known:
                what = f"{made.called}: the rule of '{name}' takes '{word}', which is no input, setting or output"
                raise type_error(what, meant(word, sorted(known)).removeprefix("; "), it_may_take=listed(known))


def listed(words: Iterable[str]) -> str:
    return ", ".join(sorted(words))


# -- names in formulas -----------------------------------------------------------------------------


def resolved(function: Callable, name: str) -> FunctionType:
    """The function with the names of the user's file replaced by names of the table. NameError for an unknown
    name."""
    keys, numbers = {}, {}
    for word in global_names(function.__code__):
        value = private(function.__globals__.get(word, MISSING))
        if isinstance(getattr(value, "op", None), Op):
            keys[word] = value.op.name
        elif isinstance(value, FunctionType) and not value.__module__.startswith("rushlight."):
            keys[word] = helper(value, name)
        elif isinstance(value, NUMBERS) and (not isinstance(value, type(math)) or value is math):
            numbers[word] = value
        elif not known(word):
            raise unknown(word, value, name)
    check_closure(function, name)
    code = renamed(function.__code__, keys)
    made = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    made.__module__ = function.__module__
    if numbers:
        made.numbers = numbers  # type: ignore[attr-defined]
    return made


def global_names(code: CodeType) -> Iterator[str]:
    """The global names that a function reads, once each."""
    found = {step.argval: None for step in get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            found |= dict.fromkeys(global_names(inner))
    return iter(found)


def known(word: str) -> bool:
    """Whether a name is an op on arrays and on tensors, or a builtin. Loads parts of the package until the name is
    found.
    """
    while not (word in ARRAYS and word in TENSORS):
        if not next_part():
            return hasattr(builtins, word)
    return True


def unknown(word: str, value: Any, name: str) -> Exception:
    """The error for a name that is not an op, with the most similar name of an op."""
    if value is MISSING:
        near = meant(word, [known for known in ARRAYS.keys() & TENSORS.keys() if not known.startswith("_")])
        return NameError(explain(f"{name}: the formula names '{word}', which is not an op{near}", HINT))
    hint = HINT
    if isinstance(value, type(math)):
        hint = f"write log(x), not {word}.log(x): {HINT}"
    elif isinstance(value, Tensor):
        hint = f"make it an input: lambda x, {word}, /: ..."
    return type_error(f"{name}: the formula names '{word}', which is {describe(value)}", hint)


def check_closure(function: Callable, name: str) -> None:
    """TypeError for a local variable of an outer function, unless it is a number."""
    for word, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        value = cell.cell_contents
        if not isinstance(value, (*NUMBERS, str, tuple)):
            raise type_error(
                f"{name}: the formula names the local variable '{word}', which is {describe(value)}",
                f"define '{word}' outside of functions; only numbers may be local variables",
            )


def helper(function: FunctionType, name: str) -> str:
    """The key of a function of the user's file among the helpers of rules."""
    if function not in helpers:
        with defining:
            key = helpers[function] = free(function.__name__)
        made = resolved(function, name)  # the function may call itself
        made.__name__ = key
        shared(made, own=True)
    return helpers[function]


def renamed(code: CodeType, keys: dict[str, str]) -> CodeType:
    """The code with other names for its globals."""
    if not keys:
        return code
    inner = [renamed(c, keys) if isinstance(c, CodeType) else c for c in code.co_consts]
    return code.replace(co_names=tuple([keys.get(name, name) for name in code.co_names]), co_consts=tuple(inner))
