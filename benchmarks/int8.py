"""int8 linear layers: latency beside onnxruntime and torch.ao, and accuracy of two models beside float32 and torch.ao.

    env -u OPENBLAS_CORETYPE python benchmarks/int8.py
    python benchmarks/int8.py --threads 2 --rounds 21
    python benchmarks/int8.py --accuracy

Latency: square layers, rows of 1 and 32. All engines take turns in one process, in blocks of at least 5 ms. A ratio is
the time of the other engine over the time of rushlight, the median of the ratios of all rounds; above 1 rushlight is
faster. onnxruntime runs DynamicQuantizeLinear and MatMulInteger, made by onnxruntime.quantization.quantize_dynamic with
a scale for each output.

Accuracy: models that read the digits of `rushlight demo` are trained in float32 on 1,297 digits, then quantized by each
library, with the same weights, and tested on the other 500. `difference`: of the outputs from torch.ao's, relative to
the largest."""

from __future__ import annotations

import argparse
import logging
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

SIZES, ROWS = (384, 1024, 2048, 4096), (1, 32)
BLOCK_SECONDS = 0.005
HELD_OUT, EPOCHS, WIDTH = 500, 40, 64
Call = Callable[[], Any]


def seconds(call: Call) -> float:
    """Seconds of a call, from a block of at least 5 ms."""
    count = 1
    while True:
        start = time.perf_counter()
        for _ in range(count):
            call()
        spent = time.perf_counter() - start
        if spent > BLOCK_SECONDS:
            return spent / count
        count *= 2


# -- latency ---------------------------------------------------------------------------------------


def onnx_session(weight: np.ndarray, bias: np.ndarray, threads: int) -> Any:
    """A session of onnxruntime with int8 weights."""
    import onnx
    import onnxruntime
    from onnx import helper, numpy_helper
    from onnxruntime.quantization import QuantType, quantize_dynamic

    n, k = weight.shape
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Add", ["h", "b"], ["y"])]
    given = [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["rows", k])]
    results = [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["rows", n])]
    held = [numpy_helper.from_array(np.ascontiguousarray(weight.T), "w"), numpy_helper.from_array(bias, "b")]
    graph = helper.make_graph(nodes, "linear", given, results, held)
    with tempfile.TemporaryDirectory() as folder:
        plain, small = Path(folder, "float.onnx"), Path(folder, "int8.onnx")
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), plain)
        quantize_dynamic(plain, small, weight_type=QuantType.QInt8, per_channel=True)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = threads, 3
        return onnxruntime.InferenceSession(str(small), options, providers=["CPUExecutionProvider"])


def layers(torch: Any, weight: np.ndarray, bias: np.ndarray) -> Any:
    """A quantized layer of the library."""
    model = torch.nn.Sequential(torch.nn.Linear(weight.shape[1], weight.shape[0]))
    model.load_state_dict({"0.weight": torch.from_numpy(weight), "0.bias": torch.from_numpy(bias)})
    spec = {torch.nn.Linear: torch.ao.quantization.per_channel_dynamic_qconfig}
    return torch.ao.quantization.quantize_dynamic(model, spec)[0]


def latency(threads: int, rounds: int) -> None:
    import torch

    import rushlight

    print(f"{'size':>6}{'rows':>6}{'rushlight':>14}{'onnxruntime':>13}{'torch.ao':>10}{'multiply-adds':>19}")
    rng = np.random.default_rng(0)
    for n in SIZES:
        weight = (rng.standard_normal((n, n)) / 20).astype(np.float32)
        bias = rng.standard_normal(n).astype(np.float32)
        session = onnx_session(weight, bias, threads)
        ours, theirs = layers(rushlight, weight, bias), layers(torch, weight, bias)
        for rows in ROWS:
            x = rng.standard_normal((rows, n)).astype(np.float32)
            given = rushlight.from_numpy(x), torch.from_numpy(x)
            found = [ours(given[0]).numpy(), theirs(given[1]).numpy()]
            assert abs(found[0] - found[1]).max() <= 1e-5 * abs(found[1]).max()
            calls = [partial(ours, given[0]), partial(session.run, None, {"x": x}), partial(theirs, given[1])]
            for call in calls:
                seconds(call)
            times = [[seconds(call) for call in calls] for _ in range(rounds)]
            own = median(t[0] for t in times)
            ratios = [median(t[i] / t[0] for t in times) for i in (1, 2)]
            speed = rows * n * n / min(t[0] for t in times) / 1e9
            print(
                f"{n:6}{rows:6}{own * 1e6:11.1f} us{ratios[0]:13.2f}{ratios[1]:10.2f}{speed:12.0f} billion/s",
                flush=True,
            )


# -- accuracy --------------------------------------------------------------------------------------


def classifier(nn: Any) -> Any:
    """Linear layers of 64, 128, 128 and 10."""
    return nn.Sequential(
        nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10)
    )


def encoder(nn: Any) -> Any:
    """A transformer encoder of two blocks that reads an image as 8 tokens, its rows."""

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
            self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x: Any) -> Any:
            heads = [
                part.unflatten(-1, (4, -1)).transpose(1, 2) for part in self.qkv(self.norms[0](x)).chunk(3, dim=-1)
            ]
            mixed = nn.functional.scaled_dot_product_attention(*heads).transpose(1, 2).flatten(2)
            x = x + self.out(mixed)
            return x + self.narrow(nn.functional.gelu(self.wide(self.norms[1](x))))

    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = nn.Linear(8, WIDTH), nn.Embedding(8, WIDTH)
            self.blocks = nn.Sequential(Block(), Block())
            self.head = nn.Linear(WIDTH, 10)

        def forward(self, images: Any) -> Any:
            x = self.tokens(images.squeeze(1)) + self.places.weight
            return self.head(self.blocks(x).mean(1))

    return Encoder()


def trained(build: Callable[[Any], Any], images: Any, labels: Any) -> Any:
    """The model of rushlight, trained."""
    import rushlight

    rushlight.manual_seed(0)
    model = build(rushlight.nn)
    optimizer = rushlight.optim.Adam(model.parameters(), lr=2e-3)
    for _ in range(EPOCHS):
        for part in rushlight.randperm(len(images)).split(64):
            optimizer.zero_grad()
            rushlight.nn.functional.cross_entropy(model(images[part]), labels[part]).backward()
            optimizer.step()
    return model.eval()


def quantized(torch: Any, build: Callable[[Any], Any], state: dict[str, np.ndarray], qconfig: str) -> Any:
    """The model of a library with these weights, in int8."""
    model = build(torch.nn).eval()
    model.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in state.items()})
    chosen = getattr(torch.ao.quantization, qconfig)
    return torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear: chosen})


def by_torchao(build: Callable[[Any], Any], state: dict[str, np.ndarray], config: Any) -> Any:
    """rushlight's model, quantized by `quantize_`."""
    import rushlight
    from rushlight.ao.torchao.quantization import quantize_

    model = build(rushlight.nn).eval()
    model.load_state_dict({name: rushlight.from_numpy(array.copy()) for name, array in state.items()})
    quantize_(model, config)
    return model


def accuracy() -> None:
    import torch

    import rushlight
    from rushlight.ao.torchao.quantization import Int8DynamicActivationInt8WeightConfig, Int8WeightOnlyConfig
    from rushlight.demo.digits import read_digits

    rushlight.manual_seed(0)
    images, labels = read_digits()
    order = rushlight.randperm(len(images))
    images, labels = images[order], labels[order]
    tests, right = images[:HELD_OUT].numpy(), labels[:HELD_OUT].numpy()

    def line(name: str, out: np.ndarray, theirs: np.ndarray | None = None) -> None:
        share = (out.argmax(1) == right).mean() * 100
        apart = "" if theirs is None else f"{abs(out - theirs).max() / abs(theirs).max():12.1e}"
        print(f"  {name:40}{share:7.1f} %{apart}")

    for build in (classifier, encoder):
        model = trained(build, images[HELD_OUT:], labels[HELD_OUT:])
        state = {name: t.detach().numpy() for name, t in model.state_dict().items()}
        print(f"{build.__name__:42}{'right':>9}{'difference':>12}")
        line("float32", model(rushlight.from_numpy(tests)).detach().numpy())
        for qconfig in ("default_dynamic_qconfig", "per_channel_dynamic_qconfig"):
            theirs = quantized(torch, build, state, qconfig)(torch.from_numpy(tests)).detach().numpy()
            line(f"torch.ao, {qconfig}", theirs)
            ours = quantized(rushlight, build, state, qconfig)(rushlight.from_numpy(tests)).detach().numpy()
            line(f"rushlight, {qconfig}", ours, theirs)
        for config in (Int8WeightOnlyConfig(), Int8DynamicActivationInt8WeightConfig()):
            out = by_torchao(build, state, config)(rushlight.from_numpy(tests)).detach().numpy()
            line(f"rushlight, {type(config).__name__}"[:40], out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--accuracy", action="store_true", help="accuracy in place of latency")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    import torch

    import rushlight

    torch.set_num_threads(given.threads)
    rushlight.set_num_threads(given.threads)
    if given.accuracy:
        accuracy()
        return
    with torch.no_grad(), rushlight.no_grad():
        latency(given.threads, given.rounds)


if __name__ == "__main__":
    main()
