"""Write docs/assets/demo-loss.png and demo-digits.png: the pictures of `rushlight demo`. `make pictures` runs this."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from rushlight.demo.digits import SHIPPED  # noqa: E402
from rushlight.demo.run import run  # noqa: E402

ASSETS = ROOT / "docs" / "assets"
NAMES = ("demo-loss.png", "demo-digits.png")


def write(folder: Path) -> None:
    """Train the demo's network with its default settings; write both pictures to the folder."""
    with tempfile.TemporaryDirectory() as place:
        run(Path(place) / "demo", SHIPPED, epochs=15, lr=2e-3, seed=0, overwrite=False, quiet=True)
        for name in NAMES:
            shutil.copy(Path(place) / "demo" / name.removeprefix("demo-"), folder / name)


if __name__ == "__main__":
    write(ASSETS)
