"""`rushlight demo`: a small network learns handwritten digits, written as a user of torch would write it."""


class BadInput(Exception):
    """Invalid input of the user. The message is one line: the place, the problem and a hint."""
