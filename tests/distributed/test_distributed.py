"""torch.distributed in one process, its sampler and wrapper; memory shared with forked processes."""

import multiprocessing as python
import sys

import pytest

import rushlight
import rushlight.distributed as dist
from rushlight import nn
from rushlight.nn.parallel import DistributedDataParallel
from rushlight.utils import processes as mp
from rushlight.utils.data.distributed import DistributedSampler

forks = pytest.mark.skipif("fork" not in python.get_all_start_methods() or sys.platform == "darwin", reason="no fork")


@pytest.fixture
def world():
    dist.init_process_group("gloo", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_without_a_group(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert dist.is_available()
    assert not dist.is_initialized()
    for ask in (
        dist.get_rank,
        dist.barrier,
        lambda: dist.all_reduce(rushlight.ones(1)),
        dist.destroy_process_group,
        lambda: DistributedDataParallel(nn.Linear(2, 2)),
        lambda: DistributedSampler([1]),
    ):
        with pytest.raises(ValueError, match="Default process group has not been initialized"):
            ask()
    with pytest.raises(ValueError, match="environment variable WORLD_SIZE expected"):
        dist.init_process_group("gloo")
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    with pytest.raises(ValueError, match="environment variable MASTER_ADDR expected"):
        dist.init_process_group("gloo", rank=0, world_size=2)
    assert not dist.is_initialized()


def test_from_the_environment(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "1")
    monkeypatch.setenv("RANK", "0")
    dist.init_process_group()
    try:
        assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (0, 1, "gloo")
        with pytest.raises(ValueError, match="twice"):
            dist.init_process_group()
    finally:
        dist.destroy_process_group()


@pytest.mark.usefixtures("world")
def test_collectives_of_one():
    x, y = rushlight.arange(3.0), rushlight.zeros(3)
    dist.all_reduce(x, op=dist.ReduceOp.AVG)
    assert dist.all_reduce(x, async_op=True).wait()
    dist.all_gather([y], x)
    assert y.tolist() == x.tolist() == [0, 1, 2]
    found = [None]
    dist.all_gather_object(found, "a")
    assert found == ["a"]
    dist.scatter(y, [x + 1])
    assert y.tolist() == [1, 2, 3]


@pytest.mark.usefixtures("world")
def test_the_wrapper_trains_the_module():
    net = nn.Linear(2, 1)
    ddp = DistributedDataParallel(net)
    with ddp.no_sync():
        ddp(rushlight.ones(4, 2)).sum().backward()
    assert net.weight.grad.tolist() == [[4, 4]]
    assert [*ddp.state_dict()] == ["module.weight", "module.bias"]
    assert sorted(DistributedSampler(range(5))) == [0, 1, 2, 3, 4]
    with pytest.raises(RuntimeError, match="doesn't have any parameters that require a gradient"):
        DistributedDataParallel(nn.ReLU())


def add(i, x):
    x[i] += i + 1


def fail(i):
    sys.exit(3)


@forks
def test_forked_processes_share_memory():
    x, apart = rushlight.zeros(2).share_memory_(), rushlight.zeros(2)
    assert x.is_shared()
    assert not apart.is_shared()
    for t in (x, apart):
        mp.spawn(add, (t,), nprocs=2)
    assert x.tolist() == [1, 2]
    assert apart.tolist() == [0, 0]


@forks
def test_a_failure_in_a_process():
    with pytest.raises(mp.ProcessExitedException, match="process 0 terminated with exit code 3"):
        mp.spawn(fail, nprocs=1)


@forks
def test_hogwild():
    net = nn.Linear(2, 1)
    net.share_memory()

    def train(i):
        optimizer = rushlight.optim.SGD(net.parameters(), lr=0.1)
        net(rushlight.ones(1, 2)).sum().backward()
        optimizer.step()

    before = net.bias.item()
    worker = mp.Process(target=train, args=(0,))
    worker.start()
    worker.join()
    assert net.bias.item() == pytest.approx(before - 0.1)


def test_views_are_not_torn_from_their_base():
    with pytest.raises(RuntimeError, match="share_memory_\\(\\) on the base"):
        rushlight.zeros(3)[:2].share_memory_()


@pytest.mark.origin("suites")
def test_gradients_go_through_collectives_of_one_process():
    from rushlight import distributed
    from rushlight.distributed import nn

    distributed.init_process_group("gloo", rank=0, world_size=1, store=None, init_method="tcp://127.0.0.1:29500")
    try:
        x = rushlight.ones(2, requires_grad=True)
        total = nn.all_reduce(x) + nn.all_gather(x)[0] + nn.functional.broadcast(x, 0) + nn.all_to_all([x], [x])[0]
        total.sum().backward()
        assert x.grad.tolist() == [4.0, 4.0]
    finally:
        distributed.destroy_process_group()
