"""softmax(q k^T scale + mask) v for each head, without the scores of all queries in memory.

Blocks of queries run in the lanes: the scores of a key and of all queries of a block are some vectors, so the softmax
needs sums along vectors nowhere, and only the block's queries are transposed. A few queries alone (one token of a
decoder) run one by one, with keys in the lanes."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from rushlight.compile.native.errors import NotNative
from rushlight.compile.native.loop_nest import Lanes, Pieces, index, load
from rushlight.compile.native.lowering import Lowering, Step, anchor
from rushlight.compile.native.packing import Packing, unraveled, wanted_order
from rushlight.compile.native.places import Place
from rushlight.compile.native.row_loops import F32, lane_numbers, larger
from rushlight.compile.native.rows import SINGLE, used_later
from rushlight.compile.native.schedule import Group
from rushlight.compile.native.tiles import accumulate, best_tile, dots, in_tiles
from rushlight.loops import llvm
from rushlight.loops.llvm import FLOAT, INT64, Number, multiply_add, repeated
from rushlight.ops.nn import attention as ops

ROOM_NUMBERS = 1 << 17  # scores of a block, which may be on the stack
CACHED_NUMBERS = 1 << 14  # a block has as many queries as leave its scores in the cache
CAUSAL_KEYS = 8  # keys of a tile: blocks end at multiples


@anchor(ops.attention)
def attention(low: Lowering, group: Group) -> None:
    tensors, causal, scale = group.anchor.args
    if used_later(low, group.anchor) or any(v.dtype != SINGLE for v in tensors) or 0 in group.out.shape:
        raise NotNative("attention in other dtypes, or with its log sums")
    q, k, v, *mask = [low.place(t) for t in tensors]
    if v.strides[-1] != 1:
        v = low.contiguous(tensors[2])
    low.make(group.out, wanted_order(low, group.out) or order_of(q))
    step = low.step()
    for place in (q, k, v, *mask):
        low.memory.use(place.buffer)
    queries = q.shape[-2]
    few = isinstance(queries, int) and queries * 4 <= low.module.target.lanes and q.strides[-1] == k.strides[-1] == 1
    (Few if few else Blocks)(step, group, (q, k, v), mask[0] if mask else None, causal, scale).write()


def order_of(x: Place) -> tuple[int, ...]:
    """The order of x's dimensions in memory."""
    return tuple(sorted(range(len(x.shape)), key=lambda d: (-x.strides[d], d)))


class Heads:
    """The arrays of all heads. L queries, S keys, E numbers of a key, F numbers of a value."""

    def __init__(self, step: Step, group: Group, tensors: tuple, mask: Place | None, causal: bool, scale: float):
        self.step, self.f, self.mask, self.causal, self.scale = step, step.f, mask, causal, scale
        self.q, self.k, self.v = tensors
        self.pointers = [step.pointer(x) for x in tensors]
        self.pieces, self.made = Pieces(step, group, group.out.shape), group.anchor.outs[0]
        self.lead = [*self.q.shape[:-2]]
        self.queries, self.keys = self.q.shape[-2], self.k.shape[-2]
        self.length, self.columns = self.q.shape[-1], self.v.shape[-1]
        self.width, self.target = step.f.module.target.lanes, step.f.module.target
        self.mask_strides = mask.spread((*self.lead, self.queries, self.keys)) if mask else ()
        self.head: list[Number] = []
        self.bases: list[Number] = []
        if self.k.shape[:-2] != self.q.shape[:-2] or self.v.shape[:-2] != self.q.shape[:-2] or not self.keys:
            raise NotNative("heads that broadcast, or no keys")

    def enter(self, i: Number) -> None:
        """The following code is for head i."""
        self.head = unraveled(i, self.lead)
        self.bases = [self.f.whole(index(x.offset, self.head, x.strides)) for x in (self.q, self.k, self.v)]

    def masked(self, score: llvm.Value, query: Number, key: Number, lanes: Lanes) -> llvm.Value:
        """The score times the scale, plus the mask; lanes run along queries (0) or keys (1)."""
        score = score * self.scale
        if self.mask is None:
            return score
        where = index(self.mask.offset, [*self.head, query, key], self.mask_strides)
        stride = self.mask_strides[len(self.head) + lanes.along]
        return score + load(self.f, self.step.pointer(self.mask), where, FLOAT, stride, lanes)

    def top(self, top: llvm.Value) -> llvm.Value:
        """The number that is subtracted from scores: 0 if a mask leaves no key."""
        return top if self.mask is None else llvm.select(top == -np.inf, self.f.number(FLOAT, 0.0, top.lanes), top)

    def inverse(self, total: llvm.Value) -> llvm.Value:
        if self.mask is not None:
            total = llvm.select(total == 0.0, self.f.number(FLOAT, 1.0, total.lanes), total)
        return 1.0 / total

    def zeros(self, count: int) -> list[llvm.Value]:
        return [self.f.number(FLOAT, 0.0, self.width)] * count


class Blocks(Heads):
    """Blocks of queries in the lanes."""

    def __init__(self, *given: Any):
        super().__init__(*given)
        self.vectors = self.vectors_of_a_block()
        self.block = self.vectors * self.width
        if any(isinstance(n, int) and n * self.block > ROOM_NUMBERS for n in (self.keys, self.length)):
            raise NotNative("attention to too many keys")
        self.packed = self.step.room(self.length * self.block)
        self.scores = self.step.room(self.keys * self.block)
        self.inverses = self.step.room(self.block)

    def vectors_of_a_block(self) -> int:
        """Vectors of queries in a block; one if the number of queries or keys is not known."""
        if not (isinstance(self.queries, int) and isinstance(self.keys, int)):
            return 1
        fit = max(1, CACHED_NUMBERS // (self.keys * self.width))
        return min(-(-self.queries // self.width), fit, 4)

    def write(self) -> None:
        """Threads share the blocks of all heads, or the heads if the number of queries is not known; the last block of
        a head may be smaller."""

        def head(i: Number) -> None:
            self.enter(i)
            in_tiles(self.f, 0, self.queries, self.block, self.one)

        if isinstance(self.queries, int):
            self.write_blocks()
        else:
            self.f.loop(*self.step.share(prod(self.lead)), 1, head)

    def write_blocks(self) -> None:
        heads, whole = prod(self.lead), self.queries // self.block

        def full(i: Number) -> None:
            self.enter(i // whole if whole > 1 else i)
            self.one(i % whole * self.block if whole > 1 else 0, self.block)

        def last(i: Number) -> None:
            self.enter(i)
            self.one(whole * self.block, self.queries - whole * self.block)

        if whole:
            self.f.loop(*self.step.share(heads * whole), 1, full)
        if whole * self.block < self.queries:
            self.f.loop(*self.step.share(heads), 1, last)

    def one(self, first: Number, valid: int) -> None:
        """The block of `valid` queries from `first`."""
        vectors = -(-valid // self.width)
        row, column = self.q.strides[-2:]
        packing = Packing(self.f, self.pointers[0], (column, row), (self.length, valid), vectors)
        packing.write(self.bases[0] + self.f.whole(first) * row, self.packed)
        keys: Number = self.keys if isinstance(self.keys, int) else self.f.whole(self.keys)
        if self.causal:
            keys = llvm.smaller(self.f.whole(first) + vectors * self.width, keys)
        tops = self.write_scores(first, valid, vectors, keys)
        self.write_weights([self.top(t) for t in tops], vectors, keys)
        self.write_sums(first, valid, vectors, keys)

    def write_scores(self, first: Number, valid: int, vectors: int, keys: Number) -> list[llvm.Value]:
        """Scores of the keys, a vector of queries at a time. Returns the largest of each query."""
        f, (row, column) = self.f, self.k.strides[-2:]
        tile = CAUSAL_KEYS if self.causal else best_tile(self.target, self.keys, vectors)[0]

        def several(key: Number, tops: list[llvm.Value], count: int) -> list[llvm.Value]:
            rows = [self.bases[1] + (f.whole(key) + m) * row for m in range(count)]
            start = self.zeros(count * vectors)
            sums = accumulate(f, self.pointers[1], rows, [(self.length, column)], self.packed, vectors, start)
            for m in range(count):
                for v in range(vectors):
                    score = self.score(sums[m * vectors + v], first, key + m, v, valid)
                    f.store(score, self.scores, ((f.whole(key) + m) * vectors + v) * self.width)
                    tops[v] = larger(score, tops[v])
            return tops

        tops = [f.number(FLOAT, -np.inf, self.width)] * vectors
        whole = keys // tile * tile
        tops = f.loop(0, whole, tile, lambda key, *tops: several(key, [*tops], tile), tops)
        if not isinstance(keys, int):
            return f.loop(whole, keys, 1, lambda key, *tops: several(key, [*tops], 1), tops)
        return several(whole, tops, keys - whole) if whole < keys else tops

    def score(self, x: llvm.Value, first: Number, key: Number, v: int, valid: int) -> llvm.Value:
        """The score of a key and a vector of queries; minus infinity for keys after a query's own place."""
        f, query = self.f, first + v * self.width
        lanes = Lanes([], 0, self.width, min(self.width, valid - v * self.width))
        score = self.masked(x, query, key, lanes)
        if not self.causal:
            return score
        later = lane_numbers(f, INT64, self.width) < repeated(f.whole(key) - query, self.width)
        return llvm.select(later, f.number(FLOAT, -np.inf, self.width), score)

    def write_weights(self, tops: list[llvm.Value], vectors: int, keys: Number) -> None:
        """exp(score - top), and the inverse sums."""
        f = self.f

        def weights(key: Number, *sums: llvm.Value) -> list[llvm.Value]:
            made = []
            for v in range(vectors):
                place = (f.whole(key) * vectors + v) * self.width
                weight = F32["exp"](f.load(self.scores, place, FLOAT, self.width) - tops[v])
                f.store(weight, self.scores, place)
                made.append(sums[v] + weight)
            return made

        for v, total in enumerate(f.loop(0, keys, 1, weights, self.zeros(vectors))):
            f.store(self.inverse(total), self.inverses, v * self.width)

    def write_sums(self, first: Number, valid: int, vectors: int, keys: Number) -> None:
        """The values times the weights."""
        f, row = self.f, self.v.strides[-2]
        tile, wide = best_tile(self.target, valid, -(-self.columns // self.width))

        def some(query: Number, count: int, column: int) -> None:
            own = min(wide * self.width, self.columns - column)
            several = -(-own // self.width)
            panel = f.at(self.pointers[2], self.bases[2] + column, FLOAT)
            rows = [f.whole(query) + m for m in range(count)]
            lengths = [(keys, vectors * self.width)]
            sums = accumulate(
                f, self.scores, rows, lengths, panel, several, self.zeros(count * several), row, own
            )  # fmt: skip
            for m in range(count):
                inverse = repeated(f.load(self.inverses, rows[m], FLOAT), self.width)
                for v in range(several):
                    at = [*self.head, first + query + m, column + v * self.width]
                    lanes = Lanes(at, len(at) - 1, self.width, min(self.width, own - v * self.width))
                    self.pieces.finish({self.made: sums[m * several + v] * inverse}, lanes)

        whole = valid // tile * tile
        for column in range(0, self.columns, wide * self.width):
            f.loop(0, whole, tile, lambda query, column=column: some(query, tile, column))
            if whole < valid:
                some(whole, valid - whole, column)


class Few(Heads):
    """Some queries alone, with keys in the lanes."""

    def __init__(self, *given: Any):
        super().__init__(*given)
        self.scores = self.step.room(self.keys + self.width)
        if self.keys > ROOM_NUMBERS or self.columns > 8 * self.width:
            raise NotNative("attention to too many keys")

    def write(self) -> None:
        def head(i: Number) -> None:
            self.enter(i)
            for query in range(self.queries):
                keys = min(self.keys, query + 1) if self.causal else self.keys
                self.write_sums(query, keys, self.write_weights(query, keys))

        self.f.loop(*self.step.share(prod(self.lead)), 1, head)

    def write_weights(self, query: int, keys: int) -> llvm.Value:
        """exp(score - top) of the keys. Returns the inverse sum."""
        f, whole = self.f, keys // self.width * self.width
        low = f.number(FLOAT, -np.inf, self.width)
        tops = f.loop(0, whole, self.width, lambda key, top: [self.some(query, key, self.width, top)], [low])
        if whole < keys:
            tops = [self.some(query, whole, keys - whole, tops[0])]
        top = repeated(self.top(llvm.total(tops[0], larger)), self.width)

        def weights(key: Number, total: llvm.Value) -> list[llvm.Value]:
            weight = F32["exp"](f.load(self.scores, key, FLOAT, self.width) - top)
            f.store(weight, self.scores, key)
            return [total + weight]

        (total,) = f.loop(0, -(-keys // self.width) * self.width, self.width, weights, self.zeros(1))
        return self.inverse(llvm.total(total))

    def some(self, query: int, key: Number, valid: int, top: llvm.Value) -> llvm.Value:
        """The scores of a vector of keys. Returns the largest until now, lane by lane."""
        f, row = self.f, self.k.strides[-2]
        rows = [self.bases[1] + (f.whole(key) + min(n, valid - 1)) * row for n in range(self.width)]
        line = self.pointers[0], self.bases[0] + query * self.q.strides[-2]
        score = dots(f, line, self.pointers[1], rows, self.length)
        score = self.masked(score, query, key, Lanes([], 1, self.width, valid))
        if valid < self.width:
            inside = f.mask(FLOAT, valid, self.width)[1]
            score = llvm.select(inside, score, f.number(FLOAT, -np.inf, self.width))
        f.store(score, self.scores, key)
        return larger(score, top)

    def write_sums(self, query: int, keys: int, inverse: llvm.Value) -> None:
        """The values times the weights: keys in turn add to some sums of their own, since a sum waits for the one
        before."""
        f, row = self.f, self.v.strides[-2]
        vectors = -(-self.columns // self.width)
        spans = [min(self.width, self.columns - v * self.width) for v in range(vectors)]
        chains = max(1, 8 // vectors)

        def add(key: Number, sums: list[llvm.Value], count: int) -> list[llvm.Value]:
            for c in range(count):
                weight = repeated(f.load(self.scores, key + c, FLOAT), self.width)
                base = self.bases[2] + (f.whole(key) + c) * row
                for v in range(vectors):
                    value = f.load(self.pointers[2], base + v * self.width, FLOAT, self.width, spans[v])
                    sums[c * vectors + v] = multiply_add(value, weight, sums[c * vectors + v])
            return sums

        whole = keys // chains * chains
        start = self.zeros(chains * vectors)
        sums = f.loop(0, whole, chains, lambda key, *sums: add(key, [*sums], chains), start)
        sums = add(whole, sums, keys - whole)
        for v in range(vectors):
            total = sum(sums[v + vectors :: vectors], start=sums[v]) * inverse
            at = [*self.head, query, v * self.width]
            self.pieces.finish({self.made: total}, Lanes(at, len(at) - 1, self.width, spans[v]))
