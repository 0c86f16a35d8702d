"""Clients that speak as they did years ago: older protocol versions, no version negotiation at all."""

from __future__ import annotations

import pytest

from support.batches import CODECS
from support.clients.base import Sent
from support.clients.choose import make_client
from support.clients.options import missing_codec_package
from support.verbs import Topic, stored
from support.wire import Wire

NO_NEGOTIATION = {"api.version.request": False}

OLDER = [
    *(("confluent", {**NO_NEGOTIATION, "broker.version.fallback": v}) for v in ("0.11.0.0", "1.0.0", "2.0.0")),
    *(("kcat", {"api.version.request": "false", "broker.version.fallback": v}) for v in ("0.11.0.0", "2.0.0")),
    *(("kafka-python", {"api_version": v}) for v in ((0, 11), (1, 0), (2, 0), (2, 4), (2, 8), (3, 5), (3, 9), (4, 0))),
]


@pytest.mark.parametrize(
    ("name", "options"), OLDER, ids=lambda v: v if isinstance(v, str) else "-".join(map(str, v.values()))
)
def test_a_client_of_another_year_produces_and_consumes(
    bootstrap: str, wire: Wire, topic: Topic, name: str, options: dict[str, object]
) -> None:
    client = make_client(name, bootstrap, **options)
    sent = [Sent(b"value %d" % n * 30, b"key") for n in range(20)]
    codecs = [c for c in ("none", "gzip", "lz4") if not missing_codec_package(name, c)]
    for turn, codec in enumerate(codecs):
        assert client.produce(topic.name, sent, codec=codec) == list(range(turn * 20, turn * 20 + 20))
    got = client.consume(topic.name, 20 * len(codecs))
    assert [r.value for r in got] == [s.value for s in sent] * len(codecs)
    assert {b.codec for b in stored(wire, topic)} <= {CODECS[c] for c in codecs}
    assert client.bounds(topic.name) == (0, 20 * len(codecs))
    assert client.offset_for_time(topic.name, 0) == 0
