"""A response to its socket: what files have lent goes straight from the page cache into it (sendfile).

Promises    All parts leave, in their order. A transport that has nothing of its own to send is passed by: its socket
            takes what it takes at once, and the rest becomes the transport's, which waits for room and knows of the
            back-pressure. Whatever goes wrong on the way is met by the transport in its turn, and ends the connection
            as any other failed write does.
Careful     A socket has the file's own pages until its peer has acknowledged them. Files are appended to and removed,
            and never changed below what may be fetched.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence

from headpond.ports import Buffer, Part

BUFFERS = (bytes, bytearray, memoryview)
# A few bytes before a file's wait for them, instead of being a packet of their own.
_MORE_FOLLOWS: int = getattr(socket, "MSG_MORE", 0)
_AT_ONCE: int = getattr(socket, "MSG_DONTWAIT", 0)


def send(transport: asyncio.WriteTransport, parts: Sequence[Part]) -> None:
    rest = _as_buffers(parts) if _must_wait(transport, parts) else _send_now(transport, parts)
    if rest:
        transport.writelines(rest)


def _must_wait(transport: asyncio.WriteTransport, parts: Sequence[Part]) -> bool:
    """It has to send something else first, it encrypts, or nothing is lent: then it does the whole by itself."""
    return (
        all(isinstance(part, BUFFERS) for part in parts)
        or transport.get_write_buffer_size() > 0
        or transport.get_extra_info("sslcontext") is not None
        or transport.get_extra_info("socket") is None
    )


def _send_now(transport: asyncio.WriteTransport, parts: Sequence[Part]) -> list[Buffer]:
    """As much as the socket takes; returns what is left."""
    descriptor: int = transport.get_extra_info("socket").fileno()
    # The transport's own, for the length of this call; send needs an object for its flags.
    borrowed = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 0, fileno=descriptor)
    try:
        for number, part in enumerate(parts):
            flags = _AT_ONCE if number == len(parts) - 1 else _AT_ONCE | _MORE_FOLLOWS
            size_bytes, sent_bytes = len(part), 0
            while sent_bytes < size_bytes:
                try:
                    if isinstance(part, BUFFERS):
                        count = borrowed.send(memoryview(part)[sent_bytes:], flags)
                    else:
                        count = part.send_to(descriptor, sent_bytes)
                except OSError:  # no room, mostly; what else it may be is told to the transport, too
                    count = 0
                if count == 0:
                    rest = _as_buffers(parts[number:])
                    rest[0] = memoryview(rest[0])[sent_bytes:]
                    return rest
                sent_bytes += count
    finally:
        borrowed.detach()
    return []


def _as_buffers(parts: Sequence[Part]) -> list[Buffer]:
    return [part if isinstance(part, BUFFERS) else part.view for part in parts]
