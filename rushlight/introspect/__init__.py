"""What the library says of its ops: formulas, docstrings, sources."""
