"""``headpond groups delete``. What can be checked is checked before anything is deleted."""

from __future__ import annotations

import argparse

from headpond.cli.common.connection import sentence
from headpond.cli.common.failures import OK, CommandFailed
from headpond.cli.common.output import print_json, print_line
from headpond.cli.groups.show import unknown_group
from headpond.client import Client
from headpond.client.group_admin import EMPTY_STATES, Groups
from headpond.model import ErrorCode


async def delete(client: Client, options: argparse.Namespace) -> int:
    groups = Groups(client)
    names = list(dict.fromkeys(options.names))
    listed = {group.group_id: group for group in await groups.all()}
    missing = [name for name in names if name not in listed]
    kept = ", nothing was deleted" if len(names) > 1 else ""
    if missing and not options.if_exists:
        raise CommandFailed(await unknown_group(groups, missing) + kept)
    wanted = [name for name in names if name in listed]
    used = [name for name in wanted if listed[name].state and listed[name].state not in EMPTY_STATES]
    if used:
        raise CommandFailed(f"group {used[0]} has members ({listed[used[0]].state}), stop them first{kept}")
    outcomes = await groups.delete(wanted)
    gone = {None, ErrorCode.GROUP_ID_NOT_FOUND} if options.if_exists else {None}
    deleted = [name for name in wanted if outcomes[name] is None]
    if options.json:
        print_json({"deleted": deleted})
    for name in deleted if not options.json else ():
        print_line(f"deleted {name}")
    failed = [error for error in outcomes.values() if error is not None and error.code not in gone]
    if failed:
        raise CommandFailed("; ".join(map(sentence, failed)))
    return OK
