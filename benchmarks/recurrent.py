"""Recurrent layers, forward and back: rushlight beside torch, interleaved in one process.

    env -u OPENBLAS_CORETYPE OPENBLAS_NUM_THREADS=1 python benchmarks/recurrent.py

Milliseconds of a pass, and torch's time / rushlight's (above 1: rushlight is faster), in training and inference, one
thread, float32, time of the processor, on a busy Xeon (eight processes on two cores), 2026-11-21, torch 2.13. Cells go
through all steps in Python. Products of large layers take half of the time, and a busy machine slows what reads memory:

                                     steps x sequences x width   training         inference
    LSTM                             50x32x128      18.91   0.90      6.10   0.77
    LSTM                             100x16x256     58.51   1.01     19.16   1.02
    LSTM                             20x64x100      10.26   1.02      3.31   0.98
    LSTM                             20x8x64         1.24   1.18      0.46   1.01
    LSTM                             30x4x24         0.81   1.47      0.28   1.10
    LSTM                             20x1x16         0.63   1.55      0.22   1.17
    LSTM, 2 layers, both directions  50x32x128      78.05   1.00     25.52   0.91
    LSTM, 2 layers, both directions  100x16x256    276.19   1.23     91.46   1.09
    LSTM, 2 layers, both directions  20x64x100      49.84   1.02     17.45   1.00
    LSTM, 2 layers, both directions  20x8x64         6.69   1.14      2.01   0.93
    LSTM, 2 layers, both directions  30x4x24         3.29   1.26      1.40   1.04
    LSTM, 2 layers, both directions  20x1x16         3.58   1.28      1.19   1.03
    GRU                              50x32x128      14.78   1.94      4.37   1.75
    GRU                              100x16x256     53.06   2.31     20.06   1.76
    GRU                              20x64x100      12.97   1.87      3.98   1.65
    GRU                              20x8x64         1.52   4.61      0.57   2.82
    GRU                              30x4x24         1.35   8.60      0.47   4.45
    GRU                              20x1x16         1.08   6.65      0.34   2.99
    RNN                              50x32x128       5.61   1.95      1.67   1.74
    RNN                              100x16x256     23.14   2.11      4.82   1.81
    RNN                              20x64x100       5.05   1.51      1.36   1.31
    RNN                              20x8x64         1.03   2.90      0.44   1.61
    RNN                              30x4x24         1.10   4.49      0.41   2.15
    RNN                              20x1x16         1.18   3.00      0.38   1.49
    LSTMCell                         20x8x64        10.58   1.29      4.16   0.89
    LSTMCell                         20x1x32         6.93   1.42      2.10   0.94
    GRUCell                          20x8x64         8.99   1.48      2.96   0.96
    GRUCell                          20x1x32         5.96   1.60      1.75   1.07

torch has one op of oneDNN for an LSTM, and none for the others. The whole step of a character model
(benchmarks/side_by_side, W6), interleaved on the same machine, before and after the loops were made of tiles (torch's
time / ours): eager 0.96 -> 1.05, compiled 1.34 -> 1.51.

Where the time of W6's compiled step goes, us on one quiet core (2026-11-22; all of it 11.0 to 12.4 ms), and what the
multiplications alone would take at 140 GF/s, what a tile makes. In a step of its own (eager, 18.3 ms) the layer's input
is a product too: forward 1620, its weight's gradient 1950, its own 1550 us (1500 each).

    loop forward           2760  1500    all steps' products 1540; gates 700 in L2; the rest is waiting for memory
    loop back              2800  1500    products 1430, gates 320, the gates' gradients copied for the others 320
    weight's gradient      2000  1500    300 of them to turn 3.2 MB, which waits for L3
    rows of the table       510     0    3.2 MB written, 6 GB/s; back added up 360
    three small products    360   180    65 x 128 x 512
    head, three products    870   570    1600 x 128 x 65
    cross entropy, forward and back 480; Adam 210; states before each step 150; lengths of gradients and clipping 110;
    weights laid out 107, memory 77, the rest of the layer's two ops 320, mostly cold memory: in L2 these take 60, 15,
    170

Cores of a rented machine may be halves: at times this one makes 78 GF/s, or two make 157 where one makes 137.

What lost: lines of x, of what is saved and of gradients fetched between the multiplications, one for each two numbers
that are added up: forward the same as six rows at once between tiles (which cost 130 us), back 0.89 to 0.94 (LSTM), 0.8
(GRU), but 1.07 for a weight larger than L2; a layer's step with it 0.97. Gates in two loops, tanh(c) in the second, so
that more of them overlap: forward 0.95. Inference that saves nothing: 0.90 of the loop, 0.94 of the layer. Gradients of
gates written where the products read them, in the loop of the gates: LLVM gives up on registers, 2.3. The weight's
gradient the other way round (out^T g)^T 1.06, with rows of g padded to an odd number of lines 1.0, x^T read where it
lies 1.0 to 1.2 (1.9 of 256 x 1024), lines of the next part fetched 1.0. Large pages: the system hands out none."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import process_time
from typing import Any

import torch

import rushlight

BLOCKS = 15
LAYERS: list[tuple[str, dict[str, Any]]] = [
    ("LSTM", {}),
    ("LSTM", {"num_layers": 2, "bidirectional": True}),
    ("GRU", {}),
    ("RNN", {}),
]
SIZES = [(50, 32, 128), (100, 16, 256), (20, 64, 100), (20, 8, 64), (30, 4, 24), (20, 1, 16)]
CELLS = [(20, 8, 64), (20, 1, 32)]  # steps, sequences, features and hidden units


def work(lib: Any, name: str, settings: dict[str, Any], size: tuple[int, int, int], train: bool) -> Callable[[], None]:
    """Forward, and back if `train`, through a layer, or through the steps of a cell."""
    lib.manual_seed(0)
    steps, batch, width = size
    module = getattr(lib.nn, name)(width, width, **settings)
    x = lib.randn(steps, batch, width, requires_grad=train)

    def outputs() -> Any:
        if not name.endswith("Cell"):
            return module(x)[0]
        h = None
        for t in range(steps):
            h = module(x[t], h)
        return h[0] if name == "LSTMCell" else h

    def run() -> None:
        if train:
            module.zero_grad()
            outputs().sum().backward()
        else:
            with lib.no_grad():
                outputs()

    return run


def block(run: Callable[[], None], calls: int) -> float:
    start = process_time()
    for _ in range(calls):
        run()
    return (process_time() - start) / calls


def compare(*what: Any) -> tuple[float, float]:
    """Milliseconds of ours, and the median of torch's time / ours."""
    ours, theirs = (work(lib, *what) for lib in (rushlight, torch))
    for run in (ours, theirs):
        block(run, 2)
    calls = max(1, round(0.03 / block(theirs, 1)))
    pairs = [(block(ours, calls), block(theirs, calls)) for _ in range(BLOCKS)]
    return min(own for own, _ in pairs) * 1e3, median([other / own for own, other in pairs])


def main() -> None:
    torch.set_num_threads(1)
    rushlight.set_num_threads(1)
    block(work(rushlight, "LSTM", {}, (50, 4, 24), True), 1000)  # NumPy has cost enough: small layers have loops now
    cases = [(name, settings, size) for name, settings in LAYERS for size in SIZES]
    cases += [(name, {}, size) for name in ("LSTMCell", "GRUCell") for size in CELLS]
    for name, settings, size in cases:
        (ms, ratio), (there, alone) = (compare(name, settings, size, train) for train in (True, False))
        shown = f"{name}, 2 layers, both directions" if settings else name
        print(
            f"    {shown:32} {'x'.join(map(str, size)):12} {ms:8.2f} ms {ratio:6.2f}    {there:8.2f} ms {alone:6.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
