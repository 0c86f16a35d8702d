"""kcat from Debian: librdkafka 2.0, a few years older than what confluent-kafka brings, and with traps of its own."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Sequence
from typing import Any

from support.clients.base import EARLIEST, TIMEOUT_S, Received, Refused, Sent
from support.installed import installed

_START = {EARLIEST: "beginning", "latest": "end"}
_DELIVERED = re.compile(r"delivered to partition \d+ \(offset (-?\d+)\)")


def is_installed() -> bool:
    return installed("kcat")


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


class KcatClient:
    """Lines in, JSON out: keys and values are text, all records of one call share the headers of the first."""

    name = "kcat"

    def __init__(self, bootstrap: str, **options: Any) -> None:
        self._bootstrap = bootstrap
        self.config = options

    def run(
        self, *arguments: str, stdin: str = "", options: dict[str, Any] | None = None
    ) -> subprocess.CompletedProcess[str]:
        sets = [part for k, v in {**self.config, **(options or {})}.items() for part in ("-X", f"{k}={v}")]
        return subprocess.run(
            ["kcat", "-b", self._bootstrap, *arguments, *sets],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )

    def produce(
        self,
        topic: str,
        records: Sequence[Sent],
        *,
        partition: int = 0,
        acks: int = -1,
        codec: str = "none",
        options: dict[str, Any] | None = None,
    ) -> list[int]:
        lines = [f"{(r.key or b'').decode()}\x1f{(r.value or b'').decode()}\n" for r in records]
        headers = [
            part
            for name, value in (records[0].headers if records else ())
            for part in ("-H", name if value is None else f"{name}={value.decode()}")
        ]
        done = self.run(
            *("-P", "-t", topic, "-p", str(partition), "-K", "\x1f", "-Z", "-z", codec, "-vvv", *headers),
            stdin="".join(lines),
            options={"acks": acks, "linger.ms": 50, "message.timeout.ms": 20_000, **(options or {})},
        )
        if done.returncode or "Delivery failed" in done.stderr:
            too_large = "Message size too large" in done.stderr
            raise Refused(10 if too_large else -1, done.stderr)
        offsets = [int(offset) for offset in _DELIVERED.findall(done.stderr)]
        assert len(offsets) == len(records), done.stderr
        return [-1 if acks == 0 else offset for offset in offsets]

    def consume(
        self,
        topic: str,
        count: int,
        *,
        partitions: Sequence[int] = (0,),
        start: int | str = EARLIEST,
        options: dict[str, Any] | None = None,
    ) -> list[Received]:
        found: list[Received] = []
        for partition in partitions:
            # kcat assigns one partition or all; with several, each is read to its end.
            whole = len(partitions) > 1
            limit = ("-e",) if whole else ("-c", str(count))
            done = self.run(
                *(
                    "-C",
                    "-t",
                    topic,
                    "-p",
                    str(partition),
                    "-o",
                    str(_START.get(str(start), start)),
                    "-J",
                    "-u",
                    *limit,
                ),
                options=options,
            )
            if done.returncode:
                raise Refused(-1, done.stderr)
            found += [self._received(json.loads(line)) for line in done.stdout.splitlines()]
        assert len(found) == count, f"{len(found)} of {count}"
        return found

    def offset_for_time(self, topic: str, timestamp_ms: int, *, partition: int = 0) -> int | None:
        offset = self._query(topic, partition, timestamp_ms)
        return None if offset == -1 else offset

    def bounds(self, topic: str, *, partition: int = 0) -> tuple[int, int]:
        return self._query(topic, partition, -2), self._query(topic, partition, -1)

    def _query(self, topic: str, partition: int, timestamp_ms: int) -> int:
        done = self.run("-Q", "-t", f"{topic}:{partition}:{timestamp_ms}")
        found = re.search(r"offset (-?\d+)", done.stdout)
        assert found, done.stdout + done.stderr
        return int(found.group(1))

    @staticmethod
    def _received(row: dict[str, Any]) -> Received:
        flat = row.get("headers", [])
        headers = [(name, _bytes(value)) for name, value in zip(flat[::2], flat[1::2], strict=True)]
        return Received(row["partition"], row["offset"], _bytes(row["key"]), _bytes(row["payload"]), headers, row["ts"])
