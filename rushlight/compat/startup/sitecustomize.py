"""Python imports this file at the start of a process that a program under `rushlight run` has started, so that `import
torch` means rushlight there, too. `rushlight.compat.install` puts this folder first on PYTHONPATH and sets
RUSHLIGHT_TORCH=1 (children.py).

rushlight is loaded only when the process imports torch. The user's own sitecustomize runs afterwards."""

import os
import sys
from importlib.machinery import PathFinder

HERE = os.path.dirname(os.path.abspath(__file__))
NAMES = ("torch", "torchvision", "functorch")


class Waiting:
    """A meta path finder that installs rushlight's import hook when torch is first looked for."""

    def hook(self):
        """Install and return the import hook. None if rushlight cannot be imported, as in another Python environment:
        the process then uses that environment's torch."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        root = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
        try:
            found = PathFinder.find_spec("rushlight") is not None
            if not found:  # a checkout, which the parent has found in its working folder
                sys.path.append(root)
            from rushlight.compat import hook
        except ImportError:
            return None
        hook.install()
        return hook.finder

    def find_spec(self, name, path=None, target=None):
        """The spec of torch, of torchvision or of functorch."""
        if name.partition(".")[0] in NAMES and (hook := self.hook()) is not None:
            return hook.find_spec(name, path, target)
        return None

    def find_distributions(self, context=None):
        """The metadata of the package torch."""
        if getattr(context, "name", None) == "torch" and (hook := self.hook()) is not None:
            return hook.find_distributions(context)
        return iter(())


def run_the_users_own():
    """Run the sitecustomize that this one hides."""
    elsewhere = [p for p in sys.path if os.path.abspath(p or os.curdir) != HERE]
    spec = PathFinder.find_spec("sitecustomize", elsewhere)
    if spec is not None and spec.loader is not None:
        from importlib.util import module_from_spec

        module = sys.modules["sitecustomize"] = module_from_spec(spec)
        spec.loader.exec_module(module)


if os.environ.get("RUSHLIGHT_TORCH") == "1":
    sys.meta_path.insert(0, Waiting())
run_the_users_own()
