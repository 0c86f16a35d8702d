"""``admit`` for batches whose records have to be looked at: in a thread for looks, or in a process if it takes long."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from headpond.config.log import LogConfig
from headpond.model import ErrorCode, StorageFailed, TopicPartition
from headpond.ports import FileSystem
from headpond.protocol.records.header import BatchHeader, read_header
from headpond.storage.admission.admission import BatchRefused, LookNeeded, admit
from headpond.storage.looks.looks import TURN_BYTES, Look, LookGivenUp, fits_a_turn


class _Refused(NamedTuple):
    """A ``BatchRefused`` that can cross a pipe."""

    code: ErrorCode
    message: str
    record_errors: list[tuple[int, str]]
    reason: str


async def admit_with_look(
    look: Look, records: bytes, config: LogConfig, now_ms: int, tp: TopicPartition, *, zstd_allowed: bool
) -> tuple[memoryview, BatchHeader]:
    """As ``admit``, of a copy; ``records`` is what that wanted to look at. Raises ``BatchRefused``, also when it takes
    too long."""
    try:
        if fits_a_turn(read_header(records)):
            batch = memoryview(bytearray(records))  # patched in place, hence a private copy
            try:
                in_turn = partial(admit, zstd_allowed=zstd_allowed, inside_bytes_max=TURN_BYTES)
                return await look.turn(in_turn, batch, config, now_ms, tp)
            except LookNeeded:
                pass  # it is larger inside
        verdict = await look.at_length(admit_at_length, records, config, now_ms, tp, zstd_allowed)
    except (LookGivenUp, StorageFailed) as failed:
        raise BatchRefused(failed.code, reason=str(failed)) from failed
    if isinstance(verdict, _Refused):
        code, message, record_errors, reason = verdict
        raise BatchRefused(code, message, record_errors, reason=reason)
    batch = memoryview(bytearray(records if verdict is None else verdict))
    return batch, read_header(batch)


def admit_at_length(
    fs: FileSystem, records: bytes, config: LogConfig, now_ms: int, tp: TopicPartition, zstd_allowed: bool
) -> bytes | _Refused | None:
    """In a process. None: the batch as it is."""
    try:
        batch, _ = admit(memoryview(bytearray(records)), config, now_ms, tp, zstd_allowed=zstd_allowed)
    except BatchRefused as refused:
        return _Refused(refused.code, refused.message, refused.record_errors, refused.reason)
    return None if batch == records else bytes(batch)
