"""ONNX files: `torch.onnx`, and `load`, which makes a module of a file."""

from __future__ import annotations

from typing import Any

from rushlight.base.missing_names import tell as _tell


def export(*args: Any, **kwargs: Any) -> None:
    """NotImplementedError: ONNX files are not written."""
    raise NotImplementedError(
        "ONNX files are not written; save the weights, torch.save(model.state_dict(), file), and export them with "
        "torch itself"
    )


def is_in_onnx_export() -> bool:
    """False."""
    return False


from rushlight.onnx.module import OnnxModule, load  # noqa: E402

_tell(__name__)
