"""The command `rushlight`."""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from rushlight.compat.command import add_check, add_run
from rushlight.demo import BadInput
from rushlight.demo.digits import SHIPPED
from rushlight.distributed import launch_arguments
from rushlight.version import __version__

VERSION = f"rushlight {__version__}"

DEMO = """\
Train a small convolutional network on 1,797 real handwritten digits of 8x8
pixels, which ship with rushlight. A fifth of them, always the same ones, is held
out to measure the accuracy.

The results are five files in a folder:
  loss.png       the loss of each step, and the accuracy on the held-out digits
  digits.png     held-out digits with the network's answers, wrong ones in red
  graph.svg      the graph that backward walks
  backward.html  that walk for one training step, step by step, in a browser
  weights.pt     the trained weights, for load_state_dict(rushlight.load(...))
"""


PLOT = """\
Draw a function of x and its derivatives, which autograd computes.

A formula has numbers, x, pi, e, + - * / // % **, brackets, and functions: sin,
cos, tanh, exp, log, sqrt, abs, sigmoid, relu, erf and others. One that begins with
a minus goes into brackets: "(-x**2)".
"""


WARMUP = """\
Compile the loops of frequent ops on large arrays, of softmax, layer and batch norm, and
of the optimizers, which would else be compiled when they are first used, half a second
each. They are kept for this version of rushlight, Numba and Python in the folder
RUSHLIGHT_CACHE, or the user's cache folder. Needs Numba.
"""


class Parser(argparse.ArgumentParser):
    """An argument parser that reports an error in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command. Returns the exit status: 0, 1 for results that cannot be written, 2 for bad
    input."""
    arguments, unknown = parser().parse_known_args(argv)
    command = f"rushlight {arguments.command}".rstrip()
    if unknown:
        return say(f"{command}: does not know {' '.join(unknown)}; see {command} --help", 2)
    try:
        return arguments.run(arguments)
    except BadInput as error:
        return say(f"{command}: {error}", 2)
    except BrokenPipeError:
        # the reader closed the pipe: no error message at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        return say(f"{command}: {error.filename or 'output'}: {error.strerror or error}", 1)
    except KeyboardInterrupt:
        return say(f"{command}: interrupted; nothing was written", 130)


def show(text: str) -> int:
    print(text.rstrip())
    return 0


def say(message: str, status: int) -> int:
    print(message, file=sys.stderr)
    return status


def parser() -> Parser:
    top = Parser(
        prog="rushlight", description="PyTorch's API in pure Python on NumPy.", allow_abbrev=False
    )
    top.add_argument("--version", action="version", version=VERSION, help="print the version")
    top.set_defaults(run=lambda arguments: show(top.format_help()), command="")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", parser_class=Parser)
    add_demo(commands)
    add_plot(commands)
    add_run(commands)
    add_check(commands)
    add_launch(commands)
    add_warmup(commands)
    version = commands.add_parser(
        "version", help="print the version", description="Print the version."
    )
    version.set_defaults(run=lambda arguments: show(VERSION), command="version")
    return top


def add_demo(commands: argparse._SubParsersAction) -> None:
    demo = commands.add_parser(
        "demo",
        help="learn real handwritten digits and show the results",
        description=DEMO,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    settings = (
        ("--out", "DIR", Path, Path("rushlight-demo"), "folder of the results (%(default)s)"),
        ("--epochs", "N", whole(1), 15, "times over the training digits (%(default)s)"),
        ("--lr", "RATE", rate, 2e-3, "learning rate of Adam (%(default)s)"),
        ("--seed", "N", whole(0), 0, "of the first weights and the shuffling (%(default)s)"),
        (
            "--data",
            "FILE",
            Path,
            SHIPPED,
            "other digits: CSV, rows of 64 pixels from 0 to 16 and a label",
        ),
    )
    for flag, metavar, kind, default, text in settings:
        demo.add_argument(flag, metavar=metavar, type=kind, default=default, help=text)
    demo.add_argument("--overwrite", action="store_true", help="replace the results that are there")
    demo.add_argument("--quiet", action="store_true", help="no progress bar and no table")
    demo.set_defaults(run=run_demo, command="demo")


def add_plot(commands: argparse._SubParsersAction) -> None:
    plot = commands.add_parser(
        "plot",
        help="draw a function and its derivatives",
        description=PLOT,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    plot.add_argument("formula", metavar="FORMULA", help='such as "x**3 + x"')
    plot.add_argument(
        "--from",
        metavar="A",
        type=finite,
        default=-3.0,
        dest="start",
        help="left end (%(default)s)",
    )
    plot.add_argument(
        "--to", metavar="B", type=finite, default=3.0, dest="stop", help="right end (%(default)s)"
    )
    plot.add_argument(
        "--derivatives", metavar="N", type=whole(0), default=2, help="how many (%(default)s)"
    )
    plot.add_argument(
        "--out",
        metavar="FILE",
        type=Path,
        default=Path("plot.png"),
        help="the picture (%(default)s)",
    )
    plot.set_defaults(run=run_plot, command="plot")


def add_launch(commands: argparse._SubParsersAction) -> None:
    launch = commands.add_parser(
        "launch",
        help="start a program on several processes or machines",
        description=launch_arguments.DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    launch_arguments.add_arguments(launch)
    launch.set_defaults(run=run_launch, command="launch")


def run_launch(arguments: argparse.Namespace) -> int:
    from rushlight.distributed.agent import launch  # loads sockets and processes

    return launch(arguments)


def add_warmup(commands: argparse._SubParsersAction) -> None:
    warmup = commands.add_parser(
        "warmup",
        help="compile now what is compiled at its first use",
        description=WARMUP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    warmup.add_argument("--quiet", action="store_true", help="no list of what was compiled")
    warmup.set_defaults(run=run_warmup, command="warmup")


def run_warmup(arguments: argparse.Namespace) -> int:
    from rushlight.compile.warmup import warmup
    from rushlight.loops.cache import folder

    place = folder()
    if place is None:
        raise BadInput("the cache folder cannot be written; set RUSHLIGHT_CACHE to one that can")
    try:
        count = warmup(
            None
            if arguments.quiet
            else lambda name, seconds: print(f"{seconds:6.2f} s  {name}", flush=True)
        )
    except ImportError as error:
        raise BadInput(str(error)) from None
    print(f"{count} loops are in {place}")
    return 0


def whole(least: int):
    """A parser of integers from `least` to the largest seed."""

    def parse(text: str) -> int:
        if not text.isdecimal() or not least <= int(text) < 2**63:
            raise argparse.ArgumentTypeError(
                f"a whole number from {least} on is needed, not {text!r}"
            )
        return int(text)

    return parse


def number(text: str) -> float:
    """The text as a number; nan if it is no number."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def rate(text: str) -> float:
    value = number(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"a number above 0 is needed, not {text!r}")
    return value


def finite(text: str) -> float:
    value = number(text)
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"a number is needed, not {text!r}")
    return value


def run_plot(arguments: argparse.Namespace) -> int:
    from rushlight.viz import plot

    a = arguments
    if a.derivatives > 6:
        raise BadInput(f"at most 6 derivatives are drawn, not {a.derivatives}")
    try:
        plot(a.formula, a.start, a.stop, derivatives=a.derivatives, path=a.out)
    except (ValueError, ImportError) as error:
        raise BadInput(str(error).replace("viz.plot: ", "").replace("\n", " ")) from None
    print(a.out)
    return 0


def run_demo(arguments: argparse.Namespace) -> int:
    from rushlight.demo.run import run

    a = arguments
    run(a.out, a.data, a.epochs, a.lr, a.seed, a.overwrite, a.quiet)
    return 0
