"""The core: the op table, the rules and the engine of backward. NumPy is all that it needs."""
