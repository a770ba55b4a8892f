"""A stand-in for torchvision: every name in it can be imported, and none of them does anything.

Importing this module puts a finder at the end of `sys.meta_path`, so that a real torchvision wins where there is one.
"""

import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class StandIn(ModuleType):
    """torchvision, a module of it, or a name in one."""

    __version__ = "0.0.0"
    __path__ = ()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(f"the stand-in for {self.__name__} has no {name}")
        return StandIn(f"{self.__name__}.{name}")


class Finder(MetaPathFinder, Loader):
    """Finds torchvision and everything in it."""

    def find_spec(self, fullname, path=None, target=None):
        return ModuleSpec(fullname, self, is_package=True) if fullname.partition(".")[0] == "torchvision" else None

    def create_module(self, spec):
        return StandIn(spec.name)

    def exec_module(self, module):
        """Nothing to run."""


sys.meta_path.append(Finder())
