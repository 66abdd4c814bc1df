#!/usr/bin/env python3
"""Run the corpus of public PyTorch programs under torch or under rushlight.

    run.py --engine torch     --anchors DIR --json torch.json
    run.py --engine rushlight --anchors DIR --json rush.json [--lib CHECKOUT]
    compare.py torch.json rush.json

Each program is prepared in a temporary directory and run in its own process.
Environment: PROGRAMS_ANCHORS (checkout directory), PROGRAMS_PYTHON.
"""

import argparse
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import prep

HERE = os.path.dirname(os.path.abspath(__file__))
CAP = 400_000  # characters of stdout kept


def wait(proc, limit):
    """(exit code or None on timeout, rusage)"""
    end = time.monotonic() + limit
    while True:
        pid, status, ru = os.wait4(proc.pid, os.WNOHANG)
        if pid:
            proc.returncode = os.waitstatus_to_exitcode(status)
            return proc.returncode, ru
        if time.monotonic() > end:
            os.killpg(proc.pid, signal.SIGKILL)
            _, status, ru = os.wait4(proc.pid, 0)
            proc.returncode = os.waitstatus_to_exitcode(status)
            return None, ru
        time.sleep(0.02)


def last_error(stderr, box):
    lines = [ln.rstrip() for ln in stderr.split("\n") if ln.strip()]
    tb = [i for i, ln in enumerate(lines) if ln.startswith("Traceback")]
    err, where = (lines[-1] if lines else ""), ""
    if tb:
        for ln in lines[tb[-1] :]:
            m = re.match(r'\s+File "(.+?)", line (\d+), in (.+)', ln)
            if m and m.group(1).startswith(box) and "_stubs" not in m.group(1):
                where = f"{os.path.relpath(m.group(1), box)}:{m.group(2)} in {m.group(3)}"
        tail = [
            ln
            for ln in lines[tb[-1] + 1 :]
            if re.match(r"^[A-Za-z_][\w.]*(Error|Exception|Exit|Warning|Interrupt|StopIteration)?\b.*", ln)
        ]
        if tail:
            err = tail[0]
    return err[:500], where


def run_one(prog, opt):
    box = tempfile.mkdtemp(prefix=f"prog-{prog['id']}-")
    box = os.path.realpath(box)
    rec = {"id": prog["id"], "engine": opt.engine}
    try:
        try:
            lay = prep.prepare(prog, opt.anchors, box)
        except (prep.PrepError, OSError) as e:
            rec.update(exit=-1, error=f"prep: {e}", stdout="", wall_s=0.0)
            return rec
        meta = os.path.join(box, "_meta.json")
        job = {
            "engine": opt.engine,
            "script": lay["script"],
            "argv": prog.get("argv", []),
            "append": lay["append"],
            "prepend": lay["prepend"],
            "seed": opt.seed,
            "sandbox": box,
            "meta": meta,
            "trace": opt.trace,
            "perturb": opt.perturb,
        }
        jobfile = os.path.join(box, "_job.json")
        with open(jobfile, "w") as f:
            json.dump(job, f)
        env = {
            k: v
            for k, v in os.environ.items()
            if k in ("PATH", "HOME", "LANG", "TMPDIR", "LD_LIBRARY_PATH")
            or k.startswith(("RUSHLIGHT", "PROGRAMS_TRACE"))
        }
        env.update(
            PYTHONHASHSEED="0",
            MPLBACKEND="Agg",
            PYTHONUNBUFFERED="1",
            PYTHONDONTWRITEBYTECODE="1",
            COLUMNS="80",
            CUDA_VISIBLE_DEVICES="",
            PROGRAMS_ENGINE=opt.engine,
            TQDM_DISABLE="1",
            MPLCONFIGDIR=os.path.join(tempfile.gettempdir(), "programs-mpl"),
        )
        threads = str(opt.threads)
        for k in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
            env[k] = threads
        if opt.perturb:
            env.update(MKL_CBWR="COMPATIBLE", ATEN_CPU_CAPABILITY="default")
        env.update(prog.get("env", {}))
        path = list(lay["pythonpath"]) + opt.lib
        if opt.engine == "rushlight":
            path.insert(0, os.path.join(HERE, "boot"))
        env["PYTHONPATH"] = os.pathsep.join(path)
        cmd = [opt.python, os.path.join(HERE, "driver.py"), jobfile]
        if opt.nice:
            cmd = ["nice", "-n", str(opt.nice)] + cmd
        limit = prog.get("timeout", 120) * opt.timeout_scale
        out, err = os.path.join(box, "_out"), os.path.join(box, "_err")
        t = time.perf_counter()
        with open(out, "wb") as fo, open(err, "wb") as fe:
            proc = subprocess.Popen(
                cmd, cwd=lay["cwd"], env=env, stdout=fo, stderr=fe, stdin=subprocess.DEVNULL, start_new_session=True
            )
            code, ru = wait(proc, limit)
        rec["wall_s"] = round(time.perf_counter() - t, 2)
        try:  # stray children (data-loader workers after a timeout)
            os.killpg(proc.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        rec["cpu_s"] = round(ru.ru_utime + ru.ru_stime, 2)
        rec["rss_mb"] = round(ru.ru_maxrss / 1024)
        rec["exit"] = code if code is not None else -9
        rec["timeout"] = code is None
        with open(out, encoding="utf-8", errors="replace") as f:
            rec["stdout"] = f.read()[:CAP].replace(box, "<box>")
        with open(err, encoding="utf-8", errors="replace") as f:
            stderr = f.read()
        if code != 0:
            rec["error"], rec["where"] = last_error(stderr, box)
            if code is None:
                rec["error"] = f"timeout after {limit:.0f} s"
            rec["stderr_tail"] = stderr[-2500:].replace(box, "<box>")
        try:
            with open(meta) as f:
                rec["meta"] = json.load(f)
            if code == 0 and rec["meta"].get("stage") != "done":
                rec["exit"], rec["error"] = -2, f"stopped at stage {rec['meta'].get('stage')}"
        except (OSError, ValueError):
            rec["meta"] = {}
        return rec
    finally:
        if opt.keep:
            rec["box"] = box
        else:
            shutil.rmtree(box, ignore_errors=True)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--engine", choices=["torch", "rushlight"], required=True)
    ap.add_argument("--only", action="append", default=[], help="id, or prefix*, or category:NAME (repeatable)")
    ap.add_argument("--split", help="only programs whose field `split` says so")
    ap.add_argument("--python", default=os.environ.get("PROGRAMS_PYTHON", sys.executable))
    ap.add_argument("--anchors", default=os.environ.get("PROGRAMS_ANCHORS", "anchors"))
    ap.add_argument(
        "--lib", action="append", default=[], help="directory to put on PYTHONPATH (a checkout of rushlight)"
    )
    ap.add_argument("--manifest")
    ap.add_argument("--json", help="write the records here (after every program)")
    ap.add_argument("--merge", action="store_true", help="keep records of other programs already in --json")
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--threads", type=int, default=1)
    ap.add_argument("--nice", type=int, default=0)
    ap.add_argument("--timeout-scale", type=float, default=1.0)
    ap.add_argument("--trace", action="store_true", help="record the torch names called (engine torch)")
    ap.add_argument(
        "--perturb", action="store_true", help="engine torch: other kernels, same maths (how stable is a program?)"
    )
    ap.add_argument("--keep", action="store_true", help="keep the sandboxes")
    ap.add_argument("--show", action="store_true", help="print each program's output")
    ap.add_argument("--list", action="store_true")
    opt = ap.parse_args()
    opt.anchors = os.path.abspath(opt.anchors)
    opt.lib = [os.path.abspath(p) for p in opt.lib]

    _, progs = prep.load_manifest(opt.manifest)

    def chosen(p):
        if opt.split and p.get("split") != opt.split:
            return False
        return not opt.only or any(
            o == p["id"] or (o.endswith("*") and p["id"].startswith(o[:-1])) or o == "category:" + p["category"]
            for o in opt.only
        )

    progs = [p for p in progs if chosen(p)]
    if opt.list:
        for p in progs:
            print(f"{p['id']:36} {p['category']:12} {p.get('split', ''):8} {p['repo']}:{p['path']}")
        return 0
    done = {}
    if opt.json and opt.merge and os.path.exists(opt.json):
        with open(opt.json) as f:
            done = {r["id"]: r for r in json.load(f)["programs"]}
    bad = 0
    for p in progs:
        r = run_one(p, opt)
        done[p["id"]] = r
        ok = r["exit"] == 0
        bad += not ok
        print(
            f"{'ok  ' if ok else 'FAIL'} {p['id']:36} {r['wall_s']:7.1f}s {r.get('rss_mb', 0):6d} MB"
            + ("" if ok else f"   {r.get('error', '')[:160]}  @ {r.get('where', '')}"),
            flush=True,
        )
        if opt.show:
            print(r["stdout"])
            if not ok:
                print(r.get("stderr_tail", ""))
        if opt.json:
            tmp = opt.json + ".tmp"
            with open(tmp, "w") as f:
                json.dump(
                    {
                        "engine": opt.engine,
                        "machine": platform.machine(),
                        "seed": opt.seed,
                        "programs": list(done.values()),
                    },
                    f,
                    indent=1,
                )
            os.replace(tmp, opt.json)
    print(f"{len(progs) - bad} of {len(progs)} ran to the end")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
