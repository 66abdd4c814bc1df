"""Exported models: bytes on disk, milliseconds of a process until its first answer, and microseconds of a call.

    python benchmarks/exported.py                    # all models of MODELS, written as a table for docs/serve.md
    python benchmarks/exported.py lenet --calls 300

For each model of benchmarks/served_models.py, one sample a call: the folder of NumPy in Python, the C library in a C
program, the WebAssembly module in Node. `start`: the median of five processes, from their start to their end after one
answer, with the files in the system's cache. `call`: the smallest time of `--calls` calls in one process, one thread.
`import rushlight`: a process that builds the model with rushlight, loads the weights, and runs it eagerly."""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import served_models

import rushlight

MODELS = ["mlp", "lenet", "resnet18", "mobilenet", "tcn", "lstm", "transformer", "bert"]
STARTS = 5
THREADS = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
C_TYPES = {"float32": "float", "int64": "int64_t"}
JS_TYPES = {"float32": "Float32Array", "int64": "BigInt64Array"}

PYTHON = """
import sys
from time import perf_counter
import numpy as np
{prepare}
given = [np.frombuffer(open(f"in{{k}}", "rb").read(), dtype).reshape(shape) for k, (dtype, shape) in enumerate({inputs})]
best = 1e9
for _ in range(int(sys.argv[1])):
    start = perf_counter()
    model(*given)
    best = min(best, perf_counter() - start)
print(best * 1e6)
"""
EAGER = """
import rushlight
from served_models import MODELS
net = MODELS["{name}"].make(rushlight.nn).eval()
net.load_state_dict(rushlight.load("model.pt"))
def model(*arrays):
    with rushlight.no_grad():
        return net(*map(rushlight.from_numpy, arrays))
"""

C = """
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "{name}.h"
{buffers}
static _Alignas(64) char workspace[{upper}_WORKSPACE_BYTES];
int main(int count, char **arguments) {{
    FILE *file;
    double best = 1e9;
    struct timespec a, b;
    {reads}
    for (int i = 0; i < atoi(arguments[1]); i++) {{
        clock_gettime(CLOCK_MONOTONIC, &a);
        if ({name}({given}, workspace)) return 3;
        clock_gettime(CLOCK_MONOTONIC, &b);
        double took = (b.tv_sec - a.tv_sec) * 1e6 + (b.tv_nsec - a.tv_nsec) / 1e3;
        if (took < best) best = took;
    }}
    printf("%f\\n", best);
    return 0;
}}
"""

NODE = """
import load from "./{name}.mjs";
import {{ readFileSync }} from "node:fs";
const bytes = (k) => new Uint8Array(readFileSync(`in${{k}}`)).buffer;
const given = [{given}];
const model = await load();
let best = 1e9;
for (let i = 0; i < Number(process.argv[2]); i++) {{
  const start = performance.now();
  model(...given);
  best = Math.min(best, (performance.now() - start) * 1e3);
}}
console.log(best);
"""


def c_program(name: str, inputs: list[np.ndarray], outputs: list[np.ndarray]) -> str:
    """A C program that reads the inputs from files and calls the library."""
    arrays = [(f"in{k}", a) for k, a in enumerate(inputs)] + [(f"out{k}", a) for k, a in enumerate(outputs)]
    read = 'if (!(file = fopen("in{0}", "rb")) || fread(in{0}, 1, {1}, file) != {1}) return 2; fclose(file);'
    return C.format(
        name=name,
        upper=name.upper(),
        buffers="\n".join(f"static {C_TYPES[a.dtype.name]} {n}[{a.size}];" for n, a in arrays),
        reads="\n    ".join(read.format(k, a.nbytes) for k, a in enumerate(inputs)),
        given=", ".join(n for n, _ in arrays),
    )


def commands(name: str, model: Any, arrays: list[np.ndarray], folder: Path) -> dict[str, tuple[list[str], Path, int]]:
    """For each format the command, its folder, and the bytes of the exported files."""
    made: dict[str, tuple[list[str], Path, int]] = {}
    inputs = repr([(a.dtype.name, a.shape) for a in arrays])
    (folder / "eager").mkdir()
    rushlight.save(model.state_dict(), folder / "eager" / "model.pt")
    sizes = {"import rushlight": (folder / "eager" / "model.pt").stat().st_size}
    (folder / "eager" / "run.py").write_text(PYTHON.format(prepare=EAGER.format(name=name), inputs=inputs))
    for kind in ("numpy", "c", "wasm"):
        place = rushlight.compiler.export(model, tuple(arrays), folder / kind / name, kind=kind)
        sizes[kind] = sum(f.stat().st_size for f in place.iterdir())
    for kind in ("eager", "numpy", "c/" + name, "wasm/" + name):
        for k, a in enumerate(arrays):
            (folder / kind / f"in{k}").write_bytes(a.tobytes())
    prepare = f"from {name} import model"
    (folder / "numpy" / "run.py").write_text(PYTHON.format(prepare=prepare, inputs=inputs))
    place = folder / "c" / name
    with rushlight.no_grad():
        result = model(*map(rushlight.from_numpy, arrays))
    outputs = [t.numpy() for t in (result if isinstance(result, tuple) else (result,))]
    (place / "main.c").write_text(c_program(name, arrays, outputs))
    compiler = shutil.which("cc") or "gcc"
    subprocess.run([compiler, "-O2", "main.c", "-o", "main", "-L.", f"-l{name}", "-Wl,-rpath,."], cwd=place, check=True)
    given = ", ".join(f"new {JS_TYPES[a.dtype.name]}(bytes({k}))" for k, a in enumerate(arrays))
    (folder / "wasm" / name / "main.mjs").write_text(NODE.format(name=name, given=given))
    made["import rushlight"] = [sys.executable, "run.py"], folder / "eager", sizes["import rushlight"]
    made["numpy"] = [sys.executable, "run.py"], folder / "numpy", sizes["numpy"]
    made["c"] = ["./main"], place, sizes["c"]
    made["wasm"] = ["node", "main.mjs"], folder / "wasm" / name, sizes["wasm"]
    return made


def run(command: list[str], place: Path, calls: int) -> tuple[float, float]:
    """(milliseconds of the process, the microseconds that it prints)."""
    start = perf_counter()
    done = subprocess.run([*command, str(calls)], cwd=place, env=THREADS, capture_output=True, text=True, check=True)
    return (perf_counter() - start) * 1e3, float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=MODELS, help=f"default: {' '.join(MODELS)}")
    parser.add_argument("--calls", type=int, default=200)
    given = parser.parse_args()
    paths = [str(Path(rushlight.__file__).parent.parent), str(Path(__file__).parent)]
    THREADS["PYTHONPATH"] = os.pathsep.join(paths)
    print("| model | exported as | MB | start, ms | call, us |\n|---|---|---|---|---|")
    for name in given.models:
        served = served_models.MODELS[name]
        rushlight.manual_seed(0)
        model = served.make(rushlight.nn).eval()
        arrays = list(served.draw(np.random.default_rng(0), 1))
        with tempfile.TemporaryDirectory() as folder:
            for kind, (command, place, size) in commands(name, model, arrays, Path(folder)).items():
                run(command, place, 1)
                starts = [run(command, place, 1)[0] for _ in range(STARTS)]
                call = run(command, place, given.calls)[1]
                print(
                    f"| {name} | {kind} | {size / 1e6:.2f} | {statistics.median(starts):.0f} | {call:.0f} |", flush=True
                )


if __name__ == "__main__":
    main()
