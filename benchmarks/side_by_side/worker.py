"""One engine in one process. Reads JSON commands on stdin, answers with JSON lines on stdout.

{"cmd": "build", "workload": "W3"}   -> {"ok": true, "build_s": ..., "first_s": ..., "values": [...]}
{"cmd": "run", "n": 20}              -> {"ok": true, "ms": time of one step, mean over the block}
"""

import argparse
import gc
import importlib
import json
import os
import sys
import time
import traceback

from common import Job

sys.setrecursionlimit(20000)


def torch_api_job(torch, work, mode):
    """mode: eager, model (compile model + loss), or step (compile the whole training step)."""
    forward, step = work.forward, work.step
    if mode == "model":
        forward = torch.compile(forward)
    if mode == "step":
        whole = torch.compile(lambda *batch: step(forward, *batch))
    else:

        def whole(*batch):
            return step(forward, *batch)

    batches, count = work.batches, len(work.batches)
    i = -1

    def one():
        nonlocal i
        i += 1
        return whole(*batches[i % count])

    def value(r):
        r = r.detach() if hasattr(r, "detach") else r
        return work.value(r)

    return Job(one, value=value)


def make_job(engine, workload, threads):
    base, _, mode = engine.partition(".")
    if base in ("torch", "rushlight"):
        torch = importlib.import_module(base)
        if hasattr(torch, "set_num_threads"):
            torch.set_num_threads(threads)
        if base == "torch" and mode:
            import torch._dynamo as dynamo

            dynamo.reset()
            dynamo.config.cache_size_limit = 128
        import workloads

        work = workloads.load(workload).build(torch)
        return torch_api_job(torch, work, {"": "eager", "compile": "model", "step": "step"}[mode])
    module = importlib.import_module("peers." + base + "_engine")
    build = module.WORKLOADS.get(workload)
    if build is None:
        raise NotImplementedError(f"{engine} has no {workload}")
    return build()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--engine", required=True)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--values", type=int, default=4, help="how many first steps are reported for the equality check")
    args = p.parse_args()

    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # anything an engine prints goes to stderr
    job = None
    for line in sys.stdin:
        c = json.loads(line)
        try:
            if c["cmd"] == "build":
                job = None
                gc.collect()
                t0 = time.perf_counter()
                job = make_job(args.engine, c["workload"], args.threads)
                t1 = time.perf_counter()
                r = job.step()
                job.sync(r)
                t2 = time.perf_counter()
                values = [job.value(r)]
                while len(values) < args.values and time.perf_counter() - t1 < 60:
                    values.append(job.value(job.step()))
                answer = {"build_s": t1 - t0, "first_s": t2 - t1, "values": values}
            elif c["cmd"] == "run":
                step, n = job.step, c["n"]
                gc.collect()
                t0 = time.perf_counter()
                for _ in range(n):
                    r = step()
                job.sync(r)
                answer = {"ms": (time.perf_counter() - t0) / n * 1e3}
            answer["ok"] = True
        except Exception as e:
            answer = {
                "ok": False,
                "error": f"{type(e).__name__}: {e}"[:400],
                "missing": isinstance(e, NotImplementedError),
                "trace": traceback.format_exc()[-2000:],
            }
        out.write(json.dumps(answer) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
