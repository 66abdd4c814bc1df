"""The fresh-process workloads. `python cold.py W11|W12|W12b ENGINE THREADS` prints one JSON line.

W11   import the library (the driver subtracts the start of a bare interpreter)
W12   train the W3 MLP on synthetic digits from process start to 97 % test accuracy
W12b  the same with the W4 LeNet
Exit code 3: the engine has no such workload.
"""

import importlib
import json
import os
import sys
import tempfile

TARGET, BATCH, TRAIN, TEST, MAX_EPOCHS = 0.97, 64, 12800, 2000, 30
MODULES = {
    "torch": "torch",
    "rushlight": "rushlight",
    "jax": "jax",
    "tinygrad": "tinygrad",
    "mygrad": "mygrad",
    "autograd": "autograd.numpy",
    "micrograd": "micrograd.engine",
    "numpy": "numpy",
    "plan": "numba",
}


def dataset():
    """Made once per machine, so that every engine pays only for loading it."""
    import numpy as np

    path = os.path.join(tempfile.gettempdir(), f"rushlight-bench-digits-{TRAIN}-{TEST}.npz")
    if not os.path.exists(path):
        import common

        (a, b), (c, d) = common.digits(TRAIN, 11), common.digits(TEST, 12)
        np.savez(path + f".{os.getpid()}.npz", a=a, b=b, c=c, d=d)
        os.replace(path + f".{os.getpid()}.npz", path)
    z = np.load(path)
    return z["a"], z["b"], z["c"], z["d"]


def train(cnn, make):
    """make(cnn) -> (step(x, y), predict(x) -> labels); the same epochs and batches for everyone."""
    import numpy as np

    xs, ys, xt, yt = dataset()
    shape = (-1, 1, 28, 28) if cnn else (-1, 784)
    xs, xt = xs.reshape(shape), xt.reshape(shape)
    step, predict = make(cnn)
    g = np.random.default_rng(5)
    for epoch in range(1, MAX_EPOCHS + 1):
        order = g.permutation(TRAIN)
        for i in range(0, TRAIN, BATCH):
            at = order[i : i + BATCH]
            step(xs[at], ys[at])
        accuracy = float((predict(xt) == yt).mean())
        if accuracy >= TARGET:
            break
    return {"epochs": epoch, "accuracy": round(accuracy, 4)}


def torch_api(torch, mode):
    def make(cnn):
        from common import fill
        from workloads import w4_lenet

        nn, F = torch.nn, torch.nn.functional
        model = (
            w4_lenet.lenet(torch)
            if cnn
            else nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))
        )
        fill(torch, model)
        opt = torch.optim.Adam(model.parameters(), lr=1e-3)

        def forward(x, y):
            return F.cross_entropy(model(x), y)

        if mode == "compile":
            forward = torch.compile(forward)

        def step(x, y):
            opt.zero_grad()
            loss = forward(x, y)
            loss.backward()
            opt.step()

        if mode == "step":
            step = torch.compile(step)

        def predict(x):
            with torch.no_grad():
                return model(torch.from_numpy(x)).argmax(dim=1).numpy()

        return lambda x, y: step(torch.from_numpy(x), torch.from_numpy(y)), predict

    return make


def main():
    workload, engine, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    base, _, mode = engine.partition(".")
    if workload == "W11":
        if mode or base not in MODULES and base != "python":
            sys.exit(3)
        if base != "python":
            importlib.import_module(MODULES[base])
        print("{}")
        return
    if base in ("torch", "rushlight"):
        torch = importlib.import_module(base)
        if hasattr(torch, "set_num_threads"):
            torch.set_num_threads(threads)
        make = torch_api(torch, mode)
    else:
        try:
            make = importlib.import_module("peers." + base + "_engine").classifier
        except (ImportError, AttributeError):
            sys.exit(3)
    try:
        print(json.dumps(train(workload == "W12b", make)))
    except NotImplementedError:
        sys.exit(3)


if __name__ == "__main__":
    main()
