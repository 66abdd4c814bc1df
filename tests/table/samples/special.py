"""Samples of special functions and of seldom called elementwise ops."""

from __future__ import annotations

import numpy as np

from tests.table.samples.by_hand import INSIDE_ONE, POSITIVE, PROBABILITY, Data, Sample, exactly, positions, scalar, x


def fixed(values):
    """Numbers by which torch does not differentiate."""
    return Data(values=values, constant=True)


DEGREE = positions([0, 1, 2, 5, 9, -1])
POINTS = exactly([0.3, -0.7, 0.9, 0.45, -0.2, 0.6])
POLYNOMIAL = [
    Sample(POINTS, DEGREE),
    Sample(POINTS, 3),
    Sample(x(2, 1), positions([2, 4, 7])),
    Sample(2.5, DEGREE),
    Sample(exactly([1.0, -1.0, 0.0, 2.0, -3.0]), positions([[3], [8]])),
    Sample(POINTS, exactly([2.7, 0.5] * 3)),
    Sample(scalar(), 2),
    Sample(x(0, 3), 2),
]
POLYNOMIALS = [
    "chebyshev_polynomial_t",
    "chebyshev_polynomial_u",
    "chebyshev_polynomial_v",
    "chebyshev_polynomial_w",
    "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u",
    "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w",
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "laguerre_polynomial_l",
    "legendre_polynomial_p",
]
# torch has nan at infinity for these, where they have limits
FINITE = [
    Sample(x(2, 3)),
    Sample(scalar()),
    Sample(x(0, 3)),
    Sample(exactly([0.0, -1.0, 2.5, 30.0, np.nan]), smooth=False),
]
GAMMA = {**POSITIVE, "constant": True}
INCOMPLETE = [
    Sample(Data(2, 3, **GAMMA), Data(2, 3, **POSITIVE)),
    Sample(Data(2, 1, **GAMMA), Data(3, **POSITIVE)),
    Sample(fixed([0.0, 1.0, 30.0, 2.0]), exactly([1.0, 0.0, 20.0, np.inf]), smooth=False),
]
WHOLE = [Sample(positions([12, -18, 0, 7]), positions([8, 12, 5, 0])), Sample(positions([[4], [6]]), positions([6, 9]))]

HAND = {
    **{f"special_{name}": POLYNOMIAL for name in POLYNOMIALS},
    **dict.fromkeys(
        ("i0", "special_i1", "special_i0e", "special_i1e", "special_airy_ai", "special_bessel_j0", "special_bessel_j1"),
        FINITE,
    ),
    **{
        f"special_{name}": [
            Sample(x(2, 3, **POSITIVE)),
            Sample(exactly([0.0, 1e-3, 40.0, np.inf, np.nan]), smooth=False),
        ]
        for name in (
            "bessel_y0",
            "bessel_y1",
            "modified_bessel_k0",
            "modified_bessel_k1",
            "scaled_modified_bessel_k0",
            "scaled_modified_bessel_k1",
        )
    },
    "igamma": INCOMPLETE,
    "igammac": INCOMPLETE,
    "special_zeta": [
        Sample(x(2, 3, low=1.2, high=3, signed=False, constant=True), x(2, 3, **POSITIVE)),
        Sample(2.0, x(3, **POSITIVE)),
        Sample(fixed([1.0, 0.5, 2.5]), exactly([2.0, 2.0, -1.5]), smooth=False),
    ],
    "mvlgamma": [Sample(x(2, 3, low=2.1, high=5, signed=False), p) for p in (1, 2, 3)],
    "special_logsumexp": [Sample(x(2, 3), 1), Sample(x(2, 3), (0, 1), True)],
    "special_softmax": [Sample(x(2, 3), 1), Sample(x(2, 3), 0, dtype=None)],
    "special_log_softmax": [Sample(x(2, 3), 1), Sample(x(2, 3), 0, dtype=None)],
    "gcd": WHOLE,
    "lcm": WHOLE,
    "frexp": [Sample(x(2, 3)), Sample(exactly([0.0, 1.0, -3.0, np.inf, np.nan, 1e-40]), smooth=False), Sample(x(0, 2))],
    "polar": [Sample(x(2, 3, **POSITIVE), x(2, 3)), Sample(x(2, 1, **POSITIVE), x(3))],
    "polar_parts": [Sample(x(2, 3), x(2, 3))],
    "addcdiv": [
        Sample(x(2, 3), x(2, 3), x(2, 3)),
        Sample(x(2, 1), x(3), x(2, 3), value=0.5),
        Sample(x(2), x(2), scalar()),
    ],
    "ldexp": [Sample(x(2, 3), positions([3, 2, 0])), Sample(x(2, 3), x(2, 3)), Sample(positions([3]), positions([2]))],
    "float_power": [Sample(x(2, 3, **POSITIVE), x(2, 3)), Sample(x(2, 3), 2), Sample(2.5, x(3))],
    "positive": [Sample(x(2, 3)), Sample(scalar())],
    "conj_physical": [Sample(x(2, 3)), Sample(Data(2, dtype="complex128"))],
    "logit": [
        Sample(x(2, 3, **PROBABILITY)),
        Sample(x(2, 3, **PROBABILITY), 0.3),
        Sample(x(3, **PROBABILITY), eps=1e-6),
        Sample(exactly([-1.0, 0.0, 0.5, 1.0, 2.0, np.nan]), smooth=False, slopes=True),
        Sample(exactly([-1.0, 0.0, 0.1, 0.5, 0.9, 1.0, 2.0]), 0.1, smooth=False, slopes=True),
    ],
}
DOMAIN = {
    "special_entr": POSITIVE,
    "special_ndtri": PROBABILITY,
    "special_xlog1py": [{}, INSIDE_ONE],
    "erfinv": INSIDE_ONE,
}
SETTINGS = {"scaled_quotient": [{"value": 0.5}]}
