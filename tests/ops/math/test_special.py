"""Special functions at hard places, against 40 digits of mpmath; seldom called elementwise ops; torch's conventions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rushlight
from rushlight import special

HARD = {  # computed by mpmath 1.3 with 40 digits
    "erfcx": [(50.0, 0.0112815362653237725), (-3.0, 16205.988853999586625)],
    "log_ndtr": [(-100.0, -5005.5242086942050886), (9.0, -1.1285884059538406478e-19)],
    "ndtri": [(1e-300, -37.047096299361199237)],
    "erfinv": [(0.999999, 3.4589107372754987775)],
    "gammainc": [(30.0, 20.0, 0.021818217525557391559)],
    "gammaincc": [(2.0, 40.0, 1.7418252446695514881e-16), (0.5, 100.0, 2.088487583762544757e-45)],
    "zeta": [(1.001, 3.25, 998.98352074643571822), (30.0, 0.1, 9.9999999999999833467e29)],
    "gammaln": [(-2.5, -0.056243716497674050673), (1e10, 220258509288.81058147)],
    "i0e": [(700.0, 0.015081295651531357587)],
    "i1e": [(-700.0, -0.015070519444716846949)],
    "i1": [(1e-8, 5.0000000000000001671e-9)],
    "scaled_modified_bessel_k0": [(800.0, 0.044304427486646012421)],
    "modified_bessel_k1": [(1e-3, 999.99623815608555346)],
    "bessel_j0": [(1e3, 0.024786686152420174561)],
    "bessel_y1": [(50.5, -0.096108727585676121254)],
    "airy_ai": [(20.0, 1.6916728686705403136e-27), (-30.0, -0.087968188456842162833)],
    "spherical_bessel_j0": [(1e-5, 0.99999999998333333333), (math.inf, 0.0)],
    "entr": [(1e-20, 4.6051701859880911209e-19), (0.0, 0.0), (-1.0, -math.inf)],
    "xlog1py": [(3.0, 1e-18, 3.0000000000000002131e-18), (0.0, -1.0, 0.0)],
    "logit": [(1e-18, -41.44653167389282224)],
    "sinc": [(1e-7, 0.99999999999998355066)],
    "chebyshev_polynomial_t": [(0.6, 100.0, 0.052514352287150951832), (2.5, 9.0, 665335.0)],
    "chebyshev_polynomial_u": [(0.6, 50.0, -0.20921851611655022025)],
    "chebyshev_polynomial_v": [(0.6, 20.0, 1.1037543614593996273)],
    "chebyshev_polynomial_w": [(0.6, 20.0, 0.35623761485476521672)],
    "shifted_chebyshev_polynomial_t": [(0.3, 20.0, -0.36753329754721005575)],
    "hermite_polynomial_h": [(0.6, 12.0, -790677.22628490852029)],
    "hermite_polynomial_he": [(0.6, 12.0, -5944.3467623792631989)],
    "laguerre_polynomial_l": [(0.6, 30.0, 0.038616269141179049793)],
    "legendre_polynomial_p": [(0.6, 60.0, 0.037871774516224291222)],
}


def number(value):
    return rushlight.tensor(value, dtype=rushlight.float64)


@pytest.mark.parametrize("name", HARD)
def test_hard_values(name):
    for *args, expected in HARD[name]:
        found = getattr(special, name)(*map(number, args)).item()
        assert found == pytest.approx(expected, rel=5e-13, abs=0), args


def in_units(found, expected):
    """The largest distance from the exact values, in units of their last place in single precision."""
    single = np.abs(expected.astype(np.float32))
    usual = np.isfinite(single) & (single >= np.finfo(np.float32).tiny)
    return np.max(np.abs(found.numpy()[usual].astype(float) - expected[usual]) / np.spacing(single[usual]))


def test_the_inverse_of_erf_in_single_precision():
    rng = np.random.default_rng(0)
    from scipy.special import erfinv

    near_one = 1 - 10 ** rng.uniform(-7.5, 0, 20000)
    for x in (rng.uniform(-1, 1, 20000), near_one, -near_one, 10 ** rng.uniform(-37, 0, 20000)):
        x = x.astype(np.float32)
        assert in_units(special.erfinv(rushlight.tensor(x)), erfinv(x.astype(float))) < 0.51


@pytest.mark.parametrize("most", [1, 3, 40, pytest.param(1e6, marks=pytest.mark.exhaustive)])  # 1e6: 30 s in SciPy
def test_digamma_and_its_derivative_in_single_precision(most):
    from scipy.special import digamma, zeta

    x = np.random.default_rng(0).uniform(-most, most, 5000).astype(np.float32)
    assert in_units(special.digamma(rushlight.tensor(x)), digamma(x.astype(float))) < 0.51
    assert in_units(special.polygamma(1, rushlight.tensor(x)), zeta(2, x.astype(float))) < 0.51


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("name", ["erfinv", "digamma"])
def test_the_ends_of_the_domain(oracle, name, dtype):
    def ends(lib):
        x = lib.tensor(
            [0.0, -0.0, 1, -1, -2, 1.5, -1.5, math.inf, -math.inf, math.nan, -0.5], dtype=getattr(lib, dtype)
        )
        y = getattr(lib, name)(x).double()
        return lib.stack((y, lib.signbit(y.nan_to_num()).double()))

    np.testing.assert_allclose(ends(rushlight).numpy(), oracle(ends), rtol=1e-2 if dtype[0] == "b" else 2e-3)


def test_hard_values_of_functions_with_settings():
    assert special.polygamma(3, number(-2.5)).item() == pytest.approx(194.74787621918762242, rel=1e-13)
    assert special.polygamma(60, number(0.7)).item() == pytest.approx(-2.3398844351829916315e91, rel=1e-12)
    assert special.multigammaln(number(7.5), 4).item() == pytest.approx(27.997858908956221995, rel=1e-13)
    assert special.digamma(number(1.4616321449683623)).item() == pytest.approx(0, abs=1e-16)


@pytest.mark.parametrize("name", ["i0", "erfinv", "special_erfcx", "special_ndtri", "lgamma", "special_airy_ai"])
def test_half_types_are_single_precision_rounded(name):
    f = getattr(special, name.removeprefix("special_")) if name.startswith("special_") else getattr(rushlight, name)
    x = rushlight.tensor([0.25, 0.5, 0.875])
    for half in (rushlight.float16, rushlight.bfloat16):
        assert rushlight.equal(f(x.to(half)), f(x).to(half))
    assert f(rushlight.tensor([1])).dtype is rushlight.float32
    with pytest.raises(RuntimeError, match="not implemented for 'ComplexFloat'"):
        f(rushlight.tensor([1j]))


def test_members_are_torchs(oracle):
    assert set(oracle(lambda torch: torch.special.__all__)) <= set(dir(special))


def test_aliases_are_the_functions_themselves():
    for theirs, ours in (
        ("expit", "sigmoid"),
        ("psi", "digamma"),
        ("gammaln", "lgamma"),
        ("gammainc", "igamma"),
        ("multigammaln", "mvlgamma"),
        ("xlogy", "xlogy"),
        ("round", "round"),
    ):
        assert getattr(special, theirs) is getattr(rushlight, ours)


def test_logit_is_nan_outside_and_so_is_its_gradient():
    x = rushlight.tensor([-1.0, 0.0, 0.5, 1.0, 2.0], requires_grad=True)
    y = rushlight.logit(x)
    assert y.isnan().tolist() == [True, False, False, False, True]
    y.sum().backward()
    assert x.grad.isnan().tolist() == [True, False, False, False, True]
    assert x.grad[2] == 4
    x.grad = None
    rushlight.logit(x, eps=0.25).sum().backward()
    assert x.grad.tolist() == [0, 0, 4, 0, 0]


@pytest.mark.parametrize("name", ["igamma", "igammac"])
def test_what_torch_does_not_differentiate_says_so(name):
    a, x = rushlight.tensor([2.0], requires_grad=True), rushlight.tensor([3.0], requires_grad=True)
    y = getattr(rushlight, name)(a, x)
    assert y.requires_grad
    with pytest.raises(NotImplementedError, match=f"derivative for 'self' of '{name}' is not implemented"):
        y.sum().backward()
    getattr(rushlight, name)(a.detach(), x).sum().backward()
    density = 3 * math.exp(-3)
    assert x.grad.item() == pytest.approx(density if name == "igamma" else -density, rel=1e-6)


def test_refusals():
    with pytest.raises(RuntimeError, match="polygamma\\(n, x\\) does not support negative n"):
        rushlight.polygamma(-1, number([1.0]))
    with pytest.raises(RuntimeError, match="p has to be greater than or equal to 1"):
        rushlight.mvlgamma(number([2.0]), 0)
    with pytest.raises(RuntimeError, match="\"igamma\" not implemented for 'Long'"):
        rushlight.igamma(rushlight.tensor([1]), rushlight.tensor([2]))
    with pytest.raises(TypeError):
        special.zeta(1, 2)


# -- seldom called elementwise ops


@settings(max_examples=50, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_mantissa_and_exponent_make_the_number(value):
    x = rushlight.tensor(value)
    m, e = rushlight.frexp(x)
    assert e.dtype is rushlight.int32
    assert value == 0 or 0.5 <= abs(m.item()) < 1
    assert math.ldexp(m.item(), e.item()) == x.item()


def test_frexp_of_what_has_no_exponent():
    m, e = rushlight.frexp(rushlight.tensor([0.0, math.inf, -math.inf, math.nan]))
    assert e.tolist() == [0] * 4
    assert m[:3].tolist() == [0.0, math.inf, -math.inf]
    with pytest.raises(RuntimeError, match='"frexp" not implemented for'):
        rushlight.frexp(rushlight.tensor([1]))


def test_ldexp_by_negative_powers_and_its_gradient():
    """torch's gradient is 0 here: it takes 2^-2 in whole numbers."""
    x = rushlight.tensor([3.0], requires_grad=True)
    y = rushlight.ldexp(x, rushlight.tensor([-2]))
    y.backward()
    assert (y.item(), x.grad.item()) == (0.75, 0.25)


def test_float_power_is_double():
    assert rushlight.float_power(rushlight.tensor([2, 3]), -1).dtype is rushlight.float64
    assert rushlight.float_power(rushlight.tensor([2.0]), 1j).dtype is rushlight.complex128
    x = rushlight.tensor([2.0, 3.0])
    with pytest.raises(
        RuntimeError,
        match="the base given to float_power_ has dtype Float but the operation's result requires dtype Double",
    ):
        x.float_power_(2)
    assert x.tolist() == [2, 3]


def test_polar_of_different_dtypes_is_refused():
    r = rushlight.tensor([1.0])
    with pytest.raises(RuntimeError, match="Expected object of scalar type Float but got scalar type Double"):
        rushlight.polar(r, r.double())
    with pytest.raises(RuntimeError, match="Expected both inputs to be Half, Float or Double tensors"):
        rushlight.polar(r, rushlight.tensor([1]))


def test_addcdiv_does_not_divide_integers():
    i = rushlight.tensor([1, 2])
    with pytest.raises(RuntimeError, match="Integer division with addcdiv is no longer supported"):
        rushlight.addcdiv(rushlight.tensor([1.0, 2.0]), i, i)
    assert rushlight.addcdiv(i, rushlight.tensor([1.0, 1.0]), i).tolist() == [2, 2.5]


def test_divisors_wrap_as_torchs_do():
    a = rushlight.from_numpy(np.array([-128, 100], np.int8))
    assert rushlight.lcm(a, rushlight.from_numpy(np.array([-128, 7], np.int8))).tolist() == [-128, -68]
    assert rushlight.gcd(rushlight.tensor([0, -4]), rushlight.tensor([0, 6])).tolist() == [0, 2]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hypot", [1, 2]),
        ("logaddexp", [1, 2]),
        ("fmax", [1j, 2]),
        ("heaviside", [1j, 2]),
        ("nextafter", [1, 2]),
        ("gcd", [True, False]),
    ],
)
def test_what_torch_refuses_of_two_is_refused(name, value):
    x = rushlight.tensor(value)
    with pytest.raises(RuntimeError, match="not implemented|not yet implemented"):
        getattr(rushlight, name)(x, x)
