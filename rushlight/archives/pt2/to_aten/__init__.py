"""Recorded runs as calls of ATen's operators."""
