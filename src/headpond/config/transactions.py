"""What transactions and their coordinator obey."""

from __future__ import annotations

import msgspec


class TransactionSettings(msgspec.Struct, frozen=True):
    timeout_ms_max: int = 900_000  # transaction.max.timeout.ms: what a producer may ask for
    id_expiration_ms: int = 604_800_000  # transactional.id.expiration.ms: an id at rest is forgotten after it
    abort_check_interval_ms: int = 10_000  # transaction.abort.timed.out.transaction.cleanup.interval.ms
    expiry_check_interval_ms: int = 3_600_000  # transaction.remove.expired.transaction.cleanup.interval.ms
    verifies_partitions: bool = True  # transaction.partition.verification.enable
    add_retry_ms: int = 20  # add.partitions.to.txn.retry.backoff.ms
    add_retries_for_ms: int = 100  # add.partitions.to.txn.retry.backoff.max.ms
    # the topic that they are kept in
    topic_partitions: int = 50  # transaction.state.log.num.partitions
    topic_replication_factor: int = 3  # transaction.state.log.replication.factor
    topic_min_in_sync: int = 2  # transaction.state.log.min.isr
    topic_segment_bytes: int = 104_857_600  # transaction.state.log.segment.bytes
