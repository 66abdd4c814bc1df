"""The scalars world: the meaning of `exp`, `tanh`, `where`... inside a loop, chosen so that LLVM vectorizes the loop.

The formulas are functions of values of LLVM IR. `k`: the constants and bit tricks of a real type (llvm_math.kind).

Functions of libm are calls, and a loop with calls is not vectorized. Here the functions are plain arithmetic without
branches: argument reduction after Cody and Waite ("Software Manual for the Elementary Functions", 1980), or for sin and
cos in the manner of Payne and Hanek; a minimax polynomial by Remez' exchange (`tools/minimax.py` derives every
coefficient); exponents by integer arithmetic on the bits. Constants carry the operand's type: a stray Python float
would turn a float32 loop into float64.

`contract` lets multiply-adds fuse; `reassoc` must stay off here: it would merge the two halves of a constant.
Infinities, nan, denormals and huge arguments are right everywhere (tests/loops/test_scalar_math.py measures errors in
ulp).

float32 has SIMD forms of all functions except those in LIBM. float64 has, under separate names, exp, log and similar
functions, and sin and cos of numbers that are not huge; its other functions call libm one element at a time, which is
accurate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np

from rushlight.loops import minimax_polynomials as minimax

NEAR = 2.0**19  # limit up to which near_sin and near_cos are accurate

# the names of `plain`
PLAIN = """where maximum minimum fmax fmin abs sign isnan isinf isfinite signbit copysign floor ceil trunc round sqrt
    rsqrt"""
LIBM = ("asin", "acos", "atan", "atan2", "sinh", "cosh", "asinh", "acosh", "atanh")


def horner(coefficients: tuple[float, ...], k: SimpleNamespace) -> Callable:
    """x -> c0 + x (c1 + x (c2 + ...)), in the real type of `k`."""
    *others, last = map(k.real, coefficients)

    def polynomial(x):
        total = last
        for c in reversed(others):
            total = total * x + c
        return total

    return polynomial


def exponentials(k: SimpleNamespace) -> dict[str, Callable]:
    """exp(x) = 2^n exp(r), n = round(x / ln 2), |r| <= ln 2 / 2."""
    zero, one, two, half, magic = k.real(0), k.real(1), k.real(2), k.real(0.5), k.magic
    hi, lo, signed, scaled = k.ln2_hi, k.ln2_lo, k.signed, k.scaled
    select, bits, unbits, integer = k.select, k.bits, k.unbits, k.int
    digits, bias, start = k.int(k.digits), k.int(k.bias), magic.view(k.int)
    log2e, ln2 = k.real(1 / math.log(2)), k.real(math.log(2))
    wide = k.digits == 52
    least, most, least2, most2 = map(
        k.real, (-746, 710, -1076, 1025) if wide else (-104, 89, -151, 129)
    )  # beyond: 0, inf
    end = k.real(20 if wide else 9.1)  # for larger x, tanh is 1
    poly = horner(minimax.EXP64 if wide else minimax.EXP32, k)

    def power2(i):  # 2^i for i in the range of exponents
        return unbits(integer(integer(i + bias) << digits))

    def reduced(x):  # x -> n as an integer, r
        t = x * log2e + magic
        n = t - magic
        return integer(bits(t) - start), (x - n * hi) - n * lo

    def exp(x):
        x = select(x > most, most, x)
        n, r = reduced(select(x < least, least, x))
        return scaled(one + (r + r * r * poly(r)), n)

    def exp2(x):
        x = select(x > most2, most2, x)
        x = select(x < least2, least2, x)
        t = x + magic
        r = (x - (t - magic)) * ln2
        return scaled(one + (r + r * r * poly(r)), integer(bits(t) - start))

    def expm1(x):  # 2^n expm1(r) + (2^n - 1), halved until the end to avoid overflow
        top = select(x > most, most, x)
        n, r = reduced(select(top < -end * two - two, -end * two - two, top))
        s = power2(integer(n - integer(1)))
        y = (s * (r + r * r * poly(r)) + (s - half)) * two
        return select(x == zero, x, y)

    def tanh(x):  # e / (e + 2), e = expm1(2 |x|), which needs no special cases
        a = abs(x)
        n, r = reduced(two * select(a > end, end, a))
        s = power2(n)
        e = s * (r + r * r * poly(r)) + (s - one)
        return signed(e / (e + two), x)

    def sigmoid(x):
        return one / (one + exp(-x))

    return {"exp": exp, "exp2": exp2, "expm1": expm1, "tanh": tanh, "sigmoid": sigmoid}


def logarithms(k: SimpleNamespace) -> dict[str, Callable]:
    """log(2^e (1 + f)) = e ln 2 + log(1 + f), 1 + f in [sqrt(1/2), sqrt(2)), log(1 + f) = 2 atanh(f / (2 + f))."""
    one, two, zero, inf, nan, hi, lo = k.real(1), k.real(2), k.real(0), k.inf, k.nan, k.ln2_hi, k.ln2_lo
    select, bits, unbits, integer, real = k.select, k.bits, k.unbits, k.int, k.real
    digits, bias, root = k.int(k.digits), k.int(k.bias), k.real(math.sqrt(0.5)).view(k.int)
    tiny, up, lift = k.tiny, k.real(2.0 ** (k.digits + 2)), k.real(k.digits + 2)
    wide, cut = k.digits == 52, k.int(100)
    poly = horner(minimax.LOG64 if wide else minimax.LOG32, k)
    log2e, log10e = k.real(1 / math.log(2)), k.real(1 / math.log(10))
    t_hi = k.real(0.3010299950838089 if wide else 0.301025390625)  # log10(2) in two parts
    t_lo = k.real(5.801722962879576e-10 if wide else math.log10(2) - 0.301025390625)

    def exponent(i):  # for a positive normal number given by its bits
        return integer(integer(i - root) >> digits)

    def split(x):  # x -> e, f with x = 2^e (1 + f)
        small = x < tiny
        i = bits(select(small, x * up, x))
        e = exponent(i)
        return real(e) - select(small, lift, zero), unbits(integer(i - integer(e << digits))) - one

    def bend(f):  # f - log(1 + f), about f^2 / 2: small compared with f
        s = f / (two + f)
        z = s * s
        return s * (f - z * poly(z))

    def ends(x, y):  # y for 0 < x < inf, otherwise the logarithm's limits
        return select(x < inf, select(x > zero, y, select(x == zero, -inf, nan)), x)

    def log(x):
        e, f = split(x)
        return ends(x, e * hi + (f - (bend(f) - e * lo)))

    def log1p(x):  # 1 + x = u + c exactly; c is added to f
        u, b = one + x, (one + x) - one
        c = (one - (u - b)) + (x - b)
        i = bits(u)
        e = exponent(i)
        down = unbits(integer(integer(bias - select(e < cut, e, cut)) << digits))
        f = (unbits(integer(i - integer(e << digits))) - one) + c * down
        y = ends(u, real(e) * hi + (f - (bend(f) - real(e) * lo)))
        return select(x == zero, x, y)

    def log2(x):
        e, f = split(x)
        return ends(x, e + (f - bend(f)) * log2e)

    def log10(x):
        e, f = split(x)
        return ends(x, e * t_hi + ((f - bend(f)) * log10e + e * t_lo))

    return {"log": log, "log1p": log1p, "log2": log2, "log10": log10}


def quadrants() -> list[tuple[np.float64, np.float64, np.float64]]:
    """2^(25 j) 2/pi modulo 4, j = 0..4, each as three float64: two with 29 bits, whose products with 24-bit numbers are
    exact, and the rest.

    Exact integer arithmetic; pi to 400 bits by Machin's formula.
    """
    width = 400

    def arctan_of_inverse(n):
        term, total, k = (1 << width) // n, 0, 1
        while term:
            total += term // k if k % 4 == 1 else -(term // k)
            term, k = term // (n * n), k + 2
        return total

    def parts(value):
        hi, mid = value >> width - 27, (value >> width - 56) % (1 << 29)
        lo = value % (1 << width - 56)
        return (np.float64(hi / (1 << 27)), np.float64(mid / (1 << 56)), np.float64(lo / (1 << width)))

    pi = 4 * (4 * arctan_of_inverse(5) - arctan_of_inverse(239))
    ratio = (2 << 2 * width) // pi  # 2/pi with `width` bits after the point
    return [parts((ratio << 25 * j) % (4 << width)) for j in range(5)]


def reduction(k: SimpleNamespace, k64: SimpleNamespace) -> Callable:
    """x -> n, r: x = n pi/2 + r, |r| <= pi/4, n modulo 4 in the low bits of an int32; for a float32 of any size.

    From 2^49 on, x 2^(-25 j) is a whole number below 2^49 for some j, so that 2/pi 2^(25 j) may be taken modulo 4."""
    select, bits, magic, quarter = k.select, k64.bits, k64.magic, np.float64(math.pi / 2)
    (h0, m0, l0), (h1, m1, l1), (h2, m2, l2), (h3, m3, l3), (h4, m4, l4) = quadrants()
    e1, e2, e3, e4 = (np.float32(2.0 ** (24 + 25 * j)) for j in range(1, 5))
    s0, s1, s2, s3, s4 = (np.float64(2.0 ** (-25 * j)) for j in range(5))
    f32, f64, i32 = k.f32, k.f64, k.i32

    def pick(a, v0, v1, v2, v3, v4):
        return select(a < e1, v0, select(a < e2, v1, select(a < e3, v2, select(a < e4, v3, v4))))

    def reduced(x):
        a = abs(x)
        y = f64(x) * pick(a, s0, s1, s2, s3, s4)
        p, q = y * pick(a, h0, h1, h2, h3, h4), y * pick(a, m0, m1, m2, m3, m4)
        t = p + magic
        u = ((p - (t - magic)) + q) + magic
        f = ((p - (t - magic)) + q) - (u - magic) + y * pick(a, l0, l1, l2, l3, l4)
        return i32(bits(t) + bits(u)), f32(f * quarter)

    return reduced


def circular(k: SimpleNamespace, k64: SimpleNamespace) -> dict[str, Callable]:
    """sin, cos and tan of a float32."""
    select, bits, unbits, reduced = k.select, k.bits, k.unbits, reduction(k, k64)
    one, half, two, sign, i32 = k.real(1), k.real(0.5), np.int32(2), np.int32(30), k.i32
    sin_poly, cos_poly = horner(minimax.SIN32, k), horner(minimax.COS32, k)

    def sine(r):
        z = r * r
        return r + r * (z * sin_poly(z))

    def cosine(r):
        z = r * r
        return one - (half * z - z * z * cos_poly(z))

    def flip(y, n):  # -y in the lower half of the circle
        return unbits(i32(bits(y) ^ i32(i32(n & two) << sign)))

    def sin(x):
        n, r = reduced(x)
        return flip(select((n & 1) != 0, cosine(r), sine(r)), n)

    def cos(x):
        n, r = reduced(x)
        return flip(select((n & 1) != 0, sine(r), cosine(r)), i32(n + i32(1)))

    def tan(x):
        n, r = reduced(x)
        s, c, odd = sine(r), cosine(r), (n & 1) != 0
        return select(odd, -c, s) / select(odd, s, c)

    return {"sin": sin, "cos": cos, "tan": tan}


def near_circle(k: SimpleNamespace) -> dict[str, Callable]:
    """sin and cos of a float64 up to NEAR: x = n pi/2 + y + e, where e is the rounding error of y; 1.1 ulp."""
    select, bits, unbits, magic = k.select, k.bits, k.unbits, k.magic
    zero, one, half, two, sign, i64 = k.real(0), k.real(1), k.real(0.5), np.int64(2), np.int64(62), k.int
    p1, p2, p3 = map(k.real, (1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21))
    ratio, sin_poly, cos_poly = k.real(2 / math.pi), horner(minimax.SIN64, k), horner(minimax.COS64, k)

    def reduced(x):  # n in the low bits; n p1 and n p2 are exact: 33 bits and 19
        t = x * ratio + magic
        n = t - magic
        a, b = x - n * p1, n * p2
        r = a - b
        e = ((a - r) - b) - n * p3
        y = r + e
        return bits(t), y, (r - y) + e

    def sine(y, e):
        z = y * y
        return y + (y * (z * sin_poly(z)) + e * (one - half * z))

    def cosine(y, e):
        z = y * y
        a = one - half * z
        return a + (((one - a) - half * z) + (z * z * cos_poly(z) - y * e))

    def flip(y, n):
        return unbits(i64(bits(y) ^ i64(i64(n & two) << sign)))

    def sin(x):
        n, y, e = reduced(x)
        return select(x == zero, x, flip(select((n & 1) != 0, cosine(y, e), sine(y, e)), n))

    def cos(x):
        n, y, e = reduced(x)
        return flip(select((n & 1) != 0, sine(y, e), cosine(y, e)), i64(n + i64(1)))

    return {"near_sin": sin, "near_cos": cos}


def bells(k: SimpleNamespace, own: dict[str, Callable], wide: dict[str, Callable]) -> dict[str, Callable]:
    """erf, erfc and pow of float32; the last two are computed in float64, which halves the lanes and saves compensated
    arithmetic.
    """
    select, signed, exp, exp64, log64 = k.select, k.signed, own["exp"], wide["exp"], wide["log"]
    near, far, tail = (horner(minimax.ERF_NEAR32, k), horner(minimax.ERF_FAR32, k), horner(minimax.ERFC64, k.double))
    zero, one, four, inf, nan = k.real(0), k.real(1), k.real(4), k.inf, k.nan
    eleven, half, f32, f64, trunc = np.float64(11), k.real(0.5), k.f32, k.f64, k.trunc
    one64, half64, two64, zero64 = map(np.float64, (1, 0.5, 2, 0))

    def erf(x):
        a = abs(x)
        b = select(a > four, four, a)
        return select(a < one, x + x * near(x * x), signed(one - exp(-far(b - one)), x))

    def erfc(x):
        d = f64(x)
        a = abs(d)
        a = select(a > eleven, eleven, a)
        y = exp64(-a * a) * tail(one64 / (one64 + half64 * a))
        return f32(select(d < zero64, two64 - y, y))

    def pow(x, y):  # |x|^y, then C's rules for signs, zeros, ones and infinities
        a = abs(x)
        r = f32(exp64(f64(y) * log64(f64(a))))
        whole, pair = trunc(y), trunc(y * half)
        r = select((y == whole) & (pair + pair != y), signed(r, x), r)
        r = select((x < zero) & (a < inf) & (y != whole), nan, r)
        return select((y == zero) | (x == one) | ((a == one) & (abs(y) == inf)), one, r)

    return {"erf": erf, "erfc": erfc, "pow": pow}


def plain(k: SimpleNamespace) -> dict[str, Callable]:
    """Functions of one or two instructions. nan passes through maximum and minimum, not through fmax and fmin."""
    select, bits, signed, zero, one, inf = k.select, k.bits, k.signed, k.real(0), k.real(1), k.inf
    floor, ceil, trunc, rint, sqrt = k.floor, k.ceil, k.trunc, k.rint, k.sqrt
    return {
        "where": lambda c, x, y: select(c, x, y),
        "maximum": lambda x, y: select((x > y) | (x != x), x, y),
        "minimum": lambda x, y: select((x < y) | (x != x), x, y),
        "fmax": lambda x, y: select((x >= y) | (y != y), x, y),
        "fmin": lambda x, y: select((x <= y) | (y != y), x, y),
        "abs": lambda x: abs(x),
        "sign": lambda x: select(x > zero, one, select(x < zero, -one, zero)),
        "isnan": lambda x: x != x,
        "isinf": lambda x: abs(x) == inf,
        "isfinite": lambda x: abs(x) < inf,
        "signbit": lambda x: bits(x) < 0,
        "copysign": lambda x, y: signed(abs(x), y),
        "floor": lambda x: floor(x),
        "ceil": lambda x: ceil(x),
        "trunc": lambda x: trunc(x),
        "round": lambda x: rint(x),
        "sqrt": lambda x: sqrt(x),
        "rsqrt": lambda x: one / sqrt(x),
    }


def calls(k: SimpleNamespace, *names: str) -> dict[str, Callable]:
    """libm's functions, one element at a time."""
    libm = k.libm
    return {name: getattr(libm, name) for name in names}


def functions(k: SimpleNamespace) -> dict[str, Callable]:
    """Name -> function of the real type of `k`."""
    k64 = k.double
    wide = {**plain(k64), **exponentials(k64), **logarithms(k64)}
    if k is k64:
        return {
            **wide,
            **near_circle(k64),
            **calls(k64, *LIBM, "hypot", "sin", "cos", "tan", "erf", "erfc", "pow", "lgamma"),
        }
    own = {**plain(k), **exponentials(k), **logarithms(k), **circular(k, k64), **calls(k, *LIBM)}
    own |= {"lgamma": log_gamma(k, wide["log"]), "erfinv": inverse_of_erf(k, wide["log"])}
    return {**own, "hypot": hypotenuse(k), **bells(k, own, wide)}


def inverse_of_erf(k: SimpleNamespace, log64: Callable) -> Callable:
    """erfinv of float32 in float64: x p(w), w = -log(1 - x^2). The result is the float32 nearest to the exact value,
    except for 1 number in 10,000. After M. Giles, "Approximating the erfinv function" (2010), with polynomials of
    higher degree.
    """
    near, far = horner(minimax.ERFINV_NEAR64, k.double), horner(minimax.ERFINV_FAR64, k.double)
    select, signed, inf, nan, one = k.select, k.signed, k.inf, k.nan, k.real(1)
    one64, zero64, least = map(np.float64, (1, 0, 5.5))
    f32, f64, sqrt = k.f32, k.f64, k.sqrt

    def erfinv(x):
        d, a = f64(x), abs(x)
        w = -log64((one64 - d) * (one64 + d))
        w = select(a < one, w, zero64)
        s = sqrt(select(w > zero64, w, zero64))
        y = f32(d * select(w < least, near(w), far(s)))
        y = select(a == one, signed(inf, x), y)
        return select(a > one, nan, y)

    return erfinv


STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)  # of 1/z, 1/z^3...
STIRLING_LEAST = 8  # the least z for which the series has 14 digits


def log_gamma(k: SimpleNamespace, log64: Callable) -> Callable:
    """log |gamma(x)| of float32 in float64: Stirling's series, for |x| < 8 of |x| + 8, and for
    x < 0 by gamma(x) gamma(-x) = -pi / (x sin(pi x)), in two logarithms. lgammaf of the C library is 6 ulp off."""
    select, f32, f64, rint = k.select, k.f32, k.f64, k.rint
    zero, one, half, shift = map(np.float64, (0, 1, 0.5, STIRLING_LEAST))
    log_pi, half_log_2pi, inf = map(np.float64, (math.log(math.pi), math.log(2 * math.pi) / 2, np.inf))
    two, three, four, five, six, seven = map(np.float64, range(2, 8))
    series, sine = horner(STIRLING, k.double), horner(minimax.SIN_PI64, k.double)

    def lgamma(x):
        d = f64(x)
        z = abs(d)
        small = z < shift
        factors = z * (z + one) * (z + two) * (z + three)
        factors = factors * ((z + four) * (z + five) * (z + six) * (z + seven))
        p = select(small, factors, one)  # gamma(z + 8) / gamma(z)
        w = select(small, z + shift, z)
        r = one / w
        s = (w - half) * log64(w) - w + half_log_2pi + r * series(r * r)
        t = d - rint(d)
        q = select(d < zero, z * abs(t * sine(t * t)) / p, p)
        y = select(d < zero, log_pi - s, s) - log64(q)
        y = select((d == one) | (d == two), zero, y)
        return f32(select(z == inf, inf, y))

    return lgamma


def hypotenuse(k: SimpleNamespace) -> Callable:
    """sqrt(x^2 + y^2) of float32 in double precision, like the C library: no square overflows; inf if one is infinite,
    even beside nan.
    """
    select, inf, f32, f64, sqrt = k.select, k.inf, k.f32, k.f64, k.sqrt

    def hypot(x, y):
        a, b = f64(x), f64(y)
        length = f32(sqrt(a * a + b * b))
        return select((abs(x) == inf) | (abs(y) == inf), inf, length)

    return hypot


OTHERS = "hypot exp exp2 expm1 tanh sigmoid log log1p log2 log10 sin cos tan erf erfc erfinv lgamma pow"
NAMES = {*LIBM, *PLAIN.split(), *OTHERS.split()}
