"""What ``headpond pipeline restore`` does: checks all topics, writes one after the other, says what it has done."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from headpond.cli.common.command_config import kafka_options
from headpond.cli.common.failures import OK, CommandFailed, counted
from headpond.cli.common.output import Column, print_json, print_line, print_table
from headpond.cli.common.progress import Progress
from headpond.cli.pipeline.spark import Sessions, broker_address, in_one_sentence
from headpond.runtime.clock import SystemClock

if TYPE_CHECKING:
    from headpond.spark.lake.restore import TopicRestore
    from headpond.spark.lake.store import Lake


def restore(options: argparse.Namespace) -> int:
    with in_one_sentence(options):
        from headpond.spark.lake.restore import Restore, RestoreSettings
        from headpond.spark.lake.store import Lake

        started_s = SystemClock().monotonic()
        lake = Lake(options.lake)
        lake.mark()
        settings = RestoreSettings(
            bootstrap=broker_address(options),
            security=kafka_options(options),
            api_timeout_ms=int(options.timeout * 1000),
            topics=_targets(options, lake),
            configs=dict(options.config),
            batch_records=options.batch_records,
            compression=options.compression,
            may_append=options.append,
            state_folder=options.state,
        )
        with Sessions(options, "restore") as sessions:
            planned = Restore(sessions.get, settings, lake, lambda _: None).plan()
            if options.dry_run:
                _show_plan(planned, lake, options)
                return OK
            if any(one.offsets for one in planned):
                sessions.get()  # before a topic is created
            with Progress("restoring", sum(one.offsets for one in planned)) as bar:
                work = Restore(sessions.get, settings, lake, bar.advance)
                for one in planned:
                    work.run(one)
        _show_summary(planned, lake, SystemClock().monotonic() - started_s, options)
    return OK


def _targets(options: argparse.Namespace, lake: Lake) -> dict[str, str]:
    topics = list(dict.fromkeys(options.topics)) or lake.topics()
    if not topics:
        raise CommandFailed(f"{lake.path} holds no topic")
    return {topic: options.target or topic for topic in topics}


def _show_plan(planned: list[TopicRestore], lake: Lake, options: argparse.Namespace) -> None:
    rows = [
        {
            "topic": one.lake.topic,
            "target": one.target.name,
            "is_new_topic": not one.target.exists,
            "is_resumed": one.state is not None,
            "partitions": max(one.lake.partitions, default=0) + 1,
            "offsets": one.offsets,
        }
        for one in planned
    ]
    if options.json:
        print_json({"lake": lake.path, "dry_run": True, "topics": rows})
        return
    print_table(
        [Column("topic"), Column("to"), Column("created"), Column("partitions", True), Column("to write", True)],
        [[row["topic"], row["target"], row["is_new_topic"], row["partitions"], row["offsets"]] for row in rows],
    )
    print_line(f"would write up to {counted(sum(one.offsets for one in planned), 'record')} from {lake.path}")


def _show_summary(planned: list[TopicRestore], lake: Lake, seconds: float, options: argparse.Namespace) -> None:
    rows = [
        {
            "topic": one.lake.topic,
            "target": one.target.name,
            "is_created": one.is_created,
            "partitions": one.target.partitions,
            "records": one.records,
            "records_in_all": 0 if one.state is None else one.state.records,
            "transactions": one.chunks,
        }
        for one in planned
    ]
    records = sum(one.records for one in planned)
    if options.json:
        print_json({"lake": lake.path, "records": records, "seconds": round(seconds, 3), "topics": rows})
        return
    print_table(
        [Column("topic"), Column("to"), Column("created"), Column("partitions", True), Column("written", True)],
        [[row["topic"], row["target"], row["is_created"], row["partitions"], row["records"]] for row in rows],
    )
    print_line(f"restored {counted(records, 'record')} from {lake.path} in {seconds:.1f} s")
