"""The APIs that clients are promised, and the versions that Apache Kafka 4.3 advertises for them."""

from __future__ import annotations

SERVED = {
    "Produce": (0, 13),
    "Fetch": (4, 18),
    "ListOffsets": (1, 11),
    "Metadata": (0, 13),
    "FindCoordinator": (0, 6),
    "SaslHandshake": (0, 1),
    "ApiVersions": (0, 4),
    "CreateTopics": (2, 7),
    "DeleteTopics": (1, 6),
    "DeleteRecords": (0, 2),
    "InitProducerId": (0, 5),
    "OffsetForLeaderEpoch": (2, 4),
    "DescribeConfigs": (1, 4),
    "AlterConfigs": (0, 2),
    "DescribeLogDirs": (1, 5),
    "CreatePartitions": (0, 3),
    "IncrementalAlterConfigs": (0, 1),
    "DescribeCluster": (0, 2),
    "ListConfigResources": (0, 1),
    "DescribeTopicPartitions": (0, 0),
}
