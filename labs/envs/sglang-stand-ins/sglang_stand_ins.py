"""Stand-ins for triton and torchvision, which SGLang 0.5.14 imports and a text model on a CPU never calls.

Importing this module puts a finder at the end of `sys.meta_path`: where the real packages are installed they win. Any
name in a stand-in exists, so that `@triton.jit` and `class K(triton.Config)` can be read; nothing behind a name works,
and a GPU driver is not pretended, so that torch and SGLang see at once that there is none.
"""

import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

STANDS_FOR = ("triton", "torchvision")


class StandIn(ModuleType):
    """A module, or a name in one. Called with a function, as a decorator is, it gives the function back."""

    __version__ = "0.0.0"
    __path__ = ()

    def __getattr__(self, name):
        if name.startswith("__") or name == "driver":
            raise AttributeError(f"the stand-in for {self.__name__} has no {name}")
        if name[0].isupper() and self.__name__.startswith("triton"):  # a class, to be derived from or made
            return type(name, (), {"__init__": lambda self, *_, **__: None})
        return StandIn(f"{self.__name__}.{name}")

    def __call__(self, *args, **kwargs):
        return args[0] if len(args) == 1 and callable(args[0]) and not kwargs else self


class Finder(MetaPathFinder, Loader):
    """Finds `STANDS_FOR` and everything in them."""

    def find_spec(self, fullname, path=None, target=None):
        return ModuleSpec(fullname, self, is_package=True) if fullname.partition(".")[0] in STANDS_FOR else None

    def create_module(self, spec):
        return StandIn(spec.name)

    def exec_module(self, module):
        """Nothing to run."""


sys.meta_path.append(Finder())
