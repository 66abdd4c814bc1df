"""Every collective, with every dtype, waiting and not, in the world and in groups: the numbers of torch on gloo."""

import pytest

from tests.support.ranks import Failed, needs_mpi, ranks

DTYPES = "uint8 int8 int32 int64 float16 bfloat16 float32 float64".split()
OPS = "SUM AVG PRODUCT MIN MAX BAND BOR BXOR".split()
sizes = pytest.mark.parametrize("size", [2, 4])
pytestmark = needs_mpi


def plain(value):
    """Tensors as lists of Python numbers."""
    if hasattr(value, "tolist"):
        return value.double().tolist() if value.is_floating_point() else value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return value


def numbers(torch, dtype, rank, *shape):
    """Small whole numbers, other ones on each rank: sums are exact in each dtype."""
    n = 1
    for one in shape:
        n *= one
    return ((torch.arange(n) * 7 + rank * 5) % 4 + rank % 2).reshape(shape).to(getattr(torch, dtype))


def reductions(torch, dist, async_op):
    rank, found = dist.get_rank(), {}
    for dtype in DTYPES:
        floats = getattr(torch, dtype).is_floating_point
        for op in OPS:
            if (op.startswith("B") and floats) or (op == "AVG" and not floats):
                continue
            x = numbers(torch, dtype, rank, 2, 3)
            work = dist.all_reduce(x, op=getattr(dist.ReduceOp, op), async_op=async_op)
            if async_op:
                work.wait()
            found[f"{dtype} {op}"] = plain(x)
    return found


@sizes
@pytest.mark.parametrize("async_op", [False, True])
def test_all_reduce_has_gloos_numbers(oracle, size, async_op):
    want = oracle(lambda torch: ranks(size, "torch")(reductions, async_op))
    assert ranks(size)(reductions, async_op) == want


def complex_numbers(torch, dist):
    x = torch.tensor([1 + 2j, 3 - 1j]) * (dist.get_rank() + 1)
    dist.all_reduce(x)
    y = torch.view_as_real(x).clone()
    dist.all_reduce(y, dist.ReduceOp.AVG)
    return [torch.view_as_real(x).tolist(), y.tolist()]


@sizes
def test_complex_numbers(oracle, size):
    want = oracle(lambda torch: ranks(size, "torch")(complex_numbers))
    assert ranks(size)(complex_numbers) == want


def moved(torch, dist, dtype, async_op, in_group):
    """What collectives that move elements leave on this rank."""
    group = dist.new_group(list(range(dist.get_world_size() - 1, 0, -1))) if in_group else None
    rank = dist.get_rank(group)
    if rank < 0:
        dist.barrier()
        return None
    n, first = dist.get_world_size(group), 1 if in_group else 0
    x, found = numbers(torch, dtype, rank + 1, 2, 2), {}
    last = first + n - 1

    def run(name, function, tensors, *args, **kwargs):
        work = function(*args, **kwargs, group=group, async_op=async_op)
        if async_op:
            assert work.wait()
            assert work.is_completed() or torch.__name__ == "torch"
        else:
            assert work is None
        found[name] = plain(tensors)

    def like(count):
        return [torch.zeros_like(x) for _ in range(count)]

    t = x.clone()
    run("broadcast", dist.broadcast, t, t, src=last)
    t = x.clone()
    run("reduce", dist.reduce, t, t, dst=first)
    found["reduce"] = found["reduce"] if rank == 0 else None
    many = like(n)
    run("all_gather", dist.all_gather, many, many, x)
    whole = torch.zeros(2 * n, 2, dtype=x.dtype)
    run("all_gather_into_tensor", dist.all_gather_into_tensor, whole, whole, x)
    many = like(n) if rank == n - 1 else None
    run("gather", dist.gather, many, x, many, dst=last)
    t = torch.zeros_like(x)
    parts = [x + i for i in range(n)] if rank == 0 else None
    run("scatter", dist.scatter, t, t, parts, src=first)
    t = torch.zeros_like(x)
    run("reduce_scatter", dist.reduce_scatter, t, t, [x * (i + 1) for i in range(n)])
    t = torch.zeros_like(x)
    whole = torch.cat([x + i for i in range(n)])
    run("reduce_scatter_tensor", dist.reduce_scatter_tensor, t, t, whole)
    t = torch.zeros(n, 2, dtype=x.dtype)
    y = numbers(torch, dtype, rank, n, 2)
    run("all_to_all_single", dist.all_to_all_single, t, t, y)
    many = like(n)
    run("all_to_all", dist.all_to_all, many, many, [x + i for i in range(n)])
    if not in_group:
        sizes = [[i + 1] * n for i in range(n)]  # rank i sends i + 1 rows to each
        y = numbers(torch, dtype, rank, sum(sizes[rank]), 2)
        t = torch.zeros(sum(row[rank] for row in sizes), 2, dtype=x.dtype)
        run("uneven", dist.all_to_all_single, t, t, y, [i + 1 for i in range(n)], sizes[rank])
    dist.barrier()
    return found


@sizes
@pytest.mark.parametrize("in_group", [False, True])
@pytest.mark.parametrize("async_op", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "uint8"])
def test_elements_move_as_in_gloo(oracle, size, dtype, async_op, in_group):
    want = oracle(lambda torch: ranks(size, "torch")(moved, dtype, async_op, in_group))
    assert ranks(size)(moved, dtype, async_op, in_group) == want


def strided(torch, dist):
    rank = dist.get_rank()
    x = (torch.arange(6.0).reshape(2, 3) + rank).t()
    dist.all_reduce(x)
    base = torch.zeros(3, 4)
    part = base[:, 1:3]
    part += rank + 1
    dist.broadcast(part, 1)
    outs = [torch.zeros(2, 3).t() for _ in range(dist.get_world_size())]
    dist.all_gather(outs, x * (rank + 1))
    return [x.tolist(), base.tolist(), [out.tolist() for out in outs]]


@sizes
def test_strided_tensors(size):
    """torch's gloo takes some of these, and moves what lies between the elements of others."""
    total = [[sum(float(3 * j + i + r) for r in range(size)) for j in range(2)] for i in range(3)]
    for x, base, outs in ranks(size)(strided):
        assert x == total
        assert base == [[0, 2, 2, 0]] * 3
        assert outs == [[[v * (r + 1) for v in row] for row in total] for r in range(size)]


def other_types(torch, dist):
    rank = dist.get_rank()
    found = []
    for dtype in (torch.bool, torch.int16, torch.uint16):
        x = torch.tensor([1, rank, 0]).to(dtype)
        dist.all_reduce(x)
        found.append(x.tolist())
    return found


def test_types_that_gloo_lacks():
    want = [[True, True, False], [2, 1, 0], [2, 1, 0]]
    assert ranks(2)(other_types) == [want, want]


def versions(torch, dist):
    x = torch.ones(3, requires_grad=True)
    y = x * 1
    z = y * y
    dist.all_reduce(y.detach())
    try:
        z.sum().backward()
    except RuntimeError as error:
        return "modified by an inplace operation" in str(error)
    return False


def test_backward_notices_what_a_collective_has_written():
    assert ranks(2)(versions) == [True, True]


def wrong(torch, dist, kind):
    rank, n = dist.get_rank(), dist.get_world_size()
    calls = {
        "list": lambda: dist.all_reduce([1]),
        "op": lambda: dist.all_reduce(torch.ones(1), op=5),
        "mean of ints": lambda: dist.all_reduce(torch.ones(1).int(), op=dist.ReduceOp.AVG),
        "bits of floats": lambda: dist.all_reduce(torch.ones(1), op=dist.ReduceOp.BOR),
        "length": lambda: dist.all_gather([torch.ones(1)] * (n + 1), torch.ones(1)),
        "shape": lambda: dist.all_gather([torch.ones(2)] * n, torch.ones(1)),
        "dtype": lambda: dist.all_gather([torch.ones(1).double()] * n, torch.ones(1)),
        "no list": lambda: dist.gather(torch.ones(1), dst=rank),
        "root": lambda: dist.broadcast(torch.ones(1), n),
        "group": lambda: dist.all_reduce(torch.ones(1), group="g"),
        "splits": lambda: dist.all_to_all_single(torch.ones(2 * n), torch.ones(2 * n), [1] * n),
    }
    try:
        calls[kind]()
    except Exception as error:
        return type(error).__name__
    return None


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("list", "TypeError"),
        ("op", "TypeError"),
        ("mean of ints", "RuntimeError"),
        ("bits of floats", "ValueError"),
        ("length", "RuntimeError"),
        ("shape", "ValueError"),
        ("dtype", "ValueError"),
        ("no list", "ValueError"),
        ("root", "ValueError"),
        ("group", "ValueError"),
        ("splits", "RuntimeError"),
    ],
)
def test_wrong_arguments_are_found_before_anything_is_sent(kind, error):
    assert ranks(2)(wrong, kind) == [error, error]


def unequal(torch, dist, what):
    rank = dist.get_rank()
    group = dist.new_group()  # what comes after the error in this group is of no use
    x = torch.ones(2 + rank) if what == "shape" else torch.ones(2).to([torch.int32, torch.float32][rank])
    try:
        if what == "call" and rank:
            dist.broadcast(torch.ones(2), 0, group=group)
        else:
            dist.all_reduce(x, group=group)
    except dist.DistBackendError as error:
        return str(error)
    return None


@pytest.mark.parametrize("what", ["shape", "dtype", "call"])
def test_ranks_that_differ_are_named(what):
    for rank, text in enumerate(ranks(2)(unequal, what)):
        assert "Detected mismatch between collectives on ranks" in text
        assert f"Rank {rank} is running collective: " in text
        assert f"but Rank {1 - rank} is running collective: " in text


def fails(torch, dist):
    raise ValueError("on purpose")


def test_the_pool_reports_an_exception():
    with pytest.raises(Failed, match="on purpose"):
        ranks(2)(fails)


def sparse_sum(torch, dist):
    rank, found = dist.get_rank(), []
    for dense in ((), (2,)):
        at = torch.arange(rank + 1).reshape(1, -1)
        at = torch.cat([at, torch.zeros_like(at)])
        values = torch.ones(rank + 1, *dense) * (rank + 1)
        x = torch.sparse_coo_tensor(at, values, (4, 2, *dense))
        dist.all_reduce(x)
        found.append([x.is_sparse, x.to_dense().tolist()])
    try:
        dist.all_reduce(x, dist.ReduceOp.MAX)
    except RuntimeError:
        found.append("refused")
    return found


def test_sums_of_sparse_tensors(oracle):
    want = oracle(lambda torch: ranks(4, "torch")(sparse_sum))
    assert ranks(4)(sparse_sum) == want
