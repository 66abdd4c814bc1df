"""The functions of ONNX's operators."""
