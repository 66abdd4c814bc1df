"""The scalars world: errors in ulp over the whole range, special values, types that stay, loops that become SIMD
code."""

from __future__ import annotations

import re

import numpy as np
import pytest

pytest.importorskip("llvmlite")
special = pytest.importorskip("scipy.special")

from rushlight.loops import loop_code, scalar_math  # noqa: E402
from rushlight.loops.cache import compiled  # noqa: E402
from rushlight.loops.entry import signature  # noqa: E402
from rushlight.loops.llvm import FLOAT, Function, Module, host  # noqa: E402
from rushlight.loops.llvm_math import functions  # noqa: E402
from rushlight.loops.scope import scope  # noqa: E402

LOOP = """def kernel({parameters}, out):
    for i in range(x.shape[0]):
        out[i] = {name}({arguments})
"""

REFERENCE = {
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "log": np.log,
    "log1p": np.log1p,
    "log2": np.log2,
    "log10": np.log10,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erf": special.erf,
    "erfc": special.erfc,
    "lgamma": special.gammaln,
    "erfinv": special.erfinv,
}
EXACT = {
    "abs": np.abs,
    "sign": lambda x: np.nan_to_num(np.sign(x)),
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
    "signbit": np.signbit,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": np.rint,
}
PAIRS = {"maximum": np.maximum, "minimum": np.minimum, "fmax": np.fmax, "fmin": np.fmin, "copysign": np.copysign}
SIMD = ["exp", "expm1", "tanh", "sigmoid", "log", "log1p", "sin", "cos", "tan", "erf", "erfc", "lgamma", "erfinv"]
# Bounds in ulp; 2 where nothing is said.
ULP = {
    "exp": 1.1,
    "exp2": 1.1,
    "log": 1,
    "erf": 1.1,
    "erfc": 1,
    "sqrt": 0.5,
    "rsqrt": 1.5,
    "tanh": 2.5,
    "tan": 3.5,
    "sigmoid": 2.5,
}
ULP64 = {"tanh": 3, "sigmoid": 3, "log10": 3}


def inputs(real: type) -> np.ndarray:
    """All sizes of both signs, denormals, special values, and many ordinary numbers."""
    rng = np.random.default_rng(0)
    bits = np.dtype(f"i{np.dtype(real).itemsize}")
    everywhere = rng.integers(np.iinfo(bits).min, np.iinfo(bits).max, 50_000, bits).view(real)
    edges = [
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        1,
        -1,
        0.5,
        2,
        88.7228,
        88.73,
        -87.3,
        -103.9,
        709.78,
        -745.1,
        *np.finfo(real).tiny * np.array([1, -1, 0.3, 1e-5]),
        np.finfo(real).max,
        np.finfo(real).min,
    ]
    multiples = np.pi / 2 * np.arange(-2000, 2000)
    parts = [
        everywhere,
        edges,
        multiples,
        rng.normal(0, 1, 30_000),
        rng.uniform(-110, 100, 20_000),
        rng.uniform(0.4, 2.5, 20_000),
        rng.uniform(-1.1, 1.1, 20_000),
        rng.normal(0, 1e5, 5_000),
    ]
    return np.concatenate([np.asarray(p).astype(real) for p in parts])


def text(name: str, real: type, *arrays: str) -> str:
    """A loop over arrays that calls the function."""
    name += "64" * (real is np.float64)
    return LOOP.format(parameters=", ".join(arrays), name=name, arguments=", ".join(f"{a}[i]" for a in arrays))


def loop(name: str, real: type):
    """The function over an array, as a compiled loop."""
    return compiled(text(name, real, "x"))


def errors(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """|got - want| in units of the last place; inf where one is nan or infinite and the other not."""
    rounded = want.astype(got.dtype)
    unit = np.spacing(np.minimum(np.abs(rounded), np.finfo(got.dtype).max)).astype(want.dtype)
    error = np.abs(got.astype(want.dtype) - want) / unit
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    return np.where(same, np.where(np.isfinite(error), error, 0), np.where(np.isnan(error), np.inf, error))


def worst(name: str, real: type, wide: type) -> tuple[float, float]:
    """The largest error in ulp and where it is."""
    x = inputs(real)
    if name == "sigmoid":
        x = x[~(x < -87)]  # below, exp overflows: 0 for a denormal, as in eager
    if name == "lgamma":
        x = x[x != -np.inf]  # C and torch say inf, SciPy -inf
    out = np.empty_like(x)
    loop(name, real)(x, out)
    e = errors(out, REFERENCE[name](x.astype(wide)))
    return e.max(), x[e.argmax()]


@pytest.mark.exhaustive(every=3)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", sorted(REFERENCE))
def test_float32_to_the_last_places(name):
    error, at = worst(name, np.float32, np.float64)
    assert error <= ULP.get(name, 2), f"{name}({at!r}) is {error:.2f} ulp off"


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="needs extended precision as the reference")
@pytest.mark.parametrize("name", ["exp", "exp2", "expm1", "tanh", "log", "log1p", "log2", "log10", "sigmoid"])
def test_float64_to_the_last_places(name):
    error, at = worst(name, np.float64, np.longdouble)
    assert error <= ULP64.get(name, 2), f"{name}({at!r}) is {error:.2f} ulp off"


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="needs extended precision as the reference")
@pytest.mark.parametrize("name", ["sin", "cos"])
def test_circles_of_float64_up_to_where_they_are_right(name):
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [
            rng.normal(0, 3, 50_000),
            np.pi / 2 * np.arange(-330_000, 330_000, 7),
            [0.0, -0.0, 5e-324],
            rng.uniform(-scalar_math.NEAR, scalar_math.NEAR, 50_000),
        ]
    )
    out = np.empty_like(x)
    loop(f"near_{name}", np.float64)(x, out)
    want = REFERENCE[name](x.astype(np.longdouble))
    assert errors(out, want).max() <= 1.1
    np.testing.assert_array_equal(np.signbit(out), np.signbit(want))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("real", [np.float32, np.float64])
@pytest.mark.parametrize("name", sorted(EXACT))
def test_exact(name, real):
    x = inputs(real)
    want = EXACT[name](x)
    out = np.empty_like(want)
    loop(name, real)(x, out)
    np.testing.assert_array_equal(out, want)


def grid(real: type) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of everything with everything that is special, and of ordinary numbers."""
    edges = np.array([0.0, -0.0, 1, -1, 2, -2, 3, 0.5, -0.5, 1e-3, 7.5, -7, 1e30, -1e30, np.inf, -np.inf, np.nan], real)
    x, y = np.meshgrid(edges, edges)
    rng = np.random.default_rng(1)
    return (
        np.concatenate([x.ravel(), np.abs(rng.normal(0, 3, 5000)).astype(real)]),
        np.concatenate([y.ravel(), rng.normal(0, 3, 5000).astype(real)]),
    )


def pairwise(name: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    out = np.empty_like(x)
    compiled(text(name, x.dtype.type, "x", "y"))(x, y, out)
    return out


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("real", [np.float32, np.float64])
@pytest.mark.parametrize("name", sorted(PAIRS))
def test_pairs(name, real):
    x, y = grid(real)
    np.testing.assert_array_equal(pairwise(name, x, y), PAIRS[name](x, y))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_pow(real):
    x, y = grid(real)
    want = np.power(x.astype(np.float64), y.astype(np.float64))
    assert errors(pairwise("pow", x, y), want).max() <= 1


@pytest.mark.parametrize("name", SIMD)
def test_loops_become_simd_code(name):
    x, module = np.ones(3, np.float32), Module(host())
    loop_code.write(module, "f", text(name, np.float32, "x"), signature((x, x)), scope(), False, None)
    made = str(module.improved()[0])
    assert re.search(r"f(mul|add)( contract)? <\d+ x (float|double)>", made), f"{name} is not vectorised"
    f = Function(module, "g", "x")
    assert functions("float32")[name](f.load(f.args["x"], 0, FLOAT)).kind == FLOAT


def test_world_has_the_names_it_says():
    assert set(functions("float32")) == scalar_math.NAMES
    of_float64 = {"near_cos", "near_sin"}
    assert set(functions("float64")) == scalar_math.NAMES - {"erfinv"} | of_float64
