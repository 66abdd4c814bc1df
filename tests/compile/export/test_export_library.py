"""Models as C libraries and as WebAssembly: the numbers of the model, from C, ctypes, Node and a browser."""

from __future__ import annotations

import ctypes
import functools
import http.server
import json
import shutil
import subprocess
import threading
from importlib.util import find_spec

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn

pytest.importorskip("llvmlite")
CC = next(filter(None, map(shutil.which, ("gcc", "cc", "clang"))), None)
NODE, CHROMIUM = shutil.which("node"), shutil.which("chromium")
WASM = shutil.which("wasm-ld") or find_spec("ziglang")
needs_cc = pytest.mark.skipif(not (CC or find_spec("ziglang")), reason="no C compiler")
needs_node = pytest.mark.skipif(not (NODE and WASM), reason="no Node, or no linker for WebAssembly")


def lenet():
    return nn.Sequential(
        *(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)),
    )


class Residual(nn.Module):
    """Two results, one in a dict; a batch norm that is folded; GELU."""

    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.second, self.head = nn.Conv2d(8, 3, 3, padding=1), nn.Linear(3, 5)

    def forward(self, image):
        x = image + self.second(nn.functional.gelu(self.norm(self.first(image))))
        return {"pixels": x, "label": self.head(x.mean((2, 3)))}


class Text(nn.Module):
    """A small transformer: two blocks, causal attention, the logits of the last token."""

    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(20, 16), nn.Embedding(8, 16)
        block = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, activation="gelu")
        self.blocks, self.head = nn.TransformerEncoder(block, 2), nn.Linear(16, 20)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))
        return self.head(self.blocks(x))[:, -1]


class Frames(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.head = nn.LSTM(5, 6, batch_first=True), nn.Linear(6, 3)

    def forward(self, x):
        return self.head(self.layer(x)[0][:, -1])


def fixed(model):
    """The model with random statistics, in evaluation mode."""
    for name, b in model.named_buffers():
        if name.endswith(("mean", "var")):
            b.copy_(torch.rand(b.shape) + 0.5)
    return model.eval()


CASES = {
    "lenet": (lenet, (1, 28, 28)),
    "residual": (Residual, (3, 9, 7)),
    "text": (Text, 8),
    "frames": (Frames, (7, 5)),
}


def case(name):
    torch.manual_seed(0)
    make, shape = CASES[name]
    model = fixed(make())
    x = torch.randint(0, 20, (3, shape)) if isinstance(shape, int) else torch.randn(3, *shape)
    found = model(x)
    want = {f"y_{k}": v for k, v in found.items()} if isinstance(found, dict) else {"y": found}
    return model, x, {k: v.detach().numpy() for k, v in want.items()}


def near(got, want):
    assert got.keys() == want.keys()
    for name, y in want.items():
        np.testing.assert_allclose(got[name].reshape(y.shape), y, rtol=1e-5, atol=1e-5)


def called(folder, x, shapes, samples=None):
    """The results of the library's function, called through ctypes."""
    name = folder.name
    function = getattr(ctypes.CDLL(str(next(folder.glob(f"lib{name}.*")))), name)
    text = (folder / f"{name}.h").read_text()
    workspace = np.empty(int(text.split("WORKSPACE_BYTES ")[1].split()[0]), np.uint8)
    outs = {k: np.full(shape, np.nan, np.float32) for k, shape in shapes.items()}
    pointers = [a.ctypes.data_as(ctypes.c_void_p) for a in (x, *outs.values(), workspace)]
    assert function(*([] if samples is None else [ctypes.c_int64(samples)]), *pointers) == 0
    return outs


@needs_cc
@pytest.mark.parametrize("name", CASES)
def test_a_library_computes_what_the_model_does(tmp_path, name):
    model, x, want = case(name)
    shapes = {k: y.shape for k, y in want.items()}
    place = torch.compiler.export(model, x, tmp_path / name, kind="c")
    near(called(place, x.numpy(), shapes), want)
    place = torch.compiler.export(model, x[:1], tmp_path / "any" / name, kind="c", dynamic=True)
    near(called(place, x.numpy(), shapes, 3), want)


C_PROGRAM = """
#include <stdio.h>
#include "lenet.h"
int main(void) {
    static float x[3 * 28 * 28], y[3 * 10];
    static _Alignas(64) char workspace[LENET_WORKSPACE_BYTES];
    if (fread(x, sizeof(float), 3 * 28 * 28, stdin) != 3 * 28 * 28) return 2;
    int failed = lenet(3, x, y, workspace);
    fwrite(y, sizeof(float), 3 * 10, stdout);
    return failed;
}
"""


@pytest.mark.skipif(not CC, reason="no C compiler")
def test_a_c_program_calls_a_library(tmp_path):
    model, x, want = case("lenet")
    place = torch.compiler.export(model, x, tmp_path / "lenet", kind="c", dynamic={"input": {0: "samples"}})
    (place / "main.c").write_text(C_PROGRAM)
    command = [CC, "-Wall", "-Werror", "-std=c11", "main.c", "-o", "main", "-L.", "-llenet", "-Wl,-rpath,."]
    subprocess.run(command, cwd=place, check=True)
    done = subprocess.run(["./main"], cwd=place, input=x.numpy().tobytes(), capture_output=True, check=True)
    near({"y": np.frombuffer(done.stdout, np.float32)}, want)


JAVASCRIPT = """
import load from "./{name}.mjs";
const run = await load();
const x = {x};
const results = run({given});
console.log(JSON.stringify(Object.fromEntries(Object.entries(results).map(([k, y]) => [k, [...y]]))));
"""


def in_node(folder, x, given):
    numbers = json.dumps(x.reshape(-1).tolist())
    array = f"BigInt64Array.from({numbers}, BigInt)" if x.dtype == np.int64 else f"Float32Array.from({numbers})"
    text = JAVASCRIPT.format(name=folder.name, x=array, given=given)
    (folder / "main.mjs").write_text(text)
    done = subprocess.run([NODE, "main.mjs"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {k: np.array(y, np.float32) for k, y in json.loads(done.stdout).items()}


@needs_node
@pytest.mark.parametrize("name", CASES)
def test_node_computes_what_the_model_does(tmp_path, name):
    model, x, want = case(name)
    place = torch.compiler.export(model, x, tmp_path / name, kind="wasm")
    assert sorted(f.name for f in place.iterdir()) == [f"{name}.mjs", f"{name}.wasm"]
    near(in_node(place, x.numpy(), "x"), want)
    place = torch.compiler.export(model, x, tmp_path / "any" / name, kind="wasm", dynamic=True)
    near(in_node(place, x.numpy(), "3, x"), want)


@needs_node
def test_javascript_refuses_arrays_of_another_length(tmp_path):
    place = torch.compiler.export(nn.Linear(3, 2), torch.ones(1, 3), tmp_path / "line", kind="wasm")
    with pytest.raises(AssertionError, match="RangeError: input has 2 numbers, not 3"):
        in_node(place, np.ones(2, np.float32), "x")


@needs_cc
@needs_node
def test_an_index_out_of_range_is_reported(tmp_path):
    model, x = nn.Embedding(5, 3), torch.tensor([[0, 4]])
    place = torch.compiler.export(model, x, tmp_path / "table", kind="c")
    assert "Returns 1 if an index is out of range" in (place / "table.h").read_text()
    near(called(place, x.numpy(), {"y": (1, 2, 3)}), {"y": model(x).detach().numpy()})
    with pytest.raises(AssertionError, match="1 == 0"):
        called(place, np.array([[0, 5]]), {"y": (1, 2, 3)})
    place = torch.compiler.export(model, x, tmp_path / "wasm" / "table", kind="wasm")
    with pytest.raises(AssertionError, match="RangeError: an index is out of range"):
        in_node(place, np.array([[-1, 0]]), "x")


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.mark.skipif(not (CHROMIUM and WASM), reason="no Chromium, or no linker for WebAssembly")
def test_a_browser_computes_what_the_model_does(tmp_path):
    api = pytest.importorskip("playwright.sync_api")
    model, x, want = case("lenet")
    place = torch.compiler.export(model, x, tmp_path / "lenet", kind="wasm")
    (place / "index.html").write_text("<title>LeNet</title>")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(place)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    script = "async x => [...(await (await import('./lenet.mjs')).default())(Float32Array.from(x)).y]"
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{server.server_port}/index.html")
        got = page.evaluate(script, x.numpy().reshape(-1).tolist())
        browser.close()
    server.shutdown()
    near({"y": np.array(got, np.float32)}, want)


# -- refusals ------------------------------------------------------------------------------------------------------


def export(model, example, tmp_path, **options):
    return torch.compiler.export(model, example, tmp_path / "made", **options)


def test_results_that_depend_on_other_samples_are_refused(tmp_path):
    with pytest.raises(ValueError, match="a sample's result may depend on other samples"):
        export(lambda x: x - x.mean(0, keepdim=True), torch.randn(2, 5), tmp_path, kind="c", dynamic=True)
    with pytest.raises(ValueError, match="no first dimension of size 1"):
        export(lambda x: x.sum(0), torch.randn(2, 5), tmp_path, kind="c", dynamic=True)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("dynamic", [{"z": {0: "n"}}, {"x": {1: "n"}}, 3])
def test_other_dynamic_sizes_are_refused(tmp_path, dynamic):
    with pytest.raises(ValueError, match="dynamic"):
        export(lambda x: x * 2, torch.randn(2, 5), tmp_path, kind="c", dynamic=dynamic)


def test_models_without_a_native_function_are_refused(tmp_path):
    with pytest.raises(NotImplementedError, match=r'no native function(.|\n)*kind="numpy"'):
        export(lambda x: torch.linalg.inv(x), torch.eye(3), tmp_path, kind="c")
    with pytest.raises(TypeError, match="a part of the model's result is an input"):
        export(lambda x: (x, x + 1), torch.ones(3), tmp_path, kind="c")
    with pytest.raises(ValueError, match="kind='onnx'"):
        export(lambda x: x + 1, torch.ones(3), tmp_path, kind="onnx")


def test_functions_of_the_c_library_are_refused_for_webassembly(tmp_path):
    with pytest.raises(NotImplementedError, match=r"sin needs the C library, which wasm32"):
        export(lambda x: x.sin(), torch.ones(3, dtype=torch.float64), tmp_path, kind="wasm")


def test_a_missing_linker_is_named_with_a_hint(tmp_path, monkeypatch):
    monkeypatch.setattr("rushlight.compile.export.linkers.shutil.which", lambda name: None)
    monkeypatch.setattr("rushlight.compile.export.linkers.find_spec", lambda name: None)
    for kind, what in (("c", "no C compiler"), ("wasm", "no linker for WebAssembly")):
        with pytest.raises(RuntimeError, match=rf"{what}(.|\n)*pip install ziglang"):
            export(lambda x: x + 1, torch.ones(3), tmp_path, kind=kind)


@needs_cc
def test_code_for_other_processors(tmp_path):
    """The level of all 64-bit processors since 2009."""
    model, x, want = case("lenet")
    place = torch.compiler.export(model, x, tmp_path / "lenet", kind="c", cpu="x86-64-v2")
    assert "for the processor x86-64-v2" in (place / "lenet.h").read_text()
    near(called(place, x.numpy(), {"y": want["y"].shape}), want)
    with pytest.raises(NotImplementedError, match="x86-64-v3"):
        export(model, x, tmp_path, kind="c", cpu="z80")
