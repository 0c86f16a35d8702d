"""Columns by their names, whatever characters a name has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column


def column(name: str, *, of: str = "") -> Column:
    """``of``: the struct that it is a field of."""
    quoted = f"`{name.replace('`', '``')}`"
    return F.col(f"{of}.{quoted}" if of else quoted)
