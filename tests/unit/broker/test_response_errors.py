"""The error codes of a response are found wherever the schema has them."""

from __future__ import annotations

from importlib import import_module

import pytest

from headpond.broker.requests.response_errors import error_codes
from headpond.protocol.apis import APIS
from headpond.protocol.schema.add_partitions_to_txn import AddPartitionsToTxnResponse
from headpond.protocol.schema.api_versions import ApiVersionsResponse
from headpond.protocol.schema.create_topics import CreateTopicsResponse
from headpond.protocol.schema.metadata import MetadataResponse


def test_codes_are_found_at_every_depth_in_order() -> None:
    topic, partition = MetadataResponse.MetadataResponseTopic, MetadataResponse.MetadataResponsePartition
    response = MetadataResponse(
        error_code=41,
        topics=[
            topic(error_code=0, partitions=[partition(error_code=5), partition(), partition(error_code=6)]),
            topic(error_code=3),
        ],
    )
    assert list(error_codes(response)) == [41, 5, 6, 3]


def test_a_partitions_code_may_have_a_longer_name() -> None:
    row, topic = AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult, AddPartitionsToTxnResponse
    topics = [topic.AddPartitionsToTxnTopicResult("t", [row(0, 90), row(1, 0)])]
    assert list(error_codes(AddPartitionsToTxnResponse(results_by_topic_v3_and_below=topics))) == [90]


def test_a_response_without_errors_has_none() -> None:
    assert list(error_codes(MetadataResponse(topics=[MetadataResponse.MetadataResponseTopic()]))) == []
    assert list(error_codes(ApiVersionsResponse(error_code=35))) == [35]
    assert list(error_codes(CreateTopicsResponse())) == []


@pytest.mark.parametrize("key", sorted(APIS))
def test_every_response_of_the_protocol_can_be_looked_at(key: int) -> None:
    info = APIS[key]
    import_module(info.module)
    assert list(error_codes(info.response())) == []
