"""The command `rushlight`."""

from __future__ import annotations

import argparse
import math
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from rushlight.base.errors import meant
from rushlight.cli.completion import add_completion
from rushlight.cli.export import add_export
from rushlight.cli.info import add_cache, add_info
from rushlight.compat.command import add_check, add_run
from rushlight.demo import BadInput
from rushlight.demo.digits import SHIPPED
from rushlight.demo.lessons.command import add_lessons
from rushlight.distributed import launch_arguments
from rushlight.version import __version__

VERSION = f"rushlight {__version__}"

DEMO = """\
Train a small convolutional network on 1,797 handwritten digits of 8x8 pixels,
which are included in rushlight. The same fifth of them is held out in every run
to measure the accuracy.

The results are five files in a folder:
  loss.png       the loss of each step, and the accuracy on the held-out digits
  digits.png     held-out digits with predicted labels, wrong ones in red
  graph.svg      the backward graph
  backward.html  backward of one training step, to step through in a browser
  weights.pt     the trained weights, for load_state_dict(rushlight.load(...))
"""


PLOT = """\
Plot a function of x and its derivatives, which autograd computes.

A formula may contain numbers, x, pi, e, + - * / // % **, brackets, and functions:
sin, cos, tanh, exp, log, sqrt, abs, sigmoid, relu, erf and others. Put a formula
that begins with a minus in brackets: "(-x**2)".
"""


WARMUP = """\
Compile in advance the loops of frequent ops on large arrays, of softmax, layer
norm and batch norm, and of the optimizers. Otherwise each loop is compiled on
first use, which takes about half a second. The loops are stored in the folder
RUSHLIGHT_CACHE (default: the user's cache folder), for this version of rushlight,
llvmlite and Python. Needs llvmlite.
"""


class Parser(argparse.ArgumentParser):
    """An argument parser that reports an error in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {nearest(message)}; see {self.prog} --help\n")


def nearest(message: str) -> str:
    """argparse's message; for a command or choice with a typing error, with the nearest one in place of the list."""
    found = re.match(r"argument (\S+): invalid choice: '(.*?)' \(choose from (.*)\)", message, re.DOTALL)
    if found is None:
        return message
    argument, word, listed = found.groups()
    choices = [choice.strip("' ") for choice in listed.split(",")]
    what = f"no command {word!r}" if argument == "COMMAND" else f"{argument}: no choice {word!r}"
    return what + (meant(word, choices) or f"; choose from {', '.join(choices)}")


def options(top: Parser, command: str) -> list[str]:
    """The options of a command."""
    (commands,) = [action for action in top._actions if isinstance(action, argparse._SubParsersAction)]
    return [flag for flag in commands.choices.get(command, top)._option_string_actions if flag.startswith("--")]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command. Returns the exit status: 0, 1 for results that cannot be written, 2 for bad input."""
    top = parser()
    arguments, unknown = top.parse_known_args(argv)
    command = f"rushlight {arguments.command}".rstrip()
    if unknown:
        guess = meant(unknown[0].partition("=")[0], options(top, arguments.command))
        return say(f"{command}: unrecognized arguments: {' '.join(unknown)}{guess}; see {command} --help", 2)
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
    top = Parser(prog="rushlight", description="PyTorch's API in pure Python on NumPy.", allow_abbrev=False)
    top.add_argument("--version", action="version", version=VERSION, help="print the version")
    top.set_defaults(run=lambda arguments: show(top.format_help()), command="")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", parser_class=Parser)
    add_demo(commands)
    add_plot(commands)
    add_run(commands)
    add_check(commands)
    add_export(commands)
    add_launch(commands)
    add_lessons(commands)
    add_warmup(commands)
    add_info(commands)
    add_cache(commands)
    add_completion(commands, top)
    version = commands.add_parser("version", help="print the version", description="Print the version.")
    version.set_defaults(run=lambda arguments: show(VERSION), command="version")
    return top


def add_demo(commands: argparse._SubParsersAction) -> None:
    demo = commands.add_parser(
        "demo",
        help="train a network on handwritten digits, and plot the results",
        description=DEMO,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    settings = (
        ("--out", "DIR", Path, Path("rushlight-demo"), "folder for the results (default: %(default)s)"),
        ("--epochs", "N", whole(1), 15, "number of passes over the training digits (default: %(default)s)"),
        ("--lr", "RATE", rate, 2e-3, "learning rate of Adam (default: %(default)s)"),
        ("--seed", "N", whole(0), 0, "seed of the initial weights and the shuffling (default: %(default)s)"),
        (
            "--data",
            "FILE",
            Path,
            SHIPPED,
            "CSV file with other digits: 64 pixels from 0 to 16 and a label in each row (default: the included digits)",
        ),
    )
    for flag, metavar, kind, default, text in settings:
        demo.add_argument(flag, metavar=metavar, type=kind, default=default, help=text)
    demo.add_argument("--overwrite", action="store_true", help="replace existing results")
    demo.add_argument("--quiet", action="store_true", help="show no progress bar and no table")
    demo.add_argument("--open", action="store_true", help="open the step page in the browser")
    demo.set_defaults(run=run_demo, command="demo")


def add_plot(commands: argparse._SubParsersAction) -> None:
    plot = commands.add_parser(
        "plot",
        help="plot a function and its derivatives",
        description=PLOT,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    plot.add_argument("formula", metavar="FORMULA", help='the function, such as "x**3 + x"')
    plot.add_argument(
        "--from",
        metavar="A",
        type=finite,
        default=-3.0,
        dest="start",
        help="left end of the x axis (default: %(default)s)",
    )
    plot.add_argument(
        "--to",
        metavar="B",
        type=finite,
        default=3.0,
        dest="stop",
        help="right end of the x axis (default: %(default)s)",
    )
    plot.add_argument(
        "--derivatives",
        metavar="N",
        type=whole(0),
        default=2,
        help="number of derivatives, 0 to 6 (default: %(default)s)",
    )
    plot.add_argument(
        "--out",
        metavar="FILE",
        type=Path,
        default=Path("plot.png"),
        help="picture to write; the ending gives the format (default: %(default)s)",
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
        help="compile loops in advance (needs llvmlite)",
        description=WARMUP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    warmup.add_argument("--quiet", action="store_true", help="do not list the loops")
    warmup.set_defaults(run=run_warmup, command="warmup")


def run_warmup(arguments: argparse.Namespace) -> int:
    from rushlight.compile.warmup import warmup
    from rushlight.loops.cache import folder

    place = folder()
    if place is None:
        raise BadInput("the cache folder is not writable; set RUSHLIGHT_CACHE to a writable folder")
    try:
        count = warmup(
            None if arguments.quiet else lambda name, seconds: print(f"{seconds:6.2f} s  {name}", flush=True)
        )
    except ImportError as error:
        raise BadInput(str(error)) from None
    print(f"{count} loops compiled; cache folder: {place}")
    return 0


def whole(least: int):
    """A parser of integers from `least` to the largest seed."""

    def parse(text: str) -> int:
        if not text.isdecimal() or not least <= int(text) < 2**63:
            raise argparse.ArgumentTypeError(f"expected an integer >= {least}, got {text!r}")
        return int(text)

    return parse


def number(text: str) -> float:
    """The text as a number; nan if it is not a number."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def rate(text: str) -> float:
    value = number(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number > 0, got {text!r}")
    return value


def finite(text: str) -> float:
    value = number(text)
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"expected a finite number, got {text!r}")
    return value


def run_plot(arguments: argparse.Namespace) -> int:
    from rushlight.viz import plot

    a = arguments
    if a.derivatives > 6:
        raise BadInput(f"--derivatives is {a.derivatives}; the maximum is 6")
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
    if a.open:
        import webbrowser

        webbrowser.open((a.out / "backward.html").resolve().as_uri())
    return 0
