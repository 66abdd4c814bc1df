"""A recorded graph as an ONNX graph."""
