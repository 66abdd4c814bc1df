"""Array functions by op name. In the world of arrays, the names in a rule refer to these functions; most are NumPy's
own.
"""

import sys

import numpy as np

# glibc returns freed memory to the system once twice the size of the largest freed array is free, and later maps it
# again, page by page and zeroed. Freeing one huge array that was never touched raises this threshold to its maximum.
# Steps of a small GPT and of LeNet take 0.86 and 0.8 of the time (5,000 and 1,000 page faults before); peak memory is
# unchanged.
if sys.platform == "linux":
    np.empty(31 << 20, np.uint8)
