"""What can't be written. (What can't be read is a ``ClientError`` with ``CORRUPT_MESSAGE``, as for every reader.)"""

from __future__ import annotations


class CannotEncode(ValueError):
    """A column or a row that can't become a record; the sentence says which and why.

    ``row``: counted from 0 in the chunk; None when the whole column is of no use.
    """

    def __init__(self, message: str, *, row: int | None = None) -> None:
        super().__init__(message)
        self.row = row
