"""What is said of names of torch that are not here: the nearest that is, and the line that asked."""
from __future__ import annotations

from types import ModuleType

from rushlight.errors import explain


def nearest(name: str, known: list[str]) -> str | None:
    """The public name that is most like it, if one is."""
    from difflib import get_close_matches  # 1 ms, for errors only
    public = [other for other in known if not other.startswith("_")]
    return next(iter(get_close_matches(name, public, 1, 0.7)), None)


def no_name(module: ModuleType, path: str, name: str) -> AttributeError:
    """The error for torch.<name>, which is missing."""
    return AttributeError(explain(f"rushlight has no {path}.{name}", hint(module, path, name)), name=name, obj=module)


def hint(module: ModuleType, path: str, name: str) -> str:
    like = nearest(name, dir(module))
    return f"the nearest it has is {path}.{like}" if like else "`rushlight check script.py` lists what a script needs"


def no_module(name: str) -> ModuleNotFoundError:
    """The error for `import torch.x`, which is missing."""
    return ModuleNotFoundError(explain(f"rushlight has no module {name}",
                                       "`rushlight check script.py` lists what a script needs"), name=name)
