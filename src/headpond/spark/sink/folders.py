"""Where the staging folder is: the option ``stagingDir``, else beside the checkpoint, else among temporary files.

Decided on the driver, once, as an absolute path or a URI: executors have other working folders.
"""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

from headpond.runtime.private_folder import NotOurs, make_private
from headpond.spark.sink.errors import SinkFailed
from headpond.spark.sink.options import SinkOptions

BESIDE = "-staging"
_URI = re.compile(r"[a-z][a-z0-9+.-]+:", re.IGNORECASE)  # one letter would be a drive


def staging_location(options: SinkOptions) -> str:
    if options.staging_dir is not None:
        return _absolute(options.staging_dir)
    if options.checkpoint is not None:
        return _absolute(options.checkpoint.rstrip("/")) + BESIDE
    return _private_folder()


def _absolute(location: str) -> str:
    if location.lower().startswith("file:"):
        location = re.sub(r"^file:(//(localhost)?)?", "", location, flags=re.IGNORECASE)
    return location if _URI.match(location) else os.path.abspath(os.path.expanduser(location))


def _private_folder() -> str:
    """The same for every write of this user on this machine, so that a later one finds what a killed one left."""
    path = Path(tempfile.gettempdir()) / f"headpond-staging-{os.getuid()}"
    try:
        make_private(path)
    except NotOurs:
        raise SinkFailed(f"the temporary folder {path} is not ours alone: give the option stagingDir") from None
    return str(path)
