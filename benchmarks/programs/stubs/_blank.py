"""A module that has every name, for imports a program never really uses."""

import sys
import types


class _Meta(type):
    def __getattr__(cls, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return _Blank


class _Blank(metaclass=_Meta):
    def __init__(self, *a, **k):
        pass

    def __call__(self, *a, **k):
        if len(a) == 1 and callable(a[0]) and not k:
            return a[0]  # as a decorator
        return _Blank()

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return _Blank()

    def __iter__(self):
        return iter(())


class _Module(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return _Blank


class _Finder:
    root = __name__

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        import importlib.util

        if name.startswith(cls.root + "."):
            return importlib.util.spec_from_loader(name, cls)
        return None

    @staticmethod
    def create_module(spec):
        m = _Module(spec.name)
        m.__path__ = []
        return m

    @staticmethod
    def exec_module(m):
        pass


sys.modules[__name__].__class__ = _Module
__path__ = []
sys.meta_path.insert(0, _Finder)
