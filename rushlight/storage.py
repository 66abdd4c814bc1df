"""torch.storage: the memory under tensors."""

from __future__ import annotations

import io
from typing import Any

from rushlight.ops.tensor.storage import TypedStorage as TypedStorage
from rushlight.ops.tensor.storage import UntypedStorage as UntypedStorage
from rushlight.serialization import load


def _load_from_bytes(b: bytes) -> Any:
    """The storage in a pickle that torch wrote: the pickle contains the bytes of a file of torch.save."""
    return load(io.BytesIO(b), weights_only=False)
