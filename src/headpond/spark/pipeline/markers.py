"""What topics hold already: the last batch of each query, by the marker that the sink leaves with what it writes.

A checkpoint that was set back plans batches under numbers that are written, with other records: the broker would take
them for done. So it is asked before the queries start; the sink itself refuses them, too.
"""

from __future__ import annotations

from collections.abc import Mapping

from headpond.client import Client, ClientError
from headpond.client.group_admin import Groups
from headpond.model import ErrorCode
from headpond.spark.kafka.client_settings import ClientSettings
from headpond.spark.kafka.link import Link
from headpond.spark.pipeline.folder import Folder
from headpond.spark.pipeline.model import DEAD_LETTERS, Pipeline, Sink
from headpond.spark.pipeline.tables import check_batches
from headpond.spark.sink.messages import application_id, query_transactional_id


def application_of(identity: str, sink: Sink) -> str:
    """What writes of mode update are known by: ``txnAppId``."""
    return f"{identity}.{sink.name}"


def markers_of(pipeline: Pipeline, folder: Folder, identity: str | None) -> dict[str, str]:
    """Query -> the group that holds its marker; of queries that can have one."""
    found: dict[str, str] = {}
    for sink in pipeline.sinks:
        if sink.kind != "topic":
            continue
        if sink.mode == "update":
            if identity is not None:
                found[sink.name] = application_id(application_of(identity, sink), sink.target)
        elif (query_id := folder.checkpoint(sink.name).query_id) is not None:
            found[sink.name] = query_transactional_id(query_id)
    if pipeline.bad_records.are_kept and (query_id := folder.checkpoint(DEAD_LETTERS).query_id) is not None:
        found[DEAD_LETTERS] = query_transactional_id(query_id)
    return found


def read_markers(settings: ClientSettings, groups: Mapping[str, str]) -> dict[str, int]:
    """Query -> the last batch that is written; one that has no marker is not in it."""

    async def ask(client: Client) -> dict[str, int]:
        found: dict[str, int] = {}
        for name, group in groups.items():
            try:
                # Not only stable ones: what a killed run has left open holds nobody up here, and is not written.
                offsets = await Groups(client).offsets(group)
            except ClientError as error:
                if error.code is not ErrorCode.GROUP_AUTHORIZATION_FAILED:
                    raise
                continue  # the sink says it better
            if offsets:
                found[name] = max(one.offset for one in offsets.values())
        return found

    if not groups:
        return {}
    with Link(settings) as link:
        return link.once(ask)


def check_markers(pipeline: Pipeline, folder: Folder, written: Mapping[str, int]) -> None:
    """``WrongFolder`` where a topic holds batches that the checkpoint does not know."""
    targets = {sink.name: (f"{sink.place}: sink {sink.name}: topic {sink.target}") for sink in pipeline.sinks}
    targets[DEAD_LETTERS] = f"{pipeline.place}: bad_records: topic {pipeline.bad_records.topic}"
    for name, batch in written.items():
        check_batches(targets[name], written=batch, planned=folder.checkpoint(name).planned, kind="topic")
