"""The messages for names of torch that rushlight lacks, with the line that used them."""

from __future__ import annotations

from types import ModuleType

from rushlight.base.errors import explain
from rushlight.base.missing_names import instead


def no_name(module: ModuleType, path: str, name: str) -> AttributeError:
    """The error for torch.<name>, which is missing."""
    hint = instead(f"{path}.{name}", path, dir(module))
    return AttributeError(explain(f"rushlight has no {path}.{name}", hint), name=name, obj=module)


def no_module(name: str) -> ModuleNotFoundError:
    """The error for `import torch.x`, which is missing."""
    hint = instead(name, name.rpartition(".")[0], ())
    return ModuleNotFoundError(explain(f"rushlight has no module {name}", hint), name=name)
