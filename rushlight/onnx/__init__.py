"""ONNX files: `torch.onnx`, and `load`, which makes a module of a file."""

from __future__ import annotations

from rushlight.base.missing_names import tell as _tell
from rushlight.onnx.export import OnnxExporterError, ONNXProgram, export, is_in_onnx_export
from rushlight.onnx.module import OnnxModule, load

__all__ = ["ONNXProgram", "OnnxExporterError", "OnnxModule", "export", "is_in_onnx_export", "load"]
_tell(__name__)
