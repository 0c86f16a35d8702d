"""Apache Kafka's own shell tools work with our broker as with theirs: groups, offsets, transactions, and the records of
both coordinators on disk."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import confluent_kafka
import pytest

from interop.programs import kafka_tool, needs_kafka
from support.broker import BrokerProcess
from support.cli import Cli
from support.waiting import eventually

pytestmark = [pytest.mark.interop, needs_kafka]

CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
DUMP = "org.apache.kafka.tools.DumpLogSegments"
GET_OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
GROUPS = "org.apache.kafka.tools.GroupsCommand"
CONSUMER_GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    process = BrokerProcess(tmp_path_factory.mktemp("tools"), settings={"group.initial.rebalance.delay.ms": 0})
    try:
        yield process.start()
    finally:
        process.close()


@pytest.fixture
def topic(broker: BrokerProcess, topic_name: str) -> str:
    """With three records in the second of its two partitions."""
    cli = Cli(broker.bootstrap_servers)
    cli.ok("topics", "create", topic_name, "--partitions", 2)
    cli.ok("produce", topic_name, "--partition", 1, stdin="a\nb\nc\n")
    return topic_name


def tool(broker: BrokerProcess, name: str, *arguments: str) -> str:
    return kafka_tool(name, "--bootstrap-server", broker.bootstrap_servers, *arguments)


def rows(text: str, first: str) -> list[list[str]]:
    """The lines of a table that begin with that word, as words."""
    return [line.split() for line in text.splitlines() if line.split()[:1] == [first]]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_the_console_consumer_reads_in_a_group_and_the_group_tool_moves_it(
    broker: BrokerProcess, topic: str, protocol: str
) -> None:
    group = f"{topic}-group"
    read = ["--topic", topic, "--group", group, "--max-messages", "3", "--timeout-ms", "60000"]
    read += ["--consumer-property", f"group.protocol={protocol}", "--consumer-property", "auto.offset.reset=earliest"]
    said = tool(broker, CONSOLE_CONSUMER, *read)
    assert [line for line in said.splitlines() if line in "abc"] == ["a", "b", "c"], said
    assert group in tool(broker, CONSUMER_GROUPS, "--list")
    listed = rows(tool(broker, GROUPS, "--list"), group)
    assert [words[1:3] for words in listed] == [[protocol.capitalize(), "consumer"]]
    described = rows(tool(broker, CONSUMER_GROUPS, "--describe", "--group", group), group)
    assert [words[1:6] for words in described] == [[topic, "0", "0", "0", "0"], [topic, "1", "3", "3", "0"]]
    (state,) = rows(tool(broker, CONSUMER_GROUPS, "--describe", "--group", group, "--state"), group)
    assert state[-2:] == ["Empty", "0"]
    back = ["--group", group, "--topic", topic, "--reset-offsets", "--shift-by", "-2", "--execute"]
    assert sorted(words[2:4] for words in rows(tool(broker, CONSUMER_GROUPS, *back), group)) == [["0", "0"], ["1", "1"]]
    read[read.index("3")] = "2"
    again = tool(broker, CONSOLE_CONSUMER, *read)
    assert [line for line in again.splitlines() if line in "abc"] == ["b", "c"], again
    said = tool(broker, CONSUMER_GROUPS, "--group", group, "--topic", f"{topic}:0", "--delete-offsets")
    assert "Request succeeded for deleting offsets" in said
    described = rows(tool(broker, CONSUMER_GROUPS, "--describe", "--group", group), group)
    assert [words[1:4] for words in described] == [[topic, "1", "3"]]
    said = tool(broker, CONSUMER_GROUPS, "--delete", "--group", group)
    assert "was successful" in said
    assert group not in tool(broker, CONSUMER_GROUPS, "--list")


def test_the_group_tool_shows_members_and_what_they_hold(broker: BrokerProcess, topic: str) -> None:
    group = f"{topic}-group"
    settings = {"bootstrap.servers": broker.bootstrap_servers, "group.id": group, "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer({**settings, "client.id": "me", "enable.auto.commit": False})
    consumer.subscribe([topic])
    eventually(lambda: consumer.poll(1) is not None, what="a record")
    consumer.commit(asynchronous=False)
    described = rows(tool(broker, CONSUMER_GROUPS, "--describe", "--group", group), group)
    assert [(words[2], words[-1]) for words in described] == [("0", "me"), ("1", "me")]
    (member,) = rows(tool(broker, CONSUMER_GROUPS, "--describe", "--group", group, "--members", "--verbose"), group)
    assert "me" in member and f"{topic}:0,1" in member
    (state,) = rows(tool(broker, CONSUMER_GROUPS, "--describe", "--group", group, "--state"), group)
    assert state[-3:] == ["range", "Stable", "1"]
    consumer.close()


def test_the_tool_for_offsets_finds_both_ends_and_the_newest_record(broker: BrokerProcess, topic: str) -> None:
    assert offsets(tool(broker, GET_OFFSETS, "--topic", topic)) == [f"{topic}:0:0", f"{topic}:1:3"]
    earliest = tool(broker, GET_OFFSETS, "--topic", topic, "--time", "earliest")
    assert offsets(earliest) == [f"{topic}:0:0", f"{topic}:1:0"]
    newest = tool(broker, GET_OFFSETS, "--topic", topic, "--time", "max-timestamp", "--partitions", "1")
    assert re.fullmatch(rf"{topic}:1:[012]", offsets(newest)[0])


def offsets(text: str) -> list[str]:
    return sorted(line for line in text.splitlines() if line.count(":") == 2)


@pytest.fixture
def opened(broker: BrokerProcess, topic: str) -> Iterator[str]:
    """A transaction that is open in the topic's second partition; its transactional id."""
    settings = {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": f"{topic}-id"}
    producer = confluent_kafka.Producer({**settings, "transaction.timeout.ms": 600_000})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=1)
    assert producer.flush(30) == 0
    yield f"{topic}-id"


def test_the_tool_for_transactions_lists_describes_and_aborts(broker: BrokerProcess, topic: str, opened: str) -> None:
    (listed,) = rows(tool(broker, TRANSACTIONS, "list"), opened)
    assert listed[-1] == "Ongoing"
    said = tool(broker, TRANSACTIONS, "describe", "--transactional-id", opened)
    assert "Ongoing" in said and f"{topic}-1" in said and "600000" in said
    said = tool(broker, TRANSACTIONS, "describe-producers", "--topic", topic, "--partition", "1")
    (producer,) = rows(said, listed[2])
    assert producer[-1] == "3", "where its transaction begins"
    said = tool(broker, TRANSACTIONS, "find-hanging", "--broker-id", "1", "--max-transaction-timeout", "15")
    assert opened not in said, "it is old, but its coordinator knows of it"
    tool(broker, TRANSACTIONS, "abort", "--topic", topic, "--partition", "1", "--start-offset", "3")
    said = tool(broker, TRANSACTIONS, "describe-producers", "--topic", topic, "--partition", "1")
    assert [words[-1] for words in rows(said, listed[2])] == ["None"]


def test_the_tool_for_transactions_ends_a_producer(broker: BrokerProcess, topic: str, opened: str) -> None:
    tool(broker, TRANSACTIONS, "forceTerminateTransaction", "--transactionalId", opened)

    def is_over() -> bool:
        (listed,) = rows(tool(broker, TRANSACTIONS, "list"), opened)
        return listed[-1] == "Empty"  # aborted, and a new epoch given out

    eventually(is_over, what="the end of the transaction")


def test_the_dump_tool_decodes_the_records_of_both_coordinators(make_broker: Callable[..., BrokerProcess]) -> None:
    one_each = {"offsets.topic.num.partitions": 1, "transaction.state.log.num.partitions": 1}
    broker = make_broker(settings={**one_each, "group.initial.rebalance.delay.ms": 0}).start()
    Cli(broker.bootstrap_servers).ok("topics", "create", "orders")
    settings = {"bootstrap.servers": broker.bootstrap_servers}
    producer = confluent_kafka.Producer({**settings, "transactional.id": "till"})
    producer.init_transactions(30)
    for protocol in ("classic", "consumer"):
        group = {"group.id": f"of-{protocol}", "group.protocol": protocol, "auto.offset.reset": "earliest"}
        consumer = confluent_kafka.Consumer({**settings, **group, "enable.auto.commit": False})
        consumer.subscribe(["orders"])
        eventually(lambda consumer=consumer: consumer.poll(0.1) is None and consumer.assignment(), what="its partition")
        producer.begin_transaction()
        producer.produce("orders", b"paid")
        position = [confluent_kafka.TopicPartition("orders", 0, 7)]
        producer.send_offsets_to_transaction(position, consumer.consumer_group_metadata(), 30)
        producer.commit_transaction(30)
        consumer.commit(offsets=[confluent_kafka.TopicPartition("orders", 0, 8)], asynchronous=False)
        consumer.close()
    broker.stop()
    offsets = dump(broker, "__consumer_offsets", "--offsets-decoder")
    for words in ('"group":"of-classic"', '"protocolType":"consumer"', '"topic":"orders"', '"offset":7', '"offset":8'):
        assert words in offsets, offsets
    for words in ('"groupId":"of-consumer"', '"subscribedTopicNames":["orders"]', '"assignedPartitions"'):
        assert words in offsets, offsets
    transactions = dump(broker, "__transaction_state", "--transaction-log-decoder")
    for words in ('"transactionalId":"till"', '"topic":"orders"', '"topic":"__consumer_offsets"'):
        assert words in transactions, transactions
    statuses = set(re.findall(r'"transactionStatus":(\d+)', transactions))
    assert statuses >= {"0", "1", "2", "4"}, "empty, ongoing, about to commit, committed"


def dump(broker: BrokerProcess, topic: str, decoder: str) -> str:
    logs = ",".join(map(str, sorted(broker.log_folder(topic).glob("*.log"))))
    text = kafka_tool(DUMP, decoder, "--deep-iteration", "--files", logs)
    assert "isvalid: true" in text and "isvalid: false" not in text
    assert "Failed to" not in text and "UNKNOWN" not in text, text
    return text
