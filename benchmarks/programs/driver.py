"""Runs ONE prepared program in this process.  Started by run.py, not by hand.

argv: driver.py JOB.json   (keys: engine, script, argv, prepend, append, seed, sandbox,
meta, trace, perturb)
"""

import contextlib
import json
import os
import random
import sys
import time
import types

T0 = time.perf_counter()
TRACE_SECONDS = float(os.environ.get("PROGRAMS_TRACE_SECONDS", "8"))


def show(*values):
    """What a notebook would display for the last expression of a cell."""
    value = values[0] if len(values) == 1 else values
    if value is None or type(value).__module__.split(".")[0] in ("matplotlib", "graphviz"):
        return
    text = repr(value)
    if " at 0x" not in text:
        print(text)


def report(**things):
    """Helper for `append` snippets: a few numbers about tensors, modules, lists."""
    import torch

    def one(name, v):
        if isinstance(v, torch.nn.Module):
            v = list(v.parameters())
            n = sum(p.numel() for p in v)
            s = sum(float(p.detach().sum()) for p in v)
            a = sum(float(p.detach().abs().sum()) for p in v)
            print(f"{name}: {n} parameters, sum {s:.6g}, abs sum {a:.6g}")
        elif isinstance(v, torch.Tensor):
            d = v.detach().float()
            if d.numel() == 1:
                print(f"{name}: {d.item():.6g}")
            else:
                print(
                    f"{name}: shape {tuple(v.shape)}, mean {d.mean().item():.6g}, abs mean {d.abs().mean().item():.6g}"
                )
        elif hasattr(v, "shape") and hasattr(v, "mean"):
            print(f"{name}: shape {tuple(v.shape)}, mean {float(v.mean()):.6g}, abs mean {float(abs(v).mean()):.6g}")
        elif isinstance(v, (list, tuple)):
            print(f"{name}: {len(v)} values")
            for i, x in enumerate(v[-3:]):
                one(f"{name}[{len(v) - len(v[-3:]) + i}]", x)
        elif isinstance(v, float):
            print(f"{name}: {v:.6g}")
        else:
            print(f"{name}: {v}")

    for k, v in things.items():
        one(k, v)


def start_trace(torch, sandbox):
    """Record which torch names user code really calls (engine torch only)."""
    import torch.overrides as ov

    home = os.path.dirname(torch.__file__)
    calls, classes, internal = {}, {}, {}
    names = {}

    def name_of(func):
        try:
            return names[func]
        except (KeyError, TypeError):
            pass
        try:
            n = ov.resolve_name(func)
        except Exception:
            n = None
        n = n or getattr(func, "__qualname__", None) or repr(func)
        with contextlib.suppress(TypeError):
            names[func] = n
        return n

    def user_level(frame):
        # frame: the caller of __torch_function__; let the python wrapper of
        # the traced function itself (one torch frame) pass.
        hops = 0
        while frame is not None and hops < 4:
            fn = frame.f_code.co_filename
            if not fn.startswith(home):
                return not fn.startswith("<frozen")
            if (
                fn.endswith("overrides.py")
                or hops == 0
                or frame.f_code.co_name == "wrapped"
                or fn.endswith("_tensor.py")
            ):
                hops += 1
                frame = frame.f_back
                continue
            if hops == 1:
                hops += 1
                frame = frame.f_back
                continue
            return False
        return False

    state = {"depth": 0, "on": True, "end": time.perf_counter() + TRACE_SECONDS}

    class Tracer(ov.TorchFunctionMode):
        def __torch_function__(self, func, types_, args=(), kwargs=None):
            state["depth"] += 1
            try:
                return self.note(func, args, kwargs)
            finally:
                state["depth"] -= 1

        def note(self, func, args, kwargs):
            f = sys._getframe(2)
            n = name_of(func)
            if (
                not f.f_code.co_filename.startswith(home)
                or f.f_code.co_filename.endswith("overrides.py")
                and user_level(f)
            ):
                calls[n] = calls.get(n, 0) + 1
            else:
                internal[n] = internal.get(n, 0) + 1
            return func(*args, **(kwargs or {}))

    def note_class(base):
        old = base.__init__

        def init(self, *a, **k):
            c = type(self)
            mod = c.__module__ or ""
            if mod.split(".")[0] == "torch":
                key = mod + "." + c.__qualname__
                classes[key] = classes.get(key, 0) + 1
            return old(self, *a, **k)

        base.__init__ = init

    note_class(torch.nn.Module)
    note_class(torch.optim.Optimizer)
    note_class(torch.optim.lr_scheduler.LRScheduler)
    note_class(torch.utils.data.DataLoader)
    note_class(torch.distributions.Distribution)

    # optimizers make thousands of calls that nobody wrote
    step_classes = [torch.optim.Optimizer]
    while step_classes:
        c = step_classes.pop()
        step_classes.extend(c.__subclasses__())
        if (
            "step" in c.__dict__
            and c is not torch.optim.Optimizer
            and c.__name__ != "LBFGS"
            and c.__module__.startswith("torch.")
        ):

            def quiet(self, *a, __old=c.step, **k):
                with torch._C.DisableTorchFunction():
                    return __old(self, *a, **k)

            quiet.hooked = True
            c.step = quiet

    reached, codes = set(), {}
    mode = Tracer()

    def profile(frame, event, arg):
        code = frame.f_code
        mine = codes.get(code)
        if mine is None:
            mine = codes[code] = code.co_filename.startswith(sandbox)
            if mine:
                reached.add((os.path.relpath(code.co_filename, sandbox), code.co_firstlineno))
        if mine and state["on"] and state["depth"] == 0 and time.perf_counter() > state["end"]:
            state["on"] = False
            mode.__exit__(None, None, None)
        return None

    sys.settrace(profile)
    mode.__enter__()
    return lambda: {
        "calls": calls,
        "internal": internal,
        "classes": classes,
        "complete": state["on"],
        "reached": sorted(map(list, reached)),
    }


def main():
    with open(sys.argv[1]) as f:
        job = json.load(f)
    meta = {"stage": "import-engine"}

    def save():
        with open(job["meta"], "w") as f:
            json.dump(meta, f)

    save()
    if job["engine"] == "rushlight":
        import engine_boot

        meta["alias"] = engine_boot.install()
    import torch

    meta["torch_is"] = getattr(torch, "__name__", "?")
    meta["version"] = str(getattr(torch, "__version__", "?"))
    meta["import_s"] = round(time.perf_counter() - T0, 3)
    try:
        import numpy

        numpy.random.seed(job["seed"])
    except ImportError:
        pass
    random.seed(job["seed"])
    meta["stage"] = "seed"
    save()
    torch.manual_seed(job["seed"])
    if job.get("perturb") and job["engine"] == "torch":
        torch.backends.mkldnn.set_flags(False)
    meta["stage"] = "program"
    save()
    finish = start_trace(torch, job["sandbox"]) if job.get("trace") else None

    script = job["script"]
    sys.argv = [script] + job["argv"]
    sys.path[0] = os.path.dirname(script)
    main_mod = types.ModuleType("__main__")
    main_mod.__file__ = script
    main_mod.__builtins__ = __builtins__
    main_mod.__dict__["__show__"] = show
    main_mod.__dict__["__report__"] = report
    sys.modules["__main__"]
    sys.modules["__main__"] = main_mod
    t1 = time.perf_counter()
    try:
        with open(script, encoding="utf-8") as f:
            code = compile(f.read(), script, "exec", dont_inherit=True)
        if job.get("prepend"):
            with open(job["prepend"], encoding="utf-8") as f:
                exec(compile(f.read(), job["prepend"], "exec", dont_inherit=True), main_mod.__dict__)
        try:
            exec(code, main_mod.__dict__)
        except SystemExit as e:
            if e.code not in (None, 0):
                raise
        meta["program_s"] = round(time.perf_counter() - t1, 3)
        if job.get("append"):
            meta["stage"] = "append"
            with open(job["append"], encoding="utf-8") as f:
                code = compile(f.read(), job["append"], "exec", dont_inherit=True)
            exec(code, main_mod.__dict__)
        meta["stage"] = "done"
    finally:
        sys.stdout.flush()
        meta.setdefault("program_s", round(time.perf_counter() - t1, 3))
        if finish:
            sys.settrace(None)
            meta["traced"] = finish()
        loaded = []
        for m in list(sys.modules.values()):
            fn = getattr(m, "__file__", None)
            if fn and str(fn).startswith(job["sandbox"]):
                loaded.append(os.path.relpath(fn, job["sandbox"]))
        meta["loaded"] = sorted(set(loaded))
        real = getattr(torch, "__file__", "") or ""
        if job["engine"] == "rushlight" and (os.sep + "torch" + os.sep) in real:
            meta["stage"] = "real-torch-leaked"
        save()


if __name__ == "__main__":
    main()
