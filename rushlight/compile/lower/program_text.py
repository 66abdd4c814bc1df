"""From a graph to the text of a Python program: fused loops, BLAS for products, `out=` into preallocated memory.

The text can be read, printed and run: it has the user's lines above the statements.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from rushlight.compile.graph import Call, Graph, Store, Value, is_reshape, is_view, lineage, parents_of
from rushlight.compile.lower.join_statements import MAX_JOINED, MAX_SMALL_WORK, Joints, call, early
from rushlight.compile.lower.loop_text import Kernel, slots_of, work
from rushlight.compile.lower.memory_plan import Plan, orders
from rushlight.compile.lower.numpy_loops import Whole, on_arrays
from rushlight.compile.lower.page_text import page_of
from rushlight.compile.lower.small_matmul import COPY, is_small
from rushlight.compile.lower.small_matmul import text as product_text
from rushlight.compile.passes.decompose import REDUCTIONS
from rushlight.compile.passes.fold_transposes import is_transpose
from rushlight.compile.passes.fuse import Cluster, Fusion, same_elements
from rushlight.compile.passes.simplify import uniform
from rushlight.compile.report import Item, Parts, item_of, kind, place_of, sequence_text
from rushlight.core.table import TABLE, entries
from rushlight.fast.rule_text import SHORT
from rushlight.kernels.summation import BLAS_ELEMENTS
from rushlight.ops.linalg.matmul import mm, mv
from rushlight.ops.math import elementwise as E
from rushlight.ops.nn.dropout import dropout_mask
from rushlight.ops.reduce import reduce
from rushlight.ops.shape.views import contiguous, transpose

# ops for which NumPy is as fast as a loop on small arrays
SIMPLE = entries(E.add, E.sub, E.mul, E.div, E.neg, E.sqrt, E.maximum, E.minimum)
MAX_SCALAR_ARGUMENTS = 16  # a loop takes up to this many 0-d values as separate arguments

HEADER = '''"""{title}"""
import numpy as np
from numpy import asarray, copyto, inf, nan

from rushlight.compile.lower.runtime import (
    b1, check_classes, check_index, check_true, f32, f64, i64, in_parts, joint, kernels, laid, loop, matmul, memory)
'''


class Lowering:
    """Writes the program of one graph. `text`: the whole module; `constants`: the objects that the text refers to.

    `mark`: the prefix of its names, if it shares a module with another program. `like`: eager's results, whose layout
    the program's results get.
    """

    def __init__(
        self,
        graph: Graph,
        title: str,
        names: list[str],
        fuse: bool = True,
        threads: bool = True,
        mark: str = "",
        like: Mapping[Value, np.ndarray] | None = None,
    ):
        self.graph, self.threads, self.mark, self.fuse = graph, threads, mark, fuse
        self.constants: dict[str, Any] = {}
        self.count = 0
        self.kernels: dict[str, str] = {}  # text of a loop without its name -> the loop's name
        self.wholes: dict[str, str] = {}  # name of a loop -> its version for whole arrays
        self.setup: list[str] = []  # statements that run once
        self.binding: list[str] = []  # statements that run when a parameter's memory changes
        self.bound = [v for v in graph.inputs if v.source[0] == "state"]
        self.steady = set(self.bound)  # arrays that change only when a parameter's memory changes
        self._views: list[str] = []  # names of views that the binding passes to each run
        self.lines: list[str] = []  # statements of each run
        self.items = Fusion(graph).ordered() if fuse else list(graph.steps)
        near = [False, *(fuse and is_little(item) for item in self.items), False]
        self.items = [step for i, item in enumerate(self.items) for step in self.split(item, near[i] or near[i + 2])]
        self.parents = parents = parents_of(graph)
        self.escaping = {r for v in graph.outputs() for r in lineage(v, parents)}
        for v, name in zip(graph.inputs, names):
            v.name = name
        self.static: set[Value] = set()  # arrays that stay the same from run to run
        self.dense = {v for v in graph.inputs if v._array.flags.c_contiguous}
        # value in static memory -> an array with the same strides
        self.lying: dict[Value, np.ndarray] = {}
        self.plan = Plan(self.items, parents)
        # indices of setup statements that need an address from the memory plan
        self.planned: list[int] = []
        self.new: list[tuple[tuple, np.dtype]] = []
        self.turned: dict[Value, Value] = {}  # transpose of a C-contiguous matrix -> the matrix
        self.later: dict[Value, Call] = {}  # transposes that are not written yet
        self.slots: dict[Value, int] = {}  # 0-d value -> index in the array that 0-d values share
        self.rooms: dict[str, int] = {}  # number of 0-d values in each shared array
        self.users, self.final = graph.users(), set(graph.outputs())
        self.orders = orders(graph, parents, like or {})
        self.last_line: Any = None
        self.passing: dict[Value, list[str]] = {}  # large result of a kernel -> names of its memory
        # (number of lines after an item, values that the item wrote)
        self.probes: list[tuple[int, list[Value]]] = []
        self.report: list[Item] = []
        for i, item in enumerate(self.items):
            self.write_item(i, item)
        self.parts = self.finished(title)
        self.joints = Joints(self.lines, mark)
        self.text = self.module()

    def write_item(self, i: int, item: Any) -> None:
        """Write item i, and the report about it."""
        self.plan.now, before = i, len(self.lines)
        self.write(item)
        self.probes.append((len(self.lines), self.shown(item)))
        self.drop(i)
        steps = item.steps if isinstance(item, Cluster) else [item]
        text = [line for line in self.lines[before:] if not line.startswith("#")]
        made = self.shown(item) or [v for s in steps for v in s.outs]
        self.report.append(item_of("; ".join(text), steps, made, [place_of(s.line) for s in steps if s.line]))

    def finished(self, title: str) -> Parts:
        """Place the values in memory; returns the pieces of the text."""
        functions = self.functions(self.lines)  # before the statements: results may be constants
        self.plan.settle()
        for k, lease in zip(self.planned, self.plan.leases):
            self.setup[k] = self.setup[k].replace("START", str(lease.start))
        inputs, bound = [(v.name, kind(v)) for v in self.graph.inputs], [v.name for v in self.bound]
        texts = self.constants, self.loops(), self.wholes, self.memory(), functions
        return Parts(title, self.mark, *texts, self.new, inputs, bound, page_of(self.graph, self.items, self.wanted))

    def shown(self, item: Any) -> list[Value]:
        """The values that an item has written to memory; none for a view."""
        if isinstance(item, Cluster):
            made = self.wanted(item)
            return [
                v
                for s in item.steps
                for v in ([s.target] if isinstance(s, Store) else s.outs)
                if isinstance(s, Store) or v in made
            ]
        return [item.target] if isinstance(item, Store) else [] if item.outs and is_view(item) else list(item.outs)

    def split(self, item: Any, among: bool) -> Iterable[Any]:
        """The steps of a cluster that is too small for a loop of its own. `among`: a neighbour is small, too, so both
        can be joined.
        """
        if isinstance(item, Cluster) and (
            all(same_elements(s) for s in item.steps)
            or len(item.steps) == 1
            and self.simple(item.steps[0])
            and not (among and is_little(item))
        ):
            return item.steps
        return [item]

    @staticmethod
    def simple(step: Any) -> bool:
        """Whether NumPy is as fast as a loop for this step."""
        if isinstance(step, Store) or step.entry in REDUCTIONS:
            return True
        return step.entry in SIMPLE and step.outs[0].size < 1 << 16

    # -- statements --------------------------------------------------------------------------------

    def write(self, item: Any) -> None:
        self.comment(item)
        if isinstance(item, Cluster):
            self.write_kernel(item)
        elif isinstance(item, Store):
            self.write_copy(item)
        else:
            self.write_call(item)

    def comment(self, item: Any) -> None:
        """Comments with the user's statement, whenever it changes."""
        steps = item.steps if isinstance(item, Cluster) else [item]
        places = list(dict.fromkeys(place_of(s.line) for s in steps if s.line))
        if places and places != self.last_line:
            self.last_line = places
            shown = places if len(places) < 4 else [*places[:2], "...", places[-1]]
            self.lines.append("# " + "; ".join(shown))

    def write_kernel(self, cluster: Cluster) -> None:
        kernel = Kernel(cluster, self.wanted(cluster), self.threads)
        if not cluster.space and len(kernel.arguments) > MAX_SCALAR_ARGUMENTS:
            kernel = Kernel(cluster, self.wanted(cluster), slots=self.slotted(kernel))
        name = self.loop(kernel.text(""))
        if name not in self.wholes:
            self.wholes[name] = Whole(kernel).text(name)
        for v in kernel.outs:
            if v not in self.slots:
                self.make(v)
        given = {v: self.shaped(v, kernel.inner_shape(v)) for v in kernel.arguments}
        numbers = [f"{SHORT[d.name]}({shortest(number, d)})" for number, d in kernel.numbers]
        arrays = [given[v] for v in kernel.looped] + [f"{self.mark}{name}" for name in kernel.shared]
        if not kernel.parallel:
            self.lines.append(call(name, [*arrays, *numbers], is_little(cluster)))
            return
        if kernel.sums:
            sums = self.name("t")
            self.setup.append(f"{sums} = np.empty({len(kernel.sums)})")
            arrays.append(sums)
        how = kernel.division() + [0] * len(numbers)
        self.lines.append(f"in_parts({name}, ({', '.join([*arrays, *numbers])},), {tuple(how)})")
        if kernel.sums:
            after = [sums, *(given[v] for v in kernel.after), *numbers]
            name = self.loop(kernel.finishing(""))
            self.wholes[name] = on_arrays(kernel.finishing(name, ()))
            self.lines.append(f"{name}({', '.join(after)})")

    def write_copy(self, store: Store) -> None:
        target, value = self.array(store.target), self.array(store.value)
        if not (
            self.fuse
            and {store.target, store.value} <= self.dense
            and store.target.dtype == store.value.dtype
            and 0 < store.target.size < MAX_SMALL_WORK
            and store.target.dtype.name in SHORT
        ):
            self.lines.append(f"copyto({target}, {value})")
            return
        name = self.loop(COPY)
        self.wholes.setdefault(name, f"def {name}(x0, out0):\n    copyto(out0, x0)\n")
        self.lines.append(call(name, [value, target], True))

    def slotted(self, kernel: Kernel) -> dict[Value, int]:
        """0-d value -> index in the array from which a loop reads it. As separate arguments, many numbers would slow
        LLVM down more than the text of the loop does.
        """
        for v in kernel.outs:
            if v not in self.escaping:
                name = f"{self.mark}{slots_of(v)}"
                k = self.slots[v] = self.rooms.get(name, 0)
                self.rooms[name] = k + 1
                v.name = self.name("t")
                self.setup.append(f"{v.name} = {name}[{k}:{k + 1}].reshape(())")
                self.static.add(v)
                self.dense.add(v)
        return {v: self.slots[v] for v in (*kernel.reads, *kernel.outs) if v in self.slots}

    def loop(self, text: str) -> str:
        """The name of a loop with this text."""
        return self.kernels.setdefault(text, f"{self.mark}loop_{len(self.kernels)}")

    def wanted(self, cluster: Cluster) -> set[Value]:
        """The values of a cluster that other steps read."""
        own = {id(s) for s in cluster.steps}
        return {v for v in cluster.made if v in self.final or any(id(s) not in own for s in self.users.get(v, ()))}

    def write_call(self, call: Call) -> None:
        if not call.outs:
            self.lines.append(f"{call.op}({', '.join(map(self.setting, call.args))})")
            return
        op = TABLE[call.op]
        out = call.outs[0]
        if (
            call.runs(mm, mv)
            and self.fuse
            and is_small(call)
            and {self.turned.get(v, v) for v in call.args} <= self.dense
        ):
            self.write_product(call)
        elif call.runs(mm) and out.dtype.name in SHORT and out.dtype.kind == "f":
            self.make(out)
            self.lines.append(f"matmul({self.array(call.args[0])}, {self.array(call.args[1])}, out={out.name})")
        elif isinstance(op.kernel, np.ufunc) and len(call.outs) == 1 and self.direct(call):
            self.make(out)
            given = ", ".join(self.array(v) for v in call.args)
            self.lines.append(f"np.{op.kernel.__name__}({given}, out={out.name})")
        elif (
            call.runs(reduce.sum)
            and call.args[0].size < BLAS_ELEMENTS
            and out.dtype == call.args[0].dtype
            and (out.dtype.name in SHORT)
        ):
            # for larger arrays the op's own kernel is faster, and exactly eager's
            self.make(out)
            self.lines.append(
                f"np.add.reduce({self.array(call.args[0])}, {call.args[1]!r}, None, {out.name}, {bool(call.args[2])})"
            )
        elif is_view(call):
            self.write_view(call)
        else:
            self.write_plain(call)

    def write_product(self, step: Call) -> None:
        """A product of small matrices as a loop."""
        a, b = (self.turned.get(v, v) for v in step.args)
        turns = a is not step.args[0], b is not step.args[1]
        name = self.loop(product_text(step, *turns))
        a_text, b_text = (f"{x}.T" if turn else x for x, turn in zip("ab", turns))
        self.wholes.setdefault(name, f"def {name}(a, b, out):\n    matmul({a_text}, {b_text}, out=out)\n")
        self.make(step.outs[0])
        self.lines.append(call(name, [self.array(a), self.array(b), step.outs[0].name], True))

    def direct(self, call: Call) -> bool:
        """Whether the ufunc itself computes the traced result in its dtype."""
        out = call.outs[0]
        return all(isinstance(v, Value) and v.dtype == out.dtype for v in call.args) and out.dtype.kind in "fi"

    def write_view(self, call: Call) -> None:
        """Write a view; hoisted out of the call if its base is constant."""
        if is_turn(call):
            self.turned[call.outs[0]] = call.args[0]
            if call.outs[0] not in self.final:
                self.later[call.outs[0]] = call
                return
        self.write_look(call)

    def write_look(self, call: Call) -> None:
        x, out = call.args[0], call.outs[0]
        source = self.array(x)
        if is_reshape(call):
            text = f"{source}.reshape({out.shape})"
        elif is_turn(call):
            text = f"{source}.T"
        else:
            text = f"kernels.{call.op}({', '.join([source, *map(self.setting, call.args[1:])])})"
        out.name = self.name("v")
        copies = self.looks(call, x, out)
        if is_reshape(call) and x in self.dense:
            self.dense.add(out)
        if x in self.static and not copies:
            self.static.add(out)
            self.setup.append(f"{out.name} = {text}")
        elif x in self.steady and not copies:
            self.steady.add(out)
            self.bind(out.name, text)
        else:
            line = f"{out.name} = {text}"
            self.lines.append(early(line) if is_turn(call) or is_reshape(call) and not copies else line)
            self.holds(out.name, x)

    def looks(self, call: Call, x: Value, out: Value) -> bool:
        """Whether the statement may copy, as `reshape` does for an array that is not contiguous. If the strides of x
        are known, the op is tried on an array with the same strides.
        """
        like = np.empty(x.shape, x.dtype) if x in self.dense else self.lying.get(x)
        if like is None or x not in self.static:
            return (is_reshape(call) or call.runs(contiguous)) and x not in self.dense
        self.lying[out] = made = (
            like.reshape(out.shape) if is_reshape(call) else TABLE[call.op].kernel(like, *call.args[1:])
        )
        return not np.may_share_memory(like, made)

    def write_plain(self, call: Call) -> None:
        """A call of the op's kernel, which allocates its results."""
        if call.runs(dropout_mask):  # only the layout of this array is read
            call.args[0].name = f"{self.mark}k{len(self.constants)}"
            self.constants[call.args[0].name] = call.args[0]._array
        given = ", ".join(self.setting(a) for a in call.args)
        for v in call.outs:
            v.name = self.name("r")  # its layout may differ from the traced one
            if v.size * v.dtype.itemsize >= MAX_SMALL_WORK and not call.shares:
                self.passing[v] = [v.name]
        made = f"kernels.{call.op}({given})"
        names, listed = ", ".join(v.name for v in call.outs), bool(TABLE[call.op].options.get("list"))
        if [v.shape for v in call.outs] == [()] and not listed:
            made = f"asarray({made})"
        self.lines.append(f"{names}{',' * listed} = {made}")

    def holds(self, name: str, v: Value) -> None:
        """Add a name for a view of a value's memory."""
        for home in lineage(v, self.parents):
            if home in self.passing:
                self.passing[home].append(name)

    def drop(self, item: int) -> None:
        """Delete the names of large results that no later item reads, so that their memory can be reused."""
        for v in [v for v in self.passing if self.plan.ends[v] <= item]:
            names = self.passing.pop(v)
            if v not in self.escaping:
                self.lines.append(f"del {', '.join(names)}")

    # -- arrays ------------------------------------------------------------------------------------

    def make(self, v: Value) -> None:
        """Memory for a value: planned, or newly allocated in each run if the value leaves the program."""
        v.name = self.name("t")
        self.dense.add(v)
        if v in self.escaping:
            self.lines.append(early(f"{v.name} = new[{len(self.new)}]()"))
            self.new.append((v.shape, v.dtype))
        else:
            self.plan.take(v)
            self.planned.append(len(self.setup))
            self.setup.append(f"{v.name} = {self.mark}place(START, {v.shape}, '{v.dtype.name}')")
            self.static.add(v)

    def shaped(self, v: Value, shape: tuple[int, ...]) -> str:
        """The array in the shape that a loop expects."""
        name = self.array(v)
        if v.shape == shape:
            return name
        text = f"{name}.reshape({shape})"
        if v not in self.dense:
            # may copy: must run after earlier writes
            self.lines.append(f"{(again := self.name('v'))} = {text}")
            self.holds(again, v)
            return again
        if v not in self.static and v not in self.steady:
            return text
        again = f"{name}_{'x'.join(map(str, shape)) or 'number'}"
        if v in self.steady:
            self.bind(again, text)
        elif (line := f"{again} = {text}") not in self.setup:
            self.setup.append(line)
        return again

    def bind(self, name: str, text: str) -> None:
        """A view of a parameter, made when the parameter's memory is bound."""
        if name not in self._views:
            self._views.append(name)
            self.binding.append(f"{name} = {text}")

    def name(self, letter: str) -> str:
        self.count += 1
        return f"{self.mark}{letter}{self.count}"

    def array(self, v: Value) -> str:
        """The name of a value's array."""
        if v in self.later:
            self.write_look(self.later.pop(v))
        if v.kind == "constant" and not v.name:
            v.name = f"{self.mark}k{len(self.constants)}"
            number = uniform(v)
            self.constants[v.name] = (
                np.asarray(v._array, order="C") if number is None else np.full(v.shape, number, v.dtype)
            )
            self.static.add(v)
            self.dense.add(v)
        return v.name

    def setting(self, a: Any) -> str:
        """An argument as text; an object without a literal is passed under a name."""
        if isinstance(a, Value):
            return self.array(a)
        if type(a) in (tuple, list):
            return sequence_text(type(a), map(self.setting, a))
        if a is None or a is Ellipsis or type(a) in (bool, int, str, slice) or (type(a) is float and np.isfinite(a)):
            return repr(a)
        name = f"{self.mark}k{len(self.constants)}"
        self.constants[name] = a
        return name

    # -- the whole ---------------------------------------------------------------------------------

    def module(self) -> str:
        """The text that rushlight runs. compile/export/module_text.py makes a text that runs without rushlight."""
        parts, joints = self.parts, self.joints
        loops = [f"\n@loop\n{text}" for text in parts.loops.values()]
        head, functions = HEADER.format(title=parts.title), self.functions(joints.lines)
        return "\n".join([head, *loops, *joints.texts, parts.memory, *joints.setup, functions])

    def loops(self) -> dict[str, str]:
        """The name of each loop and its text."""
        return {name: text.replace("def ", "def " + name, 1) for text, name in self.kernels.items()}

    def memory(self) -> str:
        """The statements that run once."""
        return (
            "\n# memory, used again where a value is no longer needed: "
            f"{self.plan.size / 1e6:.2f} MB of {self.plan.asked / 1e6:.2f}\n"
            f"{self.mark}place = memory({self.plan.size})\n"
            + "".join(f"{name} = np.zeros({n}, {name.rpartition('_')[2]})\n" for name, n in self.rooms.items())
            + "\n".join(self.setup)
            + "\n"
        )

    def functions(self, statements: list[str]) -> str:
        """`run`, and `bind` if there are views to bind."""
        results = [self.handed(v) for v in self.graph.results]
        grads = [self.handed(v) for _, v in self.graph.grads if v is not None]
        body = [*statements, f"return [{', '.join(results)}], [{', '.join(grads)}]"]
        text = ""
        if self._views:
            lines = [*self.binding, f"return {', '.join(self._views)},"]
            bound = ", ".join(v.name for v in self.bound)
            text = f"\ndef {self.mark}bind({bound}):\n" + "\n".join("    " + line for line in lines) + "\n\n"
        self.inputs = ", ".join(["new", *(v.name for v in self.graph.inputs), *self._views])
        self.last = body[-1]
        return f"{text}\ndef {self.mark}run({self.inputs}):\n" + "\n".join("    " + line for line in body) + "\n"

    def handed(self, v: Value) -> str:
        """The text of a result with eager's layout. A constant is copied, since the caller may write to the result."""
        own = any([x.kind == "constant" for x in lineage(v, self.parents)])
        text, axes = self.array(v) + ".copy()" * own, self.orders.get(v)
        return text if axes is None or axes == sorted(axes) and (v in self.dense or own) else f"laid({text}, {axes})"

    def watched(self, call: str) -> str:
        """The text of `run` with a call after each item: `call(i, values that the item wrote...)`."""
        lines, done = [], 0
        for i, (end, made) in enumerate(self.probes):
            lines += [*self.lines[done:end], f"{call}({', '.join([str(i), *map(self.array, made)])})"]
            done = end
        return (
            f"def watched({call}, {self.inputs}):\n" + "\n".join("    " + line for line in (*lines, self.last)) + "\n"
        )


def is_little(item: Any) -> bool:
    """Whether an item takes about as long as a call from Python, and can be called from a compiled function."""
    if isinstance(item, Cluster):
        return len(item.steps) < MAX_JOINED and work(item) < MAX_SMALL_WORK
    return item.runs(mm, mv) and is_small(item)


def is_turn(call: Call) -> bool:
    return call.runs(transpose) and is_transpose(call)


def shortest(number: Any, dtype: np.dtype) -> str:
    """The number as its dtype prints it: 0.1, not 0.10000000149011612."""
    return str(dtype.type(number))
