"""torch.utils._pytree: its private functions, which libraries import, beside torch's."""

from __future__ import annotations

import time
from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest

import rushlight.utils._pytree as ours

Pair = namedtuple("Pair", "a b")
TREE = {"a": (1, [2, 3]), "b": OrderedDict(c=4), "d": deque([5], maxlen=2)}


def answers(p):
    form = p.tree_structure(TREE)
    return {
        "namedtuple": p._namedtuple_flatten_with_keys(Pair(1, 2))[0][0][1],
        "back": tuple(p._namedtuple_unflatten([1, 2], Pair)),
        "tuple": [str(k) for k, _ in p._tuple_flatten_with_keys((1, 2))[0]],
        "deque": list(p._deque_unflatten(*p._deque_flatten(deque([1, 2], maxlen=3)))),
        "defaultdict": dict(p._defaultdict_unflatten(*p._defaultdict_flatten(defaultdict(int, a=1)))),
        "ordereddict": list(p._ordereddict_unflatten(*p._ordereddict_flatten(OrderedDict(a=1)))),
        "is namedtuple": [p.is_namedtuple(x) for x in (Pair(1, 2), Pair, (1,), tuple)],
        "is structseq": [p.is_structseq(x) for x in (time.localtime(), time.struct_time, Pair(1, 2), ())],
        "leaves": p.arg_tree_leaves(1, [2, 3], x={"y": 4}),
        "map_only": [p.map_only(int)(lambda x: x + 1)(x) for x in (1, "a")],
        "key_get": p.key_get(TREE, p.tree_leaves_with_path(TREE)[1][0]),
        "tuple form": p.treespec_tuple([p.treespec_leaf()]) == p.tree_structure((1,)),
        "dict form": p.treespec_dict(a=p.treespec_leaf()) == p.tree_structure({"a": 1}),
        "printed": p.treespec_pprint(form),
        "json": p.treespec_dumps(form),
        "loaded": p.treespec_loads(p.treespec_dumps(form)) == form,
        "is leaf": [p._is_leaf(x) for x in (1, [1], None)],
    }


def test_private_functions(torch):
    import torch.utils._pytree as theirs

    expected = answers(theirs)
    for name, found in answers(ours).items():
        assert found == expected[name], name


def test_constants_and_dataclasses():
    from dataclasses import dataclass

    @dataclass(frozen=True)
    class Setting:
        name: str

    @dataclass
    class Batch:
        x: int
        y: int
        note: object = None

    ours.register_constant(Setting)
    ours.register_dataclass(Batch)
    assert ours.is_constant_class(Setting)
    leaves, form = ours.tree_flatten([Setting("a"), Batch(1, 2)])
    assert leaves == [1, 2]
    assert ours.tree_unflatten([3, 4], form) == [Setting("a"), Batch(3, 4)]
    assert [ours.keystr(path) for path, _ in ours.tree_leaves_with_path(Batch(1, 2))] == [".x", ".y"]
    for cls in (Setting, Batch):
        ours._deregister_pytree_node(cls)
    assert ours.tree_leaves(Batch(1, 2)) == [Batch(1, 2)]
    with pytest.raises(TypeError, match="__eq__"):
        ours.register_constant(object)
