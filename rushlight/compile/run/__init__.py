"""Compiled functions: programs, verification, fast calls."""
