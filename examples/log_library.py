"""The log as a library: twelve records written, those from offset 7 on read, and what lies on the disk.

python examples/log_library.py [FOLDER]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import headpond.log


def main(folder: Path) -> None:
    # Small segments and a dense index, so that twelve records show both.
    with headpond.log.open(folder / "orders", segment_bytes=1024, index_interval_bytes=200) as log:
        for number in range(12):
            offset = log.append(f"order {number}: " + "apples " * 15, key=f"customer {number % 3}")
            assert offset == number, "offsets are consecutive, and durable when they are returned"

        for record in log.read(from_offset=7):
            print(record.offset, (record.key or b"").decode(), (record.value or b"")[:20].decode())

        for segment in log.segments():
            print(f"{Path(segment.path).name}: offsets {segment.base_offset} to {segment.end_offset - 1}, ", end="")
            print(f"{segment.size_bytes} bytes")
            for last_offset, position in segment.index_entries:
                print(f"  the batch that ends with offset {last_offset} begins at byte {position}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory(prefix="headpond-log-") as name:
            main(Path(name))
