"""Graphs as one function of machine code."""
