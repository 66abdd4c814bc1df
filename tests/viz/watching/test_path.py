"""The path of a training: vectors of the parameters, and the plane of their main directions."""

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn, viz
from rushlight.viz.watching import path as paths


def test_vectors_are_the_parameters():
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    known = []
    with viz.Path(model, every=2) as path:
        for _ in range(5):
            known.append(nn.utils.parameters_to_vector(model.parameters()).detach().numpy().copy())
            optimizer.zero_grad()
            model(torch.ones(2, 3)).square().mean().backward()
            optimizer.step()
    known.append(nn.utils.parameters_to_vector(model.parameters()).detach().numpy())
    assert path.steps == [0, 2, 4, 5]
    np.testing.assert_array_equal(path.vectors, [known[i] for i in path.steps])
    optimizer.step()
    assert path.count == 5  # the hook is gone


def test_the_plane_is_that_of_the_main_directions():
    generator = np.random.default_rng(0)
    w = torch.zeros(50)
    path = viz.Path([w])
    moves = generator.standard_normal((20, 3)) @ np.diag([5, 2, 0.1]) @ generator.standard_normal((3, 50))
    for i, move in enumerate(moves):
        w.copy_(torch.tensor(move))
        path.count = i
        path.record()
    places, directions, shares = path.plane()
    centred = moves - moves.mean(0)
    sizes = np.linalg.svd(centred, compute_uv=False) ** 2
    np.testing.assert_allclose(shares, sizes[:2] / sizes.sum(), rtol=1e-4)
    np.testing.assert_allclose(directions @ directions.T, np.eye(2), atol=1e-6)
    _, _, exact = np.linalg.svd(centred)
    np.testing.assert_allclose(abs((directions * exact[:2]).sum(1)), 1, atol=1e-4)
    np.testing.assert_allclose(places[-1], 0, atol=1e-6)
    np.testing.assert_allclose(places, (moves - moves[-1]) @ directions.T, atol=1e-3)


def test_a_straight_path_has_a_plane():
    w = torch.zeros(10)
    path = viz.Path([w])
    for i in range(4):
        w.fill_(i)
        path.record()
    places, directions, shares = path.plane()
    np.testing.assert_allclose(directions @ directions.T, np.eye(2), atol=1e-6)
    np.testing.assert_allclose(abs(places[:, 1]), 0, atol=1e-4)
    assert shares[0] == pytest.approx(1)


def test_a_long_path_is_thinned(monkeypatch):
    monkeypatch.setattr(paths, "MAX_POINTS", 8)
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with viz.Path(model) as path:
        for _ in range(100):
            model(torch.ones(1, 1)).sum().backward()
            optimizer.step()
    assert len(path.steps) <= 8
    assert (path.steps[0], path.steps[-1]) == (0, 100)
    assert path.steps == sorted(set(path.steps))


def test_errors(monkeypatch):
    with pytest.raises(TypeError, match="give a module, or tensors"):
        viz.Path([torch.ones(2, dtype=torch.int64)])
    with pytest.raises(ValueError, match="has 0 parameters"):
        viz.Path(nn.ReLU())
    with pytest.raises(ValueError, match="positive int"):
        viz.Path(nn.Linear(1, 1), every=0)
    monkeypatch.setattr(paths, "MAX_NUMBERS", 100)
    with pytest.raises(ValueError, match="give the tensors of a part"):
        viz.Path(nn.Linear(10, 10))
    path = viz.Path([torch.ones(3)])
    path.record()
    path.record()
    with pytest.raises(ValueError, match="do not move"):
        path.plane()
