"""Stand-ins for torchvision and torchaudio, which vLLM Omni 0.32 imports and an image model on a CPU never calls.

Importing this module puts a finder at the end of `sys.meta_path`: where the real packages are installed they win. Any
name in a stand-in exists, and nothing behind a name works.
"""

import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

STANDS_FOR = ("torchvision", "torchaudio")


class StandIn(ModuleType):
    """A module, or a name in one."""

    __version__ = "0.0.0"
    __path__ = ()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(f"the stand-in for {self.__name__} has no {name}")
        return StandIn(f"{self.__name__}.{name}")


class Finder(MetaPathFinder, Loader):
    """Finds `STANDS_FOR` and everything in them."""

    def find_spec(self, fullname, path=None, target=None):
        return ModuleSpec(fullname, self, is_package=True) if fullname.partition(".")[0] in STANDS_FOR else None

    def create_module(self, spec):
        return StandIn(spec.name)

    def exec_module(self, module):
        """Nothing to run."""


sys.meta_path.append(Finder())
