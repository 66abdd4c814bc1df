"""Array functions by op name. In the world of arrays, a name in a rule means the function here. Where NumPy has the
function, it is NumPy's."""

import sys

import numpy as np

# glibc hands memory back to the system, and asks for it anew, page by page and zeroed, as soon as twice as much is free
# as the largest array that was ever freed. So one is freed, of the size above which it no longer counts; its pages are
# never touched. Steps of a small GPT and of LeNet take 0.86 and 0.8 of the time (5,000 and 1,000 faults before), peaks
# stay.
if sys.platform == "linux":
    np.empty(31 << 20, np.uint8)
