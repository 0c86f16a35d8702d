"""The internal client: small, asynchronous, on the ports; for the command line, the console, replication and Spark.

client.py       any request to any broker, and what is known of the cluster (metadata.py)
connection.py   one connection, pipelined; versions.py: who speaks what
security.py     TLS and SASL as values, security_settings.py: under Kafka's names (jaas.py); authentication.py: who we
                are, by sasl.py and scram.py; handshake.py: what goes wrong, in words
admin.py        topics, configs, offsets (offsets.py), each partition asked of its leader (routing.py)
group_admin.py  consumer groups, and transaction_admin.py, each asked of its coordinator (coordinators.py)
group/          members of consumer groups, classic and KIP-848; consumer_protocol.py: what classic ones say in bytes
transaction.py  a transaction of one's own; finished.py: batches that are ready, written into one or without
producer.py     idempotent writes: outbox.py holds the batches, delivery.py gets them to their leaders
consumer.py     reads; fetched.py: what an answer holds
errors.py       what can be raised, and whether it may be tried again
"""

from headpond.client.bootstrap import parse_bootstrap
from headpond.client.client import Client
from headpond.client.connection import Address
from headpond.client.errors import BrokerUnreachable, ClientError, ConnectionLost, RequestTimedOut, SecurityFailed
from headpond.client.metadata import BrokerView, ClusterView, PartitionView, TopicView
from headpond.client.security import Security

__all__ = [
    "Address",
    "BrokerUnreachable",
    "BrokerView",
    "Client",
    "ClientError",
    "ClusterView",
    "ConnectionLost",
    "PartitionView",
    "RequestTimedOut",
    "Security",
    "SecurityFailed",
    "TopicView",
    "parse_bootstrap",
]
