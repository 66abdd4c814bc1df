"""Compiling the text of a loop to machine code, and the decision when this pays."""
