"""What a service manager is told: systemd's ``sd_notify``, one datagram to the socket that NOTIFY_SOCKET names.

Without the variable nothing is done. Whatever goes wrong is left alone: a broker serves whether it could say so or not.
Only what can't be sent at the moment is tried again: a unit without a time-out would wait for its READY=1 for ever.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Awaitable, Callable

READY = "READY=1"
STOPPING = "STOPPING=1"

AGAIN_AFTER_S = 0.2
_PASSING = frozenset({errno.EAGAIN, errno.ENOBUFS, errno.ENOMEM, errno.EMFILE, errno.ENFILE})
"""Its queue is full, or the memory or the descriptors are used up."""


async def tell_in_the_end(*lines: str, sleep: Callable[[float], Awaitable[None]], is_over: Callable[[], bool]) -> None:
    """``tell``, again and again as long as it can't be sent at the moment; until ``is_over`` (it is not true any
    more)."""
    while not is_over() and not tell(*lines):
        await sleep(AGAIN_AFTER_S)


def tell(*lines: str) -> bool:
    """Say ``lines`` (``NAME=value`` each). Never blocks, never raises. False: it may work if it is tried again."""
    where = os.environ.get("NOTIFY_SOCKET", "")
    if where[:1] not in ("/", "@"):  # vsock is for virtual machines
        return True
    address = "\0" + where[1:] if where[0] == "@" else where
    message = "\n".join(line.replace("\n", " ") for line in lines).encode("utf-8", "replace")
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            sender.sendto(message, address)
    except OSError as error:
        return error.errno not in _PASSING
    except ValueError:
        pass
    return True
