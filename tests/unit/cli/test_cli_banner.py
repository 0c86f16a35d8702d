"""What ``serve`` says when it is ready: commands that work as they are written, and where clients are sent."""

from __future__ import annotations

import itertools
import json
import subprocess
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from headpond import __version__
from headpond.cli.serve.banner import address_text, advertised, banner
from headpond.config.sources import load
from support.broker import BrokerProcess, headpond_command, headpond_environment
from support.cli import Cli


def lines_for(*, listen: str, port: int = 9092, advertise: str | None = None) -> list[str]:
    settings = load({"listen": listen, "advertise": advertise}, [], {}, lambda _: b"", hostname="box").settings
    return banner(settings, [(each.host, port) for each in settings.network.listeners]).splitlines()


@pytest.mark.parametrize(
    ("host", "said"),
    [
        ("127.0.0.1", "127.0.0.1:9092"),
        ("::1", "[::1]:9092"),
        ("localhost", "localhost:9092"),
        ("", "0.0.0.0:9092"),
    ],
)
def test_an_address_is_written_as_clients_read_it(host: str, said: str) -> None:
    assert address_text(host, 9092) == said


def test_our_own_commands_come_first_and_kcat_second() -> None:
    assert lines_for(listen="127.0.0.1:9092") == [
        "Broker 1, data in headpond-data (flush: ack).",
        "From another terminal:",
        "  echo hello | headpond produce greetings --create",
        "  headpond consume greetings",
        "Or with any Kafka client, bootstrap server 127.0.0.1:9092, for example:",
        "  kcat -b 127.0.0.1:9092 -C -t greetings -e",
        "Ctrl-C stops it.",
    ]


@pytest.mark.parametrize(
    ("listen", "reach"),
    [("0.0.0.0:7", "127.0.0.1:7"), (":7", "127.0.0.1:7"), ("[::]:7", "[::1]:7"), ("10.1.2.3:7", "10.1.2.3:7")],
)
def test_every_command_names_an_address_that_this_machine_can_reach(listen: str, reach: str) -> None:
    lines = [line for line in lines_for(listen=listen, port=7) if line.startswith("  ")]
    assert len(lines) == 3 and all(reach in line for line in lines)
    assert f"produce greetings --create --bootstrap-server {reach}" in lines[0]


@pytest.mark.parametrize("listen", ["0.0.0.0:0", ":0", "[::]:0"])
def test_a_listener_on_all_interfaces_shows_what_clients_are_told(listen: str) -> None:
    everywhere = "Listening on all interfaces; clients are told to connect to {} (--advertise changes it)."
    assert everywhere.format("box:41234") in lines_for(listen=listen, port=41_234)
    assert everywhere.format("me.example:7") in lines_for(listen=listen, advertise="me.example:7")
    assert not [line for line in lines_for(listen="127.0.0.1:0") if "clients are told" in line]


def test_of_several_listeners_all_that_is_told_is_shown() -> None:
    settings = load(
        {"listen": "IN://:1,OUT://127.0.0.1:0", "advertise": "IN://inside:1"},
        ["listener.security.protocol.map=IN:PLAINTEXT,OUT:PLAINTEXT"],
        {},
        lambda _: b"",
    ).settings
    assert advertised(settings.network.listeners, [("", 1), ("127.0.0.1", 555)]) == ["inside:1", "127.0.0.1:555"]


def test_the_suggested_commands_work_and_stdout_has_one_line(make_broker: Callable[..., BrokerProcess]) -> None:
    broker = make_broker(arguments=["--listen", "0.0.0.0:0", "--advertise", "127.0.0.1:0"]).start()
    cli = Cli(broker.bootstrap_servers)
    produce, consume, _ = [line.split() for line in broker.logs().splitlines() if line.startswith("  ")]
    for _ in range(2):  # the topic is there the second time
        assert produce[:4] == ["echo", "hello", "|", "headpond"]
        cli.ok(*produce[4:], stdin="hello\n")
    assert cli.ok(*consume[1:]).out == "hello\nhello\n"
    assert f"clients are told to connect to 127.0.0.1:{broker.port} " in broker.logs()
    assert len(broker.stdout().splitlines()) == 1


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_with_the_line_on_stdout_everything_has_been_said(tmp_path: Path, log_format: str) -> None:
    """Or a program that waits for that line, and then looks at stderr, finds half of it or nothing."""
    arguments = ["--listen", "127.0.0.1:0", "--data-dir", str(tmp_path / "data")]
    command = headpond_command("serve", *arguments, "--set", f"headpond.log.format={log_format}")
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=headpond_environment(), text=True
    ) as broker:
        assert broker.stdout is not None
        before = "".join(iter_until(broker.stdout, f"headpond {__version__} listening on"))
        broker.terminate()
    assert ("Ctrl-C stops it." if log_format == "text" else '"advertised"') in before


def iter_until(lines: Iterable[str], start: str) -> Iterator[str]:
    return itertools.takewhile(lambda line: not line.startswith(start), lines)


def test_for_machines_what_is_advertised_is_a_field(make_broker: Callable[..., BrokerProcess]) -> None:
    arguments = ["--listen", "0.0.0.0:0", "--advertise", "me.example:7"]
    broker = make_broker(settings={"headpond.log.format": "json"}, arguments=arguments).start()
    broker.stop()
    (ready,) = [json.loads(line) for line in broker.logs().splitlines() if "addresses" in line]
    assert ready["advertised"] == "me.example:7"
