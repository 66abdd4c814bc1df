"""rushlight warns where torch warns: the categories and the first words of the warnings."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import rushlight
from rushlight.base.errors import warn_once
from tests.support.programs import Programs


def warned(torch, *calls):
    """(category, first words) of what each call warns of, repeated warnings too."""
    found = []
    torch.set_warn_always(True)
    try:
        for call in calls:
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                call()
            found.append([[w.category.__name__, str(w.message)[:30]] for w in seen])
    finally:
        torch.set_warn_always(False)
    return found


program = Programs()


@program
def clipping_with_a_generator(torch):
    layer = torch.nn.Linear(2, 2)
    layer(torch.ones(1, 2)).sum().backward()
    used = layer.parameters()
    list(used)
    clip = torch.nn.utils.clip_grad_norm_
    return warned(
        torch,
        lambda: clip(used, 1.0),
        lambda: clip(layer.parameters(), 1.0),
        lambda: clip([], 1.0),
        lambda: torch.nn.utils.clip_grad_norm(layer.parameters(), 1.0),
    )


@program
def graphs_of_gradients(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    return warned(
        torch,
        lambda: (x * x).sum().backward(create_graph=True),
        lambda: torch.autograd.backward((x * x).sum(), create_graph=True),
        lambda: torch.autograd.grad((x * x).sum(), x, create_graph=True),
        lambda: (x * x).sum().backward(create_graph=True, inputs=[x]),
        lambda: y.grad,
        lambda: float(torch.ones(1, requires_grad=True)),
        lambda: torch.autograd.Variable(x, volatile=True),
    )


@program
def tensors_of_tensors(torch):
    x = torch.ones(2)
    return warned(
        torch,
        lambda: torch.tensor(x),
        lambda: torch.tensor(x, dtype=torch.float64),
        lambda: torch.tensor(x[0]),
        lambda: torch.tensor([x[0], x[1]]),
        lambda: torch.as_tensor(x),
    )


@program
def imaginary_parts_that_are_lost(torch):
    z, x = torch.ones(2, dtype=torch.complex64), torch.ones(2)
    leaf = torch.ones(2, requires_grad=True)

    def written():
        x[:] = z

    return warned(
        torch,
        lambda: z.float(),
        lambda: z.to(torch.float64),
        lambda: z.type_as(x),
        lambda: z.long(),
        lambda: z.to(torch.complex128),
        lambda: x.copy_(z),
        written,
        lambda: z.bool(),
        lambda: (leaf * z).real.sum().backward(),
    )


@program
def outputs_of_another_shape(torch):
    x = torch.ones(2, 2)
    new = lambda: torch.ones(3)
    return warned(
        torch,
        lambda: torch.add(x, 1, out=new()),
        lambda: torch.mm(x, x, out=new()),
        lambda: torch.sum(x, 0, out=new()),
        lambda: torch.cat([x, x], out=new()),
        lambda: torch.sort(x, out=(new(), new().long())),
        lambda: torch.add(x, 1, out=torch.empty(0)),
        lambda: torch.add(x[0, :1].expand(3), 1, out=new()),
        lambda: torch.zeros(2, out=new()),
        lambda: torch.arange(5, out=new().long()),
        lambda: torch.linspace(0, 1, 5, out=new()),
    )


@program
def transposes(torch):
    return warned(
        torch,
        lambda: torch.ones(2, 3, 4).T,
        lambda: torch.ones(2, 3).T,
        lambda: torch.ones(2).T,
        lambda: torch.tensor(1.0).T,
        lambda: torch.ones(2, 3, 4).mT,
    )


@program
def losses(torch):
    F, nn = torch.nn.functional, torch.nn
    x, p = torch.zeros(2, 2), torch.full((2, 2), 0.5)
    return warned(
        torch,
        lambda: F.kl_div(x, p),
        lambda: nn.KLDivLoss()(x, p),
        lambda: F.kl_div(x, p, reduction="batchmean"),
        lambda: F.kl_div(x, p, reduction="sum"),
        lambda: F.kl_div(x, p, size_average=True),
        lambda: F.mse_loss(x[:, :1], x[0]),
        lambda: F.mse_loss(x, p, size_average=False),
        lambda: nn.NLLLoss2d(),
        lambda: F.gumbel_softmax(x, eps=1e-3),
    )


@program
def degrees_of_freedom(torch):
    x = torch.ones(1, 2)
    return warned(
        torch,
        lambda: x[0, :1].std(),
        lambda: x.var(0),
        lambda: x.var(0, unbiased=False),
        lambda: x.var(1),
        lambda: x.std(correction=2),
        lambda: torch.zeros(0).var(),
    )


@program
def old_names(torch):
    a, b = torch.eye(2), torch.ones(2, 1)
    image = torch.ones(1, 1, 2, 2)
    F = torch.nn.functional
    return warned(
        torch,
        lambda: torch.qr(a),
        lambda: torch.cholesky(a),
        lambda: torch.triangular_solve(b, a),
        lambda: torch.lu(a),
        lambda: torch.lu_solve(b, *torch.linalg.lu_factor(a)),
        lambda: torch.chain_matmul(a, a),
        lambda: F.upsample_nearest(image, scale_factor=2),
        lambda: F.upsample_bilinear(image, scale_factor=2),
        lambda: torch.addcmul(a, 2, a, a),
        lambda: torch.stft(torch.ones(16), 4, return_complex=True),
        lambda: torch.stft(torch.ones(16), 4, window=torch.ones(4), return_complex=False),
        lambda: torch.nn.Hardtanh(min_value=-2),
        lambda: torch.nn.Linear(1, 1).state_dict({}, "", False),
        lambda: torch.nn.Linear(1, 1).to(torch.complex64),
        lambda: torch.nn.InstanceNorm2d(3)(torch.ones(2, 4, 2, 2)),
        lambda: a.scatter(0, torch.tensor([[0]]), torch.tensor([[2.0]]), reduce="multiply"),
        lambda: torch.where(torch.tensor([1, 0], dtype=torch.uint8), 1.0, 2.0),
        lambda: a[[[0, 1], [0, 1]]],
        lambda: torch.no_grad()(type("A", (), {})),
    )


@program
def schedulers(torch):
    def before():
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], 0.1)
        torch.optim.lr_scheduler.StepLR(optimizer, 1).step()

    def replaced():
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], 0.1)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
        optimizer.step = lambda: None
        optimizer.step()
        scheduler.step()

    return warned(torch, before, replaced)


test_program = program.test()


def test_the_warning_stands_at_the_users_line_once():
    def twice():
        warn_once("of the user")
        warn_once("of the user")

    with pytest.warns(UserWarning, match="of the user") as seen:
        twice()
    assert len(seen) == 1
    rushlight.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match="of the user"):
            warn_once("of the user")
    finally:
        rushlight.set_warn_always(False)
    with pytest.warns(UserWarning, match="copy construct") as seen:
        rushlight.tensor(rushlight.ones(1))
    assert seen[0].filename == __file__


def test_a_write_of_complex_numbers_keeps_their_real_parts():
    x = rushlight.ones(2, dtype=rushlight.int64)
    rushlight.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match="discards the imaginary part"):
            x[:] = rushlight.tensor([2 + 1j, 3 - 1j])
    finally:
        rushlight.set_warn_always(False)
    assert np.array_equal(x.numpy(), [2, 3])
