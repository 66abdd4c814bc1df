"""send, recv, isend, irecv and batch_isend_irecv."""

import pytest

from tests.support.ranks import needs_mpi, ranks

pytestmark = needs_mpi


def ring(torch, dist):
    """torch's tutorial: an all-reduce made of messages to the right and from the left."""
    rank, size = dist.get_rank(), dist.get_world_size()
    send_buffer = torch.arange(4.0) * (rank + 1)
    total, receive_buffer = send_buffer.clone(), torch.zeros(4)
    left, right = (rank - 1) % size, (rank + 1) % size
    for i in range(size - 1):
        if i % 2 == 0:
            request = dist.isend(send_buffer, right)
            dist.recv(receive_buffer, left)
            total += receive_buffer
        else:
            request = dist.isend(receive_buffer, right)
            dist.recv(send_buffer, left)
            total += send_buffer
        request.wait()
    return total.tolist()


@pytest.mark.parametrize("size", [2, 4])
def test_the_ring_of_the_tutorial(size):
    want = [i * size * (size + 1) / 2 for i in range(4)]
    assert ranks(size)(ring) == [want] * size


def batch(torch, dist):
    rank, size = dist.get_rank(), dist.get_world_size()
    x, y = torch.full((1000, 300), float(rank)), torch.zeros(1000, 300)
    works = dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, x, (rank + 1) % size), dist.P2POp(dist.irecv, y, (rank - 1) % size)]
    )
    for work in works:
        work.wait()
    return [len(works), y.min().item(), y.max().item()]


def test_large_messages_both_ways():
    assert ranks(2)(batch) == [[2, 1.0, 1.0], [2, 0.0, 0.0]]


def tagged(torch, dist):
    """Messages with tags in another order, from any rank, into strided memory, and in a group."""
    group = dist.new_group([0, 1])
    if dist.get_rank() == 1:
        dist.send(torch.tensor([1.0]), 0, tag=1)
        dist.send(torch.tensor([2.0, 3.0]), 0, tag=2)
        dist.send(torch.tensor([4]), 0)
        dist.send(torch.tensor([5.0]), group=group, group_dst=0)
        return None
    one, two, three, four = torch.zeros(1), torch.zeros(2, 2), torch.zeros(1).long(), torch.zeros(1)
    later = dist.irecv(two[:, 0], 1, tag=2)
    dist.recv(one, 1, tag=1)
    later.wait()
    source = dist.recv(three)
    dist.recv(four, group=group, group_src=1)
    return [one.tolist(), two.tolist(), three.tolist(), source, later.source_rank(), four.tolist()]


def test_tags_and_sources():
    assert ranks(2)(tagged)[0] == [[1.0], [[2.0, 0.0], [3.0, 0.0]], [4], 1, 1, [5.0]]


def short(torch, dist):
    group = dist.new_group()
    try:
        if dist.get_rank():
            dist.send(torch.ones(2), 0, group=group)
        else:
            dist.recv(torch.ones(3), 1, group=group)
    except RuntimeError as error:
        return str(error)
    return None


def test_a_message_of_another_size_names_its_rank():
    assert "rank 1 has sent 8 bytes" in ranks(2)(short)[0]


def to_itself(torch, dist):
    try:
        dist.send(torch.ones(1), dist.get_rank())
    except ValueError as error:
        return "Invalid destination rank" in str(error)


def test_no_messages_to_itself():
    assert ranks(2)(to_itself) == [True, True]
