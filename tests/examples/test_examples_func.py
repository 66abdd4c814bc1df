"""The examples of derivatives learn, or show, what they say they do."""

import re

import pytest

NUMBER = r"-?\d+\.?\d*(?:e[+-]\d+)?"


@pytest.fixture
def run(run_example):
    """run(example, *arguments) -> the lines it prints, each as its numbers."""

    def call(example, *arguments):
        status, out, _ = run_example(example, *arguments)
        assert status == 0
        return [[float(n) for n in re.findall(NUMBER, line)] for line in out.splitlines()]

    return call


def test_maml_learns_to_learn_in_one_step(run):
    _, untrained, *_, learnt = run("maml.py", "--steps", 90, "--width", 24)
    assert learnt[1] < untrained[1] / 3
    assert learnt[1] < learnt[0] / 1.5


def test_lanczos_finds_the_hessian_s_outermost_eigenvalues(run):
    (_, *_, low, high, _), (exact_low, exact_high, _), *_ = run("hessian_spectrum.py", "--width", 20)
    assert abs(low - exact_low) < 1e-2
    assert abs(high - exact_high) < 1e-2


def test_the_wider_the_more_a_kernel(run):
    _, narrow, wide = run("tangent_kernel.py", "--widths", 8, 128, "--steps", 40, "--networks", 3)
    assert wide[2] < narrow[2] / 3
    assert wide[3] < narrow[3] / 3


def test_the_network_solves_the_equation(run):
    start, *_, end = run("physics.py", "--steps", 6, "--points", 150, "--width", 16)
    assert end[-1] < start[-1] / 20


def test_the_implicit_gradient_is_the_unrolled_one(run):
    (apart, _), *_, (_, _, right, _) = run("implicit.py", "--steps", 40)
    assert apart < 1e-9
    assert right > 90
