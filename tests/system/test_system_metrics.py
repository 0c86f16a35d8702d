"""The metrics port of a real broker, read with Prometheus' own parsers; its guests; its logs."""

from __future__ import annotations

import http.client
import json
import re
import socket
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_open_metrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from headpond.protocol.schema.metadata import MetadataRequest
from headpond.telemetry import catalogue
from headpond.telemetry.logs import BURST
from support.batches import build
from support.broker import BrokerProcess, StartFailed, run_headpond
from support.cli import Cli
from support.verbs import Topic, append, create_topic, fetch, fetch_partition, fetch_request, produce
from support.waiting import eventually
from support.wire import Wire

TOLD = re.compile(r"metrics on http://127\.0\.0\.1:(\d+)/metrics")
OPEN_METRICS = "application/openmetrics-text; version=1.0.0"

Make = Callable[..., BrokerProcess]


class Scraped:
    """One scrape: values by sample name and labels."""

    def __init__(self, families: Any) -> None:
        self.families = list(families)
        self.values = {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in self.families
            for sample in family.samples
        }

    def __call__(self, name: str, /, **labels: str) -> float:
        return float(self.values[name, tuple(sorted(labels.items()))])

    def labels(self, name: str) -> list[dict[str, str]]:
        return [dict(labels) for sample, labels in self.values if sample == name]


def metrics_port(broker: BrokerProcess) -> int:
    found = eventually(lambda: TOLD.search(broker.logs()), what=broker.logs)
    return int(found.group(1))


def ask(broker: BrokerProcess, path: str, method: str = "GET", accept: str = "") -> tuple[int, str, str]:
    connection = http.client.HTTPConnection("127.0.0.1", metrics_port(broker), timeout=30)
    try:
        connection.request(method, path, headers={"Accept": accept})
        response = connection.getresponse()
        return response.status, response.read().decode(), response.headers["Content-Type"]
    finally:
        connection.close()


def scrape(broker: BrokerProcess) -> Scraped:
    status, text, _ = ask(broker, "/metrics")
    assert status == 200, text
    return Scraped(parse_text(text))


@pytest.fixture
def observed(make_broker: Make) -> BrokerProcess:
    return make_broker(arguments=["--metrics-listen", "127.0.0.1:0"]).start()


def test_both_formats_hold_the_whole_catalogue_and_nothing_else(observed: BrokerProcess) -> None:
    with Wire(observed.bootstrap_servers) as wire:
        append(wire, create_topic(wire, "orders", partitions=2), build([b"x"]))
    _, text, content_type = ask(observed, "/metrics")
    assert content_type == "text/plain; version=0.0.4; charset=utf-8"
    named = re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE)
    assert named == [(each.name, "gauge" if each.kind == "info" else each.kind) for each in catalogue.ALL]
    assert list(parse_text(text))
    _, text, content_type = ask(observed, "/metrics", accept=OPEN_METRICS)
    assert content_type == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    families = {family.name: family for family in parse_open_metrics(text)}
    assert families.keys() == {family.base for family in catalogue.ALL}
    for family in catalogue.ALL:
        parsed = families[family.base]
        assert (parsed.type, parsed.unit, parsed.documentation) == (family.kind, family.unit, family.help)
    observed.stop()


def test_requests_bytes_and_errors_are_counted(observed: BrokerProcess) -> None:
    batch = build([b"x" * 100])
    with Wire(observed.bootstrap_servers) as wire:
        topic = create_topic(wire, "orders", partitions=2)
        before = scrape(observed)
        for _ in range(250):
            append(wire, topic, batch, acks=1)
        for _ in range(50):
            append(wire, topic, batch, partition=1, acks=-1)
        for _ in range(3):
            produce(wire, Topic("nowhere", bytes(16)), batch, version=9)
        for _ in range(20):
            fetch(wire, topic, version=11)
        wire.call(MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="no-such")],
                                  allow_auto_topic_creation=False), 9)  # fmt: skip
        after = scrape(observed)
    assert after("headpond_requests_total", api="Produce") == 303
    assert after("headpond_requests_total", api="Fetch") == 20
    assert after("headpond_requests_total", api="CreateTopics") == before("headpond_requests_total", api="CreateTopics")
    error = "UNKNOWN_TOPIC_OR_PARTITION"
    assert after("headpond_response_errors_total", api="Produce", error=error) == 3
    assert after("headpond_response_errors_total", api="Metadata", error=error) == 1
    assert after("headpond_received_bytes_total") - before("headpond_received_bytes_total") > 300 * len(batch)
    assert after("headpond_sent_bytes_total") - before("headpond_sent_bytes_total") > 20 * len(batch)
    assert after("headpond_connections") == 1
    assert after("headpond_request_duration_seconds_count", api="Metadata") >= 1
    assert 0 < after("headpond_request_duration_seconds_count", api="Produce") <= 303
    assert 0 < after("headpond_request_duration_seconds_sum", api="Produce") < 60
    assert after("headpond_request_parked_seconds_count", api="Produce") > 0, "acks=all waits for its flush"


def test_partitions_tell_their_offsets_and_sizes(observed: BrokerProcess) -> None:
    batch = build([b"x"] * 10)
    with Wire(observed.bootstrap_servers) as wire:
        topic = create_topic(wire, "orders", partitions=3)
        for _ in range(4):
            append(wire, topic, batch, partition=1)
    found = scrape(observed)
    at = {"topic": "orders", "partition": "1"}
    assert found("headpond_log_start_offset", **at) == 0
    assert found("headpond_log_end_offset", **at) == found("headpond_log_high_watermark", **at) == 40
    assert found("headpond_log_size_bytes", **at) == found("headpond_log_appended_bytes_total", **at) == 4 * len(batch)
    assert found("headpond_log_segments", **at) == 1
    assert found("headpond_log_end_offset", topic="orders", partition="2") == 0
    assert (found("headpond_topics"), found("headpond_partitions"), found("headpond_partitions_led")) == (1, 3, 3)
    assert found("headpond_partitions_without_series") == 0
    assert found("headpond_fsync_duration_seconds_count", call="fdatasync") >= 1
    assert found("headpond_group_commit_records_sum") == 40
    assert found("headpond_group_commit_logs_sum") >= 1


def test_partitions_beyond_the_limit_are_counted_together(make_broker: Make) -> None:
    observed = make_broker(
        arguments=["--metrics-listen", "127.0.0.1:0"], settings={"headpond.metrics.partitions.max": 3}
    ).start()
    with Wire(observed.bootstrap_servers) as wire:
        topic = create_topic(wire, "orders", partitions=10)
        for partition in range(10):
            append(wire, topic, build([b"x"]), partition=partition)
    found = scrape(observed)
    assert len(found.labels("headpond_log_end_offset")) == 4
    assert found("headpond_log_end_offset", topic="other", partition="other") == 7
    assert found("headpond_partitions_without_series") == 7
    assert found("headpond_partitions") == 10


def test_a_long_poll_is_seen_while_it_waits_and_timed_when_it_ends(observed: BrokerProcess) -> None:
    with Wire(observed.bootstrap_servers) as waiting, Wire(observed.bootstrap_servers) as wire:
        topic = create_topic(wire, "orders")
        append(wire, topic, build([b"x"]))
        waiting.send(fetch_request({topic: [fetch_partition(offset=1)]}, version=11, max_wait_ms=20_000), 11)
        eventually(lambda: scrape(observed)("headpond_parked_requests", api="Fetch") == 1, what="the parked fetch")
        append(wire, topic, build([b"y"]))
        waiting.receive()
        found = scrape(observed)
        assert found("headpond_parked_requests", api="Fetch") == 0
        assert found("headpond_request_parked_seconds_count", api="Fetch") == 1
        parked_s = found("headpond_request_parked_seconds_sum", api="Fetch")
        assert 0 < parked_s <= found("headpond_request_duration_seconds_sum", api="Fetch")


def test_connections_are_counted_as_they_come_go_and_are_refused(make_broker: Make) -> None:
    observed = make_broker(arguments=["--metrics-listen", "127.0.0.1:0"], settings={"max.connections": 2}).start()
    with Wire(observed.bootstrap_servers) as first, Wire(observed.bootstrap_servers) as second:
        for wire in (first, second):
            create_topic(wire, f"topic-{wire.socket.getsockname()[1]}")
        with Wire(observed.bootstrap_servers) as third:
            third.assert_closed()
        found = scrape(observed)
        assert found("headpond_connections_opened_total") == 3
        assert found("headpond_connections_refused_total", reason="max_connections") == 1
        second.send_raw(b"\x7f\xff\xff\xffgarbage")
        second.assert_closed()
    found = eventually(lambda: (now := scrape(observed))("headpond_connections") == 0 and now, what="all have gone")
    assert found("headpond_connections_dropped_total", reason="malformed") == 1
    assert found("headpond_log_messages_total", level="WARNING") >= 2


def test_retention_and_recovery_leave_their_figures(make_broker: Make) -> None:
    observed = make_broker(
        arguments=["--metrics-listen", "127.0.0.1:0"],
        settings={"log.retention.check.interval.ms": 50, "log.initial.task.delay.ms": 0},
    ).start()
    with Wire(observed.bootstrap_servers) as wire:
        configs = {"segment.bytes": str(1 << 20), "retention.bytes": str(1 << 20)}
        topic = create_topic(wire, "short", configs=configs)
        for _ in range(5):
            append(wire, topic, build([bytes(600_000)]))
    found = eventually(
        lambda: (now := scrape(observed))("headpond_retention_segments_total") >= 2 and now, what="retention"
    )
    assert found("headpond_retention_runs_total") >= 1
    assert found("headpond_retention_bytes_total") >= 2 * 600_000
    assert found("headpond_recovery_scanned_bytes") == 0
    with Wire(observed.bootstrap_servers) as wire:
        append(wire, topic, build([bytes(300_000)]))
    observed.kill()
    observed.start()
    assert scrape(observed)("headpond_recovery_scanned_bytes") > 0


def test_health_and_readiness(observed: BrokerProcess) -> None:
    assert ask(observed, "/healthz")[:2] == (200, "ok\n")
    assert ask(observed, "/readyz")[:2] == (200, "ok\n")
    assert ask(observed, "/readyz", "HEAD")[:2] == (200, "")
    assert ask(observed, "/else")[0] == 404
    found = scrape(observed)
    assert found("headpond_ready") == 1
    assert found("headpond_data_folder_failed") == 0
    assert 0 < found("headpond_data_folder_free_bytes") < found("headpond_data_folder_capacity_bytes")
    assert 1e6 < found("process_resident_memory_bytes") < 1e9
    assert found("process_cpu_seconds_total") > 0
    assert 3 < found("process_open_fds") < found("process_max_fds")
    (build_info,) = found.labels("headpond_build_info")
    assert build_info["broker_id"] == "1" and build_info["flush"] == "ack" and build_info["python"]


def test_guests_who_misbehave_disturb_nobody(observed: BrokerProcess) -> None:
    port = metrics_port(observed)
    guests = []
    for number in range(40):
        guest = socket.create_connection(("127.0.0.1", port))
        guests.append(guest)
        if number % 4 == 0:
            guest.sendall(b"\x00\x00\x00\x10garbage" * 100)
        elif number % 4 == 1:
            guest.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
            guest.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")  # and never reads
        elif number % 4 == 2:
            guest.sendall(b"GET /metrics HTTP/1.1\r\nHo")
    with Wire(observed.bootstrap_servers) as wire:
        append(wire, create_topic(wire, "orders"), build([b"x"]))
    assert ask(observed, "/healthz")[0] == 200
    for guest in guests:
        guest.close()
    assert scrape(observed)("headpond_scrape_failures_total") == 0
    observed.stop()


def test_a_port_in_use_is_told_and_nothing_is_started(make_broker: Make, observed: BrokerProcess) -> None:
    port = metrics_port(observed)
    second = make_broker("second", arguments=["--metrics-listen", f"127.0.0.1:{port}"])
    with pytest.raises(StartFailed):
        second.start()
    assert second.wait_exit() == 1
    assert f"127.0.0.1:{port} is in use" in second.logs() and "Traceback" not in second.logs()
    assert "listening" not in second.logs()


@pytest.mark.parametrize(
    ("arguments", "env"),
    [
        (["--metrics-listen", "9404"], {}),
        (["--set", "headpond.metrics.listen=127.0.0.1:x"], {}),
        ([], {"HEADPOND_METRICS_LISTEN": "::1:9404"}),
    ],
)
def test_an_address_that_is_none_is_refused_at_the_start(arguments: list[str], env: dict[str, str]) -> None:
    done = run_headpond("serve", *arguments, env=env)
    assert done.returncode == 2
    assert "is not an address" in done.stderr and len(done.stderr.splitlines()) == 1


def test_without_the_flag_nothing_listens_and_nothing_is_said(make_broker: Make) -> None:
    quiet = make_broker().start()
    quiet.stop()
    assert "metrics" not in quiet.logs()


def test_every_line_of_a_json_log_is_an_object_and_bad_clients_do_not_flood_it(make_broker: Make) -> None:
    observed = make_broker(
        arguments=["--metrics-listen", "127.0.0.1:0"], settings={"headpond.log.format": "json"}
    ).start()
    for _ in range(5 * BURST):
        with Wire(observed.bootstrap_servers) as wire:
            wire.send_raw(b"GET / HTTP/1.1\r\n\r\n")
            wire.assert_closed()
    assert scrape(observed)("headpond_log_messages_suppressed_total") == 4 * BURST
    observed.stop()
    lines = [json.loads(line) for line in observed.logs().splitlines() if line.startswith("{")]
    assert len(lines) == len(observed.logs().splitlines()) - len(observed.stdout().splitlines())
    said = [line["message"] for line in lines]
    assert sum("HTTP request" in message for message in said) == BURST
    assert said[-2:] == ["stopping", "stopped"]
    assert all({"time", "level", "logger", "message"} <= line.keys() for line in lines)


def test_the_broker_tells_the_lag_of_groups_and_how_they_rebalance(observed: BrokerProcess) -> None:
    headpond = Cli(observed.bootstrap_servers)
    headpond.ok("topics", "create", "orders", "--partitions", 2)
    headpond.ok("produce", "orders", "--partition", 0, stdin="a\nb\nc\n")
    headpond.ok("groups", "reset-offsets", "billing", "--topic", "orders", "--to-earliest", "--execute")
    shown = scrape(observed)
    assert shown("headpond_group_lag", group="billing", topic="orders", partition="0") == 3
    assert shown("headpond_group_lag", group="billing", topic="orders", partition="1") == 0
    assert shown("headpond_groups", type="classic", state="Empty") == 1
    assert shown("headpond_group_offsets") == 2
    consumer = Consumer(
        {"bootstrap.servers": observed.bootstrap_servers, "group.id": "billing", "group.protocol": "consumer"}
    )
    consumer.subscribe(["orders"])
    assert consumer.consume(3, timeout=30)
    shown = eventually(
        lambda: (now := scrape(observed))("headpond_groups", type="consumer", state="Stable") == 1 and now,
        what="a group that is stable",
    )
    assert shown("headpond_group_rebalances_total", type="consumer") == 1
    assert shown("headpond_group_rebalance_duration_seconds_count", type="consumer") == 1
    consumer.close()  # commits
    shown = scrape(observed)
    assert shown("headpond_group_lag", group="billing", topic="orders", partition="0") == 0
    assert shown("headpond_groups", type="consumer", state="Empty") == 1


def test_open_transactions_are_counted_while_they_are_open(observed: BrokerProcess) -> None:
    producer = Producer({"bootstrap.servers": observed.bootstrap_servers, "transactional.id": "grocer"})
    producer.init_transactions(30)
    assert scrape(observed)("headpond_transactions_open") == 0
    producer.begin_transaction()
    producer.produce("orders", b"x")
    assert producer.flush(30) == 0
    shown = scrape(observed)
    assert shown("headpond_transactions_open") == 1 and shown("headpond_transaction_oldest_age_seconds") > 0
    producer.commit_transaction(30)
    eventually(lambda: scrape(observed)("headpond_transactions_open") == 0, what="a transaction that is over")
