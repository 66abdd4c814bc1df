"""The ops: a table with one file per subject, and the families that turn its entries into functions."""

from rushlight.base import lazy
from rushlight.base.higher import Higher
from rushlight.core import arguments
from rushlight.core.tensor import Tensor
from rushlight.ops.index import getitem, index_tensors
from rushlight.ops.linalg import matmul, matmul_api
from rushlight.ops.math import arithmetic, elementwise, operators
from rushlight.ops.reduce import reduce as _reduce  # the name `reduce` is the folder's
from rushlight.ops.shape import view_functions, views
from rushlight.ops.tensor import casts, conversions, tensor_copy_pickle
from rushlight.ops.tensor.method_names import METHODS

lazy.left += ["rushlight.ops.frequent", "rushlight.ops.rest"]
lazy.expect(Tensor, *METHODS.split())
arguments.op_errors.module = "rushlight.ops.op_errors"
aten_namespace = Higher()  # torch.ops.aten


def __getattr__(name: str) -> object:
    if name != "aten":
        raise AttributeError(f"module 'rushlight.ops' has no attribute '{name}'")
    return aten_namespace()
