"""What a Produce response says about a partition whose batch was not appended.

Kafka tells the log's start only when the log itself refused the batch (its counts, timestamps, sequence numbers), not
when it never got that far: a field that is not exactly one batch, a wrong CRC, too many bytes, a failing disk.
"""

from __future__ import annotations

from headpond.broker.handlers.produce.wire import Result
from headpond.model import BrokerError, ErrorCode
from headpond.protocol.records.header import HEADER_BYTES, MAGIC, read_header
from headpond.storage.admission.admission import BatchRefused

WITHOUT_LOG_START = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)


def refused_result(
    index: int, refused: BatchRefused, records: memoryview, log_start_offset: int, *, codec_first: bool
) -> Result:
    """``codec_first``: before v7 a codec that does not exist is found out before the log is asked."""
    tells = refused.code not in WITHOUT_LOG_START and _is_one_batch(records)
    if codec_first and refused.code == ErrorCode.UNKNOWN_SERVER_ERROR:
        tells = False
    return Result(
        index,
        refused.code,
        log_start_offset=log_start_offset if tells else -1,
        message=refused.message or None,
        record_errors=refused.record_errors,
    )


def failed_result(index: int, failed: BrokerError, log_start_offset: int = -1) -> Result:
    """Kafka sends texts about refused batches only; others are for the log."""
    return Result(index, failed.code, log_start_offset=-1 if failed.code in WITHOUT_LOG_START else log_start_offset)


def _is_one_batch(records: memoryview) -> bool:
    if len(records) < HEADER_BYTES:
        return False
    header = read_header(records)
    return header.magic == MAGIC and header.size_bytes == len(records)
