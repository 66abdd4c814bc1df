"""Compile loops in another process of low priority, while NumPy continues the work.

Most loops take 10 to 100 ms to compile, the largest 0.6 s. A way of `rushlight.fast` that meets such a loop raises
NotReady; the place that chose the way catches it, and the reference kernel computes instead. The loop is used once its
machine code is in the cache folder. Until then the accounts of NumPy's work (budget.py) postpone the next attempt.

So the first run on a machine may switch to a loop later than the runs after it, and its last bits may differ from
theirs. `settle()`, `use_deterministic_algorithms(True)` or RUSHLIGHT_LOOPS=wait make the program wait for its loops
instead."""

from __future__ import annotations

import os
import sys
from queue import SimpleQueue
from threading import Lock, Thread, local
from types import FrameType
from typing import TYPE_CHECKING, Any

from rushlight.base.faster import FALLING_BACK, NotReady
from rushlight.loops import budget

if TYPE_CHECKING:
    import subprocess

WORKER = """import pickle, sys
sys.path[:] = pickle.load(sys.stdin.buffer)
from rushlight.loops.compile_worker import main
main()"""


class ThreadState(local):
    """`may_fall_back`: whether the function that gave this thread a part of a loop catches NotReady."""

    may_fall_back = False


state = ThreadState()


def may_fall_back() -> bool:
    """True if a function on the stack catches NotReady."""
    if not background.wanted:
        return False
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code not in FALLING_BACK:
        frame = frame.f_back
    return frame is not None or state.may_fall_back


class Background:
    """The process that compiles loops. `wanted`: whether programs continue without their loops in the meantime."""

    def __init__(self) -> None:
        self.wanted = (
            os.environ.get("RUSHLIGHT_LOOPS") != "wait"
            and bool(sys.executable)
            and sys.platform not in ("emscripten", "wasi")
        )
        self.lock = Lock()
        self.worker: subprocess.Popen | None = None
        self.listener: Thread | None = None
        self.queue: SimpleQueue = SimpleQueue()  # queue of ((key, signature), job)
        self.done: dict[Any, bool] = {}  # (key of the loop, signature) -> whether it was compiled

    def ready(self, loop: Any, signature: Any) -> bool:
        """True if this signature of the loop was compiled; the first call puts it into the queue.

        Also True if the worker has failed: then this process compiles the loop.
        """
        key = loop.text_key, signature
        with self.lock:
            if key not in self.done:
                self.done[key] = False
                self.queue.put((key, (loop.job(), signature)))
                if self.listener is None:
                    self.listener = Thread(target=self.serve, daemon=True, name="rushlight worker")
                    self.listener.start()
            return self.done[key]

    def serve(self) -> None:
        """The listener's work: give the worker one job after the other, and record the compiled loops."""
        import pickle
        import subprocess

        try:
            self.worker = subprocess.Popen(
                [sys.executable, "-c", WORKER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is meant for the main program only
            )
            to, answers = self.worker.stdin, self.worker.stdout
            assert to is not None
            assert answers is not None
            to.write(pickle.dumps(sys.path))
            while True:
                key, job = self.queue.get()
                to.write(pickle.dumps(job))
                to.flush()
                if not answers.readline():
                    break
                with self.lock:
                    self.done[key] = True
        except OSError:  # no process can be started, or the worker has ended
            pass
        self.wait()

    def stop(self) -> None:
        """The worker has ended: from now on this process compiles."""
        self.wanted = False
        self.done = dict.fromkeys(self.done, True)

    def wait(self) -> None:
        """Compile in this process from now on."""
        with self.lock:
            self.stop()


def not_ready(loop: Any, signature: Any) -> None:
    """Raise NotReady if the program can continue without this loop, which has no machine code yet."""
    if may_fall_back() and not background.ready(loop, signature):
        budget.put_off()
        raise NotReady


background = Background()
if hasattr(os, "register_at_fork"):  # the worker belongs to the parent
    os.register_at_fork(after_in_child=background.stop)
