"""Make `import torch` mean another library, for one Python process.

Used only with `run.py --engine rushlight`.  If the library brings its own
installer (`rushlight.compat.install`), that is used; if not, `torch` and
every `torch.x.y` are resolved to `rushlight` and `rushlight.x.y`.
"""

import importlib
import importlib.abc
import importlib.util
import sys

TARGET = "rushlight"


class _AliasLoader(importlib.abc.Loader):
    def __init__(self, real_name):
        self.real_name = real_name

    def create_module(self, spec):
        module = importlib.import_module(self.real_name)
        self.kept_spec = getattr(module, "__spec__", None)
        return module

    def exec_module(self, module):
        module.__spec__ = self.kept_spec  # the machinery overwrote it


class _AliasFinder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "torch" or name.startswith("torch."):
            loader = _AliasLoader(TARGET + name[len("torch") :])
            return importlib.util.spec_from_loader(name, loader)
        return None


def install():
    """Idempotent.  Never lets a real torch in."""
    if any(isinstance(f, _AliasFinder) for f in sys.meta_path):
        return "alias"
    try:
        compat = importlib.import_module(TARGET + ".compat")
    except ModuleNotFoundError as e:
        if e.name not in (TARGET + ".compat",):
            raise
        compat = None
    if compat is not None and hasattr(compat, "install"):
        compat.install()
        how = TARGET + ".compat.install"
    else:
        sys.modules["torch"] = importlib.import_module(TARGET)
        how = "alias"
    # after the library's own installer, so that nothing falls through to a
    # real torch that happens to be installed in the same environment
    sys.meta_path.insert(0, _AliasFinder())
    return how
