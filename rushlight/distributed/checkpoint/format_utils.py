"""torch.distributed.checkpoint.format_utils: a checkpoint folder as one file, and back."""

from __future__ import annotations

from typing import Any

from rushlight.distributed.checkpoint import save as save_folder
from rushlight.distributed.checkpoint.files import Reading
from rushlight.serialization import load, save


def dcp_to_torch_save(dcp_checkpoint_dir: Any, torch_save_path: Any) -> None:
    """Write the whole tensors of a checkpoint folder into one file, for torch.load. One process calls this."""
    save(Reading(dcp_checkpoint_dir).tree(), torch_save_path)


def torch_save_to_dcp(torch_save_path: Any, dcp_checkpoint_dir: Any) -> None:
    """Write the content of a file of torch.save into a checkpoint folder. One process calls this."""
    save_folder(load(torch_save_path), checkpoint_id=dcp_checkpoint_dir, no_dist=True)


__all__ = ["dcp_to_torch_save", "torch_save_to_dcp"]
