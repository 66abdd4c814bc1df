"""`loaded`: a TorchScript archive as a module.

An archive has the modules and their tensors as a pickle (data.pkl), the constants of the code (constants.pkl), and the
code, in a language with Python's syntax (code/__torch__/**.py). All code is parsed and checked when the archive is
loaded."""

from __future__ import annotations

import ast
import pickle
from functools import partial
from typing import Any

from rushlight.archives.records import Opened, Records
from rushlight.serialization import check_location, checked_id
from rushlight.serialization.rebuild import storage_on

from .code import Refused, Scope, function, literal
from .module import ScriptModule
from .syntax import MAX_CODE, dotted, parsed
from .unpickle import ScriptUnpickler
from .values import Instance, Object, ScriptClass

MAX_DEPTH = 50  # modules inside each other
MAX_ALL_CODE = 2**24  # bytes of all code of an archive
LISTS = {"__parameters__": "parameters", "__buffers__": "buffers"}
KINDS = {"Module": "Module", "NamedTuple": "NamedTuple", "Interface": "Interface", "ModuleInterface": "Interface"}


class ScriptRecords(Records):
    """The records of a TorchScript archive."""

    needed = ("data.pkl", "constants.pkl")
    kind = "a TorchScript archive"


class Archive:
    """An open archive: classes and functions by name, constants, memory."""

    def __init__(self, records: Records):
        self.records = records
        self.globals: dict[str, Any] = {}
        self.texts: dict[str, str] = {}  # module of the code -> its text
        self.storages: dict[str, Any] = {}
        self.constants: tuple = ()

    def read(self) -> ScriptModule:
        """The module of the archive."""
        self._read_code()
        found = self._unpickled("constants.pkl", "constants")
        self.constants = found if isinstance(found, tuple) else (found,)
        top = self._unpickled("data.pkl", "data")
        if not isinstance(top, Instance):
            raise self.records.damaged("it holds no module")
        made = self.built(top, ())
        if not isinstance(made, ScriptModule):
            raise self.records.damaged("it holds no module")
        return made

    # -- code ------------------------------------------------------------------------------------------

    def _read_code(self) -> None:
        left = MAX_ALL_CODE
        for record in self.records.infos:
            if not record.startswith("code/") or not record.endswith(".py"):
                continue
            text = self.records.text(record, min(MAX_CODE, left))
            left -= len(text)
            module = record[len("code/") : -len(".py")].replace("/", ".")
            try:
                self._define(module, text, record)
            except (Refused, RecursionError) as error:
                raise self.records.damaged(f"its code is not allowed: {error}") from None

    def _define(self, module: str, text: str, record: str) -> None:
        """Enter the classes and functions of a text."""
        scope = Scope(record, self.find, self.constant)
        self.texts[module] = text
        for node in parsed(text, record, self.records.damaged).body:
            if isinstance(node, ast.FunctionDef):
                made: Any = function(scope, node, f"{module}.{node.name}")
            elif isinstance(node, ast.ClassDef):
                made = self._class(scope, node, f"{module}.{node.name}")
            else:
                raise scope.refused(node, f"{type(node).__name__} stands outside of functions and classes")
            self.globals[made.name] = made

    def _class(self, scope: Scope, node: ast.ClassDef, name: str) -> ScriptClass:
        bases = [dotted(base) for base in node.bases]
        if len(bases) > 1 or bases and bases[0] not in KINDS or node.keywords or node.decorator_list:
            raise scope.refused(node, f"the class {node.name} has another base than Module or NamedTuple")
        made = ScriptClass(name, KINDS[str(bases[0])] if bases else "")
        for part in node.body:
            if isinstance(part, ast.FunctionDef):
                made.methods[part.name] = function(scope, part, f"{node.name}.{part.name}")
            elif isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                made.fields.append(part.target.id)
                if part.value is not None:
                    made.constants[part.target.id] = literal(scope, part.value)
            elif isinstance(part, ast.Assign):
                self._class_list(scope, made, part)
            elif not isinstance(part, ast.Pass):
                raise scope.refused(part, f"{type(part).__name__} stands in a class")
        return made

    def _class_list(self, scope: Scope, made: ScriptClass, part: ast.Assign) -> None:
        """`__parameters__ = [...]`; and `__annotations__["0"] = T`, for names that identifiers cannot have."""
        target = part.targets[0]
        if isinstance(target, ast.Subscript):
            target = target.value
        name = dotted(target)
        if name in LISTS:
            values = literal(scope, part.value)
            if not isinstance(values, list) or not all(isinstance(v, str) for v in values):
                raise scope.refused(part, f"{name} is a list of names")
            setattr(made, LISTS[name], values)
        elif name not in ("__annotations__", "__constants__", "__forward_hooks__", "__forward_pre_hooks__"):
            raise scope.refused(part, f"the class sets {name}")

    def find(self, name: str) -> Any:
        """The class or function of a name in the code."""
        if name not in self.globals:
            raise self.records.damaged(f"its code has no {name}")
        return self.globals[name]

    def constant(self, name: str) -> Any:
        """CONSTANTS.c0 and so on."""
        number = name[1:]
        if name[:1] != "c" or not number.isdecimal() or int(number) >= len(self.constants):
            raise self.records.damaged(f"it has no constant {name}")
        return self.constants[int(number)]

    # -- objects ---------------------------------------------------------------------------------------

    def _unpickled(self, record: str, folder: str) -> Any:
        content = self.records.read(record).data
        try:
            return ScriptUnpickler(content, partial(self._storage, folder), self.find).load()
        except (pickle.UnpicklingError, RecursionError) as error:
            raise self.records.damaged(f"the record {record} is not allowed: {error}") from None

    def _storage(self, folder: str, pid: Any) -> Any:
        """The memory of a tensor."""
        type, key, elements = checked_id(pid)
        record = f"{folder}/{key}"
        if record not in self.storages:
            memory = self.records.read(record)
            if len(memory) < elements * type.itemsize:
                raise self.records.damaged(f"the record {record} is shorter than its {elements} elements")
            self.storages[record] = storage_on(memory[: elements * type.itemsize], type)
        return self.storages[record]

    def built(self, value: Any, outer: tuple[Instance, ...]) -> Any:
        """A value of the pickle with modules in place of instances. `outer`: the modules around it."""
        if isinstance(value, Instance):
            if value in outer or len(outer) > MAX_DEPTH:
                raise self.records.damaged("a module contains itself, or too many modules are inside each other")
            return self._module(value, (*outer, value))
        if len(outer) > MAX_DEPTH and isinstance(value, (list, tuple, dict)):
            raise self.records.damaged("its values are nested too deeply")
        if isinstance(value, (list, tuple)) and any(isinstance(v, (Instance, list, tuple, dict)) for v in value):
            return type(value)([self.built(v, (*outer, Instance(UNNAMED))) for v in value])
        if isinstance(value, dict):
            return {key: self.built(v, (*outer, Instance(UNNAMED))) for key, v in value.items()}
        return value

    def _module(self, instance: Instance, outer: tuple[Instance, ...]) -> Any:
        if isinstance(instance.state, (ScriptModule, Object)):
            return instance.state  # the second place of a shared module
        if instance.kind.kind not in ("Module", ""):
            raise self.records.damaged(f"it has an object of the class {instance.kind.last}")
        state: dict[str, Any] = instance.state or {}
        if not all(isinstance(name, str) for name in state):
            raise self.records.damaged("the attributes of a module have names")
        if not instance.kind.kind:
            made: Any = Object(instance.kind)
            made.values.update({name: self.built(value, outer) for name, value in state.items()})
        else:
            made = ScriptModule(instance.kind, self.texts[instance.kind.name.rpartition(".")[0]])
            for name, value in state.items():
                self._give(made, name, self.built(value, outer))
        instance.state = made
        return made

    def _give(self, made: ScriptModule, name: str, value: Any) -> None:
        try:
            made.take(name, value)
        except (KeyError, TypeError, ValueError) as error:
            raise self.records.damaged(f"a module cannot have the attribute {name!r}: {error}") from None


UNNAMED = ScriptClass("", "")


def loaded(f: Any, map_location: Any, extra_files: dict[str, Any] | None) -> ScriptModule:
    """The module of an archive; see `rushlight.jit.load`. The values of `extra_files` become the records' bytes."""
    check_location(map_location)
    with Opened(f) as (file, name):
        records = ScriptRecords(file, name)
        if extra_files:
            extra_files.update({key: bytes(records.read(f"extra/{key}")) for key in extra_files})
        return Archive(records).read()
