"""The topics of a Produce: found by name or by id, authorised, and internal ones only for the admin client. And whether
its transactional id may be used."""

from __future__ import annotations

from headpond.broker.handlers.produce.wire import FIRST_WITH_TOPIC_ID, ProducePrefix
from headpond.broker.net.connection import Connection
from headpond.broker.replicas.replicas import Replica, Replicas
from headpond.broker.security.authorizer import Authorizer, Operation, ResourceType
from headpond.cluster.names import is_internal
from headpond.model import ErrorCode, TopicId

ADMIN_CLIENT_ID = "__admin_client"  # whoever calls itself this may write to internal topics, as in Kafka
ADMIN_CLIENT_ID_RAW = len(ADMIN_CLIENT_ID).to_bytes(2, "big") + ADMIN_CLIENT_ID.encode()  # what a prefix starts with


class ProduceTopics:
    def __init__(self, replicas: Replicas, authorizer: Authorizer) -> None:
        self._replicas = replicas
        self._authorizer = authorizer

    def resolve(self, connection: Connection, prefix: ProducePrefix) -> None:
        """Fill in the partitions of a prefix; good until the broker's topics change."""
        by_id = prefix.version >= FIRST_WITH_TOPIC_ID
        name, topic_id = ("", prefix.topic_id) if by_id else (prefix.topic, b"")
        client_id = ADMIN_CLIENT_ID if prefix.raw.startswith(ADMIN_CLIENT_ID_RAW) else None
        prefix.replicas = self.find(connection, prefix.version, name, topic_id, client_id)
        transactional_id = prefix.transactional_id
        prefix.may_use_transaction = transactional_id is not None and self.allows(connection, transactional_id)
        prefix.generation = self._replicas.generation

    def quick(self, prefix: ProducePrefix, index: int) -> Replica | None:
        """A partition that needs no preparation; the prefix remembers it. Not all at once: a topic may have many."""
        if isinstance(prefix.replicas, ErrorCode) or not -1 <= prefix.acks <= 1:
            return None
        replica = prefix.replicas.get(index)
        if replica is None or not _is_quick(replica):
            return None
        prefix.quick[index] = replica
        return replica

    def allows(self, connection: Connection, transactional_id: str) -> bool:
        return self._authorizer.allows(
            connection.principal,
            connection.peer_host,
            Operation.WRITE,
            ResourceType.TRANSACTIONAL_ID,
            transactional_id,
        )

    def find(
        self, connection: Connection, version: int, name: str, topic_id: bytes, client_id: str | None
    ) -> dict[int, Replica] | ErrorCode:
        """The topic's partitions by index (none: it is not there), or why it may not be written to."""
        if version >= FIRST_WITH_TOPIC_ID:
            found = self._replicas.topic_name(TopicId(topic_id))
            if found is None:
                return ErrorCode.UNKNOWN_TOPIC_ID
            name = found
        allowed = self._authorizer.allows(
            connection.principal, connection.peer_host, Operation.WRITE, ResourceType.TOPIC, name
        )
        if not allowed:
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        replicas = self._replicas.of_topic(name)
        if replicas and is_internal(name) and client_id != ADMIN_CLIENT_ID:
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        return replicas


def _is_quick(replica: Replica) -> bool:
    log = replica.partition.log
    return not (log.needs_deep_look or log.config.timestamp_is_append_time)
