"""Public programs for several processes under rushlight and under torch, with the same losses.

    python benchmarks/distributed_programs.py --examples PATH --nanogpt PATH

PATH: checkouts of pytorch/examples and karpathy/nanoGPT. The programs are copied, moved to the CPU (their comments say
how), given a seed, and print their losses; nothing else is changed. Each runs with two ranks, under `rushlight launch`
and under torch's torchrun on gloo."""

from __future__ import annotations

import argparse
import os
import pickle
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TOLERANCE = 1e-4
LOSS = "import sys; sys.stdout.write(f'loss {loss.item():.6f} of rank {torch.distributed.get_rank()}\\n')"

# file -> [(text, the text instead)]
TUTORIAL = [
    ('torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))', "torch.manual_seed(0)"),
    ("torch.cuda.set_device(rank)", "torch.manual_seed(0)"),
    ('os.environ["MASTER_PORT"] = "12355"', 'os.environ["MASTER_PORT"] = os.environ["PORT"]'),
    ("torch.cuda.device_count()", "2"),
    ('backend="nccl"', 'backend="gloo"'),
    ("device_ids=[self.gpu_id]", "device_ids=None"),
    ("device_ids=[gpu_id]", "device_ids=None"),
    (".to(self.gpu_id)", ""),
    (".to(gpu_id)", ""),
    ('f"cuda:{self.gpu_id}"', '"cpu"'),
    ("pin_memory=True", "pin_memory=False"),
    ("        loss.backward()", f"        {LOSS}\n        loss.backward()"),
    ("F.cross_entropy(output, targets)", "F.mse_loss(output, targets)"),  # of one class it is 0
]
EXAMPLE = [
    ("    if not verify_min_gpu_count(min_gpus=_min_gpu_count):", "    if False:"),
    ("acc = torch.accelerator.current_accelerator()", "torch.manual_seed(0)"),
    ("torch.distributed.get_default_backend_for_device(acc)", '"gloo"'),
    ("torch.accelerator.set_device_index(rank)", ""),
    (".to(rank)", ""),
    ("device_ids=[rank]", "device_ids=None"),
    (
        "    loss_fn(outputs, labels).backward()",
        f"    loss = loss_fn(outputs, labels)\n    {LOSS}\n    loss.backward()",
    ),
]
MINGPT = [
    ("    if not verify_min_gpu_count(min_gpus=_min_gpu_count):", "    if False:"),
    ("    acc = torch.accelerator.current_accelerator()", "    torch.manual_seed(0)"),
    ('    device: torch.device = torch.device(f"{acc}:{rank}")\n', ""),
    ("torch.distributed.get_default_backend_for_device(device)", '"gloo"'),
    ("    torch.accelerator.set_device_index(rank)\n", ""),
    ("self.acc = torch.accelerator.current_accelerator()", 'self.acc = "cpu"'),
    ('torch.device(f"{self.acc}:{self.local_rank}")', 'torch.device("cpu")'),
    (".to(self.local_rank)", ""),
    ("device_ids=[self.local_rank]", "device_ids=None"),
    ("pin_memory=True", "pin_memory=False"),
    ("        if train:\n            self.opt", f"        {LOSS}\n        if train:\n            self.opt"),
]
FSDP2 = [
    ("    if not verify_min_gpu_count(min_gpus=_min_gpu_count):", "    if False:"),
    ("device_id=device", "device_id=None"),
    ("model(x).sum()", "model(x).mean()"),  # of numbers near 1
    ("        loss.backward()", f"        {LOSS}\n        loss.backward()"),
    (  # the program leaves the memory of its layers as it is
        "        self.tok_embeddings.reset_parameters()",
        "        [layer.reset_parameters() for layer in self.layers]\n        self.tok_embeddings.reset_parameters()",
    ),
]
MINGPT_SETTINGS = """
data_config: {path: data/input.txt, block_size: 16, train_split: 0.9, truncate: 0.0006}
gpt_config: {n_layer: 2, n_head: 2, n_embd: 32, embd_pdrop: 0.0, resid_pdrop: 0.0, attn_pdrop: 0.0}
trainer_config: {max_epochs: 2, batch_size: 32, data_loader_workers: 2, grad_norm_clip: 1.0,
  snapshot_path: snapshot.pt, save_every: 1, use_amp: False}
optimizer_config: {weight_decay: 0.1, learning_rate: 0.003}
"""
# What minGPT-ddp asks of hydra, omegaconf and boto3, which are not installed: one function.
STAND_INS = {
    "boto3.py": "",
    "omegaconf.py": "DictConfig = dict\n",
    "hydra.py": "import yaml\n"
    "def main(version_base, config_path, config_name):\n"
    "    return lambda f: lambda: f(yaml.safe_load(open(config_name + '.yaml')))\n",
}
NANOGPT = [
    ("    device = f'cuda:{ddp_local_rank}'\n    torch.cuda.set_device(device)\n", ""),
    ("device_ids=[ddp_local_rank]", "device_ids=None"),
    ("        scaler.scale(loss).backward()", f"        {LOSS}\n        scaler.scale(loss).backward()"),
]
NANOGPT_SETTINGS = [
    "--device=cpu",
    "--backend=gloo",
    "--compile=False",
    "--dtype=float32",
    "--dataset=letters",
    "--n_layer=2",
    "--n_head=2",
    "--n_embd=32",
    "--block_size=16",
    "--batch_size=4",
    "--max_iters=8",
    "--eval_interval=100",
    "--eval_iters=1",
    "--gradient_accumulation_steps=4",
    "--dropout=0.0",
    "--log_interval=1",
    "--warmup_iters=2",
    "--lr_decay_iters=8",
    "--learning_rate=1e-2",
]


def moved(file: Path, edits: list[tuple[str, str]]) -> None:
    text = file.read_text()
    for old, new in edits:
        text = text.replace(old, new)
    file.write_text(text)


def letters(folder: Path) -> None:
    """A data set of nanoGPT's format: 8,000 letters, of which each makes the next likely."""
    numbers = random.Random(0)
    found = [0]
    for _ in range(8000):
        found.append((found[-1] * 3 + numbers.choice((1, 1, 1, 2))) % 26)
    folder.mkdir(parents=True)
    data = b"".join(n.to_bytes(2, "little") for n in found)
    for name in ("train.bin", "val.bin"):
        (folder / name).write_bytes(data)
    (folder / "meta.pkl").write_bytes(pickle.dumps({"vocab_size": 26}))


def programs(arguments: argparse.Namespace, folder: Path) -> dict[str, tuple[Path, list[str], bool]]:
    """{name: (file, arguments, whether the program starts its ranks itself)}."""
    found: dict[str, tuple[Path, list[str], bool]] = {}
    if arguments.examples:
        source = Path(arguments.examples) / "distributed"
        for name, edits in (("ddp-tutorial-series", TUTORIAL), ("ddp", EXAMPLE)):
            shutil.copytree(source / name, folder / name)
            for file in (folder / name).glob("*.py"):
                moved(file, edits)
        tutorial = folder / "ddp-tutorial-series"
        found["ddp-tutorial-series, torchrun"] = (tutorial / "multigpu_torchrun.py", ["2", "10"], False)
        found["ddp-tutorial-series, mp.spawn"] = tutorial / "multigpu.py", ["2", "10"], True
        found["ddp/example.py"] = folder / "ddp" / "example.py", [], False
        shutil.copytree(source / "FSDP2", folder / "FSDP2")
        for file in (folder / "FSDP2").glob("*.py"):
            moved(file, FSDP2)
        for options in ([], ["--dcp-api"], ["--explicit-prefetching"]):
            name = " ".join(["FSDP2/example.py", *options])
            found[name] = folder / "FSDP2" / "example.py", options, False
        shutil.copytree(source / "minGPT-ddp" / "mingpt", folder / "mingpt")
        for file in (folder / "mingpt").glob("*.py"):
            moved(file, MINGPT)
        (folder / "mingpt" / "gpt2_train_cfg.yaml").write_text(MINGPT_SETTINGS)
        for name, text in STAND_INS.items():
            (folder / "mingpt" / name).write_text(text)
        found["minGPT-ddp"] = folder / "mingpt" / "main.py", [], False
    if arguments.nanogpt:
        shutil.copytree(arguments.nanogpt, folder / "nanoGPT", ignore=shutil.ignore_patterns(".git"))
        moved(folder / "nanoGPT" / "train.py", NANOGPT)
        letters(folder / "nanoGPT" / "data" / "letters")
        found["nanoGPT/train.py"] = folder / "nanoGPT" / "train.py", NANOGPT_SETTINGS, False
    return found


def losses(library: str, file: Path, arguments: list[str], starts_itself: bool) -> dict[str, list[float]]:
    """{rank: its losses}."""
    for left in file.parent.glob("snapshot.pt"):
        left.unlink()
    shutil.rmtree(file.parent / "checkpoints", ignore_errors=True)
    port = str(random.randint(20000, 29000))
    command = [str(file), *arguments]
    if library == "rushlight":
        start = ["-m", "rushlight", "run"]
        if not starts_itself:
            start = ["-m", "rushlight", "launch", "--nproc-per-node=2", f"--master-port={port}"]
    else:
        start = ["-m", "torch.distributed.run", "--nproc-per-node=2", f"--master-port={port}"]
        if starts_itself:
            start = []
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *start, *command],
        cwd=file.parent,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "PORT": port},
        capture_output=True,
        text=True,
        timeout=300,
    )
    if done.returncode:
        raise SystemExit(f"{library}: {file.name} failed\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    found: dict[str, list[float]] = {}
    for loss, rank in re.findall(r"loss ([-\d.]+) of rank (\d)", done.stdout):
        found.setdefault(rank, []).append(float(loss))
    print(f"  {library}: {time.perf_counter() - began:.1f} s with its start", flush=True)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--examples", help="a checkout of pytorch/examples")
    parser.add_argument("--nanogpt", help="a checkout of karpathy/nanoGPT")
    arguments = parser.parse_args()
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for name, program in programs(arguments, Path(folder)).items():
            print(name, flush=True)
            ours = losses("rushlight", *program)
            count = {rank: len(found) for rank, found in sorted(ours.items())}
            print(f"  losses of the ranks: {count}, last {[f[-1] for f in ours.values()]}")
            if find_spec("torch") is None:
                continue
            theirs = losses("torch", *program)
            assert {r: len(f) for r, f in ours.items()} == {r: len(f) for r, f in theirs.items()}
            off = max(abs(a - b) for r in ours for a, b in zip(ours[r], theirs[r]))
            print(f"  largest difference of a loss from torch's: {off:.1e}", flush=True)
            worst = max(worst, off)
    return int(worst > TOLERANCE)


if __name__ == "__main__":
    sys.exit(main())
