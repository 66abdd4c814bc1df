"""`rushlight demo`: a small network learns handwritten digits, written as a user of torch would
write it."""


class BadInput(Exception):
    """What the user gave cannot be used. The message is one line: what, where and the hint."""
