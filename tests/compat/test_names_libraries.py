"""Names of torch that libraries import, with what they do (issue 35)."""

from __future__ import annotations

import importlib

import pytest

import rushlight
from rushlight import nn
from rushlight.distributions import constraints


def part(path):
    return importlib.import_module(f"rushlight.{path}")


@pytest.mark.parametrize(
    "path",
    [
        "serialization:MAP_LOCATION",
        "serialization:FILE_LIKE",
        "hub:urlparse",
        "nn.parameter:UninitializedTensorMixin",
        "nn.modules.padding:_ReflectionPadNd",
        "nn.modules.padding:_ReplicationPadNd",
        "amp.grad_scaler:OptState",
        "utils._pytree:_list_flatten",
        "utils.data.fetcher:_DatasetKind",
        "cuda:_lazy_call",
        "xpu:get_device_capability",
        "accelerator:set_device_index",
        "fx.experimental.symbolic_shapes:guard_or_true",
        "_C:TensorType",
        "_tensor_str:printoptions",
        "_utils:_get_device_index",
        "_functorch.vmap:_broadcast_to_and_flatten",
        "nn.modules.module:_global_parameter_registration_hooks",
        "utils._pytree:Context",
        "utils._pytree:_register_pytree_node",
    ],
)
def test_names_that_libraries_import(path):
    home, name = path.split(":")
    assert hasattr(part(home), name)


def test_classes_of_constraints():
    assert isinstance(constraints.real, constraints._Real)
    assert not isinstance(constraints.boolean, constraints._Real)
    assert isinstance(constraints.positive, constraints._GreaterThan)
    assert repr(constraints.simplex) == "Simplex()"
    assert (constraints.simplex.event_dim, constraints.one_hot.is_discrete) == (1, True)


def test_checks_with_a_class_of_errors():
    rushlight._check_with(KeyError, True)
    with pytest.raises(KeyError, match="no"):
        rushlight._check_with(KeyError, False, lambda: "no")
    with pytest.raises(KeyError, match="no"):
        rushlight._check_tensor_all_with(KeyError, rushlight.tensor([True, False]), lambda: "no")
    with pytest.raises(TypeError):
        rushlight._check_tensor_all_with(KeyError, rushlight.ones(2))


@pytest.mark.parametrize("n", range(1, 9))
def test_prefixes_of_an_associative_function(n):
    scan = part("_higher_order_ops.associative_scan").associative_scan
    x = rushlight.rand(2, n, 2, 2, dtype=rushlight.float64)
    made = scan(lambda a, b: a @ b, x, 1)
    right = [x[:, 0]]
    for i in range(1, n):
        right.append(right[-1] @ x[:, i])
    rushlight.testing.assert_close(made, rushlight.stack(right, 1))
    rushlight.testing.assert_close(
        scan(lambda a, b: {"x": a["x"] + b["x"]}, {"x": x}, 1, reverse=True)["x"], x.flip(1).cumsum(1).flip(1)
    )


def test_an_exported_program():
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    x = rushlight.randn(5, 3)
    program = rushlight.export.export(model, (x,))
    assert isinstance(program, rushlight.export.ExportedProgram)
    assert rushlight.equal(program.module()(x), model(x))
    assert [*program.state_dict] == [*model.state_dict()]
    with pytest.raises(RuntimeError, match="module"):
        program(x)
    with pytest.raises(TypeError, match="tuple"):
        rushlight.export.export(model, x)


def test_a_layer_is_exported_and_traced_by_itself():
    layer, x = nn.Linear(3, 4), rushlight.randn(5, 3)
    traced = rushlight.fx.symbolic_trace(layer)
    assert "torch.nn.functional.linear" in traced.code
    assert rushlight.equal(traced(x), layer(x))


def test_types_of_containers():
    is_of = rushlight.jit.isinstance
    assert is_of([1], list[int])
    assert not is_of(["a"], list[int])
    assert is_of({"a": [1.0]}, dict[str, list[float]])
    assert is_of((1, "a"), tuple[int, str])
    assert is_of(None, int | None)
    assert not is_of((1,), tuple[int, int])


def test_contexts_that_decorate():
    base = part("utils._contextlib")._DecoratorContextManager
    seen = []

    class Noted(base):
        def __enter__(self):
            seen.append("in")

        def __exit__(self, *error):
            seen.append("out")

    @Noted()
    def double(x):
        return 2 * x

    @Noted()
    def count():
        yield 1
        yield 2

    assert double(2) == 4
    assert seen == ["in", "out"]
    assert [*count()] == [1, 2]
    assert seen == ["in", "out"] * 4


def test_repeats_alone_and_data_sets_of_a_type():
    assert rushlight.repeat_interleave(repeats=rushlight.tensor([1, 2])).tolist() == [0, 1, 1]
    data = rushlight.utils.data
    assert [c[int] for c in (data.Subset, data.ConcatDataset, data.StackDataset)]
    rushlight._dynamo.mark_dynamic(rushlight.ones(1))


def test_a_module_with_other_tensors_for_a_while():
    layer, weight = nn.Linear(2, 1, bias=False), rushlight.ones(1, 2)
    with part("nn.utils.stateless")._reparametrize_module(layer, {"weight": weight}):
        assert layer(rushlight.ones(2)).item() == 2
    assert layer.weight is not weight


def test_a_vision_transformer_with_convolutions_first():
    vit = part("vision.models.vision_transformer")
    stem = [vit.ConvStemConfig(4, 3, 2), vit.ConvStemConfig(8, 3, 4)]
    model = vit.VisionTransformer(16, 8, 1, 2, 8, 8, num_classes=3, conv_stem_configs=stem)
    assert model(rushlight.ones(1, 3, 16, 16)).shape == (1, 3)
    assert "conv_proj.conv_bn_relu_0.0.weight" in model.state_dict()


def test_functions_that_classes_can_override():
    overrides = part("overrides")
    found = overrides.get_overridable_functions()
    assert rushlight.add in found[rushlight]
    assert rushlight.tensor not in found[rushlight]
    assert rushlight.tensor in overrides.get_ignored_functions()
    assert overrides.get_testing_overrides()[rushlight.add](rushlight.ones(1), 2) == -1
    assert len(found[rushlight.Tensor]) > 300


def test_dtypes_of_which_only_the_name_exists():
    for name in ("quint4x2", "uint4", "int7", "bits16", "float4_e2m1fn_x2"):
        dtype = getattr(rushlight, name)
        assert (repr(dtype), dtype.itemsize) == (f"torch.{name}", 2 if name == "bits16" else 1)
        with pytest.raises(NotImplementedError):
            rushlight.ones(1, dtype=dtype)


def test_batched_tensors_by_hand():
    functorch = part("_C._functorch")
    remove = part("_functorch.vmap")._maybe_remove_batch_dim

    def per_sample(x):
        assert functorch.is_batchedtensor(x)
        assert (functorch.maybe_get_level(x), functorch.maybe_get_bdim(x)) == (1, 0)
        assert functorch.get_unwrapped(x).shape == (2, 3)
        columns = functorch._add_batch_dim(rushlight.arange(6.0).view(3, 2), 1, 1)
        assert columns.shape == (3,)
        assert functorch._remove_batch_dim(columns * 2, 1, 2, 1).tolist() == [[0, 2], [4, 6], [8, 10]]
        assert functorch._remove_batch_dim(rushlight.ones(5), 1, 2, 0).stride() == (0, 1)
        with pytest.raises(ValueError, match="can not return a BatchedTensor"):
            remove("f", x, 1, 2, None)
        with pytest.raises(RuntimeError, match="level 2"):
            functorch._add_batch_dim(rushlight.ones(2), 0, 2)
        return columns + x

    made = rushlight.vmap(per_sample)(rushlight.ones(2, 3))
    assert made.tolist() == [[1, 3, 5], [2, 4, 6]]
    plain = rushlight.ones(2)
    assert not functorch.is_batchedtensor(plain)
    assert functorch.maybe_get_level(plain) == -1
    with pytest.raises(RuntimeError, match="No wrappers present"):
        functorch.get_unwrapped(plain)


def test_swap_tensor():
    swap = part("nn.utils._named_member_accessor").swap_tensor
    m = nn.BatchNorm1d(2)
    new = rushlight.ones(2)
    old = m.weight
    assert swap(m, "weight", new) is old
    assert m._parameters["weight"] is new
    assert swap(m, "running_mean", None).tolist() == [0, 0]
    assert m.running_mean is None
    with pytest.raises(AttributeError, match="has no attribute `other`"):
        swap(m, "other", new)
    swap(m, "other", new, allow_missing=True)
    assert m.other is new
    with pytest.raises(TypeError, match="training"):
        swap(m, "training", new)
    for name in ("a.b", ""):
        with pytest.raises(KeyError):
            swap(m, name, new)


def test_hooks_of_registration_are_where_libraries_look():
    found = part("nn.modules.module")._global_buffer_registration_hooks
    handle = nn.modules.module.register_module_buffer_registration_hook(lambda m, name, b: b + 1)
    assert len(found) == 1
    m = nn.Module()
    m.register_buffer("b", rushlight.zeros(1))
    assert m.b.tolist() == [1]
    handle.remove()
    assert not found
