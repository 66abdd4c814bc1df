"""Versions compare as torch's."""

from __future__ import annotations

import importlib

import pytest

import rushlight

VERSIONS = [
    "1.10.0",
    "1.10",
    "1.10.0a0",
    "1.10.0b2",
    "1.10.0rc1",
    "1.10.0.dev20210101",
    "1.10.0.post1",
    "1.10.0+cpu",
    "1.9.1",
    "2.13.0+rushlight",
    "2.0.0a0+gitabc",
    "v2.0",
    "2.0.0alpha3",
]


@pytest.mark.origin("scripts")
def test_versions_compare_as_torch(oracle):
    """ "2.13" comes after "2.9"."""

    def compared(t):
        version = importlib.import_module(f"{t.__name__}.torch_version").TorchVersion
        others = [*VERSIONS, (1, 10), (2,), (1, 9, 1), ("2", "13")]
        return [
            [getattr(version(a), op)(b) for b in others for op in ("__eq__", "__lt__", "__le__", "__gt__", "__ge__")]
            for a in VERSIONS
        ]

    assert compared(rushlight) == oracle(compared)
