"""Tracebacks without the library's frames: the last frame of an error is the user's statement.

A function cannot take its own frame out of a traceback, since Python adds the frame when the function is left.
`hide_frames` therefore sets a trace function (sys.settrace) on the user's frame. Python calls the trace function once,
when the exception arrives there; the trace function removes the library's frames and then itself. A call that succeeds
has no overhead. RUSHLIGHT_TRACEBACK=full keeps all frames, and so does a debugger, which sets its own trace function.
"""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from types import FrameType, TracebackType
from typing import Any

from rushlight.base.text import GENERATED

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
OURS = (PACKAGE, "<frozen ", GENERATED)  # the package's files, Python's import, generated functions
# the demo is a program that uses the library, so its statements count as the user's
DEMO = PACKAGE + "demo" + os.sep
# Number of calls that a Watch sees before it stops. Between an error and the user's frame there are about ten; without
# this limit, a program that caught the error would keep running with a trace function (0.2 us a call).
MAX_CALLS = 10_000


@lru_cache(maxsize=4096)  # called for each frame between an op and the user's statement
def ours(file: str) -> bool:
    """True if a code object with this `co_filename` belongs to the library, not to the user."""
    return file.startswith(OURS) and not file.startswith(DEMO)


def user_frame(depth: int = 1) -> FrameType | None:
    """The innermost frame outside rushlight, from `depth` frames above this function on."""
    return first_of_user(sys._getframe(depth))


def first_of_user(frame: FrameType | None) -> FrameType | None:
    while frame is not None and ours(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def hide_frames(own: bool = True) -> None:
    """Remove the library's frames from the traceback of the current exception when it reaches the user's frame.

    `own`: the library raised the exception. Then the traceback ends at the user's statement, and the exceptions that
    the library caught before leave `__context__`. Otherwise the frames after the user's last frame stay.
    """
    before, user = sys.gettrace(), user_frame(2)
    if isinstance(before, Watch):  # for an earlier exception, or for this one in an inner frame
        before.stop()
    elif before is not None:  # the trace function of a debugger or a coverage tool
        return
    if user is not None and os.environ.get("RUSHLIGHT_TRACEBACK") != "full":
        Watch(user, own).start()


class Watch:
    """A trace function that waits in the frame `user` for an exception to arrive. `own`: the library raised it."""

    def __init__(self, user: FrameType, own: bool):
        self.user, self.own, self.calls, self.before = user, own, 0, user.f_trace

    def start(self) -> None:
        self.user.f_trace = self
        sys.settrace(self)

    def stop(self) -> None:
        self.user.f_trace = self.before
        sys.settrace(None)

    def __call__(self, frame: FrameType, event: str, arg: Any) -> None:
        """Python calls this for each event in the user's frame, and for calls in all frames."""
        user = self.user
        if frame is user or frame.f_back is user:
            # the exception has arrived; or the library handled it, and the user's program continues
            self.stop()
            if event == "exception" and frame is user:
                self.arrived(arg[1], arg[2])
        else:
            self.calls += 1
            if self.calls > MAX_CALLS:
                self.stop()

    def arrived(self, error: BaseException, trace: TracebackType) -> None:
        remove_frames(trace, self.own)
        if self.own and isinstance(error, BaseException):
            remove_causes(error)
        if (outer := outer_user(self.user)) is not None:
            Watch(outer, self.own).start()


def outer_user(user: FrameType) -> FrameType | None:
    """The user's next frame beyond a call of the library: the training loop, for a statement in a model's forward."""
    frame = user.f_back
    while frame is not None and not ours(frame.f_code.co_filename):
        frame = frame.f_back
    return first_of_user(frame)


def remove_frames(trace: TracebackType, own: bool) -> None:
    """Remove the library's frames from a traceback whose first frame is the user's. `own`: also the frames after the
    user's last frame.
    """
    last = trace  # the last entry to keep
    step = trace.tb_next
    while step is not None:
        if not ours(step.tb_frame.f_code.co_filename):
            last.tb_next = last = step
        step = step.tb_next
    if own:
        last.tb_next = None


def remove_causes(error: BaseException) -> None:
    """Remove the exceptions that the library caught before it raised `error` from its context."""
    context = error.__context__
    while context is not None and (
        context.__traceback__ is None or ours(context.__traceback__.tb_frame.f_code.co_filename)
    ):
        context = context.__context__
    if context is not error.__context__:
        error.__context__ = context
        if error.__cause__ is None:  # `from None` was intended for the library's own exceptions
            error.__suppress_context__ = False
