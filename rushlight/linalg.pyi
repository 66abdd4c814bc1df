# Written by `make stubs` from the op table and the functions of the package: do not edit.
# ruff: noqa
# mypy: disable-error-code="misc, override"
from builtins import bool as _bool
from builtins import bytes as _bytes
from builtins import complex as _complex
from builtins import dict as _dict
from builtins import float as _float
from builtins import int as _int
from builtins import list as _list
from builtins import object as _object
from builtins import set as _set
from builtins import slice as _slice
from builtins import str as _str
from builtins import tuple as _tuple
from builtins import type as _type
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal as _Literal, NamedTuple as _NamedTuple, TypeAlias as _TypeAlias, overload as _overload

import numpy as _np

from rushlight.core.tensor import Tensor as _Tensor
class _PLU(_NamedTuple):
    P: _Tensor
    L: _Tensor
    U: _Tensor

class _USV(_NamedTuple):
    U: _Tensor
    S: _Tensor
    V: _Tensor

_Number: _TypeAlias = _bool | _int | _float | _complex
_Operand: _TypeAlias = _Tensor | _Number | _np.ndarray

from rushlight.base.errors import LinAlgError as LinAlgError
from rushlight.ops.linalg.decompose_api import linalg_cholesky as _linalg_cholesky
cholesky = _linalg_cholesky
def cholesky_ex(A: _Tensor, *, upper: _bool = ..., check_errors: _bool = ..., out: Any = ...) -> Any: ...
from rushlight.ops.reduce.norms_api import cond as cond
def cross(input: _Tensor, other: _Tensor, *, dim: _int = ..., out: _Tensor | None = ...) -> _Tensor: ...
from rushlight.ops.linalg.solve_api import det as det
def diagonal(A: _Tensor, *, offset: _int = ..., dim1: _int = ..., dim2: _int = ...) -> _Tensor: ...
from rushlight.ops.linalg.decompose_api import eig as eig
from rushlight.ops.linalg.decompose_api import eigh as eigh
from rushlight.ops.linalg.decompose_api import eigvals as eigvals
from rushlight.ops.linalg.decompose_api import eigvalsh as eigvalsh
def householder_product(A: _Tensor, tau: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: ...
from rushlight.ops.linalg.solve_api import inv as inv
from rushlight.ops.linalg.solve_api import inv_ex as inv_ex
from rushlight.ops.linalg.lu import ldl_factor as ldl_factor
def ldl_factor_ex(A: _Tensor, *, hermitian: _bool = ..., check_errors: _bool = ..., out: Any = ...) -> Any: ...
from rushlight.ops.linalg.lu import ldl_solve as ldl_solve
def lstsq(A: _Tensor, B: _Tensor, rcond: _float | None = ..., *, driver: _str | None = ..., out: Any = ...) -> Any: ...
def lu(A: _Tensor, *, pivot: _bool = ..., out: Any = ...) -> _PLU: ...
from rushlight.ops.linalg.lu import lu_factor as lu_factor
def lu_factor_ex(A: _Tensor, *, pivot: _bool = ..., check_errors: _bool = ..., out: Any = ...) -> Any: ...
def lu_solve(LU: _Tensor, pivots: _Tensor, B: _Tensor, *, left: _bool = ..., adjoint: _bool = ..., out: _Tensor | None = ...) -> _Tensor: ...
from rushlight.ops.linalg.matmul_api import matmul as matmul
from rushlight.ops.linalg.solve_api import matrix_exp as matrix_exp
def matrix_norm(A: _Tensor, ord: Any = ..., dim: Any = ..., keepdim: _bool = ..., *, dtype: Any = ..., out: _Tensor | None = ...) -> _Tensor: ...
from rushlight.ops.linalg.products_api import matrix_power as matrix_power
def matrix_rank(A: _Tensor, *args: Any, tol: Any = ..., atol: Any = ..., rtol: Any = ..., hermitian: _bool = ..., out: _Tensor | None = ...) -> _Tensor: ...
from rushlight.ops.linalg.products_api import multi_dot as multi_dot
def norm(A: _Tensor, ord: Any = ..., dim: Any = ..., keepdim: _bool = ..., *, out: _Tensor | None = ..., dtype: Any = ...) -> _Tensor: ...
def pinv(A: _Tensor, rcond: Any = ..., hermitian: _bool = ..., *, atol: Any = ..., rtol: Any = ..., out: _Tensor | None = ...) -> _Tensor: ...
from rushlight.ops.linalg.decompose_api import linalg_qr as _linalg_qr
qr = _linalg_qr
from rushlight.ops.linalg.solve_api import slogdet as slogdet
from rushlight.ops.linalg.solve_api import solve as solve
def solve_ex(A: _Tensor, B: _Tensor, *, left: _bool = ..., check_errors: _bool = ..., out: Any = ...) -> Any: ...
def solve_triangular(A: _Tensor, B: _Tensor, *, upper: _bool, left: _bool = ..., unitriangular: _bool = ..., out: _Tensor | None = ...) -> _Tensor: ...
def svd(A: _Tensor, full_matrices: _bool = ..., *, driver: _str | None = ..., out: Any = ...) -> _USV: ...
from rushlight.ops.linalg.decompose_api import svdvals as svdvals
from rushlight.ops.linalg.solve_api import tensorinv as tensorinv
from rushlight.ops.linalg.solve_api import tensorsolve as tensorsolve
from rushlight.ops.linalg.products_api import linalg_vander as _linalg_vander
vander = _linalg_vander
def vecdot(x: _Tensor, y: _Tensor, *, dim: _int = ..., out: _Tensor | None = ...) -> _Tensor: ...
def vector_norm(x: _Tensor, ord: _float = ..., dim: Any = ..., keepdim: _bool = ..., *, dtype: Any = ..., out: _Tensor | None = ...) -> _Tensor: ...
