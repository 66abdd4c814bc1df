"""What torch's own tests ask of sparse sums and of NumPy's arrays beside tensors, and no other test did."""

from __future__ import annotations

import operator

import numpy as np

import rushlight
from tests.support.programs import Programs, leaf, outcome

run = Programs()


# -- sparse tensors ----------------------------------------------------------------------------------------------------

DTYPES = ["uint8", "int16", "int64", "float32", "float64"]


def pair(torch, one, other):
    """Two matrices that share one place, of the dtypes of these names."""
    return (torch.tensor([[0, 3], [7, 0]]).to(getattr(torch, one)),
            torch.tensor([[5, 4], [0, 0]]).to(getattr(torch, other)))


def dense(result):
    return result.to_dense() if result.is_sparse else result


@run
def a_sparse_difference_is_taken_in_the_dtype_that_both_have_room_in(torch):
    def difference(one, other, **factor):
        a, b = pair(torch, one, other)
        return [dense(a.to_sparse().sub(b.to_sparse(), **factor)), dense(a.sub(b.to_sparse(), **factor)),
                dense(a.to_sparse().add(b.to_sparse(), **factor)), dense(a.add(b.to_sparse(), **factor))]
    return [difference(one, other, **factor) for one in DTYPES for other in DTYPES for factor in ({}, {"alpha": 3})]


@run
def a_sparse_tensor_keeps_its_dtype_in_place(torch):
    def written(name, one, other):
        a, b = pair(torch, one, other)
        s = a.to_sparse()
        back = getattr(s, name)(b.to_sparse())
        return [dense(back), dense(s), back is s]
    return [outcome(written, name, one, other)
            for name in ("add_", "sub_", "mul_") for one in DTYPES for other in DTYPES]


@run
def a_failed_write_leaves_a_sparse_tensor_as_it_was(torch):
    s = torch.tensor([[0, 3], [7, 0]]).to_sparse()
    return [outcome(s.mul_, 1.5), outcome(s.add_, torch.ones(2, 2).to_sparse()), outcome(s.div_, 2), s.to_dense()]


@run
def a_function_that_keeps_zeros_is_there_in_place_for_sparse_tensors(torch):
    def written(name, numbers):
        s = torch.tensor(numbers).to_sparse()
        back = getattr(s, name)()
        return [back is s, dense(s)]
    names = ["abs_", "asin_", "asinh_", "atan_", "atanh_", "ceil_", "conj_physical_", "deg2rad_", "erf_", "erfinv_",
             "expm1_", "floor_", "frac_", "log1p_", "nan_to_num_", "neg_", "rad2deg_", "relu_", "round_", "sgn_", "sign_",
             "sin_", "sinh_", "sqrt_", "tan_", "tanh_", "trunc_"]
    return [written(name, [0.0, 0.25, -0.75, 0.0]) for name in names] + [
        outcome(written, name, [0, 3]) for name in ("abs_", "neg_", "sign_", "sin_", "sqrt_")]


@run
def sparse_bools_are_not_subtracted(torch):
    bits, numbers = torch.tensor([True, False]).to_sparse(), torch.tensor([1, 2]).to_sparse()
    return [outcome(operator.sub, a, b) for a in (bits, numbers) for b in (bits, numbers) if bits is a or bits is b]


@run
def a_factor_of_another_kind_is_refused_beside_sparse_tensors(torch):
    a = torch.tensor([1, 2])
    return [outcome(a.to_sparse().add, a.to_sparse(), alpha=1.5), outcome(a.add, a.to_sparse(), alpha=1.5),
            dense(a.float().add(a.to_sparse(), alpha=1.5))]


# -- NumPy's arrays ----------------------------------------------------------------------------------------------------

@run
def an_array_of_no_dimensions_is_an_operand(torch):
    arrays = [np.array(2.0), np.array(2.0, np.float32), np.float64(2), np.array([2.0])]
    return [op(x, a) for x in (torch.ones(2), torch.tensor(3.0), torch.ones(2, dtype=torch.float64)) for a in arrays
            for op in (operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.eq)]


@run
def a_tensor_is_taken_by_dlpack_whatever_its_dtype(torch):
    def shared(dtype):
        x = torch.zeros(3, dtype=dtype)
        y = torch.from_dlpack(x)
        y[1] = 1
        return [x.float(), str(y.dtype), y.is_leaf]
    return [shared(d) for d in (torch.bfloat16, torch.float16, torch.int8, torch.float64)] + [
        outcome(torch.from_dlpack, leaf(torch, 1.0))]


@run
def segments_have_a_largest_and_a_smallest_by_both_names(torch):
    return [torch.segment_reduce(torch.tensor([1.0, 2.0, 3.0]), name, lengths=torch.tensor([2, 1]))
            for name in ("max", "amax", "min", "amin")]


# -- a product and what is added to it -----------------------------------------------------------------------------------

@run
def the_operands_of_a_sum_with_a_product_have_their_dimensions(torch):
    shapes = {"addmm": ([(2,), (2, 2)], [(2, 2), (2,)], [(1, 2, 2), (2, 2)], [(2, 3), (3, 2)]),
              "addmv": ([(2,), (2,)], [(2, 2), (2, 2)], [(2, 2), (2,)]), "addr": ([(2, 2), (2,)], [(2,), (2,)]),
              "baddbmm": ([(2, 2), (2, 2, 2)], [(2, 2, 2), (2, 2, 2)]), "addbmm": ([(2, 2, 2), (2, 2, 2)],)}
    return [outcome(getattr(torch, name), torch.ones(()), torch.ones(a), torch.ones(b))
            for name in shapes for a, b in shapes[name]]


@run
def what_is_added_to_a_product_expands_to_it(torch):
    def added(name, shape, *operands, **factors):
        x = torch.ones(shape)
        apart = outcome(getattr(torch, name), x, *operands, **factors)
        return [apart, outcome(getattr(x, name + "_"), *operands, **factors)]
    square, row, vector, stack = torch.ones(2, 2), torch.ones(1, 2), torch.ones(2), torch.ones(3, 2, 2)
    return [added("addmm", shape, a, square, **factors) for factors in ({}, {"beta": 2, "alpha": 3})
            for shape in ((), (2,), (2, 2), (1, 2), (4, 2), (4, 2, 2)) for a in (square, row)] + [
        added("addmv", shape, square, vector) for shape in ((), (2,), (1,), (2, 2))] + [
        added("addr", shape, vector, vector) for shape in ((), (2,), (2, 2), (2, 2, 2))] + [
        added("baddbmm", shape, stack, stack) for shape in ((), (3, 2, 2), (1, 1, 2), (2, 3, 2, 2))] + [
        added("addbmm", shape, stack, stack) for shape in ((2, 2), (3, 2, 2))]


# -- derivatives that must depend on their inputs ----------------------------------------------------------------------

@run
def strict_says_which_output_or_input_it_is(torch):
    def said(name, function, *args):
        try:
            return getattr(torch.autograd.functional, name)(function, *args, strict=True)
        except RuntimeError as error:
            return str(error).partition(". ")[0]
    one, two = torch.ones(2), (torch.ones(2), torch.ones(2))
    return [said("jacobian", lambda x: x.detach(), one), said("jacobian", lambda x, y: x * 2, two),
            said("jacobian", lambda x, y: y * 2, two), said("hessian", lambda x: x.sum().detach(), one),
            said("hessian", lambda x: x.sum(), one), said("vjp", lambda x: (x, x.detach()), one, two),
            said("jvp", lambda x: x.detach(), one, one), said("hvp", lambda x: x.detach().sum(), one, one),
            said("vhp", lambda x: x.sum(), one, one), said("vhp", lambda x: (x ** 2).sum(), one, one)[1]]


test_programs = run.test()


def test_an_array_of_no_dimensions_lets_the_gradient_through():
    """torch asks for detach() here."""
    x = leaf(rushlight, 1, 2)
    (x * np.array(3.0) + np.array(1.0)).sum().backward()
    assert x.grad.tolist() == [3, 3]
