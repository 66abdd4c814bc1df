"""Long chains, wide graphs, much work and several threads: linear time, no recursion, no garbage, no mix-ups."""

from __future__ import annotations

import copy
import gc
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import rushlight
from rushlight.autograd import Function, grad
from rushlight.core.arguments import CONSTANTS

# -- large graphs ----------------------------------------------------------------------------------


def chain(x, n):
    for _ in range(n):
        x = x + 1
    return x


def test_a_chain_of_100_000_nodes():
    x = rushlight.tensor(1.0, requires_grad=True)
    y = chain(x, 100_000)
    y.backward()
    assert y.item() == 100_001
    assert x.grad.item() == 1
    del y  # freeing it does not recurse either


def test_a_chain_is_let_go_without_backward():
    x = rushlight.tensor(1.0, requires_grad=True)
    y = chain(x, 100_000)
    seen = weakref.ref(y)
    del y
    assert seen() is None


def test_a_chain_with_create_graph():
    x = rushlight.tensor(0.5, dtype=rushlight.float64, requires_grad=True)
    y = x
    for _ in range(5000):
        y = y * 1.0001
    (g,) = grad(y, x, create_graph=True)
    assert g.item() == pytest.approx(1.0001**5000)
    assert grad((x * x).sum() * g.detach(), x)[0].item() == pytest.approx(g.item())


def calls_of(function):
    """How many calls, of Python's functions and of C's, a function makes."""
    count = 0

    def see(frame, event, arg):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(see)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


def test_a_diamond_of_1000_doublings():
    """2 to the 1000 paths, walked once each node."""
    x = rushlight.tensor(1.0, dtype=rushlight.float64, requires_grad=True)
    y = x
    for _ in range(1000):
        y = y + y
    assert calls_of(y.backward) < 50_000
    assert x.grad.item() == 2.0**1000


def test_work_grows_with_the_number_of_nodes():
    def work(n):
        return calls_of(lambda: chain(rushlight.tensor(1.0, requires_grad=True), n).backward())

    work(10)
    few, many = work(2500), work(10_000)
    assert few > 2500
    assert 3.9 < many / few < 4.1


def test_time_grows_with_the_number_of_nodes():
    """What no count of calls sees: a search of a list, say."""

    def seconds(n):
        x = rushlight.tensor(1.0, requires_grad=True)
        start = time.thread_time()  # however busy the machine is with others
        chain(x, n).backward()
        return time.thread_time() - start

    seconds(1000)
    few, many = min(seconds(2000) for _ in range(3)), min(seconds(20_000) for _ in range(3))
    assert many < 40 * few  # 10 times as many nodes: 10 times as long, and not 100


def test_one_tensor_used_10_000_times():
    x = rushlight.ones(3, dtype=rushlight.float64, requires_grad=True)
    total = sum((x * i).sum() for i in range(10_000))
    total.backward()
    assert x.grad.tolist() == [49_995_000.0] * 3


def test_a_node_with_many_inputs_and_outputs():
    x = rushlight.ones(2000, 2, requires_grad=True)
    rushlight.cat([part * i for i, part in enumerate(x.unbind())]).sum().backward()
    assert x.grad[1999].tolist() == [1999.0, 1999.0]


def test_a_chain_of_views_and_writes():
    x = rushlight.ones(4, requires_grad=True)
    y = x * 1
    for i in range(500):
        y[i % 4] *= 1.001
    y.sum().backward()
    assert x.grad[0].item() == pytest.approx(1.001**125, rel=1e-4)


def test_a_chain_of_users_functions():
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return g

    x = rushlight.ones(1, requires_grad=True)
    y = x
    for _ in range(10_000):
        y = Same.apply(y)
    y.backward()
    del y
    assert x.grad.item() == 1


def test_the_recursion_limit_is_nobodys_business():
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(200)
    try:
        x = rushlight.tensor(1.0, requires_grad=True)
        chain(x, 2000).backward()
    finally:
        sys.setrecursionlimit(before)
    assert x.grad.item() == 1


# -- nothing is left behind ------------------------------------------------------------------------


def train(steps, weights, x, target):
    """A small network's steps, of every kind that training has: views, writes, several outputs, no_grad."""
    w, b, v = weights
    for i in range(steps):
        h = (x @ w + b).relu()
        h = h.reshape(4, 2, 4).transpose(1, 2)
        scaled = h * 1
        scaled[:, 0] *= 0.5
        values, _ = scaled.max(-1)
        out = rushlight.cat([values @ v, values[:, :1].tanh()], 1)
        loss = ((out - target) ** 2).mean() + rushlight.softmax(out, 1).var()
        for p in weights:
            p.grad = None
        loss.backward()
        with rushlight.no_grad():
            for p in weights:
                p.sub_(p.grad, alpha=0.01)
        if i % 10 == 0:
            (first,) = grad((x @ w).sin().sum(), w, create_graph=True)
            first.sum().backward()
    return loss.item()


def problem():
    random = np.random.default_rng(0)

    def normal(*shape):
        return rushlight.tensor(random.standard_normal(shape).astype(np.float32))

    leaves = [normal(*shape).requires_grad_() for shape in ((5, 8), (8,), (4, 2))]
    return leaves, normal(4, 5), normal(4, 3)


def test_1000_steps_leave_no_cycles_and_no_memory(uncollected):
    """With the collector off, reference counting alone frees everything: the second 500 steps take no memory.

    gc.collect() finds no cycle, and so frees nothing of ours; it empties CPython's lists of freed tuples, which grow to
    2,000 of each length before they are used again (tuple(k for k in (1, 2)) alone grows them)."""
    state = problem()
    before = train(500, *state)
    assert gc.collect() == 0, "a reference cycle was made"
    blocks, objects = sys.getallocatedblocks(), len(gc.get_objects())
    after = train(500, *state)
    assert gc.collect() == 0, "a reference cycle was made"
    assert after < before
    assert len(gc.get_objects()) - objects < 50
    assert sys.getallocatedblocks() - blocks < 250  # one small object a step would be 500


SCRAPS = {
    "a graph that is thrown away": lambda x: (x * x).exp().sum(),
    "double backward": lambda x: grad(grad((x**3).sum(), x, create_graph=True)[0].sum(), x),
    "create_graph and backward": lambda x: (x * x).sum().backward(create_graph=True),
    "in-place": lambda x: (x * 1).mul_(x).exp_().add_(1).sum().backward(),
    "a write through a view": lambda x: written(x).sum().backward(),
    "several outputs": lambda x: sum(part.sum() for part in x.split(1)).backward(),
    "sorting": lambda x: x.sort()[0].sum().backward(),
    "max": lambda x: (x.max() + x.max(0).values + x.view(3, 1).max(1).values.sum()).backward(),
    "views of views": lambda x: x.view(3, 1).T[0].unsqueeze(1).expand(3, 2).sum().backward(),
    "a module": lambda x: MODULE(x.repeat(2, 1)).sum().backward(),
    "a module's hooks": lambda x: hooked_module(x),
    "a module that is thrown away": lambda x: built().backward(),
    "an optimizer that is thrown away": lambda x: optimized(rushlight.optim.Adam),
    "an optimizer with a closure": lambda x: optimized(rushlight.optim.LBFGS),
    "a copy": lambda x: copy.deepcopy(MODULE)(x.reshape(1, 3)).sum().backward(),
    "a hook": lambda x: hooked(x).sum().backward(),
    "a failed call": lambda x: failed(lambda: x + rushlight.ones(7)),
    "a stale graph": lambda x: stale(x),
    "a user's function": lambda x: Kept.apply(x).sum().backward(),
    "indexing": lambda x: x[rushlight.tensor([0, 0])].sum().backward(),
    "a retained graph": lambda x: (x * x).sum().backward(retain_graph=True),
    "text": lambda x: str(x * 2),
}


class Kept(Function):
    """Saves its output, which so holds itself: the trap of every autograd."""

    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[1]


MODULE = rushlight.nn.Sequential(rushlight.nn.Linear(3, 4), rushlight.nn.BatchNorm1d(4), rushlight.nn.Dropout())
MODULE.eval()


def hooked_module(x):
    handles = [
        MODULE.register_forward_hook(lambda m, args, out: out * 2),
        MODULE[0].register_full_backward_hook(lambda m, inputs, outputs: None),
    ]
    MODULE(x.reshape(1, 3)).sum().backward()
    for handle in handles:
        handle.remove()


def built():
    net = rushlight.nn.Sequential(rushlight.nn.Linear(2, 3), rushlight.nn.LayerNorm(3), rushlight.nn.Tanh())
    return net(rushlight.ones(5, 2)).sum()


def optimized(kind):
    net = rushlight.nn.Linear(2, 1)
    optimizer = kind(net.parameters(), lr=0.1)

    def closure():
        optimizer.zero_grad()
        loss = net(rushlight.ones(5, 2)).square().sum()
        loss.backward()
        return loss

    for _ in range(3):
        optimizer.step(closure)


def written(x):
    y = x * 1
    y[1:] = y[:2] * 2
    return y


def hooked(x):
    y = x * 2
    y.register_hook(lambda g: g * 2)
    y.retain_grad()
    return y * y


def failed(call):
    with pytest.raises(RuntimeError):
        call()


def stale(x):
    y = x * 1
    z = y * y
    y.add_(1)
    failed(z.sum().backward)


@pytest.mark.parametrize("name", SCRAPS)
def test_nothing_makes_a_cycle(uncollected, name):
    x = rushlight.tensor([1.0, 2.0, 3.0], requires_grad=True)

    def scrap():
        SCRAPS[name](x)
        x.grad = None

    scrap()
    gc.collect()
    for _ in range(5):
        scrap()
    assert gc.collect() == 0


def test_results_die_with_their_last_name(uncollected):
    x = rushlight.ones(3, requires_grad=True)
    y = x * 2
    z = y.exp()
    seen = [weakref.ref(y), weakref.ref(z)]
    del y, z
    assert [s() for s in seen] == [None, None]


def test_backward_frees_what_was_saved(uncollected):
    x = rushlight.ones(3, requires_grad=True)
    y = x * 2
    z = (y * y).sum()
    seen = weakref.ref(y)
    del y
    assert seen() is not None  # the product keeps it for its rule
    z.backward()
    assert seen() is None


def test_constants_are_bounded():
    """Python numbers are kept as 0-d arrays, but not for ever."""
    x = rushlight.ones(1)
    for i in range(10_000):
        x * (i + 0.5)
    assert len(CONSTANTS) <= 4097


# -- threads ---------------------------------------------------------------------------------------


@pytest.fixture
def often():
    """Threads take turns after a microsecond, so that what is not safe shows."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def in_threads(function, n=8):
    with ThreadPoolExecutor(n) as pool:
        return list(pool.map(function, range(n)))


def test_each_thread_has_its_own_grad_mode():
    barrier = threading.Barrier(2)
    x = rushlight.ones(1, requires_grad=True)

    def look(i):
        if i:
            with rushlight.no_grad():
                barrier.wait()
                inside = (x * 2).requires_grad
                barrier.wait()
                return inside
        barrier.wait()
        outside = (x * 2).requires_grad
        barrier.wait()
        return outside

    assert in_threads(look, 2) == [True, False]


def test_a_new_thread_records():
    with rushlight.no_grad():
        found = in_threads(lambda i: rushlight.is_grad_enabled(), 2)
    assert found == [True, True]


def test_backward_in_many_threads_at_once(often):
    def work(i):
        x = rushlight.full((3,), float(i), dtype=rushlight.float64, requires_grad=True)
        for _ in range(200):
            x.grad = None
            y = (x * x).sin()
            y[0] *= 2
            y.sum().backward()
        return x.grad

    for i, g in enumerate(in_threads(work)):
        slope = np.full(3, 2 * i * np.cos(i * i))
        slope[0] *= 2
        assert np.allclose(g.numpy(), slope)


def test_backward_in_many_threads_into_shared_leaves(often):
    """No gradient is lost (NumPy lets other threads run while it adds large arrays), and a leaf's hooks run each
    time."""
    x = rushlight.ones(100_000, requires_grad=True)
    y = rushlight.ones((), requires_grad=True)
    seen = []
    x.register_hook(lambda g: seen.append(1))
    barrier = threading.Barrier(8)

    def work(i):
        barrier.wait()
        for _ in range(20):
            (x * y * (i + 1)).sum().backward()

    in_threads(work)
    assert (x.grad == 20 * 36).all()
    assert y.grad.item() == 20 * 36 * 100_000
    assert len(seen) == 20 * 8


def test_one_graph_read_by_many_threads(often):
    x = rushlight.tensor([1.0, 2.0], dtype=rushlight.float64, requires_grad=True)
    y = (x.exp() * x).sum()

    def work(i):
        return [grad(y, x, retain_graph=True)[0].numpy() for _ in range(50)]

    expected = np.exp([1.0, 2.0]) * [2.0, 3.0]
    assert all(np.allclose(g, expected) for found in in_threads(work) for g in found)


def test_views_made_by_many_threads(often):
    base = rushlight.ones(100, requires_grad=True) * 1

    def work(i):
        return [base[j % 100].item() for j in range(500)]

    assert all(set(found) == {1.0} for found in in_threads(work))


def test_forward_and_backward_in_different_threads():
    x = rushlight.ones(3, requires_grad=True)
    y = (x * 3).sum()
    worker = threading.Thread(target=y.backward)
    worker.start()
    worker.join()
    assert x.grad.tolist() == [3.0] * 3


def test_the_default_mode_survives_an_exception_in_backward():
    x = rushlight.ones(1, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        y.backward()
    assert rushlight.is_grad_enabled()
    with rushlight.no_grad(), pytest.raises(ZeroDivisionError):
        1 / 0
    assert rushlight.is_grad_enabled()


def test_a_saved_output_alone_is_freed():
    """ldexp saves its output for the exponent: the first backward frees the output, so a second one is refused."""
    x, y = rushlight.tensor([2.0]), rushlight.tensor([3.0], requires_grad=True)
    z = rushlight.ldexp(x, y)
    z.backward()
    with pytest.raises(RuntimeError, match="second time"):
        z.backward()
