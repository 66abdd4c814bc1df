"""Python imports this file when a process starts that a program under `rushlight run` has started: there, too, `import
torch` means rushlight. `rushlight.compat.install` puts this folder first on PYTHONPATH and sets RUSHLIGHT_TORCH=1
(children.py).

Programs that do not import torch pay for two small classes alone: rushlight is loaded when torch is looked for. A
sitecustomize of the user's own runs afterwards."""

import os
import sys
from importlib.machinery import PathFinder

HERE = os.path.dirname(os.path.abspath(__file__))
NAMES = ("torch", "torchvision", "functorch")


class Waiting:
    """A meta path finder that installs rushlight's import hook when torch is first looked for."""

    def hook(self):
        """The import hook, installed; None where rushlight cannot be imported, as in a Python of another environment:
        torch is then what that environment has."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        root = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
        try:
            found = PathFinder.find_spec("rushlight") is not None
            if not found:  # a checkout that the parent found in its working folder
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
