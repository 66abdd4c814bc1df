"""`vmap`: makes a function of one sample a function of a batch of samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from rushlight.base.errors import explain, runtime_error, value_error
from rushlight.base.pytree import TreeSpec, _broadcast_to_and_flatten, tree_flatten, tree_unflatten
from rushlight.core.tensor import Tensor
from rushlight.core.worlds import TENSORS
from rushlight.func import batching_families, batching_index_rules, batching_rules, vmap_fallback, vmap_random
from rushlight.func.batching import Level, Part, wrap
from rushlight.ops.tensor.random_tensors import get_rng_state, set_rng_state

P = ParamSpec("P")
R = TypeVar("R")
Dims = Any  # an int, None, or a tree of ints and None


def vmap(
    func: Callable[P, R],
    in_dims: Dims = 0,
    out_dims: Dims = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[P, R]:
    """f -> F with F(x)[i] = f(x[i]): `func` runs once, on all samples at the same time.

    `in_dims`: the batch dimension of each argument, an int for all arguments or a tree that fits them; None for an
    argument that all samples share. Samples share keyword arguments. `out_dims`: the batch dimension of each result;
    None for a result that is the same for all samples. `randomness`: what random ops do: raise ('error'), draw
    'different' numbers for each sample, or the 'same'. `chunk_size`: the largest number of samples at a time; results
    are then copies, never views.

    Inside, tensors have the shape of one sample. `vmap` nests, and composes with `func.grad`, `jacrev`, `jvp` and
    backward. In-place ops write into mapped tensors only. `if`, `.item()` and ops whose output shape depends on numbers
    raise RuntimeError; dims that do not fit raise ValueError. Tensors may leave the function as results only.

    >>> rushlight.vmap(rushlight.dot)(rushlight.tensor([[1., 2.], [3., 4.]]), rushlight.tensor([[1., 1.], [0., 1.]]))
    tensor([3., 4.])
    """
    if randomness not in ("error", "different", "same"):
        raise runtime_error(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if chunk_size is not None and chunk_size <= 0:
        raise value_error(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @wraps(func)
    def mapped(*args: P.args, **kwargs: P.kwargs) -> Any:
        inputs, dims, spec = sorted_out(func, in_dims, args)
        size = batch_size(inputs, dims)
        fronts = [a if d is None else TENSORS["movedim"](a, d, 0) if d % a.ndim else a for a, d in zip(inputs, dims)]

        def run(start: int, stop: int) -> tuple[list, TreeSpec]:
            part = [a if d is None or stop - start == size else a[start:stop] for a, d in zip(fronts, dims)]
            return one_run(func, randomness, stop - start, part, dims, spec, kwargs, out_dims)

        step = chunk_size or max(size, 1)
        # all chunks draw the same numbers
        again = get_rng_state() if randomness == "same" and step < size else None
        chunks = []
        for start in range(0, max(size, 1), step):
            if again is not None:
                set_rng_state(again)
            chunks.append(run(start, min(start + step, size)))
        return tree_unflatten(*chunks[0]) if chunk_size is None else joined(func, chunks, out_dims)

    return mapped


def one_run(
    func: Callable, randomness: str, size: int, inputs: list, dims: list, spec: TreeSpec, kwargs: dict, out_dims: Dims
) -> tuple[list, TreeSpec]:
    """Call the function once, on batched tensors. Returns the leaves of its results, with the batch at `out_dims`."""
    with Level(size, randomness, name_of(func)) as level:
        given = [a if d is None else wrap(a, level) for a, d in zip(inputs, dims)]
        made = func(*tree_unflatten(given, spec), **kwargs)
        flat, tree = tree_flatten(made)
        places = result_dims(func, out_dims, made, tree)
        return [unwrapped(func, t, d, level) for t, d in zip(flat, places)], tree


def unwrapped(func: Callable, t: Any, dim: int | None, level: Level) -> Any:
    """A result as a tensor of all samples, with the batch in dimension `dim`."""
    name = name_of(func)
    if dim is None:
        if isinstance(t, Tensor) and (part := Part(t, level)).mapped:
            raise value_error(
                f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None",
                "pass the position of the batch dimension: out_dims=0",
            )
        return part.value if isinstance(t, Tensor) else t
    if not isinstance(t, Tensor):
        raise value_error(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(t)}. Did you mean to set "
            "out_dims= to None for output?"
        )
    value = Part(t, level).whole()
    return TENSORS["movedim"](value, 0, dim) if dim else value


def joined(func: Callable, chunks: list[tuple[list, TreeSpec]], out_dims: Dims) -> Any:
    """The results of all chunks, concatenated along their out_dims."""
    flat, tree = chunks[0]
    places = result_dims(func, out_dims, tree_unflatten(flat, tree), tree)
    return tree_unflatten(
        [
            parts[0] if d is None else TENSORS["cat"](list(parts), d % parts[0].ndim)
            for parts, d in zip(zip(*(found for found, _ in chunks)), places)
        ],
        tree,
    )


# -- batch dimensions of arguments and results -----------------------------------------------------


def name_of(func: Callable) -> str:
    return getattr(func, "__name__", None) or repr(func)


def sorted_out(func: Callable, in_dims: Dims, args: tuple) -> tuple[list, list, TreeSpec]:
    """(leaves of the arguments, batch dimension of each, tree of the arguments). ValueError if in_dims does not fit."""
    name = name_of(func)
    call = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>)"
    if not isinstance(in_dims, (int, tuple)):
        raise value_error(
            f"{call}: expected `in_dims` to be int or a (potentially nested) tuple matching the structure of "
            f"inputs, got: {type(in_dims)}.",
            "pass a tuple with one entry for each argument",
        )
    if not args:
        raise value_error(
            f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap "
            "over a function with no inputs. The latter is unsupported."
        )
    flat, spec = tree_flatten(args)
    dims = _broadcast_to_and_flatten(in_dims, spec)
    if dims is None:
        raise value_error(
            f"{call}: in_dims is not compatible with the structure of `inputs`. in_dims has structure "
            f"{tree_flatten(in_dims)[1]} but inputs has structure {spec}.",
            "give one entry for each argument",
        )
    return flat, [checked(call, a, d) for a, d in zip(flat, dims)], spec


def checked(call: str, arg: Any, dim: Any) -> int | None:
    """`dim`, if it is a dimension of the argument. ValueError otherwise."""
    if dim is None:
        return None
    if not isinstance(dim, int):
        raise value_error(
            f"{call}: Got in_dim={dim} for an input but in_dim must be either an integer dimension or None."
        )
    if not isinstance(arg, Tensor):
        raise value_error(
            f"{call}: Got in_dim={dim} for an input but the input is of type {type(arg)}. We cannot vmap over "
            "non-Tensor arguments, please use None as the respective in_dim"
        )
    n = arg.ndim
    if not -n <= dim < n:
        raise value_error(
            f"{call}: Got in_dim={dim} for some input, but that input is a Tensor of dimensionality {n} so "
            f"expected in_dim to satisfy -{n} <= in_dim < {n}."
        )
    return dim


def batch_size(inputs: Sequence, dims: Sequence) -> int:
    """The number of samples. ValueError if the arguments do not agree."""
    sizes = [a._array.shape[d] for a, d in zip(inputs, dims) if d is not None]
    if not sizes:
        raise value_error(
            "vmap: Expected at least one tensor to be mapped over, but every in_dim is None",
            "call the function without vmap, or pass an in_dim",
        )
    if any(n != sizes[0] for n in sizes):
        raise value_error(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the "
            "mapped dimension"
        )
    return sizes[0]


def result_dims(func: Callable, out_dims: Dims, made: Any, tree: TreeSpec) -> list:
    """The batch dimension of each result. ValueError if out_dims does not fit."""
    call = f"vmap({name_of(func)}, ..., out_dims={out_dims})"
    if isinstance(made, Tensor):  # for a single result, out_dims may also be (0,)
        dims: Any = list(out_dims) if isinstance(out_dims, (tuple, list)) and len(out_dims) == 1 else [out_dims]
    else:
        dims = _broadcast_to_and_flatten(out_dims, tree)
    if isinstance(made, Tensor) and isinstance(dims[0], (tuple, list)) or dims is None:
        raise value_error(
            f"{call}(<inputs>): out_dims is not compatible with the structure of `outputs`. out_dims has "
            f"structure {tree_flatten(out_dims)[1]} but outputs has structure {tree}."
        )
    if any(d is not None and not isinstance(d, int) for d in dims):
        raise value_error(
            f"{call}: `out_dims` must be an int, None or a python collection of ints representing where in the "
            "outputs the vmapped dimension should appear."
        )
    return dims
