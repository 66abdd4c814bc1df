"""Error messages that name the user's statement, the facts and a hint; warnings at the user's line."""

from __future__ import annotations

import linecache
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from math import prod
from numbers import Integral, Number, Real
from types import CodeType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from rushlight.base.tracebacks import hide_frames, ours, user_frame

if TYPE_CHECKING:
    from typing_extensions import Self

F = TypeVar("F", bound=Callable)
MAX_TEXT = 200  # most characters of a statement in a message
IPYTHON_INPUT = r"<ipython-input-(\d+)-"  # the name of a cell before IPython 7.31
CO_VARARGS = 4  # flag of a function that takes *args
PYTHON = os.path.dirname(os.__file__) + os.sep
E = TypeVar("E", bound=BaseException)


class LinAlgError(RuntimeError):
    """A x = b has no solution: a matrix is singular, or not positive-definite. torch.linalg.LinAlgError, a
    RuntimeError.

    >>> try:
    ...     rushlight.linalg.inv(rushlight.zeros(2, 2))
    ... except rushlight.linalg.LinAlgError:
    ...     print("singular")
    singular
    """


LinAlgError.__module__ = "rushlight.linalg"  # the module under which users catch it
LinAlgError.__name__ = "_LinAlgError"  # torch's


class Absent:
    """The base of torch's classes that rushlight lacks: programs may refer to them, and no object is an instance of
    them.

    Calling such a class raises NotImplementedError with `because`: the reason and the hint.
    """

    because = ""

    def __init__(self, *args: Any, **kwargs: Any):
        place = type(self).__module__.replace("rushlight", "torch", 1)
        raise NotImplementedError(f"{place}.{type(self).__name__} is not supported: {self.because}")


class NoArray(NotImplementedError):
    """Raised when an op reads `._array` of a sparse tensor, which has none."""

    def instead(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """The result of the op `name` on such operands; raises NotImplementedError if the op does not support them."""
        raise self


class Touched(RuntimeError, AttributeError, TypeError):
    """A kernel was given a `Placeholder` (vmap, meta), which runs the op in another way. `what`: the NumPy function.
    The message is built lazily, since every op in vmap raises this error.
    """

    def __init__(self, text: str, batch: Any, what: str = ""):
        super().__init__(text)
        self.batch, self.what = batch, what

    def __str__(self) -> str:
        text = self.args[0]
        return text.format(what=self.what, shape=self.batch.shape) if self.what else text


def line_of(code: CodeType, lasti: int) -> int:
    """The line number of the instruction at byte `lasti` of `code`. Slow: called only when a place is shown."""
    for start, end, line in code.co_lines():
        if start <= lasti < end and line is not None:
            return line
    return code.co_firstlineno


def place(code: CodeType, lasti: int) -> str:
    """`file.py:12: the statement's text`; in a notebook `cell 2, line 12: the statement's text`."""
    line, cell = line_of(code, lasti), cell_of(code.co_filename)
    text = linecache.getline(code.co_filename, line).strip()
    text = text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "..."
    where = f"{code.co_filename}:{line}" if cell is None else f"cell {cell}, line {line}"
    return where + (f": {text}" if text else "")


def shared_place(where: str) -> str:
    """A place as a page or a picture shows it: `train.py:12: the statement`, without the folders of the author's disk.
    A file below the working directory keeps its path from there; a notebook's cell has its number.
    """
    drive, path = os.path.splitdrive(where)
    file, colon, text = path.partition(":")
    file = drive + file
    if not os.path.isabs(file):
        return where
    if cell := cell_of(file):
        return f"cell {cell}{colon}{text}"
    try:
        below = os.path.relpath(file)
    except ValueError:  # on another drive
        below = os.pardir
    shown = os.path.basename(file) if below.startswith(os.pardir) else below.replace(os.sep, "/")
    return shown + colon + text


def cell_of(file: str) -> str | None:
    """The number of the notebook's cell whose code has this `co_filename`, as in `In [2]`; None for other code."""
    if (ipython := sys.modules.get("IPython")) is None:
        return None
    if found := re.match(IPYTHON_INPUT, file):
        return found[1]
    shell = getattr(ipython, "get_ipython", lambda: None)()
    label = getattr(getattr(shell, "compile", None), "format_code_name", lambda file: None)(file)
    found = label and re.search(r"\d+", label[1])  # ("Cell", "In[2]")
    return found[0] if found else None


def here() -> str:
    """The file, line and statement that the user's program is running."""
    frame = found = user_frame(2)
    while found is not None and in_standard_library(found.f_code.co_filename):
        found = found.f_back
    frame = found or frame
    return place(frame.f_code, frame.f_lasti) if frame is not None else "<unknown>"


def statement() -> str:
    """The text of the statement that the user's program is running; "" if its file is gone."""
    frame = user_frame(2)
    while frame is not None and in_standard_library(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return ""
    return linecache.getline(frame.f_code.co_filename, line_of(frame.f_code, frame.f_lasti)).strip()


def in_standard_library(file: str) -> bool:
    """True if the file belongs to Python itself, such as copy.py, which calls `__deepcopy__`."""
    return file.startswith(PYTHON) and "site-packages" not in file


def explain(what: str, hint: str = "", **facts: object) -> str:
    """A message of one sentence, then a line for each fact, the user's statement and the hint."""
    lines = [what, *(f"  {name.replace('_', ' ')}: {fact}" for name, fact in facts.items() if fact is not None)]
    hide_frames()
    lines.append(f"  at: {here()}")
    if hint:
        lines.append(f"  hint: {hint}")
    return "\n".join(lines)


def runtime_error(what: str, hint: str = "", **facts: object) -> RuntimeError:
    """`raise runtime_error(what, hint, x=describe(x))`: the text is `explain`'s."""
    return RuntimeError(explain(what, hint, **facts))


def value_error(what: str, hint: str = "", **facts: object) -> ValueError:
    return ValueError(explain(what, hint, **facts))


def type_error(what: str, hint: str = "", **facts: object) -> TypeError:
    return TypeError(explain(what, hint, **facts))


def index_error(what: str, hint: str = "", **facts: object) -> IndexError:
    return IndexError(explain(what, hint, **facts))


def not_implemented_error(what: str, hint: str = "", **facts: object) -> NotImplementedError:
    return NotImplementedError(explain(what, hint, **facts))


def assertion_error(what: str, hint: str = "", **facts: object) -> AssertionError:
    return AssertionError(explain(what, hint, **facts))


def first_line(error: BaseException) -> str:
    """The first sentence of a library error, without its facts: for the message of another error."""
    return str(error).partition("\n  at: ")[0]


def located(error: Exception) -> bool:
    """True if the error's message has the user's line: from `explain`, or added here to an error that rushlight raised
    without a line. False if other code raised the error.
    """
    if not error.args or not isinstance(error.args[0], str):
        return False
    if "\n  at: " in error.args[0]:
        return True
    step, inside, line = error.__traceback__, False, None
    while step is not None:
        code = step.tb_frame.f_code
        inside = ours(code.co_filename)
        line = line if inside else place(code, step.tb_lasti)
        step = step.tb_next
    if inside and isinstance(error, (RuntimeError, ValueError, TypeError, IndexError, AssertionError)):
        text, _, hint = error.args[0].partition("; hint: ")
        error.args = (f"{text}\n  at: {line or here()}" + (f"\n  hint: {hint}" if hint else ""), *error.args[1:])
        return True
    return False


def meant(word: str, known: list[str]) -> str:
    """`; did you mean keepdim?` if `word` is close to a known word, else ''."""
    from difflib import get_close_matches  # slow to import, and only needed for errors

    lower = {name.lower(): name for name in known}
    found = get_close_matches(word.lower(), [*lower], 1) or [
        name
        for name in lower
        if name == "".join(part[:1] for part in word.lower().split("_"))  # learning_rate: lr
        or (len(name) > 2 and word.lower().startswith(name))
        or (len(word) > 2 and name.startswith(word.lower()))
    ]
    return f"; did you mean {lower[found[0]]}?" if found else ""


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the user's line, from any depth inside rushlight."""
    level, frame = 1, sys._getframe(0)
    while (frame := frame.f_back) is not None and ours(frame.f_code.co_filename):  # type: ignore
        level += 1
    warnings.warn(text, category, stacklevel=level + 1)


class Once:
    """The messages that `warn_once` has shown, and whether repeats are shown (set_warn_always)."""

    said: set[str] = set()
    always = False


def warn_once(text: str, key: str = "") -> None:
    """`warn`, but only the first time in this process, like torch's library for warnings that a loop would repeat.
    `key`: the same for messages of which one is enough.
    """
    if Once.always or (key or text) not in Once.said:
        Once.said.add(key or text)
        warn(text)


def overflowed(shape: tuple[int, ...]) -> RuntimeError:
    """torch's error for a shape whose number of elements exceeds the address space."""
    what = "Stride" if 0 in shape else "Storage size"
    return runtime_error(f"{what} calculation overflowed with sizes={list(shape)}")


def overflow(what: str, place: int = 0, **facts: Any) -> ValueError | TypeError:
    """torch's error for an integer of more than 64 bits: a TypeError for element `place` (from 1) of a list of sizes or
    dimensions; a ValueError for a single number (place 0).
    """
    words, hint = "Overflow when unpacking long long", "int64 holds -2**63 to 2**63 - 1"
    if not place:
        return value_error(words, hint, **facts)
    return type_error(f'{what} failed to unpack the object at pos {place} with error "{words}"', hint)


def out_of_memory(error: MemoryError) -> RuntimeError:
    """torch's error for a tensor that exceeds the memory, made from NumPy's MemoryError."""
    shape, dtype = getattr(error, "shape", ()), getattr(error, "dtype", None)
    size = "" if dtype is None else f": you tried to allocate {prod(shape) * dtype.itemsize} bytes"
    return runtime_error(
        f"DefaultCPUAllocator: can't allocate memory{size}",
        tensor=None if dtype is None else f"{dtype.name}{list(shape)}",
    )


def shown_as(cls: type[E], module: str, name: str) -> type[E]:
    """Show an exception class in tracebacks under its public name.

    When unpickled, the exception has the class of that name, and the same message.
    """
    cls.__module__, cls.__name__, cls.__qualname__ = module, name, name
    return cls


class NoCuda(RuntimeError, AssertionError):
    """Error for a device other than the CPU. torch raises AssertionError for CUDA, RuntimeError for other devices."""

    def __reduce__(self) -> tuple:
        return AssertionError, self.args


shown_as(NoCuda, "builtins", "AssertionError")
shown_as(Touched, "builtins", "RuntimeError")


# -- assigned and missing gradients ----------------------------------------------------------------


def check_assigned(shape: tuple, to: tuple, dtype: Any, of: Any) -> None:
    """RuntimeError if a gradient of `shape` and `dtype` cannot be `.grad` of a tensor of shape `to` and dtype `of`."""
    if shape != to:
        raise runtime_error(
            f"attempting to assign a gradient of size '{list(shape)}' to a tensor of size '{list(to)}'. Please "
            "ensure that the gradient and the tensor are the same size"
        )
    if dtype is not of:
        raise runtime_error(
            f"attempting to assign a gradient with dtype '{dtype}' to a tensor with grad_dtype '{of}'. The "
            "gradient must match the tensor's grad_dtype",
            "convert the gradient first",
        )


def not_populated(updated: bool) -> None:
    """Warn that backward does not set `.grad` of a non-leaf tensor. `updated`: the tensor is a leaf plus or minus
    something, such as w - 0.1 * w.grad.
    """
    warn(
        "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
        "populated during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf "
        "Tensor, use .retain_grad() on the non-leaf Tensor."
        + "\n  hint: for w = w - lr * w.grad, which makes a new tensor, write `with torch.no_grad(): w -= lr * w.grad`"
        * updated
    )


# -- misspelt keywords -----------------------------------------------------------------------------


def unexpected(function: str, word: str, known: Iterable[str]) -> TypeError:
    """The TypeError for a keyword that `function` does not accept; it names the nearest known keyword, and all public
    ones.
    """
    names = [name for name in known if not name.startswith("_")]  # not torch's own `_stacklevel`
    hint = meant(word, names).removeprefix("; ")
    return type_error(
        f"{function}() got an unexpected keyword argument '{word}'", hint, it_takes=", ".join(names) or "none"
    )


def keywords(function: Callable) -> tuple[str, ...] | None:
    """The names that a function accepts as keywords; None if it has **kwargs, or no code object."""
    code: CodeType | None = getattr(function, "__code__", None)
    if code is None or code.co_flags & 8:  # CO_VARKEYWORDS: **kwargs
        return None
    return code.co_varnames[code.co_posonlyargcount : code.co_argcount + code.co_kwonlyargcount]


def suggesting(
    f: F, spellings: dict[str, str] | None = None, home: str | None = None, name: str = "", always: bool = False
) -> F:
    """Wrap `f`: an unknown keyword raises an error with the nearest known one.

    `spellings`: {alias: keyword}, such as {"axis": "dim"} for NumPy's name. `home`, `name`: the module and name under
    which users find the function. If a call fails, the error names an argument of the wrong type (`check_kinds`). The
    wrapper makes a call 0.1 us slower, so a function with fewer than two optional arguments besides `out=` is returned
    as it is, unless `always`.
    """
    known = keywords(f)
    settings = 0 if known is None else len(f.__defaults__ or ()) + len(f.__kwdefaults__ or ()) - ("out" in known)
    wrapped = getattr(f, "suggests", False)  # a composite under another name
    if settings < 2 and not spellings and (wrapped or not always):
        return f

    @wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            kwargs = spelled(kwargs, known, spellings, name or f.__name__)
        try:
            return f(*args, **kwargs)
        except CAUSES as error:
            # raised by a meta tensor, which has no elements (ops/meta/meta_tensors.py)
            if hasattr(error, "instead") and isinstance(error, AttributeError):
                return error.instead(f, args, kwargs)
            if isinstance(error, NoArray):
                return error.instead(f.__name__, *args, **kwargs)
            check_call(f, args, kwargs, error)
            raise

    call.suggests = True  # type: ignore[attr-defined]
    call.__module__ = home or f.__module__
    return call  # type: ignore[return-value]


def spelled(kwargs: dict, known: tuple[str, ...] | None, spellings: dict[str, str] | None, function: str) -> dict:
    """The keyword arguments under the function's own parameter names. TypeError for an unknown one."""
    if known is not None and all([word in known for word in kwargs]):
        return kwargs
    if spellings is not None:
        kwargs = {word if word in (known or ()) else spellings.get(word, word): v for word, v in kwargs.items()}
    if known is not None:
        for word in kwargs:
            if word not in known:
                raise unexpected(function, word, [n for n in known if n != "self"])
    return kwargs


# The errors that a call raises because of its arguments.
CAUSES = (MemoryError, AttributeError, TypeError, ValueError, IndexError, RuntimeError)


def lacks(error: Exception, given: Iterable[Any]) -> bool:
    """True if an argument lacks the attribute whose lookup failed in the library."""
    return isinstance(error, AttributeError) and error.name is not None and any([error.obj is value for value in given])


def check_call(f: Callable, args: tuple, kwargs: dict, error: Exception) -> None:
    """Raise an error in terms of the user's call to replace `error`, which `f` raised.

    Returns if `error` needs no replacement.
    """
    if isinstance(error, MemoryError):
        raise out_of_memory(error) from None
    if isinstance(error, (Touched, NoArray)):  # raised by vmap and sparse tensors: the op runs in another way
        return
    if isinstance(error, TypeError) and "\n  at: " in str(error):
        return
    check_given(f, args, kwargs)
    trace = error.__traceback__
    if isinstance(error, TypeError) and trace is not None and trace.tb_next is None:
        raise type_error(str(error)) from None  # f was not entered: too many arguments
    given = (*args, *kwargs.values())
    if of_kinds(error) or lacks(error, given):
        raise invalid_combination(f.__name__, args, kwargs) from None
    if of_internals(error):
        raise unfit(f.__name__, args, kwargs, error) from None


def check_given(f: Callable, args: tuple, kwargs: dict) -> None:
    """TypeError if an argument of a failed call does not have its parameter's annotated type: F.softmax(None, 0)."""
    # f may be wrapped by the gate for __torch_function__
    f = getattr(f, "__wrapped__", f)
    code: CodeType | None = getattr(f, "__code__", None)
    if code is not None:
        names = code.co_varnames[: code.co_argcount]
        if code.co_flags & CO_VARARGS and len(args) > len(names):
            more = code.co_varnames[code.co_argcount + code.co_kwonlyargcount]
            names += (more,) * (len(args) - len(names))
        named = [*zip(names, args), *kwargs.items()]
        check_kinds(f.__name__, [(name, f.__annotations__.get(name), v) for name, v in named])


def not_a_tensor(function: str, name: str, place: int, value: Any) -> TypeError:
    """torch's TypeError for an argument that must be a tensor; `place` counts from 0."""
    return type_error(
        f"{function}(): argument '{name}' (position {place + 1}) must be Tensor, not {type(value).__name__}",
        "did a forward() return nothing?"
        if value is None
        else "unpack it first: out, state = lstm(x), or value[0]"
        if isinstance(value, tuple)
        else f"make it a tensor: torch.tensor({value!r})"
        if isinstance(value, (bool, int, float, complex))
        else ""
        if isinstance(value, (str, bytes)) or callable(value)
        else "join the list first: torch.stack([...]), or torch.cat([...]) along rows"
        if isinstance(value, list) and value and all(map(is_tensor, value))
        else "make it a tensor: torch.tensor(...)",
    )


# Parts of Python's messages for a value of the wrong type.
OF_KINDS = (  # compiled on the first error, to keep the import fast
    "not supported between|unsupported operand|must be real number|cannot be interpreted|is not iterable|has no "
    "len|could not convert string|invalid literal|values to unpack|truth value of an array|bad operand type|not "
    "subscriptable|unhashable"
)


def of_kinds(error: Exception) -> bool:
    """True if Python raised the error in the library's code, about a value of the wrong type."""
    return (
        isinstance(error, (TypeError, ValueError))
        and re.search(OF_KINDS, str(error)) is not None
        and raised_inside(error)
    )


# Beginnings and parts of Python's and NumPy's messages for values that do not fit; these messages mention nothing that
# the user has written.
OF_INTERNALS = (
    "^(tuple|list) index out of range|^axis |out of bounds for (axis|array)|broadcast|cannot reshape "
    "array|remapping|core dimension|zero-size array|not enough values to unpack|too many values to unpack|larger than "
    "input array|setting an array element|can't contain negative|cannot convert float|too deep for|ufunc|Cannot "
    "cast|must be a string|division by zero|math domain|not all arguments converted|multiply sequence|negative "
    "dimensions|inhomogeneous|is not callable"
)


def of_internals(error: Exception) -> bool:
    """True if NumPy or Python raised the error in the library's code, with their own message."""
    text = str(error)
    return (
        "\n  at: " not in text
        and isinstance(error, (IndexError, ValueError, TypeError, ArithmeticError))
        and re.search(OF_INTERNALS, text) is not None
        and raised_inside(error)
    )


def raised_inside(error: Exception) -> bool:
    """True if the error was raised by the library's code, or by NumPy called from it."""
    step, inside = error.__traceback__, False
    while step is not None:
        file = step.tb_frame.f_code.co_filename
        inside = ours(file) or (inside and file.startswith(NUMPY))
        step = step.tb_next
    return inside


NUMPY = os.path.dirname(np.__file__) + os.sep


def unfit(function: str, args: tuple, kwargs: dict, error: Exception) -> Exception:
    """An error for arguments that do not fit, in terms of the user's call."""
    got = ", ".join([describe(value) for value in (*args, *kwargs.values())])
    axis, ndim = getattr(error, "axis", None), getattr(error, "ndim", None)
    if axis is not None and ndim is not None:  # NumPy's AxisError
        return index_error(
            f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {axis})",
            op=function,
            got=got,
        )
    kind = IndexError if isinstance(error, IndexError) else RuntimeError
    return kind(explain(f"{function}(): the shapes or dimensions of the arguments do not fit", got=got))


def invalid_combination(function: str, args: tuple, kwargs: dict) -> TypeError:
    """torch's TypeError for arguments that match no overload of a function."""
    kinds = [type(value).__name__ for value in args]
    kinds += [f"{name}={type(value).__name__}" for name, value in kwargs.items()]
    return type_error(
        f"{function}() received an invalid combination of arguments - got ({', '.join(kinds)})",
        got=", ".join([describe(value) for value in (*args, *kwargs.values())]),
    )


# -- arguments of the wrong type -------------------------------------------------------------------


def is_tensor(value: Any) -> bool:
    """True if a value is a Tensor, a class of a higher layer; reads no attribute of the value."""
    return hasattr(type(value), "_array")


def is_one(value: Any, kinds: tuple[type, ...]) -> bool:
    """True if a value is a number of one of these kinds, or a tensor with a single element."""
    if is_tensor(value):
        return value.numel() == 1
    return isinstance(value, kinds) and not isinstance(value, bool)


def is_list(value: Any, fits: Callable[[Any], bool]) -> bool:
    return isinstance(value, (tuple, list)) and all(map(fits, value))


def is_int(value: Any) -> bool:
    return is_one(value, (Integral,))


# An annotation of a parameter -> the test for its values.
KINDS: dict[str, Callable[[Any], bool]] = {
    "Tensor": is_tensor,
    "int": is_int,
    "float": lambda value: isinstance(value, bool) or is_one(value, (Real,)),
    "Number": lambda value: isinstance(value, bool) or is_one(value, (Number,)),
    "bool": lambda value: isinstance(value, (bool, np.bool_)),
    "str": lambda value: isinstance(value, str),
    "None": lambda value: value is None,
    "ndarray": lambda value: isinstance(value, (np.ndarray, np.generic)),
    "Sequence[int]": lambda value: is_list(value, is_int),
    "Sequence[Tensor]": lambda value: is_list(value, is_tensor) or is_tensor(value),
}
WORDS = {"Sequence[int]": "tuple of ints", "Sequence[Tensor]": "tuple of Tensors"}


def check_kinds(function: str, arguments: Iterable[tuple[str, Any, Any]]) -> None:
    """TypeError for the first of the arguments (name, annotation, value) whose value does not match the annotation; an
    annotation that KINDS lacks matches every value.
    """
    for place, (name, annotation, value) in enumerate(arguments):
        kinds = annotation.split(" | ") if isinstance(annotation, str) else [""]
        if all([kind in KINDS and not KINDS[kind](value) for kind in kinds]):
            if kinds[0] == "Tensor":
                raise not_a_tensor(function, name, place, value) from None
            if kinds[0] == "Sequence[Tensor]" and isinstance(value, (tuple, list)):
                raise not_tensors(place, value) from None
            several = "Sequence[int]" in kinds and isinstance(value, (tuple, list))
            kind = "Sequence[int]" if several else kinds[0]
            found = f"not {type(value).__name__}"
            if several:
                i, item = next((i, item) for i, item in enumerate(value) if not is_int(item))
                found = f"but found element of type {type(item).__name__} at pos {i}"
            raise type_error(
                f"{function}(): argument '{name}' (position {place + 1}) must be {WORDS.get(kind, kind)}, {found}",
                got=describe(value),
            ) from None


def not_tensors(place: int, values: Sequence[Any]) -> TypeError:
    """torch's TypeError for a list of tensors that contains another object."""
    i, value = next((i, value) for i, value in enumerate(values) if not is_tensor(value))
    return type_error(f"expected Tensor as element {i} in argument {place}, but got {type(value).__name__}")


class Suggesting:
    """A base class whose constructor suggests the nearest known keyword: `Linear(2, 3, biass=False)` -> `bias`."""

    __slots__ = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        if kwargs:
            known = keywords(cls.__init__)
            for name in kwargs:
                if known is not None and name not in known:
                    raise unexpected(f"{cls.__name__}.__init__", name, known[1:])
        new = super().__new__
        return new(cls) if new is object.__new__ else new(cls, *args, **kwargs)


def describe(value: object) -> str:
    """`float32[2, 3]` for a tensor; for other values the repr, cut to 60 characters."""
    array = getattr(value, "_array", None)
    if array is not None:
        return f"{array.dtype.name}{list(array.shape)}"
    text = repr(value)
    return text if len(text) < 60 else text[:57] + "..."


def out_of_range(dim: int, n: int, **facts: Any) -> IndexError | ValueError | TypeError:
    """torch's error for a dimension `dim` of a tensor of `n` dimensions."""
    if not -(2**63) <= dim < 2**63:
        return overflow("dim", **facts)
    return index_error(
        f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})",
        f"dimensions are 0 to {n - 1}, or -1 to {-n}" if n > 1 else "the only dimension is 0",
        **facts,
    )
