"""Compiled loops as Python functions: machine code reads addresses, sizes and numbers from Python's objects.

The function `entry(self, args, n)` of a loop's module is a method of CPython's fast calling convention (METH_FASTCALL).
It compares the types of the arguments with those for which the loop was compiled, releases the interpreter's lock, and
calls the loop. For other types it calls the function `entry_miss`: the entry for the types that were compiled before,
or at last `self`, a Python object that compiles the loop for the new types. A call takes about 0.1 microseconds.

`supported()` tests where this interpreter and NumPy keep sizes and numbers; elsewhere, loops are called by ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from rushlight.loops.llvm import (
    BOOL,
    BYTE,
    DOUBLE,
    FLOAT,
    INT32,
    INT64,
    POINTER,
    REALS,
    UINT64,
    Function,
    Module,
    Type,
    Value,
    binding,
    converted,
    host,
)
from rushlight.loops.loop_kinds import ERROR, ERRORS, KINDS, Kind, flat_arguments

HEAD = object.__basicsize__  # bytes of a Python object before its own fields: its type is the last word
WORD = 8
# places in an array object, in bytes: address, number of dimensions, sizes, steps, dtype, flags
DATA, DIMENSIONS, SIZES, STEPS, DTYPE, FLAGS = (HEAD + n for n in (0, 8, 16, 24, 40, 48))
ORDER, NUMBER = HEAD + 10, HEAD + 12  # in a dtype: the character of the byte order, the number of the type
ITEMS = HEAD + WORD  # in a tuple: the elements, behind their number
CONTIGUOUS, ALIGNED = 0x1, 0x100  # flags of an array
FASTCALL = 0x80
CALLS = {  # name of a function of CPython -> its result
    "PyLong_AsLongLong": INT64, "PyErr_Occurred": POINTER, "PyEval_SaveThread": POINTER, "PyEval_RestoreThread": None,
    "PyObject_Call": POINTER, "PyTuple_New": POINTER, "PyTuple_SetItem": INT32, "Py_DecRef": None,
    "PyLong_FromLongLong": POINTER, "PyFloat_FromDouble": POINTER,
    "PyBool_FromLong": POINTER, "Py_IncRef": None, "PyLong_FromUnsignedLongLong": POINTER, "PyErr_SetNone": None,
}  # fmt: skip
OBJECTS = {
    "ndarray": np.ndarray, "int": int, "int64": np.int64, "float": float, "float64": np.float64,
    "float32": np.float32, "tuple": tuple, "True": True, "False": False, "None": None,
    **{e.__name__: e for e in ERRORS},
    **{name: np.dtype(name).type for name in ("i1", "i2", "i4", "u1", "u2", "u4", "u8")},
}  # fmt: skip


def word(address: int, kind: Any = ctypes.c_int64) -> Any:
    return kind.from_address(address).value


@cache
def supported() -> bool:
    """Whether the fields of objects lie where they are expected, and CPython has the functions in CALLS."""
    if ctypes.sizeof(ctypes.c_void_p) != WORD or not all(hasattr(ctypes.pythonapi, name) for name in CALLS):
        return False
    a, other, whole = np.zeros((3, 5), np.float32)[:, ::2], np.dtype(">f4"), np.int64(-3)
    at = id(a)
    array = (
        word(at + DATA) == a.ctypes.data
        and word(at + DIMENSIONS, ctypes.c_int32) == 2
        and [word(word(at + SIZES) + 8 * d) for d in (0, 1)] == [3, 3]
        and [word(word(at + STEPS) + 8 * d) for d in (0, 1)] == [20, 8]
        and word(at + DTYPE) == id(a.dtype)
        and word(at + FLAGS, ctypes.c_int32) & (CONTIGUOUS | ALIGNED) == ALIGNED
        and word(id(a.dtype) + NUMBER, ctypes.c_int32) == a.dtype.num
        and word(id(other) + ORDER, ctypes.c_char) == b">"
    )
    pair, small = (7, 2.5), np.float32(2.5)
    return (
        array
        and word(id(pair) + HEAD - WORD) == id(tuple)
        and word(id(pair) + HEAD) == 2
        and word(id(pair) + ITEMS + WORD) == id(pair[1])
        and ctypes.c_double.from_address(id(pair[1]) + HEAD).value == 2.5
        and ctypes.c_float.from_address(id(small) + HEAD).value == 2.5
        and word(id(whole) + HEAD) == -3
    )


@cache
def link() -> None:
    """Tell LLVM the addresses of CPython's functions and objects."""
    llvm = binding()
    for name in CALLS:
        llvm.add_symbol(name, ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value)
    for name, thing in OBJECTS.items():
        llvm.add_symbol(f"python_{name}", id(thing))


class Entry(Function):
    """The function `entry`. Without LLVM's optimization, which takes a third of a loop's time to compile, a call takes
    as long."""

    def __init__(self, module: Module, name: str):
        super().__init__(module, name, "self args n", "n")

    def text(self) -> str:
        return (
            super().text().replace("define void", "define ptr", 1).replace(" nounwind", " nounwind noinline optnone", 1)
        )

    def python(self, name: str) -> Value:
        """The address of a Python object."""
        line = f"@python_{name} = external global i8"
        if line not in self.module.globals:
            self.module.globals.append(line)
        return Value(self, f"@python_{name}", POINTER)

    def same(self, a: Value, b: Value) -> Value:
        return self.put(f"icmp eq ptr {a.v}, {b.v}", BOOL)

    def need(self, condition: Value) -> None:
        """Go to the label `miss` unless the condition is true."""
        after = self.label()
        self.branch(condition, after, "miss")
        self.begin(after)

    def field(self, thing: Value, offset: int, kind: Type = POINTER) -> Value:
        return self.load(self.at(thing, offset, BYTE), 0, kind)

    def has_class(self, thing: Value, name: str) -> Value:
        return self.same(self.field(thing, HEAD - WORD), self.python(name))

    def argument(self, thing: Value, kind: Kind) -> list[Value]:
        """The numbers of a Python object; goes to `miss` if the object is of another kind."""
        if isinstance(kind, str):
            return [self.scalar(thing, kind)]
        if kind[0] == "tuple":
            self.need(self.has_class(thing, "tuple"))
            self.need(self.field(thing, HEAD, INT64) == len(kind) - 1)
            items = [self.field(thing, ITEMS + WORD * k) for k in range(len(kind) - 1)]
            return [n for item, one in zip(items, kind[1:]) for n in self.argument(item, one)]
        return self.array(thing, *kind)

    def array(self, thing: Value, name: str, dimensions: int, contiguous: bool) -> list[Value]:
        self.need(self.has_class(thing, "ndarray"))
        dtype, flags = self.field(thing, DTYPE), self.field(thing, FLAGS, INT32)
        right = (self.field(thing, DIMENSIONS, INT32) == dimensions) & (
            self.field(dtype, NUMBER, INT32) == np.dtype(name).num
        )
        right = right & (self.field(dtype, ORDER, BYTE) != ord(">"))
        right = right & ((flags & (CONTIGUOUS | ALIGNED)) == (CONTIGUOUS * contiguous | ALIGNED))
        self.need(right)
        found = [self.field(thing, DATA)]
        for offset in (SIZES,) if contiguous else (SIZES, STEPS):
            table = self.field(thing, offset)
            found += [self.load(table, d, INT64) for d in range(dimensions)]
        return found

    def scalar(self, thing: Value, name: str) -> Value:
        if name == "i8":
            return self.integer(thing)
        if name == "f8":
            self.need(self.has_class(thing, "float") | self.has_class(thing, "float64"))
            return self.field(thing, HEAD, DOUBLE)
        if name == "f4":
            self.need(self.has_class(thing, "float32"))
            return self.field(thing, HEAD, FLOAT)
        if name == "b1":
            yes = self.same(thing, self.python("True"))
            self.need(yes | self.same(thing, self.python("False")))
            return yes
        self.need(self.has_class(thing, name))
        return self.field(thing, HEAD, KINDS[name])

    def integer(self, thing: Value) -> Value:
        """An int, or NumPy's int64."""
        slot = self.room(1, INT64)
        python, other, after = self.label(), self.label(), self.label()
        self.branch(self.has_class(thing, "int"), python, other)
        self.begin(python)
        n = self.foreign("PyLong_AsLongLong", INT64, [thing])
        wrong = self.label()
        self.store(n, slot, 0)
        self.branch(n == -1, wrong, after)
        self.begin(wrong)
        error = self.foreign("PyErr_Occurred", POINTER, [])
        self.branch(self.put(f"icmp eq ptr {error.v}, null", BOOL), after, "error")
        self.begin(other)
        self.need(self.has_class(thing, "int64"))
        self.store(self.field(thing, HEAD, INT64), slot, 0)
        self.jump(after)
        self.begin(after)
        return self.load(slot, 0, INT64)

    def call_self(self) -> None:
        """Return the result of `self(*args)`."""
        args, n = self.args["args"], self.args["n"]
        given = self.foreign("PyTuple_New", POINTER, [n])

        def put(k: Value) -> None:
            item = self.load(args, k, POINTER)
            self.foreign("Py_IncRef", None, [item])
            self.foreign("PyTuple_SetItem", INT32, [given, k, item])

        self.loop(0, n, 1, put)
        result = self.foreign("PyObject_Call", POINTER, [self.args["self"], given, Value(self, "null", POINTER)])
        self.foreign("Py_DecRef", None, [given])
        self.lines.append(f"ret ptr {result.v}")

    def boxed(self, x: Value | None) -> Value:
        """A result as a Python object."""
        if x is None:
            none = self.python("None")
            self.foreign("Py_IncRef", None, [none])
            return none
        if x.kind == BOOL:
            return self.foreign("PyBool_FromLong", POINTER, [converted(x, INT64)])
        if x.kind in REALS:
            return self.foreign("PyFloat_FromDouble", POINTER, [converted(x, DOUBLE)])
        if x.kind.unsigned:
            return self.foreign("PyLong_FromUnsignedLongLong", POINTER, [converted(x, UINT64)])
        return self.foreign("PyLong_FromLongLong", POINTER, [converted(x, INT64)])

    def check(self, code: Value) -> None:
        """Raise the error of a loop's result, if there is one."""
        for k, error in enumerate(ERRORS, 1):
            raised, after = self.label(), self.label()
            self.branch(code == k, raised, after)
            self.begin(raised)
            self.foreign("PyErr_SetNone", None, [self.python(error.__name__)])
            self.jump("error")
            self.begin(after)


def write_entry(module: Module, name: str, symbol: str, kinds: Sequence[Kind], result: Type | None) -> None:
    """Add the function `name` to the module: a call of the function `symbol` from Python."""
    f = Entry(module, name)
    args, n = f.args["args"], f.args["n"]
    f.need(n == len(kinds))
    things = [f.load(args, k, POINTER) for k in range(len(kinds))]
    flat = [number for thing, kind in zip(things, kinds) for number in f.argument(thing, kind)]
    state = f.foreign("PyEval_SaveThread", POINTER, [])
    given = ", ".join([f"{x.type} {x.v}" for x in flat])
    if result is None:
        f.lines.append(f"call void @{symbol}({given})")
        made = None
    else:
        made = f.put(f"call {result.name} @{symbol}({given})", result)
    f.foreign("PyEval_RestoreThread", None, [state])
    if made is not None and result == ERROR:
        f.check(made)
        made = None
    f.lines.append(f"ret ptr {f.boxed(made).v}")
    f.begin("miss")
    other = f.foreign(f"{name}_miss", POINTER, [f.args["self"], args, n])
    f.lines.append(f"ret ptr {other.v}")
    f.begin("error")
    f.lines.append("ret ptr null")


class MethodDef(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (("name", ctypes.c_char_p), ("code", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p))


@cache
def trampoline() -> tuple[Any, int]:
    """(LLVM's engine, the address of a method that calls its `self`)."""
    link()
    module = Module(host())
    f = Entry(module, "trampoline")
    f.call_self()
    engine = module.compiled()
    return engine, engine.get_function_address("trampoline")


def python_function(loop: Any) -> tuple[Callable, MethodDef]:
    """A function of Python that calls `loop`, and its definition: to set `code` makes the function call an entry."""
    definition = MethodDef(b"loop", trampoline()[1], FASTCALL, None)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    return make(ctypes.addressof(definition), loop, None), definition


def c_function(address: int, kinds: Sequence[Kind], result: Type | None) -> Callable:
    """The loop at an address, called by ctypes."""
    given = [ctypes_of(kind) for _, kind in flat_arguments(kinds)]
    function = ctypes.CFUNCTYPE(None if result is None else ctypes_of(result), *given)(address)

    def call(*args: Any) -> Any:
        made = function(*[n for a in args for n in numbers_of(a)])
        if result != ERROR:
            return made
        if made:
            raise ERRORS[made - 1]
        return None

    return call


def ctypes_of(kind: Type) -> Any:
    named = {POINTER: ctypes.c_void_p, FLOAT: ctypes.c_float, DOUBLE: ctypes.c_double, BOOL: ctypes.c_bool}
    return named.get(kind) or getattr(ctypes, f"c_{'u' * kind.unsigned}int{8 * kind.bytes}")


def numbers_of(value: Any) -> list[Any]:
    """The numbers that pass an argument."""
    if isinstance(value, tuple):
        return [n for v in value for n in numbers_of(v)]
    if isinstance(value, np.ndarray):
        return [value.ctypes.data, *value.shape, *(() if value.flags.c_contiguous else value.strides)]
    return [value.item() if isinstance(value, np.generic) else value]


def signature(args: Sequence[Any]) -> tuple:
    """The kinds of arguments. TypeError for arguments that no loop takes."""
    return tuple(map(kind_of, args))


def kind_of(value: Any) -> Kind:
    if isinstance(value, tuple):
        return ("tuple", *map(kind_of, value))
    if isinstance(value, np.ndarray):
        name = f"{value.dtype.kind}{value.dtype.itemsize}"
        if name in KINDS and value.dtype.isnative and value.flags.aligned:
            return name, value.ndim, value.flags.c_contiguous
    elif isinstance(value, np.generic):
        if (name := f"{value.dtype.kind}{value.dtype.itemsize}") in KINDS:
            return name
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise OverflowError(f"{value} is too large for a loop's int64")
    elif isinstance(value, (bool, int, float)):
        return "b1" if isinstance(value, bool) else "i8" if isinstance(value, int) else "f8"
    raise TypeError(f"a loop takes no {type(value).__name__} {getattr(value, 'dtype', value)}")
