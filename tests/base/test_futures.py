"""torch.futures beside torch's: callbacks, their order, their errors, threads, long chains."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from rushlight import futures
from tests.support.programs import Programs

program = Programs()
test_program = program.test()


def outcome(function):
    """The result of a function, or the class of its error and the first line."""
    try:
        return function()
    except Exception as error:
        return [type(error).__name__, str(error).split("\n")[0]]


def chain(library, length):
    first = last = library.Future()
    for _ in range(length):
        last = library.collect_all([last]).then(lambda done: done.value()[0].value() + 1)
    first.set_result(0)
    return last.wait()


@program
def a_chain(torch):
    return [chain(torch.futures, n) for n in (1, 50, 400)]


@pytest.mark.parametrize("late", [False, True])
def test_a_long_chain(late):
    assert chain(futures, 10_000) == 10_000
    first = last = futures.Future()
    if not late:
        first.set_result(0)
    for _ in range(10_000):
        last = last.then(lambda done: done.value() + 1)
    if late:
        first.set_result(0)
    assert last.wait() == 10_000


@program
def the_order_of_callbacks(torch):
    future, told = torch.futures.Future(), []
    after = future.then(lambda f: told.append("then"))
    after.then(lambda f: told.append("then of then"))
    future.add_done_callback(lambda f: told.append([f is future, f.value()]))

    def nested(f):
        told.append("begins")
        f.add_done_callback(lambda f: told.append("inside"))
        f.then(lambda f: told.append("then inside"))
        told.append("ends")

    future.add_done_callback(nested)
    future.set_result(3)
    told.append("set")
    future.then(lambda f: told.append("at once"))
    return told


@program
def errors_go_through_then(torch):
    future = torch.futures.Future()
    after = future.then(lambda f: f.value() + 1)
    last = after.then(lambda f: "last")
    future.set_exception(ValueError("wrong"))
    return [[outcome(f.wait), outcome(f.value), f.done()] for f in (future, after)] + [last.wait()]


@program
def errors_in_callbacks(torch):
    future, told = torch.futures.Future(), []
    after = future.then(lambda f: 1 / 0)
    none = future.then(lambda: 1)
    future.add_done_callback(lambda f: 1 / 0)
    future.add_done_callback(lambda f: told.append(f.value()))
    future.set_result(5)
    future.add_done_callback(lambda f: 1 / 0)
    named = [line.replace("errors_in_callbacks.<locals>.", "") for line in outcome(none.wait)]
    return [outcome(after.wait), named, told, future.wait()]


@program
def errors_of_several(torch):
    found = []
    for order in ([0, 1, 2], [2, 1, 0]):
        several = [torch.futures.Future() for _ in range(3)]
        together = torch.futures.collect_all(several)
        counted = together.then(lambda f: len(f.value()))
        states = []
        for i in order:
            if i == 1:
                several[i].set_result(1)
            else:
                several[i].set_exception(ValueError(str(i)))
            states.append([together.done(), counted.done()])
        found.append([states, outcome(together.wait), outcome(counted.wait)])
        found.append(outcome(lambda several=several: torch.futures.wait_all(several)))
    return found


@program
def nothing_to_collect(torch):
    return [torch.futures.collect_all([]).wait(), torch.futures.wait_all([])]


@program
def the_same_future_twice(torch):
    future = torch.futures.Future()
    together = torch.futures.collect_all([future, future])
    future.set_result(1)
    return [f.value() for f in together.wait()]


@program
def completed_twice(torch):
    found = []
    for first in ("result", "exception"):
        for second in ("result", "exception"):
            future = torch.futures.Future()
            for kind in (first, second):
                value = 1 if kind == "result" else ValueError("x")
                answer = outcome(partial(getattr(future, f"set_{kind}"), value))
                found.append(answer and [answer[0], answer[1][:70]])
    return found


@program
def an_exception_that_is_none(torch):
    return outcome(lambda: torch.futures.Future().set_exception("text"))


@program
def threads_wait(torch):
    future, told = torch.futures.Future(), []
    doubled = future.then(lambda f: 2 * f.value())
    waiting = [threading.Thread(target=lambda: told.append(doubled.wait())) for _ in range(4)]
    for thread in waiting:
        thread.start()
    setting = threading.Timer(0.02, future.set_result, [4])
    setting.start()
    for thread in [*waiting, setting]:
        thread.join(20)
    return [told, future.wait()]


def test_what_is_no_callback_or_future():
    future = futures.Future()
    for call in (future.then, future.add_done_callback):
        with pytest.raises(TypeError, match="must be callable, but got int"):
            call(3)
    with pytest.raises(TypeError, match="takes Futures, but got int"):
        futures.collect_all([3])
    with pytest.raises(RuntimeError, match="no value yet"):
        future.value()


def test_an_error_in_a_callback_is_printed(capsys):
    future = futures.Future()
    future.add_done_callback(lambda f: 1 / 0)
    future.set_result(1)
    assert "running the callback: ZeroDivisionError: division by zero" in capsys.readouterr().err
