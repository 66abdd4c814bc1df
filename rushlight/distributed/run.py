"""torch.distributed.run: `python -m rushlight.distributed.run` is torchrun."""

from __future__ import annotations

import sys

from rushlight.distributed.agent import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
