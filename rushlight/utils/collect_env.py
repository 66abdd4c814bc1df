"""`python -m torch.utils.collect_env`: versions and settings, for bug reports."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version

from rushlight.version import __version__, torch_version

PACKAGES = ("numpy", "scipy", "llvmlite", "ml_dtypes", "safetensors", "torch")


def get_pretty_env_info() -> str:
    """One line for each fact: versions, system, processor."""
    facts = {
        "rushlight version": __version__,
        "API of torch": torch_version,
        "CUDA used to build": "None",
        "Is CUDA available": "False",
        "OS": platform.platform(),
        "Python version": sys.version.replace("\n", " "),
        "CPU": f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores",
    }
    return "\n".join(
        [
            *[f"{name}: {fact}" for name, fact in facts.items()],
            "",
            "Versions of relevant libraries:",
            *[f"[pip3] {name}=={installed(name)}" for name in PACKAGES],
        ]
    )


def installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def main() -> None:
    """Print the versions and settings."""
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
