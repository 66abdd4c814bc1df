"""Anomaly detection: which op made the first nan or inf, where that stands, and where it began."""

import numpy as np
import pytest

import rushlight as torch
from rushlight.autograd.nan_check import finite


def told(work, **options):
    with torch.autograd.detect_anomaly(**options), pytest.raises(RuntimeError) as caught:
        work()
    return str(caught.value)


def test_inf_made_in_backward():
    x = torch.tensor([0.0, 1.0], requires_grad=True)
    y = x.sqrt()  # THE STATEMENT
    message = told(lambda: (y + 1).sum().backward())
    assert message.startswith("Function 'SqrtBackward0' returned inf values in its 0th output.")
    assert "THE STATEMENT" in message.split("made at: ")[1].splitlines()[0]
    assert "began: in backward" in message
    assert "test_anomaly.py" in message


def test_inf_is_not_looked_for_where_torch_does_not():
    x = torch.tensor([0.0], requires_grad=True)
    with torch.autograd.detect_anomaly(check_inf=False):
        x.sqrt().sum().backward()
    assert x.grad.item() == np.inf
    x.grad = None
    with torch.autograd.detect_anomaly(check_nan=False):
        (x.sqrt() * 0).sum().backward()
    assert np.isnan(x.grad.item())


def test_nan_made_in_the_forward_pass():
    x = torch.tensor([-1.0, 1.0], requires_grad=True)
    y = x.sqrt()  # nan is born here
    z = (y * 2).exp()
    message = told(lambda: z.sum().backward(), check_inf=False)
    assert "Function 'ExpBackward0' returned nan values" in message
    assert "began: in the forward pass: SqrtBackward0 made nan at " in message
    assert "# nan is born here" in message


def test_the_op_itself_may_have_made_it():
    x = torch.tensor([0.0], requires_grad=True)
    message = told(lambda: (x.log() * 0).sum().backward())
    assert "returned nan" in message
    assert "began: in the forward pass: LogBackward0 made -inf" in message


def test_what_was_given_may_have_held_it():
    w = torch.ones(2, requires_grad=True)
    data = torch.tensor([1.0, np.nan])
    assert "an input of shape (2,) contains nan" in told(lambda: (w * data).sum().backward())


def test_create_graph_and_numbers_of_no_dimension():
    x = torch.tensor(0.0, requires_grad=True)
    (g,) = torch.autograd.grad(x.pow(1.5), x, create_graph=True)
    assert "returned inf values" in told(lambda: g.backward())


def test_what_is_finite_passes_and_the_graph_is_freed():
    x = torch.tensor([1e30], requires_grad=True)  # its square overflows, its gradient does not
    with torch.autograd.detect_anomaly():
        y = (x * 2).sum()
        y.backward()
        assert x.grad.tolist() == [2]
        z = x.exp()
        with pytest.raises(RuntimeError):
            z.backward()
    v = torch.ones(1, requires_grad=True)
    with torch.autograd.detect_anomaly():
        w = v.exp()
        w.backward()
        with pytest.raises(RuntimeError, match="second time"):
            w.backward()


def test_on_and_off():
    assert not torch.is_anomaly_enabled()
    with torch.autograd.set_detect_anomaly(True):
        assert torch.is_anomaly_enabled()
        with torch.autograd.set_detect_anomaly(False):
            assert not torch.is_anomaly_enabled()
    assert not torch.is_anomaly_enabled()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "int64", "bool"])
@pytest.mark.parametrize("shape", [(), (0,), (5,), (3, 4)])
def test_finite_is_exact(dtype, shape):
    array = np.ones(shape, dtype)
    assert finite(array)
    assert finite(array.T)
    if array.dtype.kind == "f":
        assert finite(array * np.finfo(dtype).max)
    if array.dtype.kind in "fc" and array.size:
        for bad in (np.nan, np.inf, -np.inf):
            array.reshape(-1)[-1] = bad
            assert not finite(array)
            assert not finite(array.T)


def test_finite_knows_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = np.ones(3, ml_dtypes.bfloat16)
    assert finite(array)
    array[1] = np.nan
    assert not finite(array)
