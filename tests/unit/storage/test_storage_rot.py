"""D4: whatever bits rot in whatever file, a start succeeds, and a read serves what was written or says CORRUPT."""

from __future__ import annotations

import asyncio
import logging
import random

import pytest

from headpond.model import BrokerError, ErrorCode
from support.batches import split
from unit.storage.storage_rig import DATA_DIR, NOW_MS, TP, Rig, make_batch, read_all

FOLDER = f"{DATA_DIR}/{TP}"


@pytest.fixture(autouse=True)
def quiet() -> object:
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("is_clean", [True, False])
def test_rotten_bits_are_found_or_harmless(is_clean: bool) -> None:
    async def run(seed: int) -> None:
        chance = random.Random(seed)
        rig = Rig()
        log = await rig.open()
        for number in range(30):
            batch = make_batch(
                2, mark=number, timestamp_ms=NOW_MS + number, producer_id=number % 3, base_sequence=number // 3 * 2
            )
            await rig.append(log, batch, epoch=number // 10, flush=True)
            if number % 12 == 11:
                await rig.checkpoint()
        written = {batch.data[16:] for batch in await read_all(log)}
        await (rig.close() if is_clean else rig.die())
        names = [name for name in await rig.files(FOLDER) if rig.disk.contents(f"{FOLDER}/{name}")]
        for name in chance.sample(names, k=min(len(names), chance.randint(1, 3))):
            for _ in range(chance.choice((1, 1, 8))):
                size = len(rig.disk.contents(f"{FOLDER}/{name}"))
                rig.disk.flip_bit(f"{FOLDER}/{name}", chance.randrange(size), chance.randrange(8))
        log = await rig.open()
        offset = log.log_start_offset
        while offset < log.log_end_offset:
            try:
                read = await log.read_cold(
                    offset, up_to_end_offset=log.log_end_offset, size_bytes_max=300, at_least_one_batch=True
                )
            except BrokerError as error:
                assert error.code in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.KAFKA_STORAGE_ERROR)
                offset += 1
                continue
            assert read.next_offset > offset
            for batch in split(bytes(read.data)):
                # A wrong CRC is for the reader to find, as with Kafka; bytes that pass it are those that were written,
                # but for the offset and the epoch, which no CRC covers.
                if batch.crc_is_right:
                    assert batch.data[16:] in written
            offset = read.next_offset
        try:
            await log.offset_for_timestamp(NOW_MS, up_to_end_offset=log.log_end_offset)
        except BrokerError as error:
            assert error.code == ErrorCode.CORRUPT_MESSAGE
        await rig.tasks.cancel_all()

    async def all_seeds() -> None:
        for seed in range(150):
            try:
                await run(seed)
            except Exception as error:
                raise AssertionError(f"seed {seed}") from error

    asyncio.run(all_seeds())
