"""Sparse tensors, torch.sparse: COO tensors, and matrices in CSR and CSC; products with dense ones, sums, softmax.

>>> a = rushlight.tensor([[0., 2.], [0., 0.]]).to_sparse()
>>> a @ rushlight.ones(2, 1)
tensor([[2.],
        [0.]])
"""

from rushlight.base.missing_names import tell as _tell
from rushlight.base.public_function import public as _public
from rushlight.sparse import compressed as _compressed
from rushlight.sparse import functions as _functions
from rushlight.sparse import shapes as _shapes
from rushlight.sparse.compressed import (
    CompressedTensor,
    mm,
    sampled_addmm,
    sparse_bsc_tensor,
    sparse_bsr_tensor,
    sparse_compressed_tensor,
    sparse_csc_tensor,
    sparse_csr_tensor,
)
from rushlight.sparse.creation import TYPES as _TYPES
from rushlight.sparse.creation import sparse_coo_tensor, spdiags
from rushlight.sparse.functions import log_softmax, softmax, sum
from rushlight.sparse.hybrid_products import hspmm, smm, sspaddmm
from rushlight.sparse.invariants import check_sparse_tensor_invariants
from rushlight.sparse.products import product as dsmm
from rushlight.sparse.products import product as spmm
from rushlight.sparse.products import sparse_addmm as addmm
from rushlight.sparse.tensor import SparseTensor

_functions.attach()
_shapes.attach()
_compressed.attach()
globals().update(_TYPES)
# built-in functions in torch; like those, they do not bind as methods
globals().update(
    (_name, _public(globals()[_name]))
    for _name in ("addmm", "log_softmax", "mm", "sampled_addmm", "softmax", "spdiags")
)

__all__ = [
    "CompressedTensor", "SparseTensor", "addmm", "check_sparse_tensor_invariants", "dsmm", "hspmm", "log_softmax", "mm",
    "sampled_addmm", "smm", "softmax", "sparse_bsc_tensor", "sparse_bsr_tensor", "sparse_compressed_tensor",
    "sparse_coo_tensor", "sparse_csc_tensor", "sparse_csr_tensor", "spdiags", "spmm", "sspaddmm", "sum", *_TYPES,
]  # fmt: skip

_tell(__name__)
