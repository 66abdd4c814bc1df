"""Nouns for results of ops, in the text that `compiler.source` shows: `difference = a - b`."""

RESULT_NAMES = {
    "add": "added",
    "sub": "difference",
    "mul": "product",
    "div": "quotient",
    "neg": "negative",
    "mm": "product",
    "sum": "total",
    "amax": "largest",
    "amin": "least",
    "exp": "exponential",
    "log": "logarithm",
    "pow": "power",
    "sqrt": "root",
    "where": "chosen",
    "eq": "equal",
    "ne": "unequal",
}
