"""Sparse tensors, torch.sparse: COO tensors, their products with dense ones, sums, softmax.

>>> a = rushlight.tensor([[0., 2.], [0., 0.]]).to_sparse()
>>> a @ rushlight.ones(2, 1)
tensor([[2.],
        [0.]])
"""
from rushlight.sparse import functions as _functions
from rushlight.sparse.creation import TYPES as _TYPES
from rushlight.sparse.creation import sparse_coo_tensor
from rushlight.sparse.functions import log_softmax, softmax, sum
from rushlight.sparse.products import addmm, mm
from rushlight.sparse.products import product as spmm
from rushlight.sparse.tensor import SparseTensor

_functions.attach()
globals().update(_TYPES)

__all__ = ["SparseTensor", "addmm", "log_softmax", "mm", "softmax", "sparse_coo_tensor", "spmm", "sum", *_TYPES]
