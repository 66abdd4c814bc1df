"""Faster ways of computing ops: compiled loops and other algorithms. The results are those of the kernels."""
