"""Direct convolution on channels-last pixels: each tile of pixels and vectors of filters is a product whose length is
the kernel's window (tiles.py).

    out[n, y, x, o] = sum over i, j, c of in[n, y s + i d - p, x s + j d - p, c] weight[o, c, i, j] + bias[o]

The input has a border of zeros (`halos` in lowering.py, or a copy made here), so that no tile needs a condition. A
convolution of one dimension has an image of one row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rushlight.compile.graph import Call, Value
from rushlight.compile.native.errors import NotNative
from rushlight.compile.native.loop_nest import Lanes, Pieces, index, over_vectors
from rushlight.compile.native.lowering import Lowering, Step, anchor, channels_last
from rushlight.compile.native.places import Buffer, Place
from rushlight.compile.native.schedule import Group
from rushlight.compile.native.sizes import new_value
from rushlight.compile.native.tiles import MANY_ROWS, accumulate, in_tiles, packed
from rushlight.loops import llvm
from rushlight.loops.llvm import FLOAT, Number, Target
from rushlight.ops.nn.conv import convolution

Pair = tuple[int, int]


@dataclass
class Window:
    """The settings of a convolution of two dimensions."""

    kernel: Pair
    stride: Pair
    padding: Pair
    dilation: Pair
    groups: int


def pair(settings: Sequence[int], default: int) -> Pair:
    """The settings of height and width; of one dimension, it is the width."""
    if len(settings) > 2:
        raise NotNative("a convolution of three dimensions")
    return (default, settings[0]) if len(settings) == 1 else (settings[0], settings[1])


def window_of(call: Call) -> Window:
    _, weight, _, stride, padding, dilation, groups = call.args
    return Window(pair(weight.shape[2:], 1), pair(stride, 1), pair(padding, 0), pair(dilation, 1), groups)


def padding_of(call: Call) -> tuple[int, ...] | None:
    """The border that a call needs around its input, for each dimension; None for other calls."""
    return (0, 0, *call.args[4]) if call.runs(convolution) else None


@anchor(convolution)
def convolve(low: Lowering, group: Group) -> None:
    x, weight, bias, *_ = group.anchor.args
    known = [v for v in (weight, bias) if v is not None]
    if x.dtype != np.float32 or not all(low.schedule.is_known(v) for v in known):
        raise NotNative("a convolution of other dtypes, or with computed weights")
    window = window_of(group.anchor)
    channels, filters = x.shape[1] // window.groups, weight.shape[0] // window.groups
    source, shape = with_border(low, x, window.padding), group.out.shape
    low.make(group.out, channels_last(len(shape)), [])
    kind = Depthwise if channels == 1 == filters else Direct
    made = kind(low, group, source, window, pair(shape[2:], 1))
    made.begin(low.step())
    made.write()


def with_border(low: Lowering, x: Value, padding: Pair) -> Place:
    """The place of the pixel (-padding, -padding), with four dimensions; a copy with a border of zeros if the value has
    none."""
    place = low.place(x)
    halo = low.halos.get(x) if x not in low.likes else None
    wanted = (0, 0, *padding)[:4] if len(x.shape) == 4 else (0, 0, padding[1])
    if any(wanted) and (halo is None or any(h < w for h, w in zip(halo, wanted))):
        place = bordered_copy(low, x, wanted)
    moved = place.offset - sum([p * s for p, s in zip(wanted, place.strides)])
    if len(x.shape) == 3:
        (n, c, w), (a, b, d) = x.shape, place.strides
        return Place(place.buffer, (n, c, 1, w), place.dtype, (a, b, 0, d), moved)
    if len(x.shape) != 4:
        raise NotNative("a convolution of three dimensions")
    return Place(place.buffer, x.shape, place.dtype, place.strides, moved)


def bordered_copy(low: Lowering, x: Value, border: tuple[int, ...]) -> Place:
    """A copy in channels-last order with a border of zeros."""
    source, again = low.place(x), new_value(x.shape, x.dtype)
    low.halos[again] = border
    target = low.make(again)
    low.copy(source, target)
    return target


def write_zeros(step: Step, place: Place, halo: tuple[int, ...]) -> None:
    """Zeros in the border of a value in channels-last order: rows above and below, pixels at both sides."""
    f, shape = step.f, place.shape
    rows, columns = (1, shape[2]) if len(shape) == 3 else shape[2:]
    above, beside = (0, halo[2]) if len(shape) == 3 else halo[2:]
    channels, pixel = shape[1], place.strides[-1]
    line = (columns + 2 * beside) * pixel
    row = line if len(shape) == 3 else place.strides[2]
    pointer = step.pointer(place)

    def fill(start: Number, count: Number) -> None:
        zeros = lambda i, lanes, valid: f.store(f.number(FLOAT, 0.0, lanes), pointer, i + start, valid)
        over_vectors(f, (0, count), count, zeros)

    def image(n: Number) -> None:
        first = index(place.offset - beside * pixel - above * row, [n], [place.strides[0]])
        if above:
            fill(first, above * line)
            fill(f.whole(first) + (above + rows) * row, above * line)
        if beside:

            def sides(y: Number) -> None:
                fill(f.whole(first) + f.whole(y) * row, beside * pixel)
                fill(f.whole(first) + f.whole(y) * row + (beside + columns) * pixel, beside * pixel)

            f.loop(above, above + rows, 1, sides)

    assert channels <= pixel
    f.loop(0, shape[0], 1, image)


def tile_of(target: Target, rows: Number, columns: Number, vectors: int) -> tuple[int, int, int]:
    """(rows, columns, vectors) of a tile of pixels: the least estimated time for the whole image. A tile has one row if
    the number of rows is not known."""
    rows, columns = (n if isinstance(n, int) else few for n, few in ((rows, 1), (columns, MANY_ROWS)))
    best, found = float("inf"), (1, 1, 1)
    for v in range(1, min(vectors, 4) + 1):
        for h in range(1, min(rows, 8) + 1):
            for w in range(1, min(columns, 16) + 1):
                m = h * w
                if m * v + v + 1 > target.registers:
                    break
                full = -(-rows // h) * -(-columns // w) * -(-vectors // v)
                time = full * (max(m * v / 2, (m + v) / 2, 4 if m * v < 8 else 0) + 0.25) + 0.01 * h
                if time < best - 1e-9:
                    best, found = time, (h, w, v)
    return found


class Convolution:
    """What both kinds have in common: the result's space (n, y, x, channel), bias and elementwise steps."""

    def __init__(self, low: Lowering, group: Group, source: Place, window: Window, size: Pair):
        self.low, self.group, self.source, self.window, self.size = low, group, source, window, size
        self.anchor, self.width = group.anchor, low.module.target.lanes
        self.batch, self.channels = group.out.shape[:2]
        self.bias = self.anchor.args[2] if self.anchor.runs(convolution) else None
        self.panels = self.packed_weights()

    def begin(self, step: Step) -> None:
        """The arrays, in the step that writes the result."""
        self.step, self.f = step, step.f
        self.low.memory.use(self.source.buffer)
        self.pieces = Pieces(step, self.group, self.group.out.shape)
        self.made = self.anchor.outs[0]
        self.biases = None if self.bias is None else step.pointer(step.place(self.bias))
        self.x, self.w = step.pointer(self.source), step.pointer(self.panels)

    def packed_weights(self) -> Buffer:
        raise NotImplementedError

    def place_of(self, n: Number, y: Number, x: Number, channel: Number) -> Number:
        """The place of the window's first number for the pixel (y, x)."""
        (a, b), (sy, sx) = self.source.strides[2:], self.window.stride
        return index(
            self.source.offset, [n, y, x, channel], [self.source.strides[0], a * sy, b * sx, self.source.strides[1]]
        )

    def start(self, channel: Number, valid: int) -> llvm.Value:
        if self.biases is None:
            return self.f.number(FLOAT, 0.0, self.width)
        return self.f.load(self.biases, channel, FLOAT, self.width, valid)

    def finish(self, x: llvm.Value, at: tuple[Number, Number, Number, Number], valid: int) -> None:
        """Elementwise steps and store of a vector of channels. at: (n, y, x, channel)."""
        n, row, column, channel = at
        where = [n, channel, column] if len(self.made.shape) == 3 else [n, channel, row, column]
        self.pieces.finish({self.made: x}, Lanes(where, 1, self.width, valid))

    def over_pixels(self, tile: Pair, body: Any) -> None:
        """body(n, y, x, height, width) for all tiles of all images; the parts share rows of tiles."""
        (rows, columns), (h, w) = self.size, tile
        f, full = self.f, rows // h

        def line(n: Number, y: Number, height: int) -> None:
            if not isinstance(columns, int):
                in_tiles(f, 0, columns, w, lambda x, width: body(n, y, x, height, width))
                return
            whole = columns // w * w
            f.loop(0, whole, w, lambda x: body(n, y, x, height, w))
            if whole < columns:
                body(n, y, whole, height, columns - whole)

        def lines(k: Number) -> None:
            n, y = (f.whole(k) // full, f.whole(k) % full) if self.batch > 1 else (0, f.whole(k))
            line(n, y * h, h)

        if full:
            start, stop = self.step.share(self.batch * full)
            f.loop(start, stop, 1, lines)
        if rows % h:
            start, stop = self.step.share(self.batch)
            f.loop(start, stop, 1, lambda n: line(n, full * h, rows % h))


class Direct(Convolution):
    """A lane for each filter."""

    def packed_weights(self) -> Buffer:
        """For each group of channels the panels of its filters: (kernel rows, kernel columns, channels) in length."""
        weight, target = self.anchor.args[1], self.low.module.target
        self.filters, self.depth = self.sizes_of_group(weight)
        self.vectors = -(-self.filters // target.lanes)
        pixels = self.size if self.batch > 1 or self.size[0] > 1 else (1, self.size[1])
        *self.tile, self.together = tile_of(target, *pixels, self.vectors)
        together, width = self.together, self.width

        def pack(w: np.ndarray) -> np.ndarray:
            return np.concatenate([packed(matrix, width, together) for matrix in self.matrices(w)])

        return self.low.derived(pack, (weight,))

    def sizes_of_group(self, weight: Value) -> Pair:
        """(filters, channels) of each group."""
        return weight.shape[0] // self.window.groups, weight.shape[1]

    def matrices(self, w: np.ndarray) -> list[np.ndarray]:
        """For each group the matrix (window and channels, filters) of the weights (O, C, *kernel)."""
        parts = np.split(w.reshape(*w.shape[:2], -1), self.window.groups)
        return [part.transpose(2, 1, 0).reshape(-1, part.shape[0]) for part in parts]

    def write(self) -> None:
        f, together = self.f, self.together
        whole = self.filters // (together * self.width)

        def of_group(g: Number) -> None:
            f.loop(0, whole, 1, lambda j: self.panel(g, j, together, together * self.width))
            rest = self.filters - whole * together * self.width
            if rest:
                self.panel(g, whole, -(-rest // self.width), rest)

        f.loop(0, self.window.groups, 1, of_group)

    def panel(self, g: Number, j: Number, vectors: int, valid: int) -> None:
        """All pixels of some filters of a group."""
        f, length = self.f, self.depth * int(np.prod(self.window.kernel))
        first = f.whole(j) * (length * self.together * self.width) + f.whole(g) * (length * self.vectors * self.width)
        panel = f.at(self.w, first, FLOAT)
        channel = f.whole(j) * (self.together * self.width) + f.whole(g) * self.filters
        spans = [min(self.width, valid - v * self.width) for v in range(vectors)]
        biases = [self.start(channel + v * self.width, spans[v]) for v in range(vectors)]

        def tile(n: Number, y: Number, x: Number, height: int, width: int) -> None:
            self.one(panel, (n, y, x), (height, width), f.whole(g) * self.depth, channel, spans, biases)

        self.over_pixels((self.tile[0], self.tile[1]), tile)

    def one(
        self, panel: llvm.Value, at: tuple, tile: Pair, depth: Number, channel: Number, spans: list[int], biases: list
    ) -> None:
        f, (n, y, x) = self.f, at
        places = [(j, i) for j in range(tile[0]) for i in range(tile[1])]
        base = f.whole(self.place_of(n, y, x, depth))
        (a, b), (sy, sx) = self.source.strides[2:], self.window.stride
        rows = [base + (j * a * sy + i * b * sx) for j, i in places]
        (kh, kw), (dy, dx) = self.window.kernel, self.window.dilation
        lengths = [(kh, a * dy), (kw, b * dx), (self.depth, self.source.strides[1])]
        vectors = len(spans)
        sums = accumulate(
            f, self.x, rows, [n for n in lengths if n[0] > 1] or lengths[-1:], panel, vectors, biases * len(rows)
        )
        for m, (j, i) in enumerate(places):
            for v in range(vectors):
                where = n, f.whole(y) + j, f.whole(x) + i, channel + v * self.width
                self.finish(sums[m * vectors + v], where, spans[v])


class Depthwise(Convolution):
    """A filter for each channel: a lane for each channel."""

    def packed_weights(self) -> Buffer:
        """(window, channels), filled up to whole vectors."""
        self.padded = -(-self.channels // self.width) * self.width

        def pack(w: np.ndarray) -> np.ndarray:
            flat = w.reshape(len(w), -1).T
            return np.ascontiguousarray(np.pad(flat, ((0, 0), (0, self.padded - len(w)))))

        return self.low.derived(pack, (self.anchor.args[1],))

    def write(self) -> None:
        if self.source.strides[1] != 1:
            raise NotNative("channels that are not neighbours")
        f, whole = self.f, self.channels // self.width
        f.loop(0, whole, 1, lambda j: self.vector(f.whole(j) * self.width, self.width))
        if self.channels % self.width:
            self.vector(whole * self.width, self.channels % self.width)

    def vector(self, channel: Number, valid: int) -> None:
        """All pixels of a vector of channels."""
        f, (kh, kw) = self.f, self.window.kernel
        window = [(i, j) for i in range(kh) for j in range(kw)]
        bias = self.start(channel, valid)
        most = self.low.module.target.registers - 4
        known = self.size[1] if isinstance(self.size[1], int) else MANY_ROWS
        tile = 1, max(1, min(known, most // 2, 8))
        weights = (
            [f.load(self.w, f.whole(channel) + k * self.padded, FLOAT, self.width) for k in range(len(window))]
            if len(window) <= most // 2
            else None
        )

        def body(n: Number, y: Number, x: Number, height: int, width: int) -> None:
            self.one((n, y, x), width, channel, valid, window, weights, bias)

        self.over_pixels(tile, body)

    def one(
        self, at: tuple, count: int, channel: Number, valid: int, window: list[Pair], weights: Any, bias: llvm.Value
    ) -> None:
        f, (n, y, x) = self.f, at
        base = f.whole(self.place_of(n, y, x, channel))
        (a, b), (dy, dx), sx = self.source.strides[2:], self.window.dilation, self.window.stride[1]
        sums = [bias] * count
        for k, (i, j) in enumerate(window):
            w = weights[k] if weights else f.load(self.w, f.whole(channel) + k * self.padded, FLOAT, self.width)
            for m in range(count):
                pixel = f.load(self.x, base + (i * dy * a + (j * dx + m * sx) * b), FLOAT, self.width, valid)
                sums[m] = llvm.multiply_add(pixel, w, sums[m])
        for m in range(count):
            self.finish(sums[m], (n, y, f.whole(x) + m, channel), valid)
