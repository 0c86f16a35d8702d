"""What ``headpond pipeline archive`` does: looks, archives commit by commit, and says what it has done."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headpond.cli.common.command_config import kafka_options
from headpond.cli.common.failures import OK, CommandFailed, counted
from headpond.cli.common.output import Column, bytes_in_words, note, print_json, print_line, print_table
from headpond.cli.common.progress import Progress
from headpond.cli.pipeline.spark import Sessions, broker_address, in_one_sentence
from headpond.runtime.clock import SystemClock

if TYPE_CHECKING:
    from headpond.spark.lake.archive import ArchiveSettings, ArchiveSummary, Backlog
    from headpond.spark.lake.store import Lake


def archive(options: argparse.Namespace) -> int:
    with in_one_sentence(options):
        from headpond.spark.lake.archive import Archive, find_backlog, tell_group
        from headpond.spark.lake.store import Lake

        started_s = SystemClock().monotonic()
        settings = _settings(options)
        lake = Lake(options.to)
        backlog = find_backlog(settings, lake)  # before anything is written, and before Spark takes its time
        if not backlog.topics():
            raise CommandFailed(f"no topic matches {options.pattern}")
        if options.dry_run:
            _show_plan(backlog, lake, options)
            return OK
        with Sessions(options, "archive") as sessions:
            if backlog.offsets:
                sessions.get()
            with lake.writing(), Progress("archiving", backlog.offsets) as bar:
                backlog = find_backlog(settings, lake)  # what somebody else has archived meanwhile is done
                run = Archive(sessions.get, settings, lake, bar.advance)
                summary = run.run(backlog)
        if complaint := tell_group(settings, backlog):
            note(f"headpond: group {settings.group_id} was not told how far the archive is: {complaint}")
        _show_summary(summary, lake, SystemClock().monotonic() - started_s, options)
    return OK


def _settings(options: argparse.Namespace) -> ArchiveSettings:
    from headpond.spark.lake.archive import ArchiveSettings

    lake_name = options.to.rstrip("/").rpartition("/")[2]
    return ArchiveSettings(
        source=source_options(options, broker_address(options), topics=options.topics, pattern=options.pattern),
        lake=options.to,
        file_size_bytes=options.file_size,
        batch_records=options.batch_records,
        compression=options.compression,
        group_id=options.group or f"archive-{lake_name}",
        allow_data_loss=options.allow_data_loss,
    )


def source_options(
    options: argparse.Namespace,
    address: str,
    *,
    topics: list[str] | None = None,
    pattern: str | None = None,
    security: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Of the source, for a batch read. ``security``: another cluster's."""
    chosen = {"subscribePattern": pattern} if pattern is not None else {"subscribe": ",".join(topics or [])}
    return {
        "kafka.bootstrap.servers": address,
        "kafka.default.api.timeout.ms": str(int(options.timeout * 1000)),
        "includeHeaders": "true",
        **chosen,
        **(kafka_options(options) if security is None else security),
    }


def _show_plan(backlog: Backlog, lake: Lake, options: argparse.Namespace) -> None:
    rows = [_planned(topic, backlog) for topic in backlog.topics()]
    if options.json:
        print_json({"lake": lake.path, "dry_run": True, "offsets": backlog.offsets, "topics": rows})
        return
    print_table(
        [Column("topic"), Column("partitions", True), Column("in the lake", True), Column("to archive", True)],
        [[row["topic"], row["partitions"], row["records_in_lake"], row["offsets"]] for row in rows],
    )
    print_line(f"would archive up to {counted(backlog.offsets, 'record')} to {lake.path}")


def _planned(topic: str, backlog: Backlog) -> dict[str, Any]:
    state = backlog.states.get(topic)
    return {
        "topic": topic,
        "partitions": sum(tp.topic == topic for tp in backlog.ends.by_partition),
        "records_in_lake": 0 if state is None else state.records,
        "offsets": backlog.offsets_of(topic),
    }


def _show_summary(summary: ArchiveSummary, lake: Lake, seconds: float, options: argparse.Namespace) -> None:
    states = {topic: lake.state(topic) for topic in summary.topics}
    rows: list[dict[str, Any]] = [
        {
            "topic": topic,
            "records": one.records,
            "skipped_offsets": one.skipped_offsets,
            "lost_offsets": one.lost_offsets,
            "files_new": one.files_new,
            "files_grown": one.files_grown,
            "records_in_lake": 0 if (state := states[topic]) is None else state.records,
            "files_in_lake": 0 if state is None else len(state.files),
            "bytes_in_lake": 0 if state is None else state.size_bytes,
        }
        for topic, one in summary.topics.items()
    ]
    records = sum(one.records for one in summary.topics.values())
    if options.json:
        facts = {"lake": lake.path, "records": records, "commits": summary.commits, "seconds": round(seconds, 3)}
        print_json({**facts, "topics": rows})
        return
    print_table(
        [Column("topic"), *(Column(title, True) for title in ("archived", "in the lake", "files", "size"))],
        [
            [
                row["topic"],
                row["records"],
                row["records_in_lake"],
                row["files_in_lake"],
                bytes_in_words(row["bytes_in_lake"]),
            ]
            for row in rows
        ],
    )
    if lost := sum(one.lost_offsets for one in summary.topics.values()):
        note(f"headpond: {counted(lost, 'offset')} had been deleted before they were archived")
    print_line(f"archived {counted(records, 'record')} to {lake.path} in {seconds:.1f} s")
