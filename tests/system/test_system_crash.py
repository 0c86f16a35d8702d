"""kill -9 and restart: what was acknowledged is there, numbers go on, nothing comes back from the dead."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from headpond.protocol.schema.delete_topics import DeleteTopicsRequest
from headpond.protocol.schema.metadata import MetadataRequest
from headpond.protocol.schema.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from headpond.runtime.files import DiskFileSystem
from headpond.storage.commit import journal
from headpond.storage.folder.names import JOURNALS
from support.batches import build, split
from support.broker import BrokerProcess, run_headpond
from support.proxy import AnswerEater
from support.variants import kinds
from support.verbs import (
    Topic,
    append,
    create_topic,
    describe_topic,
    end_offset,
    fetch,
    new_producer,
    produce,
    produce_request,
    stored,
)
from support.waiting import eventually
from support.wire import ConnectionClosed, Wire

FENCED_EPOCH = 74
GONE = (ConnectionClosed, ConnectionError, TimeoutError)


killed_or_stopped = pytest.mark.parametrize("kill", kinds([True, False], ordinary={True}), ids=["killed", "stopped"])


class Writer(threading.Thread):
    """Writes numbered records to one partition, five in flight, until the broker is gone; remembers what was acked."""

    def __init__(self, bootstrap: str, topic: Topic, partition: int, acks: int) -> None:
        super().__init__(daemon=True)
        self.wire = Wire(bootstrap)
        self.topic, self.partition, self.acks = topic, partition, acks
        self.acked: dict[int, bytes] = {}

    def run(self) -> None:
        sent: list[bytes] = []
        answered = 0
        try:
            while True:
                while len(sent) - answered < 5:
                    value = b"%d-%d" % (self.partition, len(sent))
                    batch = build([value], codec="none")
                    request = produce_request(self.topic, batch, version=9, partition=self.partition, acks=self.acks)
                    self.wire.send(request, 9)
                    sent.append(value)
                _, response = self.wire.receive()
                answer = response.responses[0].partition_responses[0]
                assert answer.error_code == 0, answer
                self.acked[answer.base_offset] = sent[answered]
                answered += 1
        except GONE:
            self.wire.close()


@pytest.mark.parametrize("flush", kinds(["ack", "interval", "os"], ordinary={"ack", "os"}))
def test_killed_under_load_it_loses_nothing_that_it_acknowledged(
    make_broker: Callable[..., BrokerProcess], flush: str
) -> None:
    broker = make_broker(settings={"headpond.flush": flush, "log.segment.bytes": 1_048_576}).start()
    with Wire(broker.bootstrap_servers) as wire:
        topic = create_topic(wire, "orders", partitions=4)
    acked: list[dict[int, bytes]] = [{} for _ in range(4)]
    for _ in range(3):
        writers = [Writer(broker.bootstrap_servers, topic, n, -1 if n % 2 else 1) for n in range(4)]
        for writer in writers:
            writer.start()
        eventually(lambda w=writers: all(len(writer.acked) > 100 for writer in w))
        broker.kill()
        for n, writer in enumerate(writers):
            writer.join(30)
            acked[n].update(writer.acked)
        broker.start()
    with Wire(broker.bootstrap_servers) as wire:
        for n in range(4):
            found = stored(wire, topic, partition=n)
            assert all(batch.crc_is_right for batch in found)
            assert [b.base_offset for b in found] == list(range(len(found))), "no gap, one record each"
            values = {b.base_offset: b.data for b in found}
            lost = [offset for offset, value in acked[n].items() if value not in values.get(offset, b"")]
            assert lost == [], f"partition {n} lost {lost[:5]} of {len(acked[n])} acknowledged records"
            assert append(wire, topic, build([b"next"]), partition=n) == len(found)


def cut_to_the_journal(data_dir: Path, acked: list[dict[int, bytes]]) -> int:
    """What a power cut may do at the worst: what is durable by the journal alone is gone from the logs' own files. A
    log with acknowledged records above its first in the journal that are not there was synced itself since, and
    keeps what it has. Returns how many bytes were cut off."""
    cut_bytes = 0
    for (_, partition), entries in journal.read(DiskFileSystem(), str(data_dir)).items():
        noted = {entry.base_offset for entry in entries}
        first = min(noted)
        if all(offset in noted for offset in acked[partition] if offset >= first):
            (segment,) = data_dir.glob(f"orders-{partition}/*.log")
            data = segment.read_bytes()
            kept_bytes = sum(len(batch.data) for batch in split(data) if batch.base_offset < first)
            os.truncate(segment, kept_bytes)
            cut_bytes += len(data) - kept_bytes
    return cut_bytes


def killed_with_a_journal(broker: BrokerProcess, topic: Topic, partitions: int) -> list[dict[int, bytes]]:
    """Writes to every partition, and ends while the journal holds records. Returns what was acknowledged."""
    writers = [Writer(broker.bootstrap_servers, topic, n, -1) for n in range(partitions)]
    for writer in writers:
        writer.start()
    eventually(lambda: all(len(writer.acked) > 50 for writer in writers))
    eventually(lambda: any(path.exists() and path.stat().st_size for path in journals_of(broker)))
    broker.kill()
    for writer in writers:
        writer.join(30)
    return [writer.acked for writer in writers]


def journals_of(broker: BrokerProcess) -> list[Path]:
    return [broker.data_dir / name for name in JOURNALS]


def test_a_journal_of_another_version_is_refused_and_nothing_of_it_is_lost(
    make_broker: Callable[..., BrokerProcess],
) -> None:
    broker = make_broker().start()
    with Wire(broker.bootstrap_servers) as wire:
        topic = create_topic(wire, "orders", partitions=12)
    acked: list[dict[int, bytes]] = [{} for _ in range(12)]
    for _ in range(10):
        for n, more in enumerate(killed_with_a_journal(broker, topic, 12)):
            acked[n].update(more)
        if cut_to_the_journal(broker.data_dir, acked):
            break
        broker.start()  # every log had been synced itself when the kill came
    else:
        pytest.fail("the journal never had anything to give back")
    journals = [path for path in journals_of(broker) if path.exists()]
    for path in journals:
        path.rename(path.with_name(f".older{path.name.replace('.', '_')}"))
    for command in (["serve", "--listen", "127.0.0.1:0"], ["adopt"], ["adopt", "--dry-run"]):
        done = run_headpond(*command, "--data-dir", str(broker.data_dir))
        assert done.returncode == 1
        (sentence,) = done.stderr.splitlines()
        assert ".older_journal_" in sentence and "another version" in sentence
    for path in journals:
        path.with_name(f".older{path.name.replace('.', '_')}").rename(path)
    refused_in_another_format(
        journals, lambda: run_headpond("serve", "--listen", "127.0.0.1:0", "--data-dir", str(broker.data_dir))
    )
    with Wire(broker.start().bootstrap_servers) as wire:
        for n in range(12):
            values = {batch.base_offset: batch.data for batch in stored(wire, topic, partition=n)}
            assert [offset for offset, value in acked[n].items() if value not in values.get(offset, b"")] == []


def refused_in_another_format(journals: list[Path], serve: Callable[[], CompletedProcess[str]]) -> None:
    ours = [path.read_bytes() for path in journals]
    for path, content in zip(journals, ours, strict=True):
        path.write_bytes(b"JRN2" + content[4:] if content else b"")
    done = serve()
    assert done.returncode == 1 and "another version" in done.stderr, done.stderr
    for path, content in zip(journals, ours, strict=True):
        path.write_bytes(content)


def test_many_partitions_lose_nothing_acknowledged_though_their_own_files_were_not_synced(
    make_broker: Callable[..., BrokerProcess],
) -> None:
    partitions = 12
    broker = make_broker().start()
    with Wire(broker.bootstrap_servers) as wire:
        topic = create_topic(wire, "orders", partitions=partitions)
    acked: list[dict[int, bytes]] = [{} for _ in range(partitions)]
    cut_bytes = 0
    for _ in range(4):
        for n, more in enumerate(killed_with_a_journal(broker, topic, partitions)):
            acked[n].update(more)
        cut_bytes += cut_to_the_journal(broker.data_dir, acked)
        broker.start()
        assert not any(path.exists() for path in journals_of(broker))
    assert cut_bytes, "else the journal had nothing to give back"
    with Wire(broker.bootstrap_servers) as wire:
        for n in range(partitions):
            found = stored(wire, topic, partition=n)
            assert [batch.base_offset for batch in found] == list(range(len(found)))
            values = {batch.base_offset: batch.data for batch in found}
            lost = [offset for offset, value in acked[n].items() if value not in values.get(offset, b"")]
            assert lost == [], f"partition {n} lost {lost[:5]} of {len(acked[n])} acknowledged records"


@pytest.mark.parametrize("kill", [True, False], ids=["killed", "stopped"])
def test_an_idempotent_producer_goes_on_after_a_restart(fresh_broker: BrokerProcess, kill: bool) -> None:
    with Wire(fresh_broker.bootstrap_servers) as wire:
        topic = create_topic(wire, "orders")
        producer_id, epoch = new_producer(wire)

    def send(sequence: int) -> tuple[int, int]:
        batch = build([b"x", b"y"], producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
        with Wire(fresh_broker.bootstrap_servers) as wire:
            answer = produce(wire, topic, batch)
        return answer.error_code, answer.base_offset

    assert [send(sequence) for sequence in (0, 2, 4)] == [(0, 0), (0, 2), (0, 4)]
    for turn in range(2):
        fresh_broker.restart(kill=kill)
        last = 4 + 2 * turn
        assert send(last) == (0, last), "the last batch again: where it is, and not twice"
        assert send(last + 4) == (45, -1)
        assert send(last + 2) == (0, last + 2)


@killed_or_stopped
def test_producer_ids_are_never_given_twice(fresh_broker: BrokerProcess, kill: bool) -> None:
    seen: list[int] = []
    for _ in range(3):
        with Wire(fresh_broker.bootstrap_servers) as wire:
            seen += [new_producer(wire)[0] for _ in range(20)]
        fresh_broker.restart(kill=kill)
    assert len(set(seen)) == len(seen)


@killed_or_stopped
def test_topics_ids_and_settings_survive_and_the_deleted_stay_deleted(fresh_broker: BrokerProcess, kill: bool) -> None:
    with Wire(fresh_broker.bootstrap_servers) as wire:
        kept = create_topic(wire, "kept", partitions=3, configs={"retention.ms": "123456789"})
        gone = create_topic(wire, "gone")
        append(wire, kept, build([b"kept"]), partition=2)
        append(wire, gone, build([b"old"] * 5))
        state = DeleteTopicsRequest.DeleteTopicState(name="gone")
        wire.call(DeleteTopicsRequest(topics=[state], timeout_ms=10_000), 6)
        again = create_topic(wire, "gone")
        append(wire, again, build([b"new"]))
    fresh_broker.restart(kill=kill)
    with Wire(fresh_broker.bootstrap_servers) as wire:
        assert {t.name for t in wire.call(MetadataRequest(topics=None), 12).topics} == {"kept", "gone"}
        assert (describe_topic(wire, "kept"), describe_topic(wire, "gone")) == (kept, again)
        assert [b.count for b in stored(wire, kept, partition=2)] == [1]
        assert [b.count for b in stored(wire, again)] == [1], "nothing of the topic that had the name before"
        assert end_offset(wire, kept, partition=0) == 0


def epoch_of(wire: Wire, topic: Topic) -> int:
    wanted = [MetadataRequest.MetadataRequestTopic(name=topic.name)]
    return int(wire.call(MetadataRequest(topics=wanted), 12).topics[0].partitions[0].leader_epoch)


@killed_or_stopped
def test_each_start_leads_in_a_new_epoch(fresh_broker: BrokerProcess, kill: bool) -> None:
    ends: dict[int, int] = {}
    for turn in range(3):
        with Wire(fresh_broker.bootstrap_servers) as wire:
            topic = describe_topic(wire, "orders") if turn else create_topic(wire, "orders")
            epoch = epoch_of(wire, topic)
            assert epoch > max(ends, default=-1)
            append(wire, topic, build([b"x", b"y"]))
            ends[epoch] = end_offset(wire, topic)
            assert stored(wire, topic)[-1].leader_epoch == epoch
            for old, end in ends.items():
                assert epoch_end(wire, topic, old) == (old, end)
                code = fetch(wire, topic, partition_fields={"current_leader_epoch": old}).error_code
                assert code == (0 if old == epoch else FENCED_EPOCH)
        fresh_broker.restart(kill=kill)


def epoch_end(wire: Wire, topic: Topic, epoch: int) -> tuple[int, int]:
    wanted = OffsetForLeaderEpochRequest.OffsetForLeaderPartition(partition=0, leader_epoch=epoch)
    entry = OffsetForLeaderEpochRequest.OffsetForLeaderTopic(topic=topic.name, partitions=[wanted])
    answer: Any = wire.call(OffsetForLeaderEpochRequest(replica_id=-1, topics=[entry]), 4).topics[0].partitions[0]
    assert answer.error_code == 0
    return answer.leader_epoch, answer.end_offset


def test_a_real_idempotent_producer_whose_answers_were_lost_in_a_kill_repeats_without_duplicate(
    make_broker: Callable[..., BrokerProcess],
) -> None:
    from confluent_kafka import Producer

    proxy = AnswerEater()
    broker = make_broker(arguments=["--advertise", f"127.0.0.1:{proxy.port}"]).start()
    proxy.upstream_port = broker.port
    with Wire(broker.bootstrap_servers) as wire:
        topic = create_topic(wire, "orders")
    producer = Producer(
        {
            "bootstrap.servers": f"127.0.0.1:{proxy.port}",
            "enable.idempotence": True,
            "batch.num.messages": 5,
            "linger.ms": 1,
            "reconnect.backoff.max.ms": 200,
            "log_level": 0,
        }
    )
    errors: list[object] = []
    sent = 0

    def send(count: int) -> None:
        nonlocal sent
        for n in range(sent, sent + count):
            producer.produce(topic.name, b"%06d" % n, partition=0, on_delivery=lambda e, _: e and errors.append(e))
        sent += count

    def stored_end() -> int:
        producer.poll(0)
        with Wire(broker.bootstrap_servers) as wire:
            return end_offset(wire, topic)

    try:
        for _ in range(2):
            send(100)
            assert producer.flush(60) == 0
            answered = sent
            proxy.eating = True
            send(100)
            # Some of these are in the log now, and their producer can't know: it will send them again.
            eventually(lambda known=answered: stored_end() > known)
            broker.restart(kill=True)
            proxy.eating = False
            proxy.drop_connections()
            assert producer.flush(60) == 0
    finally:
        proxy.close()
    assert errors == []
    with Wire(broker.bootstrap_servers) as wire:
        found = b"".join(b.data for b in stored(wire, topic))
        assert end_offset(wire, topic) == sent == 400, "each once"
    places = [found.find(b"%06d" % n) for n in range(sent)]
    assert places == sorted(places) and -1 not in places
