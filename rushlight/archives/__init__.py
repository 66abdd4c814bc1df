"""Models in torch's files: archives of `torch.jit.save` and of `torch.export.save`."""

from __future__ import annotations

from rushlight.archives.budget import LimitExceeded, limits

__all__ = ["LimitExceeded", "limits"]
