"""The layout of the metadata store.

::

    cluster                        the cluster's id
    brokers/{id}                   where a broker listens, its rack, its incarnation
    topics/{name}                  topic id and partition count: the commit point of everything about the topic
    topic-ids/{id}                 the topic's name; written first, removed first: fences a half-made topic
    topic-clashes/{name with _}    the topic that holds a name which differs only in '.' and '_'
    partitions/{id}/{p}            leader, epochs, replicas, in-sync replicas
    configs/{kind}/{name}          overrides of a topic, a broker or (broker/default) all brokers, of a group, of a
                                   subscription to client metrics
    features/{name}                finalized level
    pid-block                      the first producer id that is not yet reserved

The store may hold other keys (elections, ACLs); the image ignores what it does not know.
"""

from __future__ import annotations

from headpond.cluster.names import clash_name
from headpond.model import TopicId
from headpond.model.ids import id_text

CLUSTER = "cluster"
PRODUCER_ID_BLOCK = "pid-block"
DEFAULT_BROKER = "default"

BROKERS = "brokers/"
TOPICS = "topics/"
TOPIC_IDS = "topic-ids/"
TOPIC_CLASHES = "topic-clashes/"
PARTITIONS = "partitions/"
CONFIGS = "configs/"
FEATURES = "features/"


def broker(broker_id: int) -> str:
    return f"{BROKERS}{broker_id}"


def topic(name: str) -> str:
    return TOPICS + name


def topic_id(uuid: TopicId) -> str:
    return TOPIC_IDS + id_text(uuid)


def topic_clash(name: str) -> str:
    return TOPIC_CLASHES + clash_name(name)


def partition(uuid: TopicId, index: int) -> str:
    return f"{PARTITIONS}{id_text(uuid)}/{index}"


def config(kind: str, name: str) -> str:
    """``name`` "" is the default of all brokers."""
    return f"{CONFIGS}{kind}/{name or DEFAULT_BROKER}"


def feature(name: str) -> str:
    return FEATURES + name
