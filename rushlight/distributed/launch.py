"""torch.distributed.launch: the older form of torch.distributed.run. A program gets its rank on this machine as its
first argument, --local-rank=I, unless --use-env is given."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rushlight.distributed.agent import launch
from rushlight.distributed.launch_arguments import parse


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status of all ranks."""
    return launch(parse(arguments, use_env=False))


__all__ = ["launch", "main"]

if __name__ == "__main__":
    sys.exit(main())
