"""Our codec and our table of APIs against what a real Apache Kafka 4.3.1 said, recorded by record_golden_bytes.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from headpond.protocol import apis, header
from headpond.protocol.apis import APIS, request_encoder
from support.other_side import encode_response_header


class Exchange(NamedTuple):
    key: int
    version: int
    request: bytes
    response: bytes


KEYS = {api.name: api.key for api in APIS.values()}
RECORDED = [
    Exchange(KEYS[one["api"]], one["version"], bytes.fromhex(one["request"]), bytes.fromhex(one["response"]))
    for one in json.loads(Path(__file__).with_name("golden_bytes.json").read_text())
]


def title(exchange: Exchange) -> str:
    return f"{APIS[exchange.key].name} v{exchange.version}"


@pytest.mark.parametrize("exchange", RECORDED, ids=title)
def test_what_kafka_understood_and_what_it_answered_reads_and_writes_back_the_same(exchange: Exchange) -> None:
    key, version, request, response = exchange
    head, body = header.decode_request_header(request)
    assert head[:2] == (key, version) and head.client_id == "golden"
    message, end = apis.request_decoder(key, version)(request, body)
    assert end == len(request)
    again = header.encode_request_header(key, version, head.correlation_id, head.client_id)
    assert again + request_encoder(key, version)(message) == request

    correlation_id, body = header.decode_response_header(response, key, version)
    assert correlation_id == head.correlation_id
    message, end = apis.response_decoder(key, version)(response, body)
    assert end == len(response)
    again = encode_response_header(key, version, correlation_id)
    assert again + apis.response_encoder(key, version)(message) == response


def answer(name: str, version: int) -> Any:
    response = next(one.response for one in RECORDED if one.key == KEYS[name] and one.version == version)
    _, body = header.decode_response_header(response, KEYS[name], version)
    return apis.response_decoder(KEYS[name], version)(response, body)[0]


def test_the_table_says_what_kafka_advertises() -> None:
    advertised = {a.api_key: range(a.min_version, a.max_version + 1) for a in answer("ApiVersions", 4).api_keys}
    telemetry = {71, 72}  # advertised only by a broker that has a metrics receiver
    assert {key: api.advertised for key, api in APIS.items() if key not in telemetry} == advertised


def test_the_table_says_what_the_schema_has() -> None:
    being_worked_on = {KEYS["InitProducerId"]: 6}  # in Kafka's schemas, and never advertised
    for api in APIS.values():
        known = range(api.min_version, being_worked_on.get(api.key, api.max_version) + 1)
        for message in (api.request, api.response):
            assert (api.key, known, api.flexible) == (message.KEY, message.VERSIONS, message.FLEXIBLE), api


def test_produce_is_advertised_from_0_and_served_from_3() -> None:
    assert (APIS[0].advertised, APIS[0].versions) == (range(14), range(3, 14))


def test_kafkas_answers_say_what_we_think_they_say() -> None:
    topic = answer("Metadata", 13).topics[0]
    assert (topic.name, len(topic.topic_id), len(topic.partitions)) == ("headpond-golden", 16, 2)
    assert [p.error_code for p in answer("Produce", 9).responses[0].partition_responses] == [0, 87]
    fetched = answer("Fetch", 12).responses[0].partitions
    assert [p.high_watermark for p in fetched] == [3, 0] and b"value" in fetched[0].records
    assert [t.error_code for t in answer("CreateTopics", 7).topics] == [0, 17]
    offsets = {p.partition_index: p.offset for p in answer("ListOffsets", 11).topics[0].partitions}
    assert offsets == {0: 3, 1: -1}
