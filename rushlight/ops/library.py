"""The rest of the library: see later.py."""
from rushlight.ops import calculus as calculus
from rushlight.ops import copies as copies
from rushlight.ops import diagonals as diagonals
from rushlight.ops import einsum as einsum
from rushlight.ops import picking as picking
from rushlight.ops import rearranging as rearranging
from rushlight.ops import scans as scans
from rushlight.ops import sorting as sorting
from rushlight.ops import splitting as splitting
from rushlight.ops import stacking as stacking
from rushlight.ops import statistics as statistics
from rushlight.ops import stft as stft
from rushlight.ops import strided as strided
from rushlight.ops import transforms as transforms
from rushlight.ops import window_functions as window_functions
