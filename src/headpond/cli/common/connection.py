"""From the command line to a client: where the broker is, the machine's adapters, and errors in one sentence.

A command is a coroutine that gets a ``Client``. Ctrl-C, SIGTERM and SIGHUP cancel it (it may say what it had done so
far, and clears up); after Ctrl-C ``KeyboardInterrupt`` goes up to ``main``.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable

from headpond.cli.common.arguments import BOOTSTRAP_DEFAULT, BOOTSTRAP_VARIABLE, COMMAND_CONFIG_VARIABLE
from headpond.cli.common.failures import HUNG_UP, TERMINATED, CommandFailed, WrongUsage, did_you_mean
from headpond.client import BrokerUnreachable, Client, ClientError, TopicView, parse_bootstrap
from headpond.client.security import PLAINTEXT, Security
from headpond.model import ErrorCode
from headpond.runtime import environment, process
from headpond.runtime.clock import SystemClock
from headpond.runtime.network import TcpNetwork
from headpond.runtime.random import SystemRandom
from headpond.runtime.tasks import LoopTasks

PARTITION_LEADER_TRIES_MAX = 20
PARTITION_LEADER_PAUSE_S = 0.1


def bootstrap_of(options: argparse.Namespace) -> tuple[str, str]:
    """(the address as text, where it comes from)."""
    if options.bootstrap_server is not None:  # an empty one is a mistake, as in -b "$UNSET": not a wish for another
        return options.bootstrap_server, "--bootstrap-server"
    if text := environment.variables().get(BOOTSTRAP_VARIABLE, "").strip():
        return text, BOOTSTRAP_VARIABLE
    return BOOTSTRAP_DEFAULT, "the default"


def run_with_client(options: argparse.Namespace, command: Callable[[Client], Awaitable[int]]) -> int:
    """Run ``command`` to its end and return its exit code; what a broker refuses becomes ``CommandFailed``."""
    text, origin = bootstrap_of(options)
    try:
        bootstrap = parse_bootstrap(text)
    except ValueError as error:
        raise WrongUsage(f"{origin}: {error}") from None
    security = _security(options)
    come: list[str] = []

    async def main() -> int:
        process.on_end_signals(_cancel_this_task(come))
        tasks = LoopTasks()
        client = Client(
            bootstrap,
            network=TcpNetwork(),
            clock=SystemClock(),
            tasks=tasks,
            random=SystemRandom(),
            client_id="headpond-cli",
            timeout_s=options.timeout,
            security=security,
        )
        try:
            async with client:
                return await command(client)
        finally:
            await tasks.cancel_all()

    try:
        return process.run(main())
    except asyncio.CancelledError:
        return HUNG_UP if come[:1] == ["SIGHUP"] else TERMINATED
    except UnicodeEncodeError:
        raise WrongUsage("an argument holds bytes that are no UTF-8: names and settings are text") from None
    except BrokerUnreachable as error:
        raise CommandFailed(f"{error}; is a broker running there? {_advice(origin)}") from error
    except ClientError as error:
        raise CommandFailed(sentence(error)) from error


def _security(options: argparse.Namespace) -> Security:
    if options.command_config is None and not environment.variables().get(COMMAND_CONFIG_VARIABLE):
        return PLAINTEXT
    from headpond.cli.common.command_config import security_of  # for those who have such a file

    return security_of(options)


def _cancel_this_task(come: list[str]) -> Callable[[str], None]:
    """What to do at a signal, which is then one of those that have ``come``."""
    task = asyncio.current_task()
    assert task is not None

    def cancel(signal_name: str) -> None:
        come.append(signal_name)
        task.cancel()

    return cancel


def _advice(origin: str) -> str:
    if origin == "the default":
        return f"`headpond serve` starts one, --bootstrap-server or {BOOTSTRAP_VARIABLE} names another"
    return f"the address comes from {origin}"


def sentence(error: ClientError) -> str:
    """A broker's refusal without a full stop, so that more can follow."""
    text = str(error).rstrip(".")
    if error.code is ErrorCode.MESSAGE_TOO_LARGE:
        return f"{text}: raise max.message.bytes of the topic, or send less at once"
    if error.is_outcome_unknown:
        return f"{text}: outcome unknown: check before retrying"
    return text


async def find_topic(client: Client, name: str) -> TopicView:
    """The topic with a leader for every partition, or ``CommandFailed`` with the nearest name."""
    tries = 0
    while True:
        tries += 1
        topic = (await client.metadata([name])).topics.get(name)
        if topic is None or topic.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise CommandFailed(await unknown_topic(client, [name]))
        if topic.error is ErrorCode.INVALID_TOPIC_EXCEPTION:
            raise CommandFailed(f"invalid topic name {name!r}: 1-249 letters, digits, dots, dashes and underscores")
        if topic.error is ErrorCode.NONE and all(partition.leader >= 0 for partition in topic.partitions):
            return topic
        if tries == PARTITION_LEADER_TRIES_MAX:
            break
        await client.clock.sleep(PARTITION_LEADER_PAUSE_S)  # it was just made, or a leader is being elected
    if topic.error is not ErrorCode.NONE:
        raise CommandFailed(f"topic {name} can't be used: {topic.error.name}")
    lost = [str(partition.index) for partition in topic.partitions if partition.leader < 0]
    raise CommandFailed(f"topic {name} has no leader for partition {', '.join(lost)}: start the broker that holds it")


async def unknown_topic(client: Client, names: list[str]) -> str:
    """``topic x does not exist (did you mean y?)``."""
    known = list((await client.metadata(None)).topics)
    if len(names) == 1:
        return f"topic {names[0]} does not exist{did_you_mean(names[0], known)}"
    return f"these topics do not exist: {', '.join(name + did_you_mean(name, known) for name in names)}"


def check_partitions(topic: TopicView, wanted: list[int]) -> None:
    known = [partition.index for partition in topic.partitions]
    for number in wanted:
        if number not in known:
            span = "only partition 0" if len(known) == 1 else f"partitions 0 to {known[-1]}"
            raise CommandFailed(f"topic {topic.name} has no partition {number}: it has {span}")
