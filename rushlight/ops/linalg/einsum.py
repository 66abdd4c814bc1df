"""Einstein sums, by permutations, reshapes and one batched matrix product for each pair of operands."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from rushlight.base.errors import runtime_error, value_error
from rushlight.core.tensor import Tensor
from rushlight.ops.composites import composite
from rushlight.ops.linalg.matmul import dot, mm
from rushlight.ops.math.elementwise import mul
from rushlight.ops.reduce.reduce import sum as total
from rushlight.ops.shape.views import diagonal, permute, reshape

Term = tuple[Tensor, str]  # an operand, and the letters of its dimensions


@composite(tensor=False)
def einsum(equation: Any, *operands: Any) -> Tensor:
    """out[i, ...] = sum over all other letters of the product of operands[letters]: `einsum('ij,jk->ik', a, b)`.

    A letter names a dimension; letters missing after `->` are summed over; a letter twice in one operand takes the
    diagonal; `...` are leading dimensions that broadcast. Without `->` the output has the letters that occur once, in
    alphabetical order. RuntimeError for an equation that does not fit the operands.

    >>> a, b = rushlight.ones(2, 3), rushlight.ones(3, 4)
    >>> rushlight.einsum('ij,jk->ik', a, b).shape
    torch.Size([2, 4])
    """
    if not isinstance(equation, str):
        equation, operands = from_sublists((equation, *operands))
    if not operands:
        raise value_error("einsum(): must specify the equation string and at least one operand", equation=equation)
    tensors = list(operands[0]) if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else list(operands)
    try:
        inputs, output = parse(equation, tuple([t._array.ndim for t in tensors]))
    except ValueError as error:
        raise wrong(equation, str(error), tensors) from None
    sizes = sizes_of(equation, inputs, tensors)
    order = output + "".join(sorted({*sizes} - {*output}))
    terms = [without_repeats(t, letters) for t, letters in zip(tensors, inputs)]
    for i, j in path([letters for _, letters in terms], output, sizes):
        (a, in_a), (b, in_b) = terms[i], terms[j]
        terms = [term for k, term in enumerate(terms) if k not in (i, j)]
        wanted = {*output}.union(*(set(letters) for _, letters in terms))
        terms.append(contract(a, in_a, b, in_b, wanted, sizes, order))
    result, letters = summed(*terms[0], set(output), order)
    missing = [c for c in output if c not in letters]
    result = shaped(result, result._array.shape + (1,) * len(missing))
    if letters == output and not any(result is t for t in tensors):
        return result
    return permute(result, places(letters + "".join(missing), output))


def from_sublists(args: tuple) -> tuple[str, tuple]:
    """einsum(a, [0, 1], b, [1, 2], [0, 2]) in letters."""

    def letters(numbers: Sequence) -> str:
        if any(n is not Ellipsis and not 0 <= n < 52 for n in numbers):
            raise value_error(
                "einsum(): subscript in subscript list is not within the valid range [0, 52)", subscripts=list(numbers)
            )
        return "".join(
            "..." if n is Ellipsis else chr(ord("A") + n) if n < 26 else chr(ord("a") + n - 26) for n in numbers
        )

    pairs, rest = args[: len(args) // 2 * 2], args[len(args) // 2 * 2 :]
    equation = ",".join(letters(s) for s in pairs[1::2]) + ("->" + letters(rest[0]) if rest else "")
    return equation, pairs[::2]


def wrong(equation: str, why: str, tensors: Sequence[Tensor]) -> RuntimeError:
    return runtime_error(f"einsum(): {why}", equation=equation, shapes=[tuple(t.shape) for t in tensors])


@lru_cache(maxsize=256)
def parse(equation: str, dims: tuple[int, ...]) -> tuple[list[str], str]:
    """The letters of each operand and of the output. `dims`: the number of dimensions of each operand. The dimensions
    of `...` get Greek letters. ValueError for an equation that does not fit.
    """
    text = equation.replace(" ", "")
    left, arrow, output = text.partition("->")
    inputs = left.split(",")
    if len(inputs) != len(dims):
        raise ValueError(
            f"{'fewer' if len(dims) < len(inputs) else 'more'} operands were provided than specified in the equation: "
            f"{len(dims)} for {len(inputs)}"
        )
    check_letters((*inputs, output))
    extra = [unnamed_dimensions(s, ndim) for s, ndim in zip(inputs, dims)]
    dots = max((n for s, n in zip(inputs, extra) if "..." in s), default=0)
    spelled = "".join(chr(0x3B1 + i) for i in range(dots))
    inputs = [s.replace("...", spelled[dots - n :]) for s, n in zip(inputs, extra)]
    if not arrow:
        every = "".join(inputs)
        output = "..." + "".join(sorted(c for c in set(every) - set(spelled) if every.count(c) == 1))
    output = output.replace("...", spelled)
    check_output(output, inputs)
    return inputs, output


def check_letters(terms: Sequence[str]) -> None:
    """ValueError for subscripts that are neither letters nor a single ellipsis."""
    for s in terms:
        for c in s.replace("...", "", 1):
            if c == ".":
                raise ValueError(f"found '.' in '{s}' that is not part of any ellipsis")
            if not (c.isascii() and c.isalpha()):
                raise ValueError(f"invalid subscript given, '{c}': subscripts must be in [a-zA-Z]")


def unnamed_dimensions(letters: str, ndim: int) -> int:
    """The number of dimensions in an operand's ellipsis. ValueError if dimensions are left without an ellipsis, or if
    there are more letters than dimensions.
    """
    named = len(letters.replace("...", ""))
    if named > ndim or (named < ndim and "..." not in letters):
        raise ValueError(
            f"the number of subscripts in the equation ({named}) does not match the number of dimensions ({ndim}) for "
            f"the operand '{letters}'" + " and no ellipsis was given" * ("..." not in letters)
        )
    return ndim - named


def check_output(output: str, inputs: Sequence[str]) -> None:
    """ValueError for letters of the output that occur twice, or in no operand."""
    for c in output:
        if output.count(c) > 1:
            raise ValueError(f"output subscript {c} appears more than once in the output")
        if not any(c in s for s in inputs):
            raise ValueError(f"output subscript {c} does not appear in the equation for any input operand")


def sizes_of(equation: str, inputs: Sequence[str], tensors: Sequence[Tensor]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for letters, t in zip(inputs, tensors):
        for c, n in zip(letters, t._array.shape):
            if sizes.setdefault(c, n) != n:
                if 1 not in (n, sizes[c]):
                    raise wrong(
                        equation,
                        f"subscript {c} has size {n}, which does not broadcast with previously seen size {sizes[c]}: "
                        "operands do not broadcast",
                        tensors,
                    )
                sizes[c] = max(n, sizes[c])
    return sizes


def without_repeats(t: Tensor, letters: str) -> tuple[Tensor, str]:
    """Replace a letter that occurs twice in one operand by the diagonal of its dimensions."""
    for c in dict.fromkeys(letters) if len(set(letters)) < len(letters) else ():
        while letters.count(c) > 1:
            i = letters.index(c)
            j = letters.index(c, i + 1)
            t = diagonal(t, 0, i, j)
            letters = letters[:i] + letters[i + 1 : j] + letters[j + 1 :] + c
    return t, letters


def summed(t: Tensor, letters: str, wanted: set, order: str) -> tuple[Tensor, str]:
    """Sum the dimensions that are not in `wanted`; the others are then in the order of `order`."""
    if wanted.issuperset(letters):
        return t, letters
    sorts = sorted(letters, key=order.index)
    t = ordered(t, letters, sorts)
    return total(t, tuple([i for i, c in enumerate(sorts) if c not in wanted])), "".join(
        [c for c in sorts if c in wanted]
    )


def path(inputs: Sequence[str], output: str, sizes: dict) -> list[tuple[int, int]]:
    """The two operands to contract next; their product is appended at the end. The order keeps the work small.

    NumPy finds the order: the best one for up to five operands, a greedy one for more. Two operands need no search.
    """
    if len(inputs) < 3:
        return [(0, 1)] * (len(inputs) - 1)
    plain = {c: chr(ord("a") + i) if i < 26 else chr(ord("A") + i - 26) for i, c in enumerate(sizes)}
    equation = ",".join("".join(plain[c] for c in letters) for letters in inputs)
    equation += "->" + "".join(plain[c] for c in output)
    shapes = [np.broadcast_to(0.0, [sizes[c] for c in letters]) for letters in inputs]
    how = "optimal" if len(inputs) <= 5 else "greedy"
    groups = np.einsum_path(equation, *shapes, optimize=(how, 2**62))[0][1:]
    steps, n = [], len(inputs)  # n: the number of remaining operands
    # operands without a common letter form a group: contract them sequentially
    for group in groups:
        first, *others = sorted(group)
        while others:
            second = others.pop(0)
            steps.append((min(first, second), max(first, second)))
            others = [k - (k > first) - (k > second) for k in others]
            n -= 1
            first = n - 1
    return steps


def contract(a: Tensor, in_a: str, b: Tensor, in_b: str, wanted: set, sizes: dict, order: str) -> tuple[Tensor, str]:
    """The product of two operands, summed over the letters that occur neither in the output nor in a later operand.

    `order`: all letters, with the output's letters first. The dimensions of the result have torch's order in memory:
    the letters of both operands, then a's other letters, then b's, each group in the order of `order`. b's letters come
    before a's if they do so in `order` and b was not summed.
    """
    a, in_a = summed(a, in_a, wanted | set(in_b), order)
    whole = wanted.union(in_a).issuperset(in_b)
    b, in_b = summed(b, in_b, wanted | set(in_a), order)
    ones = {c for c in in_a + in_b if c in wanted and sizes[c] == 1}
    # a letter of size 1 in one operand broadcasts and cannot be contracted: remove this dimension
    a, in_a = squeezed(a, in_a)
    b, in_b = squeezed(b, in_b)
    of_a, of_b = {*in_a}, {*in_b}
    inner = sorted(of_a & of_b - wanted, key=order.index)
    if not inner:  # an outer product
        out = "".join(sorted(of_a | of_b | ones, key=order.index))
        return mul(spread(a, in_a, out, sizes), spread(b, in_b, out, sizes)), out
    batch = sorted(of_a & of_b & wanted, key=order.index)
    rows = sorted(of_a & wanted - of_b, key=order.index)
    columns = sorted(of_b - of_a | ones, key=order.index)
    if whole and rows and columns and order.index(columns[-1]) < order.index(rows[0]):
        a, in_a, rows, b, in_b, columns = b, in_b, columns, a, in_a, rows
    shape = tuple([sizes[c] for c in batch + rows + columns])
    made = product((a, in_a), (b, in_b), (batch, rows, inner, columns), sizes)
    return shaped(made, shape), "".join(batch + rows + columns)


def product(a: Term, b: Term, groups: tuple[list[str], list[str], list[str], list[str]], sizes: dict) -> Tensor:
    """(batch, rows, inner) @ (batch, inner, columns), each a group of letters. Letters that occur in neither operand
    have size 1.
    """
    batch, rows, inner, columns = groups
    if not batch + rows + columns:
        # dot instead of mm: in mm's gradient, 100,000 x 1 times 1 x 1, BLAS takes 20 times as long
        flat_a, flat_b = ordered(*a, inner), ordered(*b, inner)
        return dot(reshape(flat_a, (-1,)), reshape(flat_b, (-1,)))
    k, m, n = [prod([sizes[c] for c in group]) for group in (rows, inner, columns)]
    stack = tuple([sizes[c] for c in batch])
    left = ordered(*a, batch + [c for c in rows if c in a[1]] + inner)
    right = ordered(*b, batch + inner + [c for c in columns if c in b[1]])
    return mm(shaped(left, (*stack, k, m)), shaped(right, (*stack, m, n)))


def spread(t: Tensor, letters: str, out: str, sizes: dict) -> Tensor:
    """The tensor with the dimensions of `out`, with size 1 for missing ones, so that it broadcasts."""
    t = ordered(t, letters, [c for c in out if c in letters])
    return shaped(t, tuple([sizes[c] if c in letters else 1 for c in out]))


def ordered(t: Tensor, letters: str, order: list[str]) -> Tensor:
    """The tensor with its dimensions in the order of `order`."""
    return t if [*letters] == order else permute(t, places(letters, order))


def shaped(t: Tensor, shape: tuple[int, ...]) -> Tensor:
    return t if t._array.shape == shape else reshape(t, shape)


def places(letters: str, order: Sequence[str]) -> tuple[int, ...]:
    return tuple(letters.index(c) for c in order)


def squeezed(t: Tensor, letters: str) -> tuple[Tensor, str]:
    """The tensor without its dimensions of size 1."""
    keep = [i for i, n in enumerate(t._array.shape) if n != 1]
    if len(keep) == len(letters):
        return t, letters
    return reshape(t, tuple(t._array.shape[i] for i in keep)), "".join(letters[i] for i in keep)
