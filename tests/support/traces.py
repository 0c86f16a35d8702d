"""What a process may leave behind: itself, its port."""

from __future__ import annotations

import os
import socket
from pathlib import Path


def is_alive(pid: int) -> bool:
    """A zombie that nobody has waited for yet is not alive."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return not stat.parents[1].exists()  # ended just now; or a system without /proc


def is_listening(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except ConnectionRefusedError:
        return False
    return True
