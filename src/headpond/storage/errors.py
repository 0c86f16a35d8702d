"""Why a data folder can't be used; the message is for the person who started the broker."""

from __future__ import annotations


class DataFolderUnusable(Exception):
    pass


class DataFolderInUse(DataFolderUnusable):
    def __init__(self, data_dir: str) -> None:
        super().__init__(f"the data folder {data_dir} is in use by another broker; stop it, or choose another folder")


class DataFolderForeign(DataFolderUnusable):
    """It belongs to another cluster or another node."""
