"""Tensors from nothing, from numbers and from arrays; settings of the process."""
