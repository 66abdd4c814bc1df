"""Trees of containers come apart and together as torch.utils._pytree's."""

from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest

import rushlight
from rushlight.base import pytree

Point = namedtuple("Point", "x y")
TREES = [
    1,
    None,
    (),
    [],
    {},
    (1, [2, 3]),
    {"b": 1, "a": (2,)},
    OrderedDict(z=1, y=[2]),
    Point(1, (2, 3)),
    deque([1, 2], 5),
    defaultdict(int, a=1, b=[2]),
    [None, {"a": None}],
]


@pytest.mark.parametrize("tree", TREES, ids=repr)
def test_together_again(tree, oracle):
    leaves, form = pytree.tree_flatten(tree)
    again = pytree.tree_unflatten(leaves, form)
    assert again == tree
    assert type(again) is type(tree)
    assert form == pytree.tree_structure(again)
    assert form.num_leaves == len(leaves)

    def torchs(torch):
        from torch.utils import _pytree

        leaves, form = _pytree.tree_flatten(tree)
        return [leaves, form.num_leaves, form.num_nodes, form.num_children]

    assert [leaves, form.num_leaves, form.num_nodes, form.num_children] == oracle(torchs)


def test_results_of_ops_are_containers():
    made = rushlight.tensor([[1.0, 3.0], [4.0, 2.0]]).max(0)
    negative = pytree.tree_map(lambda t: -t, made)
    assert type(negative) is type(made)
    assert negative.values.tolist() == [-4, -3]
    assert pytree.tree_leaves(rushlight.Size([2, 3])) == [2, 3]


def test_maps():
    tree = {"a": 1, "b": (2.0, "c")}
    assert pytree.tree_map_only(int, lambda n: n + 1, tree) == {"a": 2, "b": (2.0, "c")}
    assert pytree.tree_map_only((int, float), lambda n: -n, tree) == {"a": -1, "b": (-2.0, "c")}
    assert pytree.tree_map_only(lambda leaf: leaf == "c", str.upper, tree) == {"a": 1, "b": (2.0, "C")}
    assert pytree.tree_map(lambda a, b: (a, b), (1, 2), ([3], 4)) == ((1, [3]), (2, 4))
    assert pytree.tree_map(len, [(1, 2), (3,)], is_leaf=lambda t: isinstance(t, tuple)) == [2, 1]
    assert pytree.tree_all(bool, [1, 2])
    assert not pytree.tree_any(bool, [0, ()])
    seen = []
    assert pytree.tree_map_(seen.append, tree) is tree
    assert seen == [1, 2.0, "c"]


def test_a_class_of_ones_own():
    class Pair:
        def __init__(self, first, second):
            self.first, self.second = first, second

    pytree.register_pytree_node(Pair, lambda p: ([p.first, p.second], None), lambda leaves, _: Pair(*leaves))
    doubled = pytree.tree_map(lambda n: 2 * n, {"p": Pair(1, (2,))})["p"]
    assert (doubled.first, doubled.second) == (2, (4,))
    with pytest.raises(ValueError, match="already registered"):
        pytree.register_pytree_node(Pair, None, None)
    with pytest.raises(ValueError, match="flatten_with_keys_fn"):
        pytree.tree_leaves_with_path(Pair(1, 2))


def test_paths():
    tree = {"a": (1, [2]), "b": Point(3, 4)}
    pairs, form = pytree.tree_flatten_with_path(tree)
    assert [pytree.keystr(path) for path, _ in pairs] == ["['a'][0]", "['a'][1][0]", "['b'].x", "['b'].y"]
    assert [pytree.key_get(tree, path) for path, _ in pairs] == [1, 2, 3, 4] == pytree.tree_leaves(tree)
    assert pytree.tree_map_with_path(lambda path, leaf, other: (len(path), leaf + other), tree, tree)["a"] == (
        (2, 2),
        [(3, 4)],
    )


def test_a_leaf_stands_for_all_below_it():
    form = pytree.tree_structure(((1, 2), {"a": [3, 4]}))
    assert pytree._broadcast_to_and_flatten(0, form) == [0] * 4
    assert pytree._broadcast_to_and_flatten((0, {"a": None}), form) == [0, 0, None, None]
    assert pytree._broadcast_to_and_flatten((0, [None]), form) is None
    assert pytree._broadcast_to_and_flatten((0,), form) is None


@pytest.mark.parametrize(
    "call",
    [
        lambda p: p.tree_unflatten([1], p.tree_structure((1, 2))),
        lambda p: p.tree_unflatten([1], 3),
        lambda p: p.tree_map(lambda a, b: a, (1, 2), (1, 2, 3)),
        lambda p: p.tree_map(lambda a, b: a, (1, 2), [1, 2]),
        lambda p: p.tree_map(lambda a, b: a, {"a": 1}, {"b": 1}),
        lambda p: p.register_pytree_node(list, None, None),
    ],
)
def test_what_does_not_fit(call, oracle):
    def torchs(torch):
        from torch.utils import _pytree

        try:
            call(_pytree)
        except Exception as error:
            return [type(error).__name__, str(error).split(";")[0].split("(")[0]]

    name, words = oracle(torchs)
    with pytest.raises(Exception) as caught:
        call(pytree)
    assert type(caught.value).__name__ == name
    assert words in str(caught.value)
