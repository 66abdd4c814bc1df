"""Recurrent layers over all steps: LSTM, GRU and RNN of one direction.

The product of the state and the recurrent weights is a tile in registers (tiles.py). A panel of the weights has the
columns of some hidden lanes for all gates, so the gates of these lanes are together in registers after the product.

The states of all steps lie in one array of T + 1 slots; the layer's output is a view of T slots. A tile of sequences
runs through all steps before the next tile begins, because sequences do not depend on each other: parts share tiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rushlight.compile.graph import Value
from rushlight.compile.native.errors import NotNative
from rushlight.compile.native.loop_nest import Lanes, index, over_vectors
from rushlight.compile.native.loop_nest import load as load_lanes
from rushlight.compile.native.lowering import Lowering, anchor
from rushlight.compile.native.places import Place
from rushlight.compile.native.schedule import Group
from rushlight.compile.native.tiles import MANY_ROWS, accumulate, in_tiles
from rushlight.loops import llvm
from rushlight.loops.llvm import FLOAT, Number, Target
from rushlight.loops.llvm_math import functions
from rushlight.ops.nn import recurrent

Vectors = Sequence[llvm.Value]
INLINE = 2  # a tile of more vectors of hidden lanes computes its gates in a loop


@dataclass(frozen=True)
class At:
    """The place of a vector of hidden lanes: the step, the sequence, the first lane, the number of lanes that exist."""

    step: Number
    row: Number
    lane: Number
    valid: int


@anchor(recurrent.lstm_layer)
def lstm(low: Lowering, group: Group) -> None:
    Lstm(low, group).write()


@anchor(recurrent.gru_layer)
def gru(low: Lowering, group: Group) -> None:
    Gru(low, group).write()


@anchor(recurrent.rnn_layer)
def rnn(low: Lowering, group: Group) -> None:
    Rnn(low, group).write()


def tile_of(target: Target, rows: Number, blocks: int, gates: int) -> tuple[int, int]:
    """(sequences, vectors of hidden lanes) of a tile: the least estimated time, as in `tiles.best_tile`."""
    rows = rows if isinstance(rows, int) else MANY_ROWS
    best, found = float("inf"), (1, 1)
    for b in range(1, min(blocks, 8) + 1):
        v = gates * b
        for m in range(1, min(rows, 16) + 1):
            if m * v + v + 1 > target.registers and (m > 1 or b > 1):
                break
            one = max(m * v / 2, (m + v) / 2, 4 if m * v < 8 else 0)
            time = -(-rows // m) * -(-blocks // b) * (one + 0.25)
            if time < best - 1e-9:
                best, found = time, (m, b)
    return found


class Layer:
    """What the three layers have in common. `gates`, `states`: their numbers."""

    gates, states = 1, 1

    def __init__(self, low: Lowering, group: Group):
        self.low, self.group, self.call = low, group, group.anchor
        tensors, *self.settings, sizes, self.reverse = self.call.args
        self.x, *self.first = tensors[: 1 + self.states]
        self.weight, *more = tensors[1 + self.states :]
        self.bias = more[0] if more else None
        self.check(tensors, sizes, more)
        self.batch = self.first[0].shape[0]
        self.steps = self.x.size // (self.x.shape[-1] * self.batch)
        self.hidden = self.weight.shape[1]
        self.f_of = functions("float32")
        self.width = low.module.target.lanes
        self.blocks = -(-self.hidden // self.width)
        self.tile, self.together = tile_of(low.module.target, self.batch, self.blocks, self.gates)

    def check(self, tensors: Sequence[Value], sizes: object, more: Sequence[Value]) -> None:
        hidden, known = self.weight.shape[1], [v for v in (self.weight, self.bias) if v is not None]
        fits = len(self.x.shape) in (2, 3) and self.x.shape[-1] == self.gates * hidden == self.weight.shape[0]
        plain = all(len(v.shape) == 1 for v in more) and all(v.dtype == np.float32 for v in tensors)
        if sizes is not None or not fits or not plain or not all(map(self.low.schedule.is_known, known)):
            raise NotNative("a recurrent layer with packed sequences, a projection or computed weights")
        if any(self.low.schedule.uses.get(v) for v in self.call.outs[1 + self.states :]) or not self.x.size:
            raise NotNative("a recurrent layer without elements, or whose gates are read")

    # -- memory --

    def packed_weights(self, w: np.ndarray) -> np.ndarray:
        """(gates H, H) -> for each panel (H, gates, blocks, lanes)."""
        whole = self.blocks * self.width
        w = np.pad(w.reshape(self.gates, self.hidden, -1), ((0, 0), (0, whole - self.hidden), (0, 0)))
        w = w.reshape(self.gates, self.blocks, self.width, -1).transpose(3, 0, 1, 2)
        cuts = range(0, self.blocks, self.together)
        return np.concatenate([np.ascontiguousarray(w[:, :, k : k + self.together]).ravel() for k in cuts])

    def make(self) -> None:
        """The memory of the states: h of T + 1 slots, and for an LSTM the present c."""
        low, (t, n, h) = self.low, (self.steps, self.batch, self.hidden)
        memory, slot = low.memory.scratch((t + 1) * n * h, np.float32), n * h
        self.slots = Place(memory, (t + 1, n, h), self.x.dtype, (slot, h, 1))
        out, last, *others = self.call.outs
        strides = (slot, h, 1) if len(out.shape) == 3 else (h, 1)
        low.memory.places[out] = Place(memory, out.shape, out.dtype, strides, 0 if self.reverse else slot)
        low.memory.places[last] = Place(memory, (n, h), out.dtype, (h, 1), 0 if self.reverse else t * slot)
        if self.states == 2:
            self.cell = Place(low.memory.scratch(slot, np.float32), (n, h), out.dtype, (h, 1))
            low.memory.places[others[0]] = self.cell

    # -- loops --

    def write(self) -> None:
        places = [self.low.place(v) for v in (self.x, *self.first)]
        panels = self.low.derived(self.packed_weights, (self.weight,))
        self.make()
        self.step = step = self.low.step()
        for place in places:
            self.low.memory.use(place.buffer)
        self.f, self.source = step.f, self.by_step(places[0])
        self.inputs, self.panels, self.h = step.pointer(places[0]), step.pointer(panels), step.pointer(self.slots)
        self.c = step.pointer(self.cell) if self.states == 2 else None
        self.biases = None if self.bias is None else step.pointer(step.place(self.bias))
        self.begin = [(place, step.pointer(place)) for place in places[1:]]
        if not isinstance(self.batch, int):
            in_tiles(self.f, *step.share_tiles(self.batch, self.tile), self.tile, self.sequences)
        else:
            self.write_tiles()
        alone = Group(self.call, [], self.call.outs[0])
        self.low.write_rest(self.group, alone if self.group.steps else self.group)

    def write_tiles(self) -> None:
        """The tiles of a known number of sequences."""
        full, rest = divmod(self.batch, self.tile)
        step = self.step
        start, stop = step.share(full)
        self.f.loop(start, stop, 1, lambda k: self.sequences(self.f.whole(k) * self.tile, self.tile))
        if rest:
            step.alone(lambda: self.sequences(full * self.tile, rest))

    def by_step(self, x: Place) -> Place:
        """x as (T, N, gates H)."""
        if len(x.shape) == 3:
            return x
        (row, column), shape = x.strides, (self.steps, self.batch, x.shape[1])
        return Place(x.buffer, shape, x.dtype, (self.batch * row, row, column), x.offset)

    def sequences(self, row: Number, count: int) -> None:
        """All steps of a tile of sequences."""
        f = self.f
        self.room = f.room(count * self.gates * self.together * self.width, FLOAT)
        for (place, pointer), to, slot in zip(self.begin, (self.h, self.c), (self.steps if self.reverse else 0, 0)):
            assert to is not None
            self.copy_state(place, pointer, to, slot, (row, count))
        left = self.hidden % self.width  # lanes of the last vector; 0 if the vector is full
        whole = self.hidden // self.width // self.together  # panels of full vectors
        last = [self.width] * (self.blocks - whole * self.together - bool(left)) + [left] * bool(left)

        def one(i: Number) -> None:
            t = self.steps - 1 - f.whole(i) if self.reverse else f.whole(i)
            f.loop(0, whole, 1, lambda j: self.panel(j, t, (row, count), [self.width] * self.together))
            if last:
                self.panel(whole, t, (row, count), last)

        f.loop(0, self.steps, 1, one)

    def copy_state(
        self, place: Place, pointer: llvm.Value, to: llvm.Value, slot: int, rows: tuple[Number, int]
    ) -> None:
        """The first state of some sequences."""
        f = self.f

        def vector(row: Number, lane: Number, valid: int) -> None:
            where = index(place.offset, [row, lane], place.strides)
            x = load_lanes(f, pointer, where, FLOAT, place.strides[1], Lanes([], 0, self.width, valid))
            x = x if x.lanes else llvm.repeated(x, self.width)
            f.store(x, to, f.whole(row) * self.hidden + lane + slot * self.batch * self.hidden, valid)

        def line(k: Number) -> None:
            row = f.whole(k) + rows[0]
            over_vectors(f, (0, self.hidden), self.hidden, lambda lane, _, valid: vector(row, lane, valid))

        f.loop(0, rows[1], 1, line)

    def panel(self, j: Number, t: Number, rows: tuple[Number, int], valid: list[int]) -> None:
        """The next state of a tile of sequences, for the hidden lanes of one panel. `valid`: for each vector the lanes
        that exist."""
        f, (row, count), blocks = self.f, rows, len(valid)
        vectors = self.gates * blocks
        lane = f.whole(j) * (self.together * self.width)
        panel = f.at(self.panels, f.whole(j) * (self.hidden * self.gates * self.together * self.width), FLOAT)
        places = [(k, b) for k in range(count) for b in range(blocks)]
        ats = {(k, b): At(t, f.whole(row) + k, lane + b * self.width, valid[b]) for k, b in places}
        start: list[llvm.Value] = []
        for k in range(count):
            start += [self.started(g, ats[k, b]) for g in range(self.gates) for b in range(blocks)]
        before = (f.whole(t) + (1 if self.reverse else 0)) * (self.batch * self.hidden)
        firsts = [before + (f.whole(row) + k) * self.hidden for k in range(count)]
        sums = accumulate(f, self.h, firsts, [(self.hidden, 1)], panel, vectors, start)
        if count * blocks <= INLINE:
            for k, b in places:
                self.advance([sums[k * vectors + g * blocks + b] for g in range(self.gates)], ats[k, b])
        else:
            self.advance_in_loop(sums, [ats[0, b] for b in range(blocks)], count)

    def advance_in_loop(self, sums: Vectors, firsts: list[At], count: int) -> None:
        """The next state of `count` sequences. `sums`: for each sequence the gates, with a vector for each block of
        lanes; `firsts`: the blocks of the first sequence."""
        f, blocks = self.f, len(firsts)
        for k, x in enumerate(sums):
            f.store(x, self.room, k * self.width)
        for b, at in enumerate(firsts):

            def one(k: Number, b: int = b, at: At = at) -> None:
                first = f.whole(k) * (self.gates * blocks * self.width) + b * self.width
                places = [first + g * blocks * self.width for g in range(self.gates)]
                gates = [f.load(self.room, place, FLOAT, self.width) for place in places]
                self.advance(gates, replace(at, row=at.row + k))

            f.loop(0, count, 1, one)

    def started(self, gate: int, at: At) -> llvm.Value:
        """The input's part and the bias of a gate."""
        bias, x = self.bias_of(gate, at), self.input_of(gate, at)
        return x if bias is None else x + bias

    def bias_of(self, gate: int, at: At) -> llvm.Value | None:
        if self.biases is None:
            return None
        return self.f.load(self.biases, at.lane + gate * self.hidden, FLOAT, self.width, at.valid)

    def input_of(self, gate: int, at: At) -> llvm.Value:
        place, lanes = self.source, Lanes([], 0, self.width, at.valid)
        where = index(place.offset, [at.step, at.row, at.lane + gate * self.hidden], place.strides)
        x = load_lanes(self.f, self.inputs, where, FLOAT, place.strides[2], lanes)
        return x if x.lanes else llvm.repeated(x, self.width)

    # -- states --

    def place_of(self, at: At, slot: Number) -> Number:
        return self.f.whole(slot) * (self.batch * self.hidden) + at.row * self.hidden + at.lane

    def previous(self, at: At) -> llvm.Value:
        """h before the step."""
        slot = self.f.whole(at.step) + (1 if self.reverse else 0)
        return self.f.load(self.h, self.place_of(at, slot), FLOAT, self.width, at.valid)

    def keep(self, h: llvm.Value, at: At) -> None:
        """h after the step."""
        slot = self.f.whole(at.step) + (0 if self.reverse else 1)
        self.f.store(h, self.h, self.place_of(at, slot), at.valid)

    def advance(self, gates: Vectors, at: At) -> None:
        """The next state of a vector of hidden lanes. `gates`: the input's part, bias and product."""
        raise NotImplementedError


class Lstm(Layer):
    """c' = f c + i g; h' = o tanh(c'), with i, f, o = sigmoid and g = tanh of the gates (torch's order: i, f, g, o)."""

    gates, states = 4, 2

    def advance(self, gates: Vectors, at: At) -> None:
        sigmoid, tanh = self.f_of["sigmoid"], self.f_of["tanh"]
        i, f, o = (sigmoid(gates[k]) for k in (0, 1, 3))
        assert self.c is not None
        where = at.row * self.hidden + at.lane
        old = self.f.load(self.c, where, FLOAT, self.width, at.valid)
        c = llvm.multiply_add(f, old, i * tanh(gates[2]))
        self.f.store(c, self.c, where, at.valid)
        self.keep(o * tanh(c), at)


class Gru(Layer):
    """n = tanh(x + r (w h + b)); h' = n + z (h - n), with r, z = sigmoid."""

    gates, states = 3, 1

    def started(self, gate: int, at: At) -> llvm.Value:
        """n's product is apart from n's input, because r multiplies the product."""
        if gate < 2:
            return super().started(gate, at)
        bias = self.bias_of(gate, at)
        return self.f.number(FLOAT, 0.0, self.width) if bias is None else bias

    def advance(self, gates: Vectors, at: At) -> None:
        sigmoid, tanh = self.f_of["sigmoid"], self.f_of["tanh"]
        r, z = sigmoid(gates[0]), sigmoid(gates[1])
        n = tanh(llvm.multiply_add(r, gates[2], self.input_of(2, at)))
        self.keep(llvm.multiply_add(z, self.previous(at) - n, n), at)


class Rnn(Layer):
    """h' = tanh or relu."""

    def advance(self, gates: Vectors, at: At) -> None:
        (relu,) = self.settings
        h = (
            self.f_of["maximum"](gates[0], self.f.number(FLOAT, 0.0, self.width))
            if relu
            else self.f_of["tanh"](gates[0])
        )
        self.keep(h, at)
