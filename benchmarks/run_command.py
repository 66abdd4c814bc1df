"""What `rushlight run` adds to a program over `import rushlight`: the best of many processes, in ms.

python benchmarks/run_command.py [repeats]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent


def best(arguments: list[str], repeats: int) -> float:
    """Milliseconds of the fastest process."""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, env=env, stderr=subprocess.DEVNULL)
        times.append(time.perf_counter() - start)
    return min(times) * 1000


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "program.py")
        program.write_text("import torch\n")
        plain = best(["-c", "import rushlight"], repeats)
        run = best(["-m", "rushlight", "run", str(program)], repeats)
    print(
        f"import rushlight {plain:.0f} ms, `rushlight run` of `import torch` {run:.0f} ms: {run - plain:+.0f} ms (at "
        "most 50)"
    )


if __name__ == "__main__":
    main()
