"""What a partition remembers of its idempotent producers, so that a retry is never stored twice.

For each producer id: its epoch, its last five batches (sequence range and where they went), and its open transaction.
``check`` decides before an append, ``update`` (leader) or ``replay`` (follower, recovery) records it afterwards; both
are pure and take the time as an argument. Rules are Kafka's:

* a batch with the epoch and the sequence range of one of the last five is a duplicate: answered with its old offset;
* an older epoch is refused (47); a newer one must start at sequence 0, else 45;
* within an epoch, sequences follow each other without gap and run from 2^31 - 1 to 0, else 45;
* a producer that the partition does not know, or has forgotten, may start anywhere (in a transaction of KIP-890's
  second version: at sequence 0 only);
* the first batch of a transaction needs the word of its coordinator (``Verification``), given for this transaction: a
  marker in between makes it worthless.

After a crash the state is the newest readable snapshot plus a replay of the log behind it (``load``, ``replay``).
"""

from __future__ import annotations

from headpond.model import BrokerError, ErrorCode, TopicPartition, invariant
from headpond.ports import Buffer
from headpond.protocol.records.control import EndTxnMarker, read_end_txn_marker
from headpond.protocol.records.header import NO_PRODUCER_EPOCH, NO_SEQUENCE, TRANSACTIONAL_BIT, BatchHeader
from headpond.storage.producers.snapshot import decode_snapshot, encode_entry, join_snapshot
from headpond.storage.producers.state import (
    NO_OFFSET,
    CompletedTxn,
    ProducerState,
    StoredBatch,
    Verification,
    entry_of,
    state_of,
)

BATCHES_KEPT = 5
"""As many requests as an idempotent producer may have in flight on a connection (KIP-98)."""
PRODUCERS_MAX = 20_000
"""Beyond it the producer that was idle longest is forgotten: short-lived clients take a new id each, for a day."""
EXPIRATION_MS = 86_400_000
IDLE_ORDER_MS = 1_000
"""How exactly the order of idleness is kept: to move a producer within it for every batch would cost too much."""

_new = tuple.__new__  # skips the NamedTuple constructor's argument handling


class ProducerStates:
    """The producers of one partition. ``end_offset``: everything before it is reflected here."""

    def __init__(self, tp: TopicPartition, *, expiration_ms: int = EXPIRATION_MS) -> None:
        self.tp = tp
        self.expiration_ms = expiration_ms
        self.end_offset = 0
        self._producers: dict[int, ProducerState] = {}  # the longest idle first
        self._ongoing: dict[int, int] = {}  # first offset -> producer id, ascending: offsets are given in order
        self.unreplicated: dict[int, int] = {}  # first offset -> marker's offset: ended, not below the high watermark
        self.verifications: dict[int, Verification] = {}

    def __len__(self) -> int:
        return len(self._producers)

    def get(self, producer_id: int) -> ProducerState | None:
        return self._producers.get(producer_id)

    def states(self) -> list[ProducerState]:
        return list(self._producers.values())

    # --- before an append ---------------------------------------------------------------------------------------------

    def check(self, header: BatchHeader) -> StoredBatch | None:
        """Whether a client's batch may be appended now: None, or the stored original when it is a duplicate.

        Raises ``BrokerError`` with OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH or INVALID_TXN_STATE.
        """
        _, _, _, _, _, _, last_delta, _, _, producer_id, epoch, base_sequence, _ = header
        if producer_id < 0 or (state := self._producers.get(producer_id)) is None:
            if self.verifications:
                self._check_start(header)
            return None
        if epoch == state.epoch:
            # The next in sequence can't be a duplicate: five batches never hold all 2^31 sequences.
            if base_sequence != _later(state.last_sequence, 1):
                last_sequence = _later(base_sequence, last_delta)
                for stored in state.batches:
                    if stored.base_sequence == base_sequence and stored.last_sequence == last_sequence:
                        return stored
                if epoch != NO_PRODUCER_EPOCH:
                    raise self._out_of_order(header, state)
        else:
            self._check_epoch(header, state)
            if base_sequence != 0 and state.epoch != NO_PRODUCER_EPOCH:
                raise self._out_of_order(header, state)
        if self.verifications:
            self._check_start(header)
        if state.txn_first_offset != NO_OFFSET and not header.is_transactional:
            raise BrokerError(
                ErrorCode.INVALID_TXN_STATE,
                f"Expected transactional write from producer {header.producer_id} at offset {self.end_offset} "
                f"in partition {self.tp}",
            )
        return None

    def is_open(self, producer_id: int, epoch: int) -> bool:
        """Whether that producer has a transaction open here."""
        state = self._producers.get(producer_id)
        return state is not None and state.txn_first_offset != NO_OFFSET and state.epoch == epoch

    def begin_verification(self, header: BatchHeader, now_ms: int, *, starts_at_zero: bool) -> Verification:
        """The coordinator is about to be asked for this batch; ``starts_at_zero``: by the rules of KIP-890's second
        version. Give what is returned to ``is_verified`` afterwards."""
        found = self.verifications.get(header.producer_id)
        if found is None:
            if len(self.verifications) >= PRODUCERS_MAX:
                del self.verifications[next(iter(self.verifications))]
            found = self.verifications[header.producer_id] = Verification(
                header.producer_epoch, header.base_sequence, now_ms, starts_at_zero=starts_at_zero
            )
        else:
            found.seen(header.producer_epoch, header.base_sequence)
            found.starts_at_zero = starts_at_zero
        return found

    def is_verified(self, header: BatchHeader, verification: Verification | None) -> bool:
        """Whether a transactional batch may be appended: its transaction is open, or ``verification``, which the
        coordinator confirmed, still stands."""
        if self.is_open(header.producer_id, header.producer_epoch):
            return True
        return verification is not None and self.verifications.get(header.producer_id) is verification

    def _check_start(self, header: BatchHeader) -> None:
        verification = self.verifications.get(header.producer_id)
        if verification is None:
            return
        state = self._producers.get(header.producer_id)
        must_be_zero = verification.starts_at_zero and (state is None or not state.batches)
        if header.base_sequence > (0 if must_be_zero else verification.lowest_sequence):
            raise BrokerError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Out of order sequence number for producer {header.producer_id} at offset {self.end_offset} in "
                f"partition {self.tp}: {header.base_sequence} (incoming seq. number), "
                f"{0 if must_be_zero else verification.lowest_sequence} (earliest seen sequence)",
            )

    def check_on_behalf(self, header: BatchHeader) -> None:
        """Whether a group coordinator's batch on behalf of a producer may be appended now: it has no sequences."""
        if (state := self._producers.get(header.producer_id)) is not None:
            self._check_epoch(header, state)

    def check_marker(self, header: BatchHeader, marker: EndTxnMarker, *, raises_epoch: bool = False) -> None:
        """Whether a transaction coordinator's marker may be appended now; ``BrokerError`` if a newer one was here.
        ``raises_epoch``: in KIP-890's second version a marker's epoch is higher than that of what it ends."""
        if (state := self._producers.get(header.producer_id)) is None:
            return
        self._check_epoch(header, state)
        if raises_epoch and header.producer_epoch == state.epoch and state.txn_first_offset != NO_OFFSET:
            raise BrokerError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Epoch of the marker of producer {header.producer_id} at offset {self.end_offset} in {self.tp} is "
                f"{header.producer_epoch}, which is that of the transaction it should end",
            )
        if marker.coordinator_epoch < state.coordinator_epoch:
            raise BrokerError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"Invalid coordinator epoch for producerId {header.producer_id} at offset {self.end_offset} in "
                f"partition {self.tp}: {marker.coordinator_epoch} (zombie), {state.coordinator_epoch} (current)",
            )

    def _check_epoch(self, header: BatchHeader, state: ProducerState) -> None:
        if header.producer_epoch < state.epoch:
            raise BrokerError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Epoch of producer {header.producer_id} at offset {self.end_offset} in {self.tp} is "
                f"{header.producer_epoch}, which is smaller than the last seen epoch {state.epoch}",
            )

    def _out_of_order(self, header: BatchHeader, state: ProducerState) -> BrokerError:
        where = f"at offset {self.end_offset} in partition {self.tp}"
        if header.producer_epoch == state.epoch:
            message = (
                f"Out of order sequence number for producer {header.producer_id} {where}: {header.base_sequence} "
                f"(incoming seq. number), {state.last_sequence} (current end sequence number)"
            )
        else:
            # No blank before "at": Kafka's text, which people search for.
            message = (
                f"Invalid sequence number for new epoch of producer {header.producer_id}{where}: "
                f"{header.producer_epoch} (request epoch), {header.base_sequence} (seq. number), "
                f"{state.epoch} (current producer epoch)"
            )
        return BrokerError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, message)

    # --- after an append ----------------------------------------------------------------------------------------------

    def update(self, header: BatchHeader, base_offset: int, now_ms: int) -> None:
        """A data batch was appended at ``base_offset``. To be called for every batch, with a producer id or not."""
        _, _, _, _, _, attributes, last_delta, _, timestamp, producer_id, epoch, base_sequence, _ = header
        last_offset = base_offset + last_delta
        self.end_offset = last_offset + 1
        if producer_id < 0:
            return
        state = self._touch(producer_id, epoch, now_ms)
        if self.verifications:
            self.verifications.pop(producer_id, None)
        state.timestamp = timestamp
        last_sequence = base_sequence if base_sequence == NO_SEQUENCE else _later(base_sequence, last_delta)
        batches = state.batches
        if len(batches) == BATCHES_KEPT:
            del batches[0]
        batches.append(_new(StoredBatch, (base_sequence, last_sequence, base_offset, last_offset, timestamp)))
        if attributes & TRANSACTIONAL_BIT and state.txn_first_offset == NO_OFFSET:
            state.txn_first_offset = base_offset
            self._ongoing[base_offset] = producer_id

    def update_marker(self, header: BatchHeader, marker: EndTxnMarker, now_ms: int) -> CompletedTxn | None:
        """A marker was appended at ``header.base_offset``. None: its transaction had no records here."""
        offset = header.base_offset
        self.end_offset = offset + header.last_offset_delta + 1
        state = self._touch(header.producer_id, header.producer_epoch, now_ms)
        self.verifications.pop(header.producer_id, None)
        state.timestamp = marker.timestamp
        state.coordinator_epoch = marker.coordinator_epoch
        first_offset = state.txn_first_offset
        if first_offset == NO_OFFSET:
            return None
        state.txn_first_offset = NO_OFFSET
        invariant(self._ongoing.pop(first_offset, None) is not None, "the ended transaction was not open", self.tp)
        self.unreplicated[first_offset] = offset
        last_stable_offset = next(iter(self._ongoing), offset + 1)
        return CompletedTxn(header.producer_id, first_offset, offset, marker.is_abort, last_stable_offset)

    def widen(self, found: ProducerState) -> None:
        """The log's end was searched for a producer's batches: take over those that a snapshot does not hold."""
        state = self._producers.get(found.producer_id)
        if state is None or not state.batches or not found.batches or state.epoch != found.epoch:
            return
        if len(found.batches) > len(state.batches) and found.batches[-1].last_offset == state.batches[-1].last_offset:
            state.batches = found.batches

    def replay(self, batch: Buffer, header: BatchHeader, now_ms: int) -> CompletedTxn | None:
        """A batch of the log (at ``header.base_offset``), as a follower or recovery meets it: believed, not checked.

        Raises ``CorruptBatch`` when a control batch can't be read.
        """
        if not header.is_control or header.producer_id < 0:
            self.update(header, header.base_offset, now_ms)
            return None
        marker = read_end_txn_marker(batch)
        if marker is None:
            self.end_offset = header.last_offset + 1
            return None
        return self.update_marker(header, marker, now_ms)

    def _touch(self, producer_id: int, epoch: int, now_ms: int) -> ProducerState:
        """The producer's state at the batch's epoch, about to change, marked as not idle."""
        state = self._producers.get(producer_id)
        if state is None:
            if len(self._producers) >= PRODUCERS_MAX:
                self._forget_longest_idle()
            state = self._producers[producer_id] = ProducerState(producer_id, epoch, [], now_ms)
            return state
        state.packed = b""
        if state.epoch != epoch:
            state.epoch = epoch
            state.batches.clear()
        if now_ms - state.seen_ms > IDLE_ORDER_MS:
            self._producers[producer_id] = self._producers.pop(producer_id)
            state.seen_ms = now_ms
        return state

    def _forget_longest_idle(self) -> None:
        for producer_id, state in self._producers.items():
            if state.txn_first_offset == NO_OFFSET:
                del self._producers[producer_id]
                return

    def expire(self, now_ms: int) -> int:
        """Forget producers that appended nothing for ``expiration_ms``; those in a transaction stay. How many went.

        Kafka takes the batches' timestamps for this, and so forgets a producer of old timestamps while it is at work.
        """
        idle: list[int] = []
        for producer_id, state in self._producers.items():
            if now_ms - state.seen_ms < self.expiration_ms:
                break
            if state.txn_first_offset == NO_OFFSET:
                idle.append(producer_id)
        for producer_id in idle:
            del self._producers[producer_id]
        for producer_id, verification in list(self.verifications.items()):
            if now_ms - verification.since_ms >= self.expiration_ms:
                del self.verifications[producer_id]
        return len(idle)

    # --- transactions -------------------------------------------------------------------------------------------------

    @property
    def first_undecided_offset(self) -> int | None:
        """Where the oldest open transaction begins."""
        return next(iter(self._ongoing), None)

    @property
    def first_unstable_offset(self) -> int | None:
        """The same, transactions that ended above the high watermark included: the last stable offset."""
        first_open = next(iter(self._ongoing), None)
        if not self.unreplicated:
            return first_open
        first_ended = min(self.unreplicated)
        return first_ended if first_open is None else min(first_ended, first_open)

    def on_high_watermark(self, high_watermark: int) -> None:
        """Transactions whose marker lies below are decided for good."""
        if self.unreplicated:
            self.unreplicated = {f: last for f, last in self.unreplicated.items() if last >= high_watermark}

    def on_log_start(self, log_start_offset: int) -> None:
        """The log begins there now. Producers stay known, as in Kafka: a retry of a deleted batch is still a retry."""
        self.on_high_watermark(log_start_offset)
        self.end_offset = max(self.end_offset, log_start_offset)

    # --- snapshots ----------------------------------------------------------------------------------------------------

    def clear(self, end_offset: int) -> None:
        """Forget everything: before a reload, or when the log starts anew at ``end_offset``."""
        self._producers.clear()
        self._ongoing.clear()
        self.unreplicated.clear()
        self.verifications.clear()
        self.end_offset = end_offset

    def snapshot(self) -> bytes:
        """The content of a snapshot file at ``end_offset``.

        Taken every second on the loop, so it must stay quick with many producers: idle ones are not encoded again.
        """
        packed: list[bytes] = []
        for state in self._producers.values():
            if not state.packed:
                state.packed = encode_entry(entry_of(state))
            packed.append(state.packed)
        return join_snapshot(packed)

    def load(self, snapshot: Buffer, end_offset: int, now_ms: int) -> None:
        """Become what ``snapshot``, taken at ``end_offset``, says; ``CorruptSnapshot`` leaves the state as it was.

        To truncate a log: load the newest snapshot at or below the new end, then replay the batches from there.
        """
        entries = decode_snapshot(snapshot)
        self.clear(end_offset)
        # Beyond the limit, the producers with the newest batches stay; first of all those in a transaction.
        entries.sort(key=lambda entry: (entry.txn_first_offset > NO_OFFSET, entry.last_offset))
        kept = entries[-PRODUCERS_MAX:]
        for entry in kept:
            self._producers[entry.producer_id] = state_of(entry, now_ms)
        self._ongoing.update(
            sorted((entry.txn_first_offset, entry.producer_id) for entry in kept if entry.txn_first_offset > NO_OFFSET)
        )


def _later(sequence: int, steps: int) -> int:
    """Sequences run from 2^31 - 1 to 0; one step after "none yet" (-1) is 0."""
    return (sequence + steps) & 0x7FFFFFFF
