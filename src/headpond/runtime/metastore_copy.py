"""A copy of the metadata store's file, to look into: whatever is done with it, the file itself stays as it is."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def copy_to_look_into(path: str) -> Iterator[str]:
    """The path of a copy that lasts as long as the context; of nothing, if there is no file yet. Nobody may be writing
    to the file. A crash of whoever wrote it last may have left a write-ahead log: it belongs to the content."""
    with tempfile.TemporaryDirectory(prefix="headpond-") as folder:
        copy = os.path.join(folder, os.path.basename(path))
        for suffix in ("", "-wal"):
            if os.path.exists(path + suffix):
                shutil.copyfile(path + suffix, copy + suffix)
        yield copy
