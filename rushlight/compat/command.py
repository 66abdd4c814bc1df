"""The commands `rushlight run` and `rushlight check`."""

from __future__ import annotations

import argparse
import sys

RUN = """\
Run a PyTorch program with rushlight: inside the program, `import torch` imports
rushlight. The program is a script, a module (-m), or a notebook, whose code cells
run in order. Arguments after the program's name are passed to the program.
--teach warns of silent mistakes on stderr: gradients that are not cleared, softmax
before cross_entropy, evaluation in training mode and others; the list:
https://rushlight-py.github.io/rushlight/use/teach.html
--live prints the address of a local page that shows the training while it runs:
losses, layers, predictions and slow ops, with buttons to pause and to make single
steps. The model and the loss are found when the optimizer makes its first step.
"""
CHECK = """\
List the names of torch that a script or notebook uses and that rushlight lacks
("missing"), or has only to raise an error with a hint ("raises"). The program is
not run. Methods of tensors are not checked. Exit status: 0 if all names exist, 1 if
some are missing, 2 if the file cannot be checked.
"""


def add_run(commands: argparse._SubParsersAction) -> None:
    run = commands.add_parser(
        "run", help="run a PyTorch program without changes", description=RUN, allow_abbrev=False,
        usage="rushlight run [-h] [--teach] [--live] [--wait] (SCRIPT.py | NOTEBOOK.ipynb | -m MODULE) [ARGUMENT ...]",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    run.add_argument("-m", dest="module", action="store_true", help="the program is a module, as for python -m")
    run.add_argument("--teach", action="store_true", help="warn of silent mistakes of the training loop")
    run.add_argument("--live", action="store_true", help="show the training on a local page while it runs")
    run.add_argument(
        "--wait", action="store_true", help="with --live: wait after the first step until the page is open"
    )
    run.add_argument("program", help="a script, a notebook, or with -m a module")
    run.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments of the program (its sys.argv)")
    run.set_defaults(run=run_program, command="run")


def run_program(arguments: argparse.Namespace) -> int:
    from rushlight.compat.run import NotAProgram, fail, run

    if arguments.wait and not arguments.live:
        print("rushlight run: --wait needs --live", file=sys.stderr)
        return 2
    a = arguments
    try:
        run(a.program, a.arguments, a.module, a.teach, live=a.live, wait=a.wait)
    except NotAProgram as error:
        print(f"rushlight run: {error}", file=sys.stderr)
        return 2
    except Exception as error:  # an error of the program: shown as python shows it
        return fail(error)
    return 0


def add_check(commands: argparse._SubParsersAction) -> None:
    check = commands.add_parser(
        "check", help="list names of torch that a program uses and rushlight lacks", description=CHECK,
        allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    check.add_argument("program", metavar="FILE", help="a script or a notebook")
    check.add_argument("--all", action="store_true", help="list names that exist, too")
    check.set_defaults(run=check_program, command="check")


def check_program(arguments: argparse.Namespace) -> int:
    from rushlight.compat.check import MISSING, RAISES, check
    from rushlight.compat.run import NotAProgram

    try:
        uses = check(arguments.program)
    except NotAProgram as error:
        print(f"rushlight check: {error}", file=sys.stderr)
        return 2
    missing = [use for use in uses if use.kind == MISSING]
    raising = [use for use in uses if use.kind == RAISES]
    for use in uses if arguments.all else missing + raising:
        like = f"; the nearest is {use.like}" if use.like else ""
        print(f"{use.kind:7} {use.name}  ({', '.join(use.places[:5])}{', ...' if len(use.places) > 5 else ''}{like})")
    also = f", {len(raising)} only raise an error" if raising else ""
    print(f"{arguments.program}: {len(uses)} names of torch, {len(missing)} of them missing{also}")
    return 1 if missing else 0
