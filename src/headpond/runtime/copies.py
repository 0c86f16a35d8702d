"""Copies of files that are needed for a moment."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence


@contextlib.contextmanager
def copied_for_now(folder: str, parts: Sequence[str]) -> Iterator[str]:
    """A copy of what lies in folders of these names somewhere below ``folder``, in one of the same name; it goes with
    the block."""
    with tempfile.TemporaryDirectory(prefix="headpond-") as around:
        copy = os.path.join(around, os.path.basename(folder))
        for path, _, files in os.walk(folder):
            if os.path.basename(path) in parts:
                target = os.path.join(copy, os.path.relpath(path, folder))
                os.makedirs(target)
                for name in files:
                    shutil.copyfile(os.path.join(path, name), os.path.join(target, name))
        yield copy
