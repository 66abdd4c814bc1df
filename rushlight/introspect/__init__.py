"""Documentation of ops: formulas, docstrings, sources."""
