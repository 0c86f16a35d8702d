"""What a broker and its worker processes say to each other: length-prefixed pickles over private pipes.

broker   (function, arguments)        NEXT                     NEXT ...
worker                 (STEP, value)        (STEP, value)  ...          (DONE, None) | (FAILED, error)

NEXT to a worker without a job asks whether it is there: (DONE, None).
"""

from __future__ import annotations

import struct
from typing import Any

STEP, DONE, FAILED = range(3)
NEXT = "next"
LENGTH = struct.Struct(">I")


def pack(message: object) -> bytes:
    import pickle  # not at a broker's start: most never need it

    data = pickle.dumps(message)
    return LENGTH.pack(len(data)) + data


def unpack(data: bytes) -> Any:
    """What stands behind the length."""
    import pickle

    return pickle.loads(data)
