"""A producer that had several batches under way when the broker stopped sends all of them again."""

from __future__ import annotations

import asyncio

import pytest

from headpond.model import BrokerError
from headpond.storage.producers.producers import BATCHES_KEPT
from unit.storage.storage_rig import Rig, make_batch, writable

PRODUCER = 7


@pytest.mark.parametrize("is_clean", [True, False])
def test_all_batches_of_the_window_are_known_as_duplicates_after_a_restart(is_clean: bool) -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        for sequence in range(8):
            for producer_id in (PRODUCER, PRODUCER + 1):
                batch = make_batch(mark=sequence, producer_id=producer_id, base_sequence=sequence)
                await rig.append(log, batch, flush=True)
        if is_clean:
            await rig.close()
        else:
            log.bytes_since_snapshot = 1 << 30  # a snapshot is due
            await rig.checkpoint()
            await rig.die()
        log = await rig.open()
        state = log.producers.get(PRODUCER)
        assert state is not None and state.last_sequence == 7
        in_last_segment = [n for n in range(8) if 2 * n >= log.segments[-1].base_offset][-BATCHES_KEPT:]
        assert len(in_last_segment) > 1, "else there is nothing to be found"
        for sequence in in_last_segment:
            _, header = writable(make_batch(mark=sequence, producer_id=PRODUCER, base_sequence=sequence))
            original = log.producers.check(header)
            assert original is not None and original.base_offset == 2 * sequence
        _, header = writable(make_batch(mark=0, producer_id=PRODUCER, base_sequence=0))
        with pytest.raises(BrokerError, match="Out of order"):
            log.producers.check(header)
        _, header = writable(make_batch(mark=8, producer_id=PRODUCER, base_sequence=8))
        assert log.producers.check(header) is None

    asyncio.run(run())
