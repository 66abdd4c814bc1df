"""Classes of torch that rushlight lacks: placeholders under `import torch`."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rushlight.compat import absent
from tests.compat.test_hook import ROOT


def run(program: str) -> str:
    """What a program prints under `rushlight run`."""
    start = "import rushlight.compat; rushlight.compat.install()\nimport torch, importlib\n"
    done = subprocess.run(
        [sys.executable, "-c", start + program], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_nearly_all_classes_of_the_list_resolve():
    """What is left has a name that rushlight uses otherwise: torch.hub.tqdm, torch.return_types."""
    missing = run(
        """
from rushlight.compat.absent import known
missing = []
for path, classes in known().items():
    module = importlib.import_module(path)
    for name in classes:
        try: getattr(module, name)
        except (AttributeError, ImportError): missing.append(f"{path}.{name}")
print(*missing)
"""
    ).split()
    total = sum(map(len, absent.known().values()))
    assert total > 15_000
    assert len(missing) < 100, missing


def test_placeholders():
    assert (
        run(
            """
import torchvision
quantized = torch.nn.quantized.Linear
assert quantized is torch.ao.nn.quantized.modules.linear.Linear
assert issubclass(quantized, torch.nn.Module) and not isinstance(torch.nn.Linear(1, 1), quantized)
def takes(x: "torch._C.Graph | None") -> torch.qscheme: ...
class Own(quantized): pass
for make in (quantized, Own, torchvision.datasets.Omniglot, torch._C.Graph):
    try: make()
    except NotImplementedError as error: assert "is not supported by rushlight" in str(error)
    else: raise AssertionError(make)
assert [kind.name for kind in torch.ao.quantization.QuantType][:2] == ["DYNAMIC", "STATIC"]
try: raise torch.package.PackagingError("it")
except torch.package.PackagingError as error: print(type(error).__name__, error)
"""
        )
        == "PackagingError it"
    )


def test_a_class_that_is_there_keeps_all_its_names():
    run(
        """
assert torch.optim.adam.Optimizer is torch.optim.Optimizer
assert torch.nn.modules.batchnorm.Module is torch.nn.Module
assert torch.optim.adam.Tensor is torch.Tensor
assert torch.masked.maskedtensor.core.MaskedTensor is torch.masked.MaskedTensor
assert torch.masked.MaskedTensor(torch.ones(1), torch.tensor([True])).sum().item() == 1
"""
    )


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("torch.nn.Lineer", "did you mean torch.nn.Linear"),
        ("torch.optim.Adaam", "did you mean torch.optim.Adam"),
        ("torch.quantization.get_default_qconfig", "quantize_dynamic"),
    ],
)
def test_a_typo_is_an_error(name, hint):
    said = run(f"try: {name}\nexcept AttributeError as error: print(error)")
    assert hint in said


def test_rushlight_itself_has_no_placeholders():
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import rushlight, sys; print(hasattr(rushlight.nn, 'quantized'), hasattr(rushlight, 'Graph'), "
            "'rushlight.compat.absent' in sys.modules)",
        ],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )
    assert done.stdout.split() == ["False", "False", "False"]


def test_packages_that_torch_may_lack():
    """torch_geometric uses rpc if it has the module `api`, and decorates its data pipes when it is imported."""
    assert (
        run(
            """
from torch.distributed import rpc
from torch.utils.data import IterDataPipe, functional_datapipe
@functional_datapipe("batches")
class Batches(IterDataPipe): pass
try: Batches()
except NotImplementedError: print(hasattr(rpc, "api"), Batches.__name__)
"""
        )
        == "False Batches"
    )
