"""Reductions, scans, sorting and statistics."""
