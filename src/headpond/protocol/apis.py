"""The table of the protocol's APIs, the only one, and the way from a key and a version to its codec.

The figures are those of Apache Kafka 4.3; a test compares them with what a real broker advertises. A row also names
the room of the broker that serves the API: only named, nothing of the broker is imported here. Schemas are imported
when their API is first used.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from headpond.protocol import codec

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from headpond.protocol.types import Buffer, Message


class ApiInfo(NamedTuple):
    key: int
    name: str
    min_version: int
    max_version: int  # the newest stable one
    flexible: int | None  # the first version with compact lengths and tagged fields, in request and response alike
    served_in: str | None = None  # the room of broker/handlers that has its handler; None: we do not serve it yet
    advertised_min: int | None = None  # where a broker advertises more than it serves

    @property
    def versions(self) -> range:
        return range(self.min_version, self.max_version + 1)

    @property
    def advertised(self) -> range:
        """What ApiVersions says. Produce 0-2 are refused, but without them old librdkafkas stop compressing."""
        return range(self.min_version if self.advertised_min is None else self.advertised_min, self.max_version + 1)

    def is_flexible(self, version: int) -> bool:
        return self.flexible is not None and version >= self.flexible

    @property
    def words(self) -> str:
        """``offset_for_leader_epoch`` for ``OffsetForLeaderEpoch``: the name of its schema and of its handler."""
        return "".join("_" + letter.lower() if letter.isupper() else letter for letter in self.name)[1:]

    @property
    def module(self) -> str:
        """The schema module."""
        return "headpond.protocol.schema." + self.words

    @property
    def request(self) -> type[Message]:
        return getattr(import_module(self.module), self.name + "Request")  # type: ignore[no-any-return]

    @property
    def response(self) -> type[Message]:
        return getattr(import_module(self.module), self.name + "Response")  # type: ignore[no-any-return]


APIS: dict[int, ApiInfo] = {
    api.key: api
    for api in (
        # key, name, oldest, newest and first flexible version, the room of its handler
        ApiInfo(0, "Produce", 3, 13, 9, "produce", advertised_min=0),
        ApiInfo(1, "Fetch", 4, 18, 12, "fetch"),
        ApiInfo(2, "ListOffsets", 1, 11, 6, "fetch"),
        ApiInfo(3, "Metadata", 0, 13, 9, "topics"),
        ApiInfo(8, "OffsetCommit", 2, 10, 8, "groups"),
        ApiInfo(9, "OffsetFetch", 1, 10, 6, "groups"),
        ApiInfo(10, "FindCoordinator", 0, 6, 3, "groups"),
        ApiInfo(11, "JoinGroup", 0, 9, 6, "groups"),
        ApiInfo(12, "Heartbeat", 0, 4, 4, "groups"),
        ApiInfo(13, "LeaveGroup", 0, 5, 4, "groups"),
        ApiInfo(14, "SyncGroup", 0, 5, 4, "groups"),
        ApiInfo(15, "DescribeGroups", 0, 6, 5, "groups"),
        ApiInfo(16, "ListGroups", 0, 5, 3, "groups"),
        ApiInfo(17, "SaslHandshake", 0, 1, None, "unconfigured"),
        ApiInfo(18, "ApiVersions", 0, 4, 3, "cluster"),
        ApiInfo(19, "CreateTopics", 2, 7, 5, "topics"),
        ApiInfo(20, "DeleteTopics", 1, 6, 4, "topics"),
        ApiInfo(21, "DeleteRecords", 0, 2, 2, "topics"),
        ApiInfo(22, "InitProducerId", 0, 5, 2, "transactions"),
        ApiInfo(23, "OffsetForLeaderEpoch", 2, 4, 4, "fetch"),
        ApiInfo(24, "AddPartitionsToTxn", 0, 5, 3, "transactions"),
        ApiInfo(25, "AddOffsetsToTxn", 0, 4, 3, "transactions"),
        ApiInfo(26, "EndTxn", 0, 5, 3, "transactions"),
        ApiInfo(27, "WriteTxnMarkers", 1, 2, 1, "transactions"),
        ApiInfo(28, "TxnOffsetCommit", 0, 5, 3, "transactions"),
        ApiInfo(29, "DescribeAcls", 1, 3, 2, "unconfigured"),
        ApiInfo(30, "CreateAcls", 1, 3, 2, "unconfigured"),
        ApiInfo(31, "DeleteAcls", 1, 3, 2, "unconfigured"),
        ApiInfo(32, "DescribeConfigs", 1, 4, 4, "configs"),
        ApiInfo(33, "AlterConfigs", 0, 2, 2, "configs"),
        ApiInfo(34, "AlterReplicaLogDirs", 1, 2, 2),
        ApiInfo(35, "DescribeLogDirs", 1, 5, 2, "cluster"),
        ApiInfo(36, "SaslAuthenticate", 0, 2, 2, "unconfigured"),
        ApiInfo(37, "CreatePartitions", 0, 3, 2, "topics"),
        ApiInfo(38, "CreateDelegationToken", 1, 3, 2, "unconfigured"),
        ApiInfo(39, "RenewDelegationToken", 1, 2, 2, "unconfigured"),
        ApiInfo(40, "ExpireDelegationToken", 1, 2, 2, "unconfigured"),
        ApiInfo(41, "DescribeDelegationToken", 1, 3, 2, "unconfigured"),
        ApiInfo(42, "DeleteGroups", 0, 2, 2, "groups"),
        ApiInfo(43, "ElectLeaders", 0, 2, 2, "cluster"),
        ApiInfo(44, "IncrementalAlterConfigs", 0, 1, 1, "configs"),
        ApiInfo(45, "AlterPartitionReassignments", 0, 1, 0),
        ApiInfo(46, "ListPartitionReassignments", 0, 0, 0, "cluster"),
        ApiInfo(47, "OffsetDelete", 0, 0, None, "groups"),
        ApiInfo(48, "DescribeClientQuotas", 0, 1, 1, "unconfigured"),
        ApiInfo(49, "AlterClientQuotas", 0, 1, 1),
        ApiInfo(50, "DescribeUserScramCredentials", 0, 0, 0, "unconfigured"),
        ApiInfo(51, "AlterUserScramCredentials", 0, 0, 0),
        ApiInfo(55, "DescribeQuorum", 0, 2, 0),
        ApiInfo(57, "UpdateFeatures", 0, 2, 0, "cluster"),
        ApiInfo(60, "DescribeCluster", 0, 2, 0, "cluster"),
        ApiInfo(61, "DescribeProducers", 0, 0, 0, "transactions"),
        ApiInfo(64, "UnregisterBroker", 0, 0, 0),
        ApiInfo(65, "DescribeTransactions", 0, 0, 0, "transactions"),
        ApiInfo(66, "ListTransactions", 0, 2, 0, "transactions"),
        ApiInfo(68, "ConsumerGroupHeartbeat", 0, 1, 0, "groups"),
        ApiInfo(69, "ConsumerGroupDescribe", 0, 1, 0, "groups"),
        ApiInfo(71, "GetTelemetrySubscriptions", 0, 0, 0),
        ApiInfo(72, "PushTelemetry", 0, 0, 0),
        ApiInfo(74, "ListConfigResources", 0, 1, 0, "configs"),
        ApiInfo(75, "DescribeTopicPartitions", 0, 0, 0, "topics"),
        ApiInfo(76, "ShareGroupHeartbeat", 1, 1, 1),
        ApiInfo(77, "ShareGroupDescribe", 1, 1, 1),
        ApiInfo(78, "ShareFetch", 1, 2, 1),
        ApiInfo(79, "ShareAcknowledge", 1, 2, 1),
        ApiInfo(80, "AddRaftVoter", 0, 1, 0),
        ApiInfo(81, "RemoveRaftVoter", 0, 0, 0),
        ApiInfo(83, "InitializeShareGroupState", 0, 0, 0),
        ApiInfo(84, "ReadShareGroupState", 0, 0, 0),
        ApiInfo(85, "WriteShareGroupState", 0, 1, 0),
        ApiInfo(86, "DeleteShareGroupState", 0, 0, 0),
        ApiInfo(87, "ReadShareGroupStateSummary", 0, 1, 0),
        ApiInfo(88, "StreamsGroupHeartbeat", 0, 0, 0),
        ApiInfo(89, "StreamsGroupDescribe", 0, 0, 0),
        ApiInfo(90, "DescribeShareGroupOffsets", 0, 1, 0),
        ApiInfo(91, "AlterShareGroupOffsets", 0, 0, 0),
        ApiInfo(92, "DeleteShareGroupOffsets", 0, 0, 0),
    )
}

SERVED = {key: api for key, api in APIS.items() if api.served_in is not None}
PRODUCE, FETCH, HEARTBEAT, API_VERSIONS = APIS[0], APIS[1], APIS[12], APIS[18]
API_VERSIONS_KEY = API_VERSIONS.key


def api(key: int) -> ApiInfo | None:
    """None: a key that no client uses, or that only Kafka's own brokers and controllers speak."""
    return APIS.get(key)


def advertised_versions() -> list[tuple[int, int, int]]:
    """(key, lowest, highest) of everything that we serve, as ApiVersions lists it."""
    return [(key, api.advertised[0], api.advertised[-1]) for key, api in sorted(SERVED.items())]


@cache
def request_decoder(key: int, version: int) -> Callable[[Buffer, int], tuple[Any, int]]:
    return codec.decoder(APIS[key].request, version)


def request_decoder_in_slices(
    key: int, version: int
) -> Callable[[Buffer, int], Generator[None, None, tuple[Any, int, int]]]:
    return codec.decoder_in_slices(APIS[key].request, version)


@cache
def response_encoder(key: int, version: int) -> Callable[[Any], bytes]:
    return codec.encoder(APIS[key].response, version)


def response_appender_in_slices(key: int, version: int) -> Callable[[bytearray, Any], Generator[None, None, None]]:
    return codec.appender_in_slices(APIS[key].response, version)


def request_encoder(key: int, version: int) -> Callable[[Any], bytes]:
    return codec.encoder(APIS[key].request, version)


@cache
def request_appender(key: int, version: int) -> Callable[[bytearray, Any], None]:
    return codec.appender(APIS[key].request, version)


@cache
def response_decoder(key: int, version: int) -> Callable[[Buffer, int], tuple[Any, int]]:
    return codec.decoder(APIS[key].response, version)
