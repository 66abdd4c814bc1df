"""`rushlight completion`: the script that completes commands and options in a shell."""

from __future__ import annotations

import argparse

from rushlight.demo import BadInput

DESCRIPTION = """\
Print a script that completes rushlight's commands and options in a shell. Needs shtab
(pip install shtab).

  bash: rushlight completion bash > ~/.local/share/bash-completion/completions/rushlight
  zsh:  rushlight completion zsh > a folder in $fpath, as the file _rushlight
"""


def add_completion(commands: argparse._SubParsersAction, top: argparse.ArgumentParser) -> None:
    completion = commands.add_parser(
        "completion",
        help="print a script that completes commands in bash or zsh",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    completion.add_argument("shell", choices=("bash", "zsh", "tcsh"), help="the shell")
    completion.set_defaults(run=lambda arguments: run(arguments.shell, top), command="completion")


def run(shell: str, top: argparse.ArgumentParser) -> int:
    try:
        import shtab
    except ImportError:
        raise BadInput("completion needs shtab: pip install shtab") from None
    print(shtab.complete(top, shell=shell))
    return 0
