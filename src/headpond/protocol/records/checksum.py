"""CRC-32C, which guards every batch and every producer snapshot.

The `crc32c` package reads its own version through ``importlib.metadata`` when it is imported, which costs about 50 ms
of a broker's start. Its C extension needs none of that, so we load the extension alone; where it can't be found, the
package itself serves.
"""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Protocol, cast

from headpond.ports import Buffer

EXTENSION_NAME = "crc32c._crc32c"


def _load() -> ModuleType:
    if (loaded := sys.modules.get(EXTENSION_NAME)) is not None:
        return loaded
    package = PathFinder.find_spec("crc32c")
    if package is not None and package.submodule_search_locations:
        spec = PathFinder.find_spec(EXTENSION_NAME, list(package.submodule_search_locations))
        if spec is not None and spec.loader is not None:
            try:
                module = spec.loader.create_module(spec)
                if module is not None:
                    spec.loader.exec_module(module)
                    sys.modules[EXTENSION_NAME] = module  # so that a later `import crc32c` shares it
                    return module
            except ImportError:
                pass
    return importlib.import_module("crc32c")


class _Checksum(Protocol):
    def __call__(self, data: Buffer, value: int = 0, /) -> int: ...


crc32c = cast("_Checksum", _load().crc32c)
"""The checksum of a buffer; ``value`` is that of what lies before it. Releases the interpreter lock on large ones."""
