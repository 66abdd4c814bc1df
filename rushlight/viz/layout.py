"""Layered layout of a graph, from the output down, after Sugiyama, Tagawa and Toda (1981).

Four steps: a layer for each box (its longest way from the output); points where long edges pass through the layers
between; an order in each layer with few crossings; then x, as near to the x of the neighbours as the order allows."""

from __future__ import annotations

from dataclasses import dataclass

GAP, ROW = 28.0, 44.0  # between boxes side by side, and between layers
# most sweeps over the layers, and points visited by them: a tangled graph gets fewer sweeps
MAX_SWEEPS, MAX_VISITED_POINTS = 12, 40_000
POINTS = 10_000  # most points for long edges


@dataclass
class Point:
    """A box, or a point where an edge passes a layer (`width` 0). `up`, `down`: its neighbours' numbers."""

    width: float
    height: float
    layer: int
    up: list[int]
    down: list[int]
    x: float = 0.0
    y: float = 0.0  # centre


def layout(sizes: list[tuple[float, float]], inputs: list[list[int]]) -> tuple[list[Point], list[list[int]]]:
    """Points (the boxes first, in their order) with x and y set, and the route of each edge as point numbers.

    `sizes` are (width, height); `inputs[i]` the boxes that box i points to. Edges come in that order."""
    depth = depths(inputs)
    points = [Point(w, h, layer, [], []) for (w, h), layer in zip(sizes, depth)]
    edges = [(i, j) for i, targets in enumerate(inputs) for j in targets]
    longest = limit([depth[j] - depth[i] for i, j in edges])
    routes = [route(points, i, j) if depth[j] - depth[i] <= longest else [i, j] for i, j in edges]
    rows = ordered(points)
    place_x(points, rows)
    place_y(points, rows)
    return points, routes


def framed(points: list[Point], margin: float) -> tuple[float, float]:
    """Move the points so that the picture has this margin; returns its width and height."""
    left = min(p.x - p.width / 2 for p in points) - margin
    for p in points:
        p.x, p.y = p.x - left, p.y + margin
    return max(p.x + p.width / 2 for p in points) + margin, max(p.y + p.height / 2 for p in points) + margin


def depths(inputs: list[list[int]]) -> list[int]:
    """For each box, the length of the longest path to it from a box that no other box points to."""
    waiting = [0] * len(inputs)
    for targets in inputs:
        for j in targets:
            waiting[j] += 1
    depth = [0] * len(inputs)
    ready = [i for i, count in enumerate(waiting) if not count]
    while ready:
        i = ready.pop()
        for j in inputs[i]:
            depth[j] = max(depth[j], depth[i] + 1)
            waiting[j] -= 1
            if not waiting[j]:
                ready.append(j)
    return depth


def limit(lengths: list[int]) -> int:
    """The length of the longest edge that gets points in the layers between, so that there are at most `POINTS` points.

    Longer edges are drawn straight and do not influence the order: 3,000 uses of one leaf would make millions of
    points."""
    room = POINTS
    for length in sorted(lengths):
        room -= length - 1
        if room < 0:
            return length - 1
    return max(lengths, default=0)


def route(points: list[Point], start: int, end: int) -> list[int]:
    """Link start to end through a new point in each layer between."""
    way = [start]
    for layer in range(points[start].layer + 1, points[end].layer):
        points.append(Point(0.0, 0.0, layer, [], []))
        way.append(len(points) - 1)
    way.append(end)
    for a, b in zip(way, way[1:]):
        points[a].down.append(b)
        points[b].up.append(a)
    return way


def ordered(points: list[Point]) -> list[list[int]]:
    """The layers, each ordered for few crossings: the best result of several sweeps down and up."""
    rows: list[list[int]] = [[] for _ in range(1 + max(p.layer for p in points))]
    for i in first_visits(points):
        rows[points[i].layer].append(i)
    best = [row[:] for row in rows]
    fewest = crossings(points, rows)
    for sweep in range(sweeps(points)):
        if not fewest:
            break
        down = sweep % 2 == 0
        place = {i: k for row in rows for k, i in enumerate(row)}
        for row in rows if down else reversed(rows):
            sort_by_neighbours(points, row, place, down)
        count = crossings(points, rows)
        if count < fewest:
            fewest, best = count, [row[:] for row in rows]
    return best


def sweeps(points: list[Point]) -> int:
    return max(2, min(MAX_SWEEPS, MAX_VISITED_POINTS // len(points)))


def first_visits(points: list[Point]) -> list[int]:
    """All points, depth first from those without a neighbour above: neighbours start side by side."""
    seen: dict[int, None] = {}
    stack = [i for i, p in enumerate(points) if not p.up][::-1]
    while stack:
        i = stack.pop()
        if i not in seen:
            seen[i] = None
            stack += reversed(points[i].down)
    return list(seen)


def sort_by_neighbours(points: list[Point], row: list[int], place: dict[int, int], down: bool) -> None:
    """Sort a layer by the mean place of each point's neighbours in the layer swept before; update `place`."""

    def mean(i: int) -> float:
        near = points[i].up if down else points[i].down
        return sum(place[j] for j in near) / len(near) if near else place[i]

    row.sort(key=mean)
    place.update(zip(row, range(len(row))))


def crossings(points: list[Point], rows: list[list[int]]) -> int:
    """The number of crossings of edges between neighbouring layers."""
    total = 0
    for upper, lower in zip(rows, rows[1:]):
        place = {i: k for k, i in enumerate(lower)}
        ends = [place[j] for i in upper for j in sorted(points[i].down, key=place.__getitem__)]
        total += inversions(ends)
    return total


def inversions(values: list[int]) -> int:
    """The number of pairs in the wrong order, counted with a Fenwick tree: n log n."""
    size = max(values, default=-1) + 1
    tree = [0] * (size + 1)
    total = 0
    for seen, value in enumerate(values):
        k, not_above = value + 1, 0
        while k:
            not_above += tree[k]
            k &= k - 1
        total += seen - not_above
        k = value + 1
        while k <= size:
            tree[k] += 1
            k += k & -k
    return total


def place_x(points: list[Point], rows: list[list[int]]) -> None:
    """Pack each layer, then move each point towards its neighbours, layer by layer, down and up."""
    for row in rows:
        settle(points, row, [0.0] * len(row))
    for sweep in range(2 * sweeps(points)):
        down = sweep % 2 == 0
        for row in rows if down else reversed(rows):
            settle(points, row, [wanted(points, i, down) for i in row])


def wanted(points: list[Point], i: int, down: bool) -> float:
    """The mean x of the neighbours in the previously swept layer; without any, the mean in the next layer."""
    p = points[i]
    near = (p.up or p.down) if down else (p.down or p.up)
    return sum(points[j].x for j in near) / len(near) if near else p.x


def settle(points: list[Point], row: list[int], goals: list[float]) -> None:
    """Set x in a layer as close to the goals as order and gaps allow: least squares, by pooling neighbours.

    After subtracting its offset in the packed row, each x must not be below the one before: isotonic regression.
    """
    offsets, at = [], 0.0
    for before, i in zip([None, *row], row):
        if before is not None:
            at += (points[before].width + points[i].width) / 2 + GAP
        offsets.append(at)
    pools: list[list[float]] = []  # weighted sum of goals, weight, members
    for i, goal, offset in zip(row, goals, offsets):
        weight = 1.0 if points[i].width else 4.0  # the points of a long edge keep it straight
        pools.append([weight * (goal - offset), weight, 1])
        while len(pools) > 1 and pools[-2][0] * pools[-1][1] > pools[-1][0] * pools[-2][1]:
            last = pools.pop()
            pools[-1] = [a + b for a, b in zip(pools[-1], last)]
    shifts = [total / weight for total, weight, members in pools for _ in range(int(members))]
    for i, shift, offset in zip(row, shifts, offsets):
        points[i].x = shift + offset


def place_y(points: list[Point], rows: list[list[int]]) -> None:
    top = 0.0
    for row in rows:
        height = max(points[i].height for i in row)
        for i in row:
            points[i].y = top + height / 2
        top += height + ROW
