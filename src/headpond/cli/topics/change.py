"""``headpond topics create``, ``alter`` and ``delete``. What can be checked is checked before anything is changed."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from headpond.cli.common.connection import find_topic, sentence, unknown_topic
from headpond.cli.common.failures import OK, CommandFailed, WrongUsage, counted, did_you_mean
from headpond.cli.common.output import print_json, print_line
from headpond.client import Client, ClientError
from headpond.client.admin import Admin, ConfigResource
from headpond.model import ErrorCode


async def create(client: Client, options: argparse.Namespace) -> int:
    configs = dict(options.config)
    created = True
    try:
        await Admin(client).create_topic(
            options.name, options.partitions or -1, options.replication_factor or -1, configs
        )
    except ClientError as error:
        if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS or not options.if_not_exists:
            raise _explained(error, configs) from error
        created = False
    topic = await find_topic(client, options.name)
    count = len(topic.partitions)
    if options.json:
        print_json({"name": topic.name, "partitions": count, "created": created})
    elif created:
        print_line(f"created {topic.name} with {counted(count, 'partition')}")
    else:
        print_line(f"{topic.name} exists already, with {counted(count, 'partition')}")
    return OK


async def alter(client: Client, options: argparse.Namespace) -> int:
    options.delete_config = list(dict.fromkeys(options.delete_config))
    if not options.config and not options.delete_config and options.partitions is None:
        raise WrongUsage("nothing to change: give --config, --delete-config or --partitions")
    both = sorted({name for name, _ in options.config} & set(options.delete_config))
    if both:
        raise WrongUsage(f"{both[0]} can't be set and deleted at once")
    topic = await find_topic(client, options.name)
    now = len(topic.partitions)
    if options.partitions is not None and options.partitions <= now:
        raise CommandFailed(f"{topic.name} has {counted(now, 'partition')} already; there can only be more, not fewer")
    admin, resource, configs = Admin(client), ConfigResource("topic", topic.name), dict(options.config)
    changes = bool(configs or options.delete_config)
    await _check_deleted(admin, resource, options.delete_config)
    try:
        # A look at both first: settings that are fine must not stay behind when the partitions are refused.
        for validate_only in (True, False):
            if options.partitions is not None:
                await admin.create_partitions(topic.name, options.partitions, validate_only=validate_only)
            if changes:
                await admin.alter_configs(resource, configs, options.delete_config, validate_only=validate_only)
    except ClientError as error:
        raise _explained(error, [*configs, *options.delete_config]) from error
    if options.json:
        print_json(
            {
                "name": topic.name,
                "partitions": options.partitions or now,
                "set": configs,
                "deleted": options.delete_config,
            }
        )
        return OK
    done = [f"{name}={value}" for name, value in configs.items()]
    done += [f"{name} back to its default" for name in options.delete_config]
    done += [f"{counted(options.partitions, 'partition')} instead of {now}"] if options.partitions else []
    print_line(f"altered {topic.name}: {', '.join(done)}")
    return OK


async def _check_deleted(admin: Admin, resource: ConfigResource, names: Iterable[str]) -> None:
    """A broker accepts the deletion of an unknown setting silently."""
    from headpond.config.known.of_topics import TOPIC_SETTINGS

    unknown = [name for name in names if name not in TOPIC_SETTINGS]
    if unknown:
        described = [one.name for one in await admin.describe_configs(resource)]  # another broker may know others
        for name in unknown:
            if name not in described:
                hint = did_you_mean(name, {*described, *TOPIC_SETTINGS})
                raise CommandFailed(f"topics have no setting {name}{hint}; nothing was changed")


async def delete(client: Client, options: argparse.Namespace) -> int:
    names = list(dict.fromkeys(options.names))
    view = await client.metadata(names)
    missing = [name for name in names if name not in view.topics or view.topics[name].error is not ErrorCode.NONE]
    if missing and not options.if_exists:
        kept = ", nothing was deleted" if len(names) > 1 else ""
        raise CommandFailed(await unknown_topic(client, missing) + kept)
    wanted = [name for name in names if name not in missing]
    outcomes = await Admin(client).delete_topics(wanted) if wanted else {}
    deleted = [name for name in wanted if outcomes.get(name) is None]
    if options.json:
        print_json({"deleted": deleted})
    for name in deleted if not options.json else ():
        print_line(f"deleted {name}")
    failed = [error for error in outcomes.values() if error is not None]
    if failed:
        raise CommandFailed("; ".join(map(sentence, failed)))
    return OK


def _explained(error: ClientError, names: Iterable[str]) -> CommandFailed:
    """A misspelt setting gets the nearest right one; a broker only says that it is unknown."""
    text = sentence(error)
    if error.code in (ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST):
        from headpond.config.known.of_topics import TOPIC_SETTINGS as known

        hints = [did_you_mean(name, known) for name in names if name not in known and name in text]
        text += "".join(hints)
    return CommandFailed(text)
