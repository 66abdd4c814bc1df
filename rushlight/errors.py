"""Where in the user's program something happened, and errors that say so."""
from __future__ import annotations

import linecache
import os
import sys
import warnings
from collections.abc import Callable, Iterable
from functools import lru_cache, wraps
from types import CodeType, FrameType
from typing import Any, TypeVar

from rushlight.base.text import GENERATED

F = TypeVar("F", bound=Callable)

PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
OURS = (PACKAGE, "<frozen ", GENERATED)           # the package's files, Python's import, generated functions
DEMO = PACKAGE + "demo" + os.sep                                  # a program that uses the library, as the user's do


@lru_cache(maxsize=4096)                          # each frame between an op and the user's statement asks
def ours(file: str) -> bool:
    """Whether the code of a file is the library's, and so no user's statement."""
    return file.startswith(OURS) and not file.startswith(DEMO)


class LinAlgError(RuntimeError):
    """A x = b without an answer: a matrix is singular, or not positive-definite. torch.linalg.LinAlgError, a RuntimeError.

    >>> try:
    ...     rushlight.linalg.inv(rushlight.zeros(2, 2))
    ... except rushlight.linalg.LinAlgError:
    ...     print("singular")
    singular
    """


class Absent:
    """A class of torch's that programs may name: nothing is an instance of it, and to make one raises NotImplementedError.

    `because`: why, and the cure.
    """

    because = ""

    def __init__(self, *args: Any, **kwargs: Any):
        place = type(self).__module__.replace("rushlight", "torch", 1)
        raise NotImplementedError(f"{place}.{type(self).__name__} is not there: {self.because}")


class NoArray(NotImplementedError):
    """What an operand raises that is no array of NumPy's, when an op asks for it: a sparse tensor."""

    def instead(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """What the op of this name does with such operands; NotImplementedError if nothing."""
        raise self


def user_frame(depth: int = 1) -> FrameType | None:
    """The innermost frame that is not rushlight's own."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None and ours(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def line_of(code: CodeType, lasti: int) -> int:
    """The line number of the instruction at byte `lasti`; decoded only when somebody asks."""
    for start, end, line in code.co_lines():
        if start <= lasti < end and line is not None:
            return line
    return code.co_firstlineno


def place(code: CodeType, lasti: int) -> str:
    """`file.py:12: the statement's text`."""
    line = line_of(code, lasti)
    text = linecache.getline(code.co_filename, line).strip()
    return f"{code.co_filename}:{line}" + (f": {text}" if text else "")


def here() -> str:
    """The user's file, line and statement, as they stand now."""
    frame = user_frame(2)
    return place(frame.f_code, frame.f_lasti) if frame is not None else "<unknown>"


def explain(what: str, cure: str = "", **facts: object) -> str:
    """A message of one sentence, then a line for each fact, the user's statement and the cure."""
    lines = [what, *(f"  {name.replace('_', ' ')}: {fact}" for name, fact in facts.items() if fact is not None)]
    lines.append(f"  at: {here()}")
    if cure:
        lines.append(f"  cure: {cure}")
    return "\n".join(lines)


def placed(error: Exception) -> bool:
    """Give the user's line to an error that rushlight has raised without; False for errors that others have raised."""
    step, inside, line = error.__traceback__, False, None
    while step is not None:
        code = step.tb_frame.f_code
        inside = ours(code.co_filename)
        line = line if inside else place(code, step.tb_lasti)
        step = step.tb_next
    if inside and isinstance(error, (RuntimeError, ValueError, TypeError, IndexError, AssertionError)):
        text, _, cure = error.args[0].partition("; cure: ")
        error.args = (f"{text}\n  at: {line or here()}" + (f"\n  cure: {cure}" if cure else ""), *error.args[1:])
        return True
    return False


def meant(word: str, known: list[str]) -> str:
    """`; did you mean keepdim?`, for a word close to a known one."""
    from difflib import get_close_matches  # with what it loads, 3 ms that no program without errors should pay

    lower = {name.lower(): name for name in known}
    found = get_close_matches(word.lower(), [*lower], 1) or [
        name for name in lower if name == "".join(part[:1] for part in word.lower().split("_"))  # learning_rate: lr
        or (len(name) > 2 and word.lower().startswith(name)) or (len(word) > 2 and name.startswith(word.lower()))]
    return f"; did you mean {lower[found[0]]}?" if found else ""


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """A warning at the user's line, however deep inside rushlight it is given."""
    level, frame = 1, sys._getframe(0)
    while (frame := frame.f_back) is not None and ours(frame.f_code.co_filename):  # type: ignore
        level += 1
    warnings.warn(text, category, stacklevel=level + 1)


def overflowed(shape: tuple[int, ...]) -> RuntimeError:
    """torch's error for more elements than memory can have."""
    what = "Stride" if 0 in shape else "Storage size"
    return RuntimeError(explain(f"{what} calculation overflowed with sizes={list(shape)}"))


class NoCuda(RuntimeError, AssertionError):
    """There is only the CPU. torch's error is an AssertionError, that of other devices a RuntimeError."""


# -- assigned and missing gradients ------------------------------------------------------------------------------------

def check_assigned(shape: tuple, to: tuple, dtype: Any, of: Any) -> None:
    """RuntimeError if a gradient of this shape and dtype is none for a tensor of those."""
    if shape != to:
        raise RuntimeError(explain(f"attempting to assign a gradient of size '{list(shape)}' to a tensor of size "
                                   f"'{list(to)}'. Please ensure that the gradient and the tensor are the same size"))
    if dtype is not of:
        raise RuntimeError(explain(f"attempting to assign a gradient with dtype '{dtype}' to a tensor with grad_dtype "
                                   f"'{of}'. The gradient must match the tensor's grad_dtype", "convert the gradient first"))


def not_populated() -> None:
    """Warn that `.grad` of a tensor that is no leaf is None, whatever backward does."""
    warn("The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
         "populated during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, "
         "use .retain_grad() on the non-leaf Tensor.")


# -- misspelt keywords -----------------------------------------------------------------------------------------------

def unexpected(function: str, word: str, known: Iterable[str]) -> TypeError:
    """The error for a keyword that a function does not have: the nearest it has, and all."""
    names = [*known]
    cure = meant(word, names).removeprefix("; ")
    return TypeError(explain(f"{function}() got an unexpected keyword argument '{word}'", cure,
                             it_takes=", ".join(names) or "none"))


def keywords(function: Callable) -> tuple[str, ...] | None:
    """What a function takes by keyword; None if it takes any, or that cannot be seen."""
    code: CodeType | None = getattr(function, "__code__", None)
    if code is None or code.co_flags & 8:         # **kwargs
        return None
    return code.co_varnames[code.co_posonlyargcount:code.co_argcount + code.co_kwonlyargcount]


def suggesting(f: F, spellings: dict[str, str] | None = None, home: str | None = None, name: str = "") -> F:
    """The function, whose error for a keyword that it does not have names the nearest that it has.

    `spellings`: other names of keywords, as NumPy's axis for dim; `home`, `name`: where users find it. It costs
    a call about 70 ns; a function of fewer than two settings besides out=, where little can be misspelt, stays as it is.
    """
    known = keywords(f)
    settings = 0 if known is None else len(f.__defaults__ or ()) + len(f.__kwdefaults__ or ()) - ("out" in known)  # type: ignore
    if settings < 2 and not spellings:
        return f

    @wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            if spellings is not None:
                kwargs = {word if word in (known or ()) else spellings.get(word, word): v for word, v in kwargs.items()}
            if known is not None:
                for word in kwargs:
                    if word not in known:
                        raise unexpected(name or f.__name__, word, [n for n in known if n != "self"])
        try:
            return f(*args, **kwargs)
        except AttributeError as error:
            if hasattr(error, "instead"):         # of a tensor without elements (ops/meta.py)
                return error.instead(f, args, kwargs)
            check_given(f, args, kwargs, error)
            raise
    call.__module__ = home or f.__module__
    return call  # type: ignore[return-value]


def check_given(f: Callable, args: tuple, kwargs: dict, error: AttributeError) -> None:
    """TypeError if what lacks the attribute was given where a tensor should be: F.softmax(None, 0)."""
    named = zip(getattr(f, "__wrapped__", f).__code__.co_varnames, args)     # f may have come to ask for classes first
    for i, (name, value) in enumerate((*named, *kwargs.items())):
        if value is error.obj and f.__annotations__.get(name) == "Tensor":
            raise not_a_tensor(f.__name__, name, i, value) from error


def not_a_tensor(function: str, name: str, place: int, value: Any) -> TypeError:
    """torch's error for an argument that should be a tensor and is something else."""
    return TypeError(explain(f"{function}(): argument '{name}' (position {place + 1}) must be Tensor, "
                             f"not {type(value).__name__}",
                             "did a forward() return nothing?" if value is None else "make it a tensor: torch.tensor(...)"))


class Suggesting:
    """For classes that are made with many settings: `Linear(2, 3, biass=False)` is told of `bias`."""

    __slots__ = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            known = keywords(cls.__init__)
            for name in kwargs:
                if known is not None and name not in known:
                    raise unexpected(f"{cls.__name__}.__init__", name, known[1:])
        new = super().__new__
        return new(cls) if new is object.__new__ else new(cls, *args, **kwargs)


def describe(value: object) -> str:
    """A tensor by its dtype and shape, anything else by its repr, shortened."""
    array = getattr(value, "array", None)
    if array is not None:
        return f"{array.dtype.name}{tuple(array.shape)}"
    text = repr(value)
    return text if len(text) < 60 else text[:57] + "..."
