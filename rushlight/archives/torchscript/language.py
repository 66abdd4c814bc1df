"""TorchScript's operators on numbers, texts, lists and dicts, for calls without tensors.

Integers have 64 bits, lists and texts a largest length: a program of a file cannot fill the memory by them."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from typing import Any

import rushlight as torch
from rushlight.archives.budget import MAX_LENGTH, RUNNING, LimitExceeded
from rushlight.base.errors import warn
from rushlight.core.tensor import Tensor

from .values import Error

ERRORS = [
    "ValueError",
    "RuntimeError",
    "TypeError",
    "IndexError",
    "KeyError",
    "AssertionError",
    "NotImplementedError",
    "Exception",
]
NUMBERS = (int, float, complex)


def whole(n: Any) -> Any:
    """A result. LimitExceeded for an integer of more than 64 bits."""
    if isinstance(n, int) and not -(2**63) <= n < 2**63:
        raise LimitExceeded("an integer of the model has more than 64 bits")
    return n


def short(value: Any) -> Any:
    """A text or list, if it is not too long."""
    if len(value) > MAX_LENGTH:
        raise LimitExceeded(f"a list or text of the model has more than {MAX_LENGTH:,} elements")
    return value


def arithmetic(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """An operator on numbers. ATen's third argument multiplies the second."""

    def compute(a: Any, b: Any, alpha: Any = 1) -> Any:
        return whole(function(a, b * alpha if alpha != 1 else b))

    return compute


def add(a: Any, b: Any, alpha: Any = 1) -> Any:
    if isinstance(a, (str, list)):
        if len(a) + len(b) > MAX_LENGTH:
            raise LimitExceeded(f"a list or text of the model has more than {MAX_LENGTH:,} elements")
        return a + b
    return whole(a + b * alpha)


def mul(a: Any, b: Any) -> Any:
    for several, count in ((a, b), (b, a)):
        if isinstance(several, (str, list)):
            if len(several) * max(count, 0) > MAX_LENGTH:
                raise LimitExceeded(f"a list or text of the model has more than {MAX_LENGTH:,} elements")
            return several * count
    return whole(a * b)


def power(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int) and abs(a) > 1 and b > 64:
        raise LimitExceeded("an integer of the model has more than 64 bits")
    return whole(a**b)


def shifted(a: int, b: int) -> int:
    if not 0 <= b < 64:
        raise LimitExceeded("an integer of the model has more than 64 bits")
    return whole(a << b)


def div(a: Any, b: Any, rounding_mode: str | None = None) -> Any:
    if rounding_mode == "floor":
        return math.floor(a / b)
    return math.trunc(a / b) if rounding_mode == "trunc" else a / b


def formatted(text: str, *values: Any) -> str:
    """The text with the values in place of each {}."""
    parts = text.split("{}")
    found = [parts[0]]
    for value, part in zip(values, parts[1:]):
        found += [shown(value), part]
    return short("".join([*found, *["{}" + part for part in parts[len(values) + 1 :]]]))


def percent(text: str, *values: Any) -> str:
    """The text with the values in place of %s, %d, %i, %f, %g and %r."""
    left = [*(values[0] if len(values) == 1 and isinstance(values[0], tuple) else values)]

    def put(found: re.Match[str]) -> str:
        code = found[0]
        if code == "%%":
            return "%"
        value = left.pop(0)
        return shown(value) if code == "%s" else code % value

    return short(re.sub(r"%[sdifgr%]", put, text))


def shown(value: Any) -> str:
    """A value as text."""
    return (
        short(str(value)) if isinstance(value, (*NUMBERS, str, Tensor, list, tuple, dict, type(None))) else repr(value)
    )


def cut(value: Any, start: int | None = None, end: int | None = None, step: int = 1) -> Any:
    return value[slice(start, end, step)]


def append(items: list, value: Any) -> list:
    RUNNING.get().keep(value)
    items.append(value)
    return short(items)


def extend(items: list, more: list) -> None:
    for value in [*more]:
        append(items, value)


def put(items: Any, key: Any, value: Any) -> Any:
    RUNNING.get().keep(value)
    items[key] = value
    return short(items)


def listed(value: Any) -> list:
    return [*value]


def raises(message: str, kind: str = "builtins.Exception") -> None:
    """`raise` of a scripted program."""
    name = kind.rpartition(".")[2] if isinstance(kind, str) else "Exception"
    raise Error(f"{name if name in ERRORS else 'Exception'}: {message}")


def warned(text: Any, *rest: Any) -> None:
    warn(str(text))


def rounded_to_zero(a: int, b: int) -> int:
    return int(a / b) if b else a // b


def popped(items: Any, key: Any = None, *default: Any) -> Any:
    if isinstance(items, dict):
        return items.pop(key, *default)
    return items.pop(-1 if key is None else key)


def setdefault(items: dict, key: Any, value: Any) -> Any:
    return items[key] if key in items else put(items, key, value)[key]


def inserted(items: list, place: int, value: Any) -> None:
    RUNNING.get().keep(value)
    short(items).insert(place, value)


def joined(separator: str, parts: list[str]) -> str:
    if sum(map(len, parts)) + len(separator) * len(parts) > MAX_LENGTH:
        raise LimitExceeded(f"a list or text of the model has more than {MAX_LENGTH:,} elements")
    return separator.join(parts)


def replaced(text: str, old: str, new: str, count: int = -1) -> str:
    if text.count(old) * len(new) > MAX_LENGTH:
        raise LimitExceeded(f"a list or text of the model has more than {MAX_LENGTH:,} elements")
    return text.replace(old, new, count)


def sorted_list(items: list, reverse: bool = False) -> None:
    items.sort(reverse=reverse)


def updated(items: dict, more: dict) -> None:
    for key, value in more.items():
        put(items, key, value)


def grad_enabled(flag: bool) -> None:
    torch.set_grad_enabled(bool(flag))


def seeded(seed: int) -> None:
    torch.manual_seed(seed)


def method(name: str) -> Callable[..., Any]:
    """A method of Python's texts, lists and dicts that makes nothing long."""
    return lambda value, *args: getattr(value, name)(*args)


# name -> function; the names are ATen's, for calls without tensors
PLAIN: dict[str, Callable[..., Any]] = {
    "__not__": operator.not_, "__is__": operator.is_, "__isnot__": operator.is_not,
    "__contains__": lambda items, value: value in items, "__getitem__": lambda items, key: items[key],
    "__and__": operator.and_, "__or__": operator.or_, "__xor__": operator.xor, "__lshift__": shifted,
    "__rshift__": operator.rshift, "__invert__": operator.invert, "bitwise_not": operator.invert,
    "__range_length": lambda start, end, step: len(range(start, end, step)),
    "__derive_index": lambda i, start, step: start + i * step, "__round_to_zero_floordiv": rounded_to_zero,
    "_set_item": put, "Delete": operator.delitem,
    "add": add, "sub": arithmetic(operator.sub), "mul": mul, "div": div, "floordiv": operator.floordiv,
    "floor_divide": operator.floordiv, "remainder": operator.mod, "fmod": math.fmod, "pow": power, "neg": operator.neg,
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "gt": operator.gt, "le": operator.le, "ge": operator.ge,
    "and": lambda a, b: a and b, "or": lambda a, b: a or b, "not": operator.not_, "divmod": divmod,
    "floor": math.floor, "ceil": math.ceil, "round": round, "trunc": math.trunc, "abs": abs, "sqrt": math.sqrt,
    "exp": math.exp, "log": math.log, "log2": math.log2, "log10": math.log10, "log1p": math.log1p, "sin": math.sin,
    "cos": math.cos, "tan": math.tan, "asin": math.asin, "acos": math.acos, "atan": math.atan, "atan2": math.atan2,
    "sinh": math.sinh, "cosh": math.cosh, "tanh": math.tanh, "isnan": math.isnan, "isinf": math.isinf,
    "isfinite": math.isfinite, "copysign": math.copysign, "degrees": math.degrees, "radians": math.radians,
    "gcd": math.gcd,
    "Int": int, "Float": float, "Bool": bool, "Complex": complex, "str": shown, "IntImplicit": int,
    "FloatImplicit": float, "ScalarImplicit": lambda n: n, "max": max, "min": min, "sum": sum, "any": any, "all": all,
    "len": len, "append": append, "extend": extend, "insert": inserted, "pop": popped, "clear": method("clear"),
    "reverse": method("reverse"), "sort": sorted_list, "sorted": sorted, "copy": lambda items: items.copy(),
    "remove": method("remove"), "count": method("count"), "index": method("index"), "list": listed, "slice": cut,
    "keys": lambda d: [*d], "values": lambda d: [*d.values()], "items": lambda d: [*d.items()],
    "get": lambda d, key, default=None: d.get(key, default), "setdefault": setdefault, "update": updated,
    "dict": lambda pairs=(): dict(pairs), "select": lambda items, i: items[i], "size": len, "dim": len,
    "ord": ord, "chr": chr, "hex": hex, "oct": oct, "bin": bin, "format": formatted, "percentFormat": percent,
    "join": joined, "split": method("split"), "strip": method("strip"), "lstrip": method("lstrip"),
    "rstrip": method("rstrip"), "upper": method("upper"), "lower": method("lower"), "startswith": method("startswith"),
    "endswith": method("endswith"), "find": method("find"), "rfind": method("rfind"), "replace": replaced,
    "isdigit": method("isdigit"), "isalpha": method("isalpha"), "capitalize": method("capitalize"),
    "is_autocast_enabled": lambda: False, "is_autocast_cpu_enabled": lambda: False,
    "set_grad_enabled": grad_enabled, "manual_seed": seeded,
    "device": lambda name, *number: torch.device("cpu"), "get_default_dtype": lambda: torch.get_default_dtype(),
    "warn": warned,
}  # fmt: skip
# of any values, tensors among them
ANY: dict[str, Callable[..., Any]] = {
    "__is__": operator.is_, "__isnot__": operator.is_not, "append": append, "extend": extend, "insert": inserted,
    "_set_item": put, "setdefault": setdefault, "len": len, "list": listed, "format": formatted,
    "percentFormat": percent, "str": shown,
    "__not__": operator.not_, "warn": warned, "get": lambda d, key, default=None: d.get(key, default),
    "pop": popped, "__contains__": lambda items, value: any([value is x or value == x for x in items]),
}  # fmt: skip


def requires_grad(x: Tensor) -> bool:
    return x.requires_grad


# ops.prim: attributes of tensors, and what the language needs
PRIM: dict[str, Callable[..., Any]] = {
    "RaiseException": raises, "NumToTensor": lambda n: torch.tensor(n), "dtype": lambda x: x.dtype,
    "device": lambda x: torch.device("cpu"), "layout": lambda x: None, "requires_grad": requires_grad,
    "is_cuda": lambda x: False, "is_cpu": lambda x: True, "is_nested": lambda x: False, "is_sparse": lambda x: False,
    "is_quantized": lambda x: False, "is_mps": lambda x: False, "is_meta": lambda x: False, "is_xpu": lambda x: False,
    "is_mkldnn": lambda x: False, "is_leaf": lambda x: x.is_leaf, "data": lambda x: x.detach(), "type": lambda d: "cpu",
    "shape": lambda x: [*x.shape], "min": min, "max": max, "abs": abs, "unchecked_unwrap_optional": lambda x: x,
    "grad": lambda x: x.grad, "itemsize": lambda x: x._array.itemsize, "name": lambda x: None,
    "unchecked_cast": lambda x: x, "Print": lambda *values: None, "index": lambda d: None,
    "TupleIndex": lambda items, i: items[i], "rangelist": lambda n: [*short(range(n))],
}  # fmt: skip
