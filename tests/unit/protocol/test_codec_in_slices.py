"""In slices the codecs do what they do at once, pause after a bounded part of it, and refuse what has no end."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar

import pytest

from headpond.protocol.apis import APIS
from headpond.protocol.codec import appender_in_slices, decoder, decoder_in_slices, encoder
from headpond.protocol.errors import MalformedMessage
from headpond.protocol.schema.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from headpond.protocol.schema.find_coordinator import FindCoordinatorRequest
from headpond.protocol.schema.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from headpond.protocol.types import Message
from headpond.protocol.wire import (
    ELEMENT_BYTES,
    ELEMENT_NUMBERS,
    ELEMENT_TAGGED_BYTES,
    ELEMENTS_MAX,
    SLICE_ELEMENTS,
    TAGGED_FIELDS_MAX,
    varint,
)
from unit.protocol.made_up_messages import for_all, message_name, messages

T = TypeVar("T")

every_request = pytest.mark.parametrize("message", [api.request for api in APIS.values()], ids=message_name)
every_response = pytest.mark.parametrize("message", [api.response for api in APIS.values()], ids=message_name)


def pauses_and_result(work: Generator[None, None, T]) -> tuple[int, T]:
    pauses = 0
    while True:
        try:
            next(work)
        except StopIteration as finished:
            return pauses, finished.value
        pauses += 1


def decoded(message: type[Message], version: int, data: bytes) -> tuple[int, Any, int]:
    """The pauses, the message and how many elements it has."""
    pauses, (read, end, elements) = pauses_and_result(decoder_in_slices(message, version)(data, 0))
    assert end == len(data)
    return pauses, read, elements


@every_request
def test_a_request_that_is_decoded_in_slices_is_the_same(message: type[Message]) -> None:
    for version in message.VERSIONS:
        encode = encoder(message, version)

        def check(made_up: Any, encode: Any = encode, version: int = version) -> None:
            assert decoded(message, version, encode(made_up))[1] == made_up

        for_all(messages(message, version), check, examples=3)


@every_response
def test_an_answer_that_is_encoded_in_slices_is_the_same(message: type[Message]) -> None:
    for version in message.VERSIONS:
        encode, append = encoder(message, version), appender_in_slices(message, version)

        def check(made_up: Any, encode: Any = encode, append: Any = append) -> None:
            out = bytearray()
            pauses_and_result(append(out, made_up))
            assert out == encode(made_up)

        for_all(messages(message, version), check, examples=3)


def test_a_slice_has_a_bounded_number_of_elements_wherever_they_are() -> None:
    topics = OffsetFetchRequest.OffsetFetchRequestTopics
    groups = [
        OffsetFetchRequest.OffsetFetchRequestGroup(
            group_id=f"g{number}", topics=[topics(name=f"t{each}", partition_indexes=[0, 1]) for each in range(300)]
        )
        for number in range(30)
    ]
    request = OffsetFetchRequest(groups=groups)
    pauses, read, elements = decoded(OffsetFetchRequest, 8, encoder(OffsetFetchRequest, 8)(request))
    assert read == request
    assert elements == 30 + 30 * 300 + 30 * 300 * 2
    assert pauses >= (30 + 30 * 300) // SLICE_ELEMENTS


def test_long_texts_lists_of_numbers_and_unknown_tagged_fields_fill_a_slice_too() -> None:
    texts = FindCoordinatorRequest(coordinator_keys=["x" * 30_000] * 100)
    pauses, _, _ = decoded(FindCoordinatorRequest, 4, encoder(FindCoordinatorRequest, 4)(texts))
    assert pauses >= 100 * 30_000 // ELEMENT_BYTES // SLICE_ELEMENTS

    topic = OffsetFetchRequest.OffsetFetchRequestTopic
    numbers = OffsetFetchRequest(group_id="g", topics=[topic(name="t", partition_indexes=list(range(500_000)))])
    pauses, read, _ = decoded(OffsetFetchRequest, 6, encoder(OffsetFetchRequest, 6)(numbers))
    assert read == numbers
    assert pauses >= 500_000 // ELEMENT_NUMBERS // SLICE_ELEMENTS

    keys = varint(101) + (b"\x02k") * 100
    tagged = varint(TAGGED_FIELDS_MAX) + b"\x63\x00" * TAGGED_FIELDS_MAX
    pauses, _, _ = decoded(FindCoordinatorRequest, 4, b"\0" + keys + tagged)
    assert pauses >= 1 and TAGGED_FIELDS_MAX * 2 // ELEMENT_TAGGED_BYTES > SLICE_ELEMENTS


def test_what_was_encoded_may_be_taken_away_in_every_pause() -> None:
    row = DescribeGroupsResponse.DescribedGroup
    response = DescribeGroupsResponse(groups=[row(group_id=f"g{number}") for number in range(10_000)])
    out, taken, pauses = bytearray(), bytearray(), 0
    for _ in appender_in_slices(DescribeGroupsResponse, 0)(out, response):
        taken += out
        out.clear()
        pauses += 1
    assert taken + out == encoder(DescribeGroupsResponse, 0)(response)
    assert pauses == 10_000 // SLICE_ELEMENTS


@pytest.mark.parametrize("in_slices", [False, True])
def test_a_request_with_more_than_a_million_elements_is_refused_before_they_are_built(in_slices: bool) -> None:
    data = (ELEMENTS_MAX + 1).to_bytes(4, "big") + bytes(2 * (ELEMENTS_MAX + 1))
    with pytest.raises(MalformedMessage, match="too many groups"):
        if in_slices:
            next(decoder_in_slices(DescribeGroupsRequest, 0)(data, 0))
        else:
            decoder(DescribeGroupsRequest, 0)(data, 0)


def test_the_elements_of_all_arrays_of_a_request_count_together() -> None:
    topic = OffsetFetchRequest.OffsetFetchRequestTopic
    half = list(range(ELEMENTS_MAX // 2))
    request = OffsetFetchRequest(group_id="g", topics=[topic(name="t", partition_indexes=half)] * 2)
    with pytest.raises(MalformedMessage, match="too many elements"):
        decoded(OffsetFetchRequest, 6, encoder(OffsetFetchRequest, 6)(request))


def test_an_answer_may_have_more_than_a_million_elements() -> None:
    count = ELEMENTS_MAX + 1
    topic = OffsetFetchResponse.OffsetFetchResponseTopic
    one = encoder(OffsetFetchResponse, 1)(
        OffsetFetchResponse(topics=[topic("t", [OffsetFetchResponse.OffsetFetchResponsePartition(7, 8, metadata="")])])
    )
    head, row = one[: -(4 + 8 + 2 + 2) - 4], one[-(4 + 8 + 2 + 2) :]
    response, _ = decoder(OffsetFetchResponse, 1)(head + count.to_bytes(4, "big") + row * count, 0)
    assert len(response.topics[0].partitions) == count


@pytest.mark.parametrize("in_slices", [False, True])
@pytest.mark.parametrize("message", [FindCoordinatorRequest, APIS[1].request], ids=message_name)
def test_more_than_ten_thousand_tagged_fields_are_refused(message: type[Message], in_slices: bool) -> None:
    version = message.VERSIONS[-1]
    data = encoder(message, version)(message())
    assert data[-1] == 0
    many = data[:-1] + varint(TAGGED_FIELDS_MAX + 1) + b"\x63\x00" * (TAGGED_FIELDS_MAX + 1)
    with pytest.raises(MalformedMessage, match="tagged fields"):
        if in_slices:
            decoded(message, version, many)
        else:
            decoder(message, version)(many, 0)
