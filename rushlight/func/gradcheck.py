"""Gradients against finite differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from rushlight.base import dtypes
from rushlight.base.errors import explain, value_error, warn
from rushlight.core.backward import grad
from rushlight.core.tensor import Tensor, from_array
from rushlight.func.forward_ad import dual_level, make_dual, unpack_dual
from rushlight.random import default_generator


class GradcheckError(RuntimeError):
    """A gradient differs from its finite difference."""


def gradcheck(
    func: Callable,
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Compare the gradients of `func(*inputs)` with (f(x + eps) - f(x - eps)) / (2 eps), element by element.

    Inputs that require grad are varied; they should be float64 or complex128. For complex numbers x = a + i b the
    gradient is d/da + i d/db of the real part of conj(v) f, for v = 1 and i. `check_forward_ad` compares tangents, too;
    `check_backward_ad=False` skips gradients. Returns True; on a mismatch raises GradcheckError (a RuntimeError), or
    returns False with `raise_exception=False`. All elements of a sparse input are varied, with `masked` only the stored
    elements.

    >>> x = rushlight.tensor([0.5, 1.5], dtype=rushlight.float64, requires_grad=True)
    >>> rushlight.autograd.gradcheck(rushlight.sin, (x,))
    True
    """
    args = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
    if not all([a._dense for a in args if isinstance(a, Tensor)]):
        func, args = of_dense(func, args, masked)
    varied = [a for a in args if isinstance(a, Tensor) and a.requires_grad]
    if not varied:
        raise value_error(
            "gradcheck expects at least one input tensor to require gradient, but none of the them have "
            "requires_grad=True."
        )
    for i, a in enumerate(args):
        if isinstance(a, Tensor) and a.requires_grad and a.dtype.to_real() is not dtypes.float64:
            warn(
                f"Input #{i} requires gradient and is not a double precision floating point or complex. This check "
                "will likely fail if all the inputs are not of double precision floating point or complex. "
            )
    try:
        for k in range(len(outputs_of(func, args))):
            if check_backward_ad:
                compare(func, args, varied, k, eps, atol, rtol)
            if check_forward_ad:
                compare_tangents(func, args, varied, k, eps, atol, rtol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def of_dense(func: Callable, args: Sequence, masked: bool) -> tuple[Callable, list]:
    """(the function, its arguments) with dense tensors in place of sparse ones. They hold all elements, or with
    `masked` the stored elements.
    """

    def stands_for(a: Any) -> Any:
        if not isinstance(a, Tensor) or a._dense:
            return a
        made = a.detach()
        values = made.coalesce().values() if made.is_sparse else made.values()
        dense = values.clone() if masked else made.to_dense()
        return dense.requires_grad_(a.requires_grad)

    def sparse(a: Any, given: Any) -> Any:
        if given is a:
            return a
        if not masked:
            return given.to_sparse(layout=a.layout, blocksize=getattr(a, "_block", None))
        coo = getattr(a, "_coo", a).detach()
        coo = coo.coalesce() if a.is_sparse else coo
        made = coo.holding(given.reshape(coo._of.shape))
        return made if a.is_sparse else a.holding_places_of(made)

    def call(*given: Any) -> Any:
        made = func(*[sparse(a, g) for a, g in zip(args, given)])
        outs = made if isinstance(made, (tuple, list)) else (made,)
        return [t.to_dense(masked_grad=masked) if isinstance(t, Tensor) and not t._dense else t for t in outs]

    return call, [stands_for(a) for a in args]


def outputs_of(func: Callable, args: Sequence) -> list[Tensor]:
    """The differentiable outputs."""
    made = func(*args)
    made = made if isinstance(made, (tuple, list)) else (made,)
    return [t for t in made if isinstance(t, Tensor) and t.requires_grad]


def compare(func: Callable, args: Sequence, varied: list[Tensor], k: int, eps: float, atol: float, rtol: float) -> None:
    """Compare d(output k)/d(input) for every element of output k and every element of every input."""
    out = outputs_of(func, args)[k]
    slopes = [[slope(func, args, x, k, place, unit, eps) for place, unit in directions(x)] for x in varied]
    for place in np.ndindex(out._array.shape):
        for unit in (1.0, 1j) if out.is_complex() else (1.0,):
            v = np.zeros_like(out._array)
            v[place] = unit
            analytic = grad([out], varied, [from_array(v)], retain_graph=True, allow_unused=True)
            for i, (x, g) in enumerate(zip(varied, analytic)):
                numeric = difference(x, [s[place] for s in slopes[i]], unit)
                found = np.zeros_like(x._array) if g is None else g._array
                what = f"Jacobian mismatch for output {k} with respect to input {i}"
                check_close(found, numeric, rtol, atol, what, "backward", output_element=place)


def compare_tangents(
    func: Callable, args: Sequence, varied: list[Tensor], k: int, eps: float, atol: float, rtol: float
) -> None:
    """Compare the tangent of output k along every element of every input."""
    for i, x in enumerate(varied):
        for place, unit in directions(x):
            along = np.zeros_like(x._array)
            along[place] = unit
            with dual_level():
                duals = [make_dual(x, from_array(along)) if a is x else a for a in args]
                tangent = unpack_dual(outputs_of(func, duals)[k]).tangent
            numeric = slope(func, args, x, k, place, unit, eps)
            found = np.zeros_like(numeric) if tangent is None else tangent._array
            what = f"Jacobian computed with forward mode mismatch for output {k} with respect to input {i}"
            check_close(found, numeric, rtol, atol, what, "jvp", input_element=place)


def check_close(
    found: np.ndarray, numeric: np.ndarray, rtol: float, atol: float, what: str, rule: str, **place: tuple
) -> None:
    if not np.allclose(found, numeric, rtol, atol, equal_nan=True):
        raise GradcheckError(
            explain(
                f"{what},\nnumerical:{numeric}\nanalytical:{found}",
                f"is the {rule} of the op right, and the input float64?",
                **place,
            )
        )


def directions(x: Tensor) -> Iterator[tuple[tuple, complex]]:
    """(index, unit) for every element of x: the unit is 1, and for complex x also i."""
    for place in np.ndindex(x._array.shape):
        for unit in (1.0, 1j) if x.is_complex() else (1.0,):
            yield place, unit


def slope(func: Callable, args: Sequence, x: Tensor, k: int, place: tuple, unit: complex, eps: float) -> np.ndarray:
    """(f(x + eps unit) - f(x - eps unit)) / (2 eps) for output k, varying one element of x in place."""
    kept, ends = x._array[place].copy(), []
    for sign in (1, -1):
        x._array[place] = kept + sign * eps * unit
        ends.append(outputs_of(func, args)[k]._array.copy())
    x._array[place] = kept
    return (ends[0] - ends[1]) / (2 * eps)


def difference(x: Tensor, slopes: list, v: complex) -> np.ndarray:
    """The gradient of Re(conj(v) f) for a number f, from its slopes along `directions(x)`."""
    numeric = np.zeros(x._array.shape, x._array.dtype)
    for (place, unit), s in zip(directions(x), slopes):
        numeric[place] += (np.conj(v) * s).real * unit
    return numeric


def gradgradcheck(
    func: Callable,
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """`gradcheck` of the gradient: compares second derivatives with finite differences of first derivatives.

    >>> x = rushlight.tensor([0.5, 1.5], dtype=rushlight.float64, requires_grad=True)
    >>> rushlight.autograd.gradgradcheck(rushlight.sin, (x,))
    True
    """
    args = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    outs = outputs_of(func, args)
    if grad_outputs is None:
        seeds = tuple(drawn_like(o).requires_grad_() for o in outs)
    else:
        seeds = tuple(grad_outputs) if isinstance(grad_outputs, (tuple, list)) else (grad_outputs,)
    n = len(args)

    def first_gradients(*everything: Any) -> tuple:
        inner = everything[:n]
        varied = [a for a in inner if isinstance(a, Tensor) and a.requires_grad]
        grads = grad(outputs_of(func, inner), varied, everything[n:], create_graph=True, allow_unused=True)
        return tuple(g for g in grads if g is not None)

    return gradcheck(first_gradients, args + seeds, eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception)


def drawn_like(out: Tensor) -> Tensor:
    """Uniform numbers in [-1, 1), drawn as torch's gradgradcheck draws them."""
    shape, dtype = out._array.shape, out._array.dtype
    if dtype.kind != "c":
        return from_array(default_generator.uniform(shape, dtype, -1, 1))
    pairs = default_generator.uniform((*shape, 2), np.empty(0, dtype).real.dtype, -1, 1)
    return from_array(pairs.view(dtype)[..., 0])
