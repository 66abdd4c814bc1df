"""Graphs grouped by nn module: the boxes of a module drawn as one, so that a large network stays readable."""

from __future__ import annotations

from rushlight.viz.graph import Box, Graph

MAX_BOXES = 40  # most boxes for an overview


def collapsed(found: Graph, depth: int | None = None) -> Graph:
    """The graph with one box for each module, `depth` names deep ("layer1.0" is 2 deep).

    `depth` None: the largest depth with at most 40 boxes, or 1. Modules are found by the names of their parameters. An
    op without parameters belongs to the innermost module that holds both the last op with parameters before it and the
    first after it. A module that is entered twice, with others in between, stays open: a single box would have to come
    before itself.
    """
    homes = modules_of(found)
    if depth is not None:
        return folded(found, homes, depth)
    deepest = max((len(home) for home in homes), default=0)
    for level in range(deepest, 0, -1):
        small = folded(found, homes, level)
        if len(small.boxes) <= MAX_BOXES:
            return small
    return folded(found, homes, 1)


def modules_of(found: Graph) -> list[tuple[str, ...]]:
    """The module of each box, as the parts of its name: ("layer1", "0", "conv1"); () for the whole network."""
    own = [own_module(found, i) for i in range(len(found.boxes))]
    order = sorted((i for i, b in enumerate(found.boxes) if b.kind != "leaf"), key=lambda i: found.boxes[i].seq)
    homes: list[tuple[str, ...]] = [home or () for home in own]
    before: dict[int, tuple[str, ...]] = {}
    last: tuple[str, ...] = ()
    for i in order:
        last = own[i] or last
        before[i] = last
    after: tuple[str, ...] = ()
    for i in reversed(order):
        after = own[i] or after
        if own[i] is None:  # at the ends of the network, one side is () and the op belongs to no module
            homes[i] = common({before[i], after})
    return homes


def own_module(found: Graph, i: int) -> tuple[str, ...] | None:
    """The module whose parameter the box is, or uses; None without parameters."""
    names = (
        [found.boxes[i].name]
        if found.boxes[i].kind == "leaf"
        else [found.boxes[j].name for j in found.inputs[i] if found.boxes[j].kind == "leaf"]
    )
    owners = {tuple(name.split(".")[:-1]) for name in names if "." in name}
    return common(owners) if owners else None


def common(names: set[tuple[str, ...]]) -> tuple[str, ...]:
    """The common prefix of all names."""
    first, *others = sorted(names)
    size = len(first)
    for other in others:
        size = next((k for k in range(min(size, len(other))) if first[k] != other[k]), min(size, len(other)))
    return first[:size]


def downward(inputs: list[list[int]]) -> list[int]:
    """All boxes in topological order, each before the boxes that get its gradients; without boxes on a cycle."""
    waiting = [0] * len(inputs)
    for targets in inputs:
        for j in targets:
            waiting[j] += 1
    order = [i for i, count in enumerate(waiting) if not count]
    for i in order:  # the list `order` grows in the loop
        for j in inputs[i]:
            waiting[j] -= 1
            if not waiting[j]:
                order.append(j)
    return order


def folded(found: Graph, homes: list[tuple[str, ...]], depth: int) -> Graph:
    """The graph with one box for each module whose name has at most `depth` parts, except modules that make a cycle."""
    groups = {i: ".".join(home[:depth]) for i, home in enumerate(homes) if home}
    groups.pop(0, None)  # the output stays
    while True:
        made, members = contracted(found, groups)
        on_circles = set(range(len(made.boxes))) - set(downward(made.inputs))
        tangled = {groups[i]: members[box] for box in on_circles for i in members[box] if i in groups}
        if not tangled:
            return made
        open_again = {name for name, inside in tangled.items() if entered_twice(found, inside)} or set(tangled)
        groups = {i: name for i, name in groups.items() if name not in open_again}


def entered_twice(found: Graph, members: list[int]) -> bool:
    """True if a path leads out of these boxes and back into them."""
    inside = set(members)
    todo = [j for i in members for j in found.inputs[i] if j not in inside]
    seen = set(todo)
    for i in todo:  # the list `todo` grows in the loop
        for j in found.inputs[i]:
            if j in inside:
                return True
            if j not in seen:
                seen.add(j)
                todo.append(j)
    return False


def contracted(found: Graph, groups: dict[int, str]) -> tuple[Graph, list[list[int]]]:
    """The graph with one box for the boxes of each group, and the members of every box."""
    places: dict[object, int] = {}
    place = [places.setdefault(groups.get(i, i), len(places)) for i in range(len(found.boxes))]
    members: list[list[int]] = [[] for _ in places]
    for i, p in enumerate(place):
        members[p].append(i)
    made = Graph([module_box(found, groups[m[0]], m) if m[0] in groups else found.boxes[m[0]] for m in members])
    for p, inside in enumerate(members):
        targets = dict.fromkeys(place[j] for i in inside for j in found.inputs[i] if place[j] != p)
        made.inputs.append([*targets] if inside[0] in groups else [place[j] for j in found.inputs[inside[0]]])
    return made, members


def module_box(found: Graph, name: str, members: list[int]) -> Box:
    """The box of a module, with the number of its ops and of its parameters' elements."""
    ops = [found.boxes[i] for i in members if found.boxes[i].kind != "leaf"]
    count = sum(found.boxes[i].numel for i in members if found.boxes[i].kind == "leaf")
    notes = [f"{len(ops)} op{'s' if len(ops) != 1 else ''}, {count:,} parameters"]
    return Box("module", name, ops[0].shape if ops else None, notes, ops[0].made_at if ops else "")
