"""Errors of an op in terms of the user's call: the op's name, its inputs, and torch's messages in place of NumPy's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray

from rushlight.base import dtypes
from rushlight.base.errors import (
    LinAlgError,
    Touched,
    check_kinds,
    describe,
    explain,
    index_error,
    not_a_tensor,
    not_implemented_error,
    of_internals,
    out_of_memory,
    out_of_range,
    overflow,
    runtime_error,
    type_error,
    unfit,
)
from rushlight.core.mode import mode
from rushlight.core.table import PUBLIC, Op
from rushlight.core.tensor import Tensor
from rushlight.core.worlds import TENSORS

MASKED = (
    "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use "
    "the `~` or `logical_not()` operator instead."
)

# torch's messages for unsupported dtypes that do not mention a kernel.
NOT_TAKEN = {
    "neg": "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use "
    "the `~` or `logical_not()` operator instead.",
    "sub": "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` "
    "operator instead.",
    "mean": "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: "
    "{dtype}",
}


UNFIT = "shapes do not broadcast"


class Failed(NamedTuple):
    """A call of an op that failed in its kernel. `text`: the kernel's message; `facts`: what the new message adds."""

    op: Op
    args: Sequence[Any]
    error: Any
    text: str
    facts: dict[str, Any]

    @property
    def tensors(self) -> list[Tensor]:
        return [a for a in self.args if isinstance(a, Tensor)]

    @property
    def kind(self) -> type:
        return RuntimeError if isinstance(self.error, Touched) else type(self.error)

    @property
    def parts(self) -> list[str]:
        """The message and the hint: a kernel's message may end in `; hint: ...`."""
        what, _, hint = self.text.partition("; hint: ")
        return [what, hint]


def failure(op: Op, args: Sequence[Any], error: Exception) -> Exception:
    """A kernel's error in terms of the user's call."""
    if (watch := mode().watch) is not None:
        watch.on_error(op, args, error)
    if isinstance(error, MemoryError):
        return out_of_memory(error)
    if (overflowing := too_large(op, args, str(error))) is not None:
        return overflowing
    if isinstance(error, AttributeError):
        check_tensors(op, args, missed=error.obj is None)
    if not isinstance(error, NotImplementedError):
        check_settings(op, args)
    call = Failed(op, args, error, str(error), {"op": op.called, "inputs": described(op, args)})
    found = (rule(call) for types, part, rule in RULES if isinstance(error, types) and part in call.text)
    return next((translated for translated in found if translated is not None), error)


def with_facts(call: Failed) -> Exception:
    """An error that was explained by code that does not know the op: the facts are added."""
    what, _, rest = call.text.partition("\n")
    if "\n  op: " in call.text:
        return call.error
    return call.kind("\n".join((what, *(f"  {name}: {value}" for name, value in call.facts.items()), rest)))


def of_axis(call: Failed) -> Exception | None:
    return None if call.error.axis is None else out_of_range(call.error.axis, call.error.ndim or 1, **call.facts)


def of_value(call: Failed) -> Exception:
    said = call.text.replace("value array", "value tensor").replace("could not", "cannot")
    return runtime_error(said, **call.facts)


def of_shapes(call: Failed) -> Exception:
    hint = "make the sizes equal or 1, aligned at the last dimension: reshape() or unsqueeze()"
    return runtime_error(mismatch(call.tensors), transposed(call.tensors) or hint, **call.facts)


def of_binder(call: Failed) -> Exception | None:
    """The error for an unknown keyword, or for too many arguments."""
    return type_error(call.text, **call.facts) if call.text.startswith(f"{call.op.called}() ") else None


def of_dtype(call: Failed) -> Exception | None:
    """The error for a dtype that the kernel does not support. torch checks the shapes first."""
    op, tensors = call.op, call.tensors
    if not any([part in call.text for part in ("ufunc", "not supported", "not implemented")]):
        return None
    if op.elementwise and (found := mismatch(tensors)) != UNFIT:
        return runtime_error(found, **call.facts)
    if not isinstance(call.error, TypeError):
        return None
    return not_implemented_error(unsupported(op, tensors), unfit_dtype(op, tensors), **call.facts)


def of_index(call: Failed) -> Exception:
    what, hint = call.parts
    if what.endswith("index out of range"):  # Python's error for a size that is missing
        first = next((t for t in flattened(call.args) if isinstance(t, Tensor)), None)
        n = 1 if first is None else first._array.ndim or 1
        return beyond(n, call.args[len(call.op.inputs) :], call.facts)
    said = index_words(what.replace("for axis", "for dimension"), call.args)
    return index_error(said, hint or index_hint(said, call.args), **call.facts)


def of_method(call: Failed) -> Exception | None:
    """x.exp() in the formula of a user's op, whose names mean functions of arrays."""
    name = getattr(call.error, "name", "")
    if "own" not in call.op.options or name not in TENSORS:
        return None
    return type_error(
        f"{call.op.called}: the formula calls the method {name}()", f"write {name}(x), not x.{name}()", **call.facts
    )


def internal(call: Failed) -> Exception | None:
    return unfit(call.op.called, tuple(call.args), {}, call.error) if of_internals(call.error) else None


def named(call: Failed) -> Exception:
    what, hint = call.parts
    return runtime_error(f"{call.op.called}(): {what}", hint, **call.facts)


def explained(call: Failed) -> Exception | None:
    """The kernel's error itself, if its message is torch's already."""
    own = type(call.error) in (RuntimeError, NotImplementedError, LinAlgError)
    return call.kind(explain(*call.parts, **call.facts)) if own else None


# (types of the error, a part of the message, the rule); a rule that returns None leaves the error to the next rule
RULES: tuple[tuple[Any, str, Callable[[Failed], Exception | None]], ...] = (
    (Exception, "\n  at: ", with_facts),
    (np.exceptions.AxisError, "", of_axis),
    (ValueError, "shape mismatch: value array", of_value),
    (ValueError, "broadcast", of_shapes),
    (TypeError, "() ", of_binder),
    (AttributeError, "has no attribute", of_method),
    ((TypeError, NotImplementedError), "", of_dtype),
    (TypeError, "as an integer", lambda call: type_error(f"{call.op.called}(): {call.text}", **call.facts)),  # dim=1.5
    (IndexError, "", of_index),
    (Exception, "", internal),
    ((ValueError, TypeError), "", named),
    (Exception, "", explained),
)


def beyond(n: int, settings: Sequence[Any], facts: dict) -> Exception:
    """The error for the first setting that is not a dimension of a tensor with `n` dimensions."""
    dims = [d for d in flattened(settings) if type(d) is int and not -n <= d < n]
    if dims:
        return out_of_range(dims[0], n, **facts)
    return index_error("the dimensions of the arguments do not fit", **facts)


def not_taken(op: Op, args: Sequence[Any], dtype: dtypes.dtype) -> RuntimeError:
    """The error for tensors of a dtype that the op does not support; torch checks their shapes first."""
    check_settings(op, args)
    tensors = [a for a in args if isinstance(a, Tensor)]
    facts = {"op": op.called, "inputs": described(op, args)}
    if op.elementwise and (found := mismatch(tensors)) != UNFIT:
        return runtime_error(found, **facts)
    hint = unfit_dtype(op, tensors)
    if op.name in NOT_TAKEN:
        said = NOT_TAKEN[op.name].format(dtype=dtype.scalar_type)
        return runtime_error(said, hint if op.name == "mean" else "", **facts)
    return not_implemented_error(unsupported(op, [dtype]), hint, **facts)


def unsupported(op: Op, given: Sequence[Any]) -> str:
    """torch's message for an op without a kernel for these dtypes. `given`: dtypes or tensors."""
    found = [x.dtype if isinstance(x, Tensor) else x for x in given]
    kinds = ", ".join(dict.fromkeys(f"'{d.scalar_type}'" for d in found))
    return f'"{op.called}" not implemented for {kinds}'


# Settings whose type in torch is Scalar: any number.
SCALARS = {"value", "alpha", "beta", "p", "ord", "weight", "correction", "min", "max", "maxnorm"}


def too_large(op: Op, args: Sequence[Any], text: str) -> Exception | None:
    """torch's error for the first integer of more than 64 bits among the arguments and their lists, or for a dimension
    of more than 32 bits that NumPy refused. None if all fit."""
    names = op.inputs + op.settings
    if "fit into a C int" in text or "greater than maximum" in text:
        for dim in flattened(args[len(op.inputs) :]):
            if isinstance(dim, int) and abs(dim) >= 2**31:
                ndim = args[0]._array.ndim if isinstance(args[0], Tensor) else 0
                return out_of_range(dim, ndim or 1, op=op.called)
    for i, value in enumerate(args):
        name = names[min(i, len(names) - 1)]
        several = name == op.options.get("variadic") or isinstance(value, (tuple, list))
        for place, n in enumerate(flattened([value]), 1):
            if not isinstance(n, int) or -(2**63) <= n < 2**63:
                continue
            facts = {"op": op.called, "argument": name}
            if name in op.inputs or name in SCALARS:
                return OverflowError(explain(*TOO_LARGE[n < 0], **facts))
            listed = several and name != "key"
            return overflow(f"{op.called}(): argument '{name}'", place * listed, **facts)
    return None


# Python's messages for an integer above the range of 64 bits, and for one below.
TOO_LARGE = (("int too big to convert", "use a float"), ("can't convert negative int to unsigned",))


def unfit_dtype(op: Op, tensors: Sequence[Tensor]) -> str:
    """The hint for an op that is not defined for the dtype of its tensors."""
    if op.name.startswith("bitwise_"):
        return "take integers or bools: x.long(), or compare first, as in x > 0"
    return hint_of_kinds("".join(t._array.dtype.kind for t in tensors), op.takes)


def hint_of_kinds(kinds: str, takes: str) -> str:
    """The hint for tensors of the kinds `kinds` if the op supports the kinds `takes` (NumPy's letters)."""
    if "c" in kinds:
        return "take the parts: x.real and x.imag, or the size x.abs()"
    if "f" in kinds or "V" in kinds:
        return "convert with .to(dtype)"
    return f"convert it first: {'x.float()' if 'f' in takes else 'x.long()'}"


def index_words(what: str, args: Sequence[Any]) -> str:
    """NumPy's message for an invalid index, in torch's words."""
    x = args[0]._array if args and isinstance(args[0], Tensor) else np.empty(0)
    if what.startswith("too many indices"):
        key = args[1] if not x.ndim and len(args) > 1 else None
        if isinstance(key, tuple) and len(key) == 2 and key[1] is ...:  # an index into a 0-d tensor, x[0]
            if isinstance(key[0], slice):
                return "slice() cannot be applied to a 0-dim tensor."
            return (
                "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to "
                "convert a 0-dim tensor to a number"
            )
        return f"too many indices for tensor of dimension {x.ndim}"
    if what.startswith("boolean index did not match"):
        axis, _, wrong = (int(part) for part in "".join(c if c.isdigit() else " " for c in what).split())
        for part in flattened(args[1:]):
            mask = part._array if isinstance(part, Tensor) else part
            if isinstance(mask, ndarray) and mask.dtype.kind == "b" and wrong in mask.shape:
                return (
                    f"The shape of the mask {list(mask.shape)} at index {mask.shape.index(wrong)} does not match the "
                    f"shape of the indexed tensor {list(x.shape)} at index {axis}"
                )
    return what


def index_hint(what: str, args: Sequence[Any]) -> str:
    """The hint for an invalid index."""
    x = args[0]._array if args and isinstance(args[0], Tensor) else None
    words = what.split()
    if " out of bounds for dimension " in what and words[-1].isdigit():
        n = int(words[-1])
        return f"indices are 0 to {n - 1}, or -1 to {-n}" if n else "the dimension has no elements: check len(x) first"
    if x is None:
        return ""
    if what.startswith("invalid index of a 0-dim"):
        return "the tensor is one number: x.item()"
    if what.startswith("too many indices"):
        return f"the shape is {x.shape}: use at most {x.ndim} indices"
    mask = what.startswith("The shape of the mask")
    return f"the mask must have the tensor's shape, {x.shape}, or the shape of its first dimensions" if mask else ""


def flattened(args: Sequence[Any]) -> list[Any]:
    """The arguments, with tuples and lists flattened."""
    return [one for a in args for one in (flattened(a) if isinstance(a, (tuple, list)) else [a])]


# Settings of convolutions and pooling: one number for all dimensions.
PER_DIMENSION = {"kernel_size", "stride", "padding", "dilation", "output_padding"}


def described(op: Op, args: Sequence[Any]) -> str:
    """`input=float32[2, 3] dim=1`: the arguments by their public names, without None and the settings that have their
    default."""
    public = {**PUBLIC, **op.options.get("names", {})}
    names, args = op.inputs + op.settings, gathered(op, args)
    return " ".join(
        f"{public.get(name, name)}={argument(name, value)}"
        for name, value in zip(names, args)
        if value is not None and not (name in op.settings and value is op.defaults.get(name, ...))
    )


def gathered(op: Op, args: Sequence[Any]) -> Sequence[Any]:
    """The arguments, where x.permute(2, 0, 1) with unbound dimensions becomes x.permute((2, 0, 1))."""
    if (several := op.options.get("variadic")) and len(args) > len(op.inputs):
        i = (op.inputs + op.settings).index(several)
        if not isinstance(args[i], (tuple, list)):
            return (*args[:i], tuple(args[i:]))
    return args


def argument(name: str, value: Any) -> str:
    """An argument as text, without its name."""
    if isinstance(value, (tuple, list)):
        if name == "key":  # the key of x[key]
            parts = [argument("", part) for part in value if part is not ...]
            return f"[{', '.join(parts)}]"
        if name in PER_DIMENSION and len(set(value)) == 1:
            return repr(value[0])
        if any(isinstance(part, Tensor) for part in value):
            return f"[{', '.join(describe(part) for part in value)}]"
    return describe(value)


def mismatch(tensors: Sequence[Tensor]) -> str:
    """torch's sentence for the first pair of shapes that do not broadcast."""
    for i, a in enumerate(tensors):
        for b in tensors[i + 1 :]:
            for k in range(1, 1 + min(a._array.ndim, b._array.ndim)):
                m, n = a._array.shape[-k], b._array.shape[-k]
                if m != n and 1 not in (m, n):
                    return (
                        f"The size of tensor a ({m}) must match the size of tensor b ({n}) at non-singleton "
                        f"dimension {max(a._array.ndim, b._array.ndim) - k}"
                    )
    return UNFIT


def transposed(tensors: Sequence[Tensor]) -> str:
    """A hint for two tensors if one of them fits when transposed; "" for other tensors."""
    if len(tensors) != 2 or min(t._array.ndim for t in tensors) < 2:
        return ""
    shapes = [t._array.shape for t in tensors]
    for i in (1, 0):
        own, other = shapes[i], shapes[1 - i]
        turned = (*own[:-2], own[-1], own[-2])
        try:
            np.broadcast_shapes(turned, other)
        except ValueError:
            continue
        way = ".T" if len(own) == 2 else ".mT"
        return f"transpose the {('first', 'second')[i]} tensor ({way}): {turned} fits {other}"
    return ""


def check_tensors(op: Op, values: Sequence[Any], missed: bool = False) -> None:
    """TypeError if one of the op's inputs should be a tensor but is not.

    `missed`: the value was None, so the input was not left out. The first input is never left out.
    """
    for i, (name, value) in enumerate(zip(op.inputs, values)):
        for part in value if name == "tensors" and isinstance(value, (tuple, list)) else (value,):
            if not isinstance(part, Tensor) and (part is not None or missed or i == 0):
                raise not_a_tensor(op.called, {**PUBLIC, **op.options.get("names", {})}.get(name, name), i, part)


LISTS = ("dims", "shape", "new_order")
INTEGERS = "dim dim0 dim1 start_dim end_dim new_dim k n start length index offset diagonal"


def kind_of(op: Op, name: str) -> str:
    """The type of one of the op's settings, as an annotation."""
    default = op.defaults.get(name)
    if name in LISTS or name == "dim" and op.family.__name__ == "reduction":
        kind = "int | Sequence[int]"
    elif name in INTEGERS.split():
        kind = "int"
    elif isinstance(default, bool):
        kind = "bool"
    elif isinstance(default, (int, float)):
        kind = "Number"
    else:
        return "Any"
    return f"{kind} | None" if name in op.defaults and default is None else kind


def check_settings(op: Op, args: Sequence[Any]) -> None:
    """TypeError for a setting of the wrong type: a dimension that is a string."""
    names, args = op.inputs + op.settings, gathered(op, args)
    if "order" in op.options or len(args) > len(names):
        return  # the arguments may not be in the order of the entry yet
    public = {**PUBLIC, **op.options.get("names", {})}
    kinds = ["Any"] * len(op.inputs) + [kind_of(op, name) for name in op.settings]
    check_kinds(op.called, zip([public.get(name, name) for name in names], kinds, args))


def misplaced_number(op: Op, operands: Sequence[Any], allowed: Sequence[str]) -> TypeError:
    """The error for a Python number as an input that must be a tensor.

    `allowed`: the inputs that may be numbers."""
    if not allowed:
        check_tensors(op, operands)
    got = ", ".join(type(value).__name__ for value in operands)
    forms = " or ".join(
        f"({', '.join('Number' if n in numbers else 'Tensor' for n in op.inputs)})"
        for numbers in ([], *([name] for name in allowed))
    )
    return type_error(
        f"{op.called}() received an invalid combination of arguments - got ({got}), but expected one of: {forms}",
        f"make the number a tensor: torch.tensor({operands[0]!r})",
    )


def dtypes_differ(op: Op, tensors: Sequence[Tensor | None]) -> RuntimeError:
    """The error for tensors that should have one dtype."""
    found = {t._array.dtype for t in tensors if t is not None}
    names = " and ".join(sorted(dtypes.of(d).scalar_type for d in found))
    strict = op.options.get("strict")
    what = strict if isinstance(strict, str) else f"{op.called}(): expected inputs to have the same dtype"
    return runtime_error(
        f"{what}, but got {names}",
        "convert float64 (NumPy's default) to float32: x.float()"
        if {d.str[1:] for d in found} == {"f4", "f8"}
        else "convert the integers to floating point: x.float()"
        if {d.kind for d in found} in ({"f", "i"}, {"f", "u"}, {"f", "b"})
        else "convert one with .to(dtype)",
        inputs=described(op, tensors),
    )
