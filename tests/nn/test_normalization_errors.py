"""A batch that batch normalization refuses does not count."""

import pytest

import rushlight
from rushlight import nn


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda: nn.BatchNorm1d(3), (2, 4)),
        (lambda: nn.BatchNorm1d(3), (1, 3)),
        (lambda: nn.BatchNorm2d(3), (2, 4, 2, 2)),
        (lambda: nn.BatchNorm2d(3, momentum=None), (2, 4, 2, 2)),
        (lambda: nn.SyncBatchNorm(3), (2, 4)),
    ],
)
def test_a_batch_that_is_refused_does_not_count(make, shape):
    layer = make()
    before = {name: value.clone() for name, value in layer.state_dict().items()}
    with pytest.raises((RuntimeError, ValueError)):
        layer(rushlight.ones(*shape))
    for name, value in layer.state_dict().items():
        assert rushlight.equal(value, before[name]), name


def test_the_average_of_all_batches_counts_from_one():
    layer = nn.BatchNorm1d(1, momentum=None)
    layer(rushlight.tensor([[0.0], [2.0]]))
    layer(rushlight.tensor([[4.0], [6.0]]))
    assert layer.running_mean.item() == 3.0
    assert layer.num_batches_tracked.item() == 2
