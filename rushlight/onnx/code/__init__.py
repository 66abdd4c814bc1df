"""A module of an ONNX file as the text of a Python program."""

from .program_text import code_of

__all__ = ["code_of"]
