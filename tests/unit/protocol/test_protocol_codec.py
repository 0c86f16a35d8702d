"""The codec on its own: what we write we can read, and nothing that arrives can do more than be refused."""

from __future__ import annotations

import random
import struct
import tracemalloc
from collections.abc import Iterator

import msgspec
import pytest

from headpond.protocol.codec import appender, decoder, encoder
from headpond.protocol.errors import MalformedMessage, UnsupportedField, UnsupportedVersion
from headpond.protocol.facts import struct_fields
from headpond.protocol.header import decode_request_header
from headpond.protocol.schema.api_versions import ApiVersionsRequest
from headpond.protocol.schema.create_topics import CreateTopicsRequest
from headpond.protocol.schema.describe_topic_partitions import DescribeTopicPartitionsRequest
from headpond.protocol.schema.fetch import FetchRequest, FetchResponse
from headpond.protocol.schema.init_producer_id import InitProducerIdRequest
from headpond.protocol.schema.metadata import MetadataRequest
from headpond.protocol.schema.produce import ProduceRequest
from headpond.protocol.schema.sasl_authenticate import SaslAuthenticateRequest
from headpond.protocol.types import Message
from unit.protocol.made_up_messages import all_messages, for_all, message_name, messages

# An empty string is a byte on the wire, an empty list in memory 56: Kafka's own objects have the same ratio.
MEMORY_PER_BYTE_MAX = 64

every_message = pytest.mark.parametrize("message", all_messages(), ids=message_name)


@every_message
def test_every_version_reads_back_what_it_wrote(message: type[Message]) -> None:
    for version in message.VERSIONS:
        encode, decode = encoder(message, version), decoder(message, version)

        def check(made_up, encode=encode, decode=decode):
            data = encode(made_up)
            assert decode(data, 0) == (made_up, len(data))
            # In the middle of a larger buffer, of another type:
            read, end = decode(memoryview(bytearray(b"\xff" * 3 + data + b"\xff")), 3)
            assert (read, end) == (made_up, 3 + len(data))

        for_all(messages(message, version), check, examples=6)


@every_message
def test_no_bytes_do_more_than_be_refused(message: type[Message]) -> None:
    """Random bytes, every truncation of a valid message, and mutations of it: a message or MalformedMessage."""
    for version in message.VERSIONS:
        decode, encode = decoder(message, version), encoder(message, version)
        dice = random.Random(f"{message.__name__} {version}")
        for _ in range(25):
            _read_or_refuse(decode, dice.randbytes(dice.randrange(40)))

        def check(made_up, decode=decode, encode=encode, dice=dice):
            data = encode(made_up)
            for end in dice.sample(range(len(data)), min(len(data), 25)):
                with pytest.raises(MalformedMessage):
                    decode(data[:end], 0)
            for _ in range(25):
                mutant = bytearray(data or b"\0")
                for _ in range(dice.randint(1, 3)):
                    mutant[dice.randrange(len(mutant))] = dice.choice((0, 1, 0x7F, 0x80, 0xFF, dice.randrange(256)))
                _read_or_refuse(decode, mutant)

        for_all(messages(message, version), check, examples=3)


def _read_or_refuse(decode, data: bytes | bytearray) -> None:
    try:
        _, end = decode(data, 0)
    except MalformedMessage:
        return
    assert 0 <= end <= len(data)


@every_message
def test_the_densest_bytes_cost_a_bounded_multiple_of_their_size(message: type[Message]) -> None:
    """Lists of the shortest possible elements are the worst that a peer can send."""
    version = message.VERSIONS[-1]
    encode, decode = encoder(message, version), decoder(message, version)
    for worst in _with_one_dense_list(message, message, version):
        data = encode(worst)
        tracemalloc.start()
        decode(data, 0)
        _, peak_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak_bytes < MEMORY_PER_BYTE_MAX * len(data)


def _with_one_dense_list(kind: type[msgspec.Struct], message: type[Message], version: int) -> Iterator[msgspec.Struct]:
    """Structs as short as can be, but for one list in them or below them."""
    for field in struct_fields(kind, message):
        if version not in field.versions or not (field.is_list or field.struct):
            continue
        values: list[object] = []
        if field.struct is None:
            values.append([{"string": "", "bytes": b"", "uuid": bytes(16)}.get(field.wire, 0)] * 200)
        else:
            if field.is_list:
                values.append([_shortest(field.struct)] * 200)
            for inner in _with_one_dense_list(field.struct, message, version):
                values.append([inner] if field.is_list else inner)
        for value in values:
            whole = _shortest(kind)
            setattr(whole, field.name, value)
            yield whole


def _shortest(kind: type[msgspec.Struct]) -> msgspec.Struct:
    return kind(records=b"") if "records" in kind.__struct_fields__ else kind()


@every_message
def test_two_messages_never_share_a_list(message: type[Message]) -> None:
    one, other = message(), message()
    for name in message.__struct_fields__:
        value = getattr(one, name)
        if isinstance(value, list):
            assert value is not getattr(other, name)


@pytest.mark.parametrize("count", [b"\x7f\xff\xff\xff", b"\x00\x00\x00\x05"])
def test_a_count_beyond_the_buffer_is_refused_before_anything_is_built(count: bytes) -> None:
    with pytest.raises(MalformedMessage, match="more topics than bytes"):
        decoder(MetadataRequest, 1)(count + b"\0\0\0\0", 0)


@pytest.mark.parametrize("varint", [b"\xff\xff\xff\xff\xff\x01", b"\xff\xff\xff\xff\x0f", b"\x80\x80\x80\x80\x80\x00"])
def test_varints_that_are_too_long_or_too_large_are_refused(varint: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decoder(ApiVersionsRequest, 3)(varint + b"\0" * 64, 0)


def test_a_compact_string_longer_than_kafka_allows_is_refused_both_ways() -> None:
    too_long = b"\x81\x80\x02" + b"x" * 0x8000 + b"\x01\0"
    with pytest.raises(MalformedMessage, match="32768"):
        decoder(ApiVersionsRequest, 3)(too_long, 0)
    with pytest.raises(ValueError, match="32768"):
        encoder(ApiVersionsRequest, 3)(ApiVersionsRequest(client_software_name="x" * 0x8000))
    longest = ApiVersionsRequest(client_software_name="x" * 0x7FFF)
    assert decoder(ApiVersionsRequest, 3)(encoder(ApiVersionsRequest, 3)(longest), 0)[0] == longest


def test_bytes_that_are_no_utf8_are_replaced_as_kafka_does() -> None:
    request, _ = decoder(ApiVersionsRequest, 3)(b"\x03\xff\xfe\x01\0", 0)
    assert request.client_software_name == "\ufffd\ufffd"
    request, _ = decoder(ApiVersionsRequest, 3)(b"\x07a\xffb\xc3\xa9\xf0\x01\0", 0)
    assert request.client_software_name == "a\ufffdbé\ufffd"


@pytest.mark.parametrize(
    ("bad", "good", "is_taken"),
    [(10_922, 1, True), (10_922, 2, False), (10_923, 0, False), (1, 32_764, True), (1, 32_765, False)],
)
def test_a_string_that_could_not_be_written_again_once_it_is_utf8_is_refused(
    bad: int, good: int, is_taken: bool
) -> None:
    raw = b"x" * good + b"\xff" * bad
    message = struct.pack(">h", len(raw)) + raw + struct.pack(">i", 60_000)
    header = struct.pack(">hhih", 22, 0, 1, len(raw)) + raw
    if is_taken:
        request, _ = decoder(InitProducerIdRequest, 0)(message, 0)
        assert decode_request_header(header)[0].client_id == request.transactional_id == "x" * good + "\ufffd" * bad
        assert len(encoder(InitProducerIdRequest, 0)(request)) > 32_000
    else:
        with pytest.raises(MalformedMessage, match="no UTF-8"):
            decoder(InitProducerIdRequest, 0)(message, 0)
        with pytest.raises(MalformedMessage, match="no UTF-8"):
            decode_request_header(header)


def test_null_where_the_version_has_no_null_is_refused_both_ways() -> None:
    with pytest.raises(MalformedMessage, match="topics is null"):
        decoder(MetadataRequest, 0)(b"\xff\xff\xff\xff", 0)
    assert decoder(MetadataRequest, 1)(b"\xff\xff\xff\xff", 0)[0].topics is None
    with pytest.raises(UnsupportedField, match="can't be null in v0"):
        encoder(MetadataRequest, 0)(MetadataRequest(topics=None))


def test_a_field_that_the_version_lacks_is_an_error_unless_it_may_be_dropped() -> None:
    topic = CreateTopicsRequest.CreatableTopic(name="t")
    encoder(CreateTopicsRequest, 2)(CreateTopicsRequest(topics=[topic]))
    forgotten = FetchRequest.ForgottenTopic(topic="t")
    with pytest.raises(UnsupportedField, match=r"FetchRequest.forgotten_topics_data=.* is not in v6"):
        encoder(FetchRequest, 6)(FetchRequest(forgotten_topics_data=[forgotten]))
    dropped = FetchRequest(session_id=7, rack_id="r")
    assert encoder(FetchRequest, 6)(dropped) == encoder(FetchRequest, 6)(FetchRequest())


def test_a_version_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UnsupportedVersion):
        decoder(FetchRequest, 3)
    with pytest.raises(UnsupportedVersion):
        encoder(FetchRequest, 99)


def test_unknown_tagged_fields_are_skipped_whatever_their_order() -> None:
    plain = encoder(ApiVersionsRequest, 3)(ApiVersionsRequest(client_software_name="a", client_software_version="b"))
    tagged = plain[:-1] + b"\x03" + b"\x63\x02zz" + b"\x05\x00" + b"\x80\x01\x01q"
    request, end = decoder(ApiVersionsRequest, 3)(tagged, 0)
    assert (request.client_software_name, request.client_software_version, end) == ("a", "b", len(tagged))


def test_tagged_fields_are_written_only_when_set_and_the_last_of_two_counts() -> None:
    encode, decode = encoder(FetchRequest, 15), decoder(FetchRequest, 15)
    empty = encode(FetchRequest())
    with_cluster = encode(FetchRequest(cluster_id="c"))
    assert empty.endswith(b"\0") and with_cluster == empty[:-1] + b"\x01\x00\x02\x02c"
    twice = empty[:-1] + b"\x02\x00\x02\x02c\x00\x02\x02d"
    assert decode(twice, 0)[0].cluster_id == "d"


@pytest.mark.parametrize(
    "section", [b"\x01\x00\x05\x02c", b"\x01\x00\x01\x02c", b"\x01\x00\x02\x09c", b"\x05\x00\x02\x02c"]
)
def test_tagged_fields_that_lie_about_their_size_or_number_are_refused(section: bytes) -> None:
    empty = encoder(FetchRequest, 15)(FetchRequest())
    with pytest.raises(MalformedMessage):
        decoder(FetchRequest, 15)(empty[:-1] + section, 0)


def test_a_tag_of_a_later_version_is_refused_as_kafka_does() -> None:
    later = encoder(FetchRequest, 15)(FetchRequest(replica_state=FetchRequest.ReplicaState(1, 2)))
    section = later[len(encoder(FetchRequest, 15)(FetchRequest())) - 1 :]
    with pytest.raises(MalformedMessage, match="tag of another version"):
        decoder(FetchRequest, 14)(encoder(FetchRequest, 14)(FetchRequest())[:-1] + section, 0)


def test_a_struct_may_be_null() -> None:
    request = DescribeTopicPartitionsRequest(cursor=None)
    data = encoder(DescribeTopicPartitionsRequest, 0)(request)
    assert data.endswith(b"\xff\0")
    assert decoder(DescribeTopicPartitionsRequest, 0)(data, 0)[0].cursor is None
    cursor = DescribeTopicPartitionsRequest.Cursor(topic_name="t", partition_index=3)
    data = encoder(DescribeTopicPartitionsRequest, 0)(DescribeTopicPartitionsRequest(cursor=cursor))
    assert decoder(DescribeTopicPartitionsRequest, 0)(data, 0)[0].cursor == cursor


def test_only_records_point_into_the_buffer() -> None:
    partition = ProduceRequest.PartitionProduceData(index=1, records=b"batch")
    topic = ProduceRequest.TopicProduceData(name="topic", partition_data=[partition])
    buffer = bytearray(encoder(ProduceRequest, 9)(ProduceRequest(transactional_id="id", topic_data=[topic])))
    request, _ = decoder(ProduceRequest, 9)(memoryview(buffer), 0)
    buffer[:] = bytes(len(buffer))
    assert (request.transactional_id, request.topic_data[0].name) == ("id", "topic")
    assert bytes(request.topic_data[0].partition_data[0].records) == bytes(5)


@pytest.mark.parametrize("version", [1, 2])
def test_bytes_are_copied_out_of_the_buffer(version: int) -> None:
    buffer = bytearray(encoder(SaslAuthenticateRequest, version)(SaslAuthenticateRequest(auth_bytes=b"secret")))
    request, _ = decoder(SaslAuthenticateRequest, version)(memoryview(buffer), 0)
    buffer[:] = bytes(len(buffer))
    assert type(request.auth_bytes) is bytes and request.auth_bytes == b"secret"


def test_an_appender_continues_what_is_there() -> None:
    frame = bytearray(b"head")
    response = FetchResponse(session_id=5)
    appender(FetchResponse, 12)(frame, response)
    assert frame == b"head" + encoder(FetchResponse, 12)(response)
