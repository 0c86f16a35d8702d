"""What ``headpond pipeline snapshot`` does: looks what is there, writes the table, says what is in it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from headpond.cli.common.failures import OK, counted
from headpond.cli.common.output import Column, note, print_json, print_line, print_table
from headpond.cli.pipeline.archive_run import source_options
from headpond.cli.pipeline.spark import Sessions, broker_address, in_one_sentence
from headpond.cli.pipeline.tasks_bar import tasks_bar
from headpond.runtime.clock import SystemClock

if TYPE_CHECKING:
    from headpond.spark.lake.snapshot import Extent, SnapshotSettings, SnapshotSummary


def snapshot(options: argparse.Namespace) -> int:
    with in_one_sentence(options):
        from headpond.spark.lake.snapshot import find_extent, take_snapshot
        from headpond.spark.lake.table import Table

        started_s = SystemClock().monotonic()
        settings = _settings(options)
        table = Table(settings.table)
        table.check(may_overwrite=settings.may_overwrite)
        extent = find_extent(settings)
        if options.dry_run:
            _show_plan(settings, extent, options)
            return OK
        with Sessions(options, "snapshot") as sessions:
            session = sessions.get()
            with tasks_bar(session, f"reading {counted(extent.offsets, 'record')}"):
                summary = take_snapshot(session, settings, extent, table)
        _show_summary(settings, summary, SystemClock().monotonic() - started_s, options)
    return OK


def _settings(options: argparse.Namespace) -> SnapshotSettings:
    from headpond.spark.lake.snapshot import SnapshotSettings

    given = options.until_offset or []
    everywhere = [offset for partition, offset in given if partition is None]
    return SnapshotSettings(
        topic=options.topic,
        source={} if options.lake else source_options(options, broker_address(options), topics=[options.topic]),
        lake=options.lake,
        table=options.to,
        until_ms=options.until,
        until_offset=everywhere[0] if everywhere else None,
        until_offsets={partition: offset for partition, offset in given if partition is not None},
        refuse_null_keys=options.null_keys == "fail",
        as_strings=options.strings,
        may_overwrite=options.overwrite,
    )


def _show_plan(settings: SnapshotSettings, extent: Extent, options: argparse.Namespace) -> None:
    rows = [[partition, start, end] for partition, (start, end) in extent.spans.items()]
    if options.json:
        parts = [{"partition": partition, "from_offset": start, "end_offset": end} for partition, start, end in rows]
        print_json({"topic": settings.topic, "table": settings.table, "dry_run": True, "partitions": parts})
        return
    print_table([Column("partition", True), Column("from", True), Column("up to", True)], rows)
    print_line(f"would read up to {counted(extent.offsets, 'record')} and write {settings.table}")


def _show_summary(
    settings: SnapshotSettings, summary: SnapshotSummary, seconds: float, options: argparse.Namespace
) -> None:
    if options.json:
        facts = {"topic": settings.topic, "table": settings.table, **summary._asdict(), "seconds": round(seconds, 3)}
        print_json(facts)
        return
    if summary.null_keys:
        note(f"headpond: {counted(summary.null_keys, 'record')} without a key left out")
    print_line(
        f"{counted(summary.keys, 'key')} of {settings.topic} in {settings.table}, "
        f"{counted(summary.tombstones, 'key')} deleted, of {counted(summary.records, 'record')} in {seconds:.1f} s"
    )
