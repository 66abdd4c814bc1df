"""Tensors without elements: shapes and dtypes only."""
