"""torch.storage: the memory under tensors."""

from __future__ import annotations

import io
from typing import Any

from rushlight.ops.tensor.storage import TypedStorage as TypedStorage
from rushlight.ops.tensor.storage import UntypedStorage as UntypedStorage
from rushlight.serialization import load


def _load_from_bytes(b: bytes) -> Any:
    """The storage that `pickle` wrote where torch was: a file of torch's within the pickle."""
    return load(io.BytesIO(b), weights_only=False)
