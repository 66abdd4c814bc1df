"""When compiled loops take over from NumPy: after NumPy has worked for as long as loading the loops takes.

The amount of work decides, never the clock, so a repeated program gives the same numbers.
"""

from __future__ import annotations

from rushlight.fast.index import PRICE_PRODUCTS, PRICE_PRODUCTS_LOADED
from rushlight.loops import budget
from rushlight.loops.budget import CALL, ELEMENT, IMPORT_SECONDS, LOADING_SECONDS, Budget

# Loops save about half of NumPy's seconds for small arrays, so loading pays off once NumPy has worked for twice the
# price. An MLP of 100 units with batch norm by hand, 3,000 steps: 1.7 s without loops, 2.1 s with loops after one price.
SMALL_SHARE = 2

# The accounts, in seconds; `products` in multiplications. Only the functions below charge them.
small_arrays = Budget(SMALL_SHARE * LOADING_SECONDS, SMALL_SHARE * IMPORT_SECONDS)
large_arrays = Budget(LOADING_SECONDS, IMPORT_SECONDS)
products = Budget(PRICE_PRODUCTS, PRICE_PRODUCTS - PRICE_PRODUCTS_LOADED)


def charge(passes: float, size: int, large: float) -> bool:
    """Charge the cost of this number of NumPy passes over `size` elements. Returns whether loops do this work.

    `large`: the size from which the passes are charged a quarter, since most of the cost of small arrays is calls.
    """
    if size < large:
        if small_arrays.left <= 0:
            return budget.allowed and size > 0
        return small_arrays.charge(passes * (CALL + ELEMENT * size)) and size > 0
    return large_arrays.charge(passes / 4 * (CALL + ELEMENT * size))


def charge_passes(passes: float, size: int, large: bool) -> bool:
    """Charge the cost of NumPy passes over `size` elements to the account of large or of small arrays. Returns whether
    loops do this work.
    """
    return (large_arrays if large else small_arrays).charge_passes(passes, size)


# Charge NumPy's seconds for large arrays, or multiplications of matrix products. Both return whether loops do this
# work.
charge_seconds, charge_products = large_arrays.charge, products.charge
