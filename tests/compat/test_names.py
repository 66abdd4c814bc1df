"""Names of torch that programs call now and then: what they make, against torch."""

from __future__ import annotations

import importlib
import inspect
import math
import subprocess
import sys
import time

import numpy as np
import pytest

import rushlight
from rushlight import nn
from rushlight.nn import functional as F


def made(lib):
    w, at, starts = lib.arange(12.0).reshape(6, 2), lib.tensor([0, 2, 5, 1, 1]), lib.tensor([0, 2, 2])
    x = lib.arange(6.0).reshape(2, 3)
    for mode in (0, 1, 2):
        yield from (lib.embedding_bag(w, at, starts, False, mode, False, None, False, pad) for pad in (None, 1))
    yield lib.embedding_renorm_(x.clone(), lib.tensor([1]), 1.0, 2.0)
    yield from (lib.norm_except_dim(x, 2, dim) for dim in (0, 1, -1))
    yield from (lib.frobenius_norm(x, [0, 1]), lib.frobenius_norm(x, [1], True))
    yield from (lib.max_pool1d_with_indices(x, 2), lib.native_dropout(x, 0.5, False), lib.native_dropout(x, 0.0, True))
    yield lib.addmv_(lib.ones(2), x, lib.ones(3))
    yield from (
        lib.sym_max(1, 2.0),
        lib.sym_min(True, 2),
        lib.sym_int(2.7),
        lib.sym_float(2),
        lib.sym_not(True),
        lib.sym_ite(True, 1, 2),
        lib.sym_sum([1, 2]),
        lib.sym_sqrt(4),
    )
    yield lib.compiler.is_exporting()
    lib.manual_seed(0)
    for f in (lib.feature_dropout, lib.feature_dropout_, lib.dropout_, lib.alpha_dropout_, lib.feature_alpha_dropout_):
        yield f(lib.ones(3, 2, 2, 2), 0.5, True)
    yield lib.native_dropout(lib.ones(4, 4), 0.3, True)


def plain(value):
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    return (str(value.dtype), value.tolist()) if hasattr(value, "tolist") else (type(value), value)


def test_what_they_make(torch):
    for ours, theirs in zip(made(rushlight), made(torch), strict=True):
        assert repr(ours) == repr(theirs)
        a, b = plain(ours), plain(theirs)
        assert a == b or np.allclose(np.array(a[1], float), np.array(b[1], float))


def test_gradients_go_through():
    x = rushlight.ones(3, 4, requires_grad=True)
    out, kept = rushlight.native_dropout(x, 0.5, True)
    out.sum().backward()
    assert rushlight.equal(x.grad, kept * 2.0)
    w = rushlight.ones(3, 2, requires_grad=True)
    rushlight.embedding_bag(w, rushlight.tensor([0, 2, 2]), rushlight.tensor([0, 1]))[0].sum().backward()
    assert w.grad.tolist() == [[1, 1], [0, 0], [2, 2]]


def test_memory_that_nobody_has_set(torch):
    def run(lib):
        filling = importlib.import_module(f"{lib.__name__}.utils.deterministic")
        assert filling.fill_uninitialized_memory is True
        try:
            lib.use_deterministic_algorithms(True)
            asked = [
                t.tolist()
                for t in (
                    lib.empty(2),
                    lib.empty(2, dtype=lib.int32),
                    lib.empty(1, dtype=lib.bool),
                    lib.empty_like(lib.ones(2)),
                    lib.ones(2).new_empty(3),
                    lib.empty_strided((2,), (1,)),
                    lib.empty(2, dtype=lib.bfloat16),
                )
            ]
            filling.fill_uninitialized_memory = False
            lib.empty(2)
            with pytest.raises((TypeError, RuntimeError)):
                filling.fill_uninitialized_memory = 1
        finally:
            filling.fill_uninitialized_memory = True
            lib.use_deterministic_algorithms(False)
        return asked

    assert repr(run(rushlight)) == repr(run(torch))
    rushlight.ones(1000)
    assert not any(math.isnan(rushlight.empty(1000).fill_(1)[0]) for _ in range(3))


def test_a_loop_of_functions():
    i, x = rushlight.while_loop(
        lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (rushlight.tensor(0), rushlight.ones(1))
    )
    assert (i.item(), x.item()) == (3, 8)


def of_weights(lib):
    """Recurrent layers as functions of their weights, of sequences and of packed rows."""
    lib.manual_seed(0)
    for name, f, states in (("LSTM", lib.lstm, 2), ("GRU", lib.gru, 1), ("RNN", lib.rnn_tanh, 1)):
        for bias, both in ((True, False), (False, True)):
            layer = getattr(lib.nn, name)(3, 4, 2, bias=bias, bidirectional=both)
            x, h = lib.randn(5, 2, 3), [lib.ones(2 + 2 * both, 2, 4)] * states
            hx, packed = h if states == 2 else h[0], lib.nn.utils.rnn.pack_padded_sequence(x, lib.tensor([5, 3]))
            rest = (layer._flat_weights, bias, 2, 0.0, True, both)
            yield from f(x, hx, *rest, False)
            yield from f(packed.data, packed.batch_sizes, hx, *rest)
            yield from f(x.transpose(0, 1), hx, *rest, True)
    x, w = lib.randn(1, 2, 6, 6), lib.randn(2, 2, 3, 3)
    yield lib.convolution(x, w, None, [2, 2], [1, 1], [1, 1], True, [1, 1], 1)
    yield lib.convolution(x, w, lib.ones(2), [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
    yield lib.affine_grid_generator(lib.ones(1, 2, 3), [1, 1, 2, 2], False)
    yield from (lib.nuclear_norm(x[0, 0]), lib.nuclear_norm(x, (2, 3)), lib.nuclear_norm(x[0, 0], [0, 1], True))
    mask = importlib.import_module(f"{lib.__name__}.nn.attention.bias")
    for causal in (mask.causal_lower_right(4, 6), mask.causal_upper_left(4, 6)):
        q, k = lib.randn(1, 1, 4, 8), lib.randn(1, 1, 6, 8)
        yield lib.nn.functional.scaled_dot_product_attention(q, k, k, attn_mask=causal)


def test_functions_of_weights(torch):
    for ours, theirs in zip(of_weights(rushlight), of_weights(torch), strict=True):
        np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("settings", [{"k": 2}, {"k": 2, "largest": False}, {"k": 1, "B": True}, {"X": True}])
def test_some_eigenvalues(torch, settings):
    def run(lib):
        lib.manual_seed(1)
        a = lib.randn(9, 9, dtype=lib.float64)
        given = {"B": lib.diag(lib.arange(1.0, 10.0, dtype=lib.float64)), "X": lib.randn(9, 3, dtype=lib.float64)}
        return a @ a.T, {name: given[name] if value is True else value for name, value in settings.items()}

    a, given = run(rushlight)
    values, vectors = rushlight.lobpcg(a, **given)
    b = given.get("B", rushlight.eye(9, dtype=rushlight.float64))
    np.testing.assert_allclose((a @ vectors).numpy(), (b @ vectors * values).numpy(), atol=1e-9)
    np.testing.assert_allclose((vectors.T @ b @ vectors).numpy(), np.eye(len(values)), atol=1e-9)
    a, given = run(torch)
    np.testing.assert_allclose(values.numpy(), torch.lobpcg(a, **given)[0].numpy(), rtol=1e-3)
    with pytest.raises(ValueError, match="3 x the number of requested eigenpairs"):
        rushlight.lobpcg(rushlight.eye(4), 2)


def test_checkpoints_with_a_policy():
    ck, x = rushlight.utils.checkpoint, rushlight.ones(2, requires_grad=True)

    def contexts():
        return ck.create_selective_checkpoint_contexts(lambda ctx, op, *args, **kwargs: ck.CheckpointPolicy.MUST_SAVE)

    ck.checkpoint(lambda x: x.exp().sin(), x, use_reentrant=False, context_fn=contexts).sum().backward()
    assert rushlight.allclose(x.grad, (x.exp().cos() * x.exp()).detach())
    with pytest.raises(TypeError, match="must be either a function or a list"):
        ck.create_selective_checkpoint_contexts(3)


def test_shapes_in_a_graph(torch):
    def run(lib):
        passes = importlib.import_module(f"{lib.__name__}.fx.passes.shape_prop")
        graph = lib.fx.symbolic_trace(lib.nn.Sequential(lib.nn.Linear(3, 4), lib.nn.ReLU()))
        passes.ShapeProp(graph).propagate(lib.ones(2, 3))
        return [
            (
                n.name,
                tuple(n.meta["tensor_meta"].shape),
                str(n.meta["tensor_meta"].dtype),
                n.meta["tensor_meta"].requires_grad,
                n.meta["tensor_meta"].stride,
            )
            for n in graph.graph.nodes
        ]

    assert run(rushlight) == run(torch)


def test_keys_that_go_with_their_tensors():
    weak = importlib.import_module("rushlight.utils.weak")
    x, y = rushlight.ones(2), rushlight.ones(2)
    d = weak.WeakTensorKeyDictionary({x: 1})
    d[y] = 2
    assert (d[x], d[y], len(d), x in d, list(d)[0] is x) == (1, 2, 2, True, True)
    del x
    assert len(d) == 1
    del d[y]
    assert y not in d
    assert not list(d)


def test_what_the_backends_say():
    b = importlib.import_module("rushlight.backends")
    assert b.cpu.get_cpu_capability() == "DEFAULT"
    assert not b.mha.get_fastpath_enabled()
    assert not b.cuda.is_flash_attention_available()
    assert b.nnpack.set_flags(False) == (False,)
    with b.mkl.verbose(b.mkl.VERBOSE_ON):
        assert b.quantized.engine in b.quantized.supported_engines
    assert rushlight.cuda.get_arch_list() == []
    with pytest.raises(AssertionError, match="is_available"):
        rushlight.cuda.utilization()
    assert "rushlight version" in importlib.import_module("rushlight.utils.collect_env").get_pretty_env_info()


@pytest.mark.parametrize(
    ("ask", "hint"),
    [
        (lambda: rushlight.nn.functional.soft_max, "did you mean torch.nn.functional.softmax?"),
        (lambda: rushlight.cuda.is_availabel, "torch.cuda.is_available"),
        (lambda: rushlight.eig, "torch.linalg.eig"),
        (lambda: rushlight.quantization.prepare_qat, "half()"),
        (lambda: rushlight.nested, "pad_sequence"),
        (lambda: rushlight.masked.sort, "mask="),
        (lambda: rushlight.optim.Adamm, "torch.optim.Adam"),
        (lambda: rushlight.linalg.qwerty, "rushlight check"),
    ],
)
def test_a_missing_name_says_what_to_do(ask, hint):
    with pytest.raises(AttributeError) as told:
        ask()
    assert hint in str(told.value)


def test_models_of_a_folder(tmp_path):
    (tmp_path / "parts.py").write_text("SIZE = 3\n")
    (tmp_path / "hubconf.py").write_text(
        "import rushlight\ndependencies = ['numpy']\nfrom parts import SIZE\n"
        "def line(out, bias=True):\n    return rushlight.nn.Linear(SIZE, out, bias)\n"
    )
    made = rushlight.hub.load(str(tmp_path), "line", 2, source="local", bias=False)
    assert made.weight.shape == (2, 3)
    assert made.bias is None
    for error, words, ask in (
        (RuntimeError, "Cannot find callable row", lambda: rushlight.hub.load(str(tmp_path), "row", source="local")),
        (NotImplementedError, "source='local'", lambda: rushlight.hub.load("pytorch/vision", "resnet18")),
        (FileNotFoundError, "hubconf.py", lambda: rushlight.hub.load(str(tmp_path / "no"), "row", source="local")),
        (ValueError, "Unknown source", lambda: rushlight.hub.load("a", "b", source="gitlab")),
    ):
        with pytest.raises(error, match=words):
            ask()


def exits(i, codes):
    if codes[i] == "raise":
        raise ValueError("by intent")
    if codes[i] == "wait":
        time.sleep(600)
    sys.exit(codes[i])


def test_processes_that_do_not_come_to_their_end(capfd):
    mp = importlib.import_module("rushlight.multiprocessing")
    begun = mp.spawn(exits, ((0, 0),), 2, join=False)
    assert begun.join()
    assert len(set(begun.pids())) == 2
    with pytest.raises(mp.ProcessRaisedException) as told:
        mp.start_processes(exits, (("wait", "raise"),), 2)
    assert told.value.error_index == 1
    with pytest.raises(mp.ProcessExitedException) as told:
        mp.spawn(exits, ((3,),), 1)
    assert told.value.exit_code == 3
    begun = mp.spawn(exits, (("wait",),), 1, join=False)
    assert not begun.join(0.01)
    begun.processes[0].terminate()
    with pytest.raises(mp.ProcessExitedException, match="SIGTERM"):
        begun.join()


def test_what_torch_was_built_with():
    names = ("has_lapack", "has_mkl", "has_openmp", "has_spectral")
    assert [getattr(rushlight, name) for name in names] == [True, False, False, True]


PARTS = [
    "_C", "_dynamo.config", "_inductor.config", "_subclasses.fake_tensor", "backends.cuda", "backends.cudnn",
    "backends.mps", "cpu.amp.autocast_mode", "cuda.amp.grad_scaler", "distributed.constants",
    "distributed.fsdp.fully_sharded_data_parallel", "distributed.nn.functional", "jit.annotations",
    "utils.data._utils.collate", "utils.tensorboard.writer",
]  # fmt: skip


@pytest.mark.origin("courses")
@pytest.mark.parametrize("name", PARTS)
def test_what_is_a_module_in_torch_can_be_imported(name):
    parent, _, own = name.rpartition(".")
    part = importlib.import_module(f"rushlight.{name}")
    assert part is getattr(importlib.import_module(f"rushlight.{parent}".rstrip(".")), own)


# a stand-in for torch of somebody else's: each module of torch is the one of that name in rushlight
ALIAS = """
import importlib, importlib.util, sys

class Loader:
    def __init__(self, name): self.name = name
    def create_module(self, spec): return importlib.import_module("rushlight" + self.name)
    def exec_module(self, module): pass

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            return importlib.util.spec_from_loader(name, Loader(name[len("torch"):]))

sys.meta_path.insert(0, Finder())
import torch.backends.cudnn as cudnn, torch._inductor.config as settings, torch._dynamo.config
from torch.utils.data._utils.collate import default_collate
cudnn.benchmark = settings.coordinate_descent_tuning = True
print(torch.backends.cudnn.benchmark, torch._inductor.config.coordinate_descent_tuning)
"""


@pytest.mark.origin("courses")
def test_parts_are_found_under_an_alias():
    done = subprocess.run([sys.executable, "-c", ALIAS], capture_output=True, text=True, timeout=600, check=False)
    assert done.stdout == "True True\n", done.stderr


IMPORTED = [
    "hub._get_torch_home", "autograd.function.InplaceFunction", "nn.modules.module._addindent", "cuda.nvtx.range_push",
    "vision.datasets.vision.VisionDataset", "vision.datasets.folder.is_image_file",
    "vision.models._utils._make_divisible", "storage._load_from_bytes", "_tensor._rebuild_from_type_v2",
]  # fmt: skip


@pytest.mark.origin("courses")
@pytest.mark.parametrize("name", IMPORTED)
def test_names_that_programs_import(name):
    home, _, own = name.rpartition(".")
    assert callable(getattr(importlib.import_module(f"rushlight.{home}"), own))


@pytest.mark.origin("courses")
def test_helpers_do_what_torchs_do():
    class Square(importlib.import_module("rushlight.autograd.function").InplaceFunction):
        @staticmethod
        def forward(ctx, x, inplace=False):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return 2 * ctx.saved_tensors[0] * g, None

    x = rushlight.tensor([3.0], requires_grad=True)
    Square.apply(x, True).backward()
    assert x.grad.item() == 6
    assert nn.modules.module._addindent("a\nb", 3) == "a\n   b"
    assert rushlight.vision.models._utils._make_divisible(37, 8) == 40
    assert rushlight.vision.datasets.folder.is_image_file("A.PNG")
    with pytest.raises(RuntimeError, match="NVTX functions not installed"):
        rushlight.cuda.nvtx.range_push("x")
    with pytest.raises(TypeError, match=r"torch.cuda.FloatTensor not available"):
        rushlight.cuda.FloatTensor(2)


@pytest.mark.origin("programs")
def test_names_of_notebooks(monkeypatch):
    jit, hub = rushlight.jit, rushlight.hub
    layer = rushlight.nn.Linear(2, 2)
    assert jit.wait(jit.fork(max, 1, 2)) == 2
    assert jit.optimize_for_inference(jit.freeze(jit.script(layer.eval()))) is layer
    assert jit.trace_module(layer, {}) is layer
    with pytest.raises(RuntimeError, match="eval mode"):
        jit.freeze(layer.train())
    monkeypatch.setattr("rushlight.serialization.hub.chosen", None)
    hub.set_dir("somewhere")
    assert hub.get_dir() == "somewhere"
    from rushlight.optim.adamw import AdamW

    assert AdamW is rushlight.optim.AdamW
    assert rushlight.utils.tensorboard.writer.SummaryWriter is rushlight.utils.tensorboard.SummaryWriter


def of_settings(t):
    """Settings of the compiler that scripts make, devices that they ask for, and files of torch that they import
    from."""
    inductor = importlib.import_module(f"{t.__name__}._inductor")
    inductor.config.triton.cudagraphs = inductor.config.coordinate_descent_tuning = True
    found = [
        t.mps.is_available(),
        t.xpu.is_available(),
        t.xpu.device_count(),
        t.cpu.device_count(),
        t.cpu.current_device(),
    ]
    collate = importlib.import_module(f"{t.__name__}.utils.data._utils").collate
    found.append(collate.default_collate([1, 2]).tolist())
    both = [t.arange(6.0).reshape(2, 3), t.ones(2)]
    flat = importlib.import_module(f"{t.__name__}._utils")._flatten_dense_tensors(both)
    back = importlib.import_module(f"{t.__name__}._utils")._unflatten_dense_tensors(flat, both)
    return [*found, flat.tolist(), [b.tolist() for b in back], t.functional.norm(both[0]).item() > 7.4]


@pytest.mark.origin("scripts")
def test_files_and_devices_that_scripts_name(oracle):
    assert of_settings(importlib.import_module("rushlight")) == oracle(of_settings)
    with pytest.raises(AttributeError, match="torch.nn.functional.relu"):
        rushlight.functional.relu
    with pytest.raises(AssertionError, match="not compiled with XPU"):
        rushlight.xpu.current_device()


@pytest.mark.origin("suites")
def test_names_that_stand_in_two_places():
    assert F.grad is nn.grad
    assert rushlight.chalf is rushlight.complex32
    assert rushlight.utils.data.DataLoader[int].__origin__ is rushlight.utils.data.DataLoader


@pytest.mark.origin("model zoos")
def test_what_reversible_networks_import():
    from rushlight.utils.checkpoint import detach_variable, get_device_states, set_device_states

    assert get_device_states(rushlight.ones(1)) == ([], [])
    assert set_device_states([], []) is None
    x = rushlight.ones(2, requires_grad=True)
    y, three = detach_variable((x * 2, 3))
    assert (y.is_leaf, y.requires_grad, three) == (True, True, 3)
    with pytest.raises(RuntimeError, match="Only tuple of tensors"):
        detach_variable([x])


@pytest.mark.origin("model zoos")
def test_collate_by_its_path():
    assert rushlight.utils.data._utils.collate.default_collate([1, 2]).tolist() == [1, 2]
    assert inspect.ismodule(rushlight.utils.data._utils.worker)


@pytest.mark.origin("model zoos")
def test_what_layers_import():
    from rushlight.nn.modules.transformer import _get_activation_fn, _get_clones

    assert _get_activation_fn("gelu") is rushlight.nn.functional.gelu
    one, two = _get_clones(rushlight.nn.Linear(1, 1), 2)
    assert one.weight is not two.weight
    assert rushlight.cuda._initialized is False
    assert rushlight._C._jit_set_autocast_mode(False) is False
    assert rushlight.storage.TypedStorage is type(rushlight.ones(1).storage())


@pytest.mark.origin("model zoos")
def test_old_questions_about_backends():
    vars(rushlight).pop("has_mps", None)
    with pytest.warns(UserWarning, match="'has_mps' is deprecated"):
        assert rushlight.has_mps is False
    with pytest.raises(AttributeError):
        rushlight.backends.has_nothing
