"""Install the wheel of a folder into an empty environment, and run the README's programs there.

python tools/try_wheel.py dist
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    wheel = next(Path(sys.argv[1]).glob("*.whl")).resolve()
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    with tempfile.TemporaryDirectory() as place:
        venv.create(place, with_pip=True)
        bin_folder = Path(place) / ("Scripts" if os.name == "nt" else "bin")
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        for arguments in (
            ["-m", "pip", "install", "-q", wheel],
            ["-c", "\n".join(blocks)],
            ["-m", "rushlight", "info"],
            ["-m", "rushlight", "version"],
        ):
            subprocess.run([bin_folder / "python", *arguments], check=True, cwd=place, env=environment)
    print(f"{wheel.name}: the README's programs run in an empty environment")


if __name__ == "__main__":
    main()
