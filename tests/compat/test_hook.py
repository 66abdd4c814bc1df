"""Old packages are found by the import hook."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.paths import ROOT


@pytest.mark.origin("suites")
def test_old_packages_are_found_by_the_hook():
    text = (
        "import rushlight.compat; rushlight.compat.install()\n"
        "import functorch, torch, torch.distributed.nn\n"
        "from functorch.experimental import replace_all_batch_norm_modules_\n"
        "from torch._vmap_internals import _vmap\n"
        "assert functorch.__name__ == 'rushlight.functorch', functorch\n"
        "print(_vmap(lambda x: (x * 2, None), 0, 0, True)(torch.ones(2)), "
        "_vmap(torch.sin)(torch.zeros(1)))"
    )
    done = subprocess.run([sys.executable, "-c", text], cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.stdout == "(tensor([2., 2.]), None) tensor([0.])\n", done.stderr
