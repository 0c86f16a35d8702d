"""Names that only a broker knows, offered by the shells: topics, groups, transactional ids."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from headpond.cli.completion.command import SHELLS
from headpond.cli.completion.names import ANSWER_S_MAX, broker_in
from support.broker import BrokerProcess, run_headpond
from support.cli import Cli
from support.shells import offered
from support.variants import kinds

STRANGE = ("orders; rm -rf x", "orders$(id)", "--orders", "orders'", "orders\nb")
"""Names of groups that Kafka allows and no shell takes for a word."""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    broker = BrokerProcess(tmp_path_factory.mktemp("shop")).start()
    cli = Cli(broker.bootstrap_servers)
    for topic in ("orders", "orders.dead", "users"):
        cli.ok("topics", "create", topic)
    for group in ("billing", "billing:eu", "audit", *STRANGE):
        cli.ok("groups", "reset-offsets", "--topic", "orders", "--to-earliest", "--execute", "--", group)
    Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "till-1"}).init_transactions(30)
    yield broker.bootstrap_servers
    broker.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With a file that is not meant where a name is."""
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "orders-file").touch()
    (tmp_path / "here" / "orders").mkdir()
    return tmp_path / "here"


@pytest.mark.parametrize("shell", kinds(SHELLS, ordinary={"bash"}))
def test_topics_are_offered_where_a_topic_is_meant(shell: str, folder: Path, shop: str) -> None:
    for words in (["topics", "describe"], ["topics", "alter"], ["topics", "delete"], ["produce"], ["consume"]):
        assert offered(shell, folder, "headpond", *words, "or", bootstrap=shop) == ["orders", "orders.dead"]
    everything = offered(shell, folder, "headpond", "topics", "describe", "orders", "", bootstrap=shop)
    assert everything == ["orders", "orders.dead", "users"], "and no internal ones, no files"
    reset = ("groups", "reset-offsets", "billing", "--topic", "u")
    assert offered(shell, folder, "headpond", *reset, bootstrap=shop) == ["users"]


@pytest.mark.parametrize("shell", kinds(SHELLS, ordinary={"zsh"}))
def test_groups_and_transactional_ids_are_offered(shell: str, folder: Path, shop: str) -> None:
    for action in ("describe", "delete", "reset-offsets"):
        found = offered(shell, folder, "headpond", "groups", action, "", bootstrap=shop)
        assert found == ["audit", "billing", "billing:eu"]
    assert offered(shell, folder, "headpond", "transactions", "describe", "", bootstrap=shop) == ["till-1"]


@pytest.mark.parametrize("shell", kinds(SHELLS, ordinary={"fish"}))
def test_a_new_topic_gets_no_suggestions_from_the_broker(shell: str, folder: Path, shop: str) -> None:
    assert "users" not in offered(shell, folder, "headpond", "topics", "create", "", bootstrap=shop)


@pytest.mark.parametrize("shell", SHELLS)
def test_the_broker_that_the_command_line_names_is_asked(shell: str, folder: Path, shop: str) -> None:
    assert offered(shell, folder, "headpond", "consume", "-b", shop, "u") == ["users"]


@pytest.mark.parametrize("shell", SHELLS)
def test_without_a_broker_nothing_is_offered_or_said(shell: str, folder: Path) -> None:
    assert offered(shell, folder, "headpond", "consume", "") == []  # which also fails at a word on stderr


def test_a_broker_that_does_not_answer_is_not_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        began = time.monotonic()
        done = run_headpond("completion", "--names", "topics", "--line", f"headpond consume -b {address} ")
        took_s = time.monotonic() - began
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert took_s < 20 * ANSWER_S_MAX, "the usual patience with a broker is 15 seconds for each request"


@pytest.mark.parametrize(
    ("line", "bootstrap"),
    [
        ("headpond consume ", None),
        ("headpond consume -b a:1 or", "a:1"),
        ("headpond groups --bootstrap-server=a:1,b:2 describe", "a:1,b:2"),
        ("headpond consume --json -b", None),
        ("headpond consume -b a:1 --timeout", "a:1"),
        ("headpond consume -b a:1 --timeout nonsense --json", "a:1"),
        ("headpond produce -b a:1 'unfinish", "a:1"),
        ("", None),
    ],
)
def test_an_unfinished_command_line_says_which_broker_is_meant(line: str, bootstrap: str | None) -> None:
    assert broker_in(line).bootstrap_server == bootstrap
