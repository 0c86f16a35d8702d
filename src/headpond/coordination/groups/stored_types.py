"""The records of ``__consumer_offsets``, by the type that their key begins with. Share and streams groups (9 to 15, 17
and on) are not served: what a Kafka wrote of them stays in the log as it is."""

from __future__ import annotations

from headpond.coordination.groups.offset_records import value_version
from headpond.coordination.records import RecordCodec, RecordType
from headpond.protocol.schema import classic_group_records as classic
from headpond.protocol.schema import consumer_group_records as consumer

GROUP_CODEC = RecordCodec(
    {
        0: RecordType(classic.LegacyOffsetCommitKey, classic.LegacyOffsetCommitValue, 0),
        1: RecordType(classic.OffsetCommitKey, classic.OffsetCommitValue, 4, value_version),
        2: RecordType(classic.GroupMetadataKey, classic.GroupMetadataValue, 3),
        3: RecordType(consumer.ConsumerGroupMetadataKey, consumer.ConsumerGroupMetadataValue, 0),
        4: RecordType(consumer.ConsumerGroupPartitionMetadataKey, consumer.ConsumerGroupPartitionMetadataValue, 0),
        5: RecordType(consumer.ConsumerGroupMemberMetadataKey, consumer.ConsumerGroupMemberMetadataValue, 0),
        6: RecordType(
            consumer.ConsumerGroupTargetAssignmentMetadataKey, consumer.ConsumerGroupTargetAssignmentMetadataValue, 0
        ),
        7: RecordType(
            consumer.ConsumerGroupTargetAssignmentMemberKey, consumer.ConsumerGroupTargetAssignmentMemberValue, 0
        ),
        8: RecordType(
            consumer.ConsumerGroupCurrentMemberAssignmentKey, consumer.ConsumerGroupCurrentMemberAssignmentValue, 0
        ),
        16: RecordType(consumer.ConsumerGroupRegularExpressionKey, consumer.ConsumerGroupRegularExpressionValue, 0),
    }
)
