"""Sizes: the largest record that a topic takes, one byte too much, and large amounts at once."""

from __future__ import annotations

import pytest

from support.clients.base import Client, Refused, Sent
from support.clients.options import options_for
from support.verbs import Topic, create_topic
from support.wire import Wire

MESSAGE_TOO_LARGE = 10
DEFAULT_BYTES_MAX = 1_048_588


def generous(client: Client) -> dict[str, object]:
    """The client's own limits raised far above the broker's, so that the broker decides."""
    options = options_for(client.name, record_bytes_max=8 << 20)
    if client.name == "kafka-python":
        options["batch_size"] = 8 << 20
    return options


@pytest.mark.parametrize("bytes_max", [DEFAULT_BYTES_MAX, 3_000_000])
def test_a_record_may_be_as_large_as_the_topic_allows_and_no_larger(
    library: Client, wire: Wire, topic_name: str, bytes_max: int
) -> None:
    configs = {} if bytes_max == DEFAULT_BYTES_MAX else {"max.message.bytes": str(bytes_max)}
    topic = create_topic(wire, topic_name, configs=configs)
    largest = b"x" * (bytes_max - 100)
    assert library.produce(topic.name, [Sent(largest)], options=generous(library)) == [0]
    with pytest.raises(Refused) as refused:
        library.produce(topic.name, [Sent(b"x" * bytes_max)], options=generous(library))
    assert refused.value.code == MESSAGE_TOO_LARGE
    assert library.produce(topic.name, [Sent(b"after")], options=generous(library)) == [1]
    got = library.consume(topic.name, 2, options=options_for(library.name, partition_bytes_max=1_000))
    assert [len(r.value or b"") for r in got] == [len(largest), 5]


def test_tens_of_megabytes_go_in_and_out(library: Client, topic: Topic) -> None:
    value = bytes(range(256)) * 400
    sent = [Sent(value + str(n).encode()) for n in range(200)]
    assert library.produce(topic.name, sent) == list(range(200))
    got = library.consume(topic.name, 200, options=options_for(library.name, partition_bytes_max=16 << 20))
    assert [r.value for r in got] == [s.value for s in sent]
