"""Child processes import rushlight as torch, too: spawned workers, and programs started by `sys.executable`. They
inherit two environment variables: RUSHLIGHT_TORCH=1, and PYTHONPATH with the folder `startup`, whose sitecustomize.py
Python imports at its start.

RUSHLIGHT_TORCH=0 in the environment of a child gives it the torch that is installed."""

from __future__ import annotations

import os

VARIABLE = "RUSHLIGHT_TORCH"
STARTUP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "startup")


def folders() -> list[str]:
    """The folders of PYTHONPATH without `startup`."""
    given = os.environ.get("PYTHONPATH", "")
    return [folder for folder in given.split(os.pathsep) if folder and folder != STARTUP]


def tell() -> None:
    """Set the variables for child processes."""
    os.environ["PYTHONPATH"] = os.pathsep.join([STARTUP, *folders()])
    os.environ[VARIABLE] = "1"


def told() -> bool:
    """Whether a parent process has called `tell`."""
    return os.environ.get(VARIABLE) == "1"


def untell() -> None:
    """Undo `tell`."""
    os.environ.pop(VARIABLE, None)
    if rest := folders():
        os.environ["PYTHONPATH"] = os.pathsep.join(rest)
    else:
        os.environ.pop("PYTHONPATH", None)
