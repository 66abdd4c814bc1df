"""What libraries on top of torch import and call: transformers, timm, Pyro, GPyTorch, Captum, Kornia, torchinfo,
Ignite."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from rushlight import distributed, distributions, nn, optim
from rushlight.autograd import custom_ops as library
from rushlight.autograd import gradcheck
from rushlight.distributed.fsdp import FullyShardedDataParallel, fully_shard
from rushlight.distributed.optim import ZeroRedundancyOptimizer
from rushlight.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from rushlight.futures import Future, collect_all, wait_all
from rushlight.nn.attention.flex_attention import create_block_mask, create_mask, flex_attention
from rushlight.utils.hooks import RemovableHandle
from tests.support.programs import Programs

program = Programs()


def heads(lib, n=3, h=2):
    x = lib.linspace(-2.0, 2.0, 2 * h * n * 4, dtype=lib.float64).sin().reshape(2, h, n, 4)
    return x, (x * 3).cos(), x * 2 + 1


@program
def flexible_attention(lib):
    from importlib import import_module

    flex = import_module(f"{lib.__name__}.nn.attention.flex_attention")
    q, k, v = heads(lib)
    slopes = lib.tensor([0.5, 0.25], dtype=lib.float64)

    def alibi(score, b, h, q_idx, kv_idx):
        return score + slopes[h] * (kv_idx - q_idx)

    def causal(b, h, q_idx, kv_idx):
        return q_idx >= kv_idx

    def later(b, h, q_idx, kv_idx):
        return q_idx > kv_idx  # the first query sees nothing

    found = [flex.flex_attention(q, k, v), flex.flex_attention(q, k, v, alibi, scale=0.3)]
    for mask in (causal, later, flex.and_masks(causal, later), flex.or_masks(causal, later), flex.noop_mask):
        block = flex.create_block_mask(mask, None, None, 3, 3, device="cpu")
        found.append(flex.flex_attention(q, k, v, alibi, block))
    lse = flex.flex_attention(
        q, k, v, block_mask=flex.create_block_mask(causal, 2, 2, 3, 3, device="cpu"), return_lse=True
    )
    found += [*lse, flex.flex_attention(q, k[:, :1], v[:, :1], enable_gqa=True)]
    wide = flex.create_block_mask(causal, 1, 1, 300, 200, device="cpu")
    return [
        *found,
        wide.to_dense(),
        wide.sparsity(),
        list(wide.shape),
        flex.create_mask(causal, 1, None, 2, 3, device="cpu"),
    ]


@program
def own_ops(lib):
    """An op with gradients of its own, which NumPy computes."""

    @lib.library.custom_op("rushlight_tests::cube", mutates_args=(), schema="(Tensor x, float factor=1.0) -> Tensor")
    def cube(x, factor=1.0):
        return lib.from_numpy(np.asarray(x.numpy() ** 3 * factor))

    def keep(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.factor = inputs[1]

    x = lib.tensor([1.0, -2.0], dtype=lib.float64, requires_grad=True)
    before = cube(x.detach(), 2.0)
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        cube(x).sum().backward()
    cube.register_autograd(lambda ctx, g: (3 * ctx.factor * ctx.saved_tensors[0] ** 2 * g, None), setup_context=keep)
    lib.library.register_fake("rushlight_tests::cube", lambda x, factor=1.0: lib.empty_like(x))
    lib.ops.rushlight_tests.cube(x, 0.5).sum().backward()
    return [before, x.grad]


@program
def ops_by_schema(lib):
    """Ops that a schema names, with kernels of their own, or made of ops; samples of vmap one by one."""
    library = lib.library.Library("rushlight_schema", "DEF")
    library.define("plus(Tensor x, int n=1, *, float? scale=None) -> Tensor")
    library.define("twice(Tensor x) -> Tensor")
    library.define("fill(Tensor(a!) x, int[2] k=[1, 2]) -> ()")
    library.impl("plus", lambda x, n=1, *, scale=None: lib.from_numpy((x.numpy() + n) * (scale or 1.0)), "CPU")
    library.impl("twice", lambda x: x + x, "CompositeImplicitAutograd")
    library.impl("fill", lambda x, k=(1, 2): x.fill_(sum(k)) and None, "CPU")
    lib.library.register_fake("rushlight_schema::plus", lambda x, n=1, *, scale=None: lib.empty_like(x))
    lib.library.define("rushlight_schema::half", "(Tensor x) -> Tensor")
    lib.library.impl("rushlight_schema::half", "cpu")(lambda x: lib.from_numpy(x.numpy() / 2))
    lib.library.register_autograd("rushlight_schema::half", lambda ctx, g: g / 2)
    ops, x, filled = lib.ops.rushlight_schema, lib.ones(2, 3, requires_grad=True), lib.zeros(1)
    ops.fill(filled)
    (ops.twice(x) * ops.half(x)).sum().backward()
    meta = ops.plus.default(lib.empty(2, 5, device="meta"), 3)
    return [
        ops.plus(x.detach()),
        ops.plus(x.detach(), 3, scale=0.5),
        x.grad,
        filled,
        list(meta.shape),
        str(meta.device),
        lib.vmap(ops.half)(lib.ones(3, 2)),
        type(ops.half(x).grad_fn).__name__,
    ]


@program
def limits_of_dtypes(lib):
    names = [
        "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float16", "bfloat16",
        "float32", "float64",
    ]  # fmt: skip
    found = [lib.finfo(getattr(lib, name)) for name in names]
    return [[float(x) for x in (f.bits, f.eps, f.max, f.min, f.tiny, f.resolution)] for f in found] + [
        repr(lib.complex32),
        repr(lib.qint8),
        lib.complex32.is_complex,
        lib.float8_e5m2.itemsize,
        lib.ones(1).dtype in (lib.complex32, lib.float8_e5m2),
    ]


@program
def written_through_expand(lib):
    """Where every element is there once, the look may be written to."""
    x = lib.arange(3.0)
    x.expand(1, -1).copy_(lib.tensor([[5.0, 6.0, 7.0]]))
    x.expand(3)[0] = 9
    y = lib.zeros(1).expand(1, 1)
    y += 1
    return [x, y]


@program
def futures(lib):
    f, g = lib.futures.Future(), lib.futures.Future()
    twice = f.then(lambda done: done.value() * 2)
    both = lib.futures.collect_all([f, g])
    f.set_result(3)
    seen = [f.done(), g.done(), both.done(), twice.wait()]
    g.set_result(4)
    return [*seen, [one.wait() for one in both.wait()], lib.futures.wait_all([f, g])]


test_like_torch = program.test()


def test_parts_for_devices():
    scatter, gather = nn.parallel.scatter_gather.scatter, nn.parallel.scatter_gather.gather
    parts = scatter((rushlight.arange(5), "same"), [0, 1])
    assert [(p[0].tolist(), p[1]) for p in parts] == [([0, 1, 2], "same"), ([3, 4], "same")]
    whole = gather([p[:1] for p in parts])
    assert whole[0].tolist() == [0, 1, 2, 3, 4]
    given, named = nn.parallel.scatter_gather.scatter_kwargs((rushlight.arange(4),), {"flag": True}, [0, 1])
    assert [(p[0].tolist(), n) for p, n in zip(given, named)] == [([0, 1], {"flag": True}), ([2, 3], {"flag": True})]
    assert nn.parallel.parallel_apply([len, sum], [[1, 2], [3, 4]]) == [2, 7]


def test_handles():
    hooks, others = {}, {}
    handle = RemovableHandle(hooks, extra_dict=others)
    hooks[handle.id], others[handle.id] = len, len
    assert isinstance(nn.Linear(1, 1).register_forward_hook(print), RemovableHandle)
    assert not isinstance(3, RemovableHandle)
    with handle:
        assert hooks
    assert (hooks, others) == ({}, {})


def test_futures_that_fail():
    f = Future()
    with pytest.raises(RuntimeError, match="no value yet"):
        f.value()
    after = f.then(lambda done: done.wait())
    f.set_exception(ValueError("broken"))
    with pytest.raises(RuntimeError, match="running the callback: ValueError: broken"):
        after.wait()
    with pytest.raises(ValueError, match="broken"):
        wait_all([f])
    with pytest.raises(RuntimeError, match="only be marked completed once"):
        f.set_result(1)
    assert collect_all([]).wait() == []
    assert rushlight.Future is Future


def test_constraints_of_ones_own():
    """Each class of constraints has its own transform, also where they are instances without a name."""

    class First(distributions.constraints.Constraint):
        pass

    class Second(distributions.constraints.Constraint):
        pass

    registry = distributions.biject_to
    registry.register(First(), lambda c: distributions.ExpTransform())
    registry.register(Second(), lambda c: distributions.SigmoidTransform())
    assert isinstance(registry(First()), distributions.ExpTransform)
    assert isinstance(registry(Second()), distributions.SigmoidTransform)
    of_torch = registry(distributions.constraints.greater_than(0.0))
    assert isinstance(of_torch.parts[0], distributions.ExpTransform)


def test_memory_of_files(tmp_path):
    """What safetensors' own reader calls."""
    path = tmp_path / "numbers"
    np.arange(4, dtype=np.float32).tofile(path)
    memory = rushlight.ones(1).untyped_storage().from_file(str(path), shared=False, nbytes=16)
    part = rushlight.asarray(memory.untyped()[4:12], dtype=rushlight.uint8).view(dtype=rushlight.float32)
    assert part.tolist() == [1.0, 2.0]
    part[0] = 7
    assert np.fromfile(path, np.float32)[1] == 1
    assert rushlight.tensor(memory, dtype=rushlight.uint8).tolist() == memory.tolist()


def test_safetensors_reads_tensors(tmp_path):
    safetensors = pytest.importorskip("safetensors")
    rushlight.save({"w": rushlight.arange(6.0).reshape(2, 3)}, tmp_path / "w.safetensors")
    with safetensors.safe_open(tmp_path / "w.safetensors", framework="numpy") as file:
        assert file.get_tensor("w").tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.fixture
def world(tmp_path):
    distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    yield
    distributed.destroy_process_group()


def test_one_process_shares_with_nobody(world):
    model = FullyShardedDataParallel(fully_shard(nn.Linear(2, 1)))
    optimizer = ZeroRedundancyOptimizer(model.parameters(), optim.Adam, lr=0.1)
    before = model.module.weight.detach().clone()
    model(rushlight.ones(1, 2)).sum().backward()
    assert float(model.clip_grad_norm_(0.5)) == pytest.approx(3**0.5)
    with model.no_sync():
        optimizer.step()
    assert np.allclose(model.module.weight.detach(), before - 0.1, atol=1e-6)
    state = optimizer.state_dict()
    optimizer.load_state_dict(state)
    assert optimizer.optim.state_dict()["state"].keys() == {0, 1}
    out = rushlight.empty(2)
    distributed.all_to_all_single(out, rushlight.ones(2))
    assert out.tolist() == [1, 1]
    assert distributed.get_process_group_ranks() == [0]
    assert distributed.Backend("GLOO") == distributed.Backend.GLOO


def test_what_is_not_there_says_so():
    for call in (
        DTensor,
        lambda: rushlight.zeros(1, dtype=rushlight.float8_e5m2),
        lambda: rushlight.ones(1).to(rushlight.complex32),
    ):
        with pytest.raises(NotImplementedError, match="not supported|do(es)? not exist"):
            call()
    for call in (lambda: fully_shard(nn.Linear(1, 1)), lambda: distribute_tensor(rushlight.ones(1))):
        with pytest.raises(ValueError, match="process group has not been initialized"):
            call()
    with pytest.raises(RuntimeError, match="does not exist"):
        library.register_autograd("rushlight_tests::nothing", print)
    with pytest.raises(ValueError, match="namespace::name"):
        library.custom_op("nothing", print, mutates_args=())


def test_marks_and_questions():
    assert rushlight.fx.wrap(len) is len
    assert (Shard(1).is_shard(1), Shard(1).is_shard(0), Replicate().is_replicate()) == (True, False, True)
    assert rushlight.jit.ignore(drop=True)(len) is rushlight.jit.ignore(len) is len
    assert rushlight.jit.Final[bool]
    assert rushlight._C._get_tracing_state() is None
    assert not rushlight._dynamo.is_compiling()
    assert rushlight.torch is rushlight
    rushlight._assert(True, "fine")
    with pytest.raises(AssertionError, match="wrong"):
        rushlight._assert(False, "wrong")
    with pytest.raises(RuntimeError, match="wrong"):
        rushlight._assert_async(rushlight.zeros(1), "wrong")
    with pytest.raises(AssertionError, match="not compiled with CUDA"):
        rushlight.cuda.Stream()
    assert not isinstance(3, (rushlight.SymInt, rushlight.cuda.CUDAGraph))
    assert rushlight.hub.HASH_REGEX.search("resnet18-f37072fd.pth").group(1) == "f37072fd"


def test_flexible_attention_is_attention_and_differentiates():
    q, k, v = heads(rushlight)
    mask = create_block_mask(lambda b, h, q_idx, kv_idx: q_idx >= kv_idx, None, None, 3, 3)
    expected = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert np.allclose(flex_attention(q, k, v, block_mask=mask), expected)
    bias = rushlight.linspace(0, 1, 3, dtype=rushlight.float64, requires_grad=True)

    def call(q, k, v, bias):
        return flex_attention(q, k, v, lambda score, b, h, q_idx, kv_idx: score * bias[kv_idx], mask)

    assert gradcheck(call, tuple(t[:1, :1].detach().requires_grad_() for t in (q, k, v)) + (bias,))


def test_masks_are_made_at_once():
    calls = []

    def mask(b, h, q, kv):
        calls.append(kv.shape)
        return q >= kv

    assert create_mask(mask, 2, 3, 4, 5).shape == (2, 3, 4, 5)
    assert calls == [(5,)]
    assert repr(create_block_mask(mask, None, None, 256, 256)) == "BlockMask(shape=(1, 1, 256, 256), sparsity=25.00%)"
    with pytest.raises(ValueError, match="Try setting enable_gqa=True"):
        flex_attention(rushlight.ones(1, 2, 3, 4), rushlight.ones(1, 1, 3, 4), rushlight.ones(1, 1, 3, 4))


def test_an_optimizer_around_another():
    """As accelerate makes it: a subclass that does without Optimizer.__init__."""

    class Around(optim.Optimizer):
        def __init__(self, inner):
            self.inner = inner

        def step(self, closure=None):
            return self.inner.step(closure)

    w = rushlight.ones(1, requires_grad=True)
    around = Around(optim.SGD([w], lr=0.5))
    (w * 2).sum().backward()
    around.step()
    assert w.tolist() == [0.0]


def test_the_version_that_libraries_ask_for():
    from importlib.metadata import DistributionFinder

    from rushlight.compat.hook import finder
    from rushlight.version import torch_version

    (package,) = finder.find_distributions(DistributionFinder.Context(name="torch"))
    assert (package.version, package.name) == (torch_version, "torch")
    assert not list(finder.find_distributions(DistributionFinder.Context(name="numpy")))
    assert not list(finder.find_distributions())


def test_names_of_trees():
    from rushlight.utils import _pytree as tree

    kind = tree.SUPPORTED_NODES[tree._get_node_type({"a": 1})]
    children, context = kind.flatten_fn({"a": 1})
    assert kind.unflatten_fn(children, context) == {"a": 1}
    assert tree._dict_unflatten(*tree._dict_flatten({"a": 1})) == {"a": 1}
    assert [(k.key, v) for k, v in tree._dict_flatten_with_keys({"a": 1})[0]] == [("a", 1)]


def test_names_that_lightning_imports():
    from rushlight.utils.data import DataLoader, dataloader

    batches = iter(DataLoader([1, 2]))
    assert isinstance(batches, dataloader._BaseDataLoaderIter)
    assert not isinstance(batches, dataloader._MultiProcessingDataLoaderIter)
    assert rushlight._C._nn._parse_to("cpu", rushlight.float64)[:2] == (rushlight.device("cpu"), rushlight.float64)
    assert "NumPy" in rushlight.__config__.show()
    assert "get_num_threads" in rushlight.__config__.parallel_info()
    assert nn.parallel.distributed.DistributedDataParallel is nn.parallel.DistributedDataParallel
    with rushlight.autograd.profiler.emit_nvtx():
        pass
    from rushlight.utils import _python_dispatch as dispatch

    with pytest.raises(NotImplementedError, match="hint"), dispatch.TorchDispatchMode():  # ptflops inherits from it
        pass
    assert not dispatch.is_traceable_wrapper_subclass(rushlight.ones(1))
    observers = rushlight.ao.quantization  # fvcore asks for both
    assert all(issubclass(base, nn.Module) for base in (observers.ObserverBase, observers.FakeQuantizeBase))
    assert rushlight.overrides.is_tensor_like(rushlight.ones(1))
    assert not rushlight.overrides.has_torch_function((rushlight.ones(1),))


def test_names_that_graph_networks_import():
    rows = rushlight.tensor([0, 0, 2])
    ptr = rushlight._convert_indices_from_coo_to_csr(rows, 3)
    assert ptr.tolist() == [0, 2, 2, 3]
    assert rushlight._convert_indices_from_csr_to_coo(ptr, rows).tolist() == [[0, 0, 2], [0, 0, 2]]
    assert rushlight.jit._overload(len) is len
    with pytest.raises(RuntimeError, match="Tried to instantiate class 'pyg.Map'"):
        _ = rushlight.classes.pyg.Map
    aten = rushlight.ops.aten
    x = rushlight.arange(6.0).reshape(2, 3)
    assert aten.slice.Tensor(x, 1, 0, 3, 2).tolist() == [[0, 2], [3, 5]]
    assert aten.index.Tensor(x, [None, rushlight.tensor([2, 0])]).tolist() == [[2, 0], [5, 3]]
    copied, alias = aten._to_copy.default(x, dtype=rushlight.int64), aten.alias(x)
    assert (copied.dtype, copied.tolist()) == (rushlight.int64, [[0, 1, 2], [3, 4, 5]])
    assert alias.data_ptr() == x.data_ptr()
    assert aten._to_copy(x).data_ptr() != x.data_ptr()
    with pytest.raises(NotImplementedError, match="_sparse_mm_reduce_impl"):
        aten._sparse_mm_reduce_impl(x, x, "amax")


def test_elements_as_text():
    from rushlight._tensor_str import PRINT_OPTS, _tensor_str

    assert PRINT_OPTS.threshold == 1000
    assert _tensor_str(rushlight.eye(2), 0) == "[[1., 0.],\n [0., 1.]]"


def test_the_files_of_modules_can_be_looked_through():
    found = vars(rushlight.nn.modules.activation).values()
    assert {nn.ReLU, nn.Tanh} <= {value for value in found if isinstance(value, type)}


def test_tensors_grouped_for_optimizers():
    from rushlight.utils._foreach_utils import _group_tensors_by_device_and_dtype, _has_foreach_support

    a, b, c = rushlight.ones(1), rushlight.ones(1, dtype=rushlight.float64), rushlight.zeros(1)
    groups = _group_tensors_by_device_and_dtype([[a, b, c], [c, None, a], []], with_indices=True)
    (single, (lists, places)), (double, (others, _)) = groups.items()
    assert (single[1], double[1], places) == (rushlight.float32, rushlight.float64, [0, 2])
    assert lists[0][1] is c
    assert lists[1][0] is c
    assert lists[2] == []
    assert others[1] == [None]
    assert _has_foreach_support([a], a.device)


def test_names_that_libraries_import():
    from rushlight.distributed import rpc
    from rushlight.distributed._composable.fsdp import FSDPModule
    from rushlight.distributed._tensor import experimental
    from rushlight.distributions.transforms import _clipped_sigmoid
    from rushlight.utils.data.collate import np_str_obj_array_pattern

    assert not rpc.is_available()
    assert not isinstance(nn.Linear(1, 1), FSDPModule)
    with experimental.implicit_replication():
        assert 0 < _clipped_sigmoid(rushlight.tensor(-200.0)) < 1e-30
    assert _clipped_sigmoid(rushlight.tensor(200.0)) < 1
    assert np_str_obj_array_pattern.search("<U3")
    assert rushlight.serialization.DEFAULT_PROTOCOL == 2


def test_tags_of_ops():
    """Words for a compiler, which scripts that define ops hand over."""

    @rushlight.library.custom_op("tagged::twice", mutates_args=(), tags=(rushlight.Tag.pt2_compliant_tag,))
    def twice(x: rushlight.Tensor) -> rushlight.Tensor:
        return x * 2

    rushlight.library.define("tagged::thrice", "(Tensor x) -> Tensor", tags=rushlight.Tag.core)
    assert twice(rushlight.ones(2)).tolist() == [2, 2]


def test_an_optimizer_that_does_not_call_init():
    class Wrapped(optim.Optimizer):
        def __init__(self, inner):
            self._patch_step_function()
            self.inner, self.defaults = inner, inner.defaults

        param_groups = property(lambda self: self.inner.param_groups)
        state = property(lambda self: self.inner.state)

        def step(self, closure=None):
            return self.inner.step(closure)

    w = rushlight.ones(1, requires_grad=True)
    wrapped, steps = Wrapped(optim.SGD([w], lr=0.5)), []
    wrapped.register_step_post_hook(lambda *given: steps.append(1))
    w.grad = rushlight.ones(1)
    wrapped.step()
    assert (w.item(), steps) == (0.5, [1])
