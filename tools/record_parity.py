"""Asks a real Kafka everything that the parity scripts ask, and writes its answers to tests/parity/recorded/.

python tools/record_parity.py [FAMILY ...]       all files of scripts, or those named
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent.parent / folder) for folder in ("src", "tests")]

from parity.families import FAMILIES, play_all  # noqa: E402
from parity.peers import kafka  # noqa: E402
from parity.recording import save  # noqa: E402


def record(family: str) -> None:
    with tempfile.TemporaryDirectory(prefix="headpond-parity-") as folder:
        scripts = dict(play_all(family, Path(folder), kafka))
    save(family, scripts)
    print(f"{family}: {len(scripts)} scripts")


if __name__ == "__main__":
    unknown = set(sys.argv[1:]) - set(FAMILIES)
    if unknown:
        sys.exit(f"no such file of scripts: {', '.join(sorted(unknown))}; there are {', '.join(FAMILIES)}")
    for name in sys.argv[1:] or FAMILIES:
        record(name)
