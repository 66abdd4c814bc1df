"""Clone the repositories of manifest.toml, each at its commit, into a folder. Needs git and a network.

python benchmarks/programs/fetch.py FOLDER; export PROGRAMS_ANCHORS=FOLDER
"""

import subprocess
import sys
from pathlib import Path

try:
    import tomllib
except ImportError:  # Python 3.10
    import tomli as tomllib  # type: ignore[no-redef]

MANIFEST = Path(__file__).with_name("manifest.toml")


def fetch(repository: str, folder: Path, commit: str) -> None:
    """One commit of a repository on GitHub, without its history."""
    folder.mkdir(parents=True, exist_ok=True)
    for arguments in (
        ["init", "--quiet"],
        ["fetch", "--quiet", "--depth", "1", f"https://github.com/{repository}", commit],
        ["checkout", "--quiet", "FETCH_HEAD"],
    ):
        subprocess.run(["git", "-C", folder, *arguments], check=True)


if __name__ == "__main__":
    place = Path(sys.argv[1])
    for repository, entry in tomllib.loads(MANIFEST.read_text())["repos"].items():
        print(repository, entry["commit"], flush=True)
        fetch(repository, place / entry["dir"], entry["commit"])
