"""Side-by-side benchmark of rushlight and its peers.

    python bench.py --engines torch,torch.compile,jax --workloads W2,W3 --repeats 15 --threads 2 --json out.json

Every engine runs in its own process, which stays alive; the driver asks the
engines for short blocks of steps in turn (A B C A B C ...), so a noisy moment
on the machine hits all of them. Reported per engine: the median and the
minimum over the blocks, and the median over the rounds of (engine / torch).

Engines: torch, torch.compile (model + loss), torch.step (torch.compile of the
whole step), rushlight, rushlight.step, jax, tinygrad, mygrad, autograd,
micrograd, numpy (hand-derived), plan (hand-written Numba/NumPy: what a
compiled plan can reach). `--python NAME=PATH` gives an engine its interpreter,
`--path NAME=DIR` adds a directory to its import path. A label after `+` names a
variant of an engine: `--engines plan,plan+avx512 --env plan+avx512=OPENBLAS_CORETYPE=SKYLAKEX`."""

import argparse
import json
import os
import select
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from workloads import COLD, FILES

ENGINES = [
    "torch",
    "torch.compile",
    "torch.step",
    "rushlight",
    "rushlight.step",
    "jax",
    "tinygrad",
    "mygrad",
    "autograd",
    "micrograd",
    "numpy",
    "plan",
]


def base_name(engine):
    """torch for torch.compile, plan for plan+avx512."""
    return engine.partition("+")[0].partition(".")[0]


def environment(engine, args):
    env = dict(os.environ)
    env.pop("OPENBLAS_CORETYPE", None)  # a pin of the build machine: users' BLAS chooses its own kernels
    n = str(args.threads)
    for k in (
        "OMP_NUM_THREADS",
        "MKL_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "NUMBA_NUM_THREADS",
        "RUSHLIGHT_NUM_THREADS",
    ):
        env[k] = n
    base = base_name(engine)
    if base == "jax":
        env.update(JAX_PLATFORMS="cpu", BENCH_THREADS=n)
    if base == "tinygrad":
        env.update(DEV=args.tinygrad_device, NUM_CPU_THREADS=n, THREADS="1" if args.threads > 1 else "0", TRAINING="1")
    paths = [HERE] + [d for name, d in args.path if name in (base, engine)] + [env.get("PYTHONPATH", "")]
    env.update(pair(setting) for name, setting in args.env if name == engine)
    env["PYTHONPATH"] = os.pathsep.join(p for p in paths if p)
    return env


def interpreter(engine, args):
    return dict(args.python).get(base_name(engine), sys.executable)


class Worker:
    def __init__(self, engine, args):
        self.engine, self.args, self.proc = engine, args, None

    def start(self):
        self.proc = subprocess.Popen(
            [
                interpreter(self.engine, self.args),
                os.path.join(HERE, "worker.py"),
                "--engine",
                self.engine.partition("+")[0],
                "--threads",
                str(self.args.threads),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.args.log,
            env=environment(self.engine, self.args),
        )

    def ask(self, timeout, **command):
        if self.proc is None:
            self.start()
        try:
            self.proc.stdin.write((json.dumps(command) + "\n").encode())
            self.proc.stdin.flush()
            ready, _, _ = select.select([self.proc.stdout], [], [], timeout)
            if not ready:
                self.stop()
                return {"ok": False, "error": f"timeout after {timeout} s"}
            line = self.proc.stdout.readline()
            if not line:
                raise BrokenPipeError
            return json.loads(line)
        except BrokenPipeError:
            code = self.proc.wait()
            self.proc = None
            return {"ok": False, "error": f"worker died, exit code {code}"}

    def stop(self):
        if self.proc is not None:
            self.proc.kill()
            self.proc.wait()
            self.proc = None


def foreign_ticks(pids):
    """CPU ticks used so far by everything on this machine except `pids` (Linux only)."""
    with open("/proc/stat") as f:
        user, nice, system, _, _, irq, softirq, steal = map(int, f.readline().split()[1:9])
    mine = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat") as f:
            mine += sum(map(int, f.read().rpartition(")")[2].split()[11:13]))
    return user + nice + system + irq + softirq + steal - mine


class Noise:
    """Share of the machine that other processes took since the last call of `share`."""

    def __init__(self, pids):
        self.pids = list(pids)
        self.last = self.now()

    def now(self):
        try:
            return foreign_ticks(self.pids) / os.sysconf("SC_CLK_TCK"), time.time()
        except (OSError, ValueError):
            return 0.0, time.time()

    def share(self):
        (a, s), (b, t) = self.last, self.now()
        self.last = (b, t)
        return max(0.0, b - a) / max(t - s, 1e-3) / os.cpu_count()


def same(a, b, rtol):
    return len(a) > 0 and all(abs(x - y) <= rtol * max(1.0, abs(y)) for x, y in zip(a, b))


def hot(workload, workers, args):
    """Build everywhere, then interleave timed blocks."""
    row, block = {}, {}
    for engine, w in workers.items():
        a = w.ask(args.build_timeout, cmd="build", workload=workload)
        if not a["ok"]:
            row[engine] = {"error": a["error"], "missing": a.get("missing", False)}
            if not a.get("missing"):
                print(f"  {workload} {engine}: {a['error']}\n{a.get('trace', '')}", file=args.log, flush=True)
            continue
        row[engine] = {k: a[k] for k in ("build_s", "first_s", "values")}
        # Warm up, and size the block to about args.block seconds.
        n, spent = 1, 0.0
        while spent < args.warm:
            r = w.ask(args.build_timeout, cmd="run", n=n)
            if not r["ok"]:
                row[engine] = {"error": r["error"]}
                break
            spent += r["ms"] * n / 1e3
            n = max(1, min(int(args.block / (r["ms"] / 1e3)), 2 * n + 1))
        else:
            block[engine] = max(1, min(int(args.block / (r["ms"] / 1e3)), 100000))
    rounds, began = [], time.time()
    noise = Noise([os.getpid()] + [w.proc.pid for w in workers.values() if w.proc])
    while sum(share <= args.noise for share, _ in rounds) < args.repeats:
        if time.time() - began > args.max_seconds and len(rounds) >= 3:
            break
        noise.share()
        one = {}
        for engine in list(block):
            r = workers[engine].ask(args.build_timeout, cmd="run", n=block[engine])
            if r["ok"]:
                one[engine] = r["ms"]
            else:
                row[engine] = {"error": r["error"]}
                del block[engine]
                noise = Noise([os.getpid()] + [w.proc.pid for w in workers.values() if w.proc])
        rounds.append((noise.share(), one))
        if rounds[-1][0] > args.noise:
            time.sleep(0.3)
    quiet = [one for share, one in rounds if share <= args.noise]
    if len(quiet) < 3:  # never quiet: the least noisy third
        quiet = [one for _, one in sorted(rounds, key=lambda p: p[0])[: max(3, len(rounds) // 3)]]
    for e in block:
        row[e]["noisy_rounds"] = len(rounds) - len(quiet)
    summarize(row, {e: [one[e] for one in quiet if e in one] for e in block})
    reference = row.get("torch", {}).get("values")
    if reference:
        for e in block:
            row[e]["agrees"] = same(row[e]["values"], reference, args.rtol)
    return row


def cold(workload, engines, args):
    """A fresh process per repeat; wall time from before the process starts to its end."""
    row, times = {}, {e: [] for e in engines}
    if workload == "W11":
        times["python"] = []
    for _k in range(args.cold_repeats):
        for engine in list(times):
            python = interpreter(engine, args)
            t0 = time.perf_counter()
            command = [python, os.path.join(HERE, "cold.py"), workload, engine.partition("+")[0], str(args.threads)]
            p = subprocess.run(
                command, env=environment(engine, args), capture_output=True, text=True, timeout=args.build_timeout * 2
            )
            wall = (time.perf_counter() - t0) * 1e3
            if p.returncode:
                row[engine] = {
                    "error": (p.stderr.strip().splitlines() or ["?"])[-1][:300],
                    "missing": p.returncode == 3,
                }
                del times[engine]
                continue
            times[engine].append(wall)
            row[engine] = {"info": json.loads(p.stdout.strip().splitlines()[-1])}
    if "python" in times:
        floor = statistics.median(times["python"])
        times = {e: [t - floor for t in ts] for e, ts in times.items() if e != "python"}
        row.pop("python")
    summarize(row, times)
    return row


def summarize(row, times):
    reference = times.get("torch")
    for engine, ts in times.items():
        if not ts:
            continue
        row[engine].update(
            median_ms=statistics.median(ts), min_ms=min(ts), blocks=len(ts), times_ms=[round(t, 6) for t in ts]
        )
        if reference:
            row[engine]["ratio"] = statistics.median(a / b for a, b in zip(ts, reference))
            row[engine]["ratio_of_minima"] = min(ts) / min(reference)


def number(ms):
    return f"{ms:.4f}" if ms < 1 else f"{ms:.3f}" if ms < 10 else f"{ms:.2f}" if ms < 100 else f"{ms:.0f}"


def show(workload, row):
    print(f"\n{workload}\n{'engine':16}{'median ms':>12}{'min ms':>12}{'x torch':>9}{'first s':>9}  check")
    for engine, r in row.items():
        if "median_ms" not in r:
            if not r.get("missing"):
                print(f"{engine:16}{'failed':>12}  {r.get('error', '')[:90]}")
            continue
        check = {True: "same", False: "DIFFERS", None: ""}[r.get("agrees")]
        check = check or (json.dumps(r["info"]) if "info" in r else "")
        ratio = f"{r['ratio']:.3f}" if "ratio" in r else ""
        first = f"{r['build_s'] + r['first_s']:.2f}" if "first_s" in r else ""
        print(f"{engine:16}{number(r['median_ms']):>12}{number(r['min_ms']):>12}{ratio:>9}{first:>9}  {check}")
    sys.stdout.flush()


def table(results, engines):
    print("\nmedian ms (ratio to torch eager)\n")
    used = [e for e in engines if any("median_ms" in row.get(e, {}) for row in results.values())]
    print("| workload | " + " | ".join(used) + " |\n|---|" + "---:|" * len(used))
    for workload, row in results.items():
        cells = []
        for e in used:
            r = row.get(e, {})
            if "median_ms" in r:
                cells.append(number(r["median_ms"]) + (f" ({r['ratio']:.2f})" if "ratio" in r and e != "torch" else ""))
            else:
                cells.append("–" if r.get("missing") or not r else "fail")
        print(f"| {workload} | " + " | ".join(cells) + " |")


def pair(s):
    name, _, value = s.partition("=")
    return name, value


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--engines", default="torch", help="comma-separated, or 'all'")
    p.add_argument("--workloads", default="all")
    p.add_argument("--repeats", type=int, default=15, help="interleaved rounds")
    p.add_argument("--cold-repeats", type=int, default=3, help="rounds of the fresh-process workloads W11, W12")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--block", type=float, default=0.05, help="seconds of steps per timed block")
    p.add_argument("--warm", type=float, default=0.5, help="seconds of warm-up per engine")
    p.add_argument("--max-seconds", type=float, default=90, help="stop a workload's rounds after this long (after 3)")
    p.add_argument("--build-timeout", type=float, default=240)
    p.add_argument(
        "--noise",
        type=float,
        default=0.06,
        help="discard rounds in which other processes took more than this share of the machine",
    )
    p.add_argument("--rtol", type=float, default=2e-3, help="tolerance of the loss check against torch")
    p.add_argument("--json", help="write (merge into) this file")
    p.add_argument("--python", type=pair, action="append", default=[], metavar="ENGINE=PATH")
    p.add_argument("--path", type=pair, action="append", default=[], metavar="ENGINE=DIR")
    p.add_argument(
        "--env",
        type=pair,
        action="append",
        default=[],
        metavar="ENGINE=KEY=VALUE",
        help="an environment variable for one engine; ENGINE may carry a label, as in plan+avx512",
    )
    p.add_argument("--tinygrad-device", default="CPU")
    p.add_argument("--log", type=argparse.FileType("a"), default=subprocess.DEVNULL, help="workers' stderr goes here")
    args = p.parse_args()
    if args.log is subprocess.DEVNULL:
        args.log = open(os.devnull, "a")
    engines = ENGINES if args.engines == "all" else args.engines.split(",")
    names = list(FILES) + COLD if args.workloads == "all" else args.workloads.split(",")

    results = {}
    stored = {"meta": {}, "results": {}}
    if args.json and os.path.exists(args.json):
        stored = json.load(open(args.json))
    for name in names:
        if name in COLD:
            row = cold(name, engines, args)
        else:
            workers = {e: Worker(e, args) for e in engines}
            try:
                row = hot(name, workers, args)
            finally:
                for w in workers.values():
                    w.stop()
        results[name] = row
        show(name, row)
        if args.json:
            key = f"threads={args.threads}"
            stored["results"].setdefault(key, {}).setdefault(name, {}).update(row)
            stored["meta"].update(
                time=time.strftime("%Y-%m-%d %H:%M"), python=sys.version.split()[0], cpus=os.cpu_count()
            )
            with open(args.json, "w") as f:
                json.dump(stored, f, indent=1)
    table(results, engines)


if __name__ == "__main__":
    main()
