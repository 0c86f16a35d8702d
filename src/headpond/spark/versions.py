"""The Spark that Headpond works with. Data sources in Python change with each minor version of PySpark, so that another
one would fail somewhere in the middle, with a page about names that can't be imported.
"""

from __future__ import annotations

import re

SPARK_VERSION = (4, 3)
WANTED = ".".join(map(str, SPARK_VERSION))


def wrong_pyspark() -> str:
    """What is wrong with the PySpark of this Python, in one sentence; nothing, if it will do."""
    try:
        import pyspark
    except ImportError:
        return "Spark is not installed: pip install 'headpond[spark]'"
    if is_right(pyspark.__version__):
        return ""
    return f"headpond needs PySpark {WANTED} and this is {pyspark.__version__}: pip install 'headpond[spark]'"


def is_right(version: str) -> bool:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2]) == SPARK_VERSION
