"""The rest of the library: see later.py."""
from rushlight.ops import einsum as einsum
from rushlight.ops import transforms as transforms
